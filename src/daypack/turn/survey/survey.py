"""Survey: read everything a turn could use, once. The only stage with a clock and with files."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from msgspec.structs import replace

from daypack.text.injected import TIME
from daypack.text.redact.redact import redact
from daypack.turn.items import (
    CLOCK,
    RUNTIME,
    SEEN_BY_DEFAULT,
    Cost,
    Excerpt,
    Item,
    Missing,
    Omission,
    TokenMeter,
    cost_of,
    prefix_cost,
    total,
)
from daypack.turn.ledger import LedgerState
from daypack.turn.pack.additions import added_items
from daypack.turn.pack.changes import changes
from daypack.turn.pack.fence import Measure, measurer
from daypack.turn.pack.fit import may_begin_epoch
from daypack.turn.pack.new_tail import Space, all_messages, begin_tail
from daypack.turn.pack.omissions import damaged_line, question_of
from daypack.turn.policy import (
    IMPORT_SHARE,
    MAX_IMPORT_TOKENS,
    MAX_NAME_TOKENS,
    MEMORY_TIME_SHARE,
    NAME_CHARS,
    NAME_SHARE,
    STEP_SHARE,
    compaction_reserve,
)
from daypack.turn.surface import Epoch, LastTurn, Request, Surface
from daypack.turn.survey import sources
from daypack.turn.survey.conversation import Conversation, messages_after
from daypack.turn.survey.history_search import Query, step_query
from daypack.turn.survey.inputs import TurnInputs, now_of
from daypack.turn.survey.memory import MEMORY, UNANSWERED, Asked, ask_memory, is_remote, memory_id
from daypack.turn.survey.missing import may_know, redact_missing
from daypack.turn.survey.sources import Found
from daypack.types.deadline import NO_DEADLINE, Deadline
from daypack.types.digest import digest_text
from daypack.types.kinds import EpochReason, Target

_CONTENT = attrgetter("id", "digest")
IDENTITY = "identity"  # the switch of what daypack says about the agent, its rules and the time
_STEP_MESSAGES = 64  # the newest, among which are the newest calls with their results
PROTOCOL = "protocol"  # the switch of the hybrid protocol, and the name of its instructions


def survey(inputs: TurnInputs, request: Request, last_turn: LastTurn, *, searching: bool = True) -> Surface:
    """Return what is available to a turn; `searching` false: without searching history and memory."""
    meter = inputs.meter(request.model)
    measure = measurer(meter, redacting=inputs.redacting, target=request.target)
    folded = inputs.ledger.read()
    inside = request.target in SEEN_BY_DEFAULT
    newest = inputs.working_state.info() if folded.compactions else None  # writes missing files
    conversation = Conversation(inputs, meter, request.target)
    searching = searching and inside and conversation.user is not None
    pins = inputs.history.pins()
    memory = memory_id(inputs.memory) if inside and inputs.memory is not None else ""  # before its document is read
    # First, so that it answers while files are read.
    asked = _ask(inputs, request, conversation, folded, searching=searching) if inputs.memory is not None else None
    working = list(_working_sources(inputs, request, folded))
    others: list[Found] = [*_sources(inputs, request, conversation, folded, pins), *request.items]
    if inside and folded.rules.rules:
        from daypack.turn.survey.rules import epoch_rules  # noqa: PLC0415 — few sessions have rules

        others += epoch_rules(folded.rules, request, last_turn.epoch, meter)
    if asked is not None:
        memory, remembered = _collect(asked, memory, last_turn.epoch)
        others += remembered
    found = [*_clock(request, folded), *working, *others]
    prefix: list[Item] = []
    volatile: list[Item] = []
    omitted: list[Omission] = []
    for thing in found:
        if isinstance(thing, Item):
            item = measure(thing)
            (prefix if item.placement == "prefix" else volatile).append(item)
        elif isinstance(thing, Omission):
            omitted.append(thing)
    if folded.imported:
        imported = _imports(inputs, request, folded, measure)
        volatile += imported.items
        omitted += imported.omitted
        others += imported.missing
    surface = Surface(
        target=request.target,
        now=now_of(request.start_seconds),
        limits=request.limits,
        tools=request.tools,
        policy=request.policy,
        tokenizer=meter.counter.name,
        model=request.model or inputs.config.model,
        prefix=tuple(prefix),
        volatile=tuple(volatile),
        memory=memory,
        first=conversation.first,
        last=conversation.last,
        user=conversation.user,
        compaction=newest if inside else None,
        summarized=newest,
        seen=last_turn.last,
        searched=0 if last_turn.unsearched else last_turn.last,
        last_tail=last_turn.tail,
        budget_from_file=request.budget_from_file,
        pins_edited=bool(pins or folded.pins) and folded.pins != _digests(pins),
        omitted=tuple(omitted),
        missing=_missing((*others, *folded.questions.values()), request.target),
        working_missing=_missing(working, request.target),
    )
    epoch, reason = _continuing(last_turn, request, meter)
    if epoch and inside and memory != epoch.memory and _document(epoch.prefix) != _document(prefix):
        epoch, reason = None, "memory_bound"
    surface = replace(surface, epoch=epoch, former=epoch, reason=reason, additions=last_turn.additions if epoch else ())
    surface = _with_messages(_with_references(surface), conversation, measure)
    surface = _with_shorter(surface, measure)
    if conversation.hidden:
        surface = replace(surface, omitted=(*surface.omitted, conversation.hidden))
    if searching and (surface.window or (surface.epoch and _hides_messages(surface, surface.epoch))):
        surface = _with_excerpts(surface, inputs, request, meter)
    if request.deadline is not NO_DEADLINE:
        surface = replace(surface, ms=int(request.deadline.spent() * 1000))
    if inputs.redacting and (surface.missing or surface.working_missing or surface.omitted):
        return _redacted(surface)
    return surface


def after_compaction(inputs: TurnInputs, request: Request, surface: Surface, reason: EpochReason) -> Surface:
    """Return the surface with what a compaction during this turn changed; nothing else is read again."""
    compaction = inputs.working_state.info()
    measure = measurer(inputs.meter(request.model), redacting=inputs.redacting)
    found = list(_working_sources(inputs, request, inputs.ledger.read()))
    items = [measure(thing) for thing in found if isinstance(thing, Item)]
    kept = [item for item in surface.prefix if item.id not in sources.WORKING_ITEMS]
    surface = replace(
        surface,
        epoch=None,
        tail=None,
        reason=reason,
        prefix=(*kept, *items),
        window=messages_after(surface.window, compaction.through) if surface.window and compaction else surface.window,
        compaction=compaction,
        summarized=compaction,
        working_missing=_missing(found, request.target),
    )
    surface = _with_shorter(surface, measure)
    return _redacted(surface) if inputs.redacting else surface


def _with_shorter(surface: Surface, measure: Measure) -> Surface:
    """Add shorter forms of items, where a new epoch may begin that cannot hold the whole prefix."""
    room, policy = surface.limits.room_beside(surface.tools), surface.policy
    needed = prefix_cost(surface.prefix).plus(surface.user.cost if surface.user else Cost())
    if surface.window is None or needed.fits(room.part(min(policy.prefix_share, 1 - policy.recent_share))):
        return surface
    from daypack.turn.pack.shorter import shorter_forms  # noqa: PLC0415 — few prefixes are that long

    return replace(surface, shorter=shorter_forms(surface.prefix, room, measure))


def _continuing(last_turn: LastTurn, request: Request, meter: TokenMeter) -> tuple[Epoch | None, EpochReason | None]:
    """Return the epoch that can continue, or the reason why none can, whatever the messages are."""
    epoch = last_turn.epoch
    if epoch is None:
        return None, last_turn.reason or "first"
    if epoch.limits != request.limits:
        return None, "budget_changed"
    if epoch.tokenizer != meter.counter.name:
        return None, "tokenizer_changed"
    return epoch, None


def _document(prefix: Iterable[Item]) -> str:
    """Return the digest of the memory's document in a prefix; empty if there is none."""
    return next((item.digest for item in prefix if item.id == MEMORY), "")


