"""Evidence: one event for every turn, with references and digests instead of texts, and the way back from it.

{"type":"context.turn","data":{"context_id":"ctx-…","target":"model","epoch":"ev-12","last":40,"used":[…],"sha256":{…}}}

A turn that begins an epoch has a `opening` with the frozen prefix; the others name the event that has it (`epoch`).
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from daypack.derived.records import load
from daypack.errors import Damaged, DaypackError, ReplayMismatch, SourceMissing
from daypack.files import atomic, blobs
from daypack.history.resolve import resolve
from daypack.history.session import History
from daypack.turn.items import Cost, Item, Missing, Omission, Scales
from daypack.turn.ledger import TURN
from daypack.turn.limits import Limits
from daypack.turn.pack.fence import show, weigh_bytes
from daypack.turn.survey.caller_items import usual
from daypack.turn.survey.history_search import WHOLE, excerpt
from daypack.turn.survey.surface import Brief, Epoch
from daypack.types.compaction import Compaction
from daypack.types.digest import file_name_of
from daypack.types.history import Event, Message
from daypack.types.kinds import CONTEXT_KINDS, Target
from daypack.types.source import EventRef

_TOLD_LOSSES = 5  # loss notes that an envelope repeats
CLOCK = "daypack:runtime"  # the source of the item that tells the time


class Stable(Struct, frozen=True):
    """What a prompt cache can reuse."""

    tokens: int
    prefix_tokens: int
    prefix_sha256: str
    expected_cached_tokens: int


class Opening(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What the turns of an epoch share."""

    reason: str
    start: int
    head: int | None = None
    items: tuple[Item, ...] = ()
    skipped: dict[str, str] = {}
    masked: tuple[int, ...] = ()
    compaction: str | None = None  # the event of the one its working state was made by


