"""The end of a session: what is still stored, and the error for a use after it."""

from typing import TYPE_CHECKING

from daypack.errors import SessionClosed
from daypack.history.session import History

if TYPE_CHECKING:
    from daypack.turn.replies.reception import Reception


def close_dropped(history: History, receptions: "list[Reception]") -> None:
    """Close a session that was dropped without being closed."""
    try:
        end_receptions(receptions)
    finally:
        history.close()


def end_receptions(receptions: "list[Reception]") -> None:
    """Store what came of the streams that have not ended."""
    while receptions:
        receptions[0].close_session()
        del receptions[:1]


def closed_error(name: str) -> SessionClosed:
    """Return the error for a use of a closed session."""
    hint = "open it again with daypack.open_session(…), or do this before close() or the end of `with`"
    return SessionClosed("the session is closed", operation="use session", place=name, hint=hint)