def _with_references(surface: Surface) -> Surface:
    """Add a record of each reference that was not found."""
    if not any(item.reference for item in (*surface.prefix, *surface.volatile)):
        return surface
    from daypack.turn.caller.references import missing_references  # noqa: PLC0415 — few turns have such items

    return replace(surface, missing=(*surface.missing, *missing_references(surface)))


def _with_messages(surface: Surface, conversation: Conversation, measure: Measure) -> Surface:
    """Read the tail of the epoch, and the window for a new epoch where one may begin."""
    epoch, limits = surface.epoch, surface.limits
    compaction = surface.compaction
    covered = compaction.through if compaction and compaction.holds(limits.room.tokens) else 0
    if epoch is None:
        return _all_raw(surface, conversation) or replace(surface, window=conversation.window(limits, covered))
    tail, window = conversation.tail(epoch, 2 * surface.limits.room_beside(surface.tools).tokens), None
    if tail is None:
        window = conversation.window(limits, covered)
        # Messages that are never shown can have many tokens: if the window reaches the epoch's start, it may continue.
        if window.entries and window.entries[0].message.seq <= epoch.start:
            tail = conversation.tail(epoch)
    if tail is None:
        return replace(surface, epoch=None, reason="overflow", window=window)
    surface = replace(surface, tail=tail)
    all_raw = compaction and epoch.compaction is None and epoch.start <= compaction.through
    prefix = _without_records(surface.prefix) if all_raw else surface.prefix
    if surface.additions or set(map(_CONTENT, prefix)) != set(map(_CONTENT, epoch.prefix)):
        notes, waiting = changes(epoch, surface.additions, prefix, measure)
        surface = replace(surface, notes=notes, waiting=waiting)
    if window is None and may_begin_epoch(surface):
        window = conversation.window(limits, covered)
    return replace(surface, window=window)


