"""Brings a database to the present schema: numbered files, forward only, one process at a time.

    schema/0001_memories.sql …   applied in their order, each in one transaction with its row in `migrations`

Workers of an earlier version may continue while a later one migrates, so a migration only adds. One that earlier
workers cannot live with says so in its first line, `-- requires: NUMBER`: they then refuse, naming the version.

Tables belong to daypack_owner. The others are what a connection becomes (`SET ROLE`): the account of the address needs
to be a member of them, nothing else. It needs the right to create roles only for the first migration.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from daypack.errors import AccessDenied, BadConfig, StorageFailed

if TYPE_CHECKING:
    from psycopg import Connection

SCHEMA = "daypack"
OWNER, APP, ERASER, OPERATOR = ROLES = ("daypack_owner", "daypack_app", "daypack_eraser", "daypack_operator")
LEAST_SERVER, LEAST_VECTOR = 160_000, (0, 8)
# An account may have other ones (ALTER ROLE … SET); a transaction has these.
# The path has no schema in which others may create: of two functions, the one that fits the arguments better is called,
# wherever in the path it is, and a function of anybody would run with all rights of the account. pg_catalog is always
# searched first; pg_temp would be too, for tables, if it were not named.
PATH = f"{SCHEMA}, pg_temp"
PLAIN_SETTINGS = (
    f"pg_catalog.set_config('search_path', '{PATH}', true),"
    " pg_catalog.set_config('standard_conforming_strings', 'on', true),"
    " pg_catalog.set_config('row_security', 'on', true), pg_catalog.set_config('bytea_output', 'hex', true),"
    " pg_catalog.set_config('extra_float_digits', '1', true), pg_catalog.set_config('datestyle', 'ISO', true),"
    " pg_catalog.set_config('array_nulls', 'on', true), pg_catalog.set_config('gin_fuzzy_search_limit', '0', true)"
)
# For a session, so that what is sent outside of transactions calls no function of others either.
PLAIN_PATH = "pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false)"
# Another one after a failover, a restore or a restart: numbers of a sequence may have been given again since, to other
# rows, and the store may be another one. It is the start of the server and, for the database, the path of a table that
# every role may look up; cheap, because no table is read.
INCARNATION = (
    f"concat(extract(epoch FROM pg_postmaster_start_time()), ' ', pg_relation_filepath('{SCHEMA}.migrations'))"
)
_PATIENT = (
    "SELECT set_config('lock_timeout', '0', true), set_config('statement_timeout', '0', true),"
    " set_config('idle_in_transaction_session_timeout', '0', true)"
)
UPGRADE_LOCK = 0x6461_7970_6163_6B21  # "daypack!"
_OPERATION = "open store"
_REQUIRES = re.compile(r"-- requires: (\d+)")


class Migration(NamedTuple):
    """A file of the schema; `requires` is the lowest number that a worker must know to use the database after it."""

    number: int
    name: str
    requires: int
    text: str


def list_migrations() -> list[Migration]:
    """Return the migrations of this version, in their order."""
    found: list[Migration] = []
    for file in files("daypack.postgres").joinpath("schema").iterdir():
        if file.name.endswith(".sql"):
            text = file.read_text("utf-8")
            requires = _REQUIRES.match(text)
            number = int(file.name[:4])
            found.append(Migration(number, file.name[5:-4], int(requires[1]) if requires else 0, text))
    return sorted(found)


def applied(connection: "Connection[Any]", place: str) -> int:
    """Return the number of the last migration, 0 for an empty database; raise if this version is too old for it."""
    known = list_migrations()[-1].number
    if not _exists(connection, place):
        return 0
    row = connection.execute("SELECT max(number), max(requires) FROM daypack.migrations").fetchone()
    number, requires = row if row else (0, 0)
    if (requires or 0) > known:
        problem = f"the database is of a later version: schema {number}, this version knows {known}"
        raise BadConfig(problem, operation=_OPERATION, place=place, hint="install a later daypack")
    return number or 0


def _exists(connection: "Connection[Any]", place: str) -> bool:
    """Return True if the schema is there; raise BadConfig if one of that name is not ours."""
    # Not to_regclass: it may answer from a cache that is older than the lock.
    query = (
        "SELECT attname, pg_get_userbyid(nspowner) FROM pg_namespace n"
        " LEFT JOIN pg_class c ON n.oid = relnamespace AND relname = 'migrations'"
        " LEFT JOIN pg_attribute ON attrelid = c.oid AND attnum > 0 AND NOT attisdropped WHERE nspname = %s"
    )
    rows = connection.execute(query, (SCHEMA,)).fetchall()
    columns, owners = {column for column, _ in rows}, {owner for _, owner in rows}
    if rows and (not columns >= {"number", "name", "requires"} or owners != {OWNER}):
        why = f"its owner is {owners.pop()}" if owners != {OWNER} else "no table migrations with its columns"
        problem = f"the database has a schema {SCHEMA} that is not of daypack: {why}"
        hint = f"use another database, or rename it: ALTER SCHEMA {SCHEMA} RENAME TO other;"
        raise BadConfig(problem, operation=_OPERATION, place=place, hint=hint)
    return bool(columns)


def migrate(connection: "Connection[Any]", place: str) -> None:
    """Apply what is missing. The connection is in autocommit mode and has the rights of the address."""
    _check_server(connection, place)
    steps = list_migrations()
    if (done := applied(connection, place)) >= steps[-1].number:
        return
    if done:
        check_membership(connection, OWNER, place)
    connection.read_only = False  # its transactions, whatever the account begins with
    for step in (None, *steps):
        with connection.transaction():
            connection.execute(f"SELECT {PLAIN_SETTINGS}")
            connection.execute(_PATIENT)  # a step that a limit of the account ends would never be applied
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (UPGRADE_LOCK,))
            done = applied(connection, place)  # another process may have been faster
            if step is None:
                if not done and not _exists(connection, place):
                    _prepare(connection, place)
            elif step.number > done:
                connection.execute(f"SET LOCAL ROLE {OWNER}")
                connection.execute(step.text.encode())
                query = "INSERT INTO migrations(number, name, requires) VALUES (%s, %s, %s)"
                connection.execute(query, (step.number, step.name, step.requires))


def check_upgrading(connection: "Connection[Any]", place: str) -> None:
    """Raise StorageFailed if a process is upgrading the schema now."""
    query = (
        "SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1"
        " AND (classid::bigint << 32) + objid::bigint = %s"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    if connection.execute(query, (UPGRADE_LOCK,)).fetchone() is not None:
        problem, hint = "another process is upgrading the schema", "wait until it has finished"
        raise StorageFailed(problem, operation=_OPERATION, place=place, hint=hint)


def check_membership(connection: "Connection[Any]", role: str, place: str) -> None:
    """Raise AccessDenied for an account that may not become a role of an existing schema."""
    query = "SELECT rolname FROM pg_roles WHERE rolname = ANY(%s) AND NOT pg_has_role(oid, 'SET')"
    missing = {name for (name,) in connection.execute(query, ([*ROLES],)).fetchall()}
    if role in missing:
        user = connection.info.user
        hint = f"have an administrator run: {_grant_of(filter(missing.__contains__, ROLES), user)};"
        problem = f"{user} is not a member of {role}"
        raise AccessDenied(problem, operation=_OPERATION, place=place, hint=hint)


def check_encoding(connection: "Connection[Any]", place: str) -> None:
    """Raise BadConfig for a database that is not UTF-8: of SQL_ASCII, even names would arrive as bytes."""
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        hint = f"CREATE DATABASE {_quoted(connection.info.dbname)} ENCODING 'UTF8' TEMPLATE template0; under a new name"
        problem = f"the encoding of the database is {encoding}, not UTF8"
        raise BadConfig(problem, operation=_OPERATION, place=place, hint=hint)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _check_server(connection: "Connection[Any]", place: str) -> None:
    version = connection.info.server_version
    if version < LEAST_SERVER:
        problem = f"PostgreSQL {version // 10_000} is too old"
        raise BadConfig(problem, operation=_OPERATION, place=place, hint="use PostgreSQL 16 or later")


def _prepare(connection: "Connection[Any]", place: str) -> None:
    """Create the schema, the extension unless it is there, and the roles."""
    from psycopg import errors  # noqa: PLC0415

    me, wanted = connection.info.user, _list_missing(connection)
    try:
        connection.execute(f"CREATE SCHEMA {SCHEMA}")
        # Not in public, where others may have prepared something for what the extension creates.
        connection.execute(f"CREATE EXTENSION IF NOT EXISTS vector SCHEMA {SCHEMA}")
        _check_vector(connection, place)
        for role in ROLES:
            _make_role(connection, role)
        _check_usage(connection, place)
        connection.execute(f"ALTER SCHEMA {SCHEMA} OWNER TO {OWNER}")
        connection.execute(f"SET LOCAL ROLE {OWNER}")
        connection.execute(f"GRANT USAGE ON SCHEMA {SCHEMA} TO {APP}, {ERASER}, {OPERATOR}")
        connection.execute(
            f"CREATE TABLE {SCHEMA}.migrations(number int PRIMARY KEY, name text NOT NULL, requires int NOT NULL,"
            " applied timestamptz NOT NULL DEFAULT now())"
        )
        connection.execute(f"GRANT SELECT ON {SCHEMA}.migrations TO PUBLIC")
        connection.execute(f"GRANT USAGE ON SCHEMA {SCHEMA} TO PUBLIC")
    except (errors.UndefinedFile, errors.FeatureNotSupported) as error:
        hint = "install pgvector 0.8 or later on the server"
        raise BadConfig("the server has no pgvector", operation=_OPERATION, place=place, hint=hint) from error
    except errors.InsufficientPrivilege as error:
        problem = f"{me} may not prepare the database: {str(error).splitlines()[0]}"
        hint = f"have an administrator run: {wanted}"
        raise AccessDenied(problem, operation=_OPERATION, place=place, hint=hint) from error


def _list_missing(connection: "Connection[Any]") -> str:
    """Return the statements that an administrator runs for an account without the rights for the first use."""
    user, database = connection.info.user, _quoted(connection.info.dbname)
    known = {name for (name,) in connection.execute("SELECT rolname FROM pg_roles").fetchall()}
    extended = connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone()
    statements = [] if extended else ["CREATE EXTENSION vector"]
    statements += [f"CREATE ROLE {role} NOLOGIN" for role in ROLES if role not in known]
    statements += [_grant_of(ROLES, user), f"GRANT CREATE ON DATABASE {database} TO {_quoted(user)}"]
    return " ".join(f"{statement};" for statement in statements)


def _grant_of(roles: Iterable[str], user: str) -> str:
    return f"GRANT {', '.join(roles)} TO {_quoted(user)}"


def _make_role(connection: "Connection[Any]", role: str) -> None:
    """Create a role, unless the server has it: roles belong to all its databases, which may be migrated at once."""
    from psycopg import errors  # noqa: PLC0415

    if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone():
        with suppress(errors.DuplicateObject, errors.UniqueViolation), connection.transaction():
            connection.execute(f"CREATE ROLE {role} NOLOGIN".encode())
    member = connection.execute("SELECT pg_has_role(%s, 'SET')", (role,)).fetchone()
    if not member or not member[0]:
        connection.execute(f"GRANT {role} TO CURRENT_USER WITH SET TRUE, INHERIT FALSE".encode())


def _check_vector(connection: "Connection[Any]", place: str) -> None:
    row = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
    if row is None:
        raise StorageFailed("pgvector is not installed in the database", operation=_OPERATION, place=place)
    if tuple(map(int, row[0].split(".")[:2])) < LEAST_VECTOR:
        hint = "install pgvector 0.8 or later on the server, then run: ALTER EXTENSION vector UPDATE;"
        raise BadConfig(f"pgvector {row[0]} is too old", operation=_OPERATION, place=place, hint=hint)


def _check_usage(connection: "Connection[Any]", place: str) -> None:
    """Raise AccessDenied if the types of pgvector are in a schema that the roles may not use."""
    query = (
        "SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace,"
        " unnest(%s::name[]) role WHERE extname = 'vector' AND nspname <> %s"
        " AND NOT has_schema_privilege(role, n.oid, 'USAGE')"
    )
    if row := connection.execute(query, ([*ROLES], SCHEMA)).fetchone():
        hint = f"have its owner run: GRANT USAGE ON SCHEMA {row[0]} TO PUBLIC;"
        problem = f"the extension vector is in the schema {row[0]}, which others may not use"
        raise AccessDenied(problem, operation=_OPERATION, place=place, hint=hint)


def schema_of_vector(connection: "Connection[Any]") -> str:
    """Return the schema in which the types and operators of pgvector are, as a statement with values names it."""
    query = "SELECT nspname FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'vector'"
    row = connection.execute(query).fetchone()
    return _quoted(row[0]).replace("%", "%%") if row else SCHEMA
