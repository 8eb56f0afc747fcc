"""A store in a database with a replica: writes go to the primary, reads to whichever is new enough for their user."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from daypack.memory.store.postgres.replica import Reads, Replica
from daypack.memory.store.postgres.store import PostgresStore
from daypack.postgres.database import Database

_READS = (
    "memory", "memories", "damaged", "find_key", "seq_of", "page", "after", "pick", "find", "document", "documents",
    "newest",
)  # fmt: skip
_POSITIONED = ("load", "add", "put_document")  # leave their position in `last_position`
_CHANGES = ("delete", "restore", "erase", "erase_entry")


class ReplicatedStore(PostgresStore):
    """A PostgresStore whose reads go to `copy`, the store in the replica, if that has what their user wrote or saw.

    `primary` is the same store without the replica.
    """

    def __init__(self, database: Database, replica: Replica) -> None:
        super().__init__(database)
        self.reads = Reads(replica)
        self.primary = PostgresStore(database)
        self.copy = PostgresStore(replica)

    def rewrite(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 — as the primary
        """Erase from the texts of memories of all users."""
        found = super().rewrite(*arguments, **options)
        self.reads.require(None, self.database.wal_position())
        return found

    def close(self) -> None:
        """Close all connections; the next call opens them again."""
        super().close()
        self.reads.replica.close()


def _read_anywhere(name: str) -> Callable[..., Any]:
    read = getattr(PostgresStore, name)

    @wraps(read)
    def method(self: ReplicatedStore, user: str, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
        return self.reads.choose(
            user,
            lambda: read(self.copy, user, *arguments, **options),
            lambda: read(self.primary, user, *arguments, **options),
        )

    return method


def _write_and_require(name: str) -> Callable[..., Any]:
    write = getattr(PostgresStore, name)

    @wraps(write)
    def method(self: ReplicatedStore, user: str, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
        result = write(self, user, *arguments, **options)
        positioned = name in _POSITIONED
        self.reads.require(user, self.last_position if positioned else self.database.wal_position())
        return result

    return method


for _name in _READS:
    setattr(ReplicatedStore, _name, _read_anywhere(_name))
for _name in (*_POSITIONED, *_CHANGES):
    setattr(ReplicatedStore, _name, _write_and_require(_name))
