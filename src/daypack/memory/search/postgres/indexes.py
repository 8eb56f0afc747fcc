"""Search indexes in a PostgreSQL database: those of all memories in the same tables."""

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from daypack.errors import MemoryMissing
from daypack.memory.search.index import POSTINGS, IndexParts
from daypack.memory.search.postgres.word_tables import FORMAT
from daypack.memory.search.postgres.words import DOCUMENTS, ENTRIES, WordPlace
from daypack.memory.search.skipped import Skipped
from daypack.memory.store.port import StoreFeed
from daypack.memory.store.postgres.erasure import clean
from daypack.memory.store.postgres.index_rows import erase_vectors, erase_words
from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope, Transaction
from daypack.search.lexical import Lexical

if TYPE_CHECKING:
    from daypack.llm.embedding.port import Embedder
    from daypack.memory.search.postgres.loaded_rows import RowCache
    from daypack.memory.search.postgres.vectors import PostgresVectors

_OWNER = "SELECT tenant FROM memories WHERE id = %s"
_SKIPPED = """SELECT i.skipped FROM memories m
    JOIN indexes i ON i.tenant = m.tenant AND i.memory = m.number AND i.kind = 0 WHERE m.id = %s"""
_SAVE_SKIPPED = "UPDATE indexes SET skipped = %s WHERE memory = %s AND kind = 0"


class PostgresIndexes:
    """The indexes in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rows: RowCache | None = None

    def open(self, feed: StoreFeed, embedder: "Embedder | None") -> IndexParts:
        """Return the parts of the index of the memory that `feed` reads."""
        memory = _OneMemory(self._database, feed.user, feed.memory_id)
        vectors = self._open_vectors(memory, embedder) if embedder else None
        words, documents = Lexical(memory.words, postings=POSTINGS), Lexical(memory.documents)
        together = partial(self._database.together, "search_memories", feed.user)
        return IndexParts(words, documents, vectors, Skipped(memory), memory.erase, together)

    def _open_vectors(self, memory: "_OneMemory", embedder: "Embedder") -> "PostgresVectors":
        from daypack.memory.search.postgres.loaded_rows import RowCache  # noqa: PLC0415 — needs numpy, 100 ms
        from daypack.memory.search.postgres.vectors import PostgresVectors  # noqa: PLC0415

        if self._rows is None:
            self._rows = RowCache()
        return PostgresVectors(self._database, memory.user, memory.memory_id, embedder, self._rows)

    def erase(self, memory_id: str) -> None:
        """Remove the index of a memory of any user; a memory that is gone has none."""
        scope = Scope(role="daypack_operator", reading=True)
        owner = self._database.run("erase index", lambda at: at.row(_OWNER, (memory_id,)), scope)
        if owner:
            _OneMemory(self._database, owner[0], memory_id).erase()


class _OneMemory:
    """The index of one memory: its words, what it lacks, and how it is erased."""

    def __init__(self, database: Database, user: str, memory_id: str) -> None:
        self._database = database
        self.user = user
        self.memory_id = memory_id
        self.words = WordPlace(database, user, memory_id, ENTRIES)
        self.documents = WordPlace(database, user, memory_id, DOCUMENTS)

    def erase(self) -> None:
        """Delete everything at once; writers at work are waited for, and those that come later begin anew."""
        tables: set[str] = set()

        def work(transaction: Transaction) -> None:
            memory = self.words.lock(transaction, "erase index")[0].memory
            self.documents.lock(transaction, "erase index")
            erase_words(transaction, memory, (ENTRIES, DOCUMENTS), FORMAT)
            tables.update(erase_vectors(transaction, memory))

        with suppress(MemoryMissing):
            self._database.resolve("erase index", work, Scope(self.user))
        clean(self._database, tables)  # they are unused now; what all memories share, the store cleans

    # What the index lacks because it is damaged in the store

    def load(self) -> bytes:
        """Return the records that the index lacks."""
        scope = Scope(self.user, reading=True)
        row = self._database.run("open index", lambda at: at.row(_SKIPPED, (self.memory_id,)), scope)
        return row[0] if row else b""

    def save(self, records: bytes) -> None:
        """Replace the records that the index lacks."""

        def work(transaction: Transaction) -> None:
            state, _ = self.words.lock(transaction, "index")
            transaction.execute(_SAVE_SKIPPED, (records, state.memory))

        self._database.resolve("index", work, Scope(self.user))