def _all_raw(surface: Surface, conversation: Conversation) -> Surface | None:
    """Return the surface with all messages and no records of them, if a budget larger than before holds them all.

    If it does not hold them all, those that fit return to the tail, and the records stay.
    """
    compaction, room = surface.compaction, surface.limits.room
    if compaction is None or compaction.holds(room.tokens):
        return None
    window = conversation.window(surface.limits)
    prefix = _without_records(surface.prefix)
    space = Space(prefix=prefix_cost(prefix), demand=cost_of(surface.volatile))
    if all_messages(replace(surface, window=window), space) is None:
        return None
    omitted = [
        Omission(item=item.id, reason="duplicate", tokens=item.tokens, note="all messages are in the window")
        for item in surface.prefix
        if item not in prefix
    ]
    return replace(surface, window=window, prefix=prefix, compaction=None, omitted=(*surface.omitted, *omitted))


def _without_records(prefix: Sequence[Item]) -> tuple[Item, ...]:
    """Return the items that do not stand for messages outside the window."""
    return tuple(item for item in prefix if item.id == IDENTITY or item.id not in sources.WORKING_ITEMS)


def _hides_messages(surface: Surface, epoch: Epoch) -> bool:
    """Return True if messages are before the tail of an epoch, or shown as stubs, and there is something to ask."""
    return surface.last > surface.searched and (epoch.start > surface.first or bool(epoch.stubbed))


def _digests(pins: Mapping[str, str]) -> dict[str, str]:
    return {name: digest_text(text) for name, text in pins.items()}


