"""Apply an erasure: session by session under its lock, then the memories. Each is changed whole or not at all.

{"type":"history.erased","data":{"kind":"literal","digest":"hmac-sha256:…","marker":"[erased:…]","messages":"3,7-9",…}}
"""

import os
import time
from collections.abc import Iterable
from contextlib import closing, suppress

from msgspec import Struct

from daypack.config import Config
from daypack.errors import BadInput, DaypackError
from daypack.history.across_sessions import forget_words
from daypack.history.draft import draft_event
from daypack.history.layout import Home
from daypack.history.session import History
from daypack.memory.audit_log.record import Deed
from daypack.memory.store.port import Rewritten, is_id
from daypack.turn.prepare import Turns
from daypack.upkeep.backup.records import Erasure as ErasureRecord
from daypack.upkeep.backup.records import add_record, moment
from daypack.upkeep.erase.plan import Erasure, Plan, Request, comparable, is_nothing, plan
from daypack.upkeep.erase.scope import Elsewhere, Place, all_sessions
from daypack.upkeep.erase.session_rewrite import SessionPlan, SessionRewrite
from daypack.upkeep.rebuild import rebuild
from daypack.upkeep.session_settings import settings_of


class ErasedSession(Struct, frozen=True):
    """What was erased from a session, and the event that records it."""

    plan: SessionPlan
    event: str
    changed: bool  # since the plan was made, more or less was found


class Applied(Struct, frozen=True):
    """What was erased, and which files of the home and which known backups still hold it."""

    plan: Plan
    digest: str
    marker: str
    sessions: tuple[ErasedSession, ...]
    memories: tuple[Rewritten, ...]
    remaining: tuple[Elsewhere, ...]


def apply(home: Home, request: Request, plan_id: str | None = None) -> Applied:
    """Erase what is requested; with the id of a plan, only if exactly that would change.

    What is only in a backup is recorded, so that no restore brings it back unnoticed.

    Everything is planned again under the lock of each session. If it fails or is killed in between, some sessions are
    done and the others untouched: apply it again.
    """
    planned = plan(home, request)
    if plan_id is not None and planned.id != plan_id:
        raise _plan_changed(home.folder, plan_id, planned.id)
    if planned.is_empty and not any(found.is_backup and found.is_certain for found in planned.elsewhere):
        return Applied(planned, "", "", (), (), ())
    erasure = Erasure(home, request, create_key=True)
    deed = Deed(
        action="erase",
        tool="erase",
        memories=tuple(found.memory_id for found in planned.memories),
        target=f"plan {planned.id}",
        entries=(request.entry,) if is_id(request.entry) and request.entry else (),
    )
    with closing(erasure), erasure.backend.recording(deed):
        held = erasure.backups
        _record(erasure, planned)  # before: if this is killed, a restore must know what may be erased
        by_path = {found.path: found for found in planned.sessions}
        sessions = [
            done
            for place in erasure.places
            if (done := _erase(erasure, place, by_path.get(place.layout.folder), strict=plan_id is not None))
        ]
        memories = erasure.rewrite_memories()
        forget_words(home)
        _record(erasure, planned)  # after: a backup that was made meanwhile may hold it too
        target = erasure.target
        in_backups = [holding.found for holding in held if holding.found.is_certain]
        remaining = (*erasure.remaining(), *in_backups)
        return Applied(planned, target.digest, target.marker, tuple(sessions), memories, remaining)


def _record(erasure: Erasure, planned: Plan) -> None:
    """Record the erasure in the home, so that no restore brings back unnoticed what is erased."""
    # What stays in the home is not erased, so a restore of it brings nothing back.
    stays = {
        _session_of(place.layout.folder, place.agent, place.layout.name)
        for place in all_sessions(erasure.home)
        if any(found.path.startswith(os.path.join(place.layout.folder, "")) for found in planned.elsewhere)
    }
    stays |= {"memory", "database"} if any(found.is_memory for found in planned.elsewhere) else set()
    parts = (part for holding in erasure.backups for part in holding.parts if part.partition(" ")[2] not in stays)
    target = erasure.target
    record = ErasureRecord(
        moment(),
        target.kind,
        target.digest,
        target.marker,
        tuple(_session_of(found.path, found.agent, found.session) for found in planned.sessions),
        tuple(memory.memory_id for memory in planned.memories),
        tuple(parts),
    )
    add_record(erasure.home.folder, record)


