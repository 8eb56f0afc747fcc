"""Record: one event per turn, with references and digests in place of texts.

{"type":"context.turn","data":{"context_id":"ctx-…","target":"model","epoch":"ev-12","last":40,"used":[…],"sha256":{…}}}

The first turn of an epoch has an `opening` with the frozen prefix; the others name the event that has it (`epoch`).
`replay` reads both back.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from daypack.history.session import History
from daypack.text.redact.redact import RULES_VERSION
from daypack.turn.budget import Limits
from daypack.turn.caller.items import defaults_of
from daypack.turn.dialects import RENDERER
from daypack.turn.items import RUNTIME, Cost, Excerpt, Item, Missing, Omission
from daypack.turn.ledger import NOT_REDACTED, TURN
from daypack.turn.pack.assemble import Assembly
from daypack.turn.pack.fence import excerpts_text
from daypack.turn.pack.fit import Fitted
from daypack.turn.pack.inject import Injection
from daypack.turn.surface import Addition, Epoch, Surface
from daypack.turn.survey.history_search import WHOLE
from daypack.types.authority import MADE_FROM_HISTORY
from daypack.types.digest import digest_of, digest_text
from daypack.types.history import Event
from daypack.types.kinds import CONTEXT_KINDS, Target

if TYPE_CHECKING:
    from daypack.turn.tools import Tools

VERSION = f"{RENDERER}.{RULES_VERSION}"  # of everything that decides the bytes of a request

_SHORT_BYTES = 96  # what is stated about an item and is no longer than a digest with its name stays in the event
_PAST_DIGITS = 16
ExcerptRef = tuple[int, int, int, float]  # seq, span, score


def is_current(renderer: str) -> bool:
    """Return True if a turn was rendered by this version."""
    return renderer == VERSION


class Stable(Struct, frozen=True, omit_defaults=True):
    """What a prompt cache can reuse; the tokens include those of the tools, which every provider puts first."""

    tokens: int
    prefix_tokens: int
    prefix_sha256: str
    expected_cached_tokens: int
    cache_lost: str = ""  # why the provider's cache is of no use although the epoch continues: `tools_changed`


class ToolsRecord(Struct, frozen=True):
    """The tools of a turn; the definitions are the blob with the digest."""

    count: int
    tokens: int
    digest: str


class Opening(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What the turns of an epoch share."""

    reason: str  # an EpochReason; a newer version may have recorded another
    start: int
    head: int | None = None
    items: tuple[Item, ...] = ()
    skipped: dict[str, str] = {}
    stubbed: tuple[int, ...] = ()
    refers: bool = False  # all repeated outputs refer to the first copy; False: only those after the first turn
    compaction: str | None = None  # event of the compaction that its working state is from
    memory: str = ""  # the memory that the session was bound to


class AdditionRef(Struct, frozen=True, omit_defaults=True):
    """What a turn added to the tail after a message."""

    after: int
    items: tuple[Item, ...] = ()
    excerpts: tuple[ExcerptRef, ...] = ()
    past: str = ""  # first digits of the digest of the excerpts' text, by which it is recognised when it comes back


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
    tools: ToolsRecord | None = None
    ms: int | None = None  # time the survey took, if there was a limit
    first: int
    last: int
    user: int | None = None
    epoch: str | None = None
    opening: Opening | None = None
    added: tuple[AdditionRef, ...] = ()
    carries: str | None = None  # the newest event before it that added something to the same tail
    items: tuple[Item, ...] = ()  # after the tail
    omitted: tuple[Omission, ...] = ()
    missing: tuple[Missing, ...] = ()
    redacted: dict[str, tuple[str, ...]] = {}
    tail: tuple[int, int] = (0, 0)  # number of messages in the tail, seq of the last
    stable: Stable
    sha256: dict[str, str]
    ids: dict[str, Any] = {}  # the caller's own: see `TurnIds`
    erased: str = ""  # the event that erased something this turn showed: its digests are no longer comparable


class Packed(Struct, frozen=True, kw_only=True):
    """The results of the stages before the record."""

    session: str
    agent: str
    surface: Surface
    fitted: Fitted
    assembly: Assembly
    injection: Injection
    carries: str | None = None  # the newest event that added something to the tail that continues
    expected_cached_tokens: int = 0
    redacting: bool = True
    tools: "Tools | None" = None
    cache_lost: str = ""
    ids: dict[str, Any] = {}


