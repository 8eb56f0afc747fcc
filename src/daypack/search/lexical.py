"""Search by words over entries that are added in order: no model, one file, a cost that does not grow with it.

An index is one SQLite file, derived from texts that are kept elsewhere: it holds what a search needs, not the texts.
It finds stems in English, words in other languages and pairs of characters where words are not set apart.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from daypack.errors import BadInput
from daypack.search.intake import SCHEMA, Intake, Totals
from daypack.search.postings import CHUNK_BITS, ENTRY_BITS, LENGTH_BITS, MAX_PROBED, Extent, choose, match
from daypack.search.spread import Cast, Place, Ranked, rank
from daypack.search.table import Table
from daypack.search.words import query_terms

if TYPE_CHECKING:
    from sqlite3 import Connection

VERSION = 1
SEEDS = 160  # best matches whose surroundings are looked at
_GUESSED_SHARE = 8  # a name read off texts counts when it stands before one in so many

_CUTS = "SELECT id, cuts FROM entries WHERE id IN ({})"
_BUSY = "SELECT number FROM authors WHERE entries >= ? LIMIT ?"
_CALLED = """SELECT author, count(*) FROM names JOIN authors ON number = author
    WHERE word IN ({}) AND (given OR entries >= ?) GROUP BY author ORDER BY 2 DESC LIMIT 2"""
_PLACES = "SELECT id, stretch, before, after, speaker FROM entries WHERE id IN ({})"


class Doc(Struct, frozen=True):
    """One entry to be found: a message, or an entry of a memory."""

    id: int
    text: str
    author: str = ""
    role: str = ""
    when: str = ""
    group: str = ""


class Hit(Struct, frozen=True):
    """An entry that was found, and where in its text; `parts` adds up to `score`."""

    id: int
    start: int
    stop: int
    score: float
    parts: dict[str, float]


class Lexical:
    """An index at `path`; threads and processes may share it. What it holds goes when the file cannot be read."""

    def __init__(self, path: str) -> None:
        self._table = Table(path, SCHEMA, VERSION)
        self.path = self._table.path
        self._seen = 0

    @property
    def newest(self) -> int:
        """The highest id in the index; 0 when it is empty, also because it had to be begun anew."""
        self._seen = self._table.run("open index", lambda connection: Totals(connection).newest) or 0
        return self._seen

    def add(self, docs: Iterable[Doc]) -> int:
        """Add entries, ids ascending, all or none; return the newest id in the index. Known ids are passed over.

        The entries must follow the `newest` that was last asked for. If the index was begun anew since then, nothing is
        added, because older entries would be missing: the caller goes on from the id that is returned.
        """

        def work(connection: "Connection") -> int:
            intake = Intake(connection)
            if intake.totals.newest < self._seen:
                return intake.totals.newest
            last = 0
            for doc in docs:
                if doc.id <= last:
                    raise BadInput("does not ascend", operation="index", place=str(doc.id), hint="sort entries by id")
                last = doc.id
                intake.take(doc)
            return intake.finish()

        self._seen = self._table.run("index", work, writing=True) or 0
        return self._seen

    def search(self, query: str, *, limit: int, below: int | None = None) -> list[Hit]:
        """Return the best entries for a query in any words, best first, of equal ones the newest first."""
        terms = query_terms(query)
        if not terms or limit < 1:
            return []
        return self._table.run("search", lambda connection: _search(connection, terms, limit, below)) or []

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        self._table.close()


def _search(connection: "Connection", terms: list[str], limit: int, below: int | None) -> list[Hit]:
    totals = Totals(connection)
    end = totals.newest + 1 if below is None else min(below, totals.newest + 1)
    if not totals.chunks or end <= totals.oldest:
        return []
    found = match(connection, terms, Extent(totals.oldest, end, totals.chunks, totals.words))
    scores: dict[int, float] = {}
    chunks: dict[int, int] = {}
    for score, row in choose(found, 2 * SEEDS):
        entry = row >> ENTRY_BITS
        if entry not in scores and len(scores) < SEEDS:
            scores[entry] = score
            chunks[entry] = (row >> LENGTH_BITS) & ((1 << CHUNK_BITS) - 1)
    places = _surroundings(connection, scores, end)
    ranked = rank(scores, places, _cast(connection, totals, terms), limit)
    return _locate(connection, ranked, chunks)


def _surroundings(connection: "Connection", scores: Iterable[int], end: int) -> dict[int, Place]:
    """Read where the entries stand, and their neighbours below `end`: one before, two after."""
    places = _read_places(connection, scores)
    first = {one for _, _, before, after, _ in places.values() for one in (before, after)}
    found = _read_places(connection, (one for one in first if 0 < one < end and one not in places))
    following = {after for _, _, before, after, _ in found.values() if before in places}
    places |= found
    return places | _read_places(connection, (one for one in following if 0 < one < end and one not in places))


def _read_places(connection: "Connection", ids: Iterable[int]) -> dict[int, Place]:
    wanted = list(ids)
    rows = connection.execute(_PLACES.format(_marks(wanted)), wanted).fetchall()
    return {row[0]: row for row in rows}


def _cast(connection: "Connection", totals: Totals, terms: list[str]) -> Cast:
    """Find out whom the query names, and which names are those of persons."""
    floor = max(2, totals.entries // _GUESSED_SHARE)
    guessed = frozenset(row[0] for row in connection.execute(_BUSY, (floor, _GUESSED_SHARE)))
    words = terms[:MAX_PROBED]
    called = connection.execute(_CALLED.format(_marks(words)), [*words, floor]).fetchall()
    alone = len(called) == 1 or (len(called) == 2 and called[0][1] > called[1][1])
    return Cast(called[0][0] if alone else 0, persons=totals.persons > 1, guessed=guessed)


def _locate(connection: "Connection", ranked: list[Ranked], chunks: dict[int, int]) -> list[Hit]:
    """Say where in each text to look; an entry found by its neighbours alone is shown from its beginning."""
    wanted = [one.id for one in ranked]
    cuts: dict[int, bytes] = dict(connection.execute(_CUTS.format(_marks(wanted)), wanted).fetchall())
    hits: list[Hit] = []
    for one in ranked:
        at = 8 * chunks.get(one.id, 0)
        ends = cuts[one.id][at : at + 8]
        start, stop = int.from_bytes(ends[:4], "little"), int.from_bytes(ends[4:], "little")
        hits.append(Hit(one.id, start, stop, one.score, one.parts))
    return hits


def _marks(values: list[Any]) -> str:
    """Return question marks for values, filled up with the last one so that few statements have to be prepared."""
    values += values[-1:] * (-len(values) % 64)
    return ",".join("?" * len(values))
