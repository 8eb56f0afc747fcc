"""When to compact: at once when the window is full, behind the turns when a model shall do it, or by hand."""

import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext, suppress

from msgspec import Struct
from msgspec.structs import replace

from daypack.derived.records import Folded, document
from daypack.derived.template import render
from daypack.errors import BudgetTooSmall, DaypackError, NothingToCompact, NoUserMessage, SourceMissing
from daypack.files import atomic
from daypack.files.lock import ThreadLock
from daypack.history.draft import draft_event
from daypack.history.session import History
from daypack.turn.evidence.record import read_turn
from daypack.turn.hand_edits import Edits
from daypack.turn.limits import Limits
from daypack.turn.pack.fit import Fitted, fit
from daypack.turn.pack.select import select
from daypack.turn.pack.tail_start import SOFT_SHARE, TARGET_SHARE
from daypack.turn.survey.inputs import TurnInputs
from daypack.turn.survey.surface import Request, Surface
from daypack.turn.survey.survey import survey
from daypack.turn.turn import Turn
from daypack.types.compaction import Compaction, Loss
from daypack.types.source import Messages, parse_source

FAILED = "context.compaction.failed"
LEAST_ROOM = 6000  # tokens; in a smaller window that never overflowed, excerpts of the past serve better
_RESERVED_TOKENS = 1200
_AT_ONCE_BYTES = 8 << 20  # the most that is read while a turn waits


class Compacted(Struct, frozen=True, kw_only=True):
    """What a compaction made of the window; `changed` false: nothing, and why."""

    changed: bool
    id: str | None = None  # None: a dry run, nothing was recorded
    source: str = ""  # the messages that left the window
    kept_from: int = 0  # the first message that stays
    model: str = ""
    trigger: str = ""
    before_tokens: int = 0
    after_tokens: int = 0
    coverage: dict[str, int] = {}
    losses: tuple[Loss, ...] = ()
    document: str = ""  # CONTEXT.md
    problem: str = ""


class _Task(Struct, frozen=True, kw_only=True):
    """A range that is to leave the window."""

    known: tuple[Folded, int]  # what stood when it was chosen, and the newest event about that
    start: int
    through: int
    trigger: str
    limits: Limits
    masked: tuple[int, ...] = ()
    unread: str = ""  # messages before it that are left for a longer compaction
    dry_run: bool = False


