"""The ledger: a fold of the events about turns. It has the newest turn of each target, pins, switches and questions.

context/ledger.json   {"seq":42,"crc":37359,"turns":{"model":{"event":"ev-41","opening":"ev-12","stable_tokens":…}},…}

Folding continues after `seq` if `crc` is still that of the log up to there; if not, or without a file, it starts again.
Other programs may write events: those without the expected fields are ignored.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct, convert
from msgspec.structs import replace

from daypack.derived.children import UPDATED
from daypack.derived.records import COMPACTED, UNDONE
from daypack.derived.rules import book
from daypack.derived.tiers import SNAPSHOT, Store, merge, read_accepted
from daypack.errors import DaypackError
from daypack.files import atomic
from daypack.forks import ThreadLock
from daypack.history.layout import check_name
from daypack.history.logs.lines import UNREADABLE
from daypack.history.session import History
from daypack.turn.items import STAMP, UNSEARCHED, Missing
from daypack.types.digest import digest_of
from daypack.types.history import Event
from daypack.types.kinds import TIERS, Target
from daypack.types.shapes import Link

TURN = "context.turn"
OBSERVED = "context.observed"  # a turn of another program
USAGE = "context.usage"
OVERFLOW = "provider.overflow"  # the provider refused a turn as too long
BUDGET = "context.budget"
SWITCH = "context.switch"
IMPORTED = "context.imported"
EXPORTED = "context.exported"
BOUND = "memory.bound"
ERASED = "history.erased"
ASKED = "context.missing.requested"
DETECTED = "context.missing.detected"
RESOLVED = "context.missing.resolved"
_VERSION = 8  # increased when the fold uses something that it ignored before
NOT_REDACTED = "off"  # key in a turn's `redacted` when redaction was off
SAVE_EVERY = 32  # events; reading them again after a start costs less than writing a file every turn


class RecordedTurn(Struct, omit_defaults=True):
    """The newest turn of a target."""

    event: str
    opening: str  # event of the first turn of its epoch
    opening_seq: int
    stable_tokens: int
    prefix_sha256: str
    prefix_tokens: int = 0
    renderer: str = ""
    redacting: bool = True
    tail: tuple[int, int] = (0, 0)  # number of messages in the tail, seq of the last
    last: int = 0  # newest message
    added: str = ""  # event of the newest turn of the epoch that added something to its tail
    unsearched: bool = False  # it reports that it could not search all of history
    tools: str = ""  # digest of its tools
    erased: bool = False  # something that it showed was erased


class LedgerState(Struct, omit_defaults=True):
    """The result of folding all events up to `seq`."""

    version: int = 0
    seq: int = 0
    crc: int = 0
    turns: dict[str, RecordedTurn] = {}
    pins: dict[str, str] = {}
    budget: str | None = None  # newest recorded text of context/budget
    switches: dict[str, bool] = {}
    children: bool = False
    questions: dict[str, Missing] = {}  # open
    answered: dict[str, Missing] = {}  # with their status: resolved, declined or expired
    imported: list[str] = []  # digests of imported envelopes
    compactions: list[int] = []  # seqs of compaction and undo events
    erased: int = 0  # seq of the newest erasure: texts read before it may hold what was erased
    bound: int = 0  # seq of the newest event that bound or unbound a memory
    rounds: int = 0  # user messages that were packed for a model
    last_user: int = 0  # seq of the newest of them
    protocol_used: bool = False  # a turn has asked for a snapshot
    tiers: Store = msgspec.field(default_factory=Store)
    rules: book.RuleBook = msgspec.field(default_factory=book.RuleBook)


class Ledger:
    """The fold of one session; reading it brings it up to date."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._path = history.layout.derived("ledger")
        self._saved = -1
        self._folded: LedgerState | None = None
        self._threads = ThreadLock(self._drop)

    def read(self) -> LedgerState:
        """Return the state after all events so far."""
        with self._threads:  # two threads folding the same events would count them twice
            folded = self._folded or self._load()
            newest = self._history.events.reader.newest()
            last, crc = newest.seq, newest.crc
            if (last, crc) != (folded.seq, folded.crc):
                if not self._is_of_this_log(folded, last):
                    folded = LedgerState(version=_VERSION)
                for event in self._history.events.records(folded.seq + 1, last):
                    if event.type not in (SNAPSHOT, book.FOUND) or self._has_message(event):
                        _fold(folded, event)
                folded.seq, folded.crc = last, crc
            self._folded = folded
            return folded

    def _drop(self) -> None:
        self._folded = None

    def _has_message(self, event: Event) -> bool:
        """Return True if the message of a snapshot or a finding exists; an event about any other is ignored."""
        number = str(event.data.get("through" if event.type == book.FOUND else "message")).removeprefix("msg-")
        known = number.isascii() and number.isdecimal() and len(number) < 18
        return known and int(number) <= self._history.messages.reader.newest().seq

    def _is_of_this_log(self, folded: LedgerState, last: int) -> bool:
        """Return True if the log still starts with the lines that were folded."""
        if not 0 < folded.seq <= last:
            return False
        reader = self._history.events.reader
        at = reader.position(folded.seq)
        slots = reader.slots(at, at + 1)
        return bool(slots) and (slots[0].seq, slots[0].crc) == (folded.seq, folded.crc)

    def save(self, *, always: bool = False) -> None:
        """Write the fold for the next process; a failure costs only time."""
        folded = self._folded
        if folded and (always or folded.seq - self._saved >= SAVE_EVERY):
            try:
                layout = self._history.layout
                atomic.make_folders(layout.context, durable=False, inside=layout.folder)
                atomic.replace(self._path, msgspec.json.encode(folded), durable=False)
                self._saved = folded.seq
            except DaypackError:
                self._saved = folded.seq  # do not try a read-only folder every turn

    def _load(self) -> LedgerState:
        try:
            data = atomic.read(self._path)
            folded = msgspec.json.decode(data, type=LedgerState) if data else LedgerState()
            stored = (folded.tiers.blocks, folded.tiers.below_threshold)
            whole = all(tier in blocks for blocks in stored for tier in TIERS)
            whole = whole and folded.seq > 0 and folded.version == _VERSION
            folded = folded if whole else LedgerState(version=_VERSION)
        except (DaypackError, *UNREADABLE):
            folded = LedgerState(version=_VERSION)
        self._saved = folded.seq
        return folded


