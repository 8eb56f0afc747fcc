"""What the tables of every index must do; the tests of a place inherit it and provide an empty `place`."""

import random
from pathlib import Path
from typing import Any

import pytest

from daypack.search import resident
from daypack.search.indexing import Doc
from daypack.search.lexical import Lexical
from daypack.search.postings import posting
from daypack.search.tables import Batch, Gap, GroupEnd, IndexPlace, TermQuery, Totals

PAINT, GOLD = TermQuery(("painting",)), TermQuery(("gold",))
EITHER, BOTH = TermQuery(("paint", "gold")), TermQuery(("paint",), ("golden", "gold"))
TEXTS = ("painted gold", "gold", "paints", "other", "a gold painting", "東京 東 京", "aतing café")
ROWS = [posting(entry, 0, 4) for entry in range(1, len(TEXTS) + 1)]
END = ROWS[-1] + 1
STEMS, ENDINGS = ("paint", "relat", "hop", "tokyo"), ("ing", "ed", "s", "ation", "y")
WORDS = [*(stem + ending for stem in STEMS for ending in ENDINGS), "東京都", "café"]
COMMON = [1 / (at + 1) for at in range(len(WORDS))]


def write(place: IndexPlace, **lists: Any) -> None:
    place.run("index", lambda tables: tables.write(Batch(**lists)), writing=True)


def read(place: IndexPlace, name: str, *values: Any, **bounds: Any) -> Any:
    return place.run("search", lambda tables: getattr(tables, name)(*values, **bounds))


def fill(place: IndexPlace) -> None:
    write(place, postings=list(zip(ROWS, TEXTS, strict=True)))


def rows(*entries: int) -> list[int]:
    return [ROWS[entry - 1] for entry in entries]


def join(place: IndexPlace, authors: dict[str, tuple[int, int]]) -> list[int]:
    """Add authors with whether their name was given and their number of entries; return their numbers."""

    def work(tables: Any) -> list[int]:
        numbers = [tables.add_author(name) for name in authors]
        pairs = zip(numbers, authors.values(), strict=True)
        tables.write(Batch(authors=[(number, given, entries) for number, (given, entries) in pairs]))
        return numbers

    return place.run("index", work, writing=True) or []


class Postings:
    """Postings are found by stems, within exclusive bounds, in order."""

    def test_the_newest_come_first_between_the_bounds(self, place: IndexPlace) -> None:
        fill(place)
        asked = [PAINT, GOLD, EITHER, BOTH, TermQuery(("absent",))]
        found = read(place, "newest_postings", asked, after=0, before=END, limit=9)
        assert found == [rows(5, 3, 1), rows(5, 2, 1), rows(5, 3, 2, 1), rows(5, 1), []]
        found = read(place, "newest_postings", asked[:2], after=ROWS[0], before=ROWS[4], limit=9)
        assert found == [rows(3), rows(2)]
        assert read(place, "newest_postings", [EITHER], after=0, before=END, limit=2) == [rows(5, 3)]
        assert read(place, "newest_postings", [], after=0, before=END, limit=2) == []

    def test_the_first_come_first_before_the_bound(self, place: IndexPlace) -> None:
        fill(place)
        assert read(place, "first_postings", EITHER, before=ROWS[4], limit=9) == rows(1, 2, 3)
        assert read(place, "first_postings", EITHER, before=END, limit=2) == rows(1, 2)

    def test_each_query_is_read_after_a_posting_of_its_own(self, place: IndexPlace) -> None:
        fill(place)
        found = read(place, "postings_after", [(PAINT, ROWS[0]), (GOLD, 0)], before=ROWS[4])
        assert found == [rows(3), rows(1, 2)]

    def test_within_entries_each_query_is_read_before_a_posting_of_its_own(self, place: IndexPlace) -> None:
        fill(place)
        found = read(place, "postings_within", [(PAINT, END), (GOLD, ROWS[4])], {5, 1, 4, 2, 99})
        assert found == [rows(1, 5), rows(1, 2)]
        assert read(place, "postings_within", [(PAINT, END)], range(1, 10_001)) == [rows(1, 3, 5)]
        assert read(place, "postings_within", [(PAINT, END)], ()) == [[]]

    def test_they_are_counted_up_to_a_limit(self, place: IndexPlace) -> None:
        fill(place)
        assert read(place, "count_postings", [EITHER, BOTH], before=END, limit=3) == [3, 2]
        assert read(place, "count_postings", [EITHER, BOTH], before=ROWS[4], limit=9) == [3, 1]

    def test_words_of_all_scripts_are_found(self, place: IndexPlace) -> None:
        fill(place)
        asked = [TermQuery((word,)) for word in ("東京", "京", "aतing", "café", "caf", "東京東")]
        found = read(place, "newest_postings", asked, after=0, before=END, limit=9)
        assert found == [rows(6), rows(6), rows(7), rows(7), [], []]

    def test_older_ones_may_come_later(self, place: IndexPlace) -> None:
        write(place, postings=[(ROWS[4], "gold")])
        write(place, postings=[(ROWS[1], "gold"), (ROWS[2], "gold \0 painting")])
        assert read(place, "newest_postings", [GOLD, PAINT], after=0, before=END, limit=9) == [rows(5, 3, 2), rows(3)]


