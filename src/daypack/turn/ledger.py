"""What the events say about turns: the newest turn of each target, its epoch, and what was taken in from outside.

context/ledger.json   {"seq":42,"crc":37359,"turns":{"model":{"event":"ev-41","opening":"ev-12","stable_tokens":…}},…}

It is a fold of the events and goes on where it stopped: `crc` is that of the log up to there. Deleted, or of another
log, it is folded from the beginning. Events may be written by others: what has not the right shape is passed over.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct, convert
from msgspec.structs import replace

from daypack.derived.children import UPDATED
from daypack.derived.records import COMPACTED, UNDONE
from daypack.derived.tiers import SNAPSHOT, Store, merge, read_accepted
from daypack.errors import DaypackError
from daypack.files import atomic
from daypack.files.lock import ThreadLock
from daypack.history.layout import check_name
from daypack.history.lines import UNREADABLE
from daypack.history.session import History
from daypack.turn.items import Missing
from daypack.types.digest import digest_of
from daypack.types.history import Event
from daypack.types.kinds import TIERS, Target

TURN = "context.turn"
USAGE = "context.usage"
BUDGET = "context.budget"
SWITCH = "context.switch"
IMPORTED = "context.imported"
EXPORTED = "context.exported"
ASKED = "context.missing.requested"
DETECTED = "context.missing.detected"
RESOLVED = "context.missing.resolved"
_FOLD = 2  # one more whenever the fold takes in something it passed over before
STAMP = "runtime:stamp"  # the item of a turn that a reply of the hybrid protocol brings back
NOT_REDACTED = "off"  # stands in a turn's `redacted` when secrets were left in
SAVE_EVERY = 32  # events that are read again after a cold start cost less than a file written at every turn


class Newest(Struct, omit_defaults=True):
    """The newest turn of a target."""

    event: str
    opening: str  # the event its epoch began with
    stable_tokens: int
    prefix_sha256: str
    prefix_tokens: int = 0
    renderer: str = ""
    redacting: bool = True
    shown: tuple[int, int] = (0, 0)
    last: int = 0  # the newest message there was


class _Folded(Struct, omit_defaults=True):
    fold: int = 0  # the version of what is folded
    seq: int = 0
    crc: int = 0
    turns: dict[str, Newest] = {}
    pins: dict[str, str] = {}
    budget: str | None = None  # the newest text of context/budget that was taken in
    switches: dict[str, bool] = {}
    children: bool = False
    questions: dict[str, Missing] = {}
    imported: list[str] = []  # digests of envelopes made elsewhere
    compactions: list[int] = []  # the events that tell of compactions and of those taken back
    rounds: int = 0  # the user messages that were packed for a model
    asked: int = 0  # the newest of them
    stamped: bool = False  # a turn has asked for a snapshot
    tiers: Store = msgspec.field(default_factory=Store)


class Ledger:
    """The fold, brought up to date when it is asked."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._path = history.layout.derived("ledger")
        self._saved = -1
        self._folded: _Folded | None = None
        self._threads = ThreadLock()

    def read(self) -> _Folded:
        """Return what all events so far say."""
        with self._threads:  # two that fold the same events would count them twice
            return self._read()

    def _read(self) -> _Folded:
        folded = self._folded or self._load()
        newest = self._history.events.reader.newest()
        last, crc = newest.seq, newest.crc
        if (last, crc) != (folded.seq, folded.crc):
            if not self._is_of_this_log(folded, last):
                folded = _Folded(fold=_FOLD)
            for event in self._history.events.records(folded.seq + 1, last):
                if event.type != SNAPSHOT or self._has_message(event):
                    _fold(folded, event)
            folded.seq, folded.crc = last, crc
        self._folded = folded
        return folded

    def _has_message(self, event: Event) -> bool:
        """Whether the message exists that a snapshot was cut from: an event about another one is not believed."""
        number = str(event.data.get("message")).removeprefix("msg-")
        known = number.isascii() and number.isdecimal() and len(number) < 18
        return known and int(number) <= self._history.messages.reader.newest().seq

    def _is_of_this_log(self, folded: _Folded, last: int) -> bool:
        """Whether the log still begins with what was folded."""
        if not 0 < folded.seq <= last:
            return False
        reader = self._history.events.reader
        at = reader.position(folded.seq)
        return any((slot.seq, slot.crc) == (folded.seq, folded.crc) for slot in reader.slots(at, at + 1))

    def save(self, *, always: bool = False) -> None:
        """Keep the fold for the next process; a failure costs only time."""
        folded = self._folded
        if folded and (always or folded.seq - self._saved >= SAVE_EVERY):
            try:
                atomic.make_folders(self._history.layout.context, durable=False)
                atomic.replace(self._path, msgspec.json.encode(folded), durable=False)
                self._saved = folded.seq
            except DaypackError:
                self._saved = folded.seq  # a read-only folder is not asked at every turn

    def _load(self) -> _Folded:
        try:
            data = atomic.read(self._path)
            folded = msgspec.json.decode(data, type=_Folded) if data else _Folded()
            stored = (folded.tiers.blocks, folded.tiers.below_threshold)
            whole = all(tier in blocks for blocks in stored for tier in TIERS)
            folded = folded if folded.seq > 0 and folded.fold == _FOLD and whole else _Folded(fold=_FOLD)
        except (DaypackError, *UNREADABLE):
            folded = _Folded(fold=_FOLD)
        self._saved = folded.seq
        return folded


