"""Turns that a user took back: which messages they were."""

from collections.abc import Sequence

from daypack.importers.transcript import Rollback
from daypack.session import Session
from daypack.types.source import Messages


def find_taken_back(session: Session, last: int, rollback: Rollback, earlier: Sequence[Messages]) -> Messages | None:
    """Return the messages of the newest turns up to message `last`, not counting those taken back before.

    What stands before the first turn is never taken back.
    """
    first, turns = 0, rollback.turns
    for seq in range(last, 0, -1):
        if turns == 0:
            break
        if any(one.start <= seq <= one.stop for one in earlier):
            continue
        for message in session.messages(seq, seq):
            if rollback.is_turn(message):
                first, turns = seq, turns - 1
    return Messages(first, last) if first else None
