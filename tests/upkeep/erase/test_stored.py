"""An erasure reaches the rows of a session in a database, its blobs and the folders of all workers."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from math import inf
from pathlib import Path

import psycopg
import pytest
from campaigns import Campaign
from postgres_server import needs_postgres
from upkeep.erase.secrets import SECRET, holding, leaky, spelled

import daypack
from daypack.errors import BadInput
from daypack.history.caches import refresh_all
from daypack.history.home import find_home
from daypack.history.layout import Home
from daypack.history.postgres.rewriting import Known, NewRows, SessionRows
from daypack.history.postgres.store import open_store
from daypack.postgres.calls import Call
from daypack.postgres.commits import CommitDoubtful
from daypack.postgres.database import Database
from daypack.postgres.transaction import Transaction
from daypack.session import Session
from daypack.upkeep.caches import plan_caches, remove_caches
from daypack.upkeep.copy.apply import apply as copy
from daypack.upkeep.copy.plan import Request as CopyRequest
from daypack.upkeep.erase.apply import apply
from daypack.upkeep.erase.plan import Request, plan
from daypack.upkeep.find import find
from daypack.upkeep.find.index import FindIndex

pytestmark = needs_postgres
WORK = Request(literal=SECRET, session="work")


@pytest.fixture
def worker(home: str, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Home:
    """The home of one worker, whose sessions are in a database: one of them has a secret everywhere."""
    monkeypatch.setenv("DAYPACK_STORE_URL", database_url)
    leaky(home).close()
    return find_home(home)


@pytest.fixture
def other(tmp_path: Path) -> str:
    """The root of another worker on another machine."""
    return str(tmp_path / "other")


def opened(home: str) -> Session:
    return daypack.open_session("work", home=home, create=False, durability="os", workspace="")


def rows_of(home: Home) -> SessionRows:
    store = open_store(home.database.url, home.uid)  # type: ignore[union-attr]
    found = store.find("default", "work")
    assert found is not None
    return SessionRows(store.database, home.uid, found.stored.number)


def tables_holding(url: str) -> list[str]:
    """Return the tables whose rows have the secret, in any spelling."""
    query = (
        "SELECT 'lines' FROM daypack.session_lines WHERE position(%s::bytea IN data) > 0 UNION ALL"
        " SELECT 'blobs' FROM daypack.session_blobs WHERE position(%s::bytea IN data) > 0 UNION ALL"
        " SELECT 'sessions' FROM daypack.sessions WHERE position(%s::bytea IN meta || cwd) > 0"
    )
    with psycopg.connect(url) as connection:
        return [row[0] for text in spelled() for row in connection.execute(query, (text, text, text))]


def lines_of(rows: SessionRows) -> tuple[bytes, ...]:
    generation = rows.known().generation
    return tuple(b"".join(row.data for row in rows.read(generation, log)) for log in (0, 1))


def test_nothing_is_left_in_rows_blobs_and_the_folders_of_two_workers(
    worker: Home, other: str, database_url: str
) -> None:
    with opened(other) as session:  # a second worker, which stays open
        assert session.pins
        assert {"lines", "blobs"} <= set(tables_holding(database_url))
        assert holding(other)
        before = rows_of(worker).known()
        planned = plan(worker, WORK)
        assert planned.sessions
        assert planned.sessions[0].blobs
        done = apply(worker, WORK, planned.id)
        assert done.sessions[0].event.startswith("ev-")
        assert not done.remaining
        assert tables_holding(database_url) == []
        assert holding(worker.root) == []
        assert rows_of(worker).known().generation == before.generation + 1
        session.append("user", "It goes on.")  # the second worker notices
        assert SECRET not in str([message.text for message in session.tail(100)])
        assert holding(other) == []
    assert holding(other) == []
    with opened(worker.root) as session:
        assert session.tail(1)[0].text == "It goes on."
        assert [event.type for event in session.events()].count("history.erased") == 1
        session.prepare(budget=8000)
    assert plan(worker, WORK).is_empty


def test_the_newest_text_of_another_worker_is_dropped_with_its_folder(
    worker: Home, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAYPACK_REDACTION", "off")
    with opened(other) as session:
        session.append("assistant", f"The word is {SECRET}.")
        session.append("user", "Thank you.")
        assert any(path.endswith("latest.md") for path in holding(other))
        apply(worker, WORK)
        session.refresh()
        assert holding(other) == []


WORD = "quixotrium"  # the index of `find` has words, not the secret with its signs
IN_WORDS = Request(literal=f"{WORD}-wobblegate", session="work")


@pytest.fixture
def searched(worker: Home, other: str) -> Home:
    """Another worker's home; both have searched a session with a secret word, and its first worker has erased it."""
    with opened(worker.root) as session:
        session.append("user", f"The word is {IN_WORDS.literal}, please remember.")
    place = find_home(other)
    for home in (worker, place):
        refresh_all(home)
        assert find(home, WORD).hits
        assert holding(home.root, WORD)
    Path(place.project("p")).mkdir(parents=True)
    Path(place.project("p"), "last.json").write_text(WORD)
    apply(worker, IN_WORDS)
    assert holding(worker.root, WORD) == []
    assert holding(place.root, WORD)
    return place