def _fold(folded: _Folded, event: Event) -> None:
    take = _FOLDS.get(event.type)
    if take:
        try:
            take(folded, event.data, event)
        except (KeyError, TypeError, AttributeError, ValueError, DaypackError, *UNREADABLE):
            return  # an event of another writer that only shares the name


class _Stable(Struct):
    tokens: int
    prefix_tokens: int
    prefix_sha256: str


class _Turn(Struct):
    target: Target
    renderer: str
    stable: _Stable
    redacted: dict[str, Any] = {}
    shown: tuple[int, int] = (0, 0)
    last: int = 0
    user: int | None = None
    epoch: str | None = None
    opening: dict[str, Any] | None = None


def _fold_turn(folded: _Folded, data: Mapping[str, Any], event: Event) -> None:
    turn = convert(data, _Turn)
    if turn.target == "model" and (turn.user or 0) > folded.asked:
        folded.asked, folded.rounds = turn.user or 0, folded.rounds + 1
    folded.stamped = folded.stamped or any(one["id"] == STAMP for one in data.get("items", ()))
    opening = turn.epoch or (event.id if turn.opening is not None else None)
    if opening:
        folded.turns[turn.target] = Newest(
            event=event.id,
            opening=opening,
            stable_tokens=turn.stable.tokens,
            prefix_sha256=turn.stable.prefix_sha256,
            prefix_tokens=turn.stable.prefix_tokens,
            renderer=turn.renderer,
            redacting=NOT_REDACTED not in turn.redacted,
            shown=turn.shown,
            last=turn.last,
        )


def _fold_pin(folded: _Folded, data: Mapping[str, Any], _: Event) -> None:
    folded.pins[check_name(data["name"], "pin")] = digest_of(data["digest"])


def _fold_unpin(folded: _Folded, data: Mapping[str, Any], _: Event) -> None:
    folded.pins.pop(data["name"], None)


def _fold_budget(folded: _Folded, data: Mapping[str, Any], _: Event) -> None:
    folded.budget = convert(data["text"], str)


def _fold_switch(folded: _Folded, data: Mapping[str, Any], _: Event) -> None:
    folded.switches[check_name(data["name"], "switch")] = convert(data["on"], bool)


def _fold_child(folded: _Folded, _: Mapping[str, Any], __: Event) -> None:
    folded.children = True


class _Question(Struct):
    missing_id: str
    question: str
    severity: str = "medium"
    needed_for: str | None = None
    requested_from: str | None = None


def _fold_question(folded: _Folded, data: Mapping[str, Any], _: Event) -> None:
    one = convert(data, _Question)
    folded.questions[one.missing_id] = Missing(
        id=one.missing_id,
        question=one.question,
        severity=one.severity,
        needed_for=one.needed_for,
        requested=one.requested_from,
    )


def _fold_answer(folded: _Folded, data: Mapping[str, Any], _: Event) -> None:
    folded.questions.pop(data["missing_id"], None)


def _fold_imported(folded: _Folded, data: Mapping[str, Any], _: Event) -> None:
    digest = digest_of(data["digest"])
    if digest in folded.imported:
        folded.imported.remove(digest)
    folded.imported.append(digest)


def _fold_compaction(folded: _Folded, _: Mapping[str, Any], event: Event) -> None:
    if event.seq > (folded.compactions[-1] if folded.compactions else 0):
        folded.compactions.append(event.seq)


def _fold_snapshot(folded: _Folded, data: Mapping[str, Any], _: Event) -> None:
    accepted = read_accepted(data)
    merge(folded.tiers, replace(accepted, round=min(accepted.round, folded.rounds)))


_FOLDS: dict[str, Callable[[_Folded, Mapping[str, Any], Event], None]] = {
    TURN: _fold_turn,
    "pin.set": _fold_pin,
    "pin.removed": _fold_unpin,
    BUDGET: _fold_budget,
    SWITCH: _fold_switch,
    UPDATED: _fold_child,
    ASKED: _fold_question,
    DETECTED: _fold_question,
    RESOLVED: _fold_answer,
    IMPORTED: _fold_imported,
    COMPACTED: _fold_compaction,
    UNDONE: _fold_compaction,
    SNAPSHOT: _fold_snapshot,
}
# Made here, not by the first who needs it: the library does that without a lock, and two threads at once crash it.
_WARM = tuple(map(msgspec.json.Decoder, (_Folded, _Turn, _Question)))
