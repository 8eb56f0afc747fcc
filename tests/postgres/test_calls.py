"""Calls of functions that are sent without a cursor, against a real server."""

import signal
import threading
from collections.abc import Iterator

import postgres_server
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daypack.errors import DaypackError
from daypack.postgres.calls import Call, text_array
from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope

pytestmark = postgres_server.needs_postgres
SCOPE = Scope("me")
ECHO = "SELECT %s::text || length(%b::bytea)"
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url, most=1, patience=2.0)
    yield database
    database.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[Database]:
    database = Database(url := postgres_server.new_database())
    yield database
    database.close()
    postgres_server.drop_database(url)


@given(text=TEXTS, data=st.binary())
def test_texts_and_bytes_arrive_as_they_are(shared: Database, text: str, data: bytes) -> None:
    assert shared.call("test", Call(ECHO, (text, data)), SCOPE) == f"{text}{len(data)}"


@given(texts=st.lists(TEXTS))
def test_an_array_has_the_texts_that_were_put_into_it(shared: Database, texts: list[str]) -> None:
    with psycopg.connect(shared.url) as connection:
        row = connection.execute("SELECT %s::text[]", (text_array(texts),)).fetchone()
    assert row == (texts,)


def test_null_and_no_row_are_nothing(database: Database) -> None:
    assert database.call("test", Call("SELECT nullif(%s, 'a')", ("a",)), SCOPE) is None
    assert database.call("test", Call("SELECT %s WHERE false", ("a",)), SCOPE) is None


def test_a_refused_call_says_why_and_leaves_a_connection_that_works(database: Database) -> None:
    wrong = Call("SELECT (%s::int)::text", ("no number",))
    for _ in range(3):
        with pytest.raises(DaypackError, match="no number") as caught:
            database.call("test", wrong, SCOPE)
        assert isinstance(caught.value.__cause__, psycopg.DataError)
        assert database.call("test", Call(ECHO, ("a", b"")), SCOPE) == "a0"
    with pytest.raises(DaypackError, match="NUL"):
        database.call("test", Call(ECHO, ("a\0b", b"")), SCOPE)


def test_a_statement_that_the_server_forgot_is_prepared_again(database: Database) -> None:
    def deallocate() -> None:
        database.run("test", lambda transaction: transaction.execute("DEALLOCATE ALL").rowcount, SCOPE)

    for _ in range(3):
        assert database.call("test", Call(ECHO, ("a", b"b")), SCOPE) == "a1"
        deallocate()


def test_a_lost_connection_is_replaced_and_the_call_made_again(database: Database) -> None:
    def end_it() -> None:
        with psycopg.connect(database.url, autocommit=True) as other:
            ended = other.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE application_name = 'daypack' AND datname = current_database()"
            ).fetchone()
            assert ended == (1,)

    for _ in range(3):
        assert database.call("test", Call(ECHO, ("a", b"b")), SCOPE) == "a1"
        end_it()
    assert database.call("test", Call(ECHO, ("a", b"b")), SCOPE) == "a1"


def test_an_interrupted_call_leaves_no_connection_that_is_in_use(database: Database) -> None:
    sleeping = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()"

    def interrupt() -> None:
        with psycopg.connect(database.url, autocommit=True) as other:
            while not other.execute(sleeping).fetchone():
                pass
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    for _ in range(3):
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            database.call("test", Call("SELECT pg_sleep(60) || %s", ("a",)), SCOPE)
        thread.join()
        assert database.call("test", Call(ECHO, ("a", b"")), SCOPE) == "a0"
        with psycopg.connect(database.url, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")


@pytest.mark.parametrize("size", [10, 1 << 20, 20 << 20])
def test_an_answer_of_many_bytes_to_as_many_arrives_whole(database: Database, size: int) -> None:
    data = bytes(range(256)) * (size // 256) + b"x"
    assert database.call("test", Call("SELECT encode(%b, 'hex')", (data,)), SCOPE) == data.hex()


def test_a_call_with_lists_uses_a_cursor(database: Database) -> None:
    assert database.call("test", Call("SELECT array_to_string(%s::text[], '+')", (["a", "b"],)), SCOPE) == "a+b"