def _fold(folded: LedgerState, event: Event) -> None:
    take = _FOLDS.get(event.type)
    if take:
        try:
            take(folded, event.data, event)
        except (KeyError, TypeError, AttributeError, ValueError, DaypackError, *UNREADABLE):
            return  # an event of another program that only shares the type


class _Stable(Struct):
    tokens: int
    prefix_tokens: int
    prefix_sha256: str


class _Turn(Struct):
    target: Target
    renderer: str
    stable: _Stable
    redacted: dict[str, Any] = {}
    tail: tuple[int, int] = (0, 0)
    last: int = 0
    user: int | None = None
    epoch: str | None = None
    opening: dict[str, Any] | None = None
    added: list[Any] = []
    carries: str | None = None
    missing: list[dict[str, Any]] = []
    tools: dict[str, Any] = {}
    erased: str = ""


def _fold_turn(folded: LedgerState, data: Mapping[str, Any], event: Event) -> None:
    turn = convert(data, _Turn)
    if turn.target == "model" and (turn.user or 0) > folded.last_user:
        folded.last_user, folded.rounds = turn.user or 0, folded.rounds + 1
    for item in data.get("items", ()):
        folded.protocol_used = folded.protocol_used or item["id"] == STAMP
    before = folded.turns.get(turn.target)
    opening, opening_seq = event.id if turn.opening is not None else None, event.seq
    if turn.epoch:
        # Without its first turn in the log the epoch cannot continue: seq 0 makes the next turn begin a new one.
        opening, opening_seq = turn.epoch, before.opening_seq if before and before.opening == turn.epoch else 0
    if opening:
        folded.turns[turn.target] = RecordedTurn(
            event=event.id,
            opening=opening,
            opening_seq=opening_seq,
            stable_tokens=turn.stable.tokens,
            prefix_sha256=turn.stable.prefix_sha256,
            prefix_tokens=turn.stable.prefix_tokens,
            renderer=turn.renderer,
            redacting=NOT_REDACTED not in turn.redacted,
            tail=turn.tail,
            last=turn.last,
            added=event.id if turn.added else turn.carries or "",
            unsearched=any(str(gap.get("id")).startswith(UNSEARCHED) for gap in turn.missing),
            tools=convert(turn.tools.get("digest", ""), str),
            erased=bool(turn.erased),
        )