def _with_excerpts(surface: Surface, inputs: TurnInputs, request: Request, meter: TokenMeter) -> Surface:
    """Search what the window does not show verbatim: for a new user message, and with what the agent does now."""
    border, planned = _borders(surface)
    excerpts: list[Excerpt] = []
    window_excerpts: list[Excerpt] = []
    missing: list[Missing] = []
    for query in _queries(surface):
        new = surface.last > surface.searched if query.step else max(query.seqs) > surface.searched
        bounds = [bound for bound in (border if new else 0, planned) if bound > surface.first]
        if bounds:
            found, unsearched = inputs.history_search.find(query, bounds, surface.last, meter, request.deadline)
            excerpts += found.get(border, ()) if new else ()
            window_excerpts += found.get(planned, ())
            missing += [gap for gap in unsearched if gap not in missing]
    return replace(
        surface,
        excerpts=tuple(excerpts),
        window_excerpts=tuple(window_excerpts),
        missing=(*surface.missing, *missing),
    )


def _borders(surface: Surface) -> tuple[int, int]:
    """Return the first message that is verbatim from there on: in the epoch, and in a new one; 0: there is none."""
    border = planned = 0
    if surface.epoch and surface.tail:
        border = max(surface.epoch.stubbed, default=surface.epoch.start - 1) + 1
    if surface.window:
        reserved = compaction_reserve(
            surface.limits.room_beside(surface.tools).tokens
        )  # one in this turn lets more messages leave
        space = Space(prefix=prefix_cost(surface.prefix), demand=cost_of(surface.volatile), reserved_tokens=reserved)
        planned = begin_tail(surface, space).border
    return border, planned


def _queries(surface: Surface) -> Iterator[Query]:
    """Return the user's words, and the step of an agent that works on them, unless enough was found so far."""
    assert surface.user is not None
    user = surface.user.message
    yield Query(user.text, frozenset({user.seq}))
    window = surface.tail or surface.window
    if surface.last > user.seq and window:
        found = total(item.cost for item in added_items(surface.additions) if isinstance(item, Excerpt))
        step = step_query([entry.message for entry in window.entries[-_STEP_MESSAGES:]])
        if step and (surface.window or found.tokens < STEP_SHARE * surface.limits.room_beside(surface.tools).tokens):
            yield step


def _sources(
    inputs: TurnInputs, request: Request, conversation: Conversation, folded: LedgerState, pins: Mapping[str, str]
) -> Iterator[Found]:
    """Read the sources of items. Those that the session does not use cost nothing."""
    layout = inputs.history.layout
    if conversation.has_leading:
        yield from sources.leading(conversation.leading)
    for seq in conversation.damaged:
        gap = damaged_line(seq)
        yield from (gap, question_of(gap))
    if pins:
        yield from sources.pinned(pins)
    if folded.switches:
        yield from sources.switched(folded.switches, layout)
    if inputs.workspace:
        yield from sources.workspace_files(inputs.workspace)
    if folded.children or os.path.lexists(layout.derived("child")):
        from daypack.derived.children import read_children  # noqa: PLC0415 — few sessions have children

        yield from sources.children(read_children(inputs.history, recorded=folded.children))
    protocol = folded.switches.get(PROTOCOL, False) if request.protocol is None else request.protocol
    if protocol or folded.tiers.message:
        from daypack.turn.survey.tiers import tier_items  # noqa: PLC0415 — few sessions use the protocol

        yield from tier_items(inputs, request, conversation.user, protocol=protocol)


def _working_sources(inputs: TurnInputs, request: Request, folded: LedgerState) -> Iterator[Found]:
    """Read what a compaction changes."""
    layout, workspace = inputs.history.layout, inputs.workspace
    if folded.switches.get(IDENTITY):
        yield from sources.identity(request.model or inputs.config.model, workspace, layout)
    if layout.may_have(sources.WORKING_FILES):
        current = inputs.working_state.read().current if folded.compactions else None
        shown = list(sources.working_state(layout, rendered=current is not None))
        shown += inputs.refs.find(workspace, request.limits.room_beside(request.tools).tokens)
        yield from shown
        if current and current.names:
            room_tokens = request.limits.room_beside(request.tools).tokens
            known = "\n".join(item.text for item in shown if isinstance(item, Item))
            yield from sources.names(current, known, NAME_CHARS * min(MAX_NAME_TOKENS, int(room_tokens * NAME_SHARE)))


