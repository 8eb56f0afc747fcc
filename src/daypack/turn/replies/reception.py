"""One reply while it arrives: the text for the user is passed on, and what came is stored once, whole or not."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from daypack.errors import EmptyReply, SessionClosed
from daypack.forks import ThreadLock, forks
from daypack.turn.dialects.reply_fields import unusable
from daypack.turn.dialects.streams import Gathered, Gathering, gathering, is_text, joined, read_piece
from daypack.turn.replies.source import Source
from daypack.types.history import Message

if TYPE_CHECKING:
    from daypack.protocol import Splitter

# Why a reply is incomplete; the name of an error's type is the third possibility.
ENDED_EARLY = "ended early"
ABANDONED = "abandoned"

# Takes what came, why it is incomplete, and its words. The error: some of it cannot be read, the words are stored.
Store = Callable[[Gathered, str | None, str], tuple[Message, Exception | None]]


class Reception:
    """Gathers a reply and stores it when it ends, breaks off or is abandoned."""

    def __init__(self, source: Source, store: Store, splitter: "Splitter | None") -> None:
        self._source = source
        self._store = store
        self._splitter = splitter  # holds back the snapshot that a turn may have asked for
        self._gathering: Gathering | None = None
        self._threads = ThreadLock()
        self._forks = forks.count
        self._reason: str | None = None
        self._stopped = False  # nothing more is read; `ended` once what came is stored
        self._ended = False
        self._lines = _Lines()
        self.readers: set[int] = set()  # loops over it
        self.left = False  # a loop was left, or the stream was dropped
        self.message: Message | None = None  # as stored; None if nothing came
        self._session_closed = False  # before the reply had come
        self.note_failure: Callable[[str], None] = lambda _: None  # gets the reason when no message is stored

    @property
    def ended(self) -> bool:
        """True once what came is stored; in a forked child, because the reply is its parent's."""
        return self._ended or self._forks != forks.count

    @property
    def abandoned(self) -> bool:
        """True if no loop reads it any more."""
        return self.left and not self.readers

    def take(self, piece: object) -> str:
        """Take the next piece; return the text that may be shown now."""
        read = read_piece(piece)
        if read is None:
            return ""
        with self._threads:
            if self._stopped or self.ended:
                return ""
            if self._gathering is None:
                self._gathering = gathering(read)
            elif is_text(read) is self._gathering.says_end:
                hint = "give the client's events, or texts only"
                raise unusable("has both texts and events", "stream", hint)
            text = self._gathering.take(read)
            if not text:
                return ""
            self._lines.come(text, self._gathering.part)
            return self._lines.show(self._splitter.feed(text) if self._splitter else text)

    def rest(self) -> str:
        """Return the text of the stored message that was not shown: it was held back, or came in no piece."""
        text, shown = self.message.text if self.message else "", self._lines.shown()
        return text[len(shown) :] if text.startswith(shown) else ""

    def close_session(self) -> None:
        """Store what came; the session is closed, and reading on is an error."""
        self._session_closed = not self.ended
        self.abandon()

    def require_session(self) -> None:
        """Raise SessionClosed if the session was closed before the reply had come."""
        if self._session_closed:
            problem = "the session was closed before the stream was read; what came is stored"
            hint = "read it before close() or the end of `with`"
            raise SessionClosed(problem, operation="read stream", place="stream", hint=hint)

    def abandon(self) -> Message | None:
        """Release the connection and store what came; nothing more is read."""
        if not self.ended:
            self._source.release()
        return self.end(ABANDONED)

    def end(self, reason: str | None) -> Message | None:
        """Store what came, once; `reason`: why nothing more is read, None if the source has ended.

        If it cannot be stored, or that is interrupted, the next call tries again.
        """
        with self._threads:
            if self.ended:
                return self.message
            if not self._stopped:
                self._stopped, self._reason = True, reason
            gathered = self._gathering.gathered() if self._gathering else None
            incomplete = self._incomplete(self._reason)
            problem: Exception | None = None
            if gathered:
                try:
                    self.message, problem = self._store(gathered, incomplete, self._lines.words())
                except EmptyReply as error:
                    self._ended = True
                    self.note_failure(type(error).__name__)
                    raise
            else:
                self.note_failure(incomplete or EmptyReply.__name__)
            if not gathered and incomplete is None:
                said = "the stream is empty: nothing came; nothing was stored"
                problem = EmptyReply(said, operation="accept", place="stream", hint="call the model again")
            self._ended = True
            self._gathering = None
            if problem and self._reason is None:
                raise problem
            return self.message

    def _incomplete(self, reason: str | None) -> str | None:
        """Return why the reply is incomplete; None if it is whole."""
        if self._gathering is None:
            return reason
        if self._gathering.complete or (reason is None and not self._gathering.says_end):
            return None
        return reason or ENDED_EARLY


class _Lines:
    """The text as it is shown: the texts of two parts of a message are two lines, as in the message's `text`."""

    def __init__(self) -> None:
        self._came = 0  # characters, shown or held back
        self._passed = 0
        self._part: object = None
        self._words: list[str] = []
        self._breaks: list[int] = []
        self._shown: list[str] = []

    def come(self, text: str, part: object) -> None:
        """Note a text that came, and the part it is in."""
        if self._came and part != self._part:
            self._breaks.append(self._came)
        self._part = part
        self._came += len(text)
        self._words.append(text)

    def show(self, text: str) -> str:
        """Return the next text for the user, with the ends of lines in it."""
        start, self._passed = self._passed, self._passed + len(text)
        while self._breaks and self._breaks[0] < self._passed:
            at = self._breaks.pop(0) - start
            text, start = f"{text[:at]}\n{text[at:]}", start - 1
        self._shown.append(text)
        return text

    def words(self) -> str:
        """Return all that came."""
        return joined(self._words)

    def shown(self) -> str:
        """Return all that was shown."""
        return "".join(self._shown)
