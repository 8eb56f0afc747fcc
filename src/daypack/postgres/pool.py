"""The connections of a process to a database: autocommit, because every transaction says BEGIN itself.

Statements are prepared at the server when they are used often. A pooler in transaction mode gives each transaction
another connection, which does not know them, so through a pooler none are prepared. That costs the database 1.8 times
the CPU for an add and 2.3 times for a search among 5,000 entries, so it is not done without one.
"""

from typing import TYPE_CHECKING, Any, cast

from daypack.postgres.migrations import APP, PLAIN_PATH

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg_pool import ConnectionPool

# Psycopg would learn too late that a transaction has set the style of its dates: it reads them in a pipeline. A commit
# that has not waited for its replicas is known by a warning only.
_SETTLE = (
    f"SELECT pg_catalog.pg_backend_pid(), {PLAIN_PATH}, pg_catalog.set_config('datestyle', 'ISO', false),"
    " pg_catalog.set_config('client_min_messages', 'warning', false)"
)


def open_pool(url: str, most: int) -> "ConnectionPool[Connection[Any]]":
    """Return a pool that connects when a connection is wanted."""
    import logging  # noqa: PLC0415

    from psycopg_pool import ConnectionPool  # noqa: PLC0415

    from daypack.postgres.silence import WatchedConnection, options_of  # noqa: PLC0415 — imports psycopg

    def configure(connection: "Connection[Any]") -> None:
        watched = cast(WatchedConnection, connection)
        watched.address = url
        watched.add_notice_handler(watched.heed)
        settle(connection)

    logging.getLogger("psycopg").addHandler(logging.NullHandler())  # our errors say what it would print
    pool: ConnectionPool[Connection[Any]] = ConnectionPool(
        url,
        kwargs={**options_of(url), "connect_timeout": 10},
        min_size=0,
        max_size=most,
        configure=configure,
        max_idle=300,
        reconnect_timeout=0,
        open=True,
        connection_class=WatchedConnection,
        name="daypack",
    )
    return pool


def roll_back(connection: "Connection[Any]") -> None:
    """End a transaction without a trace, or the connection if that fails."""
    import psycopg  # noqa: PLC0415

    try:
        connection.execute("ROLLBACK")
    except psycopg.Error:
        connection.close()


def settle(connection: "Connection[Any]") -> None:
    """A new connection gives up the rights of its address, even those of a superuser, and its search path.

    See above for poolers.
    """
    from psycopg import errors  # noqa: PLC0415

    row = connection.execute(_SETTLE).fetchone()
    if row is None or row[0] != connection.info.backend_pid:  # a pooler makes up a number for its clients
        connection.prepare_threshold = None
    try:
        connection.execute(f"SET ROLE {APP}")
    except errors.UndefinedObject:  # a replica that has not yet got the roles
        return
