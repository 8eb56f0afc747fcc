"""A connection that serves one user after the other, whatever goes wrong in between: nothing of a user stays on it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import postgres_server
import psycopg
import pytest
from campaigns import Campaign
from memory.many_workers.fifty_users import Person, Town

from daypack.errors import DaypackError, MemoryMissing
from daypack.memory.store.postgres.store import PostgresStore
from daypack.postgres.database import Database
from daypack.postgres.migrations import APP, ERASER, OPERATOR
from daypack.postgres.transaction import Role, Scope, Transaction
from daypack.types.memory import Memory

pytestmark = postgres_server.needs_postgres
_PATIENCE_SECONDS = 5.0
# As the connection is outside of a transaction, and what is visible there.
_STATE = """SELECT coalesce(current_setting('daypack.tenant', true), ''),
    coalesce(current_setting('daypack.token', true), ''), current_user::text, current_setting('search_path'),
    current_setting('transaction_read_only'), pg_backend_pid()"""


class Broken(Exception):
    """A mistake in the work of a transaction."""


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAYPACK_EMBEDDING_MODEL", "none")
        url = postgres_server.new_database()
        town = Town(url, tmp_path_factory.mktemp("town"), 23, users=6)
        yield town
        town.check_people()
        town.check_records()
        town.close()
        postgres_server.drop_database(url)


def _outside(transaction: Transaction) -> tuple[Any, ...]:
    transaction.execute("COMMIT")
    row = transaction.row(_STATE)
    assert row is not None
    return row


def _broken(transaction: Transaction) -> None:
    transaction.rows("SELECT raw FROM entries")
    raise Broken


def _becoming(other: Person, role: Role | None) -> Callable[[Transaction], None]:
    def work(transaction: Transaction) -> None:
        transaction.become(other.name, role)
        transaction.execute("SELECT set_config('daypack.token', %s, true)", ("00" * 32,))
        _broken(transaction)

    return work


def _rolled_back(transaction: Transaction) -> None:
    transaction.execute("INSERT INTO jobs(tenant, memory, goal) VALUES (%s, 1, 1)", (transaction.tenant,))
    transaction.execute("ROLLBACK")


def _aborted(transaction: Transaction) -> None:
    """Go on after an error: the server rolls everything back."""
    with suppress(psycopg.Error):
        transaction.rows("SELECT 1 / 0")


def _cancelled(transaction: Transaction) -> None:
    timer = threading.Timer(0.02, transaction.connection.cancel)
    timer.start()
    try:
        transaction.rows("SELECT raw, pg_sleep(60) FROM entries")
    finally:
        timer.join()


def _timed_out(transaction: Transaction) -> None:
    transaction.execute("SELECT set_config('statement_timeout', '1', true)")
    transaction.rows("SELECT raw, pg_sleep(5) FROM entries")


def _kept_open(transaction: Transaction) -> None:
    """Leave a cursor, a prepared statement and a temporary table behind."""
    transaction.execute("DECLARE kept CURSOR WITH HOLD FOR SELECT raw FROM entries")
    transaction.execute("SELECT raw FROM entries WHERE tenant = %s", (transaction.tenant,), prepare=True)
    raise Broken


def _mishaps(other: Person) -> list[tuple[Callable[[Transaction], object], Role, bool]]:
    """Return work that goes wrong, its role, and whether it only reads."""

    def run(statement: str) -> Callable[[Transaction], object]:
        return lambda transaction: transaction.rows(statement)

    return [
        (_broken, APP, False),
        (_broken, OPERATOR, True),
        (_broken, ERASER, False),
        (_becoming(other, None), APP, False),
        (_becoming(other, ERASER), OPERATOR, False),
        (run("SELECT 1 / 0"), APP, True),
        (run("SELECT nothing FROM nowhere"), APP, False),
        (run("SELECT raw FROM entries; SELECT 1"), OPERATOR, True),
        (_timed_out, APP, True),
        (_cancelled, APP, False),
        (run("INSERT INTO entries SELECT * FROM entries"), APP, False),
        (run("INSERT INTO users(tenant, name, crc) VALUES ('somebody else', '', 0)"), APP, False),
        (run("DELETE FROM entries"), APP, False),
        (_rolled_back, APP, False),
        (_aborted, APP, False),
        (_kept_open, APP, False),
    ]


def test_nothing_of_a_user_is_left_on_the_connection(town: Town, campaign: Campaign) -> None:
    chance = town.chance
    chance.seed(campaign.seed)
    database = Database(town.url, most=1, patience=_PATIENCE_SECONDS)
    store, pids, failed = PostgresStore(database), set[int](), 0
    size = campaign.size("attacks", 600)
    for number in range(size):
        me, other = town.two()
        mishaps = _mishaps(other)
        work, role, reading = mishaps[number % len(mishaps)]
        try:
            database.run("go wrong", work, Scope(me.name, role, reading))
        except (DaypackError, Broken, psycopg.Error) as error:
            failed += 1
            town.check_answer(me, str(error))
        tenant, token, user, path, read_only, pid = database.run("look", _outside, Scope(other.name, reading=True))
        assert (tenant, token, user, read_only) == ("", "", APP, "off")
        assert "daypack" not in path
        pids.add(pid)
        visible = database.run("look", lambda at: at.rows("SELECT tenant FROM entries"), Scope(reading=True))
        assert visible == []
        visible = database.run(
            "look", lambda at: at.rows("SELECT tenant FROM entries"), Scope(other.name, reading=True)
        )
        assert {name for (name,) in visible} == {other.name}
        assert town.digest(other)
        entries = store.after(other.name, other.memory_id, 0, 100)
        assert len(entries) == len(other.entry_ids)
        town.check_answer(other, entries)
    assert failed > 0.8 * size
    assert len(pids) <= 1 + failed
    store.close()


def test_a_setting_that_outlives_its_transaction_is_replaced_by_the_next(town: Town) -> None:
    """A mistake no code makes: settings for the session."""
    me, other, third = town.people[:3]
    database = Database(town.url, most=1, patience=_PATIENCE_SECONDS)

    def spoil(transaction: Transaction) -> None:
        transaction.execute("SELECT set_config('daypack.tenant', %s, false)", (me.name,))
        transaction.execute("SELECT set_config('role', %s, false)", (OPERATOR,))

    database.run("spoil", spoil, Scope(me.name))
    for person in (other, third, me):
        rows = database.run("look", lambda at: at.rows("SELECT tenant FROM entries"), Scope(person.name, reading=True))
        assert {name for (name,) in rows} == {person.name}
    rows = database.run("look", lambda at: at.rows("SELECT tenant FROM entries"), Scope(reading=True))
    assert rows == []
    database.close()


def test_reads_that_share_a_transaction_are_those_of_one_user(town: Town) -> None:
    me, other = town.people[:2]
    database = Database(town.url, most=3, patience=_PATIENCE_SECONDS)
    store = PostgresStore(database)
    with database.together("read", me.name):
        with pytest.raises(MemoryMissing):
            store.memory(me.name, other.memory_id)
        for person in (other, me, other):
            entries = store.after(person.name, person.memory_id, 0, 100)
            assert len(entries) == len(person.entry_ids)
            town.check_answer(person, entries)
        with database.together("read", other.name):
            town.check_answer(me, store.after(me.name, me.memory_id, 0, 100))
            town.check_answer(other, store.after(other.name, other.memory_id, 0, 100))
        rows = database.run("look", lambda at: at.rows("SELECT tenant FROM entries"), Scope(reading=True))
        assert rows == []
    assert database.run("look", _outside, Scope(reading=True))[0] == ""
    store.close()


def test_a_read_in_a_shared_transaction_that_is_lost_is_answered_all_the_same(town: Town) -> None:
    me = town.people[0]
    database = Database(town.url, patience=_PATIENCE_SECONDS)
    store = PostgresStore(database)

    def read() -> Memory:
        with database.together("read", me.name):
            store.memory(me.name, me.memory_id)
            with psycopg.connect(town.url, autocommit=True) as connection:
                name = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'daypack'"
                connection.execute(f"{name} AND datname = current_database()".encode())
            return store.memory(me.name, me.memory_id)

    assert read() == store.memory(me.name, me.memory_id)
    store.close()


def test_threads_that_share_connections_see_their_own_users(town: Town, campaign: Campaign) -> None:
    database = Database(town.url, most=2, patience=30)
    store, problems = PostgresStore(database), list[str]()
    rounds = campaign.size("attacks", 600) // len(town.people)

    def work(me: Person, other: Person) -> None:
        try:
            for number in range(rounds):
                mishap, role, reading = _mishaps(other)[number % 8]
                with suppress(DaypackError, Broken):
                    database.run("go wrong", mishap, Scope(me.name, role, reading))
                town.check_answer(me, store.after(me.name, me.memory_id, 0, 100))
                assert len(store.after(me.name, me.memory_id, 0, 100)) == len(me.entry_ids)
        except BaseException as error:
            problems.append(repr(error))
            raise

    people = town.people
    threads = [threading.Thread(target=work, args=pair) for pair in zip(people, people[1:] + people[:1], strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    store.close()