def describe(packed: Packed) -> tuple[TurnRecord, Epoch]:
    """Return the record of a turn, with texts, and its epoch."""
    surface, fitted, assembly, tools = packed.surface, packed.fitted, packed.assembly, packed.tools
    epoch = surface.epoch
    if fitted.reason or epoch is None:
        epoch = _new_epoch(packed)
    identity = sha256(
        f"{packed.agent}/{packed.session}/{surface.target}/{surface.now}/{assembly.sha256}".encode()
    ).hexdigest()
    redacted: dict[str, tuple[str, ...]] = {} if packed.redacting else {NOT_REDACTED: ()}
    if packed.redacting and fitted.redacted:
        redacted = {str(seq): kinds for seq, kinds in fitted.redacted.items()}
    record = TurnRecord(
        renderer=VERSION,
        context_id=f"ctx-{identity[:24]}",
        target=surface.target,
        at=surface.now,
        tokenizer=surface.tokenizer,
        model=surface.model,
        limits=surface.limits,
        used=fitted.cost.plus(surface.tools),
        tools=ToolsRecord(len(tools.definitions), tools.cost.tokens, tools.digest) if tools else None,
        ms=surface.ms,
        first=surface.first,
        last=surface.last,
        user=surface.user.message.seq if surface.user else None,
        epoch=None if fitted.reason else epoch.event,
        opening=_opening(epoch) if fitted.reason else None,
        added=tuple(map(_added, fitted.added)),
        carries=packed.carries,
        items=fitted.volatile,
        omitted=fitted.omitted,
        missing=fitted.missing,
        redacted=redacted,
        tail=(len(fitted.messages), fitted.messages[-1].seq) if fitted.messages else (0, 0),
        stable=Stable(
            fitted.stable_cost.tokens + surface.tools.tokens,
            fitted.prefix_cost.tokens + surface.tools.tokens,
            assembly.prefix_sha256,
            packed.expected_cached_tokens,
            packed.cache_lost,
        ),
        sha256=packed.injection.sha256,
        ids=packed.ids,
    )
    return record, epoch


def _added(addition: Addition) -> AdditionRef:
    items = tuple(item for item in addition.items if not isinstance(item, Excerpt))
    shown = [item for item in addition.items if isinstance(item, Excerpt)]
    excerpts = tuple((item.seq, *item.span, round(item.score or 0.0, 3)) for item in shown)
    return AdditionRef(
        addition.after, items, excerpts, short_digest(digest_text(excerpts_text(shown))) if shown else ""
    )


def short_digest(digest: str) -> str:
    """Return the digits by which an event names the text of excerpts."""
    return digest.rpartition(":")[2][:_PAST_DIGITS]


def _new_epoch(packed: Packed) -> Epoch:
    surface, fitted = packed.surface, packed.fitted
    summary = any(item.kind == "context_doc" for item in fitted.prefix)
    return Epoch(
        event="",
        reason=fitted.reason or "first",
        limits=surface.limits,
        tokenizer=surface.tokenizer,
        start=fitted.start,
        head=fitted.head,
        prefix=fitted.prefix,
        prefix_sha256=packed.assembly.prefix_sha256,
        skipped=fitted.skipped,
        omitted=fitted.omitted if fitted.skipped else (),
        stubbed=fitted.stubbed,
        compaction=surface.compaction or (surface.summarized if summary else None),
        memory=surface.memory,
    )


def _opening(epoch: Epoch) -> Opening:
    return Opening(
        reason=epoch.reason,
        start=epoch.start,
        head=epoch.head,
        items=epoch.prefix,
        skipped=epoch.skipped,
        stubbed=tuple(sorted(epoch.stubbed)),
        refers=not epoch.refer_after,
        compaction=epoch.compaction.id if epoch.compaction else None,
        memory=epoch.memory,
    )


def append_record(history: History, record: TurnRecord) -> str:
    """Store the texts of a record, append it as an event and return the event's id."""
    items, opening = capture(history, record.items), record.opening
    if opening:
        opening = replace(opening, items=capture(history, opening.items))
    added = tuple(replace(addition, items=capture(history, addition.items)) for addition in record.added)
    data = _compact(replace(record, items=items, opening=opening, added=added))
    return history.append_event(Event(type=TURN, data=data)).id  # plain values: nothing to check


def capture(history: History, items: Sequence[Item]) -> tuple[Item, ...]:
    """Store the texts of items, and what is stated about them, and return the items without; what is short stays."""
    captured: list[Item] = []
    durable = history.config.durability == "sync"
    for item in items:
        if item.source == RUNTIME:
            captured.append(item)
            continue
        text = item.text.encode("utf-8", "replace")
        history.blobs.put(text, durable=durable)
        stated = msgspec.json.encode(item.stated)
        if len(stated) <= _SHORT_BYTES:
            captured.append(replace(item, text=""))
        else:
            digest = digest_of(history.blobs.put(stated, durable=durable))
            captured.append(replace(item, text="", stated={}, stated_digest=digest))
    return tuple(captured)


