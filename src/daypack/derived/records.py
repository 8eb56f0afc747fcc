"""Records: the typed content of all accepted compactions, with stable ids.

    {"type":"context.compaction.completed","data":{"source":"messages:1-120","through":120,"records":{…},"refs":[…],…}}
    {"type":"context.compaction.undone","data":{"compaction":"ev-40"}}

The fold of these events is all there is to the derived files: no model runs again, and no earlier record is changed. A
record that comes again keeps its id and its words.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from daypack.derived.template import MAX_BULLET_CHARS, MAX_BULLETS
from daypack.errors import DaypackError
from daypack.history.session import History
from daypack.types.compaction import SECTIONS, Bullet, Compaction, Loss, LossReason, Records, Section
from daypack.types.history import Event
from daypack.types.records import ContextDoc, Decision, ErrorRecord, Fact, Ref, Summary, SwapRecord, Todo

COMPACTED = "context.compaction.completed"
UNDONE = "context.compaction.undone"
INLINE_BYTES = 1 << 16  # a compaction of at most this size is stored in its event, a larger one in blob/
_BULK = ("records", "refs", "swapped")
_AGEING = 0.93  # applied to a record's weight with every compaction that does not confirm it
_NEWER = 0.1  # what is new goes before what is as good and old


class Folded(Struct):
    """The fold of all compactions so far."""

    accepted: list[Compaction] = []  # not undone, oldest first
    undone: list[str] = []
    refs: dict[str, Ref] = {}  # by path
    swapped: dict[str, SwapRecord] = {}  # by id
    numbers: dict[str, int] = {}  # letter -> the highest number ever given
    farthest: int = 0  # the last message that left the window in any compaction, including undone compactions
    ids: dict[str, str] = {}  # letter and words -> the id they had, also after their record was dropped

    def copied(self) -> "Folded":
        """Return an independent copy of a fold."""
        return Folded(
            [*self.accepted],
            [*self.undone],
            {**self.refs},
            {**self.swapped},
            {**self.numbers},
            self.farthest,
            {**self.ids},
        )

    @property
    def current(self) -> Compaction | None:
        """The newest compaction."""
        return self.accepted[-1] if self.accepted else None

    @property
    def records(self) -> Records:
        """The records of the newest compaction."""
        return self.accepted[-1].records if self.accepted else Records()

    @property
    def through(self) -> int:
        """The number of the last message that left the window by a compaction."""
        return self.accepted[-1].through if self.accepted else 0


def fold(history: History, events: Iterable[Event], onto: Folded | None = None) -> Folded:
    """Return what events say about compactions; others are passed over, and so is one that cannot be read."""
    folded = onto.copied() if onto else Folded()
    for event in events:
        if event.type == COMPACTED:
            try:
                compaction = load(history, event)
            except (DaypackError, msgspec.ValidationError, msgspec.DecodeError, KeyError, TypeError):
                continue  # of another writer, or damaged: `doctor` reports it
            folded.accepted.append(compaction)
            folded.farthest = max(folded.farthest, compaction.through)
            _count(folded, compaction)
            # What is swapped stays known by its id, also when the compaction is taken back.
            folded.swapped.update((swap.id, swap) for swap in compaction.swapped)
        elif event.type == UNDONE:
            name = event.data.get("compaction")
            kept = [earlier for earlier in folded.accepted if earlier.id != name]
            if len(kept) < len(folded.accepted):
                folded.accepted, folded.undone = kept, [*folded.undone, str(name)]
    folded.refs = {ref.path: ref for compaction in folded.accepted for ref in compaction.refs}
    return folded


def store(history: History, compaction: Compaction) -> dict[str, Any]:
    """Return the data of a compaction's event; the bulk of a large one is captured in a blob."""
    data: dict[str, Any] = msgspec.to_builtins(compaction)
    data.pop("id", None)
    data.pop("at", None)
    bulk = {name: data[name] for name in _BULK if name in data}
    encoded = msgspec.json.encode(bulk)
    if len(encoded) > INLINE_BYTES:
        data = {name: value for name, value in data.items() if name not in _BULK}
        data["bulk"] = history.capture(encoded)
    return data


def load(history: History, event: Event) -> Compaction:
    """Return the compaction of an event."""
    data: dict[str, Any] = {**event.data, "id": event.id, "at": event.ts}
    if kept := data.pop("bulk", None):
        data |= msgspec.json.decode(history.captured(kept))
    compaction = msgspec.convert(data, Compaction)
    refs = tuple(replace(ref, compaction=event.id) for ref in compaction.refs)
    return replace(compaction, records=with_compaction(compaction.records, event.id), refs=refs)


def _count(folded: Folded, compaction: Compaction) -> None:
    records, numbers = compaction.records, folded.numbers
    named = [
        (decision.id, words_of(decision))
        for decision in (*records.decisions, *records.facts, *records.todos, *records.errors)
    ]
    for name, words in (*named, *((ref.id, "") for ref in compaction.refs)):
        letter, number = name[:1], name[1:]
        if number.isdecimal():
            numbers[letter] = max(numbers.get(letter, 0), int(number))
        if words:
            folded.ids.setdefault(letter + _plain(words), name)


