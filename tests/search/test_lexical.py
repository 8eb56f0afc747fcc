"""Searching: what is found, in which order, by several users of one file, whatever the query."""

import multiprocessing
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daypack.search.indexing import Doc
from daypack.search.lexical import Hit, Lexical

TALK = [
    Doc(1, "Where shall we put the retry limit?", role="user"),
    Doc(2, "In the settings file, I think.", role="assistant"),
    Doc(3, "Fine. Set it to seven.", role="user"),
    Doc(4, "Done.", role="assistant"),
    Doc(5, "Now about the invoices of Nordwind: who pays them?", role="user"),
    Doc(6, "Accounting does, every second Friday.", role="assistant"),
    Doc(7, "And the painters?", role="user"),
    Doc(8, "They are paid in cash.", role="assistant"),
]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Lexical]:
    index = Lexical(str(tmp_path / "index.db"))
    yield index
    index.close()


def ids(hits: list[Hit]) -> list[int]:
    return [hit.id for hit in hits]


def test_the_matching_entry_comes_first_and_its_neighbours_are_found(index: Lexical) -> None:
    index.add(TALK)
    found = index.search("What is the retry limit?", limit=4)
    assert ids(found)[0] == 1
    assert set(ids(found)) == {1, 2, 3}
    assert found[0].parts["lexical"] > 0
    assert found[1].parts["lexical"] == 0
    assert (found[0].start, found[0].stop) == (0, len(TALK[0].text))


def test_stems_meet(index: Lexical) -> None:
    index.add(TALK)
    assert ids(index.search("painter", limit=1)) == [7]
    assert ids(index.search("INVOICE", limit=1)) == [5]


def test_only_entries_below_a_limit_are_found_neighbours_too(index: Lexical) -> None:
    index.add(TALK)
    assert set(ids(index.search("Nordwind invoices", limit=9))) == {4, 5, 6, 7}
    assert set(ids(index.search("Nordwind invoices", limit=9, below=6))) == {4, 5}
    assert index.search("Nordwind invoices", limit=9, below=5) == []
    assert index.search("Nordwind invoices", limit=9, below=0) == []
    assert index.search("Nordwind invoices", limit=9, below=-3) == []


def test_dates_and_authors_are_searched_though_they_are_not_in_the_text(index: Lexical) -> None:
    index.add([Doc(1, "We met at the lake.", "Caroline", when="2023-05-08"), Doc(2, "Sun again.", when="2023-07-01")])
    assert ids(index.search("May 8", limit=1)) == [1]
    assert ids(index.search("2023-05-08", limit=1)) == [1]
    assert ids(index.search("july", limit=1)) == [2]
    assert ids(index.search("what did Caroline do?", limit=1)) == [1]


def test_the_author_a_question_names_is_preferred(index: Lexical) -> None:
    for number in range(0, 40, 2):
        index.add([Doc(number + 1, "my guitar is new", "Ana"), Doc(number + 2, "my guitar is new", "Bo")])
    assert {hit.id % 2 for hit in index.search("Which guitar has Ana?", limit=10)} == {1}
    assert {hit.id % 2 for hit in index.search("Which guitar has Bo?", limit=10)} == {0}
    assert {hit.id % 2 for hit in index.search("Which guitar have Ana and Bo?", limit=10)} == {0, 1}


def test_a_name_before_the_text_is_an_author_too(index: Lexical) -> None:
    for number in range(0, 40, 2):
        index.add([Doc(number + 1, "Ana: my guitar is new"), Doc(number + 2, "Bo: Ana my guitar is new")])
    found = index.search("Which guitar has Ana?", limit=10)
    assert {hit.id % 2 for hit in found} == {1}
    assert all(hit.parts["author"] > 0 for hit in found)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我们昨天在东京吃了拉面", "东京的拉面好吃吗"),
        ("私は黒い猫を飼っています", "猫"),
        ("서울에서 친구를 만났다", "서울 친구"),
        ("ฉันชอบอาหารไทย", "อาหารไทย"),
        ("Встреча с Алёной в пятницу", "аленой"),
        ("Das Café in der Straße", "cafe strasse"),
    ],
)
def test_other_scripts_are_found(index: Lexical, text: str, query: str) -> None:
    index.add([Doc(1, "nothing of the kind", group="a"), Doc(2, text, group="b"), Doc(3, "全然不同的内容", group="c")])
    assert ids(index.search(query, limit=1)) == [2]


