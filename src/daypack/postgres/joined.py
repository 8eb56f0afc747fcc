"""The transaction that the reads of a thread share, so that they need fewer round trips."""

import math
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar, cast

from daypack.postgres.transaction import Transaction

if TYPE_CHECKING:
    from psycopg import Connection

Answer = TypeVar("Answer")


def received(answer: Answer) -> Answer:
    """Return the answer of work in a shared transaction when its results are here: an error is that of this work."""
    from psycopg import Cursor  # noqa: PLC0415

    known: object = answer
    for part in cast("tuple[object, ...]", known) if isinstance(known, tuple) else (known,):
        if isinstance(part, Cursor):
            with suppress(IndexError):  # it has no rows
                part.scroll(0)
    return answer


class Joined(threading.local):
    """The transaction that the reads of a thread share, and its connection, which the thread has until their end."""

    until: float = math.inf  # when calls of the thread give up, whatever their patience
    transaction: Transaction | None = None
    connection: "Connection[Any] | None" = None
