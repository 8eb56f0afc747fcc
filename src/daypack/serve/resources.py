"""What clients may read beside the tools: the prompts of memory types, and the context documents of memories.

daypack://prompts/chat/context_prompt      daypack://memory/{memory_id}/context
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from daypack.errors import MemoryMissing
from daypack.serve.stdio.jsonrpc import INVALID_PARAMS, Fault

if TYPE_CHECKING:
    from daypack.memory.tools import Memories
    from daypack.types.memory import Memory

PAGE = 100  # resources in one answer
_PROMPTS, _MEMORY, _CONTEXT = "daypack://prompts/", "daypack://memory/", "/context"
_MARKDOWN = "text/markdown"
_TOOL = "tool"
_TOOL_ARGUMENT = {
    "name": _TOOL,
    "description": "Only what counts while this tool is called, for instance add_entry.",
    "required": False,
}
_PURPOSES = {
    "context_prompt": "keep its context document",
    "entry_capture_prompt": "decide what to store",
    "summary_prompt": "write the summary of an entry",
}

TEMPLATES: list[dict[str, Any]] = [
    {
        "uriTemplate": f"{_MEMORY}{{memory_id}}{_CONTEXT}",
        "name": "context",
        "title": "Context document",
        "description": "The current context document of a memory.",
        "mimeType": _MARKDOWN,
    },
    {
        "uriTemplate": f"{_PROMPTS}{{memory_type}}/{{name}}",
        "name": "prompt",
        "title": "Prompt",
        "description": "A prompt for memories of a type, as the user has it.",
        "mimeType": _MARKDOWN,
    },
]


class Resources:
    """Prompts and documents of one user."""

    def __init__(self, memories: "Callable[[], Memories]", prompts_folder: str) -> None:
        """`prompts_folder` is where the user's own prompts are; they go before those of the package."""
        self._memories = memories
        self._folder = prompts_folder

    def list_prompts(self) -> list[dict[str, Any]]:
        """Return the prompts of every memory type."""
        return [
            {
                "name": f"{kind}/{name}",
                "title": _title(kind, name),
                "description": _describe(kind, name),
                "arguments": [_TOOL_ARGUMENT],
            }
            for kind, name in self._prompt_names()
        ]

    def get_prompt(self, full_name: str, given: Mapping[str, str]) -> dict[str, Any]:
        """Return a prompt as the message it is; for a tool, without the blocks that are for other tools."""
        kind, _, name = full_name.partition("/")
        if (kind, name) not in self._prompt_names():
            raise Fault(INVALID_PARAMS, f"Unknown prompt: {full_name}")
        if unknown := given.keys() - {_TOOL}:
            raise Fault(INVALID_PARAMS, f"Unknown argument: {', '.join(sorted(unknown))}")
        text = self._prompt(kind, name)
        if _TOOL in given:
            from daypack.memory.prompts import assemble  # noqa: PLC0415

            text = assemble(text, given[_TOOL])
        content = {"type": "text", "text": text}
        return {"description": _describe(kind, name), "messages": [{"role": "user", "content": content}]}

    def list_resources(self, cursor: str | None) -> dict[str, Any]:
        """Return a page of what can be read; a cursor is the last uri of the page before."""
        found = self._found()
        at = 0
        if cursor is not None:
            at = next((at for at, one in enumerate(found, 1) if one["uri"] == cursor), 0)
            if not at:
                raise Fault(INVALID_PARAMS, "Invalid request parameters", "there is no such cursor")
        page = found[at : at + PAGE]
        more = {"nextCursor": page[-1]["uri"]} if at + PAGE < len(found) else {}
        return {"resources": page, **more}

    def read(self, uri: str) -> dict[str, Any]:
        """Return the text behind a uri."""
        text = self._text(uri)
        if text is None:
            raise Fault(INVALID_PARAMS, "Resource not found", {"uri": uri})
        return {"contents": [{"uri": uri, "mimeType": _MARKDOWN, "text": text}]}

    def _found(self) -> list[dict[str, Any]]:
        prompts = [
            _resource(f"{_PROMPTS}{kind}/{name}", f"{kind}/{name}", _title(kind, name), _describe(kind, name))
            for kind, name in self._prompt_names()
        ]
        memories = [
            _resource(f"{_MEMORY}{one.memory_id}{_CONTEXT}", one.memory_id, one.title, _describe_memory(one))
            for one in self._memories().memories()
        ]
        return [*memories, *prompts]

    def _text(self, uri: str) -> str | None:
        if uri.startswith(_MEMORY) and uri.endswith(_CONTEXT):
            from daypack.text.redact.redact import redact  # noqa: PLC0415 — as in the answers of tools

            memories = self._memories()
            try:
                content = memories.get_context(uri[len(_MEMORY) : -len(_CONTEXT)]).content
            except MemoryMissing:
                return None
            return redact(content).text if memories.backend.redacting else content
        kind, _, name = uri.removeprefix(_PROMPTS).partition("/")
        known = uri.startswith(_PROMPTS) and (kind, name) in self._prompt_names()
        return self._prompt(kind, name) if known else None

    def _prompt_names(self) -> list[tuple[str, str]]:
        from daypack.memory.prompts import list_prompts  # noqa: PLC0415 — few clients ask

        return list(list_prompts(self._folder))

    def _prompt(self, kind: str, name: str) -> str:
        from daypack.memory.prompts import read_prompt  # noqa: PLC0415

        return read_prompt(kind, name, self._folder)


def _resource(uri: str, name: str, title: str, description: str) -> dict[str, Any]:
    return {"uri": uri, "name": name, "title": title, "description": description, "mimeType": _MARKDOWN}


def _describe_memory(one: "Memory") -> str:
    about = f": {one.description}" if one.description else ""
    return f"Context document of the {one.memory_type} memory with the id {one.memory_id}{about}"


def _title(kind: str, name: str) -> str:
    return f"{name.removesuffix('_prompt').replace('_', ' ').capitalize()} ({kind})"


def _describe(kind: str, name: str) -> str:
    what = _PURPOSES.get(name, name.replace("_", " "))
    return f"How to work with a memory of type {kind}: {what}."
