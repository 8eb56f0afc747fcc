"""The index of a memory: it catches up by itself, survives what befalls it, and says what it does without."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from memory.search.feeds import Knowing, ListFeed, answers, document, entry, many, seqs
from memory.search.places import close_at, erase_at, parts_at

from daypack.memory.search import index as module
from daypack.memory.search.index import Index, IndexProgress
from daypack.search.lexical import Lexical
from daypack.types.memory import PLACEHOLDER, Entry

TALK = [
    entry(1, "Where shall we put the retry limit?", session="a", role="user"),
    entry(2, "In the settings file.", session="a", role="assistant"),
    entry(4, "Nordwind pays its invoices every second Friday.", session="b", role="user"),
    entry(5, "我们昨天在东京吃了拉面", session="c", role="user"),
    entry(6, "She loved it there.", "Ana visited Lisbon.", session="d", role="user"),
]


@pytest.fixture(params=["files", "postgres"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The place of an index: a folder, or a memory in a database."""
    files = request.param == "files"
    place = str(tmp_path / "index") if files else f"{request.getfixturevalue('database_url')}#index"
    yield place
    close_at(place)


@pytest.fixture
def index(folder: str) -> Iterator[Index]:
    index = Index(parts_at(folder), ListFeed(TALK))
    yield index
    index.close()


def test_a_search_catches_up_by_itself(index: Index) -> None:
    assert seqs(index.search("invoices", 3)) == [4]
    assert index.notes == ()


def test_entries_that_come_later_are_found_and_gaps_are_no_matter(folder: str) -> None:
    feed = ListFeed()
    index = Index(parts_at(folder), feed)
    assert index.search("invoices", 3) == []
    feed.stored += TALK
    assert index.catch_up() == IndexProgress(6, 0)
    feed.stored.append(entry(20, "The invoices of March are paid.", session="b", role="user"))
    assert seqs(index.search("invoices March", 1)) == [20]
    index.close()


