"""Every error daypack raises, in one tree.

    DaypackError              operation, place, problem, hint and cause
    ├── BadInput              an argument cannot be used; nothing was written
    │   ├── BadName           a session, agent, user or pin name
    │   ├── BadMessage        a message or event that cannot be stored
    │   ├── BadSource         a source reference that does not match the grammar
    │   ├── BadConfig         a setting in a flag, environment variable or file
    │   ├── KeyConflict       a client key already used for a different payload
    │   ├── TooLong           a document, summary, entry, title or tag over its limit
    │   ├── BadReply          a model's reply that breaks the hybrid protocol in strict mode
    │   ├── EmptyReply        a model's reply without text, tool calls or anything else
    │   ├── QuotaExceeded     a user's quota of memories, entries or bytes
    │   └── BudgetTooSmall    the newest user message does not fit into the budget
    ├── NotFound
    │   ├── SessionMissing    no such session
    │   ├── SourceMissing     a reference to something this session does not have
    │   ├── NoUserMessage     a turn was requested for a session without a user message
    │   ├── NothingToCompact  a compaction would not make the window smaller
    │   ├── MemoryMissing     no such memory for this user
    │   ├── EntryMissing      no such entry in this memory
    │   ├── Erased            a turn showed what was erased since, so it no longer verifies
    │   ├── UserMissing       no such user
    │   ├── ExtraMissing      a package of an extra is not installed; the hint names the extra
    │   └── ModelMissing      a model file, or the package that runs it, is not installed
    ├── StorageFailed         a file system call failed; the message names the call and the file
    │   ├── LockUnavailable   the file system has no locks, or the lock could not be taken
    │   ├── WriteFailed       bytes could not be written; the file is unchanged
    │   ├── CommitUnknown     a database did not say whether it has stored a write
    │   ├── Overtaken         another worker appended to the session first; nothing was stored
    │   ├── SyncFailed        bytes were written but may not be on disk; no append was acknowledged
    │   ├── PoisonedLog       a sync failed on this handle, so it refuses further appends
    │   └── UnsafePath        a symbolic link or special file inside a session
    ├── SessionClosed         the session was closed before
    ├── AccessDenied          no token, a wrong token, or a token without the required scope
    ├── ServerFailed          a memory server sent an error or an invalid response
    │   └── ServerUnreachable a memory server did not answer: no connection, no response in time, a broken one
    ├── RateLimited           a caller has used its share of a server; `retry_after` says when to try again
    │   └── ServerBusy        a server has no room for another call of any caller
    ├── ModelFailed           a model endpoint or download failed or sent an invalid response
    └── Damaged               stored bytes are not the bytes that were written
        └── ReplayMismatch    a recorded turn cannot be rebuilt byte for byte

Warnings: DamageWarning (a damaged line was skipped while reading; the other lines were returned).
"""

from typing import Any


class DaypackError(Exception):
    """Base of all errors: what was attempted, on what, why it failed and what to do."""

    def __init__(self, problem: str, *, operation: str = "", place: str = "", hint: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.operation = operation
        self.place = place
        self.hint = hint

    @property
    def cause(self) -> BaseException | None:
        """The lower-level exception, or None."""
        return self.__cause__

    def __str__(self) -> str:
        text = ": ".join(part for part in (self.operation, self.place, self.problem) if part)
        return f"{text} (hint: {self.hint})" if self.hint else text


class BadInput(DaypackError):
    """An argument cannot be used; nothing was written."""


class BadName(BadInput):
    """A session, agent, user or pin name that cannot be a path component."""


class BadMessage(BadInput):
    """A message or event that cannot be stored as one JSON line."""


class BadSource(BadInput):
    """A source reference that does not match the grammar."""


class BadConfig(BadInput):
    """A setting whose value is not allowed."""


class KeyConflict(BadInput):
    """A client key was already used for a different payload."""


class TooLong(BadInput):
    """A text is longer than its limit; none of it was written."""


class BadReply(BadInput):
    """A reply breaks rules of the hybrid protocol: `violations` lists them, `reply` is what could be parsed."""

    violations: tuple[Any, ...] = ()
    reply: Any = None


class EmptyReply(BadInput):
    """A model's reply has no text, no tool calls and nothing else; nothing was stored."""


class QuotaExceeded(BadInput):
    """The write would exceed a user's quota; nothing was written."""


class BudgetTooSmall(BadInput):
    """The newest user message does not fit into the budget; nothing was packed."""


class NotFound(DaypackError):
    """Something that was named does not exist."""


class SessionMissing(NotFound):
    """No session has that name."""


class SourceMissing(NotFound):
    """A reference to something this session does not have."""


class NoUserMessage(NotFound):
    """A turn was requested and the session has no user message."""


class NothingToCompact(NotFound):
    """A compaction would not make the window smaller; the previous files are unchanged."""


class MemoryMissing(NotFound):
    """This user has no memory with that id."""


class EntryMissing(NotFound):
    """This memory has no entry with that id."""


class Erased(NotFound):
    """A recorded turn showed something that was erased on purpose, so it can no longer be verified."""


class UserMissing(NotFound):
    """No user has that name."""


class ExtraMissing(NotFound):
    """A package of an extra is not installed; the hint names the extra."""


class ModelMissing(NotFound):
    """A model file, or the package that runs it, is not installed."""


class StorageFailed(DaypackError):
    """A file system call failed."""


class LockUnavailable(StorageFailed):
    """The session's lock could not be taken."""


class WriteFailed(StorageFailed):
    """Bytes could not be written; the file is unchanged."""


class CommitUnknown(StorageFailed):
    """The connection to a database was lost while a write was being committed: it may be stored, or not."""


class Overtaken(StorageFailed):
    """Another worker appended to the session first; nothing was stored, and the same call can succeed."""


class SyncFailed(StorageFailed):
    """Bytes were written but may not be on disk; no append was acknowledged."""


class PoisonedLog(StorageFailed):
    """A sync failed on this handle, so it refuses all further appends."""


class UnsafePath(StorageFailed):
    """A symbolic link, or a file of the wrong kind, where a plain file or folder is required."""


class SessionClosed(DaypackError):
    """The session was closed before; nothing was read or written."""


class AccessDenied(DaypackError):
    """The caller may not do this; the message gives no further details."""


class ServerFailed(DaypackError):
    """A memory server sent an error or an invalid response."""


class ServerUnreachable(ServerFailed):
    """A memory server did not answer: no connection, no response in time, or a response that was cut off."""


class RateLimited(DaypackError):
    """A caller has used its share of a server; nothing was done. `retry_after` is in seconds."""

    def __init__(
        self, problem: str, *, operation: str = "", place: str = "", hint: str = "", retry_after: int = 1
    ) -> None:
        super().__init__(problem, operation=operation, place=place, hint=hint)
        self.retry_after = retry_after


class ServerBusy(RateLimited):
    """A server has no room for another call, of whichever caller; nothing was done."""


class ModelFailed(DaypackError):
    """A model endpoint, model file or download failed or sent an invalid response."""


class Damaged(DaypackError):
    """Stored bytes are not the bytes that were written."""


class ReplayMismatch(Damaged):
    """A recorded turn cannot be rebuilt byte for byte."""


class DamageWarning(UserWarning):
    """A damaged line was skipped while reading; the other lines were returned."""