def test_the_words_of_an_erased_text_leave_the_search_of_other_workers_with_the_next_use(searched: Home) -> None:
    with opened(searched.root) as session:
        assert session.tail(1)
        assert holding(searched.root, WORD) == []
    assert find(searched, "remember").hits


def test_the_words_of_an_erased_text_leave_the_search_of_a_worker_that_has_the_session_open(
    worker: Home, other: str
) -> None:
    with opened(other) as session:
        session.append("user", f"The word is {IN_WORDS.literal}, please remember.")
        assert find(find_home(other), WORD).hits
        apply(worker, IN_WORDS)
        session.refresh()
        assert holding(other, WORD) == []


def test_the_words_of_an_erased_text_go_with_the_caches(searched: Home) -> None:
    index = FindIndex(searched)  # stays open, as in a server
    assert index.sessions()[0]
    remove_caches(searched, plan_caches(searched, inf))
    assert holding(os.path.join(searched.folder, "store"), WORD) == []
    refresh_all(searched)
    assert find(searched, "remember").hits
    assert len(index.sessions()[0]) == 1
    index.close()


def test_the_words_of_an_erased_text_are_forgotten_when_a_deleted_cache_is_fetched_again(searched: Home) -> None:
    shutil.rmtree(searched.session("default", "work").folder)
    with opened(searched.root):
        assert holding(searched.root, WORD) == []


def test_the_words_of_a_session_that_another_worker_erased_and_deleted_are_forgotten(
    worker: Home, searched: Home
) -> None:
    rows_of(worker).delete()
    refresh_all(searched)
    assert holding(searched.root, WORD) == []


@pytest.mark.parametrize("running", [False, True], ids=["closed", "running"])
def test_the_folder_where_a_session_began_is_erased_from_the_cache_of_another_worker(
    worker: Home, other: str, running: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "papaya-4711").mkdir()
    monkeypatch.chdir(tmp_path / "papaya-4711")
    daypack.open_session("new", home=worker.root, workspace="").close()
    session = daypack.open_session("new", home=other, create=False)
    assert [os.path.basename(path) for path in holding(other, "papaya-4711")] == ["cwd"]
    if not running:
        session.close()
    apply(worker, Request(literal="papaya-4711", session="new"))
    if not running:
        session = daypack.open_session("new", home=other, create=False)
    session.refresh()
    assert holding(other, "papaya-4711") == []
    session.close()


def test_the_logs_are_those_that_an_erasure_from_files_would_write(worker: Home, tmp_path: Path) -> None:
    files = str(tmp_path / "files")
    copy(CopyRequest(source=worker.database.url, target=files, uid=worker.uid, memories=False))  # type: ignore[union-attr]
    os.makedirs(worker.folder, exist_ok=True)
    apply(worker, WORK)
    key = os.path.join(Home(files, worker.uid).folder, "erase.key")
    for name in os.listdir(worker.folder):
        if name.endswith(".key"):
            Path(key).with_name(name).write_bytes(Path(worker.folder, name).read_bytes())
    apply(Home(files, worker.uid), WORK)
    layout = Home(files, worker.uid).session("default", "work")
    messages, events = lines_of(rows_of(worker))
    assert messages == Path(layout.messages).read_bytes()
    assert events.splitlines()[:-1] == Path(layout.events).read_bytes().splitlines()[:-1]  # the last has a time


def test_a_message_is_erased_with_its_copies(worker: Home, database_url: str) -> None:
    with opened(worker.root) as session:
        seq = next(message.seq for message in session.messages() if SECRET in message.text)
        text = next(message.text for message in session.messages() if SECRET in message.text)
    apply(worker, Request(message=seq, session="work"))
    with opened(worker.root) as session:
        assert text not in [message.text for message in session.messages()]
        assert session.messages()[seq - 1].text.startswith("[erased:")


def test_bytes_of_the_secret_are_not_in_the_files_of_the_tables(worker: Home, database_url: str) -> None:
    apply(worker, WORK)
    with psycopg.connect(database_url) as connection:
        connection.execute("CHECKPOINT")
        folder, *_ = connection.execute("SHOW data_directory").fetchone() or ("",)
        query = (
            "SELECT pg_relation_filepath(oid) FROM pg_class WHERE relname ~ '^session_(lines|blobs)_' AND relkind = 'r'"
            " UNION SELECT pg_relation_filepath(reltoastrelid) FROM pg_class"
            " WHERE relname ~ '^session_(lines|blobs)_' AND relkind = 'r'"
        )
        paths = [os.path.join(folder, row[0]) for row in connection.execute(query) if row[0]]
    assert paths
    for path in paths:
        data = Path(path).read_bytes()
        assert not any(text in data for text in spelled()), path


