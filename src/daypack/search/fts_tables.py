"""The tables of an index in SQLite: the schema, and all statements. Terms are in an FTS5 table without texts."""

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from msgspec.json import Decoder
from msgspec.structs import astuple

from daypack.search.index_file import IndexFile
from daypack.search.neighbours import Place
from daypack.search.postings import ENTRY_BITS
from daypack.search.tables import Answer, Batch, Gap, GroupEnd, IndexTables, Participation, TermQuery, Totals
from daypack.types.deadline import Deadline

if TYPE_CHECKING:
    from sqlite3 import Connection

VERSION = 3
SCHEMA = """
CREATE VIRTUAL TABLE postings USING fts5(words, content='', columnsize=0, detail=none, tokenize='porter ascii');
INSERT INTO postings(postings, rank) VALUES ('hashsize', 8000000);
CREATE TABLE entries(id INTEGER PRIMARY KEY, stretch INT, before INT, after INT, speaker INT, cuts BLOB);
CREATE TABLE groups(name TEXT PRIMARY KEY, newest INT, moment REAL, stretch INT, length INT) WITHOUT ROWID;
CREATE TABLE authors(number INTEGER PRIMARY KEY, name TEXT UNIQUE, given INT, entries INT);
CREATE INDEX busy ON authors(entries);
CREATE TABLE names(word TEXT, author INT, PRIMARY KEY(word, author)) WITHOUT ROWID;
CREATE TABLE totals(newest INT, oldest INT, entries INT, chunks INT, words INT, stretches INT, persons INT);
INSERT INTO totals VALUES (0, 0, 0, 0, 0, 0, 0);
CREATE TABLE gap(start INT, stop INT, newest INT, moment REAL, stretch INT, length INT, after INT, after_moment REAL)
"""

# Returned as one JSON text: a row for each posting would cost as much as the rest of the search.
_FIRST = """SELECT json_group_array(rowid) FROM
    (SELECT rowid FROM postings WHERE postings MATCH ? AND rowid < ? ORDER BY rowid LIMIT ?)"""
_AFTER = "SELECT json_group_array(rowid) FROM postings WHERE postings MATCH ? AND rowid > ? AND rowid < ?"
_NEWEST = """SELECT json_group_array(rowid) FROM
    (SELECT rowid FROM postings WHERE postings MATCH ? AND rowid > ? AND rowid < ? ORDER BY rowid DESC LIMIT ?)"""
_WITHIN = """SELECT json_group_array(rowid) FROM postings WHERE postings MATCH ? AND rowid >= ? AND rowid < ?
    AND (rowid >> 12) IN (SELECT value FROM json_each(?))"""
_COUNT = "SELECT count(*) FROM (SELECT 1 FROM postings WHERE postings MATCH ? AND rowid < ? LIMIT ?)"
_NUMBERS = Decoder(list[int])

_PLACES = "SELECT id, stretch, before, after, speaker FROM entries WHERE id IN ({})"
_CUTS = "SELECT id, cuts FROM entries WHERE id IN ({})"
_ENTRIES = "SELECT id, stretch, before, after, speaker, length(cuts) / 8 FROM entries WHERE id > ? ORDER BY id"
_GROUP = "SELECT newest, moment, stretch, length FROM groups WHERE name = ?"
_AUTHOR = "SELECT number, given FROM authors WHERE name = ?"
_BUSY = "SELECT number FROM authors WHERE entries >= ? ORDER BY entries, number LIMIT ?"
_CALLED = """SELECT author, count(*) FROM names JOIN authors ON number = author
    WHERE word IN ({}) AND (given OR entries >= ?) GROUP BY author ORDER BY 2 DESC LIMIT 2"""
_NAMED = """SELECT DISTINCT word FROM names JOIN authors ON number = author
    WHERE word IN ({}) AND (given OR entries >= ?)"""
_ADD_AUTHOR = "INSERT INTO authors(name, given, entries) VALUES (?, 0, 0)"
_ADD_NAME = "INSERT OR IGNORE INTO names VALUES (?, ?)"
_WRITES = {
    "postings": "INSERT INTO postings(rowid, words) VALUES (?, ?)",
    "entries": "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)",
    "after": "UPDATE entries SET after = ? WHERE id = ?",
    "before": "UPDATE entries SET before = ? WHERE id = ?",
    "groups": "INSERT OR REPLACE INTO groups VALUES (?, ?, ?, ?, ?)",
    "authors": "UPDATE authors SET given = max(given, ?2), entries = entries + ?3 WHERE number = ?1",
}


def match_text(query: TermQuery) -> str:
    """Return a query in the syntax of FTS5."""
    forms = _any(query.forms)
    return f"({forms}) AND ({_any(query.also)})" if query.also else forms


def _any(forms: tuple[str, ...]) -> str:
    return '"' + '" OR "'.join(forms) + '"'


