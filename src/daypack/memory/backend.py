"""The store, search indexes, limits and recent writes of one home, shared by all its users.

The memories are in files of the home or, if an address is configured, in a PostgreSQL database. With a replica there
are three ways to them: `store` reads wherever its user's writes are visible, `primary` reads where they were written,
which indexing and barriers need, and a search reads entries and index of one server.
"""

import os
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from msgspec import Struct

from daypack.config import from_environment, from_file, settle
from daypack.errors import BadInput
from daypack.history.layout import Home
from daypack.memory.audit_log.log import AuditLog
from daypack.memory.audit_log.port import Log
from daypack.memory.audit_log.record import Deed
from daypack.memory.limits import Limits, read_limits
from daypack.memory.search.index_cache import CopiedIndexes, IndexCache
from daypack.memory.search.search import Question, search
from daypack.memory.store.port import Store
from daypack.memory.store.sqlite import SqliteStore
from daypack.memory.writes.positions import Position, Positions
from daypack.memory.writes.recent_writes import RecentWrites
from daypack.types.deadline import NO_DEADLINE, Deadline
from daypack.types.memory import MAX_CHARS, SearchResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from daypack.config import Config
    from daypack.llm.embedding.port import Embedder
    from daypack.memory.store.postgres.jobs import Jobs
    from daypack.memory.store.postgres.replica import Reads
    from daypack.postgres.database import Database

Record = TypeVar("Record", bound=Struct)


class Copy(NamedTuple):
    """The store and the indexes in a replica, and which reads go there."""

    reads: "Reads"
    store: Store
    indexes: CopiedIndexes


class Server(NamedTuple):
    """What only a store in a database has; a copy only with a replica."""

    database: "Database"
    jobs: "Jobs"
    copy: Copy | None = None


class Backend:
    """A store and what belongs to it. Threads and users share it."""

    def __init__(
        self,
        store: Store,
        indexes: IndexCache,
        limits: Limits | None = None,
        *,
        positions: Positions | None = None,
        audit: Log | None = None,
        server: Server | None = None,
    ) -> None:
        self.embedding_model = ""  # as configured; empty: the best that is installed
        self.redacting = True
        self.index_problem = ""  # of the indexer of this process, if there is one and it did not succeed last
        self.store = store
        self.server = server
        self.primary: Store = getattr(store, "primary", store)
        self.indexes = indexes
        self.audit = audit
        self.limits = limits or Limits()
        self.positions = positions or Positions()
        self.writes = RecentWrites(self.limits.failures)

    def shown(self, record: Record) -> Record:
        """Return a record as it may leave the store: without secrets, unless redaction is off."""
        if not self.redacting:
            return record
        from daypack.text.redact.records import redact_record  # noqa: PLC0415 — its patterns cost 20 ms

        return redact_record(record, MAX_CHARS)

    def token(self, user: str, memory_id: str, *, entries: int = 0, documents: int = 0) -> str:
        """Return the consistency token of the write that this thread has just stored."""
        log = 0 if self.server is None else self.server.database.last_position
        position = Position(self.store.store_id, memory_id, entries, documents, log)
        return self.positions.write_token(user, position)

    def read_token(self, user: str, token: object, operation: str) -> Position:
        """Return the position of a token that this store gave to this user."""
        store_id = self.store.store_id
        try:
            return self.positions.read_token(user, token, store_id, operation)
        except BadInput:
            if self.server is None:
                raise
            self.server.database.wal_position()  # finds out whether the store was restored, and has another id
            if self.store.store_id == store_id:
                raise
        return self.positions.read_token(user, token, self.store.store_id, operation)

    def require(self, user: str, token: str) -> None:
        """Have all later reads of a user be as new as the write of a token; refuse a token that is not the user's."""
        position = self.read_token(user, token, "since")
        if self.server is not None and self.server.copy is not None:
            self.server.copy.reads.require(user, position.log)

    def search(self, user: str, memory_id: str, question: Question) -> SearchResult:
        """Search a memory of a user: in the replica, if that is as new as the user needs and its index is complete."""
        here = partial(search, self.primary, self.indexes, user, memory_id, question)
        if self.server is None or self.server.copy is None:
            return here()
        copy = self.server.copy
        return copy.reads.choose(user, partial(search, copy.store, copy.indexes, user, memory_id, question), here)

    def recording(self, deed: Deed) -> AbstractContextManager[dict[str, Any]]:
        """Record what an owner does in the audit log, before and after it, as `AuditLog.recording`."""
        return nullcontext({}) if self.audit is None else self.audit.recording(deed)

    def waiting(self, deadline: Deadline) -> AbstractContextManager[None]:
        """Let what this thread does meanwhile wait for a database until a deadline at most."""
        if self.server is None or deadline is NO_DEADLINE:
            return nullcontext()
        return self.server.database.limited(deadline.remaining())

    @property
    def place(self) -> str:
        """The address of the database, without its password; empty if memories are files of the home."""
        return "" if self.server is None else self.server.database.place

    def check(self) -> None:
        """Raise if the store cannot be read and written, or the audit log not be written."""
        self.store.check()
        if self.audit is not None:
            self.audit.check()

    def close(self) -> None:
        """Close all files; the next call opens them again."""
        self.indexes.close()
        self.store.close()
        if self.audit is not None:
            self.audit.close()