def words_of(record: Decision | Fact | Todo | ErrorRecord) -> str:
    """Return what a record says."""
    if isinstance(record, Decision):
        return record.decision
    return record.error if isinstance(record, ErrorRecord) else record.text


class RecordUpdate(Struct, frozen=True):
    """The records after a compaction, and the records that were dropped."""

    records: Records
    losses: tuple[Loss, ...]


Weigh = Callable[[str, Section], float]


def update_records(
    folded: Folded,
    bullets: Sequence[Bullet],
    weigh: Weigh,
    retired: Mapping[str, LossReason] | None = None,
    cures: Mapping[str, str] | None = None,
) -> RecordUpdate:
    """Join new bullets to the current records: same words, same record.

    `retired`: ids of records that do not hold any more, and why; `cures`: ids of errors, and what resolved them. At
    most ten of each section stay. Older records are dropped first unless they weigh more; what contradicts an older
    record supersedes it. Nothing is merged because it merely looks alike.
    """
    numbers = dict(folded.numbers)
    former = folded.records
    losses: list[Loss] = []
    ages = {compaction.id: len(folded.accepted) - at for at, compaction in enumerate(folded.accepted)}
    pool = _Pool(weigh, (numbers, folded.ids), ages, losses)
    gone = dict(retired or {})
    # Errors that were already resolved at the last compaction are dropped.
    gone.update((error.id, "resolved") for error in former.errors if error.resolution)
    every = (*former.decisions, *former.facts, *former.todos, *former.errors)
    losses += [
        Loss(words_of(record), gone[record.id], f"{record.id}, {record.source}")
        for record in every
        if record.id in gone
    ]

    def standing(records: Iterable[Any]) -> list[Any]:
        return [record for record in records if record.id not in gone]

    task = next((bullet for bullet in bullets if bullet.section == "task"), None)
    of = {name: [bullet for bullet in bullets if bullet.section == name] for name in SECTIONS}
    decisions = pool.join(standing(former.decisions), of["decisions"], _decision)
    facts = pool.join(standing(former.facts), of["facts"], _fact)
    todos = pool.join(standing(former.todos), of["pending"], _todo)
    cured = cures or {}
    trouble = [
        replace(error, resolution=cured[error.id], keys=()) if error.id in cured else error
        for error in standing(former.errors)
    ]
    errors = pool.join(trouble, of["errors"], _error)
    summary = Summary(task.text, task.source, task.weight) if task else former.task
    if former.task and summary and _plain(former.task.text) == _plain(summary.text):
        summary = former.task
    elif former.task and summary is not former.task:
        losses.append(Loss(former.task.text, "superseded", former.task.source))
    return RecordUpdate(Records(summary, decisions, facts, todos, errors), tuple(losses))


def document(records: Records) -> ContextDoc:
    """Return the content of CONTEXT.md."""
    errors = tuple(_error_line(error) for error in records.errors)
    return ContextDoc(
        task=records.task.text if records.task else "",
        decisions=tuple(decision.decision for decision in records.decisions),
        facts=tuple(_fact_line(fact) for fact in records.facts),
        pending=tuple(todo.text for todo in records.todos if not todo.done),
        errors=errors,
    )


def _fact_line(fact: Fact) -> str:
    """Return a fact; a command with what it is for."""
    return f"{fact.text} — {fact.purpose}" if fact.purpose else fact.text


def _error_line(record: ErrorRecord) -> str:
    """Return an error with its cause and its resolution as far as they fit into a bullet of one sentence."""
    if not record.resolution:
        return record.error
    from daypack.text.sentences import sentences  # noqa: PLC0415 — 5 ms that a turn need not pay

    error, end = record.error.rstrip("."), f"resolved by {record.resolution}"
    wordings = [f"{error} — {end}"]
    if record.cause:
        wordings.insert(0, f"{error} — cause: {record.cause}; {end}")
    fitting = (line for line in wordings if len(line) <= MAX_BULLET_CHARS and len(sentences(line)) == 1)
    return next(fitting, record.error)


def without_lightest(records: Records) -> tuple[Records, Loss | None]:
    """Drop the lightest fact, else error, todo or decision, and return its loss; None if nothing is left to drop."""
    for name in ("facts", "errors", "todos", "decisions"):
        section: tuple[Any, ...] = getattr(records, name)
        if section:
            least = min(section, key=lambda record: getattr(record, "weight", 0.0))
            kept = tuple(record for record in section if record is not least)
            return replace(records, **{name: kept}), Loss(words_of(least), "over_limit", f"{least.id}, {least.source}")
    return records, None


def number_refs(folded: Folded, found: Iterable[Ref], join: Callable[[Ref, Ref], Ref]) -> tuple[Ref, ...]:
    """Return the refs that are new or changed, with their ids; a path keeps the id it has."""
    highest = folded.numbers.get("r", 0)
    numbered: list[Ref] = []
    for ref in found:
        known = folded.refs.get(ref.path)
        if known is None:
            highest += 1
            numbered.append(replace(ref, id=f"r{highest}"))
            continue
        numbered.append(replace(join(known, ref), id=known.id, compaction=None))
    return tuple(numbered)


