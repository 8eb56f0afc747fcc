"""Word search over entries that are added in order: no model, a bounded cost per search.

The index is derived from texts that are stored elsewhere, and does not contain them. It matches stems in English, words
in other languages and pairs of characters in scripts without spaces. It is one SQLite file, or what else has the tables
of `IndexTables`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple

from msgspec import Struct

from daypack.errors import BadInput
from daypack.search.floor import Query, QueryWords, read_query
from daypack.search.fts_tables import FtsFile
from daypack.search.fuse import Participants, Ranked, rank
from daypack.search.indexing import Doc, IndexWriter
from daypack.search.matches import Chunk, Matches, Scores
from daypack.search.neighbours import EntryTerms, Place, Rated, rate_entries
from daypack.search.postings import MAX_TRIED, POSTINGS, Extent, read_terms, read_within
from daypack.search.resident import Resident, ResidentMatches
from daypack.search.tables import IndexPlace, IndexTables, Totals
from daypack.search.words import query_terms
from daypack.types.deadline import Deadline

SEEDS = 160  # best matches whose neighbours are examined
NARROW = 10_000  # allowed entries up to which no match is missed
_GUESSED_SHARE = 8  # a name that one in so many entries begins with is a speaker's


class Hit(Struct, frozen=True):
    """A matching entry and the range of its text that matches; `parts` adds up to `score`.

    A relevance of 1 is the floor: `floor.relevant` drops the hits that are not about the query. `information` is the
    amount of it that the entry's own words have in common with the query.
    """

    id: int
    start: int
    stop: int
    score: float
    parts: dict[str, float]
    relevance: float = 0.0
    information: float = 0.0


class Coverage(NamedTuple):
    """What is in an index: ids up to `newest`, except those of the gap, from its start to before its stop."""

    newest: int = 0
    gap: tuple[int, int] | None = None


class WordMatches(NamedTuple):
    """The entries that match by words: scores, positions, participants and best chunks.

    `worth` is the weight of the whole query, including words that no entry contains.
    """

    rated: dict[int, Rated] = {}  # noqa: RUF012 — never written to
    places: dict[int, Place] = {}  # noqa: RUF012
    participants: Participants = Participants()
    chunks: dict[int, int] = {}  # noqa: RUF012
    worth: float = 1.0
    entries: int = 0  # of the whole index
    words: QueryWords | None = None
    masks: dict[int, int] = {}  # noqa: RUF012 — the terms in the best chunk of each entry

    def relevance(self, entry: int) -> float:
        """Return the relevance of an entry by its own words and those of its neighbours; 1 is the floor."""
        if self.words is None:
            return 0.0
        _, _, before, after, _ = self.places[entry]
        masks = self.masks.get
        return self.words.rate(masks(entry, 0), masks(before, 0) | masks(after, 0))

    def information(self, entry: int) -> float:
        """Return how much of the query's information the words of an entry have."""
        return self.words.information(self.masks.get(entry, 0)) if self.words else 0.0


class _Request(NamedTuple):
    """The terms of a search and how much it may read."""

    query: Query
    postings: int
    below: int | None
    allowed: frozenset[int] | None
    also: Collection[int] = ()
    seeds: int = SEEDS
    resident: Resident | None = None


class _Found(NamedTuple):
    """The best chunk of each matching entry, the positions of entries, and the terms: counts, and absent ones."""

    chunks: dict[int, Chunk]
    places: dict[int, Place]
    scores: Scores
    counts: list[tuple[str, int]]
    absent: list[str]