def _fold_pin(folded: LedgerState, data: Mapping[str, Any], _: Event) -> None:
    folded.pins[check_name(data["name"], "pin")] = digest_of(data["digest"])


def _fold_unpin(folded: LedgerState, data: Mapping[str, Any], _: Event) -> None:
    folded.pins.pop(data["name"], None)


def _fold_budget(folded: LedgerState, data: Mapping[str, Any], _: Event) -> None:
    folded.budget = convert(data["text"], str)


def _fold_switch(folded: LedgerState, data: Mapping[str, Any], _: Event) -> None:
    folded.switches[check_name(data["name"], "switch")] = convert(data["on"], bool)


def _fold_child(folded: LedgerState, _: Mapping[str, Any], __: Event) -> None:
    folded.children = True


class _Question(Struct):
    missing_id: str
    question: str
    severity: str = "medium"
    needed_for: str | None = None
    requested_from: Link | None = None
    blocked_actions: tuple[str, ...] = ()
    candidate_sources: tuple[Link, ...] = ()


class _Answer(Struct):
    missing_id: str
    status: str = "resolved"
    resolution_refs: tuple[Link, ...] = ()


def _fold_question(folded: LedgerState, data: Mapping[str, Any], event: Event) -> None:
    asked = convert(data, _Question)
    folded.answered.pop(asked.missing_id, None)
    folded.questions[asked.missing_id] = Missing(
        id=asked.missing_id,
        question=asked.question,
        severity=asked.severity,
        needed_for=asked.needed_for,
        requested=asked.requested_from,
        blocked_actions=asked.blocked_actions,
        candidate_sources=asked.candidate_sources,
        asked_at=event.ts,
    )


def _fold_answer(folded: LedgerState, data: Mapping[str, Any], event: Event) -> None:
    answer = convert(data, _Answer)
    if asked := folded.questions.pop(answer.missing_id, None):
        # The event holds the answer in words; without any answer it is the only proof of how the question ended.
        here = (f"events:{event.id}",) if "digest" in data or not answer.resolution_refs else ()
        refs = (*answer.resolution_refs, *here)
        folded.answered[answer.missing_id] = replace(asked, status=answer.status, resolution_refs=refs)


def _fold_imported(folded: LedgerState, data: Mapping[str, Any], _: Event) -> None:
    digest = digest_of(data["digest"])
    if digest in folded.imported:
        folded.imported.remove(digest)
    folded.imported.append(digest)


def _fold_compaction(folded: LedgerState, _: Mapping[str, Any], event: Event) -> None:
    if event.seq > (folded.compactions[-1] if folded.compactions else 0):
        folded.compactions.append(event.seq)


def _fold_binding(folded: LedgerState, _: Mapping[str, Any], event: Event) -> None:
    folded.bound = event.seq


def _fold_erased(folded: LedgerState, _: Mapping[str, Any], event: Event) -> None:
    folded.erased = event.seq


def _fold_snapshot(folded: LedgerState, data: Mapping[str, Any], _: Event) -> None:
    accepted = read_accepted(data)
    merge(folded.tiers, replace(accepted, round=min(accepted.round, folded.rounds)))


def _fold_found(folded: LedgerState, data: Mapping[str, Any], _: Event) -> None:
    book.fold_found(folded.rules, data)


def _fold_added(folded: LedgerState, data: Mapping[str, Any], _: Event) -> None:
    book.fold_added(folded.rules, data)


def _fold_dropped(folded: LedgerState, data: Mapping[str, Any], _: Event) -> None:
    book.fold_dropped(folded.rules, data)


def _fold_pinned(folded: LedgerState, data: Mapping[str, Any], _: Event) -> None:
    book.fold_pinned(folded.rules, data)


_FOLDS: dict[str, Callable[[LedgerState, Mapping[str, Any], Event], None]] = {
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
    BOUND: _fold_binding,
    ERASED: _fold_erased,
    SNAPSHOT: _fold_snapshot,
    book.FOUND: _fold_found,
    book.ADDED: _fold_added,
    book.DROPPED: _fold_dropped,
    book.PINNED: _fold_pinned,
}
# Built at import: msgspec builds a type without a lock, and two threads doing it at once crash.
_WARM = tuple(map(msgspec.json.Decoder, (LedgerState, _Turn, _Question, _Answer)))
