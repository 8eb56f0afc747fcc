"""Read sessions of Copilot CLI: one JSONL file of events per session, `session-state/<id>/events.jsonl`.

    {"type":"assistant.message","id":"…","parentId":"…","timestamp":"…","data":{"content":"…","toolRequests":[…]}}

Messages of the user, the system and the model, and results of tools, become messages; all other events become events.
Those of sub-agents, which have an agent id, belong to children.
"""

import os
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

import msgspec

from daypack.history.layout import safe_name
from daypack.importers.readers.content_parts import strip_base64
from daypack.importers.readers.writers import copilot_writer
from daypack.importers.transcript import (
    Compaction,
    Draft,
    RawRow,
    Removal,
    Rollback,
    Row,
    Step,
    StoreBlob,
    first_text,
    list_of,
    object_of,
    text_of,
    time_of,
    without,
)
from daypack.types.history import Message

FORMAT = "copilot"
FILE = "events.jsonl"
_USER, _SYSTEM, _ASSISTANT, _RESULT = "user.message", "system.message", "assistant.message", "tool.execution_complete"
_COMPACTED, _CLEARED, _REWOUND = "session.compaction_complete", "session.context_cleared", "session.snapshot_rewind"
_THINKING = ("reasoningText", "reasoningOpaque", "encryptedContent")


def is_row(row: Row) -> bool:
    """Return True if only Copilot CLI writes such a row."""
    fields = row.fields
    kind = fields.get("type")
    return isinstance(kind, str) and "." in kind and isinstance(fields.get("data"), dict) and "parentId" in fields


def session_id(path: str, head: Sequence[Row]) -> str:
    """Return the session id."""
    recorded = first_text(_data(row).get("sessionId") for row in head if row.fields.get("type") == "session.start")
    stem, ending = os.path.splitext(os.path.basename(path))
    folder = os.path.basename(os.path.dirname(os.path.abspath(path)))
    return recorded or (folder if f"{stem}{ending}" == FILE else stem)


def first_model(head: Sequence[Row]) -> str | None:
    """Return the first model in the rows."""
    return first_text(_data(row).get(name) for row in head for name in ("selectedModel", "model"))


def first_cwd(head: Sequence[Row]) -> str | None:
    """Return the first working directory in the rows."""
    return first_text(object_of(_data(row).get("context")).get("cwd") for row in head)


