"""Reads which chunks contain which terms, within a budget: the cost of a search does not grow with the index.

A posting is one number, which is all that scoring needs: entry · 2^12 + chunk · 2^4 + length class. Terms are read
completely, rarest first, until the budget is used up. The remaining, more common terms are only looked up in the
entries found so far: the tables filter those postings, which is cheaper than returning all of them. If even the rarest
term is too common, its newest postings are read, and those where terms co-occur.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from math import inf, log, log2
from typing import Protocol, TypeVar

from daypack.search.tables import IndexTables, TermQuery
from daypack.text.english import irregular_forms

POSTINGS = 3_000  # read by one search, over all terms
VISITS = 2  # per posting read, so many may be counted or skipped
SAMPLE = 64  # postings read to estimate the frequency of a term
CO_OCCURRENCES = 4_000  # postings visited if all terms are common, to find older co-occurrences
CO_OCCURRING_TERMS = 4  # terms for which that is done
COMMONEST = 8  # except terms in more than every eighth chunk, which discriminate too little
MAX_TERMS = 24  # terms that are scored: the rarest
MAX_TRIED = 64  # terms of a query that are looked up: those at its beginning and end

CHUNK_BITS, LENGTH_BITS = 8, 4
ENTRY_BITS = CHUNK_BITS + LENGTH_BITS
LENGTHS = 1 << LENGTH_BITS
MAX_ID = 1 << 50


def posting(entry: int, chunk: int, words: int) -> int:
    """Return the posting of a chunk."""
    length = min(LENGTHS - 1, int(2 * log2(max(1, words))))
    return (entry << ENTRY_BITS) | (chunk << LENGTH_BITS) | length


class Extent:
    """The range that is searched, from `oldest` to before `end`, with the chunks and words of the whole index."""

    def __init__(self, oldest: int, end: int, chunks: int, words: int, *, postings: int | None = None) -> None:
        self.end = end
        self.oldest = oldest << ENTRY_BITS
        self.newest = end << ENTRY_BITS
        self.chunks = chunks
        self.mean_words = words / chunks
        self.postings = POSTINGS if postings is None else postings
        self.visits = VISITS * self.postings

    def rarity(self, count: int) -> float:
        """Return the weight of a term: the fewer chunks contain it, the higher."""
        count = min(count, self.chunks)
        return log(1 + (self.chunks - count + 0.5) / (count + 0.5))


class _Counted(Protocol):
    @property
    def term(self) -> str: ...
    @property
    def count(self) -> int: ...


Found = TypeVar("Found", bound=_Counted)


Asked = Sequence[tuple[str, TermQuery]]  # terms, each with its query


class Term:
    """The postings of a term in any of its forms: all of them if `whole`, else the newest and some more."""

    def __init__(self, term: str, query: TermQuery, rows: list[int], extent: Extent) -> None:
        """`rows`: the newest postings, at most a sample."""
        self.term = term
        self.query = query
        self.rows = rows
        self.whole = len(rows) < SAMPLE
        self.count = len(rows)
        self.reach = rows[-1]
        if not self.whole:
            # Assumes an even distribution; enough to separate rare from common terms.
            self.count = SAMPLE * (extent.newest - extent.oldest) // max(1, extent.newest - self.reach)


def read_terms(tables: IndexTables, terms: list[str], extent: Extent) -> tuple[list[Term], list[str]]:
    """Return the terms that occur, rarest first, with their postings, and those that do not occur."""

    def read(asked: Asked) -> list[Term | None]:
        queries = [query for _, query in asked]
        read = tables.newest_postings(queries, after=0, before=extent.newest, limit=SAMPLE)
        return [Term(*pair, rows, extent) if rows else None for pair, rows in zip(asked, read, strict=True)]

    found, absent = find_terms(terms, read, lambda term, other: term.rows == other.rows)
    _read_rarest(tables, found, extent)
    return sorted(found, key=lambda candidate: candidate.count), absent


def find_terms(
    terms: list[str], read: Callable[[Asked], Iterable[Found | None]], agree: Callable[[Found, Found], bool]
) -> tuple[list[Found], list[str]]:
    """Return the terms that occur, rarest first, and those that do not occur.

    Terms with the same stem, as `paint` and `painting`, are one. The tables stem, so postings that `agree` show it.
    """
    if len(terms) > MAX_TRIED:
        terms = terms[: MAX_TRIED // 2] + terms[-MAX_TRIED // 2 :]
    asked: list[tuple[str, TermQuery]] = []
    known_forms: set[str] = set()
    for term in terms:
        forms = irregular_forms(term)
        if known_forms.isdisjoint(forms):
            known_forms.update(forms)
            asked.append((term, TermQuery(forms)))
    found: list[Found] = []
    absent: list[str] = []
    for (term, _), candidate in zip(asked, read(asked), strict=True):
        if candidate is None:
            absent.append(term)
        elif not any(term[:3] == other.term[:3] and agree(candidate, other) for other in found):
            found.append(candidate)
    found.sort(key=lambda candidate: candidate.count)
    return found[:MAX_TERMS], absent


def read_within(
    tables: IndexTables, terms: Sequence[Term], ids: Collection[int], visits: float = inf
) -> list[list[int]]:
    """Return the unread postings of each term in these entries; after so many visits, common terms are skipped."""
    chosen: list[int] = []
    for number, candidate in enumerate(terms):
        visits -= 0 if candidate.whole else candidate.count
        if not candidate.whole and visits >= 0:
            chosen.append(number)
    read: list[list[int]] = [[] for _ in terms]
    if chosen:
        wanted = [(terms[number].query, terms[number].reach) for number in chosen]
        for number, rows in zip(chosen, tables.postings_within(wanted, ids), strict=True):
            read[number] = rows
    return read


def _read_rarest(tables: IndexTables, found: list[Term], extent: Extent) -> None:
    """Read terms completely until the budget is used up, and count the others."""
    left = extent.postings
    common: list[Term] = []
    for number, candidate in enumerate(found):
        if not candidate.whole and candidate.count <= left:
            rows = tables.first_postings(candidate.query, before=extent.newest, limit=left + 1)
            candidate.whole = len(rows) <= left
            if candidate.whole:
                candidate.rows, candidate.count = rows, len(rows)
        if candidate.whole:
            left -= candidate.count
            continue
        common.append(candidate)
        if not number:  # all terms are common
            (candidate.rows,) = tables.newest_postings([candidate.query], after=0, before=extent.newest, limit=left)
            candidate.reach = candidate.rows[-1]
            _read_co_occurrences(tables, found, extent)
    if common:
        limit = extent.visits // len(found)
        counts = tables.count_postings([term.query for term in common], before=extent.newest, limit=limit)
        for candidate, count in zip(common, counts, strict=True):
            candidate.count = count if count < limit else max(limit, candidate.count)


def _read_co_occurrences(tables: IndexTables, common: list[Term], extent: Extent) -> None:
    """Find older postings where the least common of the common terms co-occurs with others."""
    leader, *others = common
    others = [candidate for candidate in others if candidate.count * COMMONEST < extent.chunks][:CO_OCCURRING_TERMS]
    if others:
        visits = CO_OCCURRENCES // len(others)
        back = max(0, leader.reach - (extent.newest - leader.reach) * visits // len(leader.rows))
        queries = [TermQuery(leader.query.forms, candidate.query.forms) for candidate in others]
        read = tables.newest_postings(queries, after=back, before=extent.newest, limit=POSTINGS)
        rows = set(leader.rows)
        for candidate, shared in zip(others, read, strict=True):
            candidate.rows = shared
            rows.update(shared)
        leader.rows = list(rows)
