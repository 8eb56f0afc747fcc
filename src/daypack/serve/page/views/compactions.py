"""The compactions of a session: what left the window, CONTEXT.md before and after, records, losses; and undo.

Those of other programs are listed too: what left the window is known of them, and often the summary in its place.
"""

import difflib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

import msgspec
from msgspec import Struct

from daypack.derived.records import COMPACTED, UNDONE, document, load, words_of
from daypack.derived.template import render
from daypack.errors import DaypackError, SourceMissing
from daypack.importers.import_events import COMPACTED as IMPORTED
from daypack.serve.page.views.asked import Asked
from daypack.serve.page.views.opened import OpenedHome
from daypack.session import Session
from daypack.session.shown import shown
from daypack.turn.evidence.observed.known import Compacted, is_imported, read_row
from daypack.turn.evidence.words import LOSSES, TRIGGERS
from daypack.types.compaction import Compaction, Loss, Records
from daypack.types.history import Event
from daypack.types.records import Decision, ErrorRecord, Fact, SwapRecord, Todo
from daypack.types.source import Messages

_ROWS = b'compact_boundary"', b'compacted"'  # in the lines of what other programs compacted
_SUMMARY_AMONG = 8  # messages after a compaction, of which one may be the summary
_FOREIGN_TRIGGERS = {"auto": "the window was filling up", "manual": "requested"}


class _Own(Struct, frozen=True):
    """A compaction of daypack, the records before it, and whether it was undone."""

    compaction: Compaction
    before: Records | None
    undone: bool


class _Foreign(Struct, frozen=True):
    """A compaction of another program: the messages up to `through` left its window, since `start` with this one."""

    compacted: Compacted
    start: int | None = None
    through: int | None = None
    kept: tuple[int, ...] = ()
    summary: str | None = None


def list_compactions(home: OpenedHome, asked: Asked) -> dict[str, Any]:
    """Return all compactions, the newest first; undone ones too."""
    with home.session(asked.text("agent"), asked.text("session")) as session:
        rows = [*map(_own_row, _read_own(session)), *map(_foreign_row, _read_foreign(session))]
        rows.sort(key=lambda row: (row["at"], _number(row["id"])), reverse=True)
        return {"compactions": [shown(session.history, row) for row in rows]}


def show_compaction(home: OpenedHome, asked: Asked) -> dict[str, Any]:
    """Return one compaction with its documents, records and losses."""
    name = asked.text("id")
    with home.session(asked.text("agent"), asked.text("session")) as session:
        for own in _read_own(session):
            if own.compaction.id == name:
                return shown(session.history, _describe_own(session, own))
        foreign = _read_foreign(session)
        for place, compaction in enumerate(foreign):
            if compaction.compacted.event == name:
                before = foreign[place - 1].summary if place else None
                return shown(session.history, _describe_foreign(session, compaction, before))
        hint = "the view compactions lists them"
        raise SourceMissing(f"no compaction {name[:40]!r}", operation="compaction", place=session.name, hint=hint)


def undo(home: OpenedHome, asked: Asked) -> dict[str, str]:
    """Undo a compaction, and those that were built on it; return the event that records it."""
    with home.session(asked.text("agent"), asked.text("session")) as session:
        name, newest = asked.text("compaction"), session.history.events.reader.newest().seq
        undone = session.undo(name)
        recorded = (event for event in session.events(newest + 1) if event.type == UNDONE)
        event = next(event for event in recorded if event.data.get("compaction") == undone.id)
        return {"undone": undone.id, "event": event.id}


# Compactions of daypack


def _read_own(session: Session) -> list[_Own]:
    """Return the compactions with the records that each started from, oldest first."""
    seqs = session.turns.inputs.ledger.read().compactions
    known = {compaction.id: compaction for compaction in session.turns.compactions.read().accepted}
    active: list[Compaction] = []
    found: list[tuple[Compaction, Records | None]] = []
    for event in session.history.events.reader.pick(seqs):
        if event.type == UNDONE:
            active = [compaction for compaction in active if compaction.id != event.data.get("compaction")]
        elif event.type == COMPACTED and (compaction := known.get(event.id) or _load(session, event)):
            found.append((compaction, active[-1].records if active else None))
            active.append(compaction)
    return [_Own(compaction, before, compaction.id not in known) for compaction, before in found]


def _load(session: Session, event: Event) -> Compaction | None:
    with suppress(DaypackError, msgspec.MsgspecError, KeyError, TypeError):
        return load(session.history, event)
    return None  # of another writer, or damaged: `doctor` reports it


def _own_row(own: _Own) -> dict[str, Any]:
    compaction = own.compaction
    records = compaction.records
    sections = (records.decisions, records.facts, records.todos, records.errors)
    return {
        "id": compaction.id,
        "at": compaction.at,
        "source": compaction.source,
        "start": compaction.start,
        "through": compaction.through,
        "trigger": compaction.trigger,
        "trigger_words": TRIGGERS.get(compaction.trigger, compaction.trigger),
        "method": compaction.method,
        "model": compaction.model,
        "before_tokens": compaction.before_tokens,
        "after_tokens": compaction.after_tokens,
        "coverage": _covered(compaction.coverage),
        "counts": compaction.coverage,
        "losses": compaction.coverage.get("losses", len(compaction.losses)),
        "records": sum(map(len, sections)) + (records.task is not None),
        "undone": own.undone,
        "own": True,
    }


def _covered(counts: Mapping[str, int]) -> float | None:
    """Return the share of the sentences that CONTEXT.md has, in their own words or in those of others."""
    sentences = counts.get("sentences")
    return (counts.get("sentences_kept", 0) + counts.get("sentences_covered", 0)) / sentences if sentences else None


