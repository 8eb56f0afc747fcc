"""An index that is built newest part first gives the same answers as one that is built from the beginning."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daypack.search.indexing import Doc
from daypack.search.lexical import Coverage, Lexical

BLOCK = 5
START = datetime(2026, 5, 1, tzinfo=UTC)
TEXTS = ("", "the walrus sleeps", "Ann: a walrus eats fish", "Bob: fish and ice", "the report is late", " ")


@st.composite
def conversations(draw: st.DrawFn) -> list[Doc]:
    """Entries with silent ones, missing ones, pauses of hours, and some without a time."""
    docs: list[Doc] = []
    moment = START
    for number in range(1, draw(st.integers(1, 60)) + 1):
        moment += timedelta(minutes=draw(st.sampled_from((1, 1, 1, 200))))
        if draw(st.integers(0, 9)) == 0:
            continue  # a damaged line
        when = moment.isoformat() if draw(st.integers(0, 5)) else ""
        author, role = draw(st.sampled_from((("", "user"), ("", "assistant"), ("Cleo", "user"), ("", "tool"))))
        docs.append(Doc(number, draw(st.sampled_from(TEXTS)), author, role, when))
    return docs


def part(docs: Sequence[Doc], start: int, stop: int) -> list[Doc]:
    return [doc for doc in docs if start <= doc.id < stop]


def block_start(entry: int) -> int:
    return (entry - 1) // BLOCK * BLOCK + 1


def contents(index: Lexical) -> dict[str, Any]:
    """Everything an answer is made from; stretches and authors are named by what they contain, not by number."""

    with closing(sqlite3.connect(index.path)) as connection:
        rows = connection.execute("SELECT * FROM entries ORDER BY id").fetchall()
        first_of: dict[int, int] = {}
        for entry, stretch, *_ in rows:
            first_of.setdefault(stretch, entry)
        names = dict(connection.execute("SELECT number, name FROM authors"))
        speakers = {row[0]: (names.get(abs(row[4] >> 1)), row[4] & 1, row[4] < 0) for row in rows}
        return {
            "places": [(row[0], first_of[row[1]], row[2], row[3], speakers[row[0]], row[5]) for row in rows],
            "authors": sorted(connection.execute("SELECT name, given, entries FROM authors")),
            "totals": connection.execute(
                "SELECT newest, oldest, entries, chunks, words, persons FROM totals"
            ).fetchone(),
            "stretches": connection.execute("SELECT stretches FROM totals").fetchone()[0],
            "end": connection.execute("SELECT newest, moment, length FROM groups WHERE newest").fetchall(),
        }


@settings(deadline=None, max_examples=60)
@given(docs=conversations(), data=st.data())
@pytest.mark.requirement("T1")
def test_the_order_of_building_changes_no_answer(docs: list[Doc], data: st.DataObject) -> None:
    end = data.draw(st.integers(1, 70), "end")
    docs = part(docs, 1, end)
    with TemporaryDirectory() as folder:
        plain = Lexical(str(Path(folder) / "plain.db"), block=BLOCK)
        plain.add(docs, through=end - 1)
        mixed = Lexical(str(Path(folder) / "mixed.db"), block=BLOCK)
        known = data.draw(st.integers(0, end - 1), "indexed before the import")
        mixed.add(part(docs, 1, known + 1), through=known)
        imported = data.draw(st.integers(known, end - 1), "imported up to")
        start = block_start(imported) if imported else 0
        mixed.add(part(docs, max(start, known + 1), imported + 1), start=start, through=imported)
        newest = imported
        while mixed.coverage() != Coverage(end - 1, None):
            gap = mixed.coverage().gap
            if gap is None or (newest < end - 1 and data.draw(st.booleans(), "append")):
                through = data.draw(st.integers(newest + 1, end - 1), "through")
                newest = mixed.add(part(docs, newest + 1, through + 1), through=through)
                continue
            low = data.draw(st.integers(gap[0], gap[1] - 1), "low")
            low = max(gap[0], block_start(low))
            assert mixed.fill(part(docs, low, gap[1]), low, gap[1])
        assert contents(mixed) == contents(plain)
        for query in ("walrus", "Ann and the fish", "What did Cleo say about the report?", "ice fish walrus"):
            for below in (None, max(1, end // 2)):
                assert mixed.search(query, limit=9, below=below) == plain.search(query, limit=9, below=below)
        mixed.close()
        plain.close()


def test_what_is_indexed_is_found_while_there_is_a_gap(tmp_path: Path) -> None:
    index = Lexical(str(tmp_path / "index.db"), block=BLOCK)
    docs = [Doc(number, f"walrus {number}") for number in range(1, 31)]
    index.add(docs[25:], start=26)
    assert index.coverage() == Coverage(30, (1, 26))
    assert {hit.id for hit in index.search("walrus", limit=99)} == set(range(26, 31))
    assert index.fill(docs[10:25], 11, 26)
    assert {hit.id for hit in index.search("walrus", limit=99)} == set(range(11, 31))
    assert index.coverage() == Coverage(30, (1, 11))


def test_a_second_builder_fills_nothing_twice(tmp_path: Path) -> None:
    first, second = (Lexical(str(tmp_path / "index.db"), block=BLOCK) for _ in range(2))
    docs = [Doc(number, f"walrus {number}") for number in range(1, 31)]
    first.add(docs[25:], start=26)
    assert first.fill(docs[20:25], 21, 26)
    assert not second.fill(docs[20:25], 21, 26)
    assert second.add(docs[20:], start=21) == 30
    assert second.fill(docs[:20], 1, 21)
    assert not first.fill(docs[:20], 1, 21)
    assert first.coverage() == Coverage(30, None)
    assert len(first.search("walrus", limit=99)) == 30


def test_a_gap_is_left_only_once(tmp_path: Path) -> None:
    index = Lexical(str(tmp_path / "index.db"), block=BLOCK)
    docs = [Doc(number, f"walrus {number}") for number in range(1, 61)]
    index.add(docs[25:30], start=26)
    assert index.add(docs[50:], start=51) == 30
    assert index.coverage() == Coverage(30, (1, 26))