def _ask(
    inputs: TurnInputs, request: Request, conversation: Conversation, folded: LedgerState, *, searching: bool
) -> Asked:
    """Ask the memory for its document, and for what bears on the newest user message."""
    from daypack.memory.answers import Question  # noqa: PLC0415 — only for sessions with a memory

    memory, deadline = inputs.memory, request.deadline.part(MEMORY_TIME_SHARE)
    assert memory is not None
    if request.deadline is NO_DEADLINE and is_remote(memory):
        deadline = Deadline.after(inputs.config.memory_ms / 1000, inputs.timer)
    question = Question(memory_id(memory), erased=folded.erased)
    if searching and conversation.user is not None and request.policy.memory_hits:
        user = conversation.user.message
        question = question._replace(message=user.seq, query=user.text, limit=request.policy.memory_hits)
    return ask_memory(memory, inputs.answers(memory), question, deadline)


def _collect(asked: Asked, memory: str, epoch: Epoch | None) -> tuple[str, list[Found]]:
    """Return what the memory answered, and its id. If it did not answer, the document of the epoch stays."""
    frozen = next((item for item in epoch.prefix if item.id == MEMORY), None) if epoch else None
    document = [*asked.document(frozen if epoch and epoch.memory == memory else None)]
    # A document that is not known yet begins an epoch when it comes.
    known = UNANSWERED if asked.reply.problem and not document else memory
    return known, [*document, *asked.hits()]


class _Imports(NamedTuple):
    items: list[Item]
    omitted: list[Omission]
    missing: list[Missing]


def _imports(inputs: TurnInputs, request: Request, folded: LedgerState, measure: Measure) -> _Imports:
    """Return the items of imported envelopes within their share, and records of the others."""
    from daypack.turn.survey.imported_envelopes import imported_items, within_share  # noqa: PLC0415 — few have any

    imported = list(imported_items(inputs.history, folded.imported))
    items = [measure(thing) for thing in imported if isinstance(thing, Item)]
    most = min(MAX_IMPORT_TOKENS, int(request.limits.room_beside(request.tools).tokens * IMPORT_SHARE))
    kept, omitted = within_share(items, request.target, most)
    omitted += [thing for thing in imported if isinstance(thing, Omission)]
    return _Imports(kept, omitted, [thing for thing in imported if isinstance(thing, Missing)])


def _missing(found: Iterable[object], target: Target) -> tuple[Missing, ...]:
    return tuple(thing for thing in found if isinstance(thing, Missing) and may_know(thing, target))


def _redacted(surface: Surface) -> Surface:
    """Redact questions and notes: they quote what they are about."""
    return replace(
        surface,
        omitted=tuple(map(_redact_note, surface.omitted)),
        missing=tuple(map(redact_missing, surface.missing)),
        working_missing=tuple(map(redact_missing, surface.working_missing)),
    )


def _redact_note(omission: Omission) -> Omission:
    return replace(omission, item=redact(omission.item).text, note=omission.note and redact(omission.note).text)


def _clock(request: Request, folded: LedgerState) -> Iterator[Item]:
    """Return the time of the call, if the identity is switched on."""
    if not folded.switches.get(IDENTITY):
        return
    yield Item(
        id=CLOCK,
        kind="runtime_block",
        context_kind="runtime_state",
        source=RUNTIME,
        text=f"{TIME}{now_of(request.start_seconds)[:19]}Z",
        authority="system",
        visibility=("model", "runtime", "reviewer", "evidence_export"),
        order=90,
        priority=0.98,
    )
