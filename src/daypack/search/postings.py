"""Which chunks hold which terms, read within a budget: the cost of a search does not grow with the index.

A posting is one number, so nothing else has to be read to score it: entry · 2^12 + chunk · 2^4 + class of length.
Terms are read whole, the rarest first, as far as the budget goes. What more common ones add is looked for in the
entries that are found so: those postings SQLite picks out itself, which is cheaper than to hand all of them over. Where
even the rarest are too common, the newest postings are read, and those where terms meet.
"""

from collections.abc import Collection, Iterable
from math import inf, log, log2
from typing import TYPE_CHECKING

from msgspec.json import Decoder

from daypack.text.english import irregular_forms

if TYPE_CHECKING:
    from sqlite3 import Connection

POSTINGS = 3_000  # read by one search, over all terms
VISITS = 2  # for each of them so many are passed by: counted, or looked at and left
SAMPLE = 64  # postings that are read to estimate or to compare
MEETINGS = 4_000  # visited where all terms are common, to see which of them meet farther back
MEETING_TERMS = 4  # for which that is done
COMMONEST = 8  # not for a term in more than every eighth chunk: it says too little
MAX_TERMS = 24  # that score; the rarest are taken
MAX_TRIED = 64  # terms of a query that are looked up: those at its ends

CHUNK_BITS, LENGTH_BITS = 8, 4
ENTRY_BITS = CHUNK_BITS + LENGTH_BITS
LENGTHS = 1 << LENGTH_BITS
MAX_ID = 1 << 50

# Handed over as one text: a row of its own for each posting would cost as much as all the rest of a search.
_FIRST = """SELECT json_group_array(rowid) FROM
    (SELECT rowid FROM postings WHERE postings MATCH ? AND rowid < ? ORDER BY rowid LIMIT ?)"""
_NEWEST = """SELECT json_group_array(rowid) FROM
    (SELECT rowid FROM postings WHERE postings MATCH ? AND rowid > ? AND rowid < ? ORDER BY rowid DESC LIMIT ?)"""
_WITHIN = """SELECT json_group_array(rowid) FROM postings WHERE postings MATCH ? AND rowid >= ? AND rowid < ?
    AND (rowid >> 12) IN (SELECT value FROM json_each(?))"""
_COUNT = "SELECT count(*) FROM (SELECT 1 FROM postings WHERE postings MATCH ? AND rowid < ? LIMIT ?)"
_NUMBERS = Decoder(list[int])


def posting(entry: int, chunk: int, words: int) -> int:
    """Return the number under which a chunk is indexed."""
    length = min(LENGTHS - 1, int(2 * log2(max(1, words))))
    return (entry << ENTRY_BITS) | (chunk << LENGTH_BITS) | length


class Extent:
    """What is searched: entries from `oldest` up to, not including, `end`; chunks and words of the whole index."""

    def __init__(self, oldest: int, end: int, chunks: int, words: int, *, postings: int | None = None) -> None:
        self.oldest = oldest << ENTRY_BITS
        self.newest = end << ENTRY_BITS
        self.chunks = chunks
        self.mean_words = words / chunks
        self.postings = POSTINGS if postings is None else postings
        self.visits = VISITS * self.postings

    def rarity(self, count: int) -> float:
        """Return what a term is worth: the fewer chunks hold it, the more."""
        count = min(count, self.chunks)
        return log(1 + (self.chunks - count + 0.5) / (count + 0.5))


class Term:
    """The postings of one term, in any of its forms: all, or the newest and some more."""

    def __init__(self, term: str, forms: Iterable[str], connection: "Connection", extent: Extent) -> None:
        self.term = term
        self.query = " OR ".join(f'"{form}"' for form in forms)
        self.rows = _read(connection, self.query, extent, SAMPLE)
        self.whole = len(self.rows) < SAMPLE
        self.count = len(self.rows)
        self.reach = self.rows[-1] if self.rows else 0
        if not self.whole:
            # If it is spread evenly; good enough to tell rare from common.
            self.count = SAMPLE * (extent.newest - extent.oldest) // max(1, extent.newest - self.reach)