def _session_of(path: str, agent: str, name: str) -> str:
    """Return a session as agent/name; an archived one without its number."""
    live = os.path.basename(os.path.dirname(path)) == "session"
    return f"{agent}/{name if live else name.rpartition('-')[0]}"


def _erase(erasure: Erasure, place: Place, planned: SessionPlan | None, *, strict: bool) -> ErasedSession | None:
    if place.layout.home.database is not None:
        return _erase_stored(erasure, place, planned, strict=strict)
    config = settings_of(erasure.home, place.layout)
    history = History(place.layout, config)
    try:
        with history.lock:
            if planned is not None:
                _repair(history)
            rewrite = SessionRewrite(place.layout, erasure.target, erasure.key)
            found = rewrite.plan(place.agent)
            if strict and found != planned and not (planned is None and is_nothing(found)):
                raise _plan_changed(place.layout.folder, "", "")
            if is_nothing(found):
                return None
            rewrite.commit(_tombstone(erasure, found), time.time())
    finally:
        history.close()
    _make_derived(place, config)
    return ErasedSession(found, rewrite.tombstone, changed=found != planned)


def _erase_stored(erasure: Erasure, place: Place, planned: SessionPlan | None, *, strict: bool) -> ErasedSession | None:
    """Erase from a session in a database: its rows are replaced in one transaction."""
    from daypack.upkeep.erase.stored import StoredErasure  # noqa: PLC0415 — most sessions are files

    expected = None if planned is None else comparable(planned, stored=True)
    stored = StoredErasure(place, erasure.target, erasure.key)

    def decide(found: SessionPlan) -> dict[str, object] | None:
        different = comparable(found, stored=True) != expected
        if strict and different and not (planned is None and is_nothing(found)):
            raise _plan_changed(place.layout.folder, "", "")
        return None if is_nothing(found) else _tombstone(erasure, found)

    done = stored.apply(decide)
    if done is None:
        return None
    found, event = done
    _make_derived(place, settings_of(erasure.home, place.layout))
    return ErasedSession(found, event, changed=comparable(found, stored=True) != expected)


def _repair(history: History) -> None:
    """Let both logs end with a whole line, as the next append would."""
    for log in (history.messages, history.events):
        log.begin()
    while repairs := history.events.writer.repairs:
        history.append_event(draft_event("log.torn", repairs.pop(0).describe()))


def _tombstone(erasure: Erasure, found: SessionPlan) -> dict[str, object]:
    data: dict[str, object] = {
        "kind": erasure.target.kind,
        "digest": erasure.target.digest,
        "marker": erasure.target.marker,
        "messages": ranges(found.messages),
        "events": _event_ranges(found.events),
        "marked": _event_ranges(found.marked),
        "blobs": found.blobs,
        "files": list(found.files),
        "turns": _event_ranges(found.turns),
    }
    return {name: value for name, value in data.items() if value}


def _event_ranges(events: Iterable[str]) -> str:
    return ranges(int(event.removeprefix("ev-")) for event in events)


def ranges(numbers: Iterable[int]) -> str:
    """Return ascending numbers in short: 1-3,7."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def _make_derived(place: Place, config: Config) -> None:
    """Make context/ again; if that fails, the next use does it."""
    with suppress(DaypackError):
        history = History(place.layout, config)
        turns = Turns(history, config, name=place.layout.name, agent=place.agent)
        try:
            rebuild(history, turns)
        finally:
            turns.close()
            history.close()


def _plan_changed(place: str, expected: str, found: str) -> BadInput:
    ids = f": {found}, not {expected}" if expected else " while it was applied"
    hint = "look at the new plan (without --apply), then apply that"
    return BadInput(f"the plan has changed{ids}", operation="erase", place=place, hint=hint)
