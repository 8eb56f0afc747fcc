"""The sessions of one user in a database: which there are, how far their logs reach, and new ones."""

import atexit
import threading
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, NamedTuple

from daypack.errors import BadName
from daypack.forks import forks
from daypack.history.layout import fold
from daypack.history.postgres.stored import SmallFiles, StoredSession
from daypack.postgres.address import name_of_database
from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope
from daypack.types.digest import digest_text

_FIRST_SECONDS = 10.0  # for a database that has not answered yet: its address may be wrong, and a caller waits
_MOST_OPEN = 8  # databases of a process that stay connected
_HEADS = (
    "SELECT number, agent, name, generation, version,"
    " coalesce((SELECT stop FROM session_lines l WHERE l.tenant = s.tenant AND l.session = s.number AND l.log = 0"
    " ORDER BY start DESC LIMIT 1), 0),"
    " coalesce((SELECT stop FROM session_lines l WHERE l.tenant = s.tenant AND l.session = s.number AND l.log = 1"
    " ORDER BY start DESC LIMIT 1), 0), (SELECT id FROM store)"
    " FROM sessions s WHERE tenant = %s ORDER BY agent, name"
)
_FIND = (
    "SELECT number, generation, version, meta, cwd, created, (SELECT id FROM store) FROM sessions"
    " WHERE tenant = %s AND agent = %s AND name = %s"
)
_CREATE = (
    "INSERT INTO sessions(tenant, agent, name, folded, meta, cwd, created) VALUES (%s, %s, %s, %s, %s, %s, %s)"
    " ON CONFLICT (tenant, agent, folded) DO NOTHING"
)
_HAS = "SELECT 1 FROM sessions WHERE tenant = %s AND agent = %s AND name = %s"
_ALIKE = "SELECT name FROM sessions WHERE tenant = %s AND agent = %s AND folded = %s"


class Head(NamedTuple):
    """How far the stored logs of a session reach."""

    number: int
    agent: str
    name: str
    generation: int
    version: int  # of its small files
    messages: int  # bytes
    events: int
    store: str

    @property
    def identity(self) -> str:
        """The identity of the session, as in `Opened`."""
        return f"{self.store}/{self.number}"


class Opened(NamedTuple):
    """A session as it was found: what its cache must be made from."""

    stored: StoredSession
    identity: str  # of the store and the session: another one of the same name has another
    generation: int
    version: int
    files: SmallFiles


class SessionStore:
    """The sessions of one user in one database. Threads share it; nothing is connected before the first call."""

    def __init__(self, database: Database, tenant: str) -> None:
        self.database = database
        self.tenant = tenant
        self._reading = Scope(tenant, reading=True)

    @property
    def place(self) -> str:
        """The address, without its password."""
        return self.database.place

    @property
    def url(self) -> str:
        """The address, which may have a password."""
        return self.database.url

    @property
    def cache_name(self) -> str:
        """The name of the folder with the caches of this database."""
        return digest_text(name_of_database(self.url))[7:23]

    def agents(self) -> list[str]:
        """Return the agents that have sessions."""
        query = "SELECT DISTINCT agent FROM sessions WHERE tenant = %s ORDER BY 1"
        return [agent for (agent,) in self._rows("list agents", query, self.tenant)]

    def names(self, agent: str) -> list[str]:
        """Return the names of an agent's sessions."""
        query = "SELECT name FROM sessions WHERE tenant = %s AND agent = %s ORDER BY 1"
        return [name for (name,) in self._rows("list sessions", query, self.tenant, agent)]

    def has(self, agent: str, name: str) -> bool:
        """Return True if there is a session of that name."""
        return bool(self._rows("find session", _HAS, self.tenant, agent, name))

    def wait_at_most(self, seconds: float) -> None:
        """Give up after so many seconds if the database does not answer; sessions of this process share it."""
        self.database.patience = min(self.database.patience, seconds)

    def heads(self) -> Iterator[Head]:
        """Return how far the logs of every session reach."""
        return (Head(*row) for row in self._rows("list sessions", _HEADS, self.tenant))

    def find(self, agent: str, name: str) -> Opened | None:
        """Return a session; None if there is none of that name."""
        for number, generation, version, *files, store in self._rows("open session", _FIND, self.tenant, agent, name):
            stored = StoredSession(self.database, self.tenant, number)
            return Opened(stored, f"{store}/{number}", generation, version, SmallFiles(*map(bytes, files)))
        return None

    def create(self, agent: str, name: str, files: SmallFiles) -> Opened:
        """Create a session, unless it exists, and return it; raise BadName if another has its name except for case."""
        values = (self.tenant, agent, name, fold(name), *files)
        self.database.resolve(
            "create session", lambda transaction: transaction.execute(_CREATE, values), Scope(self.tenant)
        )
        found = self.find(agent, name)
        if found is None:
            other = "".join(row[0] for row in self._rows("open session", _ALIKE, self.tenant, agent, fold(name)))
            problem = f"{name!r} differs from the existing {other!r} only in case or normalisation"
            hint = f"use {other!r}, or choose another name"
            raise BadName(problem, operation="create session", place="session", hint=hint)
        return found

    def _rows(self, operation: str, query: str, *values: str) -> list[tuple[Any, ...]]:
        return self.database.run(operation, lambda transaction: transaction.rows(query, values), self._reading)


class _OpenDatabases:
    """The databases of this process: their connections are shared by its sessions, and the last used ones stay."""

    def __init__(self) -> None:
        self._databases: OrderedDict[str, Database] = OrderedDict()
        self.forget()
        forks.watch(self)
        atexit.register(self.close)

    def forget(self) -> None:
        """In a forked child: another thread of the parent may have been opening one."""
        self._mutex = threading.Lock()

    def open(self, url: str) -> Database:
        with self._mutex:
            database = self._databases.pop(url, None)
            if database is None:
                database = Database(url)
                database.first_patience = min(database.first_patience, _FIRST_SECONDS)
            self._databases[url] = database
            old = [self._databases.popitem(last=False)[1] for _ in range(len(self._databases) - _MOST_OPEN)]
        for each in old:
            each.close()  # a session that still uses it connects again
        return database

    def close(self) -> None:
        with self._mutex:
            databases = list(self._databases.values())
            self._databases.clear()
        for database in databases:
            database.close()


_databases = _OpenDatabases()


def open_store(url: str, tenant: str) -> SessionStore:
    """Return the sessions of a user in the database at an address; nothing is connected yet."""
    return SessionStore(_databases.open(url), tenant)


def close_databases() -> None:
    """Close the connections of this process; the next use of a session opens them again."""
    _databases.close()