def open_backend(place: Home, store_url: str = "", replica_url: str = "") -> Backend:
    """Return the backend of a home, configured by its config.toml and the environment; no file is opened yet.

    An address in the arguments comes before those of the environment and of config.toml.
    """
    file = from_file(place.config)
    given = {"store": {"url": store_url, **({"replica_url": replica_url} if replica_url else {})}} if store_url else {}
    config = settle([("store", given), ("environment", from_environment(os.environ)), (place.config, file)])

    def embedder() -> "Embedder | None":
        from daypack.llm.embedders import default_embedding_model, open_embedder  # noqa: PLC0415 — only for searches

        return open_embedder(config.embedding_model or default_embedding_model(place.models), models=place.models)

    limits = read_limits(file, place.config)
    if config.store_url:
        backend = _open_database(config, limits, embedder)
    else:
        store = SqliteStore(place.store)
        indexes = IndexCache(place.memory_indexes, embedder)
        positions = Positions(os.path.join(place.memory, "positions.key"))
        audit = AuditLog(place.audit, flock=config.locking == "flock")
        backend = Backend(store, indexes, limits, positions=positions, audit=audit)
    backend.redacting = config.redaction == "on"
    backend.embedding_model = config.embedding_model or ""
    return backend


def _open_database(config: "Config", limits: Limits, embedder: "Callable[[], Embedder | None]") -> Backend:
    from daypack.memory.audit_log.postgres import PostgresAuditLog  # noqa: PLC0415 — only with a database
    from daypack.memory.search.postgres.indexes import PostgresIndexes  # noqa: PLC0415
    from daypack.memory.store.postgres.jobs import Jobs  # noqa: PLC0415
    from daypack.memory.store.postgres.replica import Replica  # noqa: PLC0415
    from daypack.memory.store.postgres.replicated import ReplicatedStore  # noqa: PLC0415
    from daypack.memory.store.postgres.store import PostgresStore  # noqa: PLC0415
    from daypack.postgres.database import Database  # noqa: PLC0415

    database = Database(config.store_url or "")
    indexes = IndexCache(PostgresIndexes(database), embedder)
    if config.replica_url:
        replica = Replica(config.replica_url, database)
        store = ReplicatedStore(database, replica)
        copied = CopiedIndexes(indexes, PostgresIndexes(replica))
        server = Server(database, Jobs(database), Copy(store.reads, store.copy, copied))
    else:
        store, server = PostgresStore(database), Server(database, Jobs(database))
    positions, audit = Positions(lambda: store.signing_key), PostgresAuditLog(database)
    return Backend(store, indexes, limits, positions=positions, audit=audit, server=server)
