"""What is known of a commit: it is stored as promised, or it cannot be known.

A commit waits until the synchronous replicas have it. An administrator who cancels that wait has the server acknowledge
it nevertheless, with a warning: `WatchedConnection` remembers it.
"""

from typing import TYPE_CHECKING, Any, cast

from daypack.errors import CommitUnknown

if TYPE_CHECKING:
    from psycopg import Connection

    from daypack.postgres.silence import WatchedConnection

_LOST = "the connection was lost during the commit: it is not known whether it was stored"
_UNREPLICATED = "the wait for the synchronous replica was cancelled: it is not known whether the replica has it"


class CommitDoubtful(Exception):
    """A transaction was being committed, and it is not known whether it is stored as promised."""

    def __init__(self, problem: str = _LOST) -> None:
        super().__init__(problem)
        self.problem = problem

    def unknown(self, operation: str, place: str) -> CommitUnknown:
        """Return the error for a caller that cannot find out."""
        hint = "read it, or repeat the call with the same client key"
        return CommitUnknown(self.problem, operation=operation, place=place, hint=hint)


def require_replicated(connection: "Connection[Any]") -> None:
    """Raise if the last commit was acknowledged before the synchronous replicas had it."""
    watched = cast("WatchedConnection", connection)
    if watched.unreplicated:
        watched.unreplicated = False
        raise CommitDoubtful(_UNREPLICATED)
