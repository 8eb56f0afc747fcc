"""One reply while it arrives: the text for the user is passed on, and what came is stored once, whole or not."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from daypack.errors import EmptyReply, StorageFailed
from daypack.files.lock import ThreadLock
from daypack.turn.dialects.streams import Gathered, Gathering, gathering, read_piece
from daypack.types.history import Message

if TYPE_CHECKING:
    from daypack.protocol import Splitter

# Why a reply is incomplete; the name of an error's type is the third possibility.
ENDED_EARLY = "ended early"
ABANDONED = "abandoned"

Store = Callable[[Gathered, str | None], Message]  # the text says why a reply is incomplete


class Reception:
    """Gathers a reply and stores it when it ends, breaks off or is abandoned."""

    def __init__(self, store: Store, splitter: "Splitter | None") -> None:
        self._store = store
        self._splitter = splitter  # holds back the snapshot that a turn may have asked for
        self._gathering: Gathering | None = None
        self._threads = ThreadLock()
        self._reason: str | None = None
        self._stopped = False  # nothing more is read; `ended` once what came is stored
        self.abandoned = False  # its loop was left
        self.ended = False
        self.message: Message | None = None  # as stored; None if nothing came

    def take(self, piece: object) -> str:
        """Take the next piece; return the text that may be shown now."""
        read = read_piece(piece)
        if read is None or self.ended:
            return ""
        if self._gathering is None:
            self._gathering = gathering(read)
        text = self._gathering.take(read)
        return self._splitter.feed(text) if self._splitter and text else text

    def rest(self) -> str:
        """Return the text that was held back; the source has ended."""
        if self._splitter is None or self._splitter.reply is not None:
            return ""
        return self._splitter.close().unsent

    def end(self, reason: str | None) -> Message | None:
        """Store what came, once; `reason`: why nothing more is read, None if the source has ended."""
        with self._threads:
            if self.ended:
                return self.message
            if not self._stopped:
                self._stopped, self._reason = True, reason
            self.ended = True
            try:
                self.message = self._stored(self._reason)
            except StorageFailed:
                self.ended = False  # it can be stored when there is space again
                raise
            return self.message

    def _stored(self, reason: str | None) -> Message | None:
        gathered = self._gathering.gathered() if self._gathering else None
        incomplete = self._incomplete(reason)
        if gathered:
            return self._store(gathered, incomplete)
        if incomplete is None:
            problem = "is empty: nothing came; nothing was stored"
            raise EmptyReply(problem, operation="accept", place="stream", hint="call the model again")
        return None

    def _incomplete(self, reason: str | None) -> str | None:
        """Return why the reply is incomplete; None if it is whole."""
        if self._gathering is None:
            return reason
        if self._gathering.complete or (reason is None and not self._gathering.says_end):
            return None
        return reason or ENDED_EARLY
