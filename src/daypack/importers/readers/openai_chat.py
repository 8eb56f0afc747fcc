"""Read conversations in OpenAI formats: chat messages, or items of the responses API.

[{"role":"user","content":"…"}, …]              a list in one document
{"messages":[…],"tools":[…]}                    one conversation, alone or one per line (fine-tuning)
{"role":"user","content":"…"}                   one message per line
{"input":[…],"output":[…]}                      items
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from daypack.importers.readers.content_parts import openai_parts
from daypack.importers.readers.openai_responses import ITEMS, ResponseItems, chat_role
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
    parse_row,
    text_of,
    time_of,
    without,
)

FORMAT = "openai"
_LISTS = ("messages", "items", "input", "output")
_FIELDS = ("role", "content", "tool_calls", "tool_call_id", "name", "function_call", "timestamp", "created_at")
_THINKING_FIELDS = ("reasoning_content", "reasoning")


def is_message(value: object) -> bool:
    """Return True if a value is a chat message or a response item."""
    fields = object_of(value)
    role = chat_role(fields.get("role")) or fields.get("role") in ("tool", "function")
    return bool(role) or (fields.get("type") in ITEMS and "payload" not in fields and "uuid" not in fields)


def is_conversation(value: object) -> bool:
    """Return True if a value is or contains a conversation."""
    return any(map(is_message, conversation_of(value)))


def conversation_of(value: object) -> list[Any]:
    """Return the messages of a conversation: the list itself, or the lists in an object."""
    fields = object_of(value)
    return list_of(value) or [message for name in _LISTS for message in list_of(fields.get(name))]


def rows_of(value: object) -> list[bytes]:
    """Return a conversation as rows."""
    return [msgspec.json.encode(message) for message in conversation_of(value)]


def extra_rows_of(value: object) -> list[bytes]:
    """Return the other fields of a conversation's object as a row: tools, settings."""
    fields = object_of(value).items()
    extra = {name: member for name, member in fields if not (name in _LISTS and isinstance(member, list))}
    return [msgspec.json.encode(extra)] if extra else []


class OpenAIChat:
    """Reads the messages of one conversation."""

    def __init__(self, origin: Origin, store_blob: StoreBlob) -> None:
        self._origin = origin
        self._store_blob = store_blob
        self._items = ResponseItems(origin, store_blob, _item)
        self._last_call_id = ""  # of the newest legacy function_call, which has no id of its own

    def observe(self, row: Row) -> None:
        """See a row that an earlier import stored: the result of a legacy call may follow."""
        if b'"function_call"' in row.raw:
            self._legacy_call(parse_row(row.number, row.raw))

    def is_boundary(self, row: Row) -> bool:
        """Return True if all messages before this row are complete."""
        return self._items.is_boundary(row)

    def read(self, row: Row) -> Iterator[Step]:
        """Yield the steps that this row completes."""
        if _item(row):
            yield from self._items.read(row)
            return
        yield from self._items.finish()
        yield self._draft(row) if is_message(row.value) else RawRow(row)

    def finish(self) -> Iterator[Step]:
        """Yield the message that might have continued."""
        yield from self._items.finish()

    def state(self) -> dict[str, Any] | None:
        """Return the id of the newest legacy call, whose result may follow."""
        return {"call": self._last_call_id}

    def resume(self, state: dict[str, Any]) -> None:
        """Continue after the newest legacy call."""
        self._last_call_id = text_of(state.get("call")) or ""

    def _draft(self, row: Row) -> Draft:
        fields = row.fields
        thinking = [name for name in _THINKING_FIELDS if text_of(fields.get(name))]
        original_role = {"role": fields["role"]} if fields["role"] in ("developer", "function") else {}
        meta = {"format": self._origin.format, "line": row.number, **original_role}
        call_id = text_of(self._last_call_id) if fields["role"] == "function" else None
        draft = {
            "role": chat_role(fields["role"]) or "tool",
            "content": self._content(fields, thinking[:1]),
            "tool_calls": [*map(_call, list_of(fields.get("tool_calls"))), *self._legacy_call(row)],
            "tool_call_id": text_of(fields.get("tool_call_id")) or call_id,
            "name": text_of(fields.get("name")),
            "client_key": key_of(self._origin, row),
            "ts": time_of(fields.get("timestamp") or fields.get("created_at")),
            "meta": {**meta, **without(fields, *_FIELDS, *thinking[:1])},
        }
        return Draft(without(draft), (row,))

    def _content(self, fields: dict[str, Any], thinking: list[str]) -> str | list[dict[str, Any]]:
        content = openai_parts(fields.get("content"), self._store_blob)
        if not thinking:
            return content
        parts: list[dict[str, Any]] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        return [{"type": "thinking", "text": fields[thinking[0]]}, *(part for part in parts if part != _EMPTY)]

    def _legacy_call(self, row: Row) -> list[dict[str, Any]]:
        call = object_of(row.fields.get("function_call"))
        if not text_of(call.get("name")):
            return []
        self._last_call_id = f"call-{row.number}"
        return [{"id": self._last_call_id, **without(call)}]


_EMPTY = {"type": "text", "text": ""}


def _item(row: Row) -> dict[str, Any]:
    """Return the row if it is a response item, else an empty object; a chat message has no type."""
    return row.fields if row.fields.get("type") in ITEMS else {}


def _call(call: object) -> object:
    fields = object_of(call)
    custom = object_of(fields.get("custom"))
    if not custom:
        return call
    return {**fields, "type": "custom"}