def test_a_hit_in_a_long_text_says_where(index: Lexical) -> None:
    filler = "This sentence is here to make the text long enough to be cut. " * 60
    text = f"{filler}The password hint is a blue giraffe. {filler}"
    index.add([Doc(1, text), Doc(2, "Thanks.")])
    hit, near = index.search("giraffe", limit=2)
    assert "blue giraffe" in text[hit.start : hit.stop]
    assert hit.stop - hit.start < 1_500
    assert (near.id, near.start, near.stop) == (2, 0, 7)


def test_a_long_neighbour_is_shown_from_its_beginning(index: Lexical) -> None:
    index.add([Doc(1, "giraffe?"), Doc(2, "A sentence of the answer that follows. " * 200)])
    near = index.search("giraffe", limit=2)[1]
    assert (near.id, near.start) == (2, 0)
    assert 300 < near.stop < 1_500


def test_a_giant_text_of_coded_data_adds_nothing_but_its_words(index: Lexical) -> None:
    blob = "iVBORw0KGgoAAAANSUhEUgAAAAUA4//8AFCAYAAACNbyblAAAAHElEQVQI12P" * 50_000
    index.add([Doc(1, f"the screenshot {blob} shows a walrus", role="tool")])
    assert ids(index.search("walrus", limit=1)) == [1]
    assert ids(index.search("screenshot", limit=1)) == [1]
    assert os.path.getsize(index.path) < 100_000


def test_an_entry_is_found_by_its_summary(index: Lexical) -> None:
    index.add([Doc(1, "She loved it there.", summary="Ana visited Lisbon.", group="a"), Doc(2, "Nothing.", group="b")])
    (hit,) = index.search("Lisbon", limit=2)
    assert (hit.id, hit.start, hit.stop) == (1, 0, 19)


def test_only_allowed_entries_are_found_with_the_scores_they_have_anyway(index: Lexical) -> None:
    index.add(TALK)
    every = {hit.id: hit for hit in index.search("Nordwind invoices painters", limit=9)}
    assert index.search("Nordwind invoices painters", limit=9, allowed=[6, 7, 1]) == [every[7], every[6]]
    assert index.search("Nordwind invoices painters", limit=9, allowed=()) == []
    assert index.search("Nordwind invoices painters", limit=9, allowed=[99, -1]) == []


def test_a_narrow_filter_misses_nothing_in_a_large_index(index: Lexical) -> None:
    index.add(Doc(n, f"the cake of day {n} is a cake", group=str(n)) for n in range(1, 20_001))
    assert ids(index.search("cake", limit=9, allowed=[3, 7_000, 12_345])) == [12_345, 7_000, 3]
    assert ids(index.search("cake of day 7000", limit=9, allowed=[3, 7_000]))[0] == 7_000


