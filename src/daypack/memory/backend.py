"""The store, search indexes, limits and recent writes of one home, shared by all its users."""

import os
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from daypack.config import from_environment, from_file, settle
from daypack.history.layout import Home
from daypack.memory.audit_log.log import AuditLog
from daypack.memory.audit_log.record import Deed
from daypack.memory.limits import Limits, read_limits
from daypack.memory.positions import Positions
from daypack.memory.recent_writes import RecentWrites
from daypack.memory.search.index_cache import IndexCache
from daypack.memory.store.port import Store
from daypack.memory.store.sqlite import SqliteStore
from daypack.types.memory import MAX_CHARS

if TYPE_CHECKING:
    from daypack.llm.embedding.port import Embedder

Record = TypeVar("Record", bound=Struct)


class Backend:
    """A store and what belongs to it. Threads and users share it."""

    def __init__(
        self,
        store: Store,
        indexes: IndexCache,
        limits: Limits | None = None,
        *,
        positions: Positions | None = None,
        redacting: bool = True,
        audit: AuditLog | None = None,
    ) -> None:
        self.embedding_model = ""  # as configured; empty: the best that is installed
        self.redacting = redacting
        self.store = store
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

    def recording(self, deed: Deed) -> AbstractContextManager[dict[str, Any]]:
        """Record what an owner does in the audit log, before and after it, as `AuditLog.recording`."""
        return nullcontext({}) if self.audit is None else self.audit.recording(deed)

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


def open_backend(place: Home) -> Backend:
    """Return the backend of a home, configured by its config.toml and the environment; no file is opened yet."""
    file = from_file(place.config)
    config = settle([("environment", from_environment(os.environ)), (place.config, file)])

    def embedder() -> "Embedder | None":
        from daypack.llm.embedders import default_embedding_model, open_embedder  # noqa: PLC0415 — only for searches

        return open_embedder(config.embedding_model or default_embedding_model(place.models), models=place.models)

    store = SqliteStore(place.store)
    indexes = IndexCache(place.memory_indexes, embedder)
    positions = Positions(os.path.join(place.memory, "positions.key"))
    limits = read_limits(file, place.config)
    audit = AuditLog(place.audit, flock=config.locking == "flock")
    redacting = config.redaction == "on"
    backend = Backend(store, indexes, limits, positions=positions, redacting=redacting, audit=audit)
    backend.embedding_model = config.embedding_model or ""
    return backend
