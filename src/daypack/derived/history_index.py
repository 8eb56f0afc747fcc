"""The search index of one session's messages: context/search.sqlite, derived from history and brought up to date.

After a long import a turn indexes only the newest part; the rest is a gap in the index, which is filled from its newest
end in the background. Each step is one transaction that moves the border of the gap: a killed build continues where it
was, and several builds at once share the work. A complete index gives the same answers, however it was built.
"""

import os
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from daypack.config import Config
from daypack.derived.raw_history import is_recalled
from daypack.errors import StorageFailed
from daypack.files import atomic
from daypack.files.lock import held_without_waiting
from daypack.files.read_only import is_read_only
from daypack.forks import forks
from daypack.history.layout import Layout
from daypack.history.searchable import searchable
from daypack.history.session import History
from daypack.search.indexing import Doc
from daypack.search.lexical import Coverage, Hit, Lexical
from daypack.types.deadline import NO_DEADLINE, Deadline
from daypack.types.history import Message

# Measured: 10 to 15 MB of messages.jsonl a second, whether its messages are short or long.
INLINE_BYTES = 4 << 20  # indexed while a turn waits, well below a second; more is built in the background
NEWEST_BYTES = 1 << 20  # of a longer part, indexed while a turn waits
STEP_BYTES = 1 << 20  # in one transaction, for which a turn may have to wait
STEP_MESSAGES = 2000
BLOCK = 100  # messages; the border of a gap is between two blocks


class Unindexed(NamedTuple):
    """Messages that are not in the index, from `start` to before `stop`."""

    start: int
    stop: int

    def before(self, seq: int) -> "Unindexed":
        """Return the part of it before a message."""
        return Unindexed(self.start, min(self.stop, seq))


class _Step(NamedTuple):
    """Messages to index in one transaction: in the gap, or after the newest indexed message."""

    start: int
    stop: int
    in_gap: bool = False