class FtsTables:
    """The tables over a connection."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection
        self._execute = connection.execute

    @property
    def identity(self) -> "Connection":
        """The connection: an index that was replaced has another one."""
        return self._connection

    # Postings

    def newest_postings(self, queries: Sequence[TermQuery], *, after: int, before: int, limit: int) -> list[list[int]]:
        """Return the newest postings between two numbers, newest first."""
        return [self._numbers(_NEWEST, match_text(query), after, before, limit) for query in queries]

    def first_postings(self, query: TermQuery, *, before: int, limit: int) -> list[int]:
        """Return the oldest postings, oldest first."""
        return self._numbers(_FIRST, match_text(query), before, limit)

    def postings_after(self, wanted: Sequence[tuple[TermQuery, int]], *, before: int) -> list[list[int]]:
        """Return all postings of each query after a number, oldest first."""
        return [self._numbers(_AFTER, match_text(query), after, before) for query, after in wanted]

    def postings_within(self, wanted: Sequence[tuple[TermQuery, int]], ids: Collection[int]) -> list[list[int]]:
        """Return the postings of each query in these entries before a number: SQLite filters them itself."""
        among = f"[{','.join(map(str, ids))}]"
        low, high = min(ids, default=0) << ENTRY_BITS, (max(ids, default=0) + 1) << ENTRY_BITS
        return [self._numbers(_WITHIN, match_text(query), low, min(high, before), among) for query, before in wanted]

    def count_postings(self, queries: Sequence[TermQuery], *, before: int, limit: int) -> list[int]:
        """Return how many postings each query has, at most the limit."""
        return [self._execute(_COUNT, (match_text(query), before, limit)).fetchone()[0] for query in queries]

    def _numbers(self, statement: str, *values: int | str) -> list[int]:
        return _NUMBERS.decode(self._execute(statement, values).fetchone()[0])

    # Entries

    def places(self, ids: Iterable[int]) -> dict[int, Place]:
        """Return the positions of entries by id; the ids ascend, because SQLite sorts what is in a list."""
        return {row[0]: row for row in self._among(_PLACES, ids).fetchall()}

    def cuts(self, ids: Iterable[int]) -> dict[int, bytes]:
        """Return where the chunks of entries begin and end, packed."""
        return dict(self._among(_CUTS, ids).fetchall())

    def entries_after(self, entry: int) -> Iterable[tuple[int, int, int, int, int, int]]:
        """Return all entries with a larger id, and how many chunks they have."""
        return self._execute(_ENTRIES, (entry,))

    def _among(self, statement: str, values: Iterable[Any], *more: int) -> Any:  # noqa: ANN401 — a cursor
        """Execute with placeholders for values, padded with the last value so that few statements are prepared."""
        padded = list(values)
        padded += padded[-1:] * (-len(padded) % 64)
        return self._execute(statement.format(",".join("?" * len(padded))), [*padded, *more])

    # Counts and names

    def totals(self) -> Totals:
        """Return the counts over the whole index."""
        return Totals(*self._execute("SELECT * FROM totals").fetchone())

    def gap(self) -> Gap | None:
        """Return which ids are not indexed yet, while later ones are."""
        row = self._execute("SELECT * FROM gap").fetchone()
        return Gap(row[0], row[1], GroupEnd(*row[2:6]), row[6], row[7]) if row else None

    def group(self, name: str) -> GroupEnd | None:
        """Return the end of a group."""
        row = self._execute(_GROUP, (name,)).fetchone()
        return GroupEnd(*row) if row else None

    def author(self, name: str) -> tuple[int, int] | None:
        """Return the number of an author and whether the name was given."""
        return self._execute(_AUTHOR, (name,)).fetchone()

    def participation(self, words: Sequence[str], *, floor: int, limit: int) -> Participation:
        """Return the busy authors, and those whose name is in a query."""
        busy = [number for (number,) in self._execute(_BUSY, (floor, limit))]
        return Participation(busy, self._among(_CALLED, words, floor).fetchall())

    def names_among(self, words: Sequence[str], *, floor: int) -> set[str]:
        """Return the words that are in the names of participants."""
        return {word for (word,) in self._among(_NAMED, words, floor)}

    # Writing

    def add_author(self, name: str) -> int:
        """Add an author and the words of the name; return the number."""
        number = self._execute(_ADD_AUTHOR, (name,)).lastrowid or 0
        self._connection.executemany(_ADD_NAME, [(word, number) for word in name.split()])
        return number

    def write(self, batch: Batch) -> None:
        """Write a batch."""
        rows: dict[str, list[Any]] = {
            "postings": batch.postings,
            "entries": batch.entries,
            "after": batch.after,
            "before": batch.before,
            "groups": [(name, *astuple(end)) for name, end in batch.groups],
            "authors": batch.authors,
        }
        for name, statement in _WRITES.items():
            if rows[name]:
                self._connection.executemany(statement, rows[name])

    def save_totals(self, totals: Totals) -> None:
        """Replace the counts."""
        self._execute(
            "UPDATE totals SET newest=?, oldest=?, entries=?, chunks=?, words=?, stretches=?, persons=?",
            astuple(totals),
        )

    def save_gap(self, gap: Gap | None) -> None:
        """Replace the gap."""
        self._execute("DELETE FROM gap")
        if gap:
            values = gap.start, gap.stop, *astuple(gap.before), gap.after, gap.after_moment
            self._execute("INSERT INTO gap VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)


class FtsFile:
    """An index in a SQLite file; see `IndexFile` for what happens to a file that cannot be used."""

    def __init__(self, path: str) -> None:
        self._file = IndexFile(path, SCHEMA, VERSION)
        self.path = self._file.path

    @property
    def times_opened(self) -> int:
        """How often the file was opened: as long as it is the same, so is the file."""
        return self._file.times_opened

    def run(self, operation: str, work: Callable[[IndexTables], Answer], *, writing: bool = False) -> Answer | None:
        """Run `work` in one transaction; return None if the file was unusable and has been replaced."""
        return self._file.run(operation, lambda connection: work(FtsTables(connection)), writing=writing)

    def waiting(self, operation: str, deadline: Deadline) -> AbstractContextManager[None]:
        """Wait for processes that write to the file until the deadline only."""
        return self._file.waiting(operation, deadline)

    def close(self) -> None:
        """Close the file; `run` opens it again."""
        self._file.close()
