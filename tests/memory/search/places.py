"""Where the index of a test is: a folder, or "postgresql://…#name", which is a memory in a database of that name."""

from functools import cache
from hashlib import md5

from daypack.llm.embedding.port import Embedder
from daypack.memory.search.index import IndexParts
from daypack.memory.search.index_files import erase_index, index_files
from daypack.memory.search.postgres.indexes import PostgresIndexes
from daypack.memory.store.port import StoreFeed
from daypack.memory.store.sqlite import SqliteStore
from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope

USER = "ana"
_MEMORY = """INSERT INTO memories(tenant, id, title, type, description, created, crc)
    VALUES (%s, %s, '', '', '', 0, 0) ON CONFLICT (id) DO NOTHING"""


def parts_at(place: str, embedder: Embedder | None = None) -> IndexParts:
    """Return the parts of the index at a place."""
    if not _is_database(place):
        return index_files(place, embedder)
    url, name = place.split("#")
    memory_id = make_memory(_database(url), USER, name)
    return PostgresIndexes(_database(url)).open(StoreFeed(SqliteStore("nowhere"), USER, memory_id), embedder)


def erase_at(place: str) -> None:
    """Erase the index at a place."""
    if _is_database(place):
        url, name = place.split("#")
        PostgresIndexes(_database(url)).erase(_memory_id(name))
    else:
        erase_index(place)


def close_at(place: str) -> None:
    """Close the connections of this process."""
    if _is_database(place):
        _database(place.split("#", maxsplit=1)[0]).close()


def make_memory(database: Database, user: str, name: str) -> str:
    """Add the row of a memory, unless it is there; return its id."""
    memory_id = _memory_id(name)
    database.resolve("add", lambda transaction: transaction.execute(_MEMORY, (user, memory_id)), Scope(user))
    return memory_id


def _is_database(place: str) -> bool:
    return place.startswith("postgresql:")


def _memory_id(name: str) -> str:
    return md5(name.encode(), usedforsecurity=False).hexdigest()


@cache
def _database(url: str) -> Database:
    return Database(url)