class Compactions:
    """The compactions of one session."""

    def __init__(self, inputs: TurnInputs, edits: Edits, threads: ThreadLock) -> None:
        self._inputs = inputs
        self._edits = edits
        self._threads = threads
        self._behind: threading.Thread | None = None
        self.start: Callable[[str], None] = self._start_thread  # a command that ends soon starts a process instead
        self._tried = ""  # the epoch a compaction behind the turns was begun in

    def read(self) -> Folded:
        """Return what all compactions so far amount to."""
        with self._threads:
            return self._inputs.working.read()

    def make_room(self, surface: Surface, fitted: Fitted) -> bool:
        """Compact at once, without a model, what an epoch that begins leaves behind; say whether that was done."""
        through = fitted.start - 1
        start = self._inputs.working.read().through + 1
        omitted = any(one.reason == "budget_limit" and one.item.startswith("messages:") for one in fitted.omitted)
        if through < max(start, surface.first) or not omitted:
            return False
        bounded = self._bounded(start, through)
        masked = tuple(sorted(fitted.masked))
        known = self._inputs.working.read(), self._inputs.working.newest_seq
        task = _Task(
            known=known,
            start=bounded,
            through=through,
            masked=masked,
            unread=str(Messages(start, bounded - 1)) if bounded > start else "",
            trigger="token_pressure",
            limits=surface.limits,
        )
        try:
            return self._run(task, "none").changed
        except NothingToCompact:
            return False

    def compact(
        self,
        *,
        model: str | None = None,
        keep_tokens: int | None = None,
        dry_run: bool = False,
        trigger: str = "manual",
    ) -> Compacted:
        """Compact all but the newest messages; without `keep_tokens`, half of the tail stays, two fifths of the window
        at most."""
        limits = self._limits()
        try:
            with self._threads:
                known = self._inputs.working.read(), self._inputs.working.newest_seq
                start, through, masked = self._extent(limits, keep_tokens)
            task = _Task(
                known=known,
                start=start,
                through=through,
                masked=masked,
                trigger=trigger,
                limits=limits,
                dry_run=dry_run,
            )
            return self._run(task, model)
        except (NothingToCompact, NoUserMessage, BudgetTooSmall) as error:
            return Compacted(changed=False, trigger=trigger, problem=error.problem)

    def compact_on_overflow(self) -> Compacted:
        """Make more room than a full window asks for: our count was too low, or the provider's window is smaller."""
        keep = int(self._limits().room.tokens * TARGET_SHARE / 2)
        done = self.compact(model="none", keep_tokens=keep, trigger="provider_context_editing")
        return done if done.changed else self.compact(model="none", trigger="provider_context_editing")

    def undo(self, compaction_id: str | None = None) -> Compaction:
        """Take the newest compaction back, or the one that is named with all that was built on it; return it."""
        with self._threads:
            standing = self._inputs.working.read().accepted
            found = next((one for one in reversed(standing) if compaction_id in (None, one.id)), None)
            if found is None:
                known = ", ".join(one.id for one in standing)
                raise SourceMissing(
                    f"no compaction {compaction_id} stands" if compaction_id else "no compaction stands",
                    operation="undo",
                    place=self._inputs.history.layout.name,
                    hint=f"there are {known}" if known else "compact the session first",
                )
            # Those that came later were built on it.
            for one in reversed(standing[standing.index(found) :]):
                self._inputs.working.undo(one.id)
            return found

    def look_after(self, turn: Turn) -> None:
        """Begin a compaction behind the turns when the window fills and there is a model for it."""
        room = turn.record.limits.room.tokens
        epoch = turn.parts.epoch.event
        if turn.stable_tokens < SOFT_SHARE * room or self._tried == epoch or self.running:
            return
        choice = self._choice(None)
        if choice != "none":
            self._tried = epoch
            self.start(choice)

    def _start_thread(self, choice: str) -> None:
        self._behind = threading.Thread(target=self._work, args=(choice,), name="daypack compaction", daemon=True)
        self._behind.start()

    @property
    def running(self) -> bool:
        """Whether a compaction is under way behind the turns."""
        return self._behind is not None and self._behind.is_alive()

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait for the compaction behind the turns; say whether none is under way any more."""
        if self._behind:
            self._behind.join(timeout_seconds)
        return not self.running

    def _work(self, choice: str) -> None:
        try:
            self.compact(model=choice, trigger="token_pressure")
        except Exception as error:  # whatever it was, nobody waits for it: it is told in history
            with suppress(DaypackError):
                self._inputs.history.append_event(draft_event(FAILED, {"model": choice, "problem": str(error)}))

    def _limits(self) -> Limits:
        """The limits of the newest turn; those of context/budget when there was none."""
        newest = self._inputs.ledger.read().turns.get("model")
        with suppress(DaypackError):
            if newest:
                return read_turn(self._inputs.history, newest.event).limits
        return self._edits.limits("model")

    def _choice(self, model: str | None) -> str:
        from daypack.llm.completers import default_completion_model  # noqa: PLC0415 — only those who compact need it

        return (
            model
            or self._inputs.config.compaction_model
            or default_completion_model(self._inputs.history.layout.models)
        )

    def _extent(self, limits: Limits, keep_tokens: int | None) -> tuple[int, int, tuple[int, ...]]:
        """Return the first and last message that is to leave the window, and which outputs behind it become a line."""
        folded = self._inputs.working.read()
        # No time for the past: nothing of it is wanted here, and a dry run must not make an index.
        request = Request(target="model", limits=replace(limits, ms=0), model=None, reserved_tokens=reserve(limits))
        surface = survey(self._inputs, request, None)
        selection = select(surface)
        kept = (keep_tokens,) if keep_tokens is not None else _kept(fit(surface, selection).tail_cost.tokens, limits)
        first = max(uncovered(folded), surface.first)
        for most in kept:
            fitted = fit(replace(surface, keep_tokens=most), selection)
            if fitted.start - 1 >= max(first, folded.through + 1):
                return first, fitted.start - 1, tuple(sorted(fitted.masked))
        raise NothingToCompact(
            "no message would leave the window; what stays can be made less (--keep, keep_tokens)",
            operation="compact",
            place=self._inputs.history.layout.name,
        )

    def _run(self, task: _Task, model: str | None) -> Compacted:
        """Compact a range and record it. The model works while others prepare turns."""
        from daypack.derived.compaction.compaction import Ask, compact  # noqa: PLC0415 — 30 ms that a turn need not pay
        from daypack.llm.completers import open_completer  # noqa: PLC0415

        inputs, history = self._inputs, self._inputs.history
        folded, former = task.known
        choice = self._choice(model)
        ask = Ask(
            start=task.start,
            through=task.through,
            trigger=task.trigger,
            redacting=inputs.redacting,
            masked=task.masked,
            unread=task.unread,
            reader_tokens=min(task.limits.room.tokens, 1 << 30),
        )
        completer = open_completer(choice, models=history.layout.models)
        with _alone(history) if completer else nullcontext():
            try:
                made = compact(history, folded, ask, inputs.counter(None), completer)
            finally:
                if completer:
                    completer.close()
        if not task.dry_run:
            with self._threads:
                stored = inputs.working.commit(made, former)
            if stored is None:
                raise NothingToCompact(
                    "another compaction was recorded meanwhile", operation="compact", place=history.layout.name
                )
            made = stored
        return Compacted(
            changed=True,
            id=made.id or None,
            source=made.source,
            kept_from=made.through + 1,
            model=made.model,
            trigger=made.trigger,
            before_tokens=made.before_tokens,
            after_tokens=made.after_tokens,
            coverage=made.coverage,
            losses=made.losses,
            document=render(document(made.records)),
        )

    def _bounded(self, start: int, through: int) -> int:
        """Return where to begin so that a turn does not wait long; what is before that waits for a longer one."""
        reader = self._inputs.history.messages.reader
        size = 0
        for slot in reversed(reader.slots(reader.position(start), reader.position(through) + 1)):
            size += slot.length
            if size > _AT_ONCE_BYTES:
                return slot.seq + 1 if slot.seq < through else through
        return start


@contextmanager
def _alone(history: History) -> Generator[None]:
    """Let one model at a time read a session: a second one would read the same, for nothing."""
    import fcntl  # noqa: PLC0415 — only for those who have a model

    atomic.make_folders(history.layout.offsets, durable=False)
    fd = os.open(os.path.join(history.layout.offsets, "compacting"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(fd)
        problem = "another compaction by a model is under way"
        raise NothingToCompact(problem, operation="compact", place=history.layout.name) from error
    try:
        yield
    finally:
        os.close(fd)


def _kept(tail_tokens: int, limits: Limits) -> tuple[int, ...]:
    """Return how much of a tail stays: half of it, or less where large outputs as one line make all of it fit."""
    most = int(limits.room.tokens * TARGET_SHARE)
    return tuple(min(tail_tokens // part, most) for part in (2, 4, 8))


def reserve(limits: Limits) -> int:
    """Return about how many tokens the first compaction will add to the prefix."""
    return min(_RESERVED_TOKENS, limits.room.tokens // 8)


def uncovered(folded: Folded) -> int:
    """Return the first message that no standing compaction has read."""
    extents = [parse_source(one.source) for one in folded.accepted]
    at = 1
    for extent in sorted((one for one in extents if isinstance(one, Messages)), key=lambda one: one.start):
        if extent.start > at:
            break
        at = max(at, extent.stop + 1)
    return at
