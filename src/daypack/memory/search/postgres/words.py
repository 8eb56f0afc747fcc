"""The words of one memory in PostgreSQL: transactions over the tables of `word_tables`.

A writer locks the row of its index, so indexers of several processes take turns, and each skips what another has added.
It also holds the row of the memory, so an erasure waits for it and then finds everything it wrote. A reader sees one
snapshot.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import local

from daypack.errors import StorageFailed
from daypack.forks import ThreadLock
from daypack.memory.search.postgres.word_tables import FORMAT, State, WordTables, read_state
from daypack.memory.store.port import memory_missing
from daypack.memory.store.postgres.index_rows import erase_words
from daypack.postgres.database import Database
from daypack.postgres.migrations import INCARNATION
from daypack.postgres.transaction import Scope, Transaction
from daypack.search.tables import Answer, IndexTables
from daypack.types.deadline import NO_DEADLINE, Deadline

ENTRIES, DOCUMENTS = 0, 1  # the kinds of indexes

_STATE = f"""m.number, {INCARNATION}, i.format, i.generation, i.newest, i.oldest, i.entries, i.chunks, i.words,
    i.stretches, i.persons, i.gap"""
_READ = f"""
SELECT {_STATE} FROM memories m
LEFT JOIN indexes i ON i.tenant = m.tenant AND i.memory = m.number AND i.kind = %s WHERE m.id = %s
"""  # noqa: S608 — constants
_CREATE = """
INSERT INTO indexes(tenant, memory, kind, format, generation)
SELECT m.tenant, m.number, %s, %s, nextval('index_generations') FROM memories m
WHERE m.id = %s AND NOT EXISTS (SELECT FROM indexes i WHERE i.memory = m.number AND i.kind = %s) FOR KEY SHARE
ON CONFLICT DO NOTHING
"""
_LOCK = f"""
SELECT {_STATE} FROM memories m
JOIN indexes i ON i.tenant = m.tenant AND i.memory = m.number AND i.kind = %s WHERE m.id = %s
FOR KEY SHARE OF m FOR UPDATE OF i
"""  # noqa: S608


class _Waiting(local):
    """How long this thread waits for others that write."""

    deadline: Deadline = NO_DEADLINE


class WordPlace:
    """One index: the words of a memory's entries, or of its documents."""

    def __init__(self, database: Database, user: str, memory_id: str, kind: int) -> None:
        self._database = database
        self._memory_id = memory_id
        self._kind = kind
        self._user = user
        # Taken by a thread that has its connection: one that has a connection may wait for it, as searches do.
        self._threads = ThreadLock()
        self._waiting = _Waiting()
        self._identity = State().identity  # as it was read last
        self.times_opened = 0
        self.path = f"{database.place}, memory {memory_id}"

    def run(self, operation: str, work: Callable[[IndexTables], Answer], *, writing: bool = False) -> Answer | None:
        """Run `work` in one transaction of the user; None if the index was replaced since it was read."""
        return self._write(operation, work) if writing else self._read(operation, work)

    def _read(self, operation: str, work: Callable[[IndexTables], Answer]) -> Answer:
        def read(transaction: Transaction) -> Answer:
            with self._threads:
                row = transaction.row(_READ, (self._kind, self._memory_id))
                return work(self._tables(transaction, read_state(row)))

        return self._database.run(operation, read, Scope(self._user, reading=True, snapshot=True))

    def _write(self, operation: str, work: Callable[[IndexTables], Answer]) -> Answer | None:
        begun = False

        def write(transaction: Transaction) -> Answer | None:
            with self._threads:
                return locked(transaction)

        def locked(transaction: Transaction) -> Answer | None:
            nonlocal begun
            known = self._identity
            state, created = self.lock(transaction, operation)
            tables = self._tables(transaction, state)
            if state.identity != known and (known[0] or not created):
                return None  # replaced since it was read: what is to be added may not follow it, or be erased by now
            if begun:  # `work` may have consumed what it adds: the caller begins again
                raise StorageFailed("the connection was lost", operation=operation, place=self.path)
            begun = True
            return work(tables)

        return self._database.run(operation, write, Scope(self._user))

    def lock(self, transaction: Transaction, operation: str) -> tuple[State, bool]:
        """Lock the index; return its state, and True if there was none."""
        if (seconds := self._waiting.deadline.remaining()) < NO_DEADLINE.seconds:
            milliseconds = str(max(1, int(1_000 * seconds)))
            transaction.execute("SELECT set_config('lock_timeout', %s, true)", (milliseconds,))
        created = transaction.execute(_CREATE, (self._kind, FORMAT, self._memory_id, self._kind))
        row = transaction.row(_LOCK, (self._kind, self._memory_id))
        if row is None:
            raise memory_missing(self._memory_id, operation)
        state = read_state(row)
        if not state.generation:  # of an earlier format
            erase_words(transaction, state.memory, [self._kind], FORMAT)
            state = read_state(transaction.row(_LOCK, (self._kind, self._memory_id)))
        return state, created.rowcount > 0

    def _tables(self, transaction: Transaction, state: State) -> WordTables:
        if state.identity != self._identity:
            self._identity = state.identity
            self.times_opened += 1
        return WordTables(transaction, self._kind, state)

    @contextmanager
    def waiting(self, operation: str, deadline: Deadline) -> Generator[None]:
        """Wait for others that write to the index until the deadline only."""
        del operation
        self._waiting.deadline = deadline
        try:
            yield
        finally:
            self._waiting.deadline = NO_DEADLINE

    def close(self) -> None:
        """Nothing is open: connections belong to the database."""
