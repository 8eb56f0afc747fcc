"""Opens the lookup into a memory where that is: in the files of a home, or in the database that a setting names."""

import os

from daypack.config import Config, with_database
from daypack.history.layout import Home
from daypack.memory.search.lookup import WORDS, MemoryLookup
from daypack.memory.store.sqlite import SqliteStore
from daypack.search.lexical import Lexical

_LONGEST_SECONDS = 3.0  # for a database: a hook that takes longer is ended


def open_lookup(home: Home, user: str, memory_id: str) -> MemoryLookup:
    """Return one memory of one user, in the files of a home or in the database that a setting names."""
    if config := with_database(os.environ, home.config):
        return _in_database(config, user, memory_id)
    path = os.path.join(home.memory_indexes, memory_id, WORDS)
    store = SqliteStore(home.store) if os.path.exists(home.store) else None
    return MemoryLookup(store, lambda: Lexical(path), user, memory_id)


def _in_database(config: Config, user: str, memory_id: str) -> MemoryLookup:
    from daypack.memory.search.postgres.indexes import PostgresIndexes  # noqa: PLC0415 — few have a database
    from daypack.memory.store.port import StoreFeed  # noqa: PLC0415
    from daypack.memory.store.postgres.store import PostgresStore  # noqa: PLC0415
    from daypack.postgres.database import Database  # noqa: PLC0415

    seconds = min(_LONGEST_SECONDS, config.memory_ms / 1000)
    database = Database(config.store_url or "", patience=seconds)
    store = PostgresStore(database)
    feed = StoreFeed(store, user, memory_id)
    lookup = MemoryLookup(store, lambda: PostgresIndexes(database).open(feed, None).words, user, memory_id)
    lookup.limit(seconds, database.place)
    return lookup