class TurnRecord(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The data of a `context.turn` event."""

    renderer: str
    context_id: str
    target: Target
    at: str
    tokenizer: str
    model: str | None = None
    limits: Limits
    used: Cost
    ms: int | None = None  # what the survey took, when there was a limit to it
    first: int
    last: int
    user: int | None = None
    epoch: str | None = None
    opening: Opening | None = None
    items: tuple[Item, ...] = ()
    past: tuple[tuple[int, int, int, float], ...] = ()
    omitted: tuple[Omission, ...] = ()
    missing: tuple[Missing, ...] = ()
    redacted: dict[str, tuple[str, ...]] = {}
    shown: tuple[int, int] = (0, 0)  # how many messages the tail has, and the number of the last
    stable: Stable
    sha256: dict[str, str]


def capture(history: History, items: Sequence[Item], *, durable: bool) -> tuple[Item, ...]:
    """Keep the texts of items and return the items without them; only the time is short and for everybody."""
    kept: list[Item] = []
    for item in items:
        if item.source == CLOCK:
            kept.append(item)
            continue
        atomic.make_folders(history.layout.blob)
        blobs.put(history.layout.blob, item.text.encode("utf-8", "replace"), durable=durable)
        kept.append(replace(item, text=""))
    return tuple(kept)


def restore(history: History, items: Sequence[Item]) -> tuple[Item, ...]:
    """Return the items of a record with their texts."""
    return tuple(_whole(item if item.text else replace(item, text=_kept(history, item))) for item in items)


def _whole(item: Item) -> Item:
    return replace(item, bytes=weigh_bytes(show(item)))


def brief(record: TurnRecord) -> dict[str, Any]:
    """Return a record as it is stored: what follows from something else is left out."""
    data = msgspec.to_builtins(record)
    data["items"] = [_brief(item) for item in record.items]
    if record.opening:
        data["opening"]["items"] = [_brief(item) for item in record.opening.items]
    if record.past:
        data["past"] = [
            [seq, score] if (start, stop) == WHOLE else [seq, start, stop, score]
            for seq, start, stop, score in record.past
        ]
    return data


def _brief(item: Item) -> dict[str, Any]:
    own: dict[str, Any] = msgspec.structs.asdict(item)
    usually = _usually(item.id, item.context_kind)
    del own["bytes"]
    return msgspec.to_builtins({name: value for name, value in own.items() if value != usually.get(name, _UNSET)})


def _unbrief(data: object) -> object:
    if isinstance(data, dict) and "id" in data and "context_kind" in data:
        known = cast(dict[str, Any], data)
        return {**_usually(str(known["id"]), known["context_kind"]), **known}
    return cast(object, data)


def _usually(item_id: str, context_kind: Any) -> dict[str, Any]:  # noqa: ANN401 — whatever the event says
    if item_id.startswith("item:") and context_kind in CONTEXT_KINDS:
        return {**_DEFAULTS, **usual(context_kind), "source": f"caller:{item_id[5:]}"}
    return _DEFAULTS


_UNSET = object()
_DEFAULTS: dict[str, Any] = msgspec.structs.asdict(Item(id="", kind="custom", context_kind="custom", source=""))
for _required in ("id", "kind", "context_kind", "source", "bytes"):
    del _DEFAULTS[_required]


def _kept(history: History, item: Item) -> str:
    try:
        return blobs.get(history.layout.blob, file_name_of(item.digest)).decode()
    except DaypackError as error:
        raise type(error)(
            f"the text of {item.id} is gone: {error.problem}", operation="replay", place=error.place, hint=error.hint
        ) from error


def recall_past(
    history: History, past: Sequence[tuple[int, int, int, float]], scales: Scales, *, redacting: bool
) -> tuple[Item, ...]:
    """Return the excerpts a turn showed, from the messages themselves."""
    items = [
        excerpt(message, (start, stop), score, scales, redacting=redacting)
        for message, (_, start, stop, score) in zip(
            history.messages.reader.pick([seq for seq, *_ in past]), past, strict=False
        )
    ]
    if len(items) < len(past):
        raise ReplayMismatch(
            "a message it quoted cannot be read", operation="replay", place=history.layout.messages, hint=_DOCTOR
        )
    return tuple(items)


def read_turn(history: History, event_id: str) -> TurnRecord:
    """Return the record of a turn by the id of its event."""
    event = resolve(history, EventRef(event_id))
    if not isinstance(event, Event) or event.type != TURN:
        raise SourceMissing(
            f"{event_id} is no turn",
            operation="replay",
            place=history.layout.events,
            hint=f"see `daypack log --events` for events of type {TURN}",
        )
    try:
        return msgspec.convert(_unbriefed(event.data), TurnRecord)
    except (msgspec.ValidationError, TypeError, AttributeError) as error:
        raise Damaged(
            f"{event_id} does not read as a turn: {error}",
            operation="replay",
            place=history.layout.events,
            hint=_DOCTOR,
        ) from error


def _unbriefed(data: dict[str, Any]) -> dict[str, Any]:
    data = {**data, "items": [_unbrief(item) for item in data.get("items", ())]}
    past: list[Any] = data.get("past") or []
    data["past"] = [[one[0], *WHOLE, one[1]] if len(one) == 2 else one for one in past]
    if isinstance(data.get("opening"), dict):
        data["opening"] = {**data["opening"], "items": [_unbrief(one) for one in data["opening"].get("items", ())]}
    return data


def read_epoch(history: History, event_id: str) -> Epoch:
    """Return the epoch that began with an event, its prefix with texts."""
    record = read_turn(history, event_id)
    if record.opening is None:
        raise Damaged(f"{event_id} begins no epoch", operation="replay", place=history.layout.events, hint=_DOCTOR)
    opening = record.opening
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
        masked=frozenset(opening.masked),
        last=record.last,
        compaction=_compaction(history, opening.compaction),
    )


def opening_of(epoch: Epoch) -> Opening:
    """Return what the first turn of an epoch records of it."""
    return Opening(
        reason=epoch.reason,
        start=epoch.start,
        head=epoch.head,
        items=epoch.prefix,
        skipped=epoch.skipped,
        masked=tuple(sorted(epoch.masked)),
        compaction=epoch.compaction.id if epoch.compaction else None,
    )


def _compaction(history: History, event_id: str | None) -> Brief | None:
    """Return a compaction by its event; None when it cannot be read any more, which changes no byte that is sent."""
    if event_id is None:
        return None
    with suppress(DaypackError, msgspec.MsgspecError, KeyError, TypeError):
        event = resolve(history, EventRef(event_id))
        if isinstance(event, Event):
            return brief_of(load(history, event))
    return None


def brief_of(compaction: Compaction) -> Brief:
    """Return what turns repeat of a compaction."""
    ranges = [one.id for one in compaction.swapped if one.kind == "message_range"]
    notes = tuple(f"{one.reason}: {one.what}" for one in compaction.losses[:_TOLD_LOSSES])
    return Brief(
        id=compaction.id,
        source=compaction.source,
        start=compaction.start,
        through=compaction.through,
        method=compaction.method,
        trigger=compaction.trigger,
        model=compaction.model,
        before_tokens=compaction.before_tokens,
        after_tokens=compaction.after_tokens,
        losses=notes,
        swap=ranges[0] if ranges else None,
    )


def messages_of(history: History, epoch: Epoch, last: int) -> list[Message]:
    """Return the raw messages of a turn's tail, its head first."""
    head = list(history.messages.records(epoch.head, epoch.head)) if epoch.head is not None else []
    return [*head, *history.messages.records(epoch.start, last)]


_DOCTOR = "see `daypack doctor`"
# Made here, not by the first who needs it: the library does that without a lock, and two threads at once crash it.
_WARM = msgspec.json.Decoder(TurnRecord)
