"""A transaction: whose rows it reaches, as which role, and its statements."""

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from daypack.postgres.migrations import APP

if TYPE_CHECKING:
    from psycopg import Connection

Role = Literal["daypack_app", "daypack_eraser", "daypack_operator", "daypack_owner"]


class Scope(NamedTuple):
    """Whose rows a transaction reaches, as which role, and whether it only reads.

    `snapshot`: all its statements see the database as it was at the first of them.
    `exclusive`: others wait for what it locks, so the server ends it when its process has stopped. The server counts
    the time only after an answer, so each statement waits for its own.
    """

    tenant: str = ""
    role: Role = APP
    reading: bool = False
    snapshot: bool = False
    exclusive: bool = False

    @property
    def begin(self) -> str:
        """The statement that begins such a transaction."""
        isolation = "REPEATABLE READ" if self.snapshot else "READ COMMITTED"
        return f"BEGIN ISOLATION LEVEL {isolation}{' READ ONLY' if self.reading else ' READ WRITE'}"


class Transaction:
    """A transaction in progress: the connection, and how often it was tried before."""

    def __init__(self, connection: "Connection[Any]", scope: Scope, attempt: int, vector_schema: str) -> None:
        self.connection = connection
        self.execute = connection.execute
        self.tenant = scope.tenant
        self.attempt = attempt  # above 0, an earlier one may have been committed
        self.vector_schema = vector_schema  # types and operators of pgvector are named with it: no path leads there
        self.positioned = False  # set by work that needs `last_position` of its commit

    def rows(self, query: str, values: Any = None) -> list[tuple[Any, ...]]:  # noqa: ANN401 — as psycopg takes them
        """Return all rows of a query."""
        return self.connection.execute(query, values).fetchall()  # pyright: ignore[reportArgumentType] — constants

    def row(self, query: str, values: Any = None) -> tuple[Any, ...] | None:  # noqa: ANN401
        """Return the first row of a query."""
        return self.connection.execute(query, values).fetchone()  # pyright: ignore[reportArgumentType]

    def become(self, tenant: str, role: Role | None = None) -> None:
        """Continue with the rows of another tenant, or as another role."""
        self.connection.execute("SELECT set_config('daypack.tenant', %s, true)", (tenant,))
        if role is not None:
            self.connection.execute("SELECT set_config('role', %s, true)", (role,))
        self.tenant = tenant
