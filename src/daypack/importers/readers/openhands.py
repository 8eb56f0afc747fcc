"""Read conversations of OpenHands: a folder with a file for each event, or a list of events in one document.

<conversation>/base_state.json                 {"id":"…","agent":{"llm":{"model":"…"}},"workspace":{"working_dir":"…"}}
<conversation>/events/event-00003-<id>.json    {"kind":"ActionEvent","id":"…","tool_name":"terminal","tool_call":{…}}

Calls of one reply are several events with the same `llm_response_id`; they become one message. A condensation is a
compaction: the events that it forgot have left the window. After the published types of openhands-sdk 1.58.
"""

import os
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from daypack.importers.lines import unreadable
from daypack.importers.readers.content_parts import openai_parts
from daypack.importers.transcript import (
    Compaction,
    Draft,
    RawRow,
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
from daypack.plain_files import open_plain
from daypack.types.history import Message

FORMAT = "openhands"
STATE = "base_state.json"
_EVENTS = "events"
_NAME = re.compile(r"event-(\d{5,})-[0-9a-fA-F-]{8,}\.json")
_ROLES = ("user", "assistant", "system")
_RESULTS = ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation")
_EVENT_IDS = "events"  # in a message's meta


def is_state(path: str, value: object) -> bool:
    """Return True if a document is the state of a conversation, with its events beside it."""
    return os.path.basename(path) == STATE and "agent" in object_of(value) and os.path.isdir(_folder(path))


def is_trajectory(value: object) -> bool:
    """Return True if a document is a list of events."""
    events = [object_of(event) for event in list_of(value)]
    return any(is_event(event) for event in events)


def is_event(fields: dict[str, Any]) -> bool:
    """Return True if an object is an event of a conversation."""
    known = text_of(fields.get("kind")) in ("SystemPromptEvent", "MessageEvent", "ActionEvent", *_RESULTS)
    return known and bool(text_of(fields.get("id"))) and "source" in fields


def rows_of(value: object) -> list[bytes]:
    """Return the events of a list as rows."""
    return [msgspec.json.encode(event) for event in list_of(value)]


def event_rows(path: str) -> list[bytes]:
    """Return the events of a conversation as rows, in the order of their numbers, up to a gap.

    A number that is missing has not been written yet: what follows it is left for the next import. So are calls at the
    end: their reply may have more.
    """
    try:
        names = {int(match[1]): name for name in sorted(os.listdir(_folder(path))) if (match := _NAME.fullmatch(name))}
    except OSError as error:
        raise unreadable(path, f"its events cannot be listed: {error.strerror}", "give a readable folder") from error
    rows: list[bytes] = []
    for number in range(len(names)):
        if number not in names:
            break
        rows.append(_read(os.path.join(_folder(path), names[number])))
    while rows and b'"kind":"ActionEvent"' in rows[-1]:
        rows.pop()
    return rows


def session_id(path: str, state: object) -> str:
    """Return the id of a conversation: that of its state, else the name of its folder."""
    return text_of(object_of(state).get("id")) or os.path.basename(os.path.dirname(os.path.abspath(path)))


def model_of(state: object) -> str | None:
    """Return the model of a conversation."""
    return text_of(object_of(object_of(object_of(state).get("agent")).get("llm")).get("model"))


def cwd_of(state: object) -> str | None:
    """Return the folder that a conversation works in."""
    return text_of(object_of(object_of(state).get("workspace")).get("working_dir"))


def _folder(path: str) -> str:
    return os.path.join(os.path.dirname(path), _EVENTS)


def _read(path: str) -> bytes:
    try:
        with open_plain(path) as file:
            data = file.read()
    except OSError as error:
        raise unreadable(path, f"cannot be read: {error.strerror}", "give a readable file") from error
    try:
        return msgspec.json.encode(msgspec.json.decode(data))  # on one line, however it is written
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return data.replace(b"\n", b" ").replace(b"\r", b" ")  # half written: it is kept as a raw row


class OpenHands:
    """Reads the events of one conversation."""

    def __init__(self, store_blob: StoreBlob) -> None:
        self._store_blob = store_blob
        self._calls: list[Row] = []  # of one reply, which may have more

    def observe(self, row: Row) -> None:
        """See a row that an earlier import stored: later rows do not depend on it."""

    def is_boundary(self, row: Row) -> bool:
        """Return True if the row is no further call of a reply."""
        return not (self._calls and _continues(self._calls[-1], row))

    def read(self, row: Row) -> Iterator[Step]:
        """Yield the steps that this row completes."""
        if self.is_boundary(row):
            yield from self.finish()
        kind, event = row.fields.get("kind"), text_of(row.fields.get("id"))
        if not event:
            yield RawRow(row)
        elif kind == "ActionEvent" and object_of(row.fields.get("tool_call")).get("id"):
            self._calls.append(row)
        elif kind == "Condensation":
            yield self._compaction(row, event)
            yield RawRow(row)
        elif message := self._message(row.fields):
            yield _draft(message, (row,))
        else:
            yield RawRow(row)

    def finish(self) -> Iterator[Step]:
        """Yield the reply whose calls were held back."""
        rows, self._calls = tuple(self._calls), []
        if not rows:
            return
        first = rows[0].fields
        thought = openai_parts(list_of(first.get("thought")), self._store_blob)
        parts: list[dict[str, Any]] = [{"type": "text", "text": thought}] if isinstance(thought, str) else thought
        if reasoning := text_of(first.get("reasoning_content")):
            parts = [{"type": "thinking", "text": reasoning}, *(part for part in parts if part.get("text") != "")]
            thought = parts
        calls = [object_of(row.fields.get("tool_call")) for row in rows]
        message = {
            "role": "assistant",
            "content": thought,
            "tool_calls": [_call(call) for call in calls],
        }
        yield _draft(message, rows)

    def state(self) -> dict[str, Any] | None:
        """Return nothing: later rows do not depend on earlier ones."""
        return {}

    def resume(self, state: dict[str, Any]) -> None:
        """Continue: later rows do not depend on earlier ones."""

    def _message(self, event: dict[str, Any]) -> dict[str, Any] | None:
        kind = event.get("kind")
        if kind == "SystemPromptEvent":
            prompt = [event.get("system_prompt"), event.get("dynamic_context")]
            return {"role": "system", "content": "\n\n".join(filter(None, (text_of(_text(part)) for part in prompt)))}
        if kind == "MessageEvent":
            message = object_of(event.get("llm_message"))
            role = message.get("role")
            content = [*list_of(message.get("content")), *list_of(event.get("extended_content"))]
            return {"role": role, "content": self._content(content)} if role in _ROLES else None
        if kind in _RESULTS and (call := text_of(event.get("tool_call_id"))):
            return {"role": "tool", "tool_call_id": call, "content": self._result(event)}
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

    def _content(self, parts: list[Any]) -> str | list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        for part in map(object_of, parts):
            urls = [url for url in list_of(part.get("image_urls")) if isinstance(url, str)]
            if part.get("type") == "image" and urls:
                blocks += ({"type": "image_url", "image_url": {"url": url}} for url in urls)
            elif part.get("type") == "text":
                blocks.append({"type": "text", "text": part.get("text") or ""})
            elif part:
                blocks.append(part)
        return openai_parts(blocks, self._store_blob)

    def _compaction(self, row: Row, event: str) -> Compaction:
        forgotten = set(filter(None, map(text_of, list_of(row.fields.get("forgotten_event_ids")))))

        def is_kept(message: Message) -> bool:
            events = list_of((message.meta or {}).get(_EVENT_IDS))
            return not any(each in forgotten for each in events)

        return Compaction(row, event, is_kept, {"trigger": "auto"})


def _draft(message: dict[str, Any], rows: tuple[Row, ...]) -> Draft:
    events = [row.fields["id"] for row in rows]
    meta = {"format": FORMAT, "line": rows[0].number, _EVENT_IDS: events}
    fields = {**message, "client_key": f"{FORMAT}:{events[0]}", "ts": time_of(rows[0].fields.get("timestamp"))}
    return Draft(without({**fields, "meta": meta}), rows)


def _continues(before: Row, row: Row) -> bool:
    reply = text_of(before.fields.get("llm_response_id"))
    return row.fields.get("kind") == "ActionEvent" and bool(reply) and row.fields.get("llm_response_id") == reply


def _call(call: dict[str, Any]) -> dict[str, Any]:
    function = object_of(call.get("function")) or call
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments or {}).decode()
    return {"id": call["id"], "name": text_of(function.get("name")) or "unknown", "arguments": text}


def _text(part: object) -> object:
    return part if isinstance(part, str) else object_of(part).get("text")
