"""Group commit of a process: appends to different sessions of a database share a statement, a round trip and a sync.

The first thread to arrive stores for all that are queued. No append of a group waits for the lock of another worker,
and none fails because another one does: it is then stored alone, by the thread that it belongs to.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Literal, NamedTuple, cast
from weakref import WeakKeyDictionary

from daypack.errors import DaypackError
from daypack.files.commit import Group, LeaderInterrupted, Task
from daypack.forks import ThreadLock
from daypack.history.logs.upstream import Mark
from daypack.postgres.calls import Call, text_array
from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope, Transaction

Outcome = Literal["stored", "overtaken", "rewritten", "gone"]
# unsuited: the account begins transactions in which an append cannot be. busy: another worker has the lock.
_Attempt = Outcome | Literal["unsuited", "busy"]
_MOST_BYTES = 64 << 10  # of an append that others wait for

_ALONE = "SELECT daypack.append_lines(%s, %s, %s, %s, %s, %s, %s, %s, %b)"
_WITH_BLOBS = _ALONE[:-1] + ", %s::text[], %s::bytea[])"
_SEVERAL = "SELECT pg_catalog.array_to_string(daypack.append_several(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %b), ' ')"


class Added(NamedTuple):
    """Bytes that go to the end of a log, and the checksum of the log after them."""

    log: int
    place: Mark
    data: bytes
    crc: int
    writer: str  # of `new_writer`


def new_writer() -> str:
    """Return an id for one append, by which it is recognised after its connection was lost."""
    return os.urandom(16).hex()


class Append(NamedTuple):
    """An append to a log of a session, of which the caller knows the generation."""

    database: Database
    tenant: str
    session: int
    generation: int
    added: Added
    blobs: Mapping[str, bytes]

    def store(self) -> Outcome:
        """Store it, together with others if there are any."""
        outcome: _Attempt = "busy"
        if not self.blobs and len(self.added.data) <= _MOST_BYTES:
            # If the thread that stored for all was interrupted, the writer id says whether this one is stored.
            with suppress(LeaderInterrupted):
                outcome = _group_of(self.database).do(self)
        if outcome == "busy":
            outcome = self.alone()
        if outcome in ("busy", "unsuited"):
            outcome = self.database.resolve("append", self._work, Scope(self.tenant))
        return outcome

    def alone(self) -> _Attempt:
        """Store it by a statement of its own."""
        return cast(_Attempt, self.database.call("append", self._call(), Scope(self.tenant)))

    def __call__(self, _: Database) -> _Attempt:
        """Do as much, as a task of a group."""
        return self.alone()

    def numbers(self) -> tuple[str, ...]:
        """Return what it consists of besides its bytes, in the order of the statements, as text."""
        log, place, _, crc, writer = self.added
        numbers = self.session, self.generation, log, place.end, place.crc, crc
        return *map(str, numbers), writer

    def _call(self) -> Call:
        values = self.tenant, *self.numbers(), self.added.data
        if not self.blobs:
            return Call(_ALONE, values)
        return Call(_WITH_BLOBS, (*values, list(self.blobs), list(self.blobs.values())))

    def _work(self, transaction: Transaction) -> Outcome:
        return cast(Outcome, self._call().within(transaction.connection))


def _store_all(tasks: Sequence[Task[Database]]) -> None:
    """Store the appends of all tasks; an error of the connection is that of all."""
    if len(tasks) == 1:
        tasks[0].attempt(cast(Append, tasks[0].run).database)
        return
    appends = [cast(Append, task.run) for task in tasks]
    lengths = [len(append.added.data) for append in appends]
    begins = accumulate(lengths[:-1], initial=1)
    rows = [
        (*append.numbers(), str(begin), str(length))
        for append, begin, length in zip(appends, begins, lengths, strict=True)
    ]
    columns = [f"{{{','.join(column)}}}" for column in zip(*rows, strict=True)]
    data = b"".join(append.added.data for append in appends)
    call = Call(_SEVERAL, (text_array([append.tenant for append in appends]), *columns, data))
    outcomes: Sequence[str]
    try:
        outcomes = (appends[0].database.call("append", call, Scope(appends[0].tenant)) or "").split()
    except DaypackError as error:
        if getattr(error.__cause__, "sqlstate", None) is None:
            raise
        outcomes = ("busy",) * len(tasks)  # one of them is refused: each is stored alone
    for task, outcome in zip(tasks, outcomes, strict=True):
        task.answers.append(outcome)


# One for a database: with two, four or eight at a time, an append took no less time on two busy cores.
_groups: WeakKeyDictionary[Database, Group[Database]] = WeakKeyDictionary()
_mutex = ThreadLock()


def _group_of(database: Database) -> Group[Database]:
    group = _groups.get(database)
    if group is None:
        with _mutex:
            group = _groups.setdefault(database, Group(_store_all, database.place))
    return group
