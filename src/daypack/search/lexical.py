"""Search by words over entries that are added in order: no model, one file, a cost that does not grow with it.

An index is one SQLite file, derived from texts that are kept elsewhere: it holds what a search needs, not the texts.
It finds stems in English, words in other languages and pairs of characters where words are not set apart.
"""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from daypack.errors import BadInput
from daypack.search.fuse import Cast, Ranked, rank
from daypack.search.intake import SCHEMA, Intake, Totals
from daypack.search.matches import Matches
from daypack.search.postings import MAX_TRIED, POSTINGS, Extent, read_terms, read_within
from daypack.search.spread import Held, Place, Rated, spread
from daypack.search.table import Table
from daypack.search.words import query_terms

if TYPE_CHECKING:
    from sqlite3 import Connection

VERSION = 2
SEEDS = 160  # best matches whose surroundings are looked at
NARROW = 10_000  # allowed entries, up to which none is missed
_GUESSED_SHARE = 8  # a name read off texts counts when it stands before one in so many

_CUTS = "SELECT id, cuts FROM entries WHERE id IN ({})"
_BUSY = "SELECT number FROM authors WHERE entries >= ? LIMIT ?"
_CALLED = """SELECT author, count(*) FROM names JOIN authors ON number = author
    WHERE word IN ({}) AND (given OR entries >= ?) GROUP BY author ORDER BY 2 DESC LIMIT 2"""
_NAMED = """SELECT DISTINCT word FROM names JOIN authors ON number = author
    WHERE word IN ({}) AND (given OR entries >= ?)"""
_PLACES = "SELECT id, stretch, before, after, speaker FROM entries WHERE id IN ({})"


class Doc(Struct, frozen=True):
    """One entry to be found: a message, or an entry of a memory. Entries of one group follow each other.

    Without a group, a stretch of talk ends after some entries or at a gap in time; a group is one as a whole.
    """

    id: int
    text: str
    author: str = ""
    role: str = ""
    when: str = ""
    group: str = ""
    summary: str = ""  # other words for the same: what is found by them is the entry


class Hit(Struct, frozen=True):
    """An entry that was found, and where in its text; `parts` adds up to `score`."""

    id: int
    start: int
    stop: int
    score: float
    parts: dict[str, float]


class Survey(NamedTuple):
    """What words find, as values: what each entry is worth, where the entries stand, who speaks, the best chunks.

    `worth` is that of the whole query, also of words that nobody said.
    """

    rated: dict[int, Rated] = {}  # noqa: RUF012 — never written to
    places: dict[int, Place] = {}  # noqa: RUF012
    cast: Cast = Cast()
    chunks: dict[int, int] = {}  # noqa: RUF012
    worth: float = 1.0


class _Sought(NamedTuple):
    """What one search looks for, and how much it may read."""

    terms: list[str]
    postings: int
    below: int | None
    allowed: frozenset[int] | None
    also: Collection[int] = ()


class Lexical:
    """An index at `path`; threads and processes may share it. What it holds goes when the file cannot be read.

    A search reads at most so many `postings`: the more, the less is missed among a hundred thousand entries.
    """

    def __init__(self, path: str, *, postings: int = POSTINGS) -> None:
        self._table = Table(path, SCHEMA, VERSION)
        self._postings = postings
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

    def search(
        self, query: str, *, limit: int, below: int | None = None, allowed: Collection[int] | None = None
    ) -> list[Hit]:
        """Return the best entries for a query in any words, best first, of equal ones the newest first.

        With `below` nothing from there on is looked at; with `allowed` only those entries are returned, and if they are
        few, none that matches is missed, however large the index.
        """
        terms = query_terms(query)
        if not terms or limit < 1:
            return []
        sought = _Sought(terms, self._postings, below, None if allowed is None else frozenset(allowed))

        def work(connection: "Connection") -> list[Hit]:
            found = _survey(connection, sought)
            ranked = rank(found.rated, found.places, found.cast, limit, allowed=sought.allowed)
            return _locate(connection, ranked, found.chunks)

        return self._table.run("search", work) or []

    def survey(self, query: str, *, also: Collection[int] = (), allowed: frozenset[int] | None = None) -> Survey:
        """Return what words find, to be ranked together with entries that were found otherwise."""
        sought = _Sought(query_terms(query), self._postings, None, allowed, also)
        return self._table.run("search", lambda connection: _survey(connection, sought)) or Survey()

    def names_in(self, query: str) -> list[str]:
        """Return the words of a query that name somebody who takes part."""
        words = query_terms(query)[:MAX_TRIED]

        def work(connection: "Connection") -> list[str]:
            floor = _floor(Totals(connection))
            return [row[0] for row in connection.execute(_NAMED.format(_marks(words)), [*words, floor])]

        return (self._table.run("search", work) or []) if words else []

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        self._table.close()


def _survey(connection: "Connection", sought: _Sought) -> Survey:
    totals = Totals(connection)
    end = totals.newest + 1 if sought.below is None else min(sought.below, totals.newest + 1)
    if not totals.chunks or end <= totals.oldest:
        return Survey()
    extent = Extent(totals.oldest, end, totals.chunks, totals.words, postings=sought.postings)
    terms, absent = read_terms(connection, sought.terms, extent)
    matches = Matches(terms, extent)
    allowed = sought.allowed
    if allowed is not None and len(allowed) <= NARROW:
        matches.add(read_within(connection, terms, allowed))
    ids = {*matches.choose(SEEDS), *sought.also}
    if allowed is not None:
        ids.update(matches.choose(SEEDS, allowed))
    places = _surroundings(connection, ids, end)
    wanted = {one for _, _, before, after, _ in places.values() for one in (before, after)}.union(places)
    if not all(term.whole for term in terms):
        matches.add(read_within(connection, terms, wanted, extent.visits))
    chunks = matches.find(wanted)
    held = {one: Held(chunk.mask, matches.factor(chunk)) for one, chunk in chunks.items()}
    numbers = {one: chunk.number for one, chunk in chunks.items()}
    cast = _cast(connection, totals, sought.terms)
    worth = matches.all_worth + absent * extent.rarity(0)
    return Survey(spread(held, places, matches.worth), places, cast, numbers, worth)


def _surroundings(connection: "Connection", ids: Iterable[int], end: int) -> dict[int, Place]:
    """Read where entries stand, and their neighbours below `end`: one before, two after."""
    places = _read_places(connection, (one for one in ids if 0 < one < end))
    first = {one for _, _, before, after, _ in places.values() for one in (before, after)}
    found = _read_places(connection, (one for one in first if 0 < one < end and one not in places))
    following = {after for _, _, before, after, _ in found.values() if before in places}
    places |= found
    return places | _read_places(connection, (one for one in following if 0 < one < end and one not in places))


def _read_places(connection: "Connection", ids: Iterable[int]) -> dict[int, Place]:
    wanted = list(ids)
    rows = connection.execute(_PLACES.format(_marks(wanted)), wanted).fetchall()
    return {row[0]: row for row in rows}


def _floor(totals: Totals) -> int:
    """Return how many entries must begin with a name before it is taken for that of a speaker."""
    return max(2, totals.entries // _GUESSED_SHARE)


def _cast(connection: "Connection", totals: Totals, terms: list[str]) -> Cast:
    """Find out whom the query names, and which names are those of persons."""
    floor = _floor(totals)
    guessed = frozenset(row[0] for row in connection.execute(_BUSY, (floor, _GUESSED_SHARE)))
    words = terms[:MAX_TRIED]
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