def with_compaction(records: Records, event_id: str) -> Records:
    """Set the event id in new records; older records keep theirs."""

    def marked(section: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(record if record.compaction else replace(record, compaction=event_id) for record in section)

    task = records.task
    if task and not task.compaction:
        task = replace(task, compaction=event_id)
    return Records(
        task, marked(records.decisions), marked(records.facts), marked(records.todos), marked(records.errors)
    )


class _Pool:
    """Joins sections one after the other."""

    def __init__(
        self, weigh: Weigh, names: tuple[dict[str, int], dict[str, str]], ages: Mapping[str, int], losses: list[Loss]
    ) -> None:
        self._weigh = weigh
        self._numbers, self._ids = names
        self._ages = ages
        self._losses = losses

    def join(self, former: Sequence[Any], bullets: Sequence[Bullet], shape: "_Shape") -> tuple[Any, ...]:
        known = {_plain(shape.words(record)): record for record in former}
        weights: dict[str, float] = {}
        kept: dict[str, Any] = {}
        for earlier in former:
            own = getattr(earlier, "weight", 0.0) or self._weigh(shape.words(earlier), shape.section)
            weights[earlier.id] = own * _AGEING ** self._ages.get(earlier.compaction or "", 1)
            kept[earlier.id] = earlier
        fresh: list[str] = []
        for bullet in bullets:
            same = known.get(_plain(bullet.text))
            if same is None:
                record = shape.make(self._name(shape.letter, bullet.text), bullet)
                known[_plain(bullet.text)] = kept[record.id] = record
                weights[record.id] = (bullet.weight or self._weigh(bullet.text, shape.section)) + _NEWER
                fresh.append(record.id)
            else:
                # Found again: the record is unchanged and counts as new.
                weights[same.id] = max(weights.get(same.id, 0.0), bullet.weight) + _NEWER
                if isinstance(same, ErrorRecord) and bullet.resolution and not same.resolution:
                    kept[same.id] = replace(same, resolution=bullet.resolution)
                elif isinstance(same, Fact | Decision) and same.compaction and bullet.source != same.source:
                    kept[same.id] = replace(same, confirmed=same.confirmed + 1)
        self._supersede(former, fresh, kept, shape)
        best = sorted(kept, key=lambda name: -weights[name])
        for name in best[MAX_BULLETS:]:
            self._losses.append(Loss(shape.words(kept[name]), "displaced", f"{name}, {kept[name].source}"))
        return tuple(kept[name] for name in sorted(best[:MAX_BULLETS], key=lambda name: int(name[1:])))

    def _name(self, letter: str, text: str) -> str:
        """Return the id these words had before, else a new one."""
        name = self._ids.get(letter + _plain(text))
        if name is None:
            self._numbers[letter] = self._numbers.get(letter, 0) + 1
            name = f"{letter}{self._numbers[letter]}"
        return name

    def _supersede(self, former: Sequence[Any], fresh: Sequence[str], kept: dict[str, Any], shape: "_Shape") -> None:
        """Let what is new replace the former records that it contradicts."""
        if not former or not fresh or shape.letter == "e":
            return
        from daypack.derived.readings import contradicts  # noqa: PLC0415 — compactions need it, turns do not

        for earlier in former:
            words = shape.words(earlier)
            newer = next((name for name in fresh if _replaces(kept[name], earlier, contradicts, shape)), None)
            if newer:
                del kept[earlier.id]
                self._losses.append(Loss(words, "superseded", f"{earlier.id} by {newer}, {earlier.source}"))


def _replaces(newer: Any, older: Any, contradicts: Callable[[str, str], bool], shape: "_Shape") -> bool:  # noqa: ANN401
    """Return True if a new record replaces an older one of its section."""
    if isinstance(newer, Fact) and isinstance(older, Fact) and (newer.purpose or older.purpose):
        return newer.purpose == older.purpose
    return contradicts(shape.words(newer), shape.words(older))


class _Shape(Struct, frozen=True):
    letter: str
    section: Section
    words: Callable[[Any], str]
    make: Callable[[str, Bullet], Any]


_decision = _Shape(
    "d",
    "decisions",
    lambda record: record.decision,
    lambda name, record: Decision(name, record.text, record.source, record.weight),
)
_fact = _Shape(
    "f",
    "facts",
    lambda record: record.text,
    lambda name, record: Fact(name, record.text, record.source, record.weight, purpose=record.purpose),
)
_todo = _Shape(
    "t",
    "pending",
    lambda record: record.text,
    lambda name, record: Todo(name, record.text, record.source, weight=record.weight, keys=record.keys),
)
_error = _Shape(
    "e",
    "errors",
    lambda record: record.error,
    lambda name, record: ErrorRecord(
        name, record.text, record.source, record.resolution, cause=record.cause, keys=record.keys
    ),
)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".!;:")


# Created at import: the library creates decoders without a lock, and two threads at once crash it.
_WARM = msgspec.json.Decoder(Compaction)