def _compact(record: TurnRecord) -> dict[str, Any]:
    """Return a record as it is stored: fields that follow from others are left out."""
    data = msgspec.to_builtins(record)
    data["items"] = list(map(_compact_item, record.items))
    if record.opening:
        data["opening"]["items"] = list(map(_compact_item, record.opening.items))
    if record.added:
        data["added"] = list(map(_compact_addition, record.added))
    return data


def _compact_addition(addition: AdditionRef) -> dict[str, Any]:
    data: dict[str, Any] = {"after": addition.after}
    if addition.items:
        data["items"] = list(map(_compact_item, addition.items))
    if addition.excerpts:
        data["excerpts"] = [
            [seq, score] if (start, stop) == WHOLE else [seq, start, stop, score]
            for seq, start, stop, score in addition.excerpts
        ]
    if addition.past:
        data["past"] = addition.past
    return data


def expand(data: dict[str, Any]) -> dict[str, Any]:
    """Return the stored data of a turn with the fields that were left out."""
    older = str(data.get("renderer")).startswith(_OLDER)
    data = {**data, "items": [_expand_item(item) for item in data.get("items", ())]}
    data["added"] = list(map(_expand_addition, data.get("added") or ()))
    if isinstance(data.get("opening"), dict):
        opening = cast(dict[str, Any], data["opening"])
        items = [_expand_item(item, older=older) for item in opening.get("items", ())]
        data["opening"] = {**opening, "items": items}
    return data


def _expand_addition(data: object) -> object:
    if not isinstance(data, dict):
        return data
    fields = cast(dict[str, Any], data)
    excerpts: list[Any] = fields.get("excerpts") or []
    return {
        **fields,
        "items": [_expand_item(item) for item in fields.get("items", ())],
        "excerpts": [[ref[0], *WHOLE, ref[1]] if len(ref) == 2 else ref for ref in excerpts],
    }


def _compact_item(item: Item) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.structs.asdict(item)
    defaults = _defaults(item.id, item.context_kind)
    del fields["bytes"]
    return msgspec.to_builtins({name: value for name, value in fields.items() if value != defaults.get(name, _UNSET)})


def _expand_item(data: object, *, older: bool = False) -> object:
    if isinstance(data, dict) and "id" in data and "context_kind" in data:
        fields = cast(dict[str, Any], data)
        if older and fields["id"] in _MADE:
            fields = {"authority": "agent", **fields}
        return {**_defaults(str(fields["id"]), fields["context_kind"]), **fields}
    return cast(object, data)


def _defaults(item_id: str, context_kind: Any) -> dict[str, Any]:  # noqa: ANN401 — whatever the event says
    if item_id.startswith("item:") and context_kind in CONTEXT_KINDS:
        return {**_DEFAULTS, **defaults_of(context_kind), "source": f"caller:{item_id[5:]}"}
    if item_id.startswith("pin:"):
        return {**_DEFAULTS, **_PINNED, "source": f"context/pinned/{item_id[4:]}"}
    return _OF_ITEM.get(item_id, _DEFAULTS)


_UNSET = object()
_DEFAULTS: dict[str, Any] = msgspec.structs.asdict(Item(id="", kind="custom", context_kind="custom", source=""))
for _required in ("id", "kind", "context_kind", "source", "bytes"):
    del _DEFAULTS[_required]
# What is left out of the items of a prefix. These values are part of the format and never change. None of them is a
# default of Item: events from before this table have them all, and are read as they were written.
_SHARED = ("model", "reviewer", "ui", "user", "peer_agent", "evidence_export")
_PINNED = {"kind": "system", "authority": "system", "placement": "prefix", "order": 20, "priority": 0.99}
_OF_ITEM = {
    "rules": {
        **_DEFAULTS,
        "kind": "system",
        "source": "rules",
        "title": "standing rules of the user, in the order given; "
        "a later rule wins over an earlier one on the same matter",
        "authority": "user",
        "placement": "prefix",
        "order": 45,
        "priority": 0.985,
    },
    "context_doc": {
        **_DEFAULTS,
        "kind": "context_doc",
        "source": "context/CONTEXT.md",
        "title": "CONTEXT.md",
        "authority": MADE_FROM_HISTORY,
        "visibility": _SHARED,
        "placement": "prefix",
        "order": 70,
        "priority": 0.86,
    },
    "refs": {
        **_DEFAULTS,
        "kind": "refs",
        "source": "context/refs.jsonl",
        "title": "refs",
        "authority": MADE_FROM_HISTORY,
        "visibility": _SHARED,
        "placement": "prefix",
        "order": 80,
    },
}
# Before renderer 5 these had the authority of an agent, which was left out.
_MADE = ("context_doc", "refs")
_OLDER = ("1.", "2.", "3.", "4.")
# Built at import: msgspec builds a type without a lock, and two threads doing it at once crash.
_WARM = msgspec.json.Decoder(TurnRecord)
