"""Reads which chunks contain which terms, within a budget: the cost of a search does not grow with the index.

A posting is one number, which is all that scoring needs: entry · 2^12 + chunk · 2^4 + length class. Terms are read
completely, rarest first, until the budget is used up. The remaining, more common terms are only looked up in the
entries found so far: SQLite filters those postings itself, which is cheaper than returning all of them. If even the
rarest term is too common, its newest postings are read, and those where terms co-occur.
"""

from collections.abc import Callable, Collection, Iterable
from math import inf, log, log2
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec.json import Decoder

from daypack.text.english import irregular_forms

if TYPE_CHECKING:
    from sqlite3 import Connection

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


class Term:
    """The postings of a term in any of its forms: all of them if `whole`, else the newest and some more."""

    def __init__(self, term: str, query: str, connection: "Connection", extent: Extent) -> None:
        self.term = term
        self.query = query
        self.rows = _read(connection, self.query, extent, SAMPLE)
        self.whole = len(self.rows) < SAMPLE
        self.count = len(self.rows)
        self.reach = self.rows[-1] if self.rows else 0
        if not self.whole:
            # Assumes an even distribution; enough to separate rare from common terms.
            self.count = SAMPLE * (extent.newest - extent.oldest) // max(1, extent.newest - self.reach)


def read_terms(connection: "Connection", terms: list[str], extent: Extent) -> tuple[list[Term], list[str]]:
    """Return the terms that occur, rarest first, with their postings, and those that do not occur."""

    def read(term: str, query: str) -> Term | None:
        candidate = Term(term, query, connection, extent)
        return candidate if candidate.rows else None

    found, absent = find_terms(terms, read, lambda term, other: term.rows == other.rows)
    _read_rarest(connection, found, extent)
    return sorted(found, key=lambda candidate: candidate.count), absent


def find_terms(
    terms: list[str], read: Callable[[str, str], Found | None], agree: Callable[[Found, Found], bool]
) -> tuple[list[Found], list[str]]:
    """Return the terms that occur, rarest first, and those that do not occur; `read` takes a term and its query.

    Terms with the same stem, as `paint` and `painting`, are one. SQLite stems, so postings that `agree` show it.
    """
    if len(terms) > MAX_TRIED:
        terms = terms[: MAX_TRIED // 2] + terms[-MAX_TRIED // 2 :]
    found: list[Found] = []
    known_forms: set[str] = set()
    absent: list[str] = []
    for term in terms:
        forms = irregular_forms(term)
        if known_forms.isdisjoint(forms):
            known_forms.update(forms)
            candidate = read(term, " OR ".join(f'"{form}"' for form in forms))
            if candidate is None:
                absent.append(term)
            elif not any(term[:3] == other.term[:3] and agree(candidate, other) for other in found):
                found.append(candidate)
    found.sort(key=lambda candidate: candidate.count)
    return found[:MAX_TERMS], absent


def read_after(connection: "Connection", query: str, row: int, extent: Extent) -> list[int]:
    """Return all postings after a row, oldest first."""
    return _NUMBERS.decode(connection.execute(_AFTER, (query, row, extent.newest)).fetchone()[0])


def read_within(
    connection: "Connection", terms: Iterable[Term], ids: Collection[int], visits: float = inf
) -> list[list[int]]:
    """Return the unread postings of each term in these entries; after so many visits, common terms are skipped."""
    wanted = f"[{','.join(map(str, ids))}]"
    low, high = min(ids, default=0) << ENTRY_BITS, (max(ids, default=0) + 1) << ENTRY_BITS
    read: list[list[int]] = []
    for candidate in terms:
        visits -= 0 if candidate.whole else candidate.count
        if candidate.whole or visits < 0:
            read.append([])
        else:
            values = (candidate.query, low, min(high, candidate.reach), wanted)
            read.append(_NUMBERS.decode(connection.execute(_WITHIN, values).fetchone()[0]))
    return read


def _read(connection: "Connection", query: str, extent: Extent, limit: int, back: int = 0) -> list[int]:
    """Return the newest postings after `back`, newest first."""
    return _NUMBERS.decode(connection.execute(_NEWEST, (query, back, extent.newest, limit)).fetchone()[0])


def _read_rarest(connection: "Connection", found: list[Term], extent: Extent) -> None:
    """Read terms completely until the budget is used up, and count the others."""
    left = extent.postings
    for number, candidate in enumerate(found):
        if not candidate.whole and candidate.count <= left:
            rows = _NUMBERS.decode(connection.execute(_FIRST, (candidate.query, extent.newest, left + 1)).fetchone()[0])
            candidate.whole = len(rows) <= left
            if candidate.whole:
                candidate.rows, candidate.count = rows, len(rows)
        if candidate.whole:
            left -= candidate.count
            continue
        limit = extent.visits // len(found)
        count = connection.execute(_COUNT, (candidate.query, extent.newest, limit)).fetchone()[0]
        candidate.count = count if count < limit else max(limit, candidate.count)
        if not number:  # all terms are common
            candidate.rows = _read(connection, candidate.query, extent, left)
            candidate.reach = candidate.rows[-1]
            _read_co_occurrences(connection, found, extent)


def _read_co_occurrences(connection: "Connection", common: list[Term], extent: Extent) -> None:
    """Find older postings where the least common of the common terms co-occurs with others."""
    leader, *others = common
    others = [candidate for candidate in others if candidate.count * COMMONEST < extent.chunks][:CO_OCCURRING_TERMS]
    if others:
        visits = CO_OCCURRENCES // len(others)
        back = max(0, leader.reach - (extent.newest - leader.reach) * visits // len(leader.rows))
        rows = set(leader.rows)
        for candidate in others:
            shared = _read(connection, f"({leader.query}) AND ({candidate.query})", extent, POSTINGS, back)
            candidate.rows = shared
            rows.update(shared)
        leader.rows = list(rows)
