"""`survey`: read everything a turn could use. The only stage with a clock and with files."""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from daypack.derived.children import read_children
from daypack.history.session import History
from daypack.text.injected import TIME
from daypack.text.redact.redact import redact
from daypack.turn.evidence.record import CLOCK
from daypack.turn.items import SEEN_BY_DEFAULT, Cost, Entry, Item, Missing, Omission, Scales, total
from daypack.turn.pack.fence import weigher
from daypack.turn.pack.stubs import FRESH, Masks, is_large
from daypack.turn.pack.volatile import MAX_FOLLOWING_TOKENS
from daypack.turn.survey import sources
from daypack.turn.survey.changes import changes
from daypack.turn.survey.imported_envelopes import imported_items, within_share
from daypack.turn.survey.inputs import TurnInputs, now_of
from daypack.turn.survey.memory import memory_document, memory_hits
from daypack.turn.survey.sources import Found
from daypack.turn.survey.surface import Brief, Epoch, Request, Surface
from daypack.turn.survey.tiers import tier_items
from daypack.types.history import Message, Other, Part, Thinking
from daypack.types.kinds import Target

# Who sees the conversation; a tool and the runtime get only what names them.
READERS: frozenset[Target] = frozenset({"model", "ui", "user", "reviewer", "peer_agent", "evidence_export"})
_OUTSIDE: frozenset[Target] = frozenset({"ui", "user", "peer_agent"})  # these see neither instructions nor thinking
_SEALED_THINKING = ("thinking", "redacted_thinking", "reasoning")
_ATTEMPTS = 4  # to read messages while nobody appends any


