"""Read transcripts of Claude Code: one JSONL file per session, one row per content block.

    {"type":"assistant","uuid":"…","parentUuid":"…","sessionId":"…","timestamp":"…","message":{"id":"msg_…","content":[…]}}

Rows with the same message id become one message. Tool results, which are in user rows, become messages of their own
after the message with their calls, even if they occur between its rows. Rows of sub-agents belong to children. Messages
before a compaction are imported too; the summary after it is marked. Messages keep the order of the file: rows with the
same parent are mostly parallel calls, so no branch is left out.
"""

import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import msgspec

from daypack.history.layout import safe_name
from daypack.importers.readers.content_parts import claude_parts, replace_repeated, strip_base64
from daypack.importers.readers.writers import Written, claude_writer, mark_parts
from daypack.importers.transcript import (
    Compaction,
    Draft,
    RawRow,
    RequestRow,
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
from daypack.turn.evidence.observed.blocks import CALL_POSITIONS, CONTENT_FORM
from daypack.types.authority import WRITER
from daypack.types.history import Message

FORMAT = "claude-code"
REQUEST_ROWS = ("api-request-shape", "api-request-blob", "api-request")  # read by claude_requests.py
_MAX_RESULT_BYTES = 1024  # larger structured results become events of their own
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SYNTHETIC = "<synthetic>"  # the model of messages that the program wrote, about errors and interruptions
_SIDECHAIN = re.compile(rb'"isSidechain"\s*:\s*true')


def is_row(row: Row) -> bool:
    """Return True if only Claude Code writes such a row."""
    fields = row.fields
    if not isinstance(fields.get("type"), str):
        return False
    return "sessionId" in fields or "parentUuid" in fields or "leafUuid" in fields or "isSnapshotUpdate" in fields


def session_id(path: str, head: Sequence[Row]) -> tuple[str, str]:
    """Return the session id, and the agent id if the file is that of a sub-agent."""
    stem = os.path.basename(path).removesuffix(".jsonl")
    rows = [row.fields for row in head]
    session = first_text(fields.get("sessionId") for fields in rows)
    agent = first_text(fields.get("agentId") for fields in rows if fields.get("isSidechain"))
    if agent and stem == f"agent-{agent}":
        folder = session_folder(path)
        return os.path.basename(folder) if folder else session or stem, agent
    return (stem if _UUID.fullmatch(stem) or not session else session), ""


def session_folder(path: str) -> str | None:
    """Return the folder of the session that the file of a sub-agent is in, at any depth below `subagents`."""
    folder = os.path.dirname(os.path.abspath(path))
    while os.path.basename(folder) not in ("subagents", ""):
        folder = os.path.dirname(folder)
    return os.path.dirname(folder) if os.path.basename(folder) else None


def first_model(head: Sequence[Row]) -> str | None:
    """Return the first model in the rows."""
    models = (object_of(row.fields.get("message")).get("model") for row in head)
    return first_text(model for model in models if model != _SYNTHETIC)


def first_cwd(head: Sequence[Row]) -> str | None:
    """Return the first working directory in the rows."""
    return first_text(row.fields.get("cwd") for row in head)


class _Group:
    """The rows of one assistant message, and the tool results between them."""

    def __init__(self, id: str) -> None:  # noqa: A002 — the id of a message
        self.id = id
        self.rows: list[Row] = []
        self.results: list[Draft] = []


class ClaudeCode:
    """Reads the rows of one file; `agent` is set for the file of a sub-agent."""

    def __init__(self, store_blob: StoreBlob, agent: str = "") -> None:
        self._store_blob = store_blob
        self._agent = agent
        self._open: dict[str, _Group] = {}  # incomplete messages by child; "" is the session itself
        self._threads: dict[str, str] = {}  # for sub-agent rows without an agent id: uuid -> child

    def observe(self, row: Row) -> None:
        """See a row that an earlier import stored: later rows of a sub-agent may refer to it."""
        if not self._agent and _SIDECHAIN.search(row.raw):
            self._child_of(parse_row(row.number, row.raw).fields)

    def is_boundary(self, row: Row) -> bool:
        """Return True if all messages before this row are complete."""
        group, fields = self._open.get(""), row.fields
        if group is None:
            return True
        if fields.get("isSidechain") and not self._agent:
            return False
        if fields.get("type") == "assistant":
            return _message_id(fields) != group.id
        return fields.get("type") == "user" and not _only_results(fields)

    def read(self, row: Row) -> Iterator[Step]:
        """Yield the steps that this row completes."""
        fields = row.fields
        if fields.get("type") in REQUEST_ROWS:
            yield RequestRow(row)
            return
        message = object_of(fields.get("message"))
        if fields.get("type") not in ("assistant", "user") or not isinstance(message.get("content"), str | list):
            yield RawRow(row)
            if fields.get("subtype") == "compact_boundary" and self._is_own(fields):
                yield from self.finish()
                yield _compaction(row)
            return
        child = self._child_of(fields)
        group = self._open.get(child)
        if fields["type"] == "assistant":
            if group and group.id != _message_id(fields):
                yield from self._close(child)
            self._open.setdefault(child, _Group(_message_id(fields))).rows.append(row)
            return
        drafts, extra = self._read_user(row, child)
        if group and _only_results(fields):
            group.results += drafts
        else:
            yield from self._close(child)
            yield from drafts
        yield from extra

    def finish(self) -> Iterator[Step]:
        """Yield the messages that might have continued."""
        for child in list(self._open):
            yield from self._close(child)

    def state(self) -> dict[str, Any] | None:
        """Return nothing, or None after rows of sub-agents: later ones may refer to any of them."""
        return None if self._threads else {}

    def resume(self, state: dict[str, Any]) -> None:
        """Continue: there were no rows of sub-agents."""

    def _close(self, child: str) -> Iterator[Step]:
        group = self._open.pop(child, None)
        if group:
            yield self._read_assistant(group.rows, child)
            yield from group.results

    def _is_own(self, fields: dict[str, Any]) -> bool:
        return bool(self._agent) or not fields.get("isSidechain")

    def _child_of(self, fields: dict[str, Any]) -> str:
        if self._is_own(fields):
            return ""
        uuid = str(fields.get("uuid") or "")
        name = text_of(fields.get("agentId")) or self._threads.get(str(fields.get("parentUuid"))) or uuid[:8]
        self._threads[uuid] = name
        return safe_name(name)

    # Messages

    def _read_assistant(self, rows: Sequence[Row], child: str) -> Draft:
        first, last = rows[0].fields, rows[-1].fields
        blocks = [block for row in rows for block in list_of(_content(row.fields))]
        calls = [object_of(block) for block in blocks if _is_call(block)]
        message = object_of(last["message"])  # the last row has the final usage
        meta = _meta(rows[0]) | {
            "message_id": message.get("id"),
            "model": message.get("model"),
            "usage": message.get("usage"),
            "message": without(message, "id", "type", "role", "content", "model", "usage") or None,
        }
        places = [number for number, block in enumerate(blocks) if _is_call(block)]
        if places and places[0] < len(blocks) - len(calls):
            meta[CALL_POSITIONS] = places
        if message.get("model") == _SYNTHETIC:
            meta[WRITER] = "harness"
        if len(rows) > 1:
            meta["rows"] = [_id(row) for row in rows]
            meta["row_changes"] = [_differing(row.fields, first) for row in rows[1:]]
        draft = {
            "role": "assistant",
            "content": claude_parts([block for block in blocks if not _is_call(block)], self._store_blob),
            "tool_calls": [_call(call) for call in calls],
            "client_key": f"{FORMAT}:{_id(rows[0])}",
            "ts": time_of(first.get("timestamp")),
            "meta": without(meta),
        }
        return Draft(draft, tuple(rows), partial(self._read_assistant, child=child), child)

    def _read_user(self, row: Row, child: str) -> tuple[list[Draft], list[RawRow]]:
        fields = row.fields
        content = _content(fields)
        results = [object_of(block) for block in list_of(content) if _is_result(block)]
        others = [block for block in list_of(content) if not _is_result(block)]
        drafts: list[dict[str, Any]] = []
        extra: list[RawRow] = []
        meta = _meta(row)
        if fields.get("isCompactSummary"):
            meta["foreign_summary"] = True  # it summarizes the messages before it, which are imported too
        for block in results:
            output = claude_parts(block.get("content"), self._store_blob)
            result_meta = {**meta, "result": without(block, "type", "tool_use_id", "content") or None}
            result_meta[CONTENT_FORM] = _content_form(block, output)
            if block is results[0] and fields.get("toolUseResult") is not None:
                structured = self._structured_result(fields["toolUseResult"], output)
                small = len(msgspec.json.encode(structured)) <= _MAX_RESULT_BYTES
                result_meta["tool_use_result"] = structured if small else None
                if not small:
                    extra.append(RawRow(row, {"uuid": fields.get("uuid"), "toolUseResult": structured}))
            drafts.append(
                {"role": "tool", "content": output, "tool_call_id": block["tool_use_id"], "meta": result_meta}
            )
        if others or not results:
            text = content if isinstance(content, str) else claude_parts(others, self._store_blob)
            written = claude_writer(fields, text if isinstance(text, str) else None)
            marked = mark_parts(text) if not written.writer else Written()
            drafts.append({"role": "user", "content": text, "meta": {**meta, **written.meta, **marked.meta}})
        for number, draft in enumerate(drafts):
            draft["meta"] = without(draft["meta"])
            draft["ts"] = time_of(fields.get("timestamp"))
            draft["client_key"] = f"{FORMAT}:{_id(row)}" + (f"#{number + 1}" if number else "")
        return [Draft(draft, (row,), child=child) for draft in drafts], extra

    def _structured_result(self, value: object, output: object) -> Any:  # noqa: ANN401 — a JSON value
        """Return the result for the program, with references where it repeats the output for the model."""
        texts = [output] if isinstance(output, str) else [object_of(part).get("text") for part in list_of(output)]
        return strip_base64(
            replace_repeated(value, "\n".join(text for text in texts if isinstance(text, str))), self._store_blob
        )


def _content(fields: dict[str, Any]) -> object:
    content = object_of(fields.get("message")).get("content")
    if fields.get("type") == "assistant" and isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content


def _message_id(fields: dict[str, Any]) -> str:
    return str(object_of(fields.get("message")).get("id") or fields.get("uuid"))


def _id(row: Row) -> str:
    return text_of(row.fields.get("uuid")) or f"line-{row.number}"


def _is_call(block: object) -> bool:
    fields = object_of(block)
    return fields.get("type") == "tool_use" and bool(text_of(fields.get("id")) and text_of(fields.get("name")))


def _is_result(block: object) -> bool:
    fields = object_of(block)
    return fields.get("type") == "tool_result" and bool(text_of(fields.get("tool_use_id")))


def _content_form(block: dict[str, Any], output: object) -> str | None:
    """Return what the stored output of a result does not show: that its content was a list, or missing."""
    if "content" not in block:
        return "none"
    return "list" if isinstance(block["content"], list) and isinstance(output, str) else None


def _compaction(row: Row) -> Compaction:
    about = object_of(row.fields.get("compactMetadata"))
    preserved = object_of(about.get("preservedMessages"))
    kept = frozenset(map(str, list_of(preserved.get("allUuids")) or list_of(preserved.get("uuids"))))

    def is_kept(message: Message) -> bool:
        meta = message.meta or {}
        return not kept.isdisjoint([str(meta.get("uuid")), *map(str, list_of(meta.get("rows")))])

    tokens = {"before_tokens": about.get("preTokens"), "after_tokens": about.get("postTokens")}
    return Compaction(row, _id(row), is_kept, without({"trigger": text_of(about.get("trigger")), **tokens}))


def _only_results(fields: dict[str, Any]) -> bool:
    blocks = list_of(_content(fields))
    return bool(blocks) and all(map(_is_result, blocks))


def _call(block: dict[str, Any]) -> dict[str, Any]:
    arguments = msgspec.json.encode(block.get("input", {})).decode()
    return {**without(block, "type", "input"), "arguments": arguments}


def _meta(row: Row) -> dict[str, Any]:
    rest = without(row.fields, "type", "message", "uuid", "timestamp", "toolUseResult")
    return {"format": FORMAT, "uuid": row.fields.get("uuid"), "row": rest or None}


def _differing(fields: dict[str, Any], first: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a later row of a message that differ from its first row."""
    return {name: value for name, value in fields.items() if name != "message" and value != first.get(name)}
