"""Read the messages of opencode: a row per message, with its parts.

    {"info":{"id":"msg_…","sessionID":"ses_…","role":"assistant","modelID":"…","tokens":{…},"time":{…}},
     "parts":[{"id":"prt_…","type":"text","text":"…"},{"type":"tool","callID":"…","tool":"bash","state":{…}}]}

A message of the assistant is one call of the model: its text, its reasoning and its tool calls, with their results.
Keys come from the ids of opencode, so that a message has the same one wherever it is read.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import msgspec

from daypack.importers.readers.content_parts import openai_parts, plain_or_parts, replace_repeated, strip_base64
from daypack.importers.transcript import (
    Compaction,
    Draft,
    RawRow,
    Row,
    Step,
    StoreBlob,
    list_of,
    object_of,
    parse_row,
    text_of,
    time_of,
    without,
)
from daypack.types.authority import WRITER, Writer
from daypack.types.history import Message

FORMAT = "opencode"
INTERRUPTED = "[Tool execution was interrupted]"  # what opencode sends for a call that did not end
_PLAIN_FILES = ("text/plain", "application/x-directory")  # their content is a text part beside them
_COMPACTION_TEXT = "What did we do so far?"  # what opencode sends in place of a request to compact
_HEAD_ROWS = 20
_RESULT = "#"  # between the keys of a message and of a result


def is_row(row: Row) -> bool:
    """Return True if a row is a message of opencode with its parts."""
    return isinstance(row.fields.get("parts"), list) and text_of(_info(row).get("id")) is not None


def message_id(client_key: str | None) -> str:
    """Return the id of the message of opencode that a key comes from; "" for any other key."""
    name, colon, rest = (client_key or "").partition(":")
    return rest.partition(_RESULT)[0] if colon and name == FORMAT else ""


def call_id(client_key: str | None) -> str:
    """Return the id of the call whose result has this key; "" for the key of a message."""
    return (client_key or "").partition(_RESULT)[2]


def first_model(rows: Sequence[bytes]) -> str | None:
    """Return the first model in the rows of a session."""
    for number, raw in enumerate(rows[:_HEAD_ROWS], 1):
        info = _info(parse_row(number, raw))
        if model := text_of(info.get("modelID")) or text_of(object_of(info.get("model")).get("modelID")):
            return model
    return None


class OpenCode:
    """Reads the rows of one session; `agent` is set for the session of a sub-agent."""

    def __init__(self, store_blob: StoreBlob, agent: str = "") -> None:
        self._store_blob = store_blob
        self._agent = agent
        self._tails: dict[str, str] = {}  # request to compact -> the first message that stays in the window

    def observe(self, row: Row) -> None:
        """See a row that an earlier import stored: a request to compact says what its summary keeps."""
        if b'"compaction"' in row.raw:
            self._note_tail(parse_row(row.number, row.raw))

    def is_boundary(self, row: Row) -> bool:  # noqa: ARG002 — required by RowReader
        """Return True: no message spans several rows."""
        return True

    def read(self, row: Row) -> Iterator[Step]:
        """Yield the messages of a row, and the compaction that it completes."""
        role = _info(row).get("role") if is_row(row) else None
        drafts = list(self._read_user(row) if role == "user" else self._read_assistant(row) if role else ())
        if not drafts:
            yield RawRow(row)
            return
        yield from drafts
        info = _info(row)
        if role == "assistant" and info.get("summary") is True and info.get("finish") and not info.get("error"):
            first = self._tails.get(str(info.get("parentID")), "")
            yield Compaction(row, str(info["id"]), partial(_is_from, first), {"trigger": "auto"})

    def finish(self) -> Iterator[Step]:
        """Yield nothing: no row is held back."""
        yield from ()

    def state(self) -> dict[str, Any] | None:
        """Return which messages the requests to compact keep."""
        return {"tails": self._tails}

    def resume(self, state: dict[str, Any]) -> None:
        """Continue after the rows that an earlier import stored."""
        self._tails = dict(object_of(state.get("tails")))

    def _note_tail(self, row: Row) -> None:
        for part in _parts(row):
            if part.get("type") == "compaction":
                self._tails[str(_info(row).get("id"))] = text_of(part.get("tail_start_id")) or ""

    def _read_user(self, row: Row) -> Iterator[Draft]:
        self._note_tail(row)
        content: list[dict[str, Any]] = []
        beside: list[dict[str, Any]] = []
        for part in _parts(row):
            kind = part.get("type")
            text = part.get("text")
            if kind == "text" and isinstance(text, str) and text and not part.get("ignored"):
                content.append(_written(text, "harness" if part.get("synthetic") else None))
            elif kind == "compaction":
                content.append(_written(_COMPACTION_TEXT, "harness"))
            elif kind == "file" and part.get("mime") not in _PLAIN_FILES:
                content += self._file(part)
            elif kind != "text":
                beside.append(strip_base64(without(part, "id", "sessionID", "messageID"), self._store_blob))
        if not content:
            return
        writers = {object_of(part.get("meta")).get(WRITER) for part in content}
        meta = _meta(row) | ({"parts": beside} if beside else {})
        writer = writers.pop() if len(writers) == 1 else None
        if writer or self._agent:
            meta[WRITER] = writer or "agent"
            content = [without(part, "meta") for part in content]
        yield _draft(row, {"role": "user", "content": plain_or_parts(content), "meta": meta})

    def _read_assistant(self, row: Row) -> Iterator[Draft]:
        content: list[dict[str, Any]] = []
        calls: list[dict[str, Any]] = []
        results: list[dict[str, Any]] = []
        for part in _parts(row):
            kind, text = part.get("type"), part.get("text")
            if kind == "text" and isinstance(text, str) and text:
                content.append({"type": "text", "text": text})
            elif kind == "reasoning" and isinstance(text, str):
                content += self._thinking(part, text)
            elif kind == "file":
                content += self._file(part)
            elif kind == "tool" and text_of(part.get("callID")) and text_of(part.get("tool")):
                arguments = msgspec.json.encode(object_of(_state(part).get("input"))).decode()
                calls.append({"id": part["callID"], "name": part["tool"], "arguments": arguments})
                results.append(self._result(part))
        if not content and not calls:
            return
        info = _info(row)
        meta = _meta(row) | without({"model": info.get("modelID"), "usage": info.get("tokens")})
        yield _draft(row, {"role": "assistant", "content": plain_or_parts(content), "tool_calls": calls, "meta": meta})
        for result in results:
            yield _draft(row, result, f"{_RESULT}{result['tool_call_id']}")

    def _thinking(self, part: dict[str, Any], text: str) -> Iterator[dict[str, Any]]:
        """Yield the reasoning, with the signatures that its provider wants back."""
        about = object_of(part.get("metadata"))
        signature = text_of(object_of(about.get("anthropic")).get("signature"))
        if text or about:
            meta = {"meta": {"metadata": about}} if about else {}
            yield {"type": "thinking", "text": text, **without({"signature": signature}), **meta}

    def _file(self, part: dict[str, Any]) -> list[dict[str, Any]]:
        """Return an image or a file as a part, its data as a blob."""
        kind = "image_url" if str(part.get("mime")).startswith("image/") else "file"
        key = "image_url" if kind == "image_url" else "file_data"
        block = {"type": kind, key: part.get("url"), **without({"filename": part.get("filename")})}
        content = openai_parts([block], self._store_blob)
        return [{"type": "text", "text": content}] if isinstance(content, str) else content

    def _result(self, part: dict[str, Any]) -> dict[str, Any]:
        state = _state(part)
        status = state.get("status")
        output = state.get("output") if status == "completed" else state.get("error")
        text = output if isinstance(output, str) else INTERRUPTED if status in ("pending", "running") else ""
        attached = [file for each in list_of(state.get("attachments")) for file in self._file(object_of(each))]
        content = [{"type": "text", "text": text}, *attached] if attached else text
        about = strip_base64(replace_repeated(object_of(state.get("metadata")), text), self._store_blob)
        tool = without({"status": status, "title": state.get("title"), "metadata": about or None})
        return {"role": "tool", "content": content, "tool_call_id": part["callID"], "meta": {"tool": tool}}


def _draft(row: Row, message: dict[str, Any], suffix: str = "") -> Draft:
    info = _info(row)
    meta = {"format": FORMAT, "id": info.get("id"), **message.pop("meta")}
    at = time_of(object_of(info.get("time")).get("created"))
    return Draft({**message, "client_key": f"{FORMAT}:{info['id']}{suffix}", "ts": at, "meta": meta}, (row,))


def _meta(row: Row) -> dict[str, Any]:
    """Return what a row says of its message beside its content; what opencode adds later is left out."""
    left = ("id", "role", "time", "sessionID", "modelID", "tokens", "path")
    return {
        "row": {name: value for name, value in without(_info(row), *left).items() if name != "summary" or value is True}
    }


def _written(text: str, writer: Writer | None) -> dict[str, Any]:
    return {"type": "text", "text": text, **({"meta": {WRITER: writer}} if writer else {})}


def _is_from(first: str, message: Message) -> bool:
    """Return True for a message that the summary leaves in the window: ids of opencode ascend."""
    return bool(first) and str((message.meta or {}).get("id", "")) >= first


def _info(row: Row) -> dict[str, Any]:
    return object_of(row.fields.get("info"))


def _parts(row: Row) -> list[dict[str, Any]]:
    return [object_of(part) for part in list_of(row.fields.get("parts"))]


def _state(part: dict[str, Any]) -> dict[str, Any]:
    return object_of(part.get("state"))
