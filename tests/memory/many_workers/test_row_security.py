"""What a statement reaches that a mistake in the code might send: SQL as daypack_app, for one user.

Tables, partitions, functions and sequences come from the catalogue, so that new ones are tried too. What these tests do
not claim: whoever can have any SQL executed can also name another user, or another role of the account (see the last
tests). Against that stands only that no statement is made of a caller's text, which test_tenants.py tries.
"""

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import postgres_server
import psycopg
import pytest
from memory.many_workers.fifty_users import HashedWords, Person, Town
from memory.store.stores import make
from psycopg import errors

from daypack.errors import AccessDenied
from daypack.history.logs.upstream import Mark
from daypack.history.postgres.appends import Added, new_writer
from daypack.history.postgres.store import SessionStore
from daypack.history.postgres.stored import SmallFiles
from daypack.memory.search.postgres.partitions import promote
from daypack.memory.store.postgres.store import PostgresStore
from daypack.memory.tools import Memories
from daypack.postgres.database import Database
from daypack.postgres.migrations import APP, ERASER, OPERATOR, OWNER, ROLES

pytestmark = postgres_server.needs_postgres
_TABLES = """
SELECT c.oid::regclass::text, c.relispartition, EXISTS (
    SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND attname = 'tenant' AND NOT attisdropped)
FROM pg_class c WHERE relnamespace = 'daypack'::regnamespace AND relkind NOT IN ('i', 'I', 'S', 't', 'c') ORDER BY 1
"""
# Rights of daypack_app on tables that are not of one user: none of them has a text of a user.
_SHARED = {
    "daypack.audit": {"INSERT"},
    "daypack.audit_end": {"SELECT", "UPDATE"},
    "daypack.migrations": {"SELECT"},
    "daypack.processes": {"SELECT", "INSERT", "UPDATE", "DELETE"},
    "daypack.rates": {"SELECT", "INSERT", "UPDATE", "DELETE"},
    "daypack.store": {"SELECT"},
    "daypack.used_tokens": {"SELECT", "INSERT", "DELETE"},
}
_RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
_READS = (
    "SELECT tenant FROM {table}",
    "SELECT tenant FROM {table} WHERE tenant = {other}",
    "SELECT tenant FROM {table} WHERE tenant = {other} OR true",
    "SELECT tenant FROM {table} WHERE tenant <> current_setting('daypack.tenant')",
    "SELECT tenant FROM {table} WHERE ctid = '(0,1)' OR ctid > '(0,1)'",
    "SELECT tenant FROM {table} ORDER BY tenant COLLATE \"C\" DESC LIMIT 1000000",
    "SELECT tenant FROM {table} TABLESAMPLE SYSTEM (100)",
    "SELECT tenant FROM ONLY {table}",
    "WITH every AS MATERIALIZED (SELECT * FROM {table}) SELECT tenant FROM every",
    """WITH RECURSIVE every AS (SELECT tenant, 1 n FROM {table} UNION SELECT e.tenant, n + 1 FROM every e
        JOIN {table} USING (tenant) WHERE n < 2) SELECT tenant FROM every""",
    "SELECT b.tenant FROM {table} a RIGHT JOIN {table} b ON a.tenant <> b.tenant",
    "SELECT t.tenant FROM daypack.users u FULL JOIN {table} t ON t.tenant = u.tenant",
    "SELECT t.tenant FROM (VALUES ({other})) v(x) CROSS JOIN LATERAL (SELECT * FROM {table} WHERE tenant = v.x) t",
    "SELECT unnest(array_agg(tenant)) FROM {table}",
    "SELECT max(tenant) OVER () FROM {table}",
    "SELECT tenant FROM {table} EXCEPT ALL SELECT tenant FROM {table} WHERE false",
    "SELECT (json_populate_record(NULL::{table}, to_json(t))).tenant FROM {table} t",
    "TABLE {table}",
)  # fmt: skip
_WRITES = (
    "UPDATE {table} SET tenant = tenant WHERE tenant = {other}",
    "DELETE FROM {table} WHERE tenant = {other}",
    "UPDATE {table} t SET tenant = t.tenant FROM daypack.users u WHERE t.tenant = {other}",
    "DELETE FROM {table} t USING (VALUES ({other})) v(name) WHERE t.tenant = v.name",
    "MERGE INTO {table} t USING (VALUES ({other})) v(name) ON t.tenant = v.name WHEN MATCHED THEN DELETE",
)
_DENIED = (
    "TRUNCATE {table}",
    "UPDATE {table} SET tenant = {other}",
    "ALTER TABLE {table} DISABLE ROW LEVEL SECURITY",
    "ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY",
    "CREATE POLICY mine ON {table} USING (true)",
    "DROP POLICY own ON {table}",
    "CREATE INDEX ON {table}(tenant)",
    "CREATE RULE mine AS ON SELECT TO {table} DO INSTEAD SELECT 1",
    "DROP TABLE {table}",
    "SET LOCAL row_security = off; SELECT * FROM {table}",
)
_NOT_FOR_APP = (
    "CREATE FUNCTION daypack.leak(bytea) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
    "CREATE FUNCTION public.leak(bytea) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
    "CREATE FUNCTION pg_temp.leak(bytea) RETURNS boolean LEAKPROOF LANGUAGE sql AS 'SELECT true'",
    "CREATE VIEW daypack.every AS SELECT * FROM daypack.entries",
    "CREATE TABLE daypack.copy AS SELECT * FROM daypack.entries",
    "CREATE ROLE mine SUPERUSER",
    "ALTER ROLE daypack_app BYPASSRLS",
    "SELECT * FROM pg_statistic",
    "SELECT * FROM pg_authid",
    "SELECT pg_read_file('/etc/hostname')",
    "COPY (SELECT 1) TO PROGRAM 'cat'",
    "SELECT daypack.protect('entries', 'SELECT')",
)
# Calls of every function that has the rights of its owner, with the number of another's memory; none finds anything.
_CALLS = {
    "find_postings": """SELECT * FROM find_postings({number}, 0,
        ARRAY['''#vault''', '''{number}.0.0:vault''', '''{number}.0.0:vault'' | ''#vault'''],
        '{{0,0,0}}', 1 << 24, NULL, true)""",
    "count_postings": """SELECT * FROM count_postings({number}, 0,
        ARRAY['''#vault''', '''{number}.0.0:vault''', '''{number}.0.0:vault'' | ''#vault'''], 1 << 24, 100)""",
    "merge_words": "SELECT merge_words('daypack.postings_0'::regclass)",
}


