"""One call: what was sent in order, why each item is there, what was left out, and the request itself."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from daypack.errors import BadInput, Damaged, DaypackError, Erased, NotFound, ReplayMismatch, SourceMissing
from daypack.history.session import History
from daypack.serve.page.calls.items import items_of
from daypack.serve.page.calls.kept import kept_of
from daypack.serve.page.calls.observed import ObservedItems
from daypack.serve.page.calls.omissions import omissions_of
from daypack.serve.page.calls.place import Place, find_place
from daypack.serve.page.calls.shapes import MOST_CHARS, Cache, ShownItem, ShownOmission
from daypack.serve.page.views.asked import Asked
from daypack.serve.page.views.opened import OpenedHome
from daypack.session import Session
from daypack.session.chosen import OpenedTurn, open_call
from daypack.session.shown import shown
from daypack.turn.dialects import NAMES
from daypack.turn.evidence.explain import headline
from daypack.turn.evidence.observed.calls import Call
from daypack.turn.evidence.observed.request import ObservedTurn
from daypack.turn.evidence.overhead import added_tokens
from daypack.turn.evidence.replay import read_turn
from daypack.turn.evidence.words import EPOCHS, break_words, program_name
from daypack.turn.ledger import NOT_REDACTED
from daypack.turn.turn import Turn


class ShownMissing(Struct, frozen=True):
    """Something that a turn refers to and that was not available."""

    id: str
    question: str
    severity: str


class ShownCall(Struct, frozen=True, kw_only=True):
    """A call; None where a fact is not known."""

    event: str
    at: str
    kind: str
    content: str
    target: str
    model: str | None
    counted_by: str | None = None
    tokens: int | None = None
    budget_tokens: int | None = None
    reserved_tokens: int | None = None
    verified: bool | None = None
    problem: str | None = None
    headline: str
    epoch: str | None = None
    new_epoch: str | None = None
    cache: Cache
    added_tokens: int | None = None
    reply: int | None = None
    previous: str | None = None
    next: str | None = None
    dialects: tuple[str, ...] = ()
    items: Sequence[ShownItem] = ()
    omitted: Sequence[ShownOmission] = ()
    missing: Sequence[ShownMissing] = ()


def show_call(home: OpenedHome, asked: Asked) -> ShownCall:
    """Return everything about one call."""
    with home.session(asked.text("agent"), asked.text("session")) as session:
        place = find_place(session, asked.text("event"))
        chosen = place.chosen
        if chosen.call:
            return _observed(session, place, chosen.call)
        try:
            opened = kept_of(session).turn(session, chosen.event)
        except (Damaged, SourceMissing) as error:
            return _unreadable(session.history, place, error)
        return _prepared(session.history, place, opened)


def show_item(home: OpenedHome, asked: Asked) -> dict[str, str]:
    """Return the whole text of one item of a call."""
    wanted = asked.text("item")
    with home.session(asked.text("agent"), asked.text("session")) as session:
        chosen = find_place(session, asked.text("event")).chosen
        text = None
        if chosen.call:
            turn = open_call(session, chosen.call)
            if turn:
                text = ObservedItems(session.history, chosen.call, turn, kept_of(session).links(session)).text(wanted)
        else:
            turn = kept_of(session).turn(session, chosen.event).turn
            items = items_of(session.history, turn, None)
            text = next((item.text for item in _redacted(session.history, turn, items) if item.id == wanted), None)
        if text is None:
            problem = f"{chosen.event} has no item {wanted[:80]!r}"
            hint = f"`call` with event={chosen.event} lists the items"
            raise NotFound(problem, operation=asked.view, place=session.name, hint=hint)
        return {"id": wanted, "text": text}


def show_request(home: OpenedHome, asked: Asked) -> dict[str, str]:
    """Return the request of a call as JSON text, in the dialect that was asked for."""
    name = asked.text("dialect", "")
    with home.session(asked.text("agent"), asked.text("session")) as session:
        chosen = find_place(session, asked.text("event")).chosen
        if chosen.call:
            return _observed_request(session, chosen.call, name)
        name = name or NAMES[0]
        if name not in NAMES:
            hint = f"use one of {', '.join(NAMES)}"
            raise BadInput(f"{name[:40]!r} is no dialect", operation=asked.view, place="dialect", hint=hint)
        turn = kept_of(session).turn(session, chosen.event).turn
        return {"dialect": name, "text": _pretty(shown(session.history, turn.request(name)))}


# Turns of daypack


def _prepared(history: History, place: Place, opened: OpenedTurn) -> ShownCall:
    turn, problem = opened
    record = turn.record
    return ShownCall(
        event=turn.event_id or "",
        at=record.at,
        kind="prepared",
        content="recorded",
        target=turn.target,
        model=shown(history, record.model),
        counted_by=turn.token_method,
        tokens=turn.tokens,
        budget_tokens=turn.budget_tokens,
        reserved_tokens=record.limits.reserved_tokens,
        verified=problem is None,
        problem=problem.problem if problem else None,
        headline=shown(history, headline(turn)),
        epoch=record.epoch or turn.event_id,
        new_epoch=EPOCHS.get(turn.new_epoch, turn.new_epoch) or None,
        added_tokens=added_tokens(turn),
        dialects=NAMES,
        items=_redacted(history, turn, items_of(history, turn, MOST_CHARS)),
        omitted=omissions_of(history, turn),
        missing=_missing(turn),
        cache=shown(history, place.cache),
        reply=place.reply,
        previous=place.previous,
        next=place.next,
    )


def _missing(turn: Turn) -> list[ShownMissing]:
    return [ShownMissing(missing.id, missing.question, missing.severity) for missing in turn.missing]


def _redacted(history: History, turn: Turn, items: list[ShownItem]) -> list[ShownItem]:
    """Return items without secrets, also those of a turn that was recorded while redaction was off."""
    return [shown(history, item) for item in items] if NOT_REDACTED in turn.record.redacted else items


def _unreadable(history: History, place: Place, error: DaypackError) -> ShownCall:
    """Return what the record of a turn says whose texts cannot be read; raise the error if there is no such turn."""
    event = place.chosen.event
    try:
        record = read_turn(history, event)
    except DaypackError:
        raise error from None
    return ShownCall(
        event=event,
        at=record.at,
        kind="prepared",
        content="unknown",
        target=record.target,
        model=shown(history, record.model),
        counted_by=record.tokenizer,
        tokens=record.used.tokens,
        budget_tokens=record.limits.tokens,
        reserved_tokens=record.limits.reserved_tokens,
        verified=False,
        problem=error.problem,
        headline=f"{record.used.tokens:,} tokens; its texts cannot be read",
        epoch=record.epoch or event,
        cache=shown(history, place.cache),
        reply=place.reply,
        previous=place.previous,
        next=place.next,
        missing=[ShownMissing(missing.id, missing.question, missing.severity) for missing in record.missing],
    )


# Calls of other programs


def _observed(session: Session, place: Place, call: Call) -> ShownCall:
    history = session.history
    turn = open_call(session, call)
    found = ObservedItems(history, call, turn, kept_of(session).links(session)) if turn else None
    verified, problem = _verify(turn) if turn else (None, None)
    # A sub-agent has a window of its own: what left the other one was never in it.
    gone = kept_of(session).compacted(session, place.folds, found.messages) if found and not call.agent else []
    tokens = call.input_tokens if call.input_tokens is not None else found.explained.tokens if found else None
    return ShownCall(
        event=call.event,
        at=call.at,
        kind="observed",
        content=call.content,
        target="model",
        model=shown(history, call.model),
        counted_by=found.explained.counted_by if found else None,
        tokens=tokens,
        verified=verified,
        problem=problem,
        headline=shown(history, _headline(call)),
        dialects=(turn.record.dialect,) if turn and turn.request is not None else (),
        items=found.shown(MOST_CHARS) if found else (),
        omitted=gone,
        cache=shown(history, _reported(place, call)),
        reply=place.reply,
        previous=place.previous,
        next=place.next,
    )


def _reported(place: Place, call: Call) -> Cache:
    words = break_words(call.cache_break) if call.cache_break else None
    return replace(place.cache, written=call.cache_written_tokens, broken=words)


def _verify(turn: ObservedTurn) -> tuple[bool | None, str | None]:
    try:
        turn.verify()
    except SourceMissing as error:  # nothing is damaged: a part was never recorded
        return None, error.problem
    except (Erased, ReplayMismatch) as error:
        return False, error.problem
    return True, None


def _headline(call: Call) -> str:
    facts = [program_name(call.program)]
    if call.agent:
        facts.append(f"sub-agent {call.agent}")
    if call.purpose:
        facts.append(call.purpose)
    if call.input_tokens is None:
        return f"{', '.join(facts)}: no usage was reported"
    cached = f", {call.cached_tokens:,} from the cache" if call.cached_tokens is not None else ""
    return f"{', '.join(facts)}: {call.input_tokens:,} tokens in{cached}"


def _observed_request(session: Session, call: Call, name: str) -> dict[str, str]:
    turn = open_call(session, call)
    body = turn.request if turn else None
    if turn is None or body is None:
        problem = (
            f"the request of {call.event} cannot be rebuilt: {program_name(call.program)} did not record all of it"
        )
        hint = "`call` shows what is known"
        raise SourceMissing(problem, operation="request", place=session.history.layout.folder, hint=hint)
    if name not in ("", turn.record.dialect):
        problem = f"{call.event} was sent as {turn.record.dialect}, not as {name[:40]}"
        raise BadInput(problem, operation="request", place="dialect", hint=f"dialect={turn.record.dialect}")
    return {"dialect": turn.record.dialect, "text": _pretty(shown(session.history, body))}


def _pretty(body: object) -> str:
    return msgspec.json.format(msgspec.json.encode(body), indent=2).decode()