class Lexical:
    """An index at a path or at another place; threads and processes may share it.

    An unreadable file is replaced by an empty one.

    A search reads at most so many `postings`: more of them miss less among a hundred thousand entries. An index with
    `block`s of so many ids can be built newest part first: see `add` and `fill`.
    """

    def __init__(self, place: str | IndexPlace, *, postings: int = POSTINGS, block: int = 0) -> None:
        self._place = FtsFile(place) if isinstance(place, str) else place
        self._postings = postings
        self._block = block
        self.path = self._place.path
        self._last_newest = 0
        self._resident = Resident()

    @property
    def newest(self) -> int:
        """The highest id in the index; 0 if it is empty, for example because it was replaced."""
        return self.coverage().newest

    @property
    def identity(self) -> int:
        """A number of the index that was used last: it changes when the index is replaced or opened again."""
        return self._place.times_opened

    def coverage(self) -> Coverage:
        """Return which ids are in the index."""

        def work(tables: IndexTables) -> Coverage:
            gap = tables.gap()
            return Coverage(tables.totals().newest, (gap.start, gap.stop) if gap else None)

        coverage = self._place.run("open index", work) or Coverage()
        self._last_newest = coverage.newest
        return coverage

    def waiting(self, deadline: Deadline) -> AbstractContextManager[None]:
        """Wait until the deadline only for another process that writes to the index; then `add` and `fill` fail."""
        return self._place.waiting("index", deadline)

    def add(self, docs: Iterable[Doc], *, start: int = 0, through: int = 0) -> int:
        """Add entries, ids ascending, all or none; return the newest id in the index. Known ids are skipped.

        The entries must follow the `newest` that was last read. If the index was replaced since then, nothing is added,
        because older entries would be missing: the caller continues from the returned id.

        `start`, the first id of a block: what is older and not indexed yet is left as a gap, unless there is one: then
        nothing is added. `through`: this id is reached, even if the last entries do not exist.
        """

        def work(tables: IndexTables) -> int:
            writer = IndexWriter(tables, self._block)
            skipping = start > writer.totals.newest + 1
            if writer.totals.newest < self._last_newest or (skipping and writer.gap):
                return writer.totals.newest
            if skipping:
                writer.skip_to(start)
            for doc in _ascending(docs):
                writer.add(doc)
            writer.totals.newest = max(writer.totals.newest, through)
            return writer.finish()

        self._last_newest = self._place.run("index", work, writing=True) or 0
        return self._last_newest

    def fill(self, docs: Iterable[Doc], start: int, stop: int) -> bool:
        """Add the entries from `start` to before `stop`, where the gap ends; `start` begins a block, or the gap.

        Return False if the gap does not end there (any more): then nothing is added.
        """

        def work(tables: IndexTables) -> bool:
            writer = IndexWriter(tables, self._block)
            if writer.gap is None or writer.gap.stop != stop or writer.gap.start > start:
                return False
            writer.fill(start, _ascending(docs))
            writer.finish()
            return True

        return bool(self._place.run("index", work, writing=True))

    def search(
        self, query: str, *, limit: int, below: int | None = None, allowed: Collection[int] | None = None
    ) -> list[Hit]:
        """Return the best entries for a query, best first, then newest first.

        `below` limits the search to smaller ids; `allowed` to those entries: if they are few, no match is missed,
        however large the index.
        """
        asked = read_query(query)
        if not asked.weights or limit < 1:
            return []
        request = _Request(asked, self._postings, below, None if allowed is None else frozenset(allowed))

        def work(tables: IndexTables) -> list[Hit]:
            found = _match(tables, request)
            ranked = rank(found.rated, found.places, found.participants, limit, allowed=request.allowed)
            return _locate(tables, ranked, found)

        return self._place.run("search", work) or []

    def match(
        self, query: str, *, also: Collection[int] = (), allowed: frozenset[int] | None = None, seeds: int = SEEDS
    ) -> WordMatches:
        """Return the best `seeds` matches and their neighbours, without ranking them, and the entries in `also`."""
        request = _Request(read_query(query), self._postings, None, allowed, also, seeds, self._resident)
        return self._place.run("search", lambda tables: _match(tables, request)) or WordMatches()

    def names_in(self, query: str) -> list[str]:
        """Return the words of a query that are names of participants."""
        words = query_terms(query)[:MAX_TRIED]

        def work(tables: IndexTables) -> list[str]:
            return sorted(tables.names_among(words, floor=_floor(tables.totals())))

        return (self._place.run("search", work) or []) if words else []

    def close(self) -> None:
        """Close the index; the next call opens it again."""
        self._place.close()


def _ascending(docs: Iterable[Doc]) -> Iterator[Doc]:
    last = 0
    for doc in docs:
        if doc.id <= last:
            raise BadInput("ids must ascend", operation="index", place=str(doc.id), hint="sort entries by id")
        last = doc.id
        yield doc


def _match(tables: IndexTables, request: _Request) -> WordMatches:
    totals = tables.totals()
    end = totals.newest + 1 if request.below is None else min(request.below, totals.newest + 1)
    if not totals.chunks or end <= totals.oldest:
        return WordMatches()
    extent = Extent(totals.oldest, end, totals.chunks, totals.words, postings=request.postings)
    found = _find_in_memory(tables, request, totals, extent) or _find_in_tables(tables, request, extent)
    chunks, scores = found.chunks, found.scores
    shared: dict[tuple[int, float], EntryTerms] = {}  # one object for equal values: they are compared often
    entry_terms: dict[int, EntryTerms] = {}
    for entry, chunk in chunks.items():
        key = chunk.mask, scores.factor(chunk)
        entry_terms[entry] = shared.get(key) or shared.setdefault(key, EntryTerms(*key))
    return WordMatches(
        rate_entries(entry_terms, found.places, scores.worth),
        found.places,
        _find_participants(tables, totals, list(request.query.weights)),
        {entry: chunk.number for entry, chunk in chunks.items()},
        scores.all_worth + len(found.absent) * extent.rarity(0),
        totals.entries,
        QueryWords(request.query, found.counts, found.absent, chunks=totals.chunks, entries=totals.entries),
        {entry: chunk.mask for entry, chunk in chunks.items()},
    )