class Table(NamedTuple):
    name: str
    is_partition: bool
    has_tenant: bool


def _add_session(town: Town, person: Person) -> None:
    """Add a session with a line and a blob."""
    store = SessionStore(town.store.database, person.name)
    opened = store.create("default", "talk", SmallFiles(b"{}\n", b"/\n", b"now\n"))
    line = Added(0, Mark(), b"{}\n", 1, new_writer())
    assert opened.stored.append(opened.generation, line, {"sha256-0": b"text"}) == "stored"


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAYPACK_EMBEDDING_MODEL", "none")
        url = postgres_server.new_database()
        town = Town(url, tmp_path_factory.mktemp("town"), 22, users=4)
        town.check_people()
        for person in town.people:
            town.memories(person).users.new_token(person.name)
            _add_session(town, person)
        for person in town.people[:2]:  # these have partitions of their own
            assert promote(town.store.database, person.name, person.number, HashedWords.name.encode())
        town.check_people()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ANALYZE")
        yield town
        town.check_people()
        town.close()
        postgres_server.drop_database(url)


@pytest.fixture(scope="module")
def tables(town: Town) -> list[Table]:
    with psycopg.connect(town.url) as connection:
        return [Table(*row) for row in connection.execute(_TABLES)]


@contextmanager
def transaction(url: str, person: Person, role: str = APP) -> Generator[psycopg.Connection[Any]]:
    """Begin as a transaction of the store does, and roll it back."""
    with psycopg.connect(url) as connection:
        connection.execute(
            "SELECT set_config('role', %s, true), set_config('daypack.tenant', %s, true),"
            " set_config('search_path', 'daypack, pg_temp', true)", (role, person.name),
        )  # fmt: skip
        yield connection
        connection.rollback()


def _run(connection: psycopg.Connection[Any], statement: str) -> list[tuple[Any, ...]]:
    """Return the rows of a statement; what it did is undone."""
    with connection.transaction(force_rollback=True):
        cursor = connection.execute(statement.encode())
        while cursor.nextset():
            pass
        return cursor.fetchall() if cursor.description else []


def _own(tables: list[Table]) -> list[Table]:
    return [table for table in tables if table.has_tenant and not table.is_partition]


