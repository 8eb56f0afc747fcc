"""Convert items of the OpenAI responses API, which Codex uses too: consecutive model items become one message.

{"type":"reasoning","summary":[…],"encrypted_content":"…"}
{"type":"message","role":"assistant","content":[{"type":"output_text","text":"…"}]}
{"type":"function_call","call_id":"…","name":"shell","arguments":"{…}"}
{"type":"function_call_output","call_id":"…","output":"…"}
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from daypack.importers.readers.content_parts import openai_parts, plain_or_parts, strip_base64
from daypack.importers.readers.writers import mark_parts
from daypack.importers.transcript import (
    Draft,
    Origin,
    RawRow,
    Row,
    Step,
    StoreBlob,
    key_of,
    list_of,
    object_of,
    text_of,
    time_of,
    without,
)
from daypack.types.authority import WRITER, Writer

_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
# Calls of the provider's own tools: no result item follows.
_HOSTED = ("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call")
ITEMS = ("message", "reasoning", *_CALLS, *_OUTPUTS, *_HOSTED)
_ROLES = {"developer": "system", "system": "system", "user": "user", "assistant": "assistant"}


def chat_role(role: object) -> str | None:
    """Return the role in history for an OpenAI role; None if it is not a chat role."""
    return _ROLES.get(role) if isinstance(role, str) else None


class ResponseItems:
    """Converts items to messages, in order.

    `unwrap` extracts the item from a row, `writers` returns who wrote each part of a message that is not the model's.
    """

    def __init__(
        self,
        origin: Origin,
        store_blob: StoreBlob,
        unwrap: Callable[[Row], dict[str, Any]],
        writers: Callable[[dict[str, Any]], Sequence[Writer | None]] | None = None,
    ) -> None:
        self._writers = writers
        self.model: str | None = None
        self._origin = origin
        self._store_blob = store_blob
        self._unwrap = unwrap
        self._rows: list[Row] = []  # of the model message that may continue

    def is_boundary(self, row: Row) -> bool:
        """Return True if all messages before this row are complete."""
        return not self._rows or (bool(self._unwrap(row)) and not _is_model_item(self._unwrap(row)))

    def read(self, row: Row) -> Iterator[Step]:
        """Yield the steps that this item completes."""
        item = self._unwrap(row)
        if _is_model_item(item):
            self._rows.append(row)
            return
        yield from self.finish()
        if item.get("type") in _OUTPUTS and text_of(item.get("call_id")):
            draft = {"role": "tool", "content": self._output(item.get("output")), "tool_call_id": item["call_id"]}
            yield self._draft(draft, [row], without(item, "type", "call_id", "output"))
        elif item.get("type") == "message" and (role := chat_role(item.get("role"))):
            content = openai_parts(item.get("content"), self._store_blob)
            facts = {"role": item["role"]} if item["role"] == "developer" else {}
            facts |= mark_parts(content, self._writers(item)).meta if self._writers else {}
            draft = {"role": role, "content": content}
            yield self._draft(draft, [row], {**facts, **without(item, "type", "role", "content")})
        else:
            yield RawRow(row)

    def finish(self) -> Iterator[Step]:
        """Yield the message that might have continued."""
        rows, self._rows = self._rows, []
        if rows:
            yield self._model_message(rows)

    def finish_before_summary(self, summary: str) -> Iterator[Step]:
        """Yield the message that might have continued; if its end is the summary of a compaction, apart and marked."""
        rows, first = self._rows, len(self._rows) - 1
        said = _text(self._unwrap(rows[-1])).strip() if rows else ""
        if not said or not summary.rstrip().endswith(said):
            yield from self.finish()
            return
        while first and self._unwrap(rows[first - 1])["type"] == "reasoning":
            first -= 1
        self._rows = rows[:first]
        yield from self.finish()
        draft = self._model_message(rows[first:])
        yield draft._replace(message={**draft.message, "meta": {**draft.message["meta"], WRITER: "summary"}})

    def _model_message(self, rows: Sequence[Row]) -> Draft:
        """Return one message made of consecutive model items."""
        parts: list[dict[str, Any]] = []
        calls: list[dict[str, Any]] = []
        for item in map(self._unwrap, rows):
            if item["type"] == "reasoning":
                parts.append(_thinking(item))
            elif item["type"] == "message":
                parts += self._text_parts(item)
            elif item["type"] in _CALLS:
                calls.append(_call(item))
            else:
                parts.append(strip_base64(item, self._store_blob))
        draft = {"role": "assistant", "content": plain_or_parts(parts), "tool_calls": calls}
        facts: dict[str, Any] = {"model": self.model}
        if len(rows) > 1:
            facts["rows"] = [row.number for row in rows]
        return self._draft(draft, rows, facts, self._model_message)

    def _draft(
        self,
        draft: dict[str, Any],
        rows: Sequence[Row],
        facts: dict[str, Any],
        from_rows: Callable[[Sequence[Row]], Draft] | None = None,
    ) -> Draft:
        meta = {"format": self._origin.format, "line": rows[0].number, **without(facts)}
        key, time = key_of(self._origin, rows[0]), time_of(rows[0].fields.get("timestamp"))
        return Draft({**draft, "client_key": key, "ts": time, "meta": meta}, tuple(rows), from_rows)

    def _text_parts(self, item: dict[str, Any]) -> list[dict[str, Any]]:
        content = openai_parts(item.get("content"), self._store_blob)
        parts: list[dict[str, Any]] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        fields = without(item, "type", "role", "content")
        rest = {name: value for name, value in fields.items() if value != "completed"}
        if parts and rest:
            parts[0] = {**parts[0], "meta": rest}
        return parts

    def _output(self, output: object) -> str | list[dict[str, Any]]:
        fields = object_of(output)
        if fields and "type" not in fields:  # {"content": "…", "success": true}
            content = fields.get("content_items") or fields.get("content")
            return openai_parts(
                content if content is not None else msgspec.json.encode(fields).decode(), self._store_blob
            )
        return openai_parts(output, self._store_blob)


def _is_model_item(item: dict[str, Any]) -> bool:
    kind = item.get("type")
    if kind in _CALLS:
        return bool(text_of(item.get("call_id")) or text_of(item.get("id")))
    return kind in ("reasoning", *_HOSTED) or (kind == "message" and item.get("role") == "assistant")


def _text(item: dict[str, Any]) -> str:
    if item.get("type") != "message":
        return ""
    return "\n".join(str(object_of(part).get("text", "")) for part in list_of(item.get("content")))


def _thinking(item: dict[str, Any]) -> dict[str, Any]:
    summary, content = (
        "\n\n".join(str(object_of(part).get("text", "")) for part in list_of(item.get(name)))
        for name in ("summary", "content")
    )
    rest = without(item, "type", "summary", "content", "encrypted_content")
    if summary and content:
        rest["content"] = content
    fields = {"text": summary or content, "signature": item.get("encrypted_content"), "meta": rest or None}
    return {"type": "thinking", **without(fields)}


def _call(item: dict[str, Any]) -> dict[str, Any]:
    kind = item["type"]
    rest = without(item, "type", "call_id", "name", "arguments", "input", "action")
    name, arguments = item.get("name"), item.get("arguments", "")
    if kind == "custom_tool_call":
        arguments = item.get("input", "")  # free text, not JSON
    elif kind == "local_shell_call":
        name, arguments = "local_shell", msgspec.json.encode(item.get("action", {})).decode()
    if kind != "function_call":
        rest["type"] = "custom" if kind == "custom_tool_call" else kind
    call_id = text_of(item.get("call_id")) or item["id"]
    return {"id": call_id, "name": name, "arguments": arguments, "meta": rest or None}
