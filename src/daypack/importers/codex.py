"""Transcripts of Codex: rollout files, one JSONL file per session.

    {"timestamp":"…","type":"response_item","payload":{"type":"function_call","call_id":"…",…}}

Items are the messages; `event_msg` rows, which tell the same again for the screen, and all others are kept as events.
Files of 2025 hold the bare items. A compaction is a row among others: what it replaced stays. Turns that were rolled
back stay too, and an event names them.
"""

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from daypack.importers.openai_responses import ITEMS, Items
from daypack.importers.transcript import Keep, Kept, Origin, Rollback, Row, Step, first_text, object_of, text_of
from daypack.types.history import Message

FORMAT = "codex"
_UUID_AT_END = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
# What Codex puts into user messages by itself: no turn begins with it.
_NO_TURN = (
    "<environment_context>",
    "<user_instructions>",
    "<user_shell_command>",
    "<turn_aborted>",
    "<skill>",
    "<subagent_notification>",
    "# AGENTS.md instructions",
)


def is_row(row: Row) -> bool:
    """Say whether a row can only come from a rollout file."""
    fields = row.fields
    wrapped = isinstance(fields.get("type"), str) and isinstance(fields.get("payload"), dict)
    return (
        wrapped or "record_type" in fields or (row.number == 1 and {"id", "timestamp", "instructions"} <= set(fields))
    )


def name_from(path: str, head: Sequence[Row]) -> str:
    """Return the id of the session."""
    for row in head:
        if row.fields.get("type") == "session_meta" and (name := text_of(object_of(row.fields["payload"]).get("id"))):
            return name
    stem = os.path.basename(path).removesuffix(".zst").removesuffix(".jsonl")
    if found := _UUID_AT_END.search(stem):
        return found[0]
    return stem


def model_from(head: Sequence[Row]) -> str | None:
    """Return the first model that is named."""
    return first_text(object_of(row.fields.get("payload")).get("model") for row in head)


def cwd_from(head: Sequence[Row]) -> str | None:
    """Return the first folder that is named."""
    return first_text(object_of(row.fields.get("payload")).get("cwd") for row in head)


class Codex:
    """Reads the rows of one rollout file."""

    def __init__(self, origin: Origin, keep: Keep) -> None:
        self._items = Items(origin, keep, _item)

    def note(self, row: Row) -> None:
        """See a row that was taken in before: nothing of it is needed."""

    def begins(self, row: Row) -> bool:
        """Say whether everything before this row is complete."""
        return self._items.begins(row)

    def read(self, row: Row) -> Iterator[Step]:
        """Yield what is complete with this row."""
        if _item(row):
            yield from self._items.read(row)
            return
        kind, payload = row.fields.get("type"), object_of(row.fields.get("payload"))
        if kind in ("turn_context", "compacted"):
            yield from self._items.finish()
            self._items.model = text_of(payload.get("model")) or self._items.model
        yield Kept(row)
        turns = payload.get("num_turns")
        if kind == "event_msg" and payload.get("type") == "thread_rolled_back" and isinstance(turns, int):
            yield from self._items.finish()
            yield Rollback(row, turns, is_turn)

    def finish(self) -> Iterator[Step]:
        """Yield the message that might have gone on."""
        yield from self._items.finish()


def is_turn(message: Message) -> bool:
    """Say whether a turn begins with a message: somebody wrote it, not Codex."""
    imported = (message.meta or {}).get("format") == FORMAT
    return message.role == "user" and imported and not message.text.lstrip().startswith(_NO_TURN)


def _item(row: Row) -> dict[str, Any]:
    """Return the item of a row: in its payload, or the row itself."""
    fields = row.fields
    if fields.get("type") == "response_item":
        return object_of(fields.get("payload"))
    return fields if fields.get("type") in ITEMS and "payload" not in fields else {}