def _filled(text: str, table: Table, other: Person) -> str:
    quoted = "'" + other.name.replace("'", "''") + "'"
    return text.format(table=table.name, other=quoted)


def _count(url: str, table: Table, person: Person) -> int:
    with psycopg.connect(url) as connection:
        query = f"SELECT count(*) FROM {table.name} WHERE tenant = %s"
        row = connection.execute(query.encode(), (person.name,)).fetchone()
    return row[0] if row else 0


def test_every_table_is_of_one_user_or_known_to_be_shared(town: Town, tables: list[Table]) -> None:
    with psycopg.connect(town.url) as connection:
        assert {table.name for table in tables if not table.has_tenant} == set(_SHARED)
        for name, rights in _SHARED.items():
            row = connection.execute(
                "SELECT " + ", ".join(f"has_table_privilege(%s, %s, '{right}')" for right in _RIGHTS),  # pyright: ignore[reportArgumentType]
                (APP, name) * len(_RIGHTS),
            ).fetchone()
            assert {right for right, has in zip(_RIGHTS, row or (), strict=True) if has} == rights, name
        query = """SELECT relname FROM pg_class WHERE relnamespace = 'daypack'::regnamespace AND relkind IN ('r', 'p')
            AND NOT relispartition AND NOT (relrowsecurity AND relforcerowsecurity)"""
        unprotected = {f"daypack.{name}" for (name,) in connection.execute(query)}
    assert unprotected == set(_SHARED) - {"daypack.audit"}
    assert len(_own(tables)) > 10


def test_a_read_finds_all_rows_of_its_user_and_no_other(town: Town, tables: list[Table]) -> None:
    tried = 0
    for me, other in ((town.people[0], town.people[1]), (town.people[2], town.people[0])):
        with transaction(town.url, me) as connection:
            for table in _own(tables):
                own, foreign = (_count(town.url, table, person) for person in (me, other))
                assert own, f"{table.name} has no rows to look for"
                assert foreign, f"{table.name} has no rows to look for"
                assert len(_run(connection, _filled(_READS[0], table, other))) == own
                for read in _READS:
                    tried += 1
                    rows = _run(connection, _filled(read, table, other))
                    town.check_answer(me, rows)
                    if read.startswith("TABLE"):
                        continue
                    assert {name for (name,) in rows} <= {me.name, None}, (read, table)
                    assert "{other}" not in read or "true" in read or rows == []
                plan = _run(connection, f"EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM {table.name}")[0][0][0]
                assert plan["Plan"]["Actual Rows"] == own
    assert tried > 400


def test_a_copy_has_the_rows_of_its_user_only(town: Town, tables: list[Table]) -> None:
    me = town.people[0]
    for table in _own(tables):
        with transaction(town.url, me) as connection, connection.cursor() as cursor:
            with cursor.copy(f"COPY (SELECT tenant FROM {table.name}) TO STDOUT".encode()) as copied:
                names = {bytes(line).decode().rstrip("\n") for line in copied}
            assert names == {me.name}
            try:
                with cursor.copy(f"COPY {table.name} TO STDOUT".encode()) as copied:
                    rows = b"".join(bytes(line) for line in copied)
            except (errors.WrongObjectType, errors.InsufficientPrivilege):
                continue  # of a partitioned table
            assert len(rows.splitlines()) in (0, _count(town.url, table, me))
            town.check_answer(me, rows)


def test_a_write_reaches_no_row_of_another_user(town: Town, tables: list[Table]) -> None:
    me, other = town.people[2], town.people[0]
    for role in (APP, ERASER):
        with transaction(town.url, me, role) as connection:
            for table in _own(tables):
                for write in _WRITES:
                    with connection.transaction(force_rollback=True):
                        try:
                            assert connection.execute(_filled(write, table, other).encode()).rowcount == 0
                        except errors.InsufficientPrivilege:
                            assert role == APP  # which may not change this table at all
                            break
                for denied in _DENIED:
                    with pytest.raises(errors.InsufficientPrivilege):
                        _run(connection, _filled(denied, table, other))
                with psycopg.connect(town.url) as everything:
                    query = f"SELECT to_jsonb(t) FROM {table.name} t WHERE tenant = %s LIMIT 1"
                    row = everything.execute(query.encode(), (other.name,)).fetchone()
                    query = (
                        "SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute WHERE attrelid = %s::regclass"
                        " AND attnum > 0 AND NOT attisdropped AND attgenerated = ''"
                    )
                    (columns,) = everything.execute(query, (table.name,)).fetchone() or ("",)
                insert = (
                    f"INSERT INTO {table.name}({columns}) OVERRIDING SYSTEM VALUE"
                    f" SELECT {columns} FROM jsonb_populate_record(NULL::{table.name}, %s)"
                )
                for suffix in ("", " ON CONFLICT DO NOTHING"):
                    with pytest.raises(errors.InsufficientPrivilege) as raised, connection.transaction():
                        connection.execute((insert + suffix).encode(), (json.dumps(row and row[0]),))
                    town.check_answer(me, str(raised.value))


