"""Exports: a turn, task, session, tool call, review or handoff as one envelope document for a chosen target."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

import msgspec
from msgspec.structs import replace

from daypack.errors import BadInput, SourceMissing
from daypack.text.tokens import counter_named
from daypack.turn.budget import Limits
from daypack.turn.evidence.diff import ranges
from daypack.turn.evidence.envelope import envelope_of
from daypack.turn.evidence.view import Parts, TurnView
from daypack.turn.items import Omission, TokenMeter, total
from daypack.turn.pack.additions import addition_cost
from daypack.turn.questions import Questions
from daypack.turn.surface import Addition
from daypack.turn.survey.message_cost import message_cost
from daypack.types.context import ContextEnvelope, ContextItem
from daypack.types.history import Message
from daypack.types.kinds import check_target

if TYPE_CHECKING:
    from daypack.turn.caller.ids import TurnIds

# What can be exported, with the default target.
SCOPES = {
    "turn": "evidence_export",
    "task": "evidence_export",
    "session": "evidence_export",
    "tool_invocation": "evidence_export",
    "review": "reviewer",
    "handoff": "peer_agent",
}


class Given(TypedDict, total=False):
    """What a caller adds to the turn that is exported."""

    items: Iterable[ContextItem | Mapping[str, Any]]
    ids: "TurnIds"


class TurnSource(Protocol):
    """Where an export gets its turns: the turns of one session."""

    def prepare(
        self,
        *,
        budget: Limits | None,
        target: str,
        dry_run: bool,
        items: Iterable[ContextItem | Mapping[str, Any]] | None = None,
        ids: "TurnIds | None" = None,
    ) -> TurnView:
        """Return the turn that would be next."""
        ...

    @property
    def questions(self) -> Questions:
        """The questions of the session, open and ended."""
        ...

    def replay(self, event_id: str) -> TurnView:
        """Return a recorded turn."""
        ...


def export(
    turns: TurnSource,
    scope: str,
    *,
    target: str | None = None,
    event: str | None = None,
    call: str | None = None,
    given: Given | None = None,
) -> ContextEnvelope:
    """Return the envelope of a scope; it contains only what its target may see.

    `given` adds items and ids of the caller to a new turn; a recorded one has its own.
    """
    if scope not in SCOPES:
        hint = f"use one of {', '.join(SCOPES)}"
        raise BadInput(f"{scope!r} is not a scope", operation="export", place="scope", hint=hint)
    chosen = check_target(target or SCOPES[scope])
    if given and event:
        hint = "omit the event to export a new turn with them"
        raise BadInput(f"{event} has its own items and ids", operation="export", place=event, hint=hint)
    if scope == "turn":
        turn = _recorded(turns, chosen, event) if event else _next(turns, chosen, None, given)
    else:
        turn = _next(turns, chosen, Limits(), given)
        if scope == "task":
            since = turn.record.user or 0
            turn = _narrow(turn, lambda message: message.seq >= since, "before the task")
        elif scope == "tool_invocation":
            turn = _only_call(turn, call)
    return envelope_of(turn, scope=scope, exported=True, ended=turns.questions.ended_for(chosen))


def encode(envelope: ContextEnvelope) -> bytes:
    """Return the bytes of an envelope document."""
    return msgspec.json.format(msgspec.json.encode(envelope), indent=2) + b"\n"


def _next(turns: TurnSource, target: str, budget: Limits | None, given: Given | None) -> TurnView:
    return turns.prepare(budget=budget, target=target, dry_run=True, **(given or {}))


def _recorded(turns: TurnSource, target: str, event: str) -> TurnView:
    turn = turns.replay(event)
    if target not in (turn.target, "evidence_export"):
        raise BadInput(
            f"{event} is a turn for {turn.target}, not for {target}",
            operation="export",
            place=event,
            hint=f"omit the event to export a new assembly for {target}",
        )
    # Of a turn that was made for another target, only what both targets may see.
    return turn if turn.target == target else _visible(turn, target)


def _visible(turn: TurnView, target: str) -> TurnView:
    epoch = turn.parts.epoch
    prefix = tuple(item for item in epoch.prefix if target in item.visibility)
    volatile = tuple(item for item in turn.parts.volatile if target in item.visibility)
    hidden = [
        Omission(item=item.id, reason="not_visible_to_target")
        for item in turn.inserted
        if target not in item.visibility
    ]
    parts = replace(
        turn.parts,
        epoch=replace(epoch, prefix=prefix),
        additions=_visible_additions(turn.parts.additions, target),
        volatile=volatile,
    )
    seen = TurnView(turn.parts, replace(turn.record, target=check_target(target)), turn.event_id)
    return _with_parts(seen, parts, (*turn.record.omitted, *hidden))


def _visible_additions(additions: Sequence[Addition], target: str) -> tuple[Addition, ...]:
    seen = (
        replace(addition, items=tuple(item for item in addition.items if target in item.visibility))
        for addition in additions
    )
    return tuple(addition for addition in seen if addition.items)


def _only_call(turn: TurnView, call: str | None) -> TurnView:
    known = [tool_call.id for message in turn.parts.messages for tool_call in message.tool_calls]
    if call not in known:
        raise SourceMissing(
            f"no call {call!r} in this session" if call else "the id of a tool call is required",
            operation="export",
            place=turn.parts.session,
            hint=f"give an id with --call; the newest are: {', '.join(known[-5:]) or 'none'}",
        )
    parts = replace(turn.parts, epoch=replace(turn.parts.epoch, prefix=()), additions=(), volatile=())
    narrowed = _with_parts(turn, parts, turn.record.omitted)
    return _narrow(
        narrowed,
        lambda message: message.tool_call_id == call or any(tool_call.id == call for tool_call in message.tool_calls),
        "not part of this call",
    )


def _narrow(turn: TurnView, keep: Callable[[Message], bool], note: str) -> TurnView:
    kept = tuple(message for message in turn.parts.messages if keep(message))
    removed = ranges(sorted({message.seq for message in turn.parts.messages if not keep(message)}))
    omitted = [
        Omission(item=f"messages:{numbers}", reason="custom", note=note)
        for numbers in (removed or "").split(", ")
        if numbers
    ]
    return _with_parts(turn, replace(turn.parts, messages=kept), (*turn.record.omitted, *omitted))


def _with_parts(turn: TurnView, parts: Parts, omitted: tuple[Omission, ...]) -> TurnView:
    """Return the turn with other parts, and a record with their costs and digests."""
    scales = TokenMeter(counter_named(turn.record.tokenizer))
    before = total(item.cost for item in parts.epoch.prefix)
    tail = total(message_cost(message, scales.counter, model=turn.record.model) for message in parts.messages)
    tail = tail.plus(addition_cost(parts.additions))
    used = before.plus(tail).plus(total(item.cost for item in parts.volatile))
    stable = replace(turn.record.stable, tokens=before.plus(tail).tokens, prefix_tokens=before.tokens)
    narrowed = TurnView(
        parts, replace(turn.record, omitted=omitted, used=used, stable=stable, tools=None), turn.event_id
    )
    narrowed.record = replace(narrowed.record, sha256={"assembly": narrowed.assembly.sha256})
    return narrowed
