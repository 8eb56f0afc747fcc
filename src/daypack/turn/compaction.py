"""When to compact: at once when the window overflows, in the background when a model does it, or on request."""

import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext, suppress

from msgspec import Struct
from msgspec.structs import replace

from daypack.derived.names import choose_names, everything_in, rank_names
from daypack.derived.records import Folded, document
from daypack.derived.template import render
from daypack.errors import BadInput, BudgetTooSmall, DaypackError, NothingToCompact, NoUserMessage, SourceMissing
from daypack.files.lock import held_without_waiting
from daypack.forks import ThreadLock
from daypack.history.draft import draft_event
from daypack.history.session import History
from daypack.text.redact.redact import redact_message
from daypack.turn.budget import DEFAULT_LIMITS, Limits
from daypack.turn.evidence.replay import read_turn
from daypack.turn.hand_edits import HandEdits
from daypack.turn.items import Cost
from daypack.turn.ledger import OVERFLOW
from daypack.turn.pack.fit import Fitted, begin_epoch, leaving, require_user
from daypack.turn.pack.select import select
from daypack.turn.policy import (
    COMPACTION_MIN_ROOM_TOKENS,
    MAX_BACKGROUND_COMPACTION_BYTES,
    MAX_INLINE_COMPACTION_BYTES,
    compaction_reserve,
)
from daypack.turn.surface import LastTurn, Request, Surface, Window
from daypack.turn.survey.conversation import messages_after
from daypack.turn.survey.inputs import TurnInputs
from daypack.turn.survey.survey import survey
from daypack.types.compaction import Compaction, Loss
from daypack.types.source import Messages, parse_source

FAILED = "context.compaction.failed"
_SLOTS = 1000  # of the log that are looked at in one go


class Compacted(Struct, frozen=True, kw_only=True):
    """The result of a compaction; if `changed` is false, `problem` says why nothing changed."""

    changed: bool
    id: str | None = None  # None for a dry run, which records nothing
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
    """A range of messages to compact."""

    folded: Folded  # the state when the range was chosen, and the newest event of that state
    previous_seq: int
    start: int
    through: int
    trigger: str
    limits: Limits
    stubbed: tuple[int, ...] = ()
    kept: str = ""  # what the messages that stay say, large outputs as stubs
    unread: str = ""  # earlier messages that are left for a longer compaction
    dry_run: bool = False


