"""The words of a memory in PostgreSQL: what all tables do, for several writers at once, and for one user only."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from memory.search.feeds import ListFeed, answers, document, many
from memory.search.places import USER, close_at, erase_at, make_memory, parts_at
from postgres_server import needs_postgres
from search.tables_conformance import TablesConformance

from daypack.errors import AccessDenied, MemoryMissing, StorageFailed
from daypack.memory.search import index as module
from daypack.memory.search.index import Index, IndexProgress
from daypack.memory.search.index_files import index_files
from daypack.memory.search.postgres.words import ENTRIES, WordPlace
from daypack.memory.search.skipped import Skipped
from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope, Transaction
from daypack.search.indexing import Doc
from daypack.search.lexical import Lexical
from daypack.types.deadline import Deadline
from daypack.types.memory import DamagedRecord

pytestmark = needs_postgres


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    yield database
    database.close()


@pytest.fixture
def index_place(database_url: str) -> Iterator[str]:
    place = f"{database_url}#index"
    yield place
    close_at(place)


@pytest.fixture
def place(database: Database) -> WordPlace:
    return WordPlace(database, USER, make_memory(database, USER, "m"), ENTRIES)


class TestWordTables(TablesConformance):
    """PostgreSQL."""


def read(database: Database, query: str, *values: Any, user: str = USER) -> list[tuple[Any, ...]]:
    return database.run("read", lambda transaction: transaction.rows(query, values), Scope(user, reading=True))


# Several at once


def catch_up(place: str, start: Any = None) -> None:
    module._BATCH = 40  # pyright: ignore[reportPrivateUsage]
    index = Index(parts_at(place), ListFeed(many(800), [document(1, "one")]))
    if start:
        start.wait()
    while index.catch_up() != IndexProgress(800, 1):
        pass
    index.close()


def check(place: str, database: Database, folder: Path) -> None:
    """Nothing is missing from the index and nothing is in it twice."""
    ours, files = Index(parts_at(place), ListFeed(many(800))), Index(index_files(str(folder)), ListFeed(many(800)))
    files.catch_up()
    assert answers(ours) == answers(files)
    (row,) = read(
        database,
        "SELECT i.newest, i.entries, i.chunks, (SELECT count(*) FROM postings WHERE kind = 0),"
        " (SELECT count(DISTINCT posting) FROM postings WHERE kind = 0), (SELECT count(*) FROM places WHERE kind = 0)"
        " FROM indexes i WHERE kind = 0",
    )
    assert row == (800, 800, 800, 800, 800, 800)
    ours.close()
    files.close()


def test_threads_and_processes_index_a_memory_together(index_place: str, database: Database, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    start = context.Event()
    processes = [context.Process(target=catch_up, args=(index_place, start)) for _ in range(2)]
    for process in processes:
        process.start()
    threads = [threading.Thread(target=catch_up, args=(index_place,)) for _ in range(3)]
    start.set()
    for thread in threads:
        thread.start()
    for worker in (*threads, *processes):
        worker.join()
    assert [process.exitcode for process in processes] == [0, 0]
    check(index_place, database, tmp_path)


KILLED = """
import sys
from memory.search.feeds import many
from memory.search.places import parts_at
from daypack.memory.search.lookup import entry_doc
words = parts_at(sys.argv[1]).words
def docs(first, last):
    for entry in many(800)[first:last]:
        yield entry_doc(entry)
    if first:  # what was written before is in the transaction
        print("writing", flush=True)
        sys.stdin.read()
