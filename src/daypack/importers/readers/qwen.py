"""Read transcripts of Qwen Code: one JSONL file per session, with the content of Google's API.

    {"uuid":"…","parentUuid":"…","sessionId":"…","type":"assistant","provenance":"assistant_output","model":"…",
     "message":{"role":"model","parts":[{"text":"…","thought":true},{"functionCall":{"id":"…","name":"…","args":{…}}}]}}

Rows of the user, the model and tools become messages, all others events. The file of a sub-agent has a row for each
call of the model: consecutive rows of the model become one message there.
"""

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import msgspec

from daypack.importers.readers.content_parts import gemini_parts, strip_base64
from daypack.importers.readers.writers import qwen_writer
from daypack.importers.transcript import (
    Compaction,
    Draft,
    RawRow,
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

FORMAT = "qwen"
_TYPES = ("user", "assistant", "tool_result", "system")
_COMPRESSED, _REWOUND = "chat_compression", "rewind"


def is_row(row: Row) -> bool:
    """Return True if only Qwen Code writes such a row."""
    fields = row.fields
    if fields.get("type") not in _TYPES or "sessionId" not in fields or "uuid" not in fields:
        return False
    return "systemPayload" in fields or "provenance" in fields or "parts" in object_of(fields.get("message"))


def session_id(path: str, head: Sequence[Row]) -> tuple[str, str]:
    """Return the session id, and the agent id if the file is that of a sub-agent."""
    rows = [row.fields for row in head]
    stem = os.path.basename(path).removesuffix(".jsonl")
    session = first_text(fields.get("sessionId") for fields in rows) or stem
    agent = first_text(fields.get("agentId") for fields in rows if fields.get("isSidechain")) or ""
    return session, agent


def sub_agents_folder(path: str) -> str:
    """Return the folder with the sub-agents of a session, given its file."""
    project = os.path.dirname(os.path.dirname(os.path.abspath(path)))
    return os.path.join(project, "subagents", os.path.basename(path).removesuffix(".jsonl"))


def main_file(path: str) -> str:
    """Return where the file of the session is, given that of a sub-agent."""
    folder = os.path.dirname(os.path.abspath(path))
    project = os.path.dirname(os.path.dirname(folder))
    return os.path.join(project, "chats", f"{os.path.basename(folder)}.jsonl")


def first_model(head: Sequence[Row]) -> str | None:
    """Return the first model in the rows."""
    return first_text(row.fields.get("model") for row in head)


def first_cwd(head: Sequence[Row]) -> str | None:
    """Return the first working directory in the rows."""
    return first_text(row.fields.get("cwd") for row in head)


class Qwen:
    """Reads the rows of one file; `agent` is set for the file of a sub-agent."""

    def __init__(self, store_blob: StoreBlob, agent: str = "") -> None:
        self._store_blob = store_blob
        self._agent = agent
        self._rows: list[Row] = []  # of the sub-agent's message that may continue

    def observe(self, row: Row) -> None:
        """See a row that an earlier import stored: later rows do not depend on it."""

    def is_boundary(self, row: Row) -> bool:
        """Return True if all messages before this row are complete."""
        return not self._rows or row.fields.get("type") in ("user", "tool_result")

    def read(self, row: Row) -> Iterator[Step]:
        """Yield the steps that this row completes."""
        fields = row.fields
        kind, parts = fields.get("type"), object_of(fields.get("message")).get("parts")
        if kind not in ("user", "assistant", "tool_result") or not isinstance(parts, list):
            yield RawRow(row)
            yield from self._read_window(row)
        elif kind == "assistant" and self._agent:
            self._rows.append(row)
        elif kind == "assistant":
            yield self._read_assistant([row])
        else:
            yield from self.finish()
            yield from self._read_user(row)

    def finish(self) -> Iterator[Step]:
        """Yield the message that might have continued."""
        rows, self._rows = self._rows, []
        if rows:
            yield self._read_assistant(rows)

    def state(self) -> dict[str, Any] | None:
        """Return nothing: later rows do not depend on earlier ones."""
        return {}

    def resume(self, state: dict[str, Any]) -> None:
        """Continue: later rows do not depend on earlier ones."""

    def _read_assistant(self, rows: Sequence[Row]) -> Draft:
        parts = [object_of(part) for row in rows for part in _parts(row)]
        calls = [part for part in parts if _is_call(part)]
        last = rows[-1].fields
        meta = _meta(rows[0]) | {"model": last.get("model"), "usage": last.get("usageMetadata")}
        if len(rows) > 1:
            meta["rows"] = [_id(row) for row in rows]
        draft = {
            "role": "assistant",
            "content": gemini_parts([part for part in parts if not _is_call(part)], self._store_blob),
            "tool_calls": [_call(part) for part in calls],
            "client_key": f"{FORMAT}:{_id(rows[0])}",
            "ts": time_of(rows[0].fields.get("timestamp")),
            "meta": without(meta),
        }
        return Draft(draft, tuple(rows), self._read_assistant)

    def _read_user(self, row: Row) -> Iterator[Draft]:
        """Yield one message for each result of a tool, and one for what else a row has."""
        fields = row.fields
        parts = [object_of(part) for part in _parts(row)]
        results = [part for part in parts if _is_result(part)]
        others = [part for part in parts if not _is_result(part)]
        meta = _meta(row)
        drafts: list[dict[str, Any]] = []
        for part in results:
            result = object_of(part["functionResponse"])
            about = without(result, "id", "response") | without(part, "functionResponse")
            facts = {**meta, "result": strip_base64(about, self._store_blob), **_extra(fields, self._store_blob)}
            content = self._output(result)
            drafts.append({"role": "tool", "content": content, "tool_call_id": result["id"], "meta": facts})
        if others or not results:
            content = gemini_parts(others, self._store_blob)
            written = qwen_writer(fields, content)
            extra = {} if results else _extra(fields, self._store_blob)
            drafts.append({"role": "user", "content": content, "meta": {**meta, **extra, **written.meta}})
        for number, draft in enumerate(drafts):
            draft["meta"] = without(draft["meta"])
            draft["ts"] = time_of(fields.get("timestamp"))
            draft["client_key"] = f"{FORMAT}:{_id(row)}" + (f"#{number + 1}" if number else "")
            yield Draft(draft, (row,))

    def _output(self, result: dict[str, Any]) -> str | list[dict[str, Any]]:
        """Return the output of a tool: its text, or its JSON, with the images and files beside it."""
        response = object_of(result.get("response"))
        text = next((response[name] for name in ("output", "error") if isinstance(response.get(name), str)), None)
        if text is None:
            text = msgspec.json.encode(strip_base64(result.get("response"), self._store_blob)).decode()
        beside = list_of(result.get("parts"))
        return gemini_parts([{"text": text}, *beside], self._store_blob) if beside else text

    def _read_window(self, row: Row) -> Iterator[Step]:
        subtype = row.fields.get("subtype")
        if subtype not in (_COMPRESSED, _REWOUND):
            return
        yield from self.finish()
        if subtype == _COMPRESSED:
            yield _compaction(row)
        else:
            # The parent of a rewind is the row before the turn that was rewound to.
            yield Rollback(row, 1, partial(_begins_after, row.fields.get("parentUuid")))


def _begins_after(parent: object, message: Message) -> bool:
    row = object_of((message.meta or {}).get("row"))
    return message.role == "user" and (message.meta or {}).get("format") == FORMAT and row.get("parentUuid") == parent


def _compaction(row: Row) -> Compaction:
    """Return a compaction: the compressed history repeats the messages that stay."""
    payload = object_of(row.fields.get("systemPayload"))
    about = object_of(payload.get("info"))
    contents = [list_of(object_of(content).get("parts")) for content in list_of(payload.get("compressedHistory"))]
    parts = [object_of(part) for content in contents for part in content]
    ids = {object_of(part.get(name)).get("id") for part in parts for name in ("functionCall", "functionResponse")}
    texts = {"\n".join(str(object_of(part).get("text", "")) for part in content) for content in contents}

    def is_kept(message: Message) -> bool:
        calls = {message.tool_call_id, *(call.id for call in message.tool_calls)} - {None}
        return bool(calls & ids) or (bool(message.text) and message.text in texts)

    tokens = {"before_tokens": about.get("originalTokenCount"), "after_tokens": about.get("newTokenCount")}
    return Compaction(row, _id(row), is_kept, without({"trigger": text_of(about.get("triggerReason")), **tokens}))


def _parts(row: Row) -> list[Any]:
    return list_of(object_of(row.fields.get("message")).get("parts"))


def _id(row: Row) -> str:
    return text_of(row.fields.get("uuid")) or f"line-{row.number}"


def _is_call(part: dict[str, Any]) -> bool:
    call = object_of(part.get("functionCall"))
    return bool(text_of(call.get("id")) and text_of(call.get("name")))


def _is_result(part: dict[str, Any]) -> bool:
    return bool(text_of(object_of(part.get("functionResponse")).get("id")))


def _call(part: dict[str, Any]) -> dict[str, Any]:
    call = object_of(part["functionCall"])
    arguments = msgspec.json.encode(call.get("args", {})).decode()
    return {**without(part, "functionCall"), **without(call, "args"), "arguments": arguments}


def _meta(row: Row) -> dict[str, Any]:
    rest = without(
        row.fields, "type", "message", "uuid", "timestamp", "model", "usageMetadata", "toolCallResult", "systemPayload"
    )
    return {"format": FORMAT, "uuid": row.fields.get("uuid"), "row": rest or None}


def _extra(fields: dict[str, Any], store_blob: StoreBlob) -> dict[str, Any]:
    """Return what a row says beside its message: the result for the screen, the text as the user typed it."""
    names = {"tool_call_result": "toolCallResult", "payload": "systemPayload"}
    return {name: strip_base64(fields[key], store_blob) for name, key in names.items() if fields.get(key) is not None}