def test_no_partition_can_be_reached_directly(town: Town, tables: list[Table]) -> None:
    partitions = [table for table in tables if table.is_partition]
    assert len(partitions) > 80
    assert sum(table.name.startswith("daypack.vectors_") for table in partitions) == 2
    with transaction(town.url, town.people[0]) as connection:
        for table in partitions:
            for statement in (
                "TABLE {}",
                "DELETE FROM {}",
                "UPDATE {} SET tenant = tenant",
                "INSERT INTO {} DEFAULT VALUES",
            ):
                with pytest.raises(errors.InsufficientPrivilege):
                    _run(connection, statement.format(table.name))


def test_no_function_finds_anything_of_another_user(town: Town) -> None:
    me, other = town.people[2], town.people[0]
    query = "SELECT proname FROM pg_proc WHERE pronamespace = 'daypack'::regnamespace AND prosecdef"
    with psycopg.connect(town.url) as connection:
        assert {name for (name,) in connection.execute(query)} == set(_CALLS)
    for at, expected in ((other, 0), (me, 13)):
        with transaction(town.url, me) as connection:
            calls = {name: call.format(number=at.number) for name, call in _CALLS.items()}
            assert [len(hits) for (hits,) in _run(connection, calls["find_postings"])] == [expected] * 3
            assert [count for (count,) in _run(connection, calls["count_postings"])] == [expected] * 3
            for call in calls.values():
                town.check_answer(me, _run(connection, call))


def test_no_sequence_can_be_read_or_set(town: Town) -> None:
    with psycopg.connect(town.url) as connection:
        query = (
            "SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'daypack'::regnamespace AND relkind = 'S'"
        )
        names = [name for (name,) in connection.execute(query)]
    assert len(names) >= 4
    with transaction(town.url, town.people[0]) as connection:
        for name in names:
            for statement in (f"SELECT last_value FROM {name}", f"SELECT setval('{name}', 1)"):
                with pytest.raises(errors.InsufficientPrivilege):
                    _run(connection, statement)


def test_a_function_in_a_condition_sees_the_rows_of_its_user_only(town: Town, tables: list[Table]) -> None:
    """PostgreSQL lets everybody create functions for the session; they are called after the policies, however cheap."""
    me, told = town.people[2], list[str]()
    leak = """CREATE FUNCTION pg_temp.leak(value anyelement) RETURNS boolean COST 0.0000001 LANGUAGE plpgsql AS
        $$ BEGIN RAISE NOTICE '%', value; RETURN true; END $$"""
    with transaction(town.url, me) as connection:
        connection.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        connection.execute(leak)
        connection.execute("CREATE OPERATOR pg_temp.=== (FUNCTION = pg_temp.leak, RIGHTARG = anyelement)")
        for table in _own(tables):
            told.clear()
            for condition in (
                "pg_temp.leak(tenant)",
                "OPERATOR(pg_temp.===) tenant",
                "(1 / length(tenant) = 0) IS NOT NULL AND pg_temp.leak(tenant)",
            ):
                _run(connection, f"SELECT count(*) FROM {table.name} t WHERE {condition}")
            assert {*told} == {me.name}
        for guess in (
            "convert_from(raw, 'UTF8')::int",
            "1 / (position('{}'::bytea in raw) - position('{}'::bytea in raw))",
        ):
            with pytest.raises((errors.InvalidTextRepresentation, errors.DivisionByZero)) as raised:
                _run(connection, "SELECT " + guess.format(town.people[0].bait, town.people[0].bait) + " FROM entries")
            town.check_answer(me, str(raised.value))
        for statement in _NOT_FOR_APP:
            with pytest.raises(errors.InsufficientPrivilege):
                _run(connection, statement)


