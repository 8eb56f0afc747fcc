"""Every error daypack raises, in one tree.

    DaypackError              carries operation, place, cause and hint
    ├── BadInput              the caller gave something that cannot be used; nothing was written
    │   ├── BadName           a session, agent, user or pin name
    │   ├── BadMessage        a message or event that cannot be stored
    │   ├── BadSource         a source reference that is not in the grammar
    │   ├── BadConfig         a setting of a flag, variable or file
    │   ├── KeyConflict       a client key that already stands for another payload
    │   ├── TooLong           a document, summary, entry, title or tag over its cap; the length seen is told
    │   ├── BadReply          a model's reply that breaks the hybrid protocol, read strictly
    │   ├── QuotaExceeded     a user's quota of memories, entries or bytes
    │   └── WindowTooSmall    a budget that the newest user message does not fit into
    ├── NotFound
    │   ├── SessionMissing    no such session
    │   ├── SourceMissing     a reference to something that is not in this session
    │   ├── NothingToAnswer   a turn was asked for, and no user message is there
    │   ├── NothingToCompact  a compaction that would leave the window as it is, or not become smaller
    │   ├── MemoryMissing     no such memory for this user
    │   ├── EntryMissing      no such entry in this memory
    │   ├── UserMissing       no such user
    │   ├── ExtraMissing      a package of an extra is not installed; the hint names the extra
    │   └── ModelMissing      a model file, or the package that runs it, is not here
    ├── StorageFailed         the file system said no; the message names the call and the file
    │   ├── LockUnavailable   the file system has no locks, or the lock could not be taken
    │   ├── WriteFailed       bytes could not be written; the file is as it was before
    │   ├── SyncFailed        bytes were written but not proved to be on disk; nobody was acknowledged
    │   ├── PoisonedLog       a handle that saw a failed sync refuses all further appends
    │   └── UnsafePath        a symbolic link, or a file of the wrong kind, inside a session
    ├── Refused               a caller who may not do this: no token, a wrong one, or one of too small a scope
    ├── ServerFailed          a memory server did not answer as it should
    ├── ModelFailed           a model or the place it comes from did not answer as it should
    └── Damaged               stored bytes are not what was written
        └── ReplayDiffers     a recorded turn cannot be made again byte for byte

Warnings: DamageWarning (a damaged line was met while reading; the others were returned).
"""

from typing import Any


class DaypackError(Exception):
    """Base of all errors: what was attempted, where, why it failed and what to do."""

    def __init__(self, problem: str, *, operation: str = "", place: str = "", hint: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.operation = operation
        self.place = place
        self.hint = hint

    @property
    def cause(self) -> BaseException | None:
        """The lower-level exception, when there is one."""
        return self.__cause__

    def __str__(self) -> str:
        text = ": ".join(part for part in (self.operation, self.place, self.problem) if part)
        return f"{text} ({self.hint})" if self.hint else text


class BadInput(DaypackError):
    """The caller gave something that cannot be used; nothing was written."""


class BadName(BadInput):
    """A session, agent, user or pin name that cannot be a path component."""


class BadMessage(BadInput):
    """A message or event that cannot be stored as one JSON line."""


class BadSource(BadInput):
    """A source reference that is not in the grammar."""


class BadConfig(BadInput):
    """A setting with a value that is not allowed."""


class KeyConflict(BadInput):
    """A client key that already stands for another payload."""


class TooLong(BadInput):
    """A text over its cap; nothing of it was written."""


class BadReply(BadInput):
    """A reply that breaks rules of the hybrid protocol; `violations` says which, `reply` is what was read of it."""

    violations: tuple[Any, ...] = ()
    reply: Any = None


class QuotaExceeded(BadInput):
    """A user's quota would be exceeded; nothing was written."""


class WindowTooSmall(BadInput):
    """A budget that the newest user message does not fit into; nothing was packed."""


class NotFound(DaypackError):
    """Something that was named does not exist."""


class SessionMissing(NotFound):
    """No session of that name."""


class SourceMissing(NotFound):
    """A reference to something that is not in this session."""


class NothingToAnswer(NotFound):
    """A turn was asked for, and the session has no user message."""


class NothingToCompact(NotFound):
    """A compaction was asked for that would not make the window smaller; the former files stay."""


class MemoryMissing(NotFound):
    """No memory of that id for this user."""


class EntryMissing(NotFound):
    """No entry of that id in this memory."""


class UserMissing(NotFound):
    """No user of that name."""


class ExtraMissing(NotFound):
    """A package that an extra brings is not installed."""


class ModelMissing(NotFound):
    """A model file, or the package that runs it, is not here."""


class StorageFailed(DaypackError):
    """The file system refused a call."""


class LockUnavailable(StorageFailed):
    """The session's lock could not be taken."""


class WriteFailed(StorageFailed):
    """Bytes could not be written; the file is as it was before."""


class SyncFailed(StorageFailed):
    """Bytes were written but not proved to be on disk; nobody was acknowledged."""


class PoisonedLog(StorageFailed):
    """This handle saw a failed sync and refuses all further appends."""


class UnsafePath(StorageFailed):
    """A symbolic link, or a file of the wrong kind, where a plain file or folder must be."""


class Refused(DaypackError):
    """A caller who may not do this; the answer says no more than that."""


class ServerFailed(DaypackError):
    """A memory server could not be reached, or did not answer as it should."""


class ModelFailed(DaypackError):
    """A model, or the place a model comes from, did not answer as it should."""


class Damaged(DaypackError):
    """Stored bytes are not what was written."""


class ReplayDiffers(Damaged):
    """A recorded turn cannot be made again byte for byte."""


class DamageWarning(UserWarning):
    """A damaged line was met while reading; the other lines were returned."""