class Entries:
    """Entries, counts and ends of conversations are read as they were written."""

    def test_places_ascend_and_links_change(self, place: IndexPlace) -> None:
        entries = [[number, 1, number - 1, 0, -3, bytes(8 * number)] for number in (1, 2, 3)]
        write(place, entries=entries, after=[(2, 1), (3, 2)], before=[(9, 2)])
        found = read(place, "places", iter([3, 1, 2, 3, 40]))
        assert [(entry, *found[entry][1:]) for entry in found] == [
            (1, 1, 0, 2, -3),
            (2, 1, 9, 3, -3),
            (3, 1, 2, 0, -3),
        ]
        assert list(found) == [1, 2, 3]
        assert read(place, "cuts", [2, 40]) == {2: bytes(16)}
        assert read(place, "places", []) == read(place, "cuts", []) == {}
        following = place.run("search", lambda tables: list(tables.entries_after(1)))
        assert following == [(2, 1, 9, 3, -3, 2), (3, 1, 2, 0, -3, 3)]

    def test_groups_are_replaced_and_may_have_any_name(self, place: IndexPlace) -> None:
        ends = [GroupEnd(number, 0.1 + number, number, 2) for number in range(1, 5)]
        write(place, groups=[("", ends[0]), ("g\0h", ends[1]), ("é", ends[2])])
        write(place, groups=[("", GroupEnd(7, None, 1, 1)), ("g?", ends[2]), ("g?", ends[3])])
        assert [read(place, "group", name) for name in ("", "g\0h", "é", "g?", "g")] == [
            GroupEnd(7, None, 1, 1),
            *ends[1:],
            None,
        ]

    def test_totals_and_gap_are_replaced(self, place: IndexPlace) -> None:
        assert (read(place, "totals"), read(place, "gap")) == (Totals(), None)
        totals, gap = Totals(1 << 50, 2, 3, 4, 1 << 60, 6, 7), Gap(1, 9, GroupEnd(1, 0.25, 2, 3), 4, None)
        place.run("index", lambda tables: (tables.save_totals(totals), tables.save_gap(gap)), writing=True)
        assert (read(place, "totals"), read(place, "gap")) == (totals, gap)
        place.run("index", lambda tables: tables.save_gap(None), writing=True)
        assert read(place, "gap") is None

    def test_work_that_fails_leaves_nothing(self, place: IndexPlace) -> None:
        def work(tables: Any) -> None:
            tables.write(Batch(postings=[(ROWS[0], "gold")], entries=[[1, 1, 0, 0, 0, b""]]))
            tables.save_totals(Totals(1))
            raise KeyError

        with pytest.raises(KeyError):
            place.run("index", work, writing=True)
        assert (read(place, "totals"), read(place, "places", [1])) == (Totals(), {})
        assert read(place, "first_postings", GOLD, before=END, limit=9) == []