def test_appends_during_an_erasure_are_not_lost(
    worker: Home, other: str, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []
    real = SessionRows.rewrite

    def overtaken(rows: SessionRows, make: Callable[[Known], NewRows | None]) -> object:
        # Another worker appends after the folder was read, however often it is read.
        with opened(other) as session:
            session.append("user", f"meanwhile {len(tries)}")
        tries.append(1)
        return real(rows, make)

    monkeypatch.setattr(SessionRows, "rewrite", overtaken)
    apply(worker, WORK)
    assert len(tries) == 2
    with opened(worker.root) as session:
        assert [message.text for message in session.tail(2)] == ["meanwhile 0", "meanwhile 1"]
        numbers = [message.seq for message in session.messages()]
        assert numbers == list(range(1, len(numbers) + 1))
    assert tables_holding(database_url) == []


def test_an_append_that_was_stored_before_an_erasure_is_not_stored_again_when_its_answer_was_lost(
    worker: Home, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Database._attempt_alone  # pyright: ignore[reportPrivateUsage]
    lost: list[str] = []

    def lose(self: Database, operation: str, call: Call) -> str | None:
        answer = real(self, operation, call)
        if operation == "append" and not lost:
            lost.append(operation)
            assert apply(worker, WORK).sessions
            raise CommitDoubtful from psycopg.OperationalError("lost")
        return answer

    with opened(other) as session:
        before = len(session.messages())
        monkeypatch.setattr(Database, "_attempt_alone", lose)
        assert session.append("user", "Pay 100 euros to Bob.").seq == before + 1
        assert lost == ["append"]
        assert [message.text for message in session.messages()].count("Pay 100 euros to Bob.") == 1
        assert len(session.messages()) == before + 1


def test_with_the_id_of_a_plan_a_session_that_changed_meanwhile_is_refused(
    worker: Home, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = plan(worker, WORK)
    real = SessionRows.rewrite
    before: list[tuple[bytes, ...]] = []

    def overtaken(rows: SessionRows, make: Callable[[Known], NewRows | None]) -> object:
        with opened(other) as session:
            session.append("user", f"again {SECRET}")
        before.append(lines_of(rows))
        return real(rows, make)

    monkeypatch.setattr(SessionRows, "rewrite", overtaken)
    with pytest.raises(BadInput, match="the plan has changed"):
        apply(worker, WORK, planned.id)
    assert lines_of(rows_of(worker)) == before[-1]


def test_writers_and_an_erasure_at_the_same_time_lose_nothing(worker: Home, other: str, database_url: str) -> None:
    stop = threading.Event()
    stored: list[str] = []

    def write() -> None:
        with opened(other) as session:
            number = 0
            while not stop.is_set() or number < 5:
                text = f"line {number}"
                session.append("user", text)
                stored.append(text)
                number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        apply(worker, WORK)
    finally:
        stop.set()
        writer.join()
    with opened(worker.root) as session:
        texts = [message.text for message in session.messages() if message.text.startswith("line ")]
    assert texts == stored
    assert tables_holding(database_url) == []


_STOPPED = """
import os, signal, sys
from daypack.history.home import find_home
from daypack.history.postgres.rewriting import SessionRows
from daypack.postgres import database
from daypack.upkeep.erase.apply import apply
from daypack.upkeep.erase.plan import Request

insert = SessionRows._insert_lines
def stop(*arguments):
    SessionRows._insert_lines = insert
    print("stopped", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
    insert(*arguments)
SessionRows._insert_lines = stop
database.STOPPED_SECONDS = 1
print(len(apply(find_home(sys.argv[1]), Request(literal=sys.argv[2], session="work")).sessions), flush=True)
"""


def test_an_erasure_whose_process_stopped_does_not_block_appends_for_ever(worker: Home, other: str) -> None:
    command = [sys.executable, "-c", _STOPPED, worker.root, SECRET]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "stopped\n"
        try:
            with opened(other) as session:
                session.append("user", "It goes on.")
        finally:
            process.send_signal(signal.SIGCONT)
        assert process.stdout.read() == "1\n"  # done again
    with opened(other) as session:
        assert session.tail(1)[0].text == "It goes on."
        assert holding(other) == []


def test_an_erasure_that_fails_at_any_statement_leaves_old_or_new(
    worker: Home, database_url: str, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_of(worker)
    old, known = lines_of(rows), rows.known()
    names: list[str] = []
    fail_at = [10**9]
    original = Transaction.__init__

    class Crash(Exception):
        pass

    def counted(transaction: Transaction, connection: object, scope: object, *rest: object) -> None:
        original(transaction, connection, scope, *rest)  # type: ignore[arg-type]
        if getattr(scope, "role", "") != "daypack_eraser":
            return
        execute = transaction.execute

        def call(*values: object, **options: object) -> object:
            names.append(str(values[0])[:30])
            if len(names) == fail_at[0]:
                raise Crash
            return execute(*values, **options)  # type: ignore[arg-type]

        transaction.execute = call  # type: ignore[method-assign, assignment]

    monkeypatch.setattr(Transaction, "__init__", counted)
    for at in campaign.calls("faults", [f"statement {number}" for number in range(10)]):
        names.clear()
        fail_at[0] = at
        with pytest.raises(Crash):
            apply(worker, WORK)
        assert lines_of(rows) == old
        assert rows.known() == known
    fail_at[0] = 10**9
    apply(worker, WORK)
    assert tables_holding(database_url) == []
