"""Read rollout files of Codex, one JSONL file per session.

    {"timestamp":"…","type":"response_item","payload":{"type":"function_call","call_id":"…",…}}

Response items become messages; all other rows become events, including `event_msg` rows, which repeat the messages for
the screen. Files of 2025 contain the bare items. Messages before a compaction are imported too. Turns that were rolled
back stay in history, and an event lists them.
"""

import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from daypack.importers.readers.codex_threads import thread_of
from daypack.importers.readers.openai_responses import ITEMS, ResponseItems
from daypack.importers.readers.writers import codex_writers, tag_writer
from daypack.importers.transcript import (
    Compaction,
    Origin,
    RawRow,
    Rollback,
    Row,
    Step,
    StoreBlob,
    first_text,
    list_of,
    object_of,
    parse_row,
    text_of,
)
from daypack.types.authority import users_part
from daypack.types.history import Message

FORMAT = "codex"
_UUID_AT_END = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


def is_row(row: Row) -> bool:
    """Return True if only rollout files contain such a row."""
    fields = row.fields
    wrapped = isinstance(fields.get("type"), str) and isinstance(fields.get("payload"), dict)
    return (
        wrapped or "record_type" in fields or (row.number == 1 and {"id", "timestamp", "instructions"} <= set(fields))
    )


def session_id(path: str, head: Sequence[Row]) -> tuple[str, str]:
    """Return the session id, and the id of the thread if the file is that of a sub-agent."""
    for row in head:
        if row.fields.get("type") == "session_meta" and (thread := thread_of(object_of(row.fields["payload"]))):
            return (thread.parent, thread.id) if thread.parent else (thread.id, "")
    stem = os.path.basename(path).removesuffix(".zst").removesuffix(".jsonl")
    uuid = _UUID_AT_END.search(stem)
    return (uuid[0] if uuid else stem), ""


def first_model(head: Sequence[Row]) -> str | None:
    """Return the first model in the rows."""
    return first_text(object_of(row.fields.get("payload")).get("model") for row in head)


def first_cwd(head: Sequence[Row]) -> str | None:
    """Return the first working directory in the rows."""
    return first_text(object_of(row.fields.get("payload")).get("cwd") for row in head)


class Codex:
    """Reads the rows of one rollout file; `agent` is set for the file of a sub-agent."""

    def __init__(self, origin: Origin, store_blob: StoreBlob, agent: str = "") -> None:
        writers = partial(codex_writers, user="agent" if agent else None)
        self._items = ResponseItems(origin, store_blob, _item, writers)

    def observe(self, row: Row) -> None:
        """See a row that an earlier import stored: it may name the model of later rows."""
        if b'"turn_context"' in row.raw:
            self._note_model(parse_row(row.number, row.raw))

    def is_boundary(self, row: Row) -> bool:
        """Return True if all messages before this row are complete."""
        return self._items.is_boundary(row)

    def read(self, row: Row) -> Iterator[Step]:
        """Yield the steps that this row completes."""
        if _item(row):
            yield from self._items.read(row)
            return
        kind, payload = row.fields.get("type"), object_of(row.fields.get("payload"))
        if kind == "compacted":  # the model's summary is the message before it
            yield from self._items.finish_before_summary(text_of(payload.get("message")) or "")
        if kind in ("turn_context", "compacted"):
            yield from self._items.finish()
            self._note_model(row)
        yield RawRow(row)
        if kind == "compacted":
            yield _compaction(row, payload)
        turns = payload.get("num_turns")
        if kind == "event_msg" and payload.get("type") == "thread_rolled_back" and isinstance(turns, int):
            yield from self._items.finish()
            yield Rollback(row, turns, is_turn)

    def finish(self) -> Iterator[Step]:
        """Yield the message that might have continued."""
        yield from self._items.finish()

    def state(self) -> dict[str, Any] | None:
        """Return the model of later rows."""
        return {"model": self._items.model}

    def resume(self, state: dict[str, Any]) -> None:
        """Continue with the model of earlier rows."""
        self._items.model = text_of(state.get("model"))

    def _note_model(self, row: Row) -> None:
        payload = object_of(row.fields.get("payload"))
        if row.fields.get("type") in ("turn_context", "compacted"):
            self._items.model = text_of(payload.get("model")) or self._items.model


def is_turn(message: Message) -> bool:
    """Return True if a message starts a turn: the user wrote it, not Codex."""
    if message.role != "user" or (message.meta or {}).get("format") != FORMAT:
        return False
    part = users_part(message)
    return part is not None and tag_writer(part.text).writer is None  # imports of earlier versions have no marks


def _compaction(row: Row, payload: dict[str, Any]) -> Compaction:
    """Return a compaction: the items that replace the history repeat the messages of the user that stay."""
    items = [object_of(item) for item in list_of(payload.get("replacement_history"))]
    repeated = [item for item in items if item.get("type") == "message"]
    ids = frozenset(item["id"] for item in repeated if text_of(item.get("id")))
    texts = frozenset(map(_text, repeated)) if not ids else frozenset[str]()  # of versions that recorded no ids

    def is_kept(message: Message) -> bool:
        if ids:
            return (message.meta or {}).get("id") in ids
        return is_turn(message) and message.text in texts

    return Compaction(row, text_of(payload.get("window_id")) or f"line-{row.number}", is_kept, {})


def _text(item: dict[str, Any]) -> str:
    return "\n".join(str(object_of(part).get("text", "")) for part in list_of(item.get("content")))


def _item(row: Row) -> dict[str, Any]:
    """Return the item of a row: its payload, or the row itself."""
    fields = row.fields
    if fields.get("type") == "response_item":
        return object_of(fields.get("payload"))
    return fields if fields.get("type") in ITEMS and "payload" not in fields else {}