def test_the_best_of_a_large_index_are_found_where_all_terms_are_common(tmp_path: Path) -> None:
    index = Lexical(str(tmp_path / "index.db"), postings=500)
    words = ("red", "green", "blue", "black")
    index.add(Doc(n, f"{words[n % 4]} {words[n // 4 % 4]} of {n}", group=str(n)) for n in range(1, 8_001))
    hits = index.search("red green", limit=5)
    assert all({n % 4, n // 4 % 4} == {0, 1} for n in ids(hits))
    index.close()


def test_a_survey_holds_what_others_found_too(index: Lexical) -> None:
    index.add(TALK)
    match = index.match("retry", also=[7, 99])
    assert match.rated.keys() == {1, 2, 3}
    assert {1, 7} <= match.places.keys()
    assert 99 not in match.places
    assert match.worth == pytest.approx(match.rated[1].own, rel=0.5)
    assert index.match("retry unicorn").worth > match.worth
    assert index.match("").places == {}
    assert index.match("", also=[3]).places.keys() == {3}


def test_the_names_in_a_query_are_those_of_who_speaks(index: Lexical) -> None:
    index.add([Doc(1, "hello", "Ana López"), Doc(2, "Bo: hi"), Doc(3, "Bo: again"), Doc(4, "Note: once")])
    assert set(index.names_in("What did Ana and Bo note on Ana's list?")) == {"ana", "bo"}
    assert index.names_in("") == []


def test_the_same_entries_give_the_same_order_however_they_were_added(tmp_path: Path) -> None:
    docs = [
        Doc(n, f"message {n % 7} about topic {n % 5} and {n % 3}", role=("user", "assistant")[n % 2])
        for n in range(1, 300)
    ]
    once, singly = Lexical(str(tmp_path / "once.db")), Lexical(str(tmp_path / "singly.db"))
    once.add(docs)
    for doc in docs:
        singly.add([doc])
    for query in ("topic 3 and message 2", "about 1", "message topic"):
        assert once.search(query, limit=60) == singly.search(query, limit=60)
        assert once.search(query, limit=60) == once.search(query, limit=60)
    once.close()
    singly.close()


def test_of_equal_entries_the_newest_comes_first(index: Lexical) -> None:
    index.add(Doc(number, "the same words", group=str(number)) for number in range(1, 30))
    assert ids(index.search("same words", limit=50)) == list(range(29, 0, -1))


def test_a_query_of_stop_words_or_of_nothing_finds_nothing(index: Lexical) -> None:
    index.add(TALK)
    for query in ("", "what was it that you did", "?!", "\0", "😀"):
        assert index.search(query, limit=5) == []
    assert index.search("retry", limit=0) == []


QUERIES = st.text() | st.lists(
    st.sampled_from(
        ['"', "*", "(", ")", "AND", "OR", "NOT", "NEAR", "^", ":", "-", "+", "{", "}", "words", "\0", "retry"]
    )
).map(" ".join)


@given(query=QUERIES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_query_is_an_error(index: Lexical, query: str) -> None:
    if not index.newest:
        index.add(TALK)
    index.search(query, limit=5)
    assert index.newest == 8  # an error inside would have begun the index anew


@given(text=st.text(), author=st.text(), when=st.text())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_text_can_be_added(index: Lexical, text: str, author: str, when: str) -> None:
    number = index.newest + 1
    assert index.add([Doc(number, text, author, when=when, group=author)]) == number


def test_a_query_of_a_megabyte_is_answered(index: Lexical) -> None:
    index.add(TALK)
    query = " ".join(f"word{number}" for number in range(120_000))
    assert len(query) > 1_000_000
    assert ids(index.search(f"{query} retry", limit=1)) == [1]


def test_known_entries_are_passed_over(index: Lexical, tmp_path: Path) -> None:
    other = Lexical(str(tmp_path / "index.db"))
    assert index.add(TALK[:5]) == 5
    assert other.add(TALK) == 8
    assert index.add(TALK) == 8
    assert ids(index.search("Nordwind", limit=1)) == [5]
    check = sqlite3.connect(index.path)
    assert check.execute("SELECT chunks FROM totals").fetchone() == (8,)
    check.close()
    other.close()


def test_nothing_is_added_behind_a_gap_when_the_index_was_begun_anew(index: Lexical) -> None:
    assert index.add(TALK[:5]) == 5
    os.unlink(index.path)
    assert index.add(TALK[5:]) == 0
    assert index.newest == 0
    assert index.add(TALK) == 8


def test_a_broken_index_is_empty_and_can_be_filled_again(index: Lexical) -> None:
    index.add(Doc(number, f"message number {number} about invoices") for number in range(1, 3_000))
    index.close()
    size = os.path.getsize(index.path)
    with open(index.path, "r+b") as file:
        file.seek(8192)
        file.write(os.urandom(size - 8192))
    assert index.search("invoices", limit=5) == []
    assert index.newest == 0
    index.add(TALK)
    assert ids(index.search("invoices", limit=1)) == [5]


def test_a_failing_source_of_entries_adds_none(index: Lexical) -> None:
    def docs() -> Iterator[Doc]:
        yield from TALK[:3]
        raise ConnectionError

    with pytest.raises(ConnectionError):
        index.add(docs())
    assert index.newest == 0
    assert index.search("retry", limit=5) == []


def test_a_source_of_entries_may_ask_the_index(index: Lexical) -> None:
    assert index.add(doc for doc in TALK if doc.id > index.newest) == 8


def test_threads_share_an_index(index: Lexical) -> None:
    index.add(TALK)
    found: list[list[int]] = []

    def work() -> None:
        for _ in range(20):
            index.add(TALK)
            found.append(ids(index.search("retry limit", limit=3)))

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [ids(index.search("retry limit", limit=3))] * 80
    assert set(found[0]) == {1, 2, 3}


def catch_up(path: str, last: int) -> None:
    index = Lexical(path)
    while (newest := index.newest) < last:
        index.add(Doc(number, f"message {number} of many") for number in range(newest + 1, min(newest + 50, last) + 1))
        index.search("message", limit=3)
    index.close()


def test_processes_that_catch_up_together_add_nothing_twice(tmp_path: Path) -> None:
    path = str(tmp_path / "index.db")
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=catch_up, args=(path, 1_000)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    check = sqlite3.connect(path)
    assert check.execute("SELECT count(*), max(id) FROM entries").fetchone() == (1_000, 1_000)
    assert check.execute("SELECT chunks FROM totals").fetchone() == (1_000,)
    assert check.execute("SELECT count(*) FROM postings WHERE postings MATCH 'many'").fetchone() == (1_000,)
    check.close()
