"""The working state of a session: what its compactions amount to, and the files that say so."""

from contextlib import suppress

from daypack.derived import documents
from daypack.derived.records import COMPACTED, UNDONE, Folded, fold, store
from daypack.errors import DaypackError, StorageFailed
from daypack.files.lock import ThreadLock
from daypack.history.draft import draft_event
from daypack.history.session import History
from daypack.turn.evidence.record import brief_of
from daypack.turn.ledger import Ledger
from daypack.turn.survey.surface import Brief
from daypack.types.compaction import Compaction


class Working:
    """The fold of the compaction events, brought up to date when it is asked."""

    def __init__(self, history: History, ledger: Ledger) -> None:
        self._history = history
        self._ledger = ledger
        self._seqs: tuple[int, ...] = ()
        self._folded = Folded()
        self._threads = ThreadLock()

    def read(self) -> Folded:
        """Return what all compactions so far amount to."""
        with self._threads:
            return self._read()

    def _read(self) -> Folded:
        seqs = tuple(self._ledger.read().compactions)
        if seqs != self._seqs:
            events = self._history.events
            begins = seqs[: len(self._seqs)] == self._seqs
            new = seqs[len(self._seqs) :] if begins else seqs
            told = (event for seq in new for event in events.records(seq, seq))
            self._folded = fold(self._history, told, self._folded if begins else None)
            self._seqs = seqs
        return self._folded

    @property
    def newest_seq(self) -> int:
        """The number of the newest event about a compaction."""
        seqs = self._ledger.read().compactions
        return seqs[-1] if seqs else 0

    def brief(self) -> Brief | None:
        """Return the compaction that counts, its files in place; None when nothing was compacted."""
        folded = self.read()
        if not folded.accepted and not folded.undone:
            return None  # nothing was ever compacted, and no file of ours is there
        current = folded.current
        if (current.id if current else None) != documents.made_from(self._history):
            with suppress(DaypackError):  # a read-only folder: the next who can write does it
                self.write()
        return brief_of(current) if current else None

    def write(self) -> None:
        """Write the files of the fold."""
        with self._history.lock:
            documents.write(self._history, self.read(), self.newest_seq)

    def commit(self, compaction: Compaction, former: int) -> Compaction | None:
        """Record a compaction that was begun when `former` was the newest event; None when there is another since."""
        with self._history.lock:
            if self.newest_seq != former:
                return None
            self._history.append_event(draft_event(COMPACTED, store(self._history, compaction)))
            return self._settled().current

    def undo(self, compaction_id: str) -> Folded:
        """Take a compaction back by appending that it was; the files say again what they said before it."""
        with self._history.lock:
            self._history.append_event(draft_event(UNDONE, {"compaction": compaction_id}))
            return self._settled()

    def _settled(self) -> Folded:
        """Bring the files in line; when that fails the event stands, and the next who asks does it."""
        folded = self.read()
        with suppress(StorageFailed):
            documents.write(self._history, folded, self.newest_seq)
        return folded
