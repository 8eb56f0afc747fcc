"""From a query to the messages that may answer it: by the words they contain, and by those of their neighbours.

The postings of the rarest terms are read whole, within a budget, so that the answer does not depend on the order in
which sessions were indexed. Terms that are too common to be read are looked for in the texts of the candidates only.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import nlargest
from math import log
from typing import TYPE_CHECKING, NamedTuple

from msgspec.json import Decoder

from daypack.errors import BadInput
from daypack.search.floor import QueryWords, read_query
from daypack.search.fts_tables import match_text
from daypack.search.neighbours import EntryTerms, Place, rate_entries
from daypack.search.postings import Asked, find_terms
from daypack.upkeep.find.index import ID_SHIFT, LENGTHS, LINE_BITS, Indexed
from daypack.upkeep.find.log_words import identifier_parts
from daypack.upkeep.find.relevance import Judge, absent_worths

if TYPE_CHECKING:
    from sqlite3 import Connection

COMMONEST = 150_000  # postings of a term from which on it is only looked for in texts that were found by others
MOST_POSTINGS = 300_000  # over all terms
SEEDS = 1_500  # best messages by their own words, whose neighbours are examined
TIMED_SEEDS = 20_000  # of which those within the times that are searched are kept
FOREVER = 1 << 62
LENGTH_WEIGHT = 0.3  # as in search.matches
_ASKING_WEIGHT = 0.3  # of "say", "time" and the like
_ROLE_SHIFT, _ROLE_MASK = 4, 3
_NUMBER_SHIFT = ID_SHIFT + LINE_BITS

_ROWS = "SELECT json_group_array(rowid) FROM (SELECT rowid FROM postings WHERE postings MATCH ? LIMIT ?)"
_PLACES = "SELECT id, start, length, seq, moment FROM messages WHERE id IN (SELECT value FROM json_each(?))"
_NUMBERS = Decoder(list[int])


class Stored(NamedTuple):
    """Where a message is."""

    id: int
    start: int
    length: int
    seq: int
    moment: int


class Candidate(NamedTuple):
    """A message that may answer the query: its score by words of its own and of its neighbours, and these words."""

    stored: Stored
    session: Indexed
    own: float
    total: float
    mask: int
    near: int


class Term:
    """A term of the query and the postings that contain it, ascending; none were read if it is too common."""

    def __init__(self, term: str, rows: list[int], count: int) -> None:
        self.term = term
        self.rows = rows
        self.count = count


class Candidates(NamedTuple):
    """The candidates of a query, best first, and what its terms weigh."""

    found: list[Candidate] = []  # noqa: RUF012 — never written to
    terms: Sequence[str] = ()
    worths: Sequence[float] = ()
    judge: Judge | None = None
    absent: Sequence[str] = ()  # terms that no message contains
    parts: Mapping[str, Sequence[str]] = {}


class Scope(NamedTuple):
    """Which messages are searched: of these sessions, with these roles (numbers), within these times."""

    sessions: Mapping[int, Indexed]
    all_sessions: Mapping[int, Indexed]
    roles: Collection[int] | None = None
    since: int = 0
    until: int = FOREVER

    @property
    def messages(self) -> int:
        """How many messages are indexed, in the scope or not."""
        return sum(session.messages for session in self.all_sessions.values())

    @property
    def mean_words(self) -> float:
        """The mean length of a message."""
        return sum(session.words for session in self.all_sessions.values()) / max(1, self.messages)

    @property
    def is_timed(self) -> bool:
        """True if only some times are searched."""
        return self.since > 0 or self.until < FOREVER

    def holds(self, stored: Stored) -> bool:
        """Return True if the time of a message is within the scope; one without a time only if there is no limit."""
        return self.since <= stored.moment <= self.until


def find_candidates(connection: "Connection", query: str, scope: Scope, limit: int) -> Candidates:
    """Return the best candidates for a query."""
    asked = read_query(query)
    if not asked.weights:
        hint = "name what it was about: a word, a path, a command, a number"
        raise BadInput("the query has no words to search for", operation="find", place="query", hint=hint)
    if not scope.sessions:
        return Candidates()
    reader = _TermReader(connection, scope, query)
    terms, absent = find_terms(list(asked.weights), reader.read, _is_same)
    if not terms:
        return Candidates(absent=absent)
    _forget_common(terms)
    messages = scope.messages
    worths = [
        log(1 + (messages - min(term.count, messages) + 0.5) / (term.count + 0.5))
        * min(1.0, max(_ASKING_WEIGHT, asked.weights[term.term]))
        for term in terms
    ]
    words = QueryWords(asked, [(term.term, term.count) for term in terms], absent, chunks=messages, entries=messages)
    judge = Judge(worths, absent_worths(absent, asked.weights, messages), words, messages)
    found = _rate(connection, _Matches(terms, worths, scope), scope)
    return Candidates(found[:limit], [term.term for term in terms], worths, judge, absent, reader.parts)


def _is_same(term: Term, other: Term) -> bool:
    return bool(term.rows) and term.rows == other.rows


class _TermReader:
    """Reads the postings of terms."""

    def __init__(self, connection: "Connection", scope: Scope, query: str) -> None:
        self._connection = connection
        self._live = scope.all_sessions
        self._dead = bool(connection.execute("SELECT dead FROM totals").fetchone()[0])
        self.parts = _parts_of(query)

    def read(self, asked: Asked) -> list[Term | None]:
        """Return terms with their postings; None where a term does not occur."""
        return [self._read(term, match_text(query)) for term, query in asked]

    def _read(self, term: str, query: str) -> Term | None:
        if term in self.parts:
            parts = " AND ".join(f'"{part}"' for part in self.parts[term])
            query = f"{query} OR ({parts})"
        rows = _NUMBERS.decode(self._connection.execute(_ROWS, (query, COMMONEST)).fetchone()[0])
        if len(rows) >= COMMONEST:
            return Term(term, [], COMMONEST)
        if self._dead:
            rows = [row for row in rows if row >> _NUMBER_SHIFT in self._live]
        return Term(term, rows, len(rows)) if rows else None


def _parts_of(query: str) -> dict[str, list[str]]:
    """Return the identifiers of a query with the words they consist of: fixport: fix, port."""
    found: dict[str, list[str]] = {}
    for word in query.split():
        name = "".join(filter(str.isalnum, word))
        parts = list(dict.fromkeys(identifier_parts(name).lower().split())) if name.isascii() else []
        if len(parts) > 1:
            found[name.lower()] = parts
    return found


def _forget_common(terms: Sequence[Term]) -> None:
    """Forget the postings of the most common terms, if they are too many in all."""
    left = MOST_POSTINGS
    for number, term in enumerate(terms):
        left -= term.count
        if left < 0 and number:
            term.rows = []


class _Matches:
    """The postings that contain terms of a query."""

    def __init__(self, terms: Sequence[Term], worths: Sequence[float], scope: Scope) -> None:
        self._terms = terms
        self._worths = worths
        self._scope = scope
        self._known: dict[int, float] = {0: 0.0}
        mean = scope.mean_words
        middle = [2 ** ((length + 0.5) / 2) for length in range(LENGTHS)]
        self.factors = [(1 + LENGTH_WEIGHT) / (1 + LENGTH_WEIGHT * words / max(1.0, mean)) for words in middle]

    def worth(self, mask: int) -> float:
        """Return the weight of the terms in a mask."""
        known = self._known.get(mask)
        if known is None:
            known = sum(worth for number, worth in enumerate(self._worths) if mask >> number & 1)
            self._known[mask] = known
        return known

    def choose(self, limit: int) -> dict[int, tuple[int, float]]:
        """Return the best messages by their own words: id, mask and length factor."""
        masks: dict[int, int] = {}
        get = masks.get
        for number, term in enumerate(self._terms):
            bit = 1 << number
            for row in term.rows:
                masks[row] = get(row, 0) | bit
        masks = self._within(masks)
        likely = self._likely(Counter(masks.values()), limit)
        rated = [
            (self.worth(mask) * self.factors[row & (LENGTHS - 1)], row) for row, mask in masks.items() if mask in likely
        ]
        if len(rated) > limit:
            least = sorted([score for score, _ in rated])[-limit]
            rated = [pair for pair in rated if pair[0] >= least]
        rated = nlargest(limit, rated, key=self._order)
        return {row >> ID_SHIFT: (masks[row], self.factors[row & (LENGTHS - 1)]) for _, row in rated}

    def _within(self, masks: dict[int, int]) -> dict[int, int]:
        """Return the postings of sessions and roles that are searched."""
        scope = self._scope
        if len(scope.sessions) < len(scope.all_sessions):
            masks = {row: mask for row, mask in masks.items() if row >> _NUMBER_SHIFT in scope.sessions}
        if scope.roles is not None:
            roles = scope.roles
            masks = {row: mask for row, mask in masks.items() if row >> _ROLE_SHIFT & _ROLE_MASK in roles}
        return masks

    def _likely(self, counts: Mapping[int, int], limit: int) -> frozenset[int]:
        """Return the sets of terms whose messages can be among the best, whatever their length."""
        spread = self.factors[0] / self.factors[-1]
        likely: list[int] = []
        enough, least = 0, 0.0
        for mask in sorted(counts, key=self.worth, reverse=True):
            if enough >= limit and self.worth(mask) * spread < least:
                break
            if enough < limit:
                least = self.worth(mask)
            enough += counts[mask]
            likely.append(mask)
        return frozenset(likely)

    def _order(self, pair: tuple[float, int]) -> tuple[float, int, str, str, int]:
        """Order equal scores by what does not depend on the order of indexing."""
        session = self._scope.sessions[pair[1] >> _NUMBER_SHIFT]
        return pair[0], session.newest, session.agent, session.name, pair[1] >> ID_SHIFT & ((1 << LINE_BITS) - 1)

    def mask(self, entry: int) -> int:
        """Return the terms of a message, 0 if it has none."""
        mask = 0
        low, high = entry << ID_SHIFT, (entry + 1) << ID_SHIFT
        for number, term in enumerate(self._terms):
            at = bisect_left(term.rows, low)
            if at < len(term.rows) and term.rows[at] < high:
                mask |= 1 << number
        return mask


def _rate(connection: "Connection", matches: _Matches, scope: Scope) -> list[Candidate]:
    """Rate the best messages and their neighbours, best first."""
    chosen = matches.choose(SEEDS)
    if scope.is_timed:
        within = read_stored(connection, matches.choose(TIMED_SEEDS))
        chosen = dict([pair for pair in matches.choose(TIMED_SEEDS).items() if scope.holds(within[pair[0]])][:SEEDS])
    around = {entry + step for entry in chosen for step in (-1, 1, 2)} - chosen.keys()
    stored = read_stored(connection, [*chosen, *around])
    terms = {entry: EntryTerms(mask, factor) for entry, (mask, factor) in chosen.items()}
    for entry in around & stored.keys():
        if mask := matches.mask(entry):
            terms[entry] = EntryTerms(mask, 1.0)
    places = {entry: Place(entry, 0, _beside(entry, -1, stored), _beside(entry, 1, stored), 0) for entry in stored}
    rated = rate_entries(terms, places, matches.worth)
    candidates: list[Candidate] = []
    for entry in rated:
        if entry >> LINE_BITS not in scope.sessions or not scope.holds(stored[entry]):
            continue
        own, total = rated[entry]
        masks = [terms[other].mask for other in (entry - 1, entry + 1) if other in terms]
        mask = terms[entry].mask if entry in terms else 0
        near = (masks[0] if masks else 0) | (masks[-1] if masks else 0)
        session = scope.sessions[entry >> LINE_BITS]
        candidates.append(Candidate(stored[entry], session, own, total, mask, near & ~mask))
    candidates.sort(key=_rank)
    return candidates


def _rank(candidate: Candidate) -> tuple[float, int, str, str, int]:
    session = candidate.session
    return -candidate.total, -candidate.stored.moment, session.agent, session.name, candidate.stored.seq


def _beside(entry: int, step: int, stored: Collection[int]) -> int:
    return entry + step if entry + step in stored else 0


def read_stored(connection: "Connection", ids: Iterable[int]) -> dict[int, Stored]:
    """Return where messages are, by id; those that do not exist are left out."""
    wanted = f"[{','.join(map(str, ids))}]"
    return {row[0]: Stored(*row) for row in connection.execute(_PLACES, (wanted,))}
