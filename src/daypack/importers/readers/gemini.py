"""Read sessions of Gemini CLI: rows in a JSONL file, and the one JSON document per session of earlier versions.

    {"sessionId":"…","projectHash":"…","startTime":"…","kind":"main"}
    {"id":"…","timestamp":"…","type":"user","content":[{"text":"…"}]}
    {"id":"…","timestamp":"…","type":"gemini","content":"…","thoughts":[…],"tokens":{…},"model":"…","toolCalls":[…]}
    {"$set":{"messages":[…]}}      these are in the window now: after a compaction, an interruption, a resume
    {"$rewindTo":"…"}              this message and those after it left the window

A message of the model is written again when its calls are done, with their results; its rows become one message. The
results that follow as a row of the user are the same ones. Rows that only say when the file was written are left out;
of the messages that a row lists once more, only the ids are kept, and the row of a compaction is marked as such.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from daypack.importers.readers.content_parts import gemini_parts, replace_repeated, strip_base64
from daypack.importers.readers.writers import (
    gemini_writer,
    split_appended_context,
    split_hook_context,
    without_hook_context,
)
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
    parse_row,
    text_of,
    time_of,
    without,
)
from daypack.types.authority import WRITER
from daypack.types.history import Message

FORMAT = "gemini"
_TYPES = ("user", "gemini", "info", "warning", "error")
_CONTEXT = "<session_context>"  # begins the first message of every window
_ACKNOWLEDGED = "Got it. Thanks for the additional context!"  # it follows the summary of a compaction
_OF_THE_SCREEN = ("displayName", "description", "renderOutputAsMarkdown")  # of a call
_ABOUT = ("sessionId", "projectHash", "startTime")  # of a document, what never changes


def is_row(row: Row) -> bool:
    """Return True if only Gemini CLI writes such a row."""
    fields = row.fields
    if isinstance(fields.get("sessionId"), str) and isinstance(fields.get("projectHash"), str):
        return True
    return _is_message(fields) or isinstance(fields.get("$rewindTo"), str) or isinstance(fields.get("$set"), dict)


def is_document(value: object) -> bool:
    """Return True if a document is a session."""
    fields = object_of(value)
    return all(isinstance(fields.get(name), str) for name in _ABOUT[:2]) and isinstance(fields.get("messages"), list)


def is_begun(head: Sequence[Row]) -> bool:
    """Return True if a message is among the rows: a session that is resumed leaves a file without any."""
    return any(_is_message(row.fields) for row in head)


def rows_of(document: object) -> list[bytes]:
    """Return a document as rows that stay the same when it grows: a message, its usage and its calls apart."""
    fields = object_of(document)
    rows: list[Any] = [{name: fields[name] for name in _ABOUT if name in fields}]
    for value in list_of(fields.get("messages")):
        message = object_of(value)
        later = [name for name in ("tokens", "toolCalls") if message.get(name) is not None]
        rows.append({name: member for name, member in message.items() if name not in later} if message else value)
        about = {name: message[name] for name in ("id", "type") if name in message}
        rows += [{**about, name: message[name]} for name in later]
    return [msgspec.json.encode(row) for row in rows]


def extra_rows_of(document: object) -> list[bytes]:
    """Return the other facts of a document: its summary."""
    extra = without(object_of(document), *_ABOUT, "messages", "lastUpdated")
    return [msgspec.json.encode(extra)] if extra else []


def first_model(head: Sequence[Row]) -> str | None:
    """Return the first model in the rows."""
    return first_text(row.fields.get("model") for row in head)


class _Newest(NamedTuple):
    """The newest message of the model: how many of its rows were read, and which of its calls are stored."""

    id: str = ""
    rows: int = 0
    calls: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()


class Gemini:
    """Reads the rows of one session; `agent` is set for the file of a sub-agent."""

    def __init__(self, store_blob: StoreBlob, agent: str = "") -> None:
        self._store_blob = store_blob
        self._agent = agent
        self._rows: list[Row] = []  # of the model's message that may continue
        self._repeated: list[Row] = []  # since the context of the window was written: perhaps the window once more
        self._newest = _Newest()
        self._is_new_chat = False  # the next list of messages has only the context of a new process
        self._summary = ""  # the id of the newest one

    def observe(self, row: Row) -> None:
        """See a row that an earlier import stored: of the newest message, it must be known what is stored."""
        for _ in self.read(parse_row(row.number, row.raw)):
            pass
        for _ in self.finish():
            pass

    def is_boundary(self, row: Row) -> bool:
        """Return True if all messages before this row are complete."""
        held = self._rows or self._repeated
        return not held or (_is_message(row.fields) and not self._repeated and _id(row) != _id(held[0]))

    def read(self, row: Row) -> Iterator[Step]:
        """Yield the steps that this row completes."""
        fields = row.fields
        changes = object_of(fields.get("$set"))
        if changes.keys() == {"lastUpdated"}:
            return
        if isinstance(changes.get("messages"), list):
            yield from self._read_window(row, changes)
        elif not _is_message(fields) and not (self._rows and fields.get("id") == _id(self._rows[0])):
            yield from self.finish()
            yield RawRow(row)
            self._is_new_chat = "projectHash" in fields
            if target := text_of(fields.get("$rewindTo")):
                yield Rollback(row, 1, partial(_begins, target))
        elif self._repeated and not text_of(fields.get("model")):
            self._repeated.append(row)
        else:
            if self._repeated:
                yield from self.finish()
            self._is_new_chat = False
            yield from self._read_message(row)

    def finish(self) -> Iterator[Step]:
        """Yield the messages that might have continued."""
        repeated, self._repeated = self._repeated, []
        for row in repeated:
            yield from self._read_message(row, is_repeated=False)
        rows, self._rows = self._rows, []
        if rows:
            yield from self._read_model(rows)

    def state(self) -> dict[str, Any] | None:
        """Return what is stored of the newest message, and the newest summary."""
        return {"newest": self._newest._asdict(), "new_chat": self._is_new_chat, "summary": self._summary}

    def resume(self, state: dict[str, Any]) -> None:
        """Continue after the newest message that is stored."""
        newest = object_of(state.get("newest"))
        calls, answered = (tuple(map(str, list_of(newest.get(name)))) for name in ("calls", "answered"))
        self._newest = _Newest(str(newest.get("id", "")), int(newest.get("rows", 0)), calls, answered)
        self._is_new_chat = state.get("new_chat") is True
        self._summary = str(state.get("summary", ""))

    # Messages

    def _read_message(self, row: Row, *, is_repeated: bool = True) -> Iterator[Step]:
        kind = row.fields.get("type")
        if self._rows and _id(row) != _id(self._rows[0]):
            yield from self.finish()
        if kind == "gemini" or self._rows:
            self._rows.append(row)
        elif kind != "user":
            yield RawRow(row)
        elif is_repeated and _text(row.fields).startswith(_CONTEXT):
            yield from self.finish()
            self._repeated.append(row)
        else:
            yield from self._read_user(row)

    def _read_model(self, rows: Sequence[Row]) -> Iterator[Step]:
        """Yield a message of the model and the results of its calls; if it is stored, what it lacked."""
        fields: dict[str, Any] = {}
        for row in rows:
            fields |= row.fields
        before = self._newest if self._newest.id == _id(rows[0]) else _Newest(_id(rows[0]))
        calls = [call for call in _calls(fields) if call["id"] not in before.calls]
        if before.rows and not calls:
            yield from (RawRow(row, _without_results(row.fields)) for row in rows)
        else:
            yield Draft(self._assistant(fields, calls, before), tuple(rows))
        answered = list(before.answered)
        for call in list_of(fields.get("toolCalls")):
            about = object_of(call)
            if text_of(about.get("id")) and about.get("result") is not None and about["id"] not in answered:
                answered.append(about["id"])
                yield Draft(self._result(about, before.id), (rows[-1],))
        known = (*before.calls, *(call["id"] for call in calls))
        self._newest = _Newest(before.id, before.rows + len(rows), known, tuple(answered))

    def _assistant(self, fields: dict[str, Any], calls: list[dict[str, Any]], before: _Newest) -> dict[str, Any]:
        """Return a message of the model; if the beginning of it is stored, only its other calls."""
        thoughts = [{"text": _thought(thought), "thought": True} for thought in list_of(fields.get("thoughts"))]
        parts = [part for part in _parts(fields) if not _is_call(part)]
        said = [] if before.rows else [*(thoughts if not any("thought" in part for part in parts) else []), *parts]
        rest = without(fields, "id", "type", "content", "timestamp", "thoughts", "tokens", "model", "toolCalls")
        meta = {
            "format": FORMAT,
            "uuid": before.id,
            "model": fields.get("model"),
            "usage": None if before.rows else _usage(object_of(fields.get("tokens"))),
            "row": rest or None,
        }
        return {
            "role": "assistant",
            "content": gemini_parts([part for part in said if part.get("text") != ""], self._store_blob),
            "tool_calls": calls,
            "client_key": f"{FORMAT}:{before.id}" + (f"#{before.rows}" if before.rows else ""),
            "ts": time_of(fields.get("timestamp")),
            "meta": without(meta),
        }

    def _result(self, call: dict[str, Any], message_id: str) -> dict[str, Any]:
        """Return the result of a call as its record has it, with what was shown on the screen."""
        result = call["result"]
        parts = [object_of(part) for part in list_of(result)]
        responses = [object_of(part.get("functionResponse")) for part in parts if "functionResponse" in part]
        others = [part for part in parts if "functionResponse" not in part]
        split = [split_appended_context(self._output(response)) for response in responses]
        outputs = [{"text": output} for output, _ in split]
        content = gemini_parts([*outputs, *others], self._store_blob) if parts else str(result)
        if added := [context for _, context in split if context]:
            before = [{"type": "text", "text": content}] if isinstance(content, str) else content
            content = before + [{"type": "text", "text": context, "meta": {WRITER: "hook"}} for context in added]
        text = "\n".join(output["text"] for output in outputs)
        about = without(call, "id", "name", "args", "result", "timestamp", *_OF_THE_SCREEN)
        shown = replace_repeated(strip_base64(about, self._store_blob), text)
        return {
            "role": "tool",
            "content": content,
            "tool_call_id": call["id"],
            "client_key": f"{FORMAT}:{message_id}/{call['id']}",
            "ts": time_of(call.get("timestamp")),
            "meta": without({"format": FORMAT, "uuid": message_id, "call": shown or None}),
        }

    def _output(self, response: dict[str, Any]) -> str:
        given = object_of(response.get("response"))
        text = next((given[name] for name in ("output", "error") if isinstance(given.get(name), str)), None)
        return text or msgspec.json.encode(strip_base64(response.get("response"), self._store_blob)).decode()

    def _read_user(self, row: Row) -> Iterator[Step]:
        """Yield the message of a user's row, and the results in it that no record of a call had."""
        fields, parts = row.fields, _parts(row.fields)
        results = [part for part in parts if _answers(part)]
        new = [part for part in results if _answers(part) not in self._newest.answered]
        others = [part for part in parts if not _answers(part)]
        if not new and not others:
            yield RawRow(row, _without_results(fields))
            return
        drafts = [self._result({"id": _answers(part), "result": [part]}, _id(row)) for part in new]
        self._newest = self._newest._replace(answered=(*self._newest.answered, *map(_answers, new)))
        if others:
            drafts.append(self._said(row, others))
        for draft in drafts:
            yield Draft({**draft, "ts": time_of(fields.get("timestamp"))}, (row,))

    def _said(self, row: Row, parts: list[dict[str, Any]]) -> dict[str, Any]:
        content = gemini_parts(split_hook_context(parts), self._store_blob)
        typed = _joined(without_hook_context(list_of(row.fields.get("displayContent"))))
        written = gemini_writer(content, typed, is_agent=bool(self._agent))
        shown = strip_base64(row.fields.get("displayContent"), self._store_blob)
        rest = without(row.fields, "id", "type", "content", "timestamp", "displayContent")
        meta = {"format": FORMAT, "uuid": _id(row), "row": rest or None, "display": shown, **written.meta}
        return {"role": "user", "content": content, "client_key": f"{FORMAT}:{_id(row)}", "meta": without(meta)}

    # The window

    def _read_window(self, row: Row, changes: dict[str, Any]) -> Iterator[Step]:
        """Yield what a list of the messages in the window says: a compaction, or messages that left it."""
        messages = [object_of(message) for message in list_of(changes["messages"])]
        listed = {text_of(message.get("id")) for message in messages}
        if self._repeated and all(_id(repeated) in listed for repeated in self._repeated):
            yield from (RawRow(repeated, _without_content(repeated.fields)) for repeated in self._repeated)
            self._repeated = []
        yield from self.finish()
        is_new, self._is_new_chat = self._is_new_chat, False
        kept = [
            message if is_new and _text(message).startswith(_CONTEXT) else _without_content(message)
            for message in messages
        ]
        summary = _find_summary(messages)
        is_compacted = bool(summary) and not is_new and summary.get("id") != self._summary
        about = {"type": "compacted", "timestamp": changes.get("lastUpdated")} if is_compacted else {}
        yield RawRow(row, {**about, "$set": {**changes, "messages": kept}})
        if is_new:
            return
        is_kept = _kept(messages)
        if is_compacted:
            self._summary = str(summary.get("id"))
            yield Draft(self._summarised(summary), (row,))
            yield Compaction(row, self._summary, is_kept, {})
        else:
            yield Removal(row, partial(_is_gone, is_kept))

    def _summarised(self, summary: dict[str, Any]) -> dict[str, Any]:
        return {
            "role": "user",
            "content": gemini_parts(_parts(summary), self._store_blob),
            "client_key": f"{FORMAT}:{self._summary}",
            "ts": time_of(summary.get("timestamp")),
            "meta": {"format": FORMAT, "uuid": self._summary, "writer": "summary", "foreign_summary": True},
        }


