"""Write screen items of Codex as rows of a rollout, which the reader of rollouts reads.

    {"type":"agentMessage","id":"msg_1","text":"I look."}
    {"type":"commandExecution","id":"call_1","command":"…","cwd":"…","aggregatedOutput":"…","exitCode":0}

An item of a tool is a call and its result: two rows. An item that is no message is a row that becomes an event.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from daypack.importers.transcript import list_of, object_of, scrub, text_of, without

_NO_TEXT = "(no output)"
_WRAPPED = 3  # words: the shell, its option, the command


class Item(NamedTuple):
    """A screen item: its fields, and when it began and ended, in milliseconds."""

    fields: dict[str, Any]
    started: object
    completed: object

    @property
    def is_running(self) -> bool:
        """True if Codex had not ended it when it was written."""
        return self.fields.get("status") == "inProgress"


def rows_of(item: Item) -> Iterator[bytes]:
    """Yield an item as rows of a rollout."""
    convert = _CONVERTERS.get(str(item.fields.get("type")))
    payloads = list(convert(item.fields)) if convert and text_of(item.fields.get("id")) else []
    if not payloads:
        yield _row("thread_item", item.fields, item.started)
    for number, payload in enumerate(payloads):
        yield _row("response_item", payload, item.completed if number else item.started)


def _row(kind: str, payload: dict[str, Any], at: object) -> bytes:
    return msgspec.json.encode(scrub({"timestamp": at, "type": kind, "payload": payload}))


def _user(fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
    content = [_input(object_of(part)) for part in list_of(fields.get("content"))]
    if content:
        yield {"type": "message", "id": fields["id"], "role": "user", "content": content}


def _input(part: dict[str, Any]) -> dict[str, Any]:
    if part.get("type") == "text":
        return {"type": "input_text", "text": str(part.get("text", ""))}
    if part.get("type") == "image" and text_of(part.get("url")):
        return {"type": "input_image", "image_url": part["url"]}
    return part  # a file on the disk, a skill, a mention


def _assistant(fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if text := text_of(fields.get("text")):
        content = [{"type": "output_text", "text": text}]
        yield {"type": "message", "id": fields["id"], "role": "assistant", "content": content}


def _reasoning(fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
    parts = {
        name: [{"type": f"{name}_text", "text": text} for text in list_of(fields.get(name)) if text_of(text)]
        for name in ("summary", "content")
    }
    if any(parts.values()):
        yield {"type": "reasoning", "id": fields["id"], **parts}


def _command(fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield _call(fields, "exec_command", {"cmd": _bare(str(fields.get("command"))), "workdir": fields.get("cwd")})
    output, code = text_of(fields.get("aggregatedOutput")) or _NO_TEXT, fields.get("exitCode")
    yield _output(fields, f"Process exited with code {code}\nOutput:\n{output}" if code else output)


def _file_change(fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
    changes = "".join(_change(object_of(change)) for change in list_of(fields.get("changes")))
    patch = f"*** Begin Patch\n{changes}*** End Patch\n"
    yield {"type": "custom_tool_call", "call_id": fields["id"], "name": "apply_patch", "input": patch}
    yield _output(fields, fields.get("status"))


def _change(change: dict[str, Any]) -> str:
    """Return one file of a patch: of a new file the database has the text, of a changed one the hunks."""
    path, text, kind = change.get("path"), str(change.get("diff", "")), object_of(change.get("kind"))
    if kind.get("type") == "delete":
        return f"*** Delete File: {path}\n"
    if kind.get("type") == "add":
        return f"*** Add File: {path}\n" + "".join(f"+{line}\n" for line in text.splitlines())
    moved = f"*** Move to: {kind['move_path']}\n" if kind.get("move_path") else ""
    return f"*** Update File: {path}\n{moved}" + "".join(f"{line}\n" for line in text.splitlines())


def _bare(command: str) -> str:
    """Return a command as the model wrote it, without the shell that Codex ran it in."""
    import shlex  # noqa: PLC0415 — only for this store

    try:
        words = shlex.split(command)
    except ValueError:
        return command
    return words[2] if len(words) == _WRAPPED and words[1] in ("-lc", "-c") else command


def _mcp_call(fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield _call(fields, f"mcp__{fields.get('server')}__{fields.get('tool')}", fields.get("arguments"))
    result = object_of(fields.get("result"))
    texts = [text for part in list_of(result.get("content")) if (text := text_of(object_of(part).get("text")))]
    yield _output(fields, fields.get("error") or "\n".join(texts) or fields.get("result"))


def _dynamic_call(fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield _call(fields, str(fields.get("tool")), fields.get("arguments"))
    texts = [text for part in list_of(fields.get("contentItems")) if (text := text_of(object_of(part).get("text")))]
    yield _output(fields, "\n".join(texts) or fields.get("contentItems"))


def _agent_call(fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
    arguments = without({name: fields.get(name) for name in ("prompt", "receiverThreadIds", "model")})
    yield _call(fields, str(fields.get("tool")), arguments)
    yield _output(fields, fields.get("agentsStates"))


def _web_search(fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {**without(fields, "type"), "type": "web_search_call"}


def _call(fields: dict[str, Any], name: str, arguments: object) -> dict[str, Any]:
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments or {}).decode()
    return {"type": "function_call", "call_id": fields["id"], "name": name, "arguments": text}


def _output(fields: dict[str, Any], output: object) -> dict[str, Any]:
    text = output if isinstance(output, str) else msgspec.json.encode(output).decode() if output else _NO_TEXT
    return {"type": "function_call_output", "call_id": fields["id"], "output": text}


_CONVERTERS: dict[str, Callable[[dict[str, Any]], Iterator[dict[str, Any]]]] = {
    "userMessage": _user,
    "agentMessage": _assistant,
    "plan": _assistant,
    "reasoning": _reasoning,
    "commandExecution": _command,
    "fileChange": _file_change,
    "mcpToolCall": _mcp_call,
    "dynamicToolCall": _dynamic_call,
    "collabAgentToolCall": _agent_call,
    "webSearch": _web_search,
}
