"""Items of the responses API, as Codex stores them too: what the model did in one go is one message.

{"type":"reasoning","summary":[…],"encrypted_content":"…"}
{"type":"message","role":"assistant","content":[{"type":"output_text","text":"…"}]}
{"type":"function_call","call_id":"…","name":"shell","arguments":"{…}"}
{"type":"function_call_output","call_id":"…","output":"…"}
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from daypack.importers.parts import openai_parts, plain_or_parts, strip_base64
from daypack.importers.transcript import (
    Draft,
    Keep,
    Kept,
    Origin,
    Row,
    Step,
    key_of,
    list_of,
    object_of,
    text_of,
    time_of,
    without,
)

_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
# What the provider's own tools did: there is no result to wait for.
_HOSTED = ("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call")
ITEMS = ("message", "reasoning", *_CALLS, *_OUTPUTS, *_HOSTED)
_ROLES = {"developer": "system", "system": "system", "user": "user", "assistant": "assistant"}


def chat_role(role: object) -> str | None:
    """Return our word for a role; None when there is none."""
    return _ROLES.get(role) if isinstance(role, str) else None


class Items:
    """Makes messages of items, in order; `unwrap` finds the item in a row."""

    def __init__(self, origin: Origin, keep: Keep, unwrap: Callable[[Row], dict[str, Any]]) -> None:
        self.model: str | None = None
        self._origin = origin
        self._keep = keep
        self._unwrap = unwrap
        self._rows: list[Row] = []  # of the message that may go on

    def begins(self, row: Row) -> bool:
        """Say whether everything before this row is complete."""
        return not self._rows or (bool(self._unwrap(row)) and not _is_own(self._unwrap(row)))

    def read(self, row: Row) -> Iterator[Step]:
        """Yield what is complete with this item."""
        item = self._unwrap(row)
        if _is_own(item):
            self._rows.append(row)
            return
        yield from self.finish()
        if item.get("type") in _OUTPUTS and text_of(item.get("call_id")):
            draft = {"role": "tool", "content": self._output(item.get("output")), "tool_call_id": item["call_id"]}
            yield self._draft(draft, [row], without(item, "type", "call_id", "output"))
        elif item.get("type") == "message" and (role := chat_role(item.get("role"))):
            draft = {"role": role, "content": openai_parts(item.get("content"), self._keep)}
            told = {"role": item["role"]} if item["role"] == "developer" else {}
            yield self._draft(draft, [row], {**told, **without(item, "type", "role", "content")})
        else:
            yield Kept(row)

    def finish(self) -> Iterator[Step]:
        """Yield the message that might have gone on."""
        rows, self._rows = self._rows, []
        if rows:
            yield self._own(rows)

    def _own(self, rows: Sequence[Row]) -> Draft:
        """Return what the model did in one go."""
        parts: list[dict[str, Any]] = []
        calls: list[dict[str, Any]] = []
        for item in map(self._unwrap, rows):
            if item["type"] == "reasoning":
                parts.append(_thinking(item))
            elif item["type"] == "message":
                parts += self._said(item)
            elif item["type"] in _CALLS:
                calls.append(_call(item))
            else:
                parts.append(strip_base64(item, self._keep))
        draft = {"role": "assistant", "content": plain_or_parts(parts), "tool_calls": calls}
        told: dict[str, Any] = {"model": self.model}
        if len(rows) > 1:
            told["rows"] = [row.number for row in rows]
        return self._draft(draft, rows, told, self._own)

    def _draft(
        self,
        draft: dict[str, Any],
        rows: Sequence[Row],
        told: dict[str, Any],
        again: Callable[[Sequence[Row]], Draft] | None = None,
    ) -> Draft:
        meta = {"format": self._origin.format, "line": rows[0].number, **without(told)}
        key, moment = key_of(self._origin, rows[0]), time_of(rows[0].fields.get("timestamp"))
        return Draft({**draft, "client_key": key, "ts": moment, "meta": meta}, tuple(rows), again)

    def _said(self, item: dict[str, Any]) -> list[dict[str, Any]]:
        words = openai_parts(item.get("content"), self._keep)
        parts: list[dict[str, Any]] = [{"type": "text", "text": words}] if isinstance(words, str) else words
        rest = {name: one for name, one in without(item, "type", "role", "content").items() if one != "completed"}
        if parts and rest:
            parts[0] = {**parts[0], "meta": rest}
        return parts

    def _output(self, output: object) -> str | list[dict[str, Any]]:
        fields = object_of(output)
        if fields and "type" not in fields:  # {"content": "…", "success": true}
            words = fields.get("content_items") or fields.get("content")
            return openai_parts(words if words is not None else msgspec.json.encode(fields).decode(), self._keep)
        return openai_parts(output, self._keep)


def _is_own(item: dict[str, Any]) -> bool:
    kind = item.get("type")
    if kind in _CALLS:
        return bool(text_of(item.get("call_id")) or text_of(item.get("id")))
    return kind in ("reasoning", *_HOSTED) or (kind == "message" and item.get("role") == "assistant")


def _thinking(item: dict[str, Any]) -> dict[str, Any]:
    summary, content = (
        "\n\n".join(str(object_of(part).get("text", "")) for part in list_of(item.get(name)))
        for name in ("summary", "content")
    )
    rest = without(item, "type", "summary", "content", "encrypted_content")
    if summary and content:
        rest["content"] = content
    told = {"text": summary or content, "signature": item.get("encrypted_content"), "meta": rest or None}
    return {"type": "thinking", **without(told)}


def _call(item: dict[str, Any]) -> dict[str, Any]:
    kind = item["type"]
    rest = without(item, "type", "call_id", "name", "arguments", "input", "action")
    name, arguments = item.get("name"), item.get("arguments", "")
    if kind == "custom_tool_call":
        # Free text, which arguments are not: the type says how to get it back.
        arguments = msgspec.json.encode({"input": item.get("input", "")}).decode()
    elif kind == "local_shell_call":
        name, arguments = "local_shell", msgspec.json.encode(item.get("action", {})).decode()
    if kind != "function_call":
        rest["type"] = kind
    identity = text_of(item.get("call_id")) or item["id"]
    return {"id": identity, "name": name, "arguments": arguments, "meta": rest or None}