class Compactions:
    """The compactions of one session."""

    def __init__(self, inputs: TurnInputs, edits: HandEdits, threads: ThreadLock) -> None:
        self._inputs = inputs
        self._edits = edits
        self._threads = threads
        self._thread: threading.Thread | None = None
        # With a model, or "none": see `compact_unread`. A short-lived command starts a process instead.
        self.start: Callable[[str], None] = self._start_thread
        self._tried = ""  # the epoch in which a background compaction was last started
        self._left_unread = False  # a turn did not read everything that left the window with it
        self.left_rules = False  # or did not examine all of it for standing rules

    def read(self) -> Folded:
        """Return the result of all compactions so far."""
        with self._threads:
            return self._inputs.working_state.read()

    def make_room(self, surface: Surface, fitted: Fitted) -> bool:
        """Compact the messages that leave the window with a new epoch, without a model; return True if it was done."""
        messages = leaving(surface, fitted)
        if messages is None or (surface.epoch and fitted.reason in ("withdrawn", "damaged")):
            return False
        if (
            fitted.reason != "overflow"
            and surface.limits.room_beside(surface.tools).tokens < COMPACTION_MIN_ROOM_TOKENS
        ):
            return False
        first, last = messages
        start = self._start_within(MAX_INLINE_COMPACTION_BYTES, first, last)
        task = _Task(
            folded=self._inputs.working_state.read(),
            previous_seq=self._inputs.working_state.newest_seq,
            start=start,
            through=last,
            stubbed=tuple(sorted(fitted.stubbed)),
            kept=_kept_text(surface, fitted.start),
            unread=str(Messages(first, start - 1)) if start > first else "",
            trigger="token_pressure",
            limits=surface.limits,
        )
        try:
            changed = self._run(task, "none").changed
        except NothingToCompact:
            return False
        self._left_unread = changed and bool(task.unread)
        return changed

    def compact(
        self,
        *,
        model: str | None = None,
        keep_tokens: int | None = None,
        dry_run: bool = False,
        trigger: str = "manual",
    ) -> Compacted:
        """Compact all but the newest messages.

        Without `keep_tokens` half of the tail stays, but at most what an epoch starts with.
        """
        self._check_arguments(model, keep_tokens)
        limits, tools = self._window()
        try:
            with self._threads:
                folded, previous_seq = self._inputs.working_state.read(), self._inputs.working_state.newest_seq
                start, through, stubbed, kept = self._choose_messages(limits, tools, keep_tokens)
            task = _Task(
                folded=folded,
                previous_seq=previous_seq,
                start=start,
                through=through,
                stubbed=stubbed,
                kept=kept,
                trigger=trigger,
                limits=limits,
                dry_run=dry_run,
            )
            return self._run(task, model)
        except (NothingToCompact, NoUserMessage, BudgetTooSmall) as error:
            return Compacted(changed=False, trigger=trigger, problem=error.problem)

    def compact_on_overflow(self) -> Compacted:
        """Compact further than a full window needs: the provider counts more tokens, or its window is smaller."""
        limits, tools = self._window()
        room = limits.room_beside(tools).tokens
        keep = int(room * self._inputs.window.opening_share(room) / 2)
        done = self.compact(model="none", keep_tokens=keep, trigger="provider_context_editing")
        if not done.changed:
            done = self.compact(model="none", trigger="provider_context_editing")
        refused = self._inputs.ledger.read().turns.get("model")
        data = {"turn": refused.event if refused else None, "compaction": done.id, "problem": done.problem or None}
        event = draft_event(OVERFLOW, {name: value for name, value in data.items() if value is not None})
        self._inputs.history.append_event(event)
        return done

    def compact_unread(self) -> Compacted:
        """Read the messages before the window that a turn left unread, without a model; the window stays as it is."""
        self._inputs.rules.examine_rest()
        limits, _ = self._window()
        with self._threads:
            folded, previous_seq = self._inputs.working_state.read(), self._inputs.working_state.newest_seq
        first, trigger = first_uncompacted(folded), "token_pressure"
        if first > folded.through:
            return Compacted(changed=False, trigger=trigger, problem="every message before the window has been read")
        # What was read before is read again, after what is older: later statements supersede earlier ones.
        start = self._start_within(MAX_BACKGROUND_COMPACTION_BYTES, first, folded.through)
        task = _Task(
            folded=folded,
            previous_seq=previous_seq,
            start=start,
            through=folded.through,
            unread=str(Messages(first, start - 1)) if start > first else "",
            trigger=trigger,
            limits=limits,
        )
        try:
            return self._run(task, "none")
        except NothingToCompact as error:
            self._left_unread = self._inputs.working_state.newest_seq != previous_seq  # then the next turn tries again
            return Compacted(changed=False, trigger=trigger, problem=error.problem)

    def undo(self, compaction_id: str | None = None) -> Compaction:
        """Undo the newest compaction, or a named one with all later ones, which were built on it; return it."""
        with self._threads:
            accepted = self._inputs.working_state.read().accepted
            matching = (compaction for compaction in reversed(accepted) if compaction_id in (None, compaction.id))
            found = next(matching, None)
            if found is None:
                known = ", ".join(compaction.id for compaction in accepted)
                raise SourceMissing(
                    f"no compaction {compaction_id} is in effect" if compaction_id else "no compaction is in effect",
                    operation="undo",
                    place=self._inputs.history.layout.name,
                    hint=f"there are {known}" if known else "compact the session first",
                )
            for compaction in reversed(accepted[accepted.index(found) :]):
                self._inputs.working_state.undo(compaction.id)
            return found

    def start_in_background(self, epoch: str, *, filling_up: bool) -> None:
        """Start a compaction after a turn, if none is running.

        It reads what the turn left unread; if the window is filling up and a model is configured, the model compacts,
        once per epoch.
        """
        if self.running:
            return
        if self._left_unread or self.left_rules:
            self._left_unread = self.left_rules = False
            self.start("none")
            return
        if self._tried == epoch or not filling_up:
            return
        choice = self._choice(None)
        if choice != "none":
            self._tried = epoch
            self.start(choice)

    @property
    def running(self) -> bool:
        """True while a compaction runs in the background."""
        return self._thread is not None and self._thread.is_alive()

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait for the compaction in the background; return True if none is running any more."""
        if self._thread:
            self._thread.join(timeout_seconds)
        return not self.running

    def _start_thread(self, choice: str) -> None:
        self._thread = threading.Thread(target=self._work, args=(choice,), name="daypack compaction", daemon=True)
        self._thread.start()

    def _work(self, choice: str) -> None:
        try:
            if choice == "none":
                self._inputs.history_search.index.wait()  # the search index is needed sooner, and both use the CPU
                self.compact_unread()
            else:
                self.compact(model=choice, trigger="token_pressure")
        except Exception as error:  # no caller waits for this thread: history records the failure
            with suppress(DaypackError):
                self._inputs.history.append_event(draft_event(FAILED, {"model": choice, "problem": str(error)}))

    def _window(self) -> tuple[Limits, Cost]:
        """Return the limits of the newest turn and what its tools took of them, or the limits of context/budget."""
        newest = self._inputs.ledger.read().turns.get("model")
        with suppress(DaypackError):
            if newest:
                record = read_turn(self._inputs.history, newest.event)
                return record.limits, Cost(record.tools.tokens) if record.tools else Cost()
        return self._edits.limits("model") or DEFAULT_LIMITS, Cost()

    def _check_arguments(self, model: str | None, keep_tokens: int | None) -> None:
        """Refuse a model or number that cannot be used, also when nothing has to leave the window."""
        from daypack.llm.completers import check_completer  # noqa: PLC0415 — only compactions need it

        if keep_tokens is not None and (type(keep_tokens) is not int or keep_tokens < 0):
            problem, hint = f"must be a number of 0 or more, got {keep_tokens!r}", "for instance keep_tokens=2000"
            raise BadInput(problem, operation="compact", place="keep_tokens", hint=hint)
        check_completer(self._choice(model), models=self._inputs.history.layout.models)

    def _choice(self, model: str | None) -> str:
        from daypack.llm.completers import default_completion_model  # noqa: PLC0415 — only compactions need it

        models = self._inputs.history.layout.models
        if model is not None:
            return model
        return self._inputs.config.compaction_model or default_completion_model(models)

    def _choose_messages(
        self, limits: Limits, tools: Cost, keep_tokens: int | None
    ) -> tuple[int, int, tuple[int, ...], str]:
        """Return the first and last message to compact, the outputs after them that become stubs, and what stays."""
        folded = self._inputs.working_state.read()
        request = Request(target="model", limits=limits, policy=self._inputs.window, tools=tools)
        surface = survey(self._inputs, request, LastTurn(reason="compaction"), searching=False)
        room = surface.limits.room_beside(surface.tools)
        require_user(surface, room)
        window = messages_after(surface.window or Window(), folded.through)
        surface = replace(surface, window=window, compaction=None)  # what the last compaction left may leave now
        selection = select(surface)
        reserve = compaction_reserve(room.tokens)
        if keep_tokens is None:
            tail = begin_epoch(surface, selection, "compaction", reserved_tokens=reserve).tail_cost.tokens
            most = int(room.tokens * surface.policy.opening_share(room.tokens))
            # Half of the tail; less where stubs alone make everything fit, or more than half.
            sizes = [min(tail // part, most) for part in (2, 4, 8)]
        else:
            sizes = [keep_tokens]
        first = max(first_uncompacted(folded), surface.first)
        chosen = None
        for size in sizes:
            fitted = begin_epoch(surface, selection, "compaction", reserved_tokens=reserve, keep_tokens=size)
            if fitted.start - 1 >= max(first, folded.through + 1):
                chosen = fitted
                if _verbatim_tokens(surface, fitted.start) <= sizes[0]:
                    break
        if chosen is None:
            raise NothingToCompact(
                "no message would leave the window; keep fewer tokens (--keep, keep_tokens)",
                operation="compact",
                place=self._inputs.history.layout.name,
            )
        return first, chosen.start - 1, tuple(sorted(chosen.stubbed)), _kept_text(surface, chosen.start)

    def _run(self, task: _Task, model: str | None) -> Compacted:
        """Compact a range and record the result. A model works while other threads prepare turns."""
        from daypack.derived.compaction.compaction import CompactionRequest, compact  # noqa: PLC0415 — 30 ms that a turn need not pay
        from daypack.llm.completers import open_completer  # noqa: PLC0415

        inputs, history = self._inputs, self._inputs.history
        choice = self._choice(model)
        request = CompactionRequest(
            start=task.start,
            through=task.through,
            trigger=task.trigger,
            redacting=inputs.redacting,
            masked=task.stubbed,
            unread=task.unread,
            reader_tokens=min(task.limits.room.tokens, 1 << 30),
        )
        completer = open_completer(choice, models=history.layout.models)
        with _one_model_at_a_time(history) if completer else nullcontext():
            try:
                made = compact(history, task.folded, request, inputs.counter(None), completer)
            finally:
                if completer:
                    completer.close()
        made = replace(made, names=self._names(task), room_tokens=task.limits.room.tokens)
        if not task.dry_run:
            with self._threads:
                stored = inputs.working_state.commit(made, task.previous_seq)
            if stored is None:
                problem = "another compaction was recorded in the meantime"
                raise NothingToCompact(problem, operation="compact", place=history.layout.name)
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

    def _names(self, task: _Task) -> dict[str, float]:
        """Return the names of what has left the window, without those that what stays contains."""
        inputs, former = self._inputs, task.folded.current
        left = inputs.history.messages.records(task.start, task.through)
        shown = (redact_message(message)[0] for message in left) if inputs.redacting else left
        # A longer compaction reads again what former ones read: their names would count twice.
        before = former.names if former and former.through < task.start else {}
        ranked = rank_names(shown, task.through, before, former.through if former else 0)
        return choose_names(ranked, task.kept)

    def _start_within(self, most_bytes: int, first: int, last: int) -> int:
        """Return where to start to read at most so many bytes; earlier messages wait for a longer compaction."""
        reader = self._inputs.history.messages.reader
        begin, stop, size = reader.position(first), reader.position(last) + 1, 0
        while begin < stop:
            start = max(begin, stop - _SLOTS)
            for slot in reversed(reader.slots(start, stop)):
                size += slot.length
                if size > most_bytes:
                    return slot.seq + 1 if slot.seq < last else last
            stop = start
        return first


def _verbatim_tokens(surface: Surface, start: int) -> int:
    """Return what the messages from `start` on take, if the next epoch has space for all of them verbatim."""
    window = surface.window or Window()
    return sum(entry.cost.tokens for entry in window.entries if entry.message.seq >= start)


def _kept_text(surface: Surface, start: int) -> str:
    """Return what the messages from `start` on say, with large outputs as stubs."""
    window = surface.window or Window()
    shown = (window.stubs.get(entry.message.seq, entry).message for entry in window.entries)
    texts = [everything_in(message) for message in shown if message.seq >= start]
    return "\n".join(texts)


@contextmanager
def _one_model_at_a_time(history: History) -> Generator[None]:
    """Hold a lock while a model reads a session: a second one would read the same messages for nothing."""
    with held_without_waiting(os.path.join(history.layout.offsets, "compacting")) as held:
        if not held:
            problem = "another compaction by a model is running"
            raise NothingToCompact(problem, operation="compact", place=history.layout.name)
        yield


def first_uncompacted(folded: Folded) -> int:
    """Return the first message that no compaction in effect has read."""
    sources = [parse_source(compaction.source) for compaction in folded.accepted]
    first = 1
    for messages in sorted((source for source in sources if isinstance(source, Messages)), key=lambda span: span.start):
        if messages.start > first:
            break
        first = max(first, messages.stop + 1)
    return first