def _find_in_tables(tables: IndexTables, request: _Request, extent: Extent) -> _Found:
    """Find the best chunks by reading postings."""
    terms, absent = read_terms(tables, list(request.query.weights), extent)
    matches = Matches(terms, extent)
    allowed = request.allowed
    if allowed is not None and len(allowed) <= NARROW:
        matches.add(read_within(tables, terms, allowed))
    places = _surroundings(tables.places, _seeds(matches, request), request.also, extent)
    wanted = _with_neighbours(places)
    if not all(term.whole for term in terms):
        matches.add(read_within(tables, terms, wanted, extent.visits))
    return _Found(matches.find(wanted), places, matches.scores, [(term.term, term.count) for term in terms], absent)


def _find_in_memory(tables: IndexTables, request: _Request, totals: Totals, extent: Extent) -> _Found | None:
    """Find the best chunks in the resident index; None if there is none."""
    resident = request.resident
    if resident is None or not resident.follow(tables, totals):
        return None
    terms, absent = resident.read_terms(tables, list(request.query.weights), extent)
    matches = ResidentMatches(resident, terms, extent)
    places = _surroundings(resident.read_places, _seeds(matches, request), request.also, extent)
    chunks = matches.find(_with_neighbours(places))
    return _Found(chunks, places, matches.scores, [(term.term, term.count) for term in terms], absent)


def _seeds(matches: Matches | ResidentMatches, request: _Request) -> set[int]:
    """Return the entries that match best."""
    ids = set(matches.choose(request.seeds))
    if request.allowed is not None:
        ids.update(matches.choose(request.seeds, request.allowed))
    return ids


def _with_neighbours(places: dict[int, Place]) -> set[int]:
    return {entry for _, _, before, after, _ in places.values() for entry in (before, after)}.union(places)


def _surroundings(
    read: Callable[[Iterable[int]], dict[int, Place]], ids: Iterable[int], also: Iterable[int], extent: Extent
) -> dict[int, Place]:
    """Return the positions of entries and of their neighbours in the extent: one before, two after.

    Those in `also` come without neighbours: they match by their meaning, which says nothing about what is beside them.
    """
    end = extent.end
    places = read(entry for entry in ids if 0 < entry < end)
    first = {entry for _, _, before, after, _ in places.values() for entry in (before, after)}
    found = read(entry for entry in first if 0 < entry < end and entry not in places)
    following = {after for _, _, before, after, _ in found.values() if before in places}.union(also)
    places |= found
    return places | read(entry for entry in following if 0 < entry < end and entry not in places)


def _floor(totals: Totals) -> int:
    """Return how many entries must begin with a name for it to count as a speaker's."""
    return max(2, totals.entries // _GUESSED_SHARE)


def _find_participants(tables: IndexTables, totals: Totals, terms: list[str]) -> Participants:
    """Find the author that the query names, and which authors are persons."""
    found = tables.participation(terms[:MAX_TRIED], floor=_floor(totals), limit=_GUESSED_SHARE)
    called = found.called
    alone = len(called) == 1 or (len(called) == 2 and called[0][1] > called[1][1])
    return Participants(called[0][0] if alone else 0, persons=totals.persons > 1, guessed=frozenset(found.busy))


def _locate(tables: IndexTables, ranked: list[Ranked], found: WordMatches) -> list[Hit]:
    """Return the matching range of each entry; the beginning, if only its neighbours match."""
    cuts = tables.cuts([entry.id for entry in ranked])
    hits: list[Hit] = []
    for entry in ranked:
        at = 8 * found.chunks.get(entry.id, 0)
        ends = cuts[entry.id][at : at + 8]
        start, stop = int.from_bytes(ends[:4], "little"), int.from_bytes(ends[4:], "little")
        about = found.relevance(entry.id), found.information(entry.id)
        hits.append(Hit(entry.id, start, stop, entry.score, entry.parts, *about))
    return hits