def _describe_own(session: Session, own: _Own) -> dict[str, Any]:
    compaction = own.compaction
    before = shown(session.history, render(document(own.before))) if own.before is not None else None
    after = shown(session.history, render(document(compaction.records)))
    return {
        **_own_row(own),
        "left": [_left(record) for record in compaction.swapped],
        "document_before": before,
        "document_after": after,
        "document_diff": _diff(before, after),
        "records": _records(compaction.records, compaction.id),
        "losses": [_loss(loss) for loss in compaction.losses],
        "can_undo": not own.undone,
    }


def _left(record: SwapRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "kind": record.kind,
        "summary": record.summary,
        "tokens": record.tokens,
        "range": record.range or (record.event or "").removeprefix("msg-") or None,
    }


def _records(records: Records, name: str) -> dict[str, Any]:
    task = records.task
    return {
        "task": task and {**_origin(task.source, task.compaction, name), "text": task.text, "done": task.done},
        "decisions": [_record(record, name) for record in records.decisions],
        "facts": [{**_record(record, name), "purpose": record.purpose} for record in records.facts],
        "todos": [{**_record(record, name), "done": record.done} for record in records.todos],
        "errors": [
            {**_record(record, name), "resolution": record.resolution, "cause": record.cause}
            for record in records.errors
        ],
    }


def _record(record: Decision | Fact | Todo | ErrorRecord, name: str) -> dict[str, Any]:
    return {"id": record.id, "text": words_of(record), **_origin(record.source, record.compaction, name)}


def _origin(source: str, compaction: str | None, name: str) -> dict[str, Any]:
    return {"source": source, "compaction": compaction, "new": compaction == name}


def _loss(loss: Loss) -> dict[str, Any]:
    return {
        "what": loss.what,
        "reason": loss.reason,
        "words": LOSSES.get(loss.reason, loss.reason),
        "detail": loss.detail,
        "sentences": loss.sentences,
    }


def _diff(before: str | None, after: str | None) -> list[str]:
    old, new = (before or "").splitlines(), (after or "").splitlines()
    return list(difflib.unified_diff(old, new, "before", "after", lineterm=""))


# Compactions of other programs


def _read_foreign(session: Session) -> list[_Foreign]:
    """Return the compactions of other programs, oldest first."""
    history = session.history
    if not is_imported(history):
        return []
    rows: list[tuple[Event, Compacted]] = []
    facts: dict[tuple[object, object], Mapping[str, Any]] = {}  # which messages left with each
    for event in history.events.holding(_ROWS):
        if event.type == IMPORTED:
            facts[_place(event)] = event.data
        elif isinstance(found := read_row(history, event), Compacted):
            rows.append((event, found))
    compactions: list[_Foreign] = []
    former = 0
    for row, found in rows:
        known = facts.get(_place(row), {})
        through = known.get("through")
        if not isinstance(through, int) or isinstance(through, bool):
            compactions.append(_Foreign(found, summary=_stated_summary(row)))
            continue
        kept = tuple(seq for seq in known.get("kept") or () if isinstance(seq, int))
        summary = _stated_summary(row) or _summary_after(session, through)
        compactions.append(_Foreign(found, min(former + 1, through), through, kept, summary))
        former = through
    return compactions


def _place(event: Event) -> tuple[object, object]:
    return event.data.get("source"), event.data.get("line")


def _stated_summary(row: Event) -> str | None:
    """Return the summary in the row of a compaction: Codex writes it there."""
    fields = row.data.get("row")
    payload = cast(Mapping[str, Any], fields).get("payload") if isinstance(fields, dict) else None
    text = cast(Mapping[str, Any], payload).get("message") if isinstance(payload, dict) else None
    return text if isinstance(text, str) and text else None


def _summary_after(session: Session, through: int) -> str | None:
    """Return the summary that Claude Code writes as the first message after a compaction."""
    for message in session.history.messages.records(through + 1, through + _SUMMARY_AMONG):
        if (message.meta or {}).get("foreign_summary"):
            return message.text
    return None


def _foreign_row(foreign: _Foreign) -> dict[str, Any]:
    compacted = foreign.compacted
    source = Messages(foreign.start, foreign.through) if foreign.start and foreign.through else None
    return {
        "id": compacted.event,
        "at": compacted.at,
        "source": str(source) if source else None,
        "start": foreign.start,
        "through": foreign.through,
        "trigger": compacted.trigger or None,
        "trigger_words": _FOREIGN_TRIGGERS.get(compacted.trigger, compacted.trigger) or None,
        "method": None,
        "model": None,
        "before_tokens": compacted.before_tokens,
        "after_tokens": compacted.after_tokens,
        "coverage": None,
        "counts": {},
        "losses": None,
        "records": None,
        "undone": False,
        "own": False,
    }


def _describe_foreign(session: Session, foreign: _Foreign, before: str | None) -> dict[str, Any]:
    old, new = (shown(session.history, text) for text in (before, foreign.summary))
    row = _foreign_row(foreign)
    left: list[dict[str, Any]] = []
    if foreign.start and foreign.through:
        span = Messages(foreign.start, foreign.through)
        stayed = [seq for seq in foreign.kept if span.start <= seq <= span.stop]
        summary = f"{span.stop - span.start + 1 - len(stayed):,} messages, {len(stayed):,} others stayed in the window"
        extent = f"{span.start}-{span.stop}"
        left = [{"id": str(span), "kind": "message_range", "summary": summary, "tokens": None, "range": extent}]
    return {
        **row,
        "left": left,
        "document_before": old,
        "document_after": new,
        "document_diff": _diff(old, new) if new is not None else [],
        "records": _records(Records(), ""),
        "losses": [],
        "can_undo": False,
    }


def _number(event_id: str) -> int:
    digits = event_id.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else 0