class Copilot:
    """Reads the events of one session."""

    def __init__(self, store_blob: StoreBlob) -> None:
        self._store_blob = store_blob

    def observe(self, row: Row) -> None:
        """See a row that an earlier import stored: later rows do not depend on it."""

    def is_boundary(self, row: Row) -> bool:  # noqa: ARG002 — required by RowReader
        """Return True: no message spans several rows."""
        return True

    def read(self, row: Row) -> Iterator[Step]:
        """Yield the message of an event, or the event itself."""
        kind, data = row.fields.get("type"), _data(row)
        if kind == _USER and isinstance(data.get("content"), str):
            yield self._read_user(row)
        elif kind == _SYSTEM and isinstance(data.get("content"), str):
            yield self._draft(row, {"role": "system", "content": data["content"]}, without(data, "content"))
        elif kind == _ASSISTANT and isinstance(data.get("content"), str):
            yield self._read_assistant(row)
        elif kind == _RESULT and text_of(data.get("toolCallId")):
            yield self._read_result(row)
        else:
            yield RawRow(row)
            yield from _read_window(row)

    def finish(self) -> Iterator[Step]:
        """Yield nothing: no row is held back."""
        yield from ()

    def state(self) -> dict[str, Any] | None:
        """Return nothing: later rows do not depend on earlier ones."""
        return {}

    def resume(self, state: dict[str, Any]) -> None:
        """Continue: later rows do not depend on earlier ones."""

    def _read_user(self, row: Row) -> Draft:
        """Return what the user typed; what was sent to the model, with the context of hooks, is in its meta."""
        data = _data(row)
        facts = without(data, "content", *(["transformedContent"] if _is_plain(data) else []))
        written = copilot_writer(row.fields)
        return self._draft(row, {"role": "user", "content": data["content"]}, facts, written.meta)

    def _read_assistant(self, row: Row) -> Draft:
        data = _data(row)
        thinking = {"text": data.get("reasoningText"), "signature": data.get("reasoningOpaque")}
        opaque = without({"encrypted_content": data.get("encryptedContent")})
        content: Any = data["content"]
        if any(text_of(data.get(name)) for name in _THINKING):
            part = {"type": "thinking", "text": "", **without(thinking), **({"meta": opaque} if opaque else {})}
            content = [part, *([{"type": "text", "text": content}] if content else [])]
        requests = [object_of(request) for request in list_of(data.get("toolRequests"))]
        calls = [request for request in requests if _is_call(request)]
        facts = without(data, "content", "toolRequests", "model", *_THINKING)
        others = [request for request in requests if not _is_call(request)]
        facts |= {"toolRequests": others} if others else {}
        draft = {"role": "assistant", "content": content, "tool_calls": list(map(_call, calls))}
        return self._draft(row, draft, facts, without({"model": data.get("model")}))

    def _read_result(self, row: Row) -> Draft:
        data = _data(row)
        result, error = object_of(data.get("result")), object_of(data.get("error"))
        content = result.get("content") if isinstance(result.get("content"), str) else error.get("message")
        if not isinstance(content, str):
            content = ""
        facts = without(data, "toolCallId", "result")
        more = {name: value for name, value in without(result, "content").items() if value != content}
        facts |= {"result": more} if more else {}
        draft = {"role": "tool", "content": content, "tool_call_id": data["toolCallId"]}
        return self._draft(row, draft, facts)

    def _draft(
        self, row: Row, draft: dict[str, Any], facts: dict[str, Any], marks: dict[str, Any] | None = None
    ) -> Draft:
        rest = without(row.fields, "type", "data", "id", "timestamp")
        meta = {"format": FORMAT, "id": row.fields.get("id"), "row": rest or None}
        meta |= {"data": strip_base64(facts, self._store_blob) or None, **(marks or {})}
        key, time = f"{FORMAT}:{_id(row)}", time_of(row.fields.get("timestamp"))
        message = {**draft, "client_key": key, "ts": time, "meta": without(meta)}
        return Draft(message, (row,), child=_child_of(row))


def _read_window(row: Row) -> Iterator[Step]:
    """Yield the compaction or the rewind of an event."""
    kind, data = row.fields.get("type"), _data(row)
    if _child_of(row):
        return
    if kind == _COMPACTED and data.get("success") is True:
        tokens = {
            "before_tokens": data.get("preCompactionTokens"),
            "after_tokens": data.get("postCompactionTokens"),
        }
        yield Compaction(row, _id(row), _none, without({"trigger": text_of(data.get("trigger")), **tokens}))
    elif kind == _CLEARED:
        yield Compaction(row, _id(row), _none, {"trigger": "clear"})
    elif kind == _REWOUND and (first := text_of(data.get("upToEventId"))):
        removed = frozenset(map(str, list_of(data.get("eventIds"))))
        yield Removal(row, partial(_is_among, removed)) if removed else Rollback(row, 1, partial(_is_among, {first}))


def _is_among(ids: AbstractSet[str], message: Message) -> bool:
    return (message.meta or {}).get("id") in ids


def _none(_: Message) -> bool:
    return False


def _data(row: Row) -> dict[str, Any]:
    return object_of(row.fields.get("data"))


def _id(row: Row) -> str:
    return text_of(row.fields.get("id")) or f"line-{row.number}"


def _child_of(row: Row) -> str:
    agent = text_of(row.fields.get("agentId"))
    return safe_name(agent) if agent else ""


def _is_plain(data: dict[str, Any]) -> bool:
    return data.get("transformedContent") == data.get("content")


def _is_call(request: dict[str, Any]) -> bool:
    return bool(text_of(request.get("toolCallId")) and text_of(request.get("name")))


def _call(request: dict[str, Any]) -> dict[str, Any]:
    arguments = request.get("arguments", {})
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    return {**without(request, "toolCallId", "arguments"), "id": request["toolCallId"], "arguments": text}