class HistoryIndex:
    """The index file of a session, opened when it is first used."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._lexical: Lexical | None = None
        self.forget()
        forks.watch(self)
        self.requested = False  # a build, by the last turn
        self.start: Callable[[], None] = self._start_thread  # a short-lived command starts a process instead
        self.on_progress: Callable[[int], None] = lambda _: None  # gets the number of messages that are not indexed yet

    def forget(self) -> None:
        """Have no thread that builds; in a forked child, because that of its parent is not in its process."""
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    @property
    def exists(self) -> bool:
        """True if there is an index, however old."""
        return self._lexical is not None or os.path.exists(self._history.layout.derived("search"))

    @property
    def in_memory(self) -> bool:
        """True if no file can be written: then what is not in the file yet is indexed in memory, for this session."""
        return is_read_only(self._history.layout.derived("search"))

    def catch_up(self, end: int, deadline: Deadline = NO_DEADLINE) -> list[Unindexed]:
        """Index the messages before `end` that a turn can wait for, while there is time; return the others.

        That is everything, but of a long import only the newest part, unless the index is in memory: then nothing
        else builds it.
        """
        while True:
            coverage = self._open().coverage()
            unindexed = _unindexed(coverage, end)
            if not unindexed or deadline.has_passed:
                return unindexed
            step = self._next_step(coverage, end)
            waiting = self._is_long(unindexed) and not self.in_memory
            if waiting and (step.in_gap or self._bytes(step.start, step.stop) > NEWEST_BYTES):
                return unindexed
            try:
                with self._open().waiting(deadline):
                    self._take(step)
            except StorageFailed:
                if deadline.has_passed:  # another process is writing to it
                    return unindexed
                raise

    def build(self, closing: threading.Event | None = None) -> None:
        """Index everything, newest part first.

        With an event, as in the background, half of the time is left to others, and it ends early when that is set.
        """
        while not (closing and closing.is_set()):
            end = self.end
            coverage = self._open().coverage()
            unindexed = _unindexed(coverage, end)
            if not unindexed:
                return
            self.on_progress(sum(gap.stop - gap.start for gap in unindexed))
            begun = time.monotonic()
            self._take(self._next_step(coverage, end))
            if closing:
                closing.wait(time.monotonic() - begun)

    def build_alone(self, closing: threading.Event) -> bool:
        """Build it as in the background; return False if another thread or process does."""
        with held_without_waiting(_lock_path(self._history.layout)) as held:
            if held:
                self.build(closing)
            return held

    def request_build(self, unindexed: list[Unindexed]) -> bool:
        """Ask for a build in the background if a turn would wait too long for this; return True if it would."""
        self.requested = self._is_long(unindexed) and not self.in_memory
        return self.requested

    def start_requested(self) -> None:
        """Start a requested build, unless one is running: after a turn, with which it would compete."""
        self.requested = False
        if not self.being_built:
            self.start()

    @property
    def being_built(self) -> bool:
        """True while a thread or process builds the index in the background."""
        if self._thread and self._thread.is_alive():
            return True
        with held_without_waiting(_lock_path(self._history.layout)) as held:
            return not held

    @property
    def is_far_behind(self) -> bool:
        """True if a turn would have to wait too long for the index."""
        return self._is_long([Unindexed(1, self.end)]) and self._is_long(self.unindexed())

    @property
    def end(self) -> int:
        """The number after the newest message."""
        return self._history.messages.reader.newest().seq + 1

    def unindexed(self) -> list[Unindexed]:
        """Return the messages that are not in the index."""
        return _unindexed(self._open().coverage(), self.end)

    def wait(self) -> None:
        """Wait for the thread that builds the index."""
        if self._thread:
            self._thread.join()

    def search(self, query: str, *, limit: int, below: int) -> list[Hit]:
        """Return the best messages before `below` for a query, best first."""
        return self._open().search(query, limit=limit, below=below)

    def close(self) -> None:
        """Stop building and close the file; the next use opens it again."""
        self._closing.set()
        self.wait()
        self._closing = threading.Event()
        if self._lexical:
            self._lexical.close()
            self._lexical = None

    def _open(self) -> Lexical:
        if self._lexical is None:
            if not self.in_memory:
                atomic.make_folders(self._history.layout.context, durable=False)
            self._lexical = Lexical(self._history.layout.derived("search"), block=BLOCK)
        return self._lexical

    def _start_thread(self) -> None:
        # Without a reference to this session, which may be dropped without being closed.
        arguments = (self._history.layout, self._history.config, self._closing)
        self._thread = threading.Thread(target=_build, args=arguments, name="daypack history index", daemon=True)
        self._thread.start()

    # Steps

    def _next_step(self, coverage: Coverage, end: int) -> _Step:
        """Return what is indexed next: new messages, the newest part of many, or the newest part of the gap."""
        start = coverage.newest + 1
        many = self._is_long([Unindexed(start, end)])
        if start < end and not many:
            return _Step(start, min(start + STEP_MESSAGES, end))
        if coverage.gap:
            return _Step(self._newest_part(*coverage.gap, STEP_BYTES), coverage.gap[1], in_gap=True)
        return _Step(self._newest_part(start, end, NEWEST_BYTES), end)

    def _newest_part(self, start: int, stop: int, most_bytes: int) -> int:
        """Return where the newest part of a range begins: with a block, at least one."""
        begin = (stop - 2) // BLOCK * BLOCK + 1
        while begin > start:
            more = begin - BLOCK
            if stop - more > STEP_MESSAGES or self._bytes(more, stop) > most_bytes:
                break
            begin = more
        return max(begin, start)

    def _take(self, step: _Step) -> None:
        docs = (_doc(message) for message in self._history.messages.records(step.start, step.stop - 1))
        if step.in_gap:
            self._open().fill(docs, step.start, step.stop)
        else:
            self._open().add(docs, start=step.start, through=step.stop - 1)

    def _is_long(self, unindexed: list[Unindexed]) -> bool:
        return sum(self._bytes(*gap) for gap in unindexed) > INLINE_BYTES

    def _bytes(self, start: int, stop: int) -> int:
        """Return the size of a range; if numbers are missing in the log, an estimate."""
        reader = self._history.messages.reader
        ends = reader.slots(start - 1, start) + reader.slots(stop - 2, stop - 1)
        return ends[-1].end - ends[0].offset if len(ends) > 1 else 0


def _build(layout: Layout, config: Config, closing: threading.Event) -> None:
    """Build an index in a thread of its own, unless another thread or process builds it."""
    try:
        history = History(layout, config)
        index = HistoryIndex(history)
        try:
            index.build_alone(closing)
        finally:
            index.close()
            history.close()
    except Exception:  # no caller waits for this thread: the next turn starts it again, and reports what fails
        return


def _lock_path(layout: Layout) -> str:
    return os.path.join(layout.offsets, "indexing")


def _unindexed(coverage: Coverage, end: int) -> list[Unindexed]:
    gaps = [Unindexed(*coverage.gap)] if coverage.gap else []
    return [*gaps, Unindexed(coverage.newest + 1, end)] if coverage.newest + 1 < end else gaps


def _doc(message: Message) -> Doc:
    # Recalled text is indexed where it was first said.
    text = "" if is_recalled(message) else searchable(message)
    return Doc(message.seq, text, message.name or "", message.role, message.ts)
