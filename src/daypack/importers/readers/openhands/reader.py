"""Read the events of a conversation of OpenHands.

    {"kind":"ActionEvent","id":"…","parent_id":"…","timestamp":"2026-05-01T10:00:00.123456","tool_call":{…},…}

Calls of one reply are several events with the same `llm_response_id`; they become one message. A condensation is a
compaction: the events that it and earlier ones forgot have left the window. An event whose parent is not the event
before it begins a branch: what followed the parent was taken back. Times have no zone: they are those of the clock of
the machine. Recorded with openhands-sdk 1.2.0 and 1.58.2.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from daypack.importers.readers.content_parts import openai_parts
from daypack.importers.readers.openhands import version0
from daypack.importers.readers.openhands.conversation import FORMAT
from daypack.importers.transcript import (
    Compaction,
    Draft,
    RawRow,
    Removal,
    Row,
    Step,
    StoreBlob,
    first_text,
    list_of,
    object_of,
    parse_row,
    text_of,
    time_of,
    without,
)
from daypack.types.history import Message

_ROLES = ("user", "assistant", "system")
_RESULTS = ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation")
_NO_NODES = ("ConversationStateUpdateEvent",)  # in the log, but in no branch
_ROOT = "__root__"  # the parent of an event that begins anew
_EVENT_IDS = "events"  # in a message's meta
_MOST_FORGOTTEN = 5000  # events whose ids are kept for the next import
LineOf = Callable[[str], int]  # the line of an event, 0 if it is not known


class _Event(NamedTuple):
    """A row, and its fields as version 1 has them."""

    row: Row
    fields: dict[str, Any]

    @property
    def kind(self) -> str:
        return text_of(self.fields.get("kind")) or ""

    @property
    def id(self) -> str:
        return text_of(self.fields.get("id")) or ""


class OpenHands:
    """Reads the events of one conversation."""

    def __init__(self, store_blob: StoreBlob, conversation: str, line_of: LineOf) -> None:
        self._store_blob = store_blob
        self._conversation = conversation
        self._line_of = line_of
        self._calls: list[_Event] = []  # of one reply, which may have more
        self._newest = ""  # the event that the next one continues
        self._forgotten = _Forgotten()

    def observe(self, row: Row) -> None:
        """See a row that an earlier import stored: what it forgot, and whether it is the newest."""
        event = self._event(parse_row(row.number, row.raw))
        if event.kind == "Condensation":
            self._forgotten.add(event.fields)
        self._continue(event)

    def is_boundary(self, row: Row) -> bool:
        """Return True if the row is no further call of a reply."""
        return not (self._calls and _continues(self._calls[-1], self._event(row)))

    def read(self, row: Row) -> Iterator[Step]:
        """Yield the steps that this row completes."""
        event = self._event(row)
        if not (self._calls and _continues(self._calls[-1], event)):
            yield from self.finish()
        if not event.id:
            yield RawRow(row)
            return
        yield from self._removal(event)
        self._continue(event)
        if event.kind == "ActionEvent" and text_of(object_of(event.fields.get("tool_call")).get("id")):
            self._calls.append(event)
        elif event.kind == "Condensation":
            self._forgotten.add(event.fields)
            yield Compaction(row, event.id, self._forgotten.copy().keeps, {"trigger": "auto"})
            yield RawRow(row)
        elif message := self._message(event):
            yield _draft(message, [event])
        else:
            yield RawRow(row)

    def finish(self) -> Iterator[Step]:
        """Yield the reply whose calls were held back."""
        events, self._calls = self._calls, []
        if events:
            yield self._reply(events)

    def state(self) -> dict[str, Any] | None:
        """Return the newest event, and what was forgotten."""
        forgotten = self._forgotten.state()
        return {"newest": self._newest, **forgotten} if forgotten is not None else None

    def resume(self, state: dict[str, Any]) -> None:
        """Continue after an earlier import."""
        self._newest = text_of(state.get("newest")) or ""
        self._forgotten = _Forgotten(state)

    def _event(self, row: Row) -> _Event:
        is_early = version0.is_event(row.value)
        return _Event(row, version0.translate(row.fields, self._conversation) if is_early else row.fields)

    def _continue(self, event: _Event) -> None:
        if event.kind not in _NO_NODES:
            self._newest = event.id or self._newest

    def _removal(self, event: _Event) -> Iterator[Step]:
        """Yield the removal of what followed the parent of an event, if that is not the event before it."""
        parent = text_of(event.fields.get("parent_id"))
        if not (parent and self._newest) or parent == self._newest or event.kind in _NO_NODES:
            return
        line = self._line_of(parent)
        if line or parent == _ROOT:

            def is_removed(message: Message) -> bool:
                return _line(message) > line

            yield Removal(event.row, is_removed)

    def _reply(self, events: Sequence[_Event]) -> Draft:
        first = events[0].fields
        message = {
            "role": "assistant",
            "content": self._content(list_of(first.get("thought")), first.get("reasoning_content")),
            "tool_calls": [_call(object_of(event.fields.get("tool_call"))) for event in events],
        }
        return _draft(message, events)._replace(from_rows=self._reply_of)

    def _reply_of(self, rows: Sequence[Row]) -> Draft:
        return self._reply([self._event(row) for row in rows])

    def _message(self, read: _Event) -> dict[str, Any] | None:
        kind, event = read.kind, read.fields
        if kind == "SystemPromptEvent":
            prompt = [event.get("system_prompt"), event.get("dynamic_context")]
            return {"role": "system", "content": "\n\n".join(filter(None, (text_of(_text(part)) for part in prompt)))}
        if kind == "MessageEvent":
            message = object_of(event.get("llm_message"))
            role, reasoning = message.get("role"), message.get("reasoning_content")
            content = [*list_of(message.get("content")), *list_of(event.get("extended_content"))]
            return {"role": role, "content": self._content(content, reasoning)} if role in _ROLES else None
        if kind in _RESULTS and (call := text_of(event.get("tool_call_id"))):
            failed = kind != "ObservationEvent" or object_of(event.get("observation")).get("is_error") is True
            meta = {"is_error": True} if failed else {}
            return {"role": "tool", "tool_call_id": call, "content": self._result(event), "meta": meta}
        return None

    def _result(self, event: dict[str, Any]) -> str | list[dict[str, Any]]:
        stated = first_text((event.get("error"), event.get("rejection_reason")))
        if stated is not None:
            return stated
        observation = object_of(event.get("observation"))
        content = observation.get("content")
        if isinstance(content, str):
            return content
        if content := [*list_of(content), *list_of(event.get("extended_content"))]:
            return self._content(content)
        facts = without(observation, "kind")
        return msgspec.json.encode(facts).decode() if facts else ""

    def _content(self, parts: list[Any], reasoning: object = None) -> str | list[dict[str, Any]]:
        thought = text_of(reasoning)
        blocks: list[dict[str, Any]] = [{"type": "thinking", "text": thought}] if thought else []
        for part in map(object_of, parts):
            urls = [url for url in list_of(part.get("image_urls")) if isinstance(url, str)]
            if part.get("type") == "image" and urls:
                blocks += ({"type": "image_url", "image_url": {"url": url}} for url in urls)
            elif part.get("type") == "text":
                blocks.append({"type": "text", "text": part.get("text") or ""})
            elif part:
                blocks.append(part)
        return openai_parts(blocks, self._store_blob)


class _Forgotten:
    """The events that condensations forgot: ids, and spans of the numbers in ids of the versions before 1."""

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        state = state or {}
        self._ids = set(filter(None, map(text_of, list_of(state.get("forgotten")))))
        self._spans = [(int(first), int(last)) for first, last in list_of(state.get("spans"))]

    def add(self, condensation: dict[str, Any]) -> None:
        self._ids.update(filter(None, map(text_of, list_of(condensation.get("forgotten_event_ids")))))
        if span := list_of(condensation.get("forgotten_span")):
            self._spans.append((span[0], span[1]))

    def copy(self) -> "_Forgotten":
        return _Forgotten({"forgotten": list(self._ids), "spans": self._spans})

    def keeps(self, message: Message) -> bool:
        events = list_of((message.meta or {}).get(_EVENT_IDS))
        return not any(map(self._has, events))

    def _has(self, event: object) -> bool:
        if not isinstance(event, str):
            return False
        number = event.rpartition("/")[2]
        is_early = bool(self._spans) and number.isdecimal()
        return event in self._ids or (is_early and any(first <= int(number) <= last for first, last in self._spans))

    def state(self) -> dict[str, Any] | None:
        """Return it for the next import; None if it is too much."""
        found = {"forgotten": sorted(self._ids), "spans": self._spans}
        return found if len(self._ids) + len(self._spans) <= _MOST_FORGOTTEN else None


def _draft(message: dict[str, Any], events: Sequence[_Event]) -> Draft:
    first, ids = events[0], [event.id for event in events]
    meta = {"format": FORMAT, "line": first.row.number, _EVENT_IDS: ids, **message.get("meta", {})}
    if len(ids) > 1:
        meta["rows"] = ids
    fields = {**message, "client_key": f"{FORMAT}:{ids[0]}", "ts": _time(first.fields.get("timestamp"))}
    return Draft(without({**fields, "meta": meta}), tuple(event.row for event in events))


def _time(value: object) -> str:
    """Convert a time; one without a zone is that of this machine, which has written it."""
    if isinstance(value, str):
        try:
            time = datetime.fromisoformat(value)
            return time_of(time.astimezone().isoformat()) if time.tzinfo is None else time_of(value)
        except (ValueError, OverflowError, OSError):
            return ""
    return time_of(value)


def _line(message: Message) -> int:
    line = (message.meta or {}).get("line")
    return line if isinstance(line, int) else 0


def _continues(before: _Event, event: _Event) -> bool:
    reply = text_of(before.fields.get("llm_response_id"))
    return event.kind == "ActionEvent" and bool(reply) and event.fields.get("llm_response_id") == reply


def _call(call: dict[str, Any]) -> dict[str, Any]:
    function = object_of(call.get("function")) or call
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments or {}).decode()
    return {"id": call["id"], "name": text_of(function.get("name")) or "unknown", "arguments": text}


def _text(part: object) -> object:
    return part if isinstance(part, str) else object_of(part).get("text")
