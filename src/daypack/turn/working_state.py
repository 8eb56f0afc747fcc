"""The working state of a session: the fold of its compactions, and the files that show it."""

from contextlib import suppress

from daypack.derived import documents
from daypack.derived.records import COMPACTED, UNDONE, Folded, fold, store
from daypack.errors import DaypackError, StorageFailed
from daypack.forks import ThreadLock
from daypack.history.draft import draft_event
from daypack.history.session import History
from daypack.turn.ledger import Ledger
from daypack.turn.surface import CompactionInfo, info_of
from daypack.types.compaction import Compaction


class WorkingState:
    """The fold of the compaction events; reading it brings it up to date."""

    def __init__(self, history: History, ledger: Ledger) -> None:
        self._history = history
        self._ledger = ledger
        self._threads = ThreadLock(self._drop)
        self._drop()

    def _drop(self) -> None:
        self._seqs: tuple[int, ...] = ()
        self._erased = 0  # the newest erasure when the compactions were read
        self._folded = Folded()

    def read(self) -> Folded:
        """Return the result of all compactions so far."""
        with self._threads:
            ledger = self._ledger.read()
            seqs, erased = tuple(ledger.compactions), ledger.erased
            if (seqs, erased) != (self._seqs, self._erased):
                events = self._history.events
                extends = seqs[: len(self._seqs)] == self._seqs and erased == self._erased
                new = seqs[len(self._seqs) :] if extends else seqs
                added = (event for seq in new for event in events.records(seq, seq))
                self._folded = fold(self._history, added, self._folded if extends else None)
                self._seqs, self._erased = seqs, erased
            return self._folded

    @property
    def newest_seq(self) -> int:
        """The seq of the newest compaction event or erasure; 0 if there is none."""
        ledger = self._ledger.read()
        return max(ledger.erased, *ledger.compactions[-1:], 0)

    def info(self) -> CompactionInfo | None:
        """Return the compaction in effect, after making sure that its files are there; None if there is none."""
        folded = self.read()
        if not folded.accepted and not folded.undone:
            return None  # never compacted, so there are no files either
        current = folded.current
        if (current.id if current else None) != documents.made_from(self._history):
            with suppress(DaypackError):  # on a read-only folder the next writer does it
                self.write()
        return info_of(current) if current else None

    def write(self) -> None:
        """Write the files of the fold."""
        with self._history.lock:
            documents.write(self._history, self.read())

    def commit(self, compaction: Compaction, previous_seq: int) -> Compaction | None:
        """Record a compaction that started when `previous_seq` was the newest; None if another was recorded since.

        One that was started before an erasure is dropped too: it may hold what was erased.
        """

        def record() -> Compaction | None:
            if self.newest_seq != previous_seq:
                return None
            self._history.append_event(draft_event(COMPACTED, store(self._history, compaction)))
            return self._update_files().current

        return self._history.locked(record)

    def undo(self, compaction_id: str) -> Folded:
        """Take a compaction back by appending an event; its files show the state before it again."""

        def record() -> Folded:
            self._history.append_event(draft_event(UNDONE, {"compaction": compaction_id}))
            return self._update_files()

        return self._history.locked(record)

    def _update_files(self) -> Folded:
        """Write the files; if that fails the event still counts, and the next reader writes them."""
        folded = self.read()
        with suppress(StorageFailed):
            documents.write(self._history, folded)
        return folded