def _kept(messages: Sequence[dict[str, Any]]) -> Callable[[Message], bool]:
    """Return whether a stored message is among those of a window, in which it may have another id."""
    parts = [part for message in messages for part in _parts(message)]
    ids = {text_of(message.get("id")) for message in messages} - {None}
    names = ("functionCall", "functionResponse")
    calls = {text_of(object_of(part.get(name)).get("id")) for part in parts for name in names}
    texts = {_text(message) for message in messages} - {""}

    def is_kept(message: Message) -> bool:
        own = {message.tool_call_id, *(call.id for call in message.tool_calls)} - {None}
        return _uuid(message) in ids or bool(own & calls) or message.text in texts

    return is_kept


def _is_gone(is_kept: Callable[[Message], bool], message: Message) -> bool:
    return not is_kept(message)


def _begins(target: str, message: Message) -> bool:
    """Return True if a message is the one that was rewound to."""
    return message.role != "tool" and _uuid(message) == target


def _find_summary(messages: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the message of a window that is the summary of what was there before: it is acknowledged."""
    for message, following in pairwise(messages):
        is_pair = (message.get("type"), following.get("type")) == ("user", "gemini")
        if is_pair and text_of(message.get("id")) and _text(following) == _ACKNOWLEDGED:
            return message
    return {}


def _uuid(message: Message) -> object:
    meta = message.meta or {}
    return meta.get("uuid") if meta.get("format") == FORMAT else None


def _is_message(fields: dict[str, Any]) -> bool:
    if fields.get("type") not in _TYPES or not text_of(fields.get("id")):
        return False
    return "content" in fields or "toolCalls" in fields or "tokens" in fields


def _id(row: Row) -> str:
    return str(row.fields.get("id"))


def _parts(fields: dict[str, Any]) -> list[dict[str, Any]]:
    content = fields.get("content")
    if isinstance(content, str):
        return [{"text": content}] if content else []
    return [{"text": part} if isinstance(part, str) else object_of(part) for part in list_of(content)]


def _text(fields: dict[str, Any]) -> str:
    return _joined(_parts(fields))


def _joined(parts: Sequence[Any]) -> str:
    texts = (text_of(object_of(part).get("text")) for part in parts if not object_of(part).get("thought"))
    return "\n".join(filter(None, texts))


def _thought(value: object) -> str:
    thought = object_of(value)
    subject, description = (str(thought.get(name) or "") for name in ("subject", "description"))
    return "\n".join(filter(None, (f"**{subject}**" if subject else "", description)))


def _is_call(part: dict[str, Any]) -> bool:
    call = object_of(part.get("functionCall"))
    return bool(text_of(call.get("id")) and text_of(call.get("name")))


def _answers(part: dict[str, Any]) -> str:
    """Return the id of the call that a part answers; "" if it answers none."""
    return text_of(object_of(part.get("functionResponse")).get("id")) or ""


def _calls(fields: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the calls of a message: those recorded when they were done, else those that the model sent."""
    recorded = [object_of(call) for call in list_of(fields.get("toolCalls"))]
    sent = [object_of(part["functionCall"]) for part in _parts(fields) if _is_call(part)]
    calls: dict[str, dict[str, Any]] = {}
    for call in (*recorded, *sent):
        if (call_id := text_of(call.get("id"))) and (name := text_of(call.get("name"))):
            arguments = msgspec.json.encode(call.get("args", {})).decode()
            calls.setdefault(call_id, {"id": call_id, "name": name, "arguments": arguments})
    return list(calls.values())


def _usage(tokens: dict[str, Any]) -> dict[str, Any] | None:
    """Return what the provider reported; thoughts are part of what was sent back."""
    counts = {name: count for name, count in tokens.items() if isinstance(count, int) and not isinstance(count, bool)}
    if not counts.get("input"):
        return None
    return {
        "input_tokens": counts["input"],
        "cached_tokens": counts.get("cached", 0),
        "output_tokens": counts.get("output", 0) + counts.get("thoughts", 0),
        **{name: counts[name] for name in ("thoughts", "tool", "total") if name in counts},
    }


def _without_content(message: dict[str, Any]) -> dict[str, Any]:
    return {name: message[name] for name in ("id", "type", "timestamp") if name in message}


def _without_results(fields: dict[str, Any]) -> dict[str, Any]:
    """Return a row that repeats what is stored, without it."""
    calls = [_answers(part) for part in _parts(fields) if _answers(part)]
    return {**_without_content(fields), **({"repeats": calls} if calls else {})}