words.add(docs(0, 300))
words._place.run("index", lambda tables: None)
from daypack.search import indexing
indexing._FLUSH_ENTRIES = 20
words.add(docs(300, 500))
"""


def test_an_indexer_killed_within_a_transaction_leaves_nothing_to_repair(
    index_place: str, database: Database, tmp_path: Path
) -> None:
    path = os.pathsep.join(["src", str(Path(__file__).parents[2])])
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, index_place],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"writing\n"
        child.send_signal(signal.SIGKILL)
    assert read(database, "SELECT newest FROM indexes WHERE kind = 0") == [(300,)]
    catch_up(index_place)
    check(index_place, database, tmp_path)


def test_a_writer_waits_for_another_until_its_deadline_only(place: WordPlace, database: Database) -> None:
    first, second = Lexical(place), Lexical(WordPlace(database, USER, make_memory(database, USER, "m"), ENTRIES))
    assert first.add([Doc(1, "paint")]) == 1
    assert second.newest == 1

    def docs() -> Iterator[Doc]:
        with second.waiting(Deadline.after(0.1)), pytest.raises(StorageFailed, match="lock timeout"):
            second.add([Doc(2, "gold")])
        yield Doc(2, "river")

    assert first.add(docs()) == 2
    assert second.add([Doc(2, "gold"), Doc(3, "gold")]) == 3
    assert set(first.match("gold").chunks) == {3}


def test_what_was_read_before_an_erasure_is_not_added_after_it(index_place: str) -> None:
    words = parts_at(index_place).words
    assert words.newest == 0
    erase_at(index_place)  # an entry of the memory was erased meanwhile: it may be among those read
    assert words.add([Doc(1, "secret")]) == 0
    assert words.search("secret", limit=1) == []
    assert words.add([Doc(1, "painted")]) == 1
    erase_at(index_place)
    assert words.add([Doc(2, "secret")]) == 0
    assert words.newest == 0


def test_a_resident_index_follows_what_other_processes_add_and_erase(index_place: str) -> None:
    ours, others = parts_at(index_place).words, parts_at(index_place).words
    assert ours.newest == others.newest == 0
    for number in range(1, 40):
        others.add([Doc(number, f"the painted river {number}")])
        assert number in ours.match("painted").rated
    known = ours.identity
    erase_at(index_place)
    assert not ours.match("painted").rated
    assert others.newest == 0
    others.add([Doc(number, f"the golden garden {number}") for number in range(1, 50)])
    assert not ours.match("painted").rated
    assert len(ours.match("golden").rated) == 49
    assert ours.identity != known


def test_an_index_of_an_earlier_format_is_made_again(index_place: str, database: Database) -> None:
    index = Index(parts_at(index_place), ListFeed(many(100)))
    before = answers(index)
    statement = "UPDATE indexes SET format = 0, words = 7"
    database.run("age", lambda transaction: transaction.execute(statement), Scope(USER))
    assert answers(index) == before
    assert read(database, "SELECT DISTINCT format FROM indexes WHERE kind = 0") == [(1,)]


# Whose words


def test_words_are_read_by_the_index_and_only_those_that_match(place: WordPlace, database: Database) -> None:
    texts = (f"common {'rare' if number % 100 == 0 else 'other'} {number}" for number in range(1, 3_001))
    Lexical(place).add(Doc(number, text) for number, text in enumerate(texts, 1))
    calls = (
        "SELECT * FROM find_postings(%s, 0, %s, ARRAY[0], 1::bigint << 40, 1000, true)",
        "SELECT * FROM find_postings(%s, 0, %s, ARRAY[0], 1::bigint << 40, NULL, false)",
        "SELECT * FROM count_postings(%s, 0, %s, 1::bigint << 40, 1000)",
    )
    read_rows = """SELECT sum(seq_scan), sum(idx_tup_fetch) FROM pg_stat_xact_all_tables
        WHERE schemaname = 'daypack' AND relname LIKE 'postings%%'"""
    ((number,),) = read(database, "SELECT number FROM memories")
    for call in calls:

        def work(transaction: Transaction, call: str = call) -> tuple[Any, ...]:
            transaction.rows(call, (number, ["'#rare'"]))
            (found,) = transaction.rows(read_rows)
            return found

        scans, rows = database.run("read", work, Scope(USER, reading=True))
        assert scans == 0
        assert 30 <= rows < 100  # of 3,000


@pytest.mark.parametrize("texts", [[], ["a river"]])
def test_no_more_blocks_are_read_than_there_are(place: WordPlace, database: Database, texts: list[str]) -> None:
    Lexical(place).add(Doc(number, text) for number, text in enumerate(texts, 1))
    ((number,),) = read(database, "SELECT number FROM memories")

    def work(transaction: Transaction) -> list[int]:
        transaction.execute("SET LOCAL statement_timeout = '20s'")  # else it would not end
        found: list[int] = []
        for most, newest_first in ((10, True), (10, False), (None, False)):
            call = "SELECT cardinality(f) FROM find_postings(%s, 0, %s, ARRAY[0], 1::bigint << 60, %s, %s) f"
            rows = transaction.rows(call, (number, ["'#river'"], most, newest_first))
            found += [count for (count,) in rows]
        ((count,),) = transaction.rows(
            "SELECT * FROM count_postings(%s, 0, %s, 1::bigint << 60, 9)", (number, ["'#river'"])
        )
        return [*found, count]

    assert database.run("read", work, Scope(USER, reading=True)) == [len(texts)] * 4


def test_no_call_reaches_the_words_of_another_user(place: WordPlace, database: Database) -> None:
    Lexical(place).add(Doc(number, f"secret river {number}") for number in range(1, 50))
    ((number,),) = read(database, "SELECT number FROM memories")
    queries = ["'#secret'", f"'{number}.0.0:secret'", f"'#x' | '{number}.0.0:secret'", f"'{number}.0.0:':*", "!'#x'"]
    assert read(database, "SELECT count(*) FROM postings") == [(49,)]
    for user in ("bo", "", "ana' OR true --", "%"):
        for asked in (number, 0):
            for newest_first in (True, False):
                found = read(
                    database,
                    "SELECT * FROM find_postings(%s, 0, %s, %s, 1::bigint << 40, 100, %s)",
                    asked, queries, [0] * len(queries), newest_first, user=user,
                )  # fmt: skip
                assert found == [([],)] * len(queries)
            counted = read(
                database, "SELECT * FROM count_postings(%s, 0, %s, 1::bigint << 40, 100)", asked, queries, user=user
            )
            assert counted == [(0,)] * len(queries)
        for table in ("indexes", "postings", "places", "conversations", "authors", "author_names"):
            assert read(database, f"SELECT count(*) FROM {table}", user=user) == [(0,)]
        with pytest.raises(AccessDenied):
            read(database, "SELECT count(*) FROM postings_0", user=user)
    with pytest.raises(MemoryMissing):
        Lexical(WordPlace(database, "bo", make_memory(database, USER, "m"), ENTRIES)).add([Doc(1, "mine")])


# What the index lacks


def test_skipped_records_are_kept_with_the_index(index_place: str) -> None:
    record = DamagedRecord(kind="entry", id="x", number=3, problem="checksum mismatch")
    first, second = parts_at(index_place), parts_at(index_place)
    first.skipped.add([record])
    assert second.skipped.records == (record,)
    assert Skipped(vars(first.skipped)["_place"]).is_outdated(lambda _: True)
    first.erase()
    assert parts_at(index_place).skipped.records == ()
