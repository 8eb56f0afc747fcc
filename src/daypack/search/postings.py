"""Which chunks hold which terms, read within a budget: the cost of a search does not grow with the index.

A posting is one number, so nothing else has to be read to score it: entry · 2^12 + chunk · 2^4 + class of length.
Each term gets an equal share of the budget, newest postings first; what rare terms leave over goes to those it can
make whole. How often a term occurs is then known, or estimated from how far back its share reached. Farther back,
common terms are looked for where they meet rarer ones: SQLite leaps from one to the next without handing them over.
"""

from math import log, log2
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlite3 import Connection

POSTINGS = 3_000  # read by one search, over all terms
TERM_POSTINGS = 750  # of one term, unless a few more make it whole
MEETINGS = 4_000  # visited beyond them, to see which common terms meet others farther back
MEETING_TERMS = 4  # for which that is done
COMMONEST = 8  # not for a term in more than every eighth chunk: it says too little
MAX_TERMS = 24  # that score; the rarest are taken
MAX_PROBED = 64  # terms of a query that are looked up: those at its ends

CHUNK_BITS, LENGTH_BITS = 8, 4
ENTRY_BITS = CHUNK_BITS + LENGTH_BITS
MAX_ID = 1 << 50
_LENGTHS = 1 << LENGTH_BITS
_LENGTH_WEIGHT = 0.45  # BM25 with k1 = 1.2 and b = 0.48, for terms that occur once: repetition adds next to nothing

_NEWEST = "SELECT rowid FROM postings WHERE postings MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT ?"
_MEETINGS = "SELECT rowid FROM postings WHERE postings MATCH ? AND rowid > ? AND rowid < ? ORDER BY rowid DESC LIMIT ?"


def posting(entry: int, chunk: int, words: int) -> int:
    """Return the number under which a chunk is indexed."""
    length = min(_LENGTHS - 1, int(2 * log2(max(1, words))))
    return (entry << ENTRY_BITS) | (chunk << LENGTH_BITS) | length


def _length_weights(mean_words: float) -> list[float]:
    """Return the factor of each class of length: a match in a short chunk is worth more."""
    middle = (2 ** ((length + 0.5) / 2) for length in range(_LENGTHS))
    return [(1 + _LENGTH_WEIGHT) / (1 + _LENGTH_WEIGHT * words / mean_words) for words in middle]


class _Found:
    """The newest postings of one term."""

    def __init__(self, term: str, rows: list[tuple[int]], limit: int) -> None:
        self.term = term
        self.rows = rows
        self.whole = len(rows) < limit
        self.count = self.read = len(rows)
        self.reach = rows[-1][0] if rows else 0

    def estimate(self, oldest: int, newest: int) -> None:
        """Set how many there are in all, should the term be spread evenly over the index."""
        if not self.whole:
            self.count = max(self.read, self.read * (newest - oldest) // max(1, newest - self.reach))


class Extent:
    """What is searched: entries from `oldest` up to, not including, `end`; chunks and words of the whole index."""

    def __init__(self, oldest: int, end: int, chunks: int, words: int) -> None:
        self.oldest = oldest << ENTRY_BITS
        self.newest = end << ENTRY_BITS
        self.chunks = chunks
        self.mean_words = words / chunks


def match(connection: "Connection", terms: list[str], extent: Extent) -> dict[int, float]:
    """Return the score of each chunk that holds some of the terms, by posting."""
    if len(terms) > MAX_PROBED:
        terms = terms[: MAX_PROBED // 2] + terms[-MAX_PROBED // 2 :]
    share = min(TERM_POSTINGS, POSTINGS // max(1, len(terms)))
    found: list[_Found] = []
    for term in terms:
        one = _Found(term, connection.execute(_NEWEST, (f'"{term}"', extent.newest, share)).fetchall(), share)
        if one.rows and not any(_same_stem(one, other) for other in found):
            one.estimate(extent.oldest, extent.newest)
            found.append(one)
    found.sort(key=lambda one: one.count)
    left = POSTINGS - sum(len(one.rows) for one in found)
    del found[MAX_TERMS:]
    for one in found:
        if not one.whole and one.count - one.read < left:
            left -= _deepen(connection, one, left)
            one.estimate(extent.oldest, extent.newest)
    _complete(connection, found, extent)
    return _add_up(found, extent)


def _complete(connection: "Connection", found: list[_Found], extent: Extent) -> None:
    """Look for common terms farther back than they were read: in chunks that hold a rare one, or the least common."""
    rare = [one for one in found if one.whole]
    common = [one for one in found if not one.whole and one.count * COMMONEST < extent.chunks]
    left = MEETINGS
    if rare:
        leaders = " OR ".join(f'"{one.term}"' for one in rare)
        led = sum(one.read for one in rare)
        for one in common[:MEETING_TERMS]:
            left -= led + min(one.count // 16, 16 * led)  # a leap into a long list costs as much as 16 steps
            if left < 0:
                return
            one.rows += _meet(connection, f'({leaders}) AND "{one.term}"', 0, one.reach)
    others = common[1 : 1 + MEETING_TERMS]
    if others and left > 0:
        leader = common[0]
        visits = left // len(others)
        back = max(0, leader.reach - (extent.newest - leader.reach) * visits // leader.read)
        rows = set(leader.rows)
        for one in others:
            met = _meet(connection, f'"{leader.term}" AND "{one.term}"', back, leader.reach)
            one.rows = list({*one.rows, *met})
            rows.update(met)
        leader.rows = list(rows)


def _meet(connection: "Connection", query: str, low: int, high: int) -> list[tuple[int]]:
    return connection.execute(_MEETINGS, (query, low, high, POSTINGS)).fetchall()


def _same_stem(one: _Found, other: _Found) -> bool:
    """Whether two terms are one to the index: `paint` and `painting`. It does the stemming, so its answers tell."""
    return one.term[:3] == other.term[:3] and one.rows == other.rows


def _deepen(connection: "Connection", one: _Found, left: int) -> int:
    more = connection.execute(_NEWEST, (f'"{one.term}"', one.reach, left)).fetchall()
    one.rows += more
    one.whole = len(more) < left
    one.count = one.read = len(one.rows)
    one.reach = one.rows[-1][0]
    return len(more)


def _add_up(found: list[_Found], extent: Extent) -> dict[int, float]:
    lengths = _length_weights(extent.mean_words)
    scores: dict[int, float] = {}
    score_of = scores.get
    for one in found:
        count = min(one.count, extent.chunks)
        rarity = log(1 + (extent.chunks - count + 0.5) / (count + 0.5))
        weights = [rarity * length for length in lengths]
        for (row,) in one.rows:
            scores[row] = score_of(row, 0.0) + weights[row & (_LENGTHS - 1)]
    return scores


def choose(scores: dict[int, float], limit: int) -> list[tuple[float, int]]:
    """Return the best postings with their scores, best first, of equal ones the newest first."""
    floor = sorted(scores.values())[-limit:][:1]
    best = [(score, row) for row, score in scores.items() if score >= floor[0]] if floor else []
    best.sort(reverse=True)
    return best[:limit]
