"""Replay: rebuild a recorded turn from history alone, and check that every byte is the same."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from daypack.derived.records import load
from daypack.errors import BadInput, Damaged, DaypackError, Erased, ReplayMismatch, SourceMissing
from daypack.history.resolve import resolve
from daypack.history.session import History
from daypack.turn.evidence.record import VERSION, ExcerptRef, TurnRecord, expand, is_current
from daypack.turn.evidence.view import Parts, TurnView
from daypack.turn.items import SEEN_BY_DEFAULT, Excerpt, Item, TokenMeter
from daypack.turn.ledger import NOT_REDACTED, OBSERVED, TURN
from daypack.turn.pack.fence import show, shown_bytes
from daypack.turn.pack.inject import inject
from daypack.turn.pack.stubs import as_repeat, as_stub, find_repeats
from daypack.turn.pack.tail import settle
from daypack.turn.pack.volatile import volatile_order
from daypack.turn.surface import Addition, CompactionInfo, Epoch, info_of
from daypack.turn.survey.history_search import excerpt
from daypack.turn.survey.message_cost import MESSAGE_TOKENS
from daypack.turn.survey.messages import RecentMessages
from daypack.turn.survey.visibility import is_hidden_from, message_seen_by
from daypack.types.digest import file_name_of
from daypack.types.history import Event, Message
from daypack.types.source import EventRef

_DOCTOR = "see `daypack doctor`"


def read_turn(history: History, event_id: str) -> TurnRecord:
    """Return the record of a turn by the id of its event."""
    if not isinstance(cast("object", event_id), str):
        hint = f"pass the id of a turn's event, such as 'ev-12' (turn.event_id); {_list_turns(history)}"
        raise BadInput(f"must be text, got {event_id!r}", operation="replay", place="event_id", hint=hint)
    try:
        event = resolve(history, EventRef(event_id))
    except SourceMissing as error:
        hint = _list_turns(history)
        raise SourceMissing(error.problem, operation="replay", place=error.place, hint=hint) from error
    if isinstance(event, Event) and event.type == OBSERVED:
        problem = f"{event_id} is a call of another program: it has no envelope and no pack"
        hint = "`daypack explain`, `diff` and `replay` show it"
        raise SourceMissing(problem, operation="replay", place=history.layout.events, hint=hint)
    if not isinstance(event, Event) or event.type != TURN:
        hint = _list_turns(history)
        raise SourceMissing(f"{event_id} is not a turn", operation="replay", place=history.layout.events, hint=hint)
    try:
        return msgspec.convert(expand(event.data), TurnRecord)
    except (msgspec.ValidationError, TypeError, AttributeError) as error:
        problem = f"{event_id} is not a valid turn: {error}"
        raise Damaged(problem, operation="replay", place=history.layout.events, hint=_DOCTOR) from error


def _list_turns(history: History) -> str:
    from shlex import quote  # noqa: PLC0415 — only for errors

    return f"`daypack turns {quote(history.layout.name)}` lists the turns"


def read_epoch(history: History, event_id: str) -> Epoch:
    """Return the epoch that began with an event, its prefix with texts."""
    record = read_turn(history, event_id)
    opening = record.opening
    if opening is None:
        problem = f"no epoch begins with {event_id}"
        raise Damaged(problem, operation="replay", place=history.layout.events, hint=_DOCTOR)
    return Epoch(
        event=event_id,
        reason=opening.reason,
        limits=record.limits,
        tokenizer=record.tokenizer,
        start=opening.start,
        head=opening.head,
        prefix=restore(history, opening.items),
        prefix_sha256=record.stable.prefix_sha256,
        skipped=opening.skipped,
        omitted=record.omitted if opening.skipped else (),
        stubbed=frozenset(opening.stubbed),
        refer_after=0 if opening.refers else record.last,
        compaction=_compaction(history, opening.compaction),
        memory=opening.memory,
    )


def replay_parts(
    history: History, record: TurnRecord, event_id: str, meter: TokenMeter, *, session: str, agent: str
) -> Parts:
    """Return the contents of a recorded turn, from history alone."""
    epoch = read_epoch(history, record.epoch or event_id)
    redacting = NOT_REDACTED not in record.redacted
    recent = RecentMessages(history, meter, redacting=redacting)
    messages: list[Message] = []
    for raw in _raw_messages(history, epoch, record.last):
        if not is_hidden_from(raw, record.target):
            message = recent.measure(raw, MESSAGE_TOKENS).message
            message = as_stub(raw, message) if raw.seq in epoch.stubbed else message
            messages.append(message_seen_by(message, record.target))
    repeats: dict[int, int] = {}
    if record.target in SEEN_BY_DEFAULT:
        repeats = find_repeats(messages, epoch.refer_after)
        messages = [as_repeat(message, repeats) for message in messages]
    head = 1 if epoch.head is not None and messages else 0
    return Parts(
        session=session,
        agent=agent,
        epoch=epoch,
        messages=(*messages[:head], *settle(messages[head:]).messages),
        repeats=repeats,
        additions=read_additions(history, record, meter),
        volatile=tuple(sorted(restore(history, record.items), key=volatile_order)),
        tools=_tools(history, record),
    )


def _tools(history: History, record: TurnRecord) -> tuple[dict[str, Any], ...]:
    if record.tools is None:
        return ()
    from daypack.turn.tools import load_tools  # noqa: PLC0415 — only for turns with tools

    return load_tools(history, record.tools.digest)


def read_additions(history: History, record: TurnRecord, meter: TokenMeter) -> tuple[Addition, ...]:
    """Return what a turn and those before it in its epoch added to the tail, in that order."""
    additions: list[Addition] = []
    while True:
        redacting = NOT_REDACTED not in record.redacted
        added: list[Addition] = []
        for ref in record.added:
            excerpts = _excerpts(history, ref.excerpts, meter, redacting=redacting)
            items = (*restore(history, ref.items), *excerpts)
            added.append(Addition(ref.after, tuple(sorted(items, key=volatile_order))))
        additions[:0] = added
        if record.carries is None:
            return tuple(additions)
        record = read_turn(history, record.carries)


def check_version(history: History, record: TurnRecord, event_id: str) -> None:
    """Raise ReplayMismatch for a turn of another version of daypack, Erased if something that it showed was erased."""
    if record.erased:
        from shlex import quote  # noqa: PLC0415 — only for errors

        log = f"daypack log {quote(history.layout.name)} --events"
        raise Erased(
            f"{event_id} no longer verifies: something that it showed was erased ({record.erased})",
            operation="replay",
            place=history.layout.folder,
            hint=f"nothing is damaged; {record.erased} records what was erased: `{log}`",
        )
    if not is_current(record.renderer):
        raise ReplayMismatch(
            f"{event_id} was rendered by version {record.renderer}, this is {VERSION}",
            operation="replay",
            place=history.layout.events,
            hint="replay it with the version of daypack that recorded it",
        )


def verify(history: History, turn: TurnView) -> None:
    """Raise ReplayMismatch if the digests of a rebuilt turn differ from the recorded ones."""
    digests = inject(turn.assembly, turn.inserted).sha256
    different = sorted(name for name, digest in turn.record.sha256.items() if digests.get(name) != digest)
    if different:
        raise ReplayMismatch(
            f"replay digest mismatch for {turn.event_id} ({', '.join(different)})",
            operation="replay",
            place=history.layout.folder,
            hint="a message or captured text was changed or erased since; see `daypack doctor`",
        )


def restore(history: History, items: Sequence[Item]) -> tuple[Item, ...]:
    """Return the items of a record with their texts and what is stated about them."""
    restored: list[Item] = []
    for item in items:
        whole = item if item.text else replace(item, text=_blob_of(history, item, item.digest).decode())
        if item.stated_digest:
            stated = msgspec.json.decode(_blob_of(history, item, item.stated_digest))
            whole = replace(whole, stated=stated, stated_digest="")
        restored.append(replace(whole, bytes=shown_bytes(show(whole))))
    return tuple(restored)


def _blob_of(history: History, item: Item, digest: str) -> bytes:
    try:
        return history.blobs.get(file_name_of(digest))
    except DaypackError as error:
        problem = f"the text of {item.id} is gone: {error.problem}"
        raise type(error)(problem, operation="replay", place=error.place, hint=error.hint) from error


def _excerpts(
    history: History, refs: Sequence[ExcerptRef], meter: TokenMeter, *, redacting: bool
) -> tuple[Excerpt, ...]:
    """Return the excerpts of a turn, from the messages themselves."""
    picked = history.messages.reader.pick([seq for seq, *_ in refs])
    excerpts = [
        excerpt(message, (start, stop), score, meter, redacting=redacting)
        for message, (_, start, stop, score) in zip(picked, refs, strict=False)
    ]
    if len(excerpts) < len(refs):
        problem = "a quoted message cannot be read"
        raise ReplayMismatch(problem, operation="replay", place=history.layout.messages, hint=_DOCTOR)
    return tuple(excerpts)


def _raw_messages(history: History, epoch: Epoch, last: int) -> list[Message]:
    head = list(history.messages.records(epoch.head, epoch.head)) if epoch.head is not None else []
    return [*head, *history.messages.records(epoch.start, last)]


def _compaction(history: History, event_id: str | None) -> CompactionInfo | None:
    """Return a compaction by its event; None if it cannot be read, which changes no byte that is sent."""
    if event_id is None:
        return None
    with suppress(DaypackError, msgspec.MsgspecError, KeyError, TypeError):
        event = resolve(history, EventRef(event_id))
        if isinstance(event, Event):
            return info_of(load(history, event))
    return None
