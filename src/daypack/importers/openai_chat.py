"""Conversations in the shapes of OpenAI's interfaces: chat messages, or items of the responses API.

[{"role":"user","content":"…"}, …]              a list in one document
{"messages":[…],"tools":[…]}                    one conversation, alone or one per line (fine-tuning)
{"role":"user","content":"…"}                   one message per line
{"input":[…],"output":[…]}                      items
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from daypack.importers.openai_responses import ITEMS, Items, chat_role
from daypack.importers.parts import openai_parts
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
    parse_row,
    text_of,
    time_of,
    without,
)

FORMAT = "openai"
_LISTS = ("messages", "items", "input", "output")
_FIELDS = ("role", "content", "tool_calls", "tool_call_id", "name", "function_call", "timestamp", "created_at")
_THOUGHTS = ("reasoning_content", "reasoning")


def is_message(value: object) -> bool:
    """Say whether a value is a chat message or an item."""
    fields = object_of(value)
    role = chat_role(fields.get("role")) or fields.get("role") in ("tool", "function")
    return bool(role) or (fields.get("type") in ITEMS and "payload" not in fields and "uuid" not in fields)


def is_conversation(value: object) -> bool:
    """Say whether a value is an object that holds a conversation."""
    return any(map(is_message, conversation_of(value)))


def conversation_of(value: object) -> list[Any]:
    """Return the messages of a conversation: a list, or those in an object."""
    fields = object_of(value)
    return list_of(value) or [one for name in _LISTS for one in list_of(fields.get(name))]


def rows_of(value: object) -> list[bytes]:
    """Return a conversation as rows."""
    return [msgspec.json.encode(one) for one in conversation_of(value)]


def extra_rows_of(value: object) -> list[bytes]:
    """Return what a conversation's object says beside its messages: tools, settings."""
    beside = {name: one for name, one in object_of(value).items() if not (name in _LISTS and isinstance(one, list))}
    return [msgspec.json.encode(beside)] if beside else []


class OpenAIChat:
    """Reads the messages of one conversation."""

    def __init__(self, origin: Origin, keep: Keep) -> None:
        self._origin = origin
        self._keep = keep
        self._items = Items(origin, keep, _item)
        self._called = ""  # the newest call of the old kind, which has no id

    def note(self, row: Row) -> None:
        """See a row that was taken in before: a call without an id may be answered later."""
        if b'"function_call"' in row.raw:
            self._old_call(parse_row(row.number, row.raw))

    def begins(self, row: Row) -> bool:
        """Say whether everything before this row is complete."""
        return self._items.begins(row)

    def read(self, row: Row) -> Iterator[Step]:
        """Yield what is complete with this row."""
        if _item(row):
            yield from self._items.read(row)
            return
        yield from self._items.finish()
        yield self._draft(row) if is_message(row.value) else Kept(row)

    def finish(self) -> Iterator[Step]:
        """Yield the message that might have gone on."""
        yield from self._items.finish()

    def _draft(self, row: Row) -> Draft:
        fields = row.fields
        thoughts = [name for name in _THOUGHTS if text_of(fields.get(name))]
        told = {"role": fields["role"]} if fields["role"] in ("developer", "function") else {}
        meta = {"format": self._origin.format, "line": row.number, **told}
        answered = text_of(self._called) if fields["role"] == "function" else None
        draft = {
            "role": chat_role(fields["role"]) or "tool",
            "content": self._content(fields, thoughts[:1]),
            "tool_calls": [*map(_call, list_of(fields.get("tool_calls"))), *self._old_call(row)],
            "tool_call_id": text_of(fields.get("tool_call_id")) or answered,
            "name": text_of(fields.get("name")),
            "client_key": key_of(self._origin, row),
            "ts": time_of(fields.get("timestamp") or fields.get("created_at")),
            "meta": {**meta, **without(fields, *_FIELDS, *thoughts[:1])},
        }
        return Draft(without(draft), (row,))

    def _content(self, fields: dict[str, Any], thoughts: list[str]) -> str | list[dict[str, Any]]:
        words = openai_parts(fields.get("content"), self._keep)
        if not thoughts:
            return words
        parts: list[dict[str, Any]] = [{"type": "text", "text": words}] if isinstance(words, str) else words
        return [{"type": "thinking", "text": fields[thoughts[0]]}, *(part for part in parts if part != _EMPTY)]

    def _old_call(self, row: Row) -> list[dict[str, Any]]:
        call = object_of(row.fields.get("function_call"))
        if not text_of(call.get("name")):
            return []
        self._called = f"call-{row.number}"
        return [{"id": self._called, **without(call)}]


_EMPTY = {"type": "text", "text": ""}


def _item(row: Row) -> dict[str, Any]:
    """Return a row that is an item; a chat message has no type."""
    return row.fields if row.fields.get("type") in ITEMS else {}


def _call(call: object) -> object:
    fields = object_of(call)
    custom = object_of(fields.get("custom"))
    if not custom:
        return call
    arguments = msgspec.json.encode({"input": custom.get("input", "")}).decode()
    return {"id": fields.get("id"), "name": custom.get("name"), "arguments": arguments, "meta": {"type": "custom"}}