def test_statistics_and_other_connections_show_nothing(town: Town, tables: list[Table]) -> None:
    names = [table.name.removeprefix("daypack.") for table in tables if table.has_tenant]
    with psycopg.connect(town.url) as busy, transaction(town.url, town.people[2]) as connection:
        busy.execute(f"SELECT '{town.people[0].secret}'".encode())
        query = "SELECT tablename FROM pg_stats WHERE schemaname = 'daypack' AND tablename = ANY(%s)"
        assert connection.execute(query, (names,)).fetchall() == []
        town.check_answer(town.people[2], connection.execute("SELECT * FROM pg_stat_activity").fetchall())


def test_without_a_user_nothing_is_found(town: Town, tables: list[Table]) -> None:
    nobody = town.people[0]._replace(name="")
    with transaction(town.url, nobody) as connection:
        for table in _own(tables):
            assert _run(connection, f"SELECT 1 FROM {table.name}") == []
    with psycopg.connect(town.url) as connection:  # the setting was never made
        connection.execute(f"SET LOCAL ROLE {APP}".encode())
        for table in _own(tables):
            with pytest.raises(errors.UndefinedObject), connection.transaction():
                connection.execute(f"SELECT 1 FROM {table.name}".encode())


@contextmanager
def account(town: Town, name: str, *roles: str) -> Generator[str]:
    """Create an account that may become some roles, and return its address."""
    with psycopg.connect(town.url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN".encode())
        try:
            connection.execute(f"GRANT {', '.join(roles)} TO {name} WITH SET TRUE, INHERIT FALSE".encode())
            yield town.url.replace("postgres@", f"{name}@")
        finally:
            connection.execute(f"DROP OWNED BY {name}".encode())
            connection.execute(f"DROP ROLE {name}".encode())


def test_an_account_without_rights_of_its_own_gains_none_by_resetting_its_role(town: Town, tables: list[Table]) -> None:
    """RESET ROLE leads to the account of the address: with a superuser's that is everything, so give it an own one.

    SET ROLE to the other roles of the account stays possible: the operator reads all users, which backups need.
    """
    me, other = town.people[2], town.people[0]
    with account(town, "visitor", *ROLES) as url, transaction(url, me) as connection:
        assert len(_run(connection, "SELECT 1 FROM entries")) >= 25
        for table in tables:
            if table.name == "daypack.migrations":
                continue  # read before a role is chosen
            for escape in ("RESET ROLE", "SET ROLE NONE", "SET LOCAL ROLE visitor", "RESET SESSION AUTHORIZATION"):
                with pytest.raises(errors.InsufficientPrivilege):
                    _run(connection, f"{escape}; SELECT * FROM {table.name}")
        for escape in (
            "SET ROLE postgres",
            "SET SESSION AUTHORIZATION postgres",
            "SET SESSION AUTHORIZATION daypack_owner",
        ):
            with pytest.raises(errors.InsufficientPrivilege):
                _run(connection, escape)
        seen = _run(connection, f"SET ROLE {OWNER}; SELECT tenant FROM daypack.entries")
        assert seen == []  # the tables are forced: their owner reads no rows, except of the words
        seen = _run(connection, f"SET ROLE {OPERATOR}; SELECT tenant FROM daypack.entries")
        assert (other.name,) in seen  # membership is membership
    with psycopg.connect(town.url) as connection:
        connection.execute(f"SET LOCAL ROLE {APP}".encode())
        seen = _run(connection, "RESET ROLE; SELECT tenant FROM daypack.entries")
        assert (other.name,) in seen  # of a superuser


def test_an_account_that_is_the_app_alone_serves_users_and_cannot_become_more(town: Town) -> None:
    with account(town, "waiter", APP) as url:
        store = PostgresStore(Database(url, patience=2))
        person = town.people[0]
        memory_id = make(store, person.name)
        assert store.memory(person.name, memory_id).title == "Launch"
        for call in (store.accounts.list, lambda: store.erase(person.name, memory_id)):
            with pytest.raises(AccessDenied):
                call()
        store.close()
        with transaction(url, person) as connection:
            for role in (ERASER, OPERATOR, OWNER):
                with pytest.raises(errors.InsufficientPrivilege):
                    _run(connection, f"SET ROLE {role}")
    Memories(town.backend, person.name).delete_memory(memory_id)