def survey(inputs: TurnInputs, request: Request, epoch: Epoch | None) -> Surface:
    """Return what is available to this turn."""
    scales = inputs.scales(inputs.counter(request.model))
    weigh = weigher(scales, redacting=inputs.redacting)
    history, target = inputs.history, request.target
    folded = inputs.ledger.read()
    opening = history.messages.reader.read(0, sources.LEADING)
    going_on = bool(epoch and epoch.limits == request.limits and epoch.tokenizer == scales.counter.name)
    compaction = inputs.working.brief() if target in SEEN_BY_DEFAULT else None
    first = _first(opening)
    read = _read_messages(inputs, request, scales, epoch if going_on else None, (first, compaction))
    found = list(_sources(inputs, request, folded.switches, opening))
    found += sources.children(read_children(history, recorded=folded.children))
    found += tier_items(inputs, request, read.user, scales)
    imported = list(imported_items(history, folded.imported))
    weighed = [weigh(item) for item in imported if isinstance(item, Item)]
    imports, unused = within_share(weighed, target, min(MAX_FOLLOWING_TOKENS, request.limits.room.tokens // 4))
    found += [one for one in imported if not isinstance(one, Item)]
    found += unused
    prefix = [weigh(item) for item in found if isinstance(item, Item) and item.placement == "prefix"]
    prefix += [weigh(item) for item in request.items if item.placement == "prefix"]
    volatile = [weigh(_clock(request.start_seconds))]
    offered = [item for item in (*request.items, *found) if isinstance(item, Item)]
    volatile += [weigh(item) for item in offered if item.placement == "volatile"] + imports
    missing = [one for one in found if isinstance(one, Missing)] + list(folded.questions.values())
    if read.user and target in SEEN_BY_DEFAULT:
        in_time = _deadline(history, request)
        asked = total(one.cost for one in (*read.entries, *prefix, *volatile))
        since = epoch.start if epoch and going_on else None
        if not read.complete or (since or 0) > read.first or not asked.within(request.limits.room):
            below = since or _searched(read, request.limits.room)
            items, missed = inputs.past.find(read.user.message, (below, read.last), scales, in_time)
            volatile += items
            missing += missed
        items, missed = memory_hits(inputs.memory, read.user.message.text, in_time)
        volatile += [weigh(item) for item in items]
        missing += missed
    missing = [one for one in missing if _may_miss(one, target)]
    notes, waiting = changes(epoch, prefix, weigh) if epoch and going_on else ((), ())
    omitted = [*(one for one in found if isinstance(one, Omission)), *read.omitted]
    return Surface(
        target=target,
        now=now_of(request.start_seconds),
        limits=request.limits,
        tokenizer=scales.counter.name,
        model=request.model or inputs.config.model,
        prefix=tuple(prefix),
        volatile=tuple(volatile),
        notes=notes,
        waiting=waiting,
        entries=read.entries,
        complete=read.complete,
        first=read.first,
        last=read.last,
        user=read.user,
        head=read.head,
        epoch=epoch,
        masks=read.masks,
        compaction=compaction,
        reserved_tokens=request.reserved_tokens // (4 if compaction else 1),
        shown=request.shown,
        ms=None if request.limits.ms is None else _spent_ms(history, request),
        omitted=tuple(map(_cleared_note, omitted) if inputs.redacting else omitted),
        missing=tuple(map(_cleared, missing) if inputs.redacting else missing),
    )


def _searched(read: "_Read", room: Cost) -> int:
    """Return below which number a new epoch looks for the past: what its user message asks for was said before that.

    In a turn that is longer than its window, what was done since may have left it as well.
    """
    user = read.user.message.seq if read.user else 0
    since = total(entry.cost for entry in read.entries if entry.message.seq > user)
    return user if since.within(room.part(0.5)) else read.last + 1


def _may_miss(missing: Missing, target: Target) -> bool:
    """Whether a target may know that something is missing: those outside know of questions and of children only."""
    return target in SEEN_BY_DEFAULT or (target in _OUTSIDE and missing.id.startswith(("q-", "child:")))


def _cleared(missing: Missing) -> Missing:
    """A question quotes what it is about: secrets do not leave through it either."""
    texts = {name: getattr(missing, name) for name in ("id", "question", "needed_for", "requested")}
    return replace(missing, **{name: redact(text).text for name, text in texts.items() if text})


def _cleared_note(omitted: Omission) -> Omission:
    return replace(omitted, item=redact(omitted.item).text, note=omitted.note and redact(omitted.note).text)


def _first(opening: Sequence[Message]) -> int:
    """Return the number of the first message that does not belong to the prefix."""
    for message in opening:
        if message.role == "user":
            return message.seq
    # No user among the first few: nothing of it is a greeting.
    return opening[0].seq if opening else 1


def _sources(
    inputs: TurnInputs, request: Request, switches: dict[str, bool], opening: Sequence[Message]
) -> Iterator[Found]:
    layout, workspace = inputs.history.layout, inputs.workspace
    if switches.get("identity", True):
        yield from sources.identity(request.model or inputs.config.model, workspace, layout)
    if any(message.role == "user" for message in opening):
        yield from sources.leading(opening)
    yield from sources.pinned(inputs.history.pins())
    yield from sources.switched(switches, layout)
    yield from sources.workspace_files(workspace)
    yield from memory_document(inputs.memory)
    yield from sources.working_state(layout, rendered=inputs.working.read().current is not None)
    yield from sources.refs(layout, workspace, request.limits.room.tokens)


class _Read(Struct, frozen=True, kw_only=True):
    """The messages of the tail or those a new one is cut from, the newest of the user, and the tail's head."""

    entries: tuple[Entry, ...] = ()
    complete: bool = True
    first: int
    last: int
    user: Entry | None = None
    head: Entry | None = None
    omitted: tuple[Omission, ...] = ()
    masks: tuple[dict[int, Entry], ...] = ()


Bounds = tuple[int, Brief | None]  # the first message that is no instruction; what was compacted


def _read_messages(inputs: TurnInputs, request: Request, scales: Scales, epoch: Epoch | None, bounds: Bounds) -> _Read:
    first, _ = bounds
    reader = inputs.history.messages.reader
    last = reader.newest().seq
    if request.target not in READERS:
        hidden = f"messages:{first}-{last}" if last > first else f"messages:{first}"
        omitted = (Omission(item=hidden, reason="not_visible_to_target"),) if last >= first else ()
        return _Read(first=last + 1, last=last, omitted=omitted)
    read = _messages(inputs, request, scales, epoch, bounds)
    for _ in range(_ATTEMPTS):
        newest = reader.newest().seq
        if newest == last:
            return replace(read, last=last)
        # Others append meanwhile: what is recorded must be what was read.
        last, read = newest, _messages(inputs, request, scales, epoch, bounds)
    entries = tuple(entry for entry in read.entries if entry.message.seq <= last)
    known = [entry for entry in entries if entry.message.role == "user"]
    user = read.user if read.user and read.user.message.seq <= last else None
    return replace(read, entries=entries, user=user or (known[-1] if known else None), last=last)


def _messages(inputs: TurnInputs, request: Request, scales: Scales, epoch: Epoch | None, bounds: Bounds) -> _Read:
    first, compaction = bounds
    recent, room = inputs.recent(scales), request.limits.room
    inside = request.target in SEEN_BY_DEFAULT
    masks: tuple[dict[int, Entry], ...] = ()
    user = recent.find_user()
    head: Entry | None = None
    entries: list[Entry] = []
    complete = False
    follows = epoch is not None and recent.weigh_since(epoch.start, epoch.masked) <= 2 * room.tokens
    if not follows:
        entries, complete = recent.newest(room, _Lighten(inputs.masks(scales), room) if inside else None)
        # What is never shown may weigh much, and what waits for results: if the whole tail is read, it may go on.
        follows = epoch is not None and bool(entries) and entries[0].message.seq <= epoch.start
    if epoch and follows:
        entries, head = _tail_of(inputs, request, scales, epoch)
        complete = epoch.start <= first
    else:
        if compaction and entries and entries[0].message.seq <= compaction.through:
            entries = [entry for entry in entries if entry.message.seq > compaction.through]
            complete = False
        if inside:
            masks = inputs.masks(scales).choose(entries)
        if entries and not complete:
            # Whose turn the messages belong to that are read, if they begin in the middle of one.
            before = recent.user_before(entries[0].message.seq)
            head = before and _as_seen(before, request.target)
    if complete or (entries and entries[0].message.seq <= first):
        entries = [entry for entry in entries if entry.message.seq >= first]
        complete = True
    omitted: list[Omission] = []
    if request.target in _OUTSIDE:
        hidden = [entry.message.seq for entry in entries if hides(entry.message, request.target)]
        omitted = [Omission(item=f"messages:{seq}", reason="not_visible_to_target") for seq in hidden]
        entries = [_as_seen(entry, request.target) for entry in entries if not hides(entry.message, request.target)]
        user = user and _as_seen(user, request.target)
    return _Read(
        entries=tuple(entries),
        complete=complete,
        first=first,
        last=0,
        user=user,
        head=head,
        omitted=tuple(omitted),
        masks=masks,
    )


def _tail_of(inputs: TurnInputs, request: Request, scales: Scales, epoch: Epoch) -> tuple[list[Entry], Entry | None]:
    """Return the messages of an epoch from where it begins, as its turns show them, and its head."""
    recent = inputs.recent(scales)
    entries = recent.since(epoch.start)
    head: Entry | None = None
    if epoch.head is not None:
        for message in inputs.history.messages.records(epoch.head, epoch.head):
            head = _as_seen(recent.weigh(message), request.target)
    recent.forget_before(epoch.start)
    if epoch.masked:
        entries = inputs.masks(scales).apply(entries, epoch.masked)
    if request.target in SEEN_BY_DEFAULT:
        entries = inputs.masks(scales).refer(entries, epoch.last)
    return entries, head


class _Lighten:
    """Weighs messages newest first, in their shorter form large outputs behind the newest few, and any huge one."""

    def __init__(self, masks: Masks, room: Cost) -> None:
        self._masks = masks
        self._half = room.part(0.5)
        self._outputs = 0

    def __call__(self, entry: Entry) -> Cost:
        if entry.message.role == "tool":
            self._outputs += 1
            if is_large(entry) and (self._outputs > FRESH or not entry.cost.within(self._half)):
                return self._masks.mask(entry).cost
        return entry.cost


def _as_seen(entry: Entry, target: Target) -> Entry:
    if target not in _OUTSIDE:
        return entry
    return entry._replace(message=as_seen(entry.message, target))


def as_seen(message: Message, target: Target) -> Message:
    """Return a message as a target sees it: thinking is for those inside."""
    if target in _OUTSIDE and not isinstance(message.content, str):
        parts = tuple(part for part in message.content if not _is_thinking(part))
        if len(parts) != len(message.content):
            return replace(message, content=parts)
    return message


def _is_thinking(part: Part) -> bool:
    return isinstance(part, Thinking) or (isinstance(part, Other) and part.value.get("type") in _SEALED_THINKING)


def hides(message: Message, target: Target) -> bool:
    """Whether a message is not shown to a target at all."""
    return target not in READERS or (target in _OUTSIDE and message.role == "system")


def _deadline(history: History, request: Request) -> Callable[[], bool]:
    ms = request.limits.ms
    if ms is None:
        return lambda: True
    return lambda: _spent_ms(history, request) < ms


def _spent_ms(history: History, request: Request) -> int:
    return max(0, int((history.clock() - request.start_seconds) * 1000))


def _clock(seconds: float) -> Item:
    return Item(
        id="runtime",
        kind="runtime_block",
        context_kind="runtime_state",
        source=CLOCK,
        text=f"{TIME}{now_of(seconds)[:19]}Z",
        authority="system",
        visibility=("model", "runtime", "reviewer", "evidence_export"),
        order=90,
        priority=0.98,
    )
