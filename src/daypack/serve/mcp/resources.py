"""MCP prompts and resources: the list of memories, the context document of each, the prompts of each memory type.

daypack://memories      daypack://memory/{memory_id}/context      daypack://prompts/chat/context_prompt
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from daypack.errors import MemoryMissing
from daypack.serve.audited import audited
from daypack.serve.mcp.jsonrpc import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from daypack.memory.tools import Memories
    from daypack.types.memory import Memory

PAGE = 100  # resources in one response
MEMORIES = "daypack://memories"
_AFTER = f"{MEMORIES}?after="
_JSON = "application/json"
_PROMPTS, _MEMORY, _CONTEXT = "daypack://prompts/", "daypack://memory/", "/context"
_MARKDOWN = "text/markdown"
_TOOL = "tool"
_TOOL_ARGUMENT = {
    "name": _TOOL,
    "description": "Leave out the parts for other tools; for instance add_entry.",
    "required": False,
}
_PURPOSES = {
    "context_prompt": "maintain its context document",
    "entry_capture_prompt": "decide what to store",
    "summary_prompt": "write the summary of an entry",
}

TEMPLATES: list[dict[str, Any]] = [
    {
        "uriTemplate": f"{MEMORIES}{{?after}}",
        "name": "memories",
        "title": "Memories",
        "description": "The user's memories; next_after of a page is `after` of the next one.",
        "mimeType": _JSON,
    },
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
        "description": "A prompt for one memory type, with the user's changes.",
        "mimeType": _MARKDOWN,
    },
]


class Resources:
    """The prompts and context documents of one user."""

    def __init__(self, memories: "Callable[[], Memories]", prompts_folder: str) -> None:
        """`prompts_folder` holds the user's own prompts, which override those of the package."""
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

    def get_prompt(self, full_name: str, arguments: Mapping[str, str]) -> dict[str, Any]:
        """Return a prompt as a user message; with a `tool` argument, without the blocks for other tools."""
        kind, _, name = full_name.partition("/")
        if (kind, name) not in self._prompt_names():
            raise RpcError(INVALID_PARAMS, f"Unknown prompt: {full_name}")
        if unknown := arguments.keys() - {_TOOL}:
            raise RpcError(INVALID_PARAMS, f"Unknown argument: {', '.join(sorted(unknown))}")
        text = self._read_prompt(kind, name)
        if _TOOL in arguments:
            from daypack.memory.prompts import assemble  # noqa: PLC0415

            text = assemble(text, arguments[_TOOL])
        content = {"type": "text", "text": text}
        return {"description": _describe(kind, name), "messages": [{"role": "user", "content": content}]}

    def list_resources(self, cursor: str | None) -> dict[str, Any]:
        """Return a page of resources; a cursor is the last URI of the previous page."""
        resources = self._list_all()
        start = 0
        if cursor is not None:
            start = next((at for at, resource in enumerate(resources, 1) if resource["uri"] == cursor), 0)
            if not start:
                raise RpcError(INVALID_PARAMS, "Invalid request parameters", "unknown cursor")
        page = resources[start : start + PAGE]
        more = {"nextCursor": page[-1]["uri"]} if start + PAGE < len(resources) else {}
        return {"resources": page, **more}

    def read(self, uri: str) -> dict[str, Any]:
        """Return the text of a resource."""
        listing = uri == MEMORIES or uri.startswith(_AFTER)
        text = self._list_memories(uri) if listing else self._find_text(uri)
        if text is None:
            raise RpcError(INVALID_PARAMS, "Resource not found", {"uri": uri})
        return {"contents": [{"uri": uri, "mimeType": _JSON if listing else _MARKDOWN, "text": text}]}

    def _list_all(self) -> list[dict[str, Any]]:
        prompts = [
            _resource(f"{_PROMPTS}{kind}/{name}", f"{kind}/{name}", _title(kind, name), _describe(kind, name))
            for kind, name in self._prompt_names()
        ]
        memories = [
            _resource(
                f"{_MEMORY}{memory.memory_id}{_CONTEXT}", memory.memory_id, memory.title, _describe_memory(memory)
            )
            for memory in self._read_memories()
        ]
        about = "The user's memories: ids, titles, types and sizes."
        listing = _resource(MEMORIES, "memories", "Memories", about) | {"mimeType": _JSON}
        return [listing, *memories, *prompts]

    def _read_memories(self) -> "tuple[Memory, ...]":
        memories = self._memories()
        with audited(memories, "resources/list"):
            found = memories.memories()
        return tuple(map(memories.backend.shown, found))

    def _list_memories(self, uri: str) -> str | None:
        from urllib.parse import unquote  # noqa: PLC0415 — few clients read resources

        import msgspec  # noqa: PLC0415

        memories = self._memories()
        try:
            with audited(memories, "resources/read") as outcome:
                after = unquote(uri.removeprefix(_AFTER)) if uri != MEMORIES else None
                page = outcome.value = memories.list_memories(PAGE, after)
        except MemoryMissing:
            return None
        return msgspec.json.encode(memories.backend.shown(page)).decode()

    def _find_text(self, uri: str) -> str | None:
        if uri.startswith(_MEMORY) and uri.endswith(_CONTEXT):
            memory_id = uri[len(_MEMORY) : -len(_CONTEXT)]
            if not memory_id:  # a resource always names its memory
                return None
            memories = self._memories()
            try:
                with audited(memories, "resources/read", memory_id) as outcome:
                    document = outcome.value = memories.get_context(memory_id)
            except MemoryMissing:
                return None
            return memories.backend.shown(document).content
        kind, _, name = uri.removeprefix(_PROMPTS).partition("/")
        known = uri.startswith(_PROMPTS) and (kind, name) in self._prompt_names()
        return self._read_prompt(kind, name) if known else None

    def _prompt_names(self) -> list[tuple[str, str]]:
        from daypack.memory.prompts import list_prompts  # noqa: PLC0415 — few clients ask for prompts

        return list(list_prompts(self._folder))

    def _read_prompt(self, kind: str, name: str) -> str:
        from daypack.memory.prompts import read_prompt  # noqa: PLC0415

        return read_prompt(kind, name, self._folder)


def _resource(uri: str, name: str, title: str, description: str) -> dict[str, Any]:
    return {"uri": uri, "name": name, "title": title, "description": description, "mimeType": _MARKDOWN}


def _describe_memory(memory: "Memory") -> str:
    about = f": {memory.description}" if memory.description else ""
    return f"Context document of the {memory.memory_type} memory {memory.memory_id}{about}"


def _title(kind: str, name: str) -> str:
    return f"{name.removesuffix('_prompt').replace('_', ' ').capitalize()} ({kind})"


def _describe(kind: str, name: str) -> str:
    purpose = _PURPOSES.get(name, name.replace("_", " "))
    return f"How to use a memory of type {kind}: {purpose}."
