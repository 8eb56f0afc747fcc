"""Group commit: threads of a process append to sessions of a database together, and each gets its own outcome."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from history.postgres.workers import Workers, texts
from psycopg import sql

from daypack.errors import BadMessage
from daypack.files.commit import LeaderInterrupted, Task
from daypack.history.logs.upstream import Mark
from daypack.history.postgres import appends
from daypack.history.postgres.appends import Added, Append, Outcome, new_writer
from daypack.history.postgres.store import SessionStore
from daypack.history.postgres.stored import SmallFiles
from daypack.postgres.commits import CommitDoubtful
from daypack.postgres.database import Database

LINE = b'{"line":1}\n'
FILES = SmallFiles(b"{}\n", b"/\n", b"now\n")


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    yield database
    database.close()


def make(database: Database, tenant: str, name: str = "work") -> int:
    return SessionStore(database, tenant).create("default", name, FILES).stored.number


def append_to(database: Database, tenant: str, session: int, place: int = 0, writer: str | None = None) -> Append:
    added = Added(0, Mark(place, 7 if place else 0), LINE, 7, writer or new_writer())
    return Append(database, tenant, session, 0, added, {})


def store_together(*tasks: Append) -> list[str]:
    queued = [Task[Database](task, "append") for task in tasks]
    appends._store_all(queued)  # pyright: ignore[reportPrivateUsage] — what a leading thread does
    return [task.answers[0] for task in queued]


def test_appends_of_a_group_have_outcomes_of_their_own(database: Database) -> None:
    one, other = make(database, "ada"), make(database, "bob")
    again = append_to(database, "ada", one)
    assert again.store() == "stored"
    found = store_together(
        append_to(database, "bob", other),  # stored
        append_to(database, "ada", one, len(LINE)),  # stored after its first line
        append_to(database, "ada", one),  # the log does not end there any more
        again,  # stored before, by the same writer
        append_to(database, "bob", one),  # the session of another user
        append_to(database, "ada", one)._replace(generation=5),
    )
    assert found == ["stored", "stored", "overtaken", "stored", "gone", "rewritten"]
    heads = {user: next(iter(SessionStore(database, user).heads())).messages for user in ("ada", "bob")}
    assert heads == {"ada": 2 * len(LINE), "bob": len(LINE)}


def test_a_group_does_not_wait_for_the_lock_of_another_worker(database: Database, database_url: str) -> None:
    one, other = make(database, "ada"), make(database, "bob")
    waiting, free = append_to(database, "ada", one), append_to(database, "bob", other)
    with psycopg.connect(database_url) as holder:
        holder.execute("SELECT pg_advisory_xact_lock(hashtextextended('ada', %s))", (one,))
        assert store_together(waiting, free) == ["busy", "stored"]
    assert waiting.store() == "stored"


def test_what_the_server_refuses_of_one_append_is_no_error_of_the_others(database: Database) -> None:
    one, other = make(database, "ada"), make(database, "bob")
    refused = append_to(database, "ada", one)._replace(generation=1 << 40)
    assert store_together(refused, append_to(database, "bob", other)) == ["busy", "busy"]
    assert append_to(database, "bob", other).store() == "stored"


@pytest.mark.parametrize(
    "setting", ["default_transaction_read_only = on", "default_transaction_isolation = serializable"]
)
def test_an_account_with_other_transactions_appends_all_the_same(
    database: Database, database_url: str, setting: str
) -> None:
    one = make(database, "ada")
    database.close()
    with psycopg.connect(database_url, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL("ALTER DATABASE {} SET {}").format(name, sql.SQL(setting)))  # pyright: ignore[reportArgumentType]
    assert append_to(database, "ada", one).alone() == "unsuited"
    outcomes: list[Outcome] = [append_to(database, "ada", one, place).store() for place in (0, 0, len(LINE))]
    assert outcomes == ["stored", "overtaken", "stored"]


def test_an_append_leaves_no_role_and_no_user_behind(database: Database) -> None:
    one = make(database, "ada")
    assert append_to(database, "ada", one).alone() == "stored"
    query = "SELECT current_user::text, coalesce(current_setting('daypack.tenant', true), '')"
    with database._connection("test") as connection:  # pyright: ignore[reportPrivateUsage]
        assert connection.execute(query.encode()).fetchone() == ("daypack_app", "")


def test_a_lost_connection_is_resolved_by_the_writer(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = make(database, "ada"), make(database, "bob")
    real = Database._attempt_alone  # pyright: ignore[reportPrivateUsage]
    lost: list[str] = []

    def lose(self: Database, operation: str, statement: object) -> object:
        """Store, and lose the answer."""
        found = real(self, operation, statement)  # pyright: ignore[reportArgumentType]
        if not lost:
            lost.append(operation)
            raise CommitDoubtful from psycopg.OperationalError("lost")
        return found

    monkeypatch.setattr(Database, "_attempt_alone", lose)
    assert store_together(append_to(database, "ada", one), append_to(database, "bob", other)) == ["stored", "stored"]
    assert lost == ["append"]
    assert [head.messages for user in ("ada", "bob") for head in SessionStore(database, user).heads()] == [
        len(LINE)
    ] * 2


def test_threads_of_one_session_share_appends_and_lose_nothing(workers: Workers) -> None:
    session = workers.open("a")
    other = workers.open("b")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(session.append, ["user"] * 120, [f"message {number}" for number in range(120)]))
    assert sorted(texts(other), key=lambda text: int(text.split()[1])) == [f"message {number}" for number in range(120)]
    assert [message.seq for message in other.messages()] == list(range(1, 121))


def test_a_message_that_cannot_be_stored_fails_alone(workers: Workers) -> None:
    session = workers.open("a")
    start = threading.Barrier(8)

    def append(number: int) -> str:
        start.wait()
        try:
            return session.append("user", "\ud800" if number == 3 else f"message {number}").id
        except BadMessage:
            return "refused"

    for _ in range(5):
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(append, range(8))).count("refused") == 1
    assert len(session.messages()) == 35


def test_an_append_is_stored_once_when_the_thread_that_stored_it_was_interrupted(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = workers.open("a")
    store = Append.__call__

    def interrupted(append: Append, database: Database) -> str:
        store(append, database)
        raise LeaderInterrupted("the thread that committed for this one was interrupted")

    monkeypatch.setattr(Append, "__call__", interrupted)
    assert session.append("user", "once").seq == 1
    monkeypatch.undo()
    assert texts(session) == ["once"]