class Authors:
    """Authors have numbers from 1 and the words of their names."""

    def test_a_name_that_was_given_remains_so_and_entries_add_up(self, place: IndexPlace) -> None:
        assert join(place, {"ana lopez": (0, 2), "bo": (1, 3)}) == [1, 2]
        assert (read(place, "author", "ana lopez"), read(place, "author", "bo")) == ((1, 0), (2, 1))
        write(place, authors=[(1, 1, 1), (2, 0, 4)])
        assert (read(place, "author", "ana lopez"), read(place, "author", "bo")) == ((1, 1), (2, 1))
        assert read(place, "author", "ana") is None
        assert [read(place, "participation", [], floor=floor, limit=9).busy for floor in (3, 4, 8)] == [[1, 2], [2], []]

    def test_the_least_busy_come_first(self, place: IndexPlace) -> None:
        join(place, {"a": (0, 5), "b": (0, 2), "c": (0, 1), "d": (0, 2)})
        assert read(place, "participation", [], floor=2, limit=3).busy == [2, 4, 1]
        assert read(place, "participation", [], floor=2, limit=2).busy == [2, 4]

    def test_those_with_most_words_in_a_query_are_called(self, place: IndexPlace) -> None:
        join(place, {"ana lopez": (1, 1), "ana": (0, 5), "ana lopez maria": (0, 1), "lopez lopez": (1, 1)})
        called = [
            read(place, "participation", ["lopez", "ana", "ana"], floor=floor, limit=9).called for floor in (1, 2)
        ]
        assert called[1][0] == (1, 2)
        assert sorted(called[0]) == [(1, 2), (3, 2)]
        assert [len(pairs) for pairs in called] == [2, 2]
        assert called[1][1][1] == 1
        assert read(place, "participation", ["maria"], floor=2, limit=9).called == []

    def test_names_are_those_of_participants(self, place: IndexPlace) -> None:
        join(place, {"ana lopez": (1, 1), "zoë": (0, 1), "bo": (0, 5)})
        assert read(place, "names_among", ["lopez", "zoë", "bo", "bo", "Ana", "x"], floor=2) == {"lopez", "bo"}
        assert read(place, "names_among", ["zoë"], floor=1) == {"zoë"}
        assert read(place, "names_among", [], floor=1) == set()


class Answers:
    """A search gives what it gives over a SQLite file: the same entries in the same order."""

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("postings", [150, 10**9])
    def test_answers_are_those_of_sqlite(
        self, place: IndexPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, postings: int
    ) -> None:
        monkeypatch.setattr(resident, "FROM_SEARCHES", 3)
        rng = random.Random(seed)
        indexes = [Lexical(where, postings=postings, block=50) for where in (place, str(tmp_path / "reference.db"))]
        docs = [_doc(number, rng) for number in range(1, 701)]
        for index in indexes:
            index.add(docs[:100])
            index.add(docs[400:600], start=401)
            index.fill(docs[300:400], 301, 401)
            index.add(docs[600:], through=702)
        for _ in range(12):
            words = rng.choices(WORDS, k=rng.choice((1, 3, 9)))
            query = " ".join([*words, rng.choice(("ana", "Bo", "東京", "unicorn"))])
            below = rng.choice((None, 300))
            allowed = rng.choice((None, frozenset(rng.sample(range(1, 701), 200))))
            found = [
                (
                    index.coverage(),
                    index.search(query, limit=20, below=below, allowed=allowed),
                    index.names_in(query),
                    _everything(index.match(query, also=[3, 500], allowed=allowed)),
                )
                for index in indexes
            ]
            assert found[0] == found[1]
        indexes[1].close()


def _doc(number: int, rng: random.Random) -> Doc:
    return Doc(
        number,
        " ".join(rng.choices(WORDS, COMMON, k=rng.choice((2, 9, 300)))),
        author=rng.choice(("", "", "Ana López", "bo")),
        role=rng.choice(("user", "assistant")),
        when=f"2026-11-{1 + number // 40:02}T10:{number % 60:02}:00Z",
        group=rng.choice(("", "", "a", "b\0")),
        summary=rng.choice(("", "", "hoping for relations")),
    )


def _everything(found: Any) -> list[Any]:
    return [
        list(found.rated.items()),
        [tuple(place) for place in found.places.values()],
        found.participants,
        found.chunks,
        found.worth,
    ]


class TablesConformance(Postings, Entries, Authors, Answers):
    """All of it."""