def test_the_same_question_is_answered_once_until_the_index_changes(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[str] = []
    match = Lexical.match

    def count(self: Lexical, query: str, **options: object) -> object:
        searched.append(query)
        return match(self, query, **options)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(Lexical, "match", count)
    feed = ListFeed(TALK)
    index = Index(parts_at(folder), feed)
    first = index.search("invoices", 3)
    assert index.search("invoices", 3) == first
    assert searched == ["invoices"]
    assert index.search("invoices", 3, allowed=[1]) == []
    assert len(searched) == 2
    feed.stored.append(entry(20, "The invoices of March are paid.", session="b", role="user"))
    assert 20 in seqs(index.search("invoices", 3))
    feed.stored[:] = feed.stored[:2]  # entries were erased, and the index with them
    erase_at(folder)
    assert index.search("invoices", 3) == []
    index.close()


@pytest.mark.parametrize("query", ["东京的拉面好吃吗", "拉面"])
def test_a_chinese_query_finds_chinese_text(index: Index, query: str) -> None:
    assert seqs(index.search(query, 1)) == [5]


def test_an_entry_is_found_by_a_summary_that_has_other_words(index: Index) -> None:
    assert seqs(index.search("Lisbon", 1)) == [6]


def test_the_neighbour_in_the_session_is_found_too(index: Index) -> None:
    assert seqs(index.search("retry limit", 5)) == [1, 2]


def test_only_what_is_allowed_is_found(index: Index) -> None:
    every = {one.seq: one for one in index.search("retry limit invoices", 9)}
    some = index.search("retry limit invoices", 9, allowed=[2, 4, 99])
    assert {one.seq: one for one in some} == {2: every[2], 4: every[4]}
    assert index.search("retry limit invoices", 9, allowed=[]) == []


def test_parts_add_up(folder: str) -> None:
    index = Index(parts_at(folder, Knowing()), ListFeed(many(300)))
    index.catch_up()
    for found in answers(index):
        assert all(sum(one.parts.values()) == pytest.approx(one.score) for one in found)
    parts = index.search("a puppy", 1)[0].parts
    assert parts.keys() >= {"lexical", "near", "group", "dense"}
    index.close()


def test_a_date_written_in_any_way_is_searched(folder: str) -> None:
    said = [
        entry(1, "We met at the lake.", at="1:56 pm on 8 May, 2023", session="a"),
        entry(2, "Sun again.", at="March-15-2024", session="b"),
        entry(3, "Snow.", at="2025-02-01T10:00:00Z", session="c"),
        entry(4, "Fog.", session="d"),
    ]
    index = Index(parts_at(folder), ListFeed(said))
    for query, seq in (("May 2023", 1), ("15 March", 2), ("1 February", 3), ("2025-02-01", 3), ("16 November", 4)):
        assert seqs(index.search(query, 1)) == [seq], query
    index.close()


# Documents


def test_the_document_that_holds_most_of_a_query_is_the_best(folder: str) -> None:
    versions = ["Ana plans a trip.", "Ana plans a trip to Lisbon in May.", "Ana plans nothing."]
    feed = ListFeed(TALK, [document(1, PLACEHOLDER), *(document(2 + n, text) for n, text in enumerate(versions))])
    index = Index(parts_at(folder), feed)
    found = index.best_document("trip to Lisbon")
    assert found is not None
    assert found[0] == 3
    assert 0.7 < found[1] <= 1.0
    part = index.best_document("Lisbon unicorn griffin")
    assert part is not None
    assert part[0] == 3
    assert 0 < part[1] < 0.5
    assert index.best_document("default context") is None
    assert index.best_document("plans") == (4, 1.0)
    assert index.catch_up() == IndexProgress(6, 4)
    index.close()


# What befalls an index


def test_a_deleted_index_comes_back_with_the_same_answers(folder: str) -> None:
    index = Index(parts_at(folder, Knowing()), ListFeed(many(500)))
    index.catch_up()
    before = answers(index)
    erase_at(folder)
    index.catch_up()
    assert answers(index) == before
    index.close()
    erase_at(folder)
    erase_at(folder)


def test_a_broken_index_comes_back_with_the_same_answers(tmp_path: Path) -> None:
    folder = str(tmp_path)
    index = Index(parts_at(folder), ListFeed(many(500)))
    before = answers(index)
    index.close()
    with open(os.path.join(folder, "words.sqlite"), "r+b") as file:
        file.write(b"no database at all" * 100)
    assert answers(index) == before
    index.close()


def test_an_older_store_begins_the_index_anew(folder: str) -> None:
    feed = ListFeed(TALK, [document(1, "one"), document(2, "two")])
    index = Index(parts_at(folder), feed)
    index.catch_up()
    del feed.stored[3:]
    assert seqs(index.search("Lisbon invoices", 3)) == [4]
    assert index.catch_up() == IndexProgress(4, 2)
    del feed.versions[1:]
    assert index.catch_up() == IndexProgress(4, 1)
    words = parts_at(folder).words  # looks at what is there without catching up
    assert [hit.id for hit in words.search("invoices", limit=3)] == [4]
    words.close()
    index.close()


def test_it_is_the_same_in_whatever_batches_it_caught_up(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = Index(parts_at(folder), ListFeed(many(300)))
    before = answers(at_once)
    at_once.close()
    monkeypatch.setattr(module, "_BATCH", 7)
    feed = ListFeed()
    slowly = Index(parts_at(f"{folder}-2"), feed)
    for one in many(300):
        feed.stored.append(one)
        if one.seq % 11 == 0:
            slowly.catch_up()
    assert answers(slowly) == before
    slowly.close()


def test_an_index_that_is_erased_while_it_catches_up_lacks_nothing(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Erasing(ListFeed):
        reads = 0

        def entries(self, after: int, limit: int) -> Sequence[Entry]:
            self.reads += 1
            if self.reads in (1, 4):
                erase_at(folder)
            return super().entries(after, limit)

    monkeypatch.setattr(module, "_BATCH", 50)
    index, fresh = (
        Index(parts_at(folder), Erasing(many(300))),
        Index(parts_at(f"{folder}-2"), ListFeed(many(300))),
    )
    index.catch_up()
    assert answers(index) == answers(fresh)
    assert len(index.search("number", 300)) == len(fresh.search("number", 300))
    index.close()
    fresh.close()


def test_a_deadline_that_has_passed_leaves_the_rest_for_later(folder: str) -> None:
    feed = ListFeed(many(300), [document(1, "one")])
    index, words = Index(parts_at(folder, Knowing()), feed), Index(parts_at(folder), feed)
    assert index.catch_up(deadline=time.monotonic() - 1) == IndexProgress(0, 0, 0)
    assert words.catch_up() == IndexProgress(300, 1)
    words.close()
    assert index.catch_up(deadline=time.monotonic() - 1) == IndexProgress(300, 1, 0)
    assert index.catch_up() == IndexProgress(300, 1, 300)
    index.close()


KILLED = """
import sys
from memory.search.feeds import Knowing, ListFeed, many
from memory.search.places import parts_at
from daypack.memory.search import index, vectors
from daypack.memory.search.postgres import vectors as others
index._BATCH, vectors._BATCH, others._BATCH = 50, 8, 8
one = index.Index(parts_at(sys.argv[1], Knowing()), ListFeed(many(400)))
add, embed = one._words.add, one._vectors._embedder.encode
def say(work):
    def told(*values):
        print("step", flush=True)
        sys.stdin.read(1)
        return work(*values)
    return told
one._words.add, one._vectors._embedder.encode = say(add), say(embed)
one.catch_up()
"""


@pytest.mark.parametrize("steps", [1, 4, 9, 20])
def test_a_kill_while_catching_up_leaves_nothing_to_repair(folder: str, steps: int) -> None:
    path = os.pathsep.join(["src", os.path.dirname(os.path.dirname(os.path.dirname(__file__)))])
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )
    with child:
        assert child.stdin is not None
        assert child.stdout is not None
        for _ in range(steps):
            assert child.stdout.readline() == b"step\n"
            child.stdin.write(b".")
            child.stdin.flush()
        child.send_signal(signal.SIGKILL)
    again, fresh = (
        Index(parts_at(folder, Knowing()), ListFeed(many(400))),
        Index(parts_at(f"{folder}-2", Knowing()), ListFeed(many(400))),
    )
    assert again.catch_up() == fresh.catch_up() == IndexProgress(400, 0, 400)
    assert answers(again) == answers(fresh)
    again.close()
    fresh.close()


def catch_up(folder: str) -> None:
    index = Index(parts_at(folder, Knowing()), ListFeed(many(600)))
    while index.catch_up() != IndexProgress(600, 0, 600):
        pass
    assert len(index.search("a puppy", 25)) == 25
    index.close()


def test_processes_catch_up_together(folder: str) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=catch_up, args=(folder,)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    together, alone = (
        Index(parts_at(folder, Knowing()), ListFeed(many(600))),
        Index(parts_at(f"{folder}-2", Knowing()), ListFeed(many(600))),
    )
    alone.catch_up()
    assert answers(together) == answers(alone)
    together.close()
    alone.close()


def test_threads_share_an_index_while_it_grows_and_is_removed(folder: str) -> None:
    feed = ListFeed(many(200))
    index = Index(parts_at(folder, Knowing()), feed)
    failed: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(15):
                index.search("a puppy in the rain", 5)
                index.catch_up()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for one in many(300)[200:]:
        feed.stored.append(one)
        if one.seq % 40 == 0:
            erase_at(folder)
    for thread in threads:
        thread.join()
    assert failed == []
    assert index.catch_up() == IndexProgress(300, 0, 300)
    index.close()


def test_a_few_entries_that_are_not_in_the_files_are_found_all_the_same(folder: str) -> None:
    knowing = Knowing()
    index = Index(parts_at(folder, knowing), ListFeed(many(60), [document(1, "The price of bread")]))
    assert not index.covers(60, 1)  # this embedder may take its time, or fail
    knowing.instant = True
    assert index.covers(60, 1)
    assert knowing.texts == []
    assert seqs(index.search("number 60", 1)) == [60]
    assert index.notes == ()
    many_more = Index(parts_at(f"{folder}-2", knowing), ListFeed(many(65)))
    assert not many_more.covers(65, 0)
    many_more.catch_up()
    assert many_more.covers(65, 0)
    many_more.close()
    index.close()