def read_terms(connection: "Connection", terms: list[str], extent: Extent) -> tuple[list[Term], int]:
    """Return the terms that occur, the rarest first, with their postings, and how many occur nowhere."""
    if len(terms) > MAX_TRIED:
        terms = terms[: MAX_TRIED // 2] + terms[-MAX_TRIED // 2 :]
    found: list[Term] = []
    met: set[str] = set()
    absent = 0
    for term in terms:
        forms = irregular_forms(term)
        if met.isdisjoint(forms):
            met.update(forms)
            one = Term(term, forms, connection, extent)
            absent += not one.rows
            if one.rows and not any(_same_stem(one, other) for other in found):
                found.append(one)
    found.sort(key=lambda one: one.count)
    del found[MAX_TERMS:]
    _read_rarest(connection, found, extent)
    return sorted(found, key=lambda one: one.count), absent


def read_within(
    connection: "Connection", terms: Iterable[Term], ids: Collection[int], visits: float = inf
) -> list[list[int]]:
    """Return what was left unread of each term in these entries; after so many visits, common ones are left out."""
    wanted = f"[{','.join(map(str, ids))}]"
    low, high = min(ids, default=0) << ENTRY_BITS, (max(ids, default=0) + 1) << ENTRY_BITS
    read: list[list[int]] = []
    for one in terms:
        visits -= 0 if one.whole else one.count
        if one.whole or visits < 0:
            read.append([])
        else:
            values = (one.query, low, min(high, one.reach), wanted)
            read.append(_NUMBERS.decode(connection.execute(_WITHIN, values).fetchone()[0]))
    return read


def _same_stem(one: Term, other: Term) -> bool:
    """Whether two terms are one to the index: `paint` and `painting`. It does the stemming, so its answers tell."""
    return one.term[:3] == other.term[:3] and one.rows == other.rows


def _read(connection: "Connection", query: str, extent: Extent, limit: int, back: int = 0) -> list[int]:
    """Return the newest postings, from after `back` on, the newest first."""
    return _NUMBERS.decode(connection.execute(_NEWEST, (query, back, extent.newest, limit)).fetchone()[0])


def _read_rarest(connection: "Connection", found: list[Term], extent: Extent) -> None:
    """Read terms whole as far as the budget goes, and count the others."""
    left = extent.postings
    for number, one in enumerate(found):
        if not one.whole and one.count <= left:
            rows = _NUMBERS.decode(connection.execute(_FIRST, (one.query, extent.newest, left + 1)).fetchone()[0])
            one.whole = len(rows) <= left
            if one.whole:
                one.rows, one.count = rows, len(rows)
        if one.whole:
            left -= one.count
            continue
        limit = extent.visits // len(found)
        count = connection.execute(_COUNT, (one.query, extent.newest, limit)).fetchone()[0]
        one.count = count if count < limit else max(limit, one.count)
        if not number:  # all terms are common
            one.rows = _read(connection, one.query, extent, left)
            one.reach = one.rows[-1]
            _let_meet(connection, found, extent)


def _let_meet(connection: "Connection", common: list[Term], extent: Extent) -> None:
    """Look where the least common of the common terms meets others, farther back than it was read."""
    leader, *others = common
    others = [one for one in others if one.count * COMMONEST < extent.chunks][:MEETING_TERMS]
    if others:
        visits = MEETINGS // len(others)
        back = max(0, leader.reach - (extent.newest - leader.reach) * visits // len(leader.rows))
        rows = set(leader.rows)
        for one in others:
            met = _read(connection, f"({leader.query}) AND ({one.query})", extent, POSTINGS, back)
            one.rows = met
            rows.update(met)
        leader.rows = list(rows)
