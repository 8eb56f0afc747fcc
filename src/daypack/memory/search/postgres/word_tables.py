"""The tables of words in PostgreSQL (0002_search.sql, 0004_words.sql): all statements that `search` needs."""

from collections.abc import Collection, Generator, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import astuple

from daypack.postgres.transaction import Transaction
from daypack.search.neighbours import Place
from daypack.search.postings import ENTRY_BITS
from daypack.search.tables import Batch, Gap, GroupEnd, Participation, TermQuery, Totals
from daypack.search.tokens import stem_token, tokens

FORMAT = 1  # of tokens, chunks and postings; raise it together with `VERSION` of search/fts_tables.py
BLOCK_BITS = 12  # entries of a block, as the functions of 0004_words.sql know them
_MAX_TOKEN_BYTES = 1_000  # a lexeme may have 2,046; terms of a query have 64 characters
_MAX_CHUNK_BYTES = 900_000  # of tokens; a tsvector may have 1 MB

_FIND = "SELECT * FROM find_postings(%s, %s, %s, %s, %s, %s, %s)"
_COUNT = "SELECT * FROM count_postings(%s, %s, %s, %s, %s)"
# By id: the entries are few, their words may be common. Queries are made once for each block they are needed in.
_WITHIN = """
WITH asked AS (SELECT * FROM unnest(%s::text[], %s::bigint[]) WITH ORDINALITY q(query, below, number)),
    ids AS (SELECT DISTINCT unnest(%s::bigint[]) AS id),
    wanted AS MATERIALIZED (
        SELECT block, number, below, replace(query, '#', %s || block || ':')::tsquery AS query
        FROM (SELECT DISTINCT id >> 12 AS block FROM ids) b CROSS JOIN asked)
SELECT number, array_agg(posting ORDER BY posting) FROM ids
CROSS JOIN LATERAL (
    SELECT posting, words FROM postings
    WHERE memory = %s AND kind = %s AND posting >= id << 12 AND posting < (id + 1) << 12 OFFSET 0) p
JOIN wanted ON wanted.block = id >> 12 AND posting < below AND words @@ query
GROUP BY number
"""
_PLACES = """SELECT id, stretch, before, after, speaker FROM places
    WHERE memory = %s AND kind = %s AND id = ANY(%s) ORDER BY id"""
_CUTS = "SELECT id, cuts FROM places WHERE memory = %s AND kind = %s AND id = ANY(%s)"
_ENTRIES = """SELECT id, stretch, before, after, speaker, length(cuts) / 8 FROM places
    WHERE memory = %s AND kind = %s AND id > %s ORDER BY id"""
_GROUP = "SELECT newest, moment, stretch, length FROM conversations WHERE memory = %s AND kind = %s AND name = %s"
_AUTHOR = "SELECT number, given FROM authors WHERE memory = %s AND kind = %s AND name = %s"
_BUSY = """SELECT number FROM authors WHERE memory = %s AND kind = %s AND entries >= %s
    ORDER BY entries, number LIMIT %s"""
_NAMED = """FROM author_names n JOIN authors a ON a.tenant = n.tenant AND a.memory = n.memory AND a.kind = n.kind
    AND a.number = n.author
    WHERE n.memory = %s AND n.kind = %s AND n.word = ANY(%s) AND (a.given > 0 OR a.entries >= %s)"""
_CALLED = f"SELECT n.author, count(*) {_NAMED} GROUP BY n.author ORDER BY 2 DESC LIMIT 2"
_NAMES = f"SELECT DISTINCT n.word {_NAMED}"
_ADD_AUTHOR = """
WITH added AS (
    INSERT INTO authors(tenant, memory, kind, number, name, given, entries)
    SELECT %(tenant)s, %(memory)s, %(kind)s, coalesce(max(number), 0) + 1, %(name)s, 0, 0 FROM authors
    WHERE memory = %(memory)s AND kind = %(kind)s RETURNING number
), named AS (
    INSERT INTO author_names(tenant, memory, kind, word, author)
    SELECT DISTINCT %(tenant)s, %(memory)s::bigint, %(kind)s::smallint, word, number
    FROM added, unnest(%(words)s::bytea[]) word
)
SELECT number FROM added
"""
_ADD_POSTINGS = """
WITH added AS (
    INSERT INTO postings(tenant, memory, kind, posting, words)
    SELECT %s, %s, %s, posting, array_to_tsvector(string_to_array(words, ' '))
    FROM unnest(%s::bigint[], %s::text[]) AS u(posting, words) RETURNING tableoid
)
SELECT merge_words(inserted) FROM (SELECT max(tableoid) AS inserted FROM added) a
"""
_ADD_PLACES = """
INSERT INTO places(tenant, memory, kind, id, stretch, before, after, speaker, cuts)
SELECT %s, %s, %s, * FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bytea[])
"""
# One by one: a join with a list may be planned as a scan of the whole memory.
_LINK_AFTER = "UPDATE places SET after = %s WHERE id = %s AND memory = %s AND kind = %s"
_LINK_BEFORE = "UPDATE places SET before = %s WHERE id = %s AND memory = %s AND kind = %s"
_COUNT_AUTHOR = """UPDATE authors SET given = greatest(given, %s), entries = entries + %s
    WHERE number = %s AND memory = %s AND kind = %s"""
_PUT_GROUPS = """
INSERT INTO conversations(tenant, memory, kind, name, newest, moment, stretch, length)
SELECT %s, %s, %s, * FROM unnest(%s::bytea[], %s::bigint[], %s::double precision[], %s::bigint[], %s::bigint[])
ON CONFLICT (tenant, memory, kind, name) DO UPDATE SET newest = excluded.newest, moment = excluded.moment,
    stretch = excluded.stretch, length = excluded.length
"""
_SAVE_TOTALS = """UPDATE indexes SET newest = %s, oldest = %s, entries = %s, chunks = %s, words = %s, stretches = %s,
    persons = %s WHERE memory = %s AND kind = %s"""
_SAVE_GAP = "UPDATE indexes SET gap = %s WHERE memory = %s AND kind = %s"
_GAP = msgspec.msgpack.Decoder(Gap)


class State(NamedTuple):
    """The row of an index, and the incarnation of the database: after a failover the index may have lost its end."""

    memory: int = 0
    incarnation: str = ""
    generation: int = 0
    totals: Totals = Totals()
    gap: Gap | None = None

    @property
    def identity(self) -> tuple[int, str]:
        """Equal as long as the index only grew."""
        return self.generation, self.incarnation


def read_state(row: tuple[Any, ...] | None) -> State:
    """Return the state in a row; without an index, or with an earlier format, that of an empty one."""
    if row is None:
        return State()
    memory, incarnation, form, generation, *counts, gap = row
    if form != FORMAT:
        return State(memory, incarnation)
    return State(memory, incarnation, generation, Totals(*counts), _GAP.decode(gap) if gap else None)


class WordTables:
    """The tables of one index within a transaction."""

    def __init__(self, transaction: Transaction, kind: int, state: State) -> None:
        self._transaction = transaction
        self._own = state.memory, kind
        self._prefix = f"{state.memory}.{kind}."
        self._totals = state.totals
        self._gap = state.gap
        self.identity = state.identity

    # Postings

    def newest_postings(self, queries: Sequence[TermQuery], *, after: int, before: int, limit: int) -> list[list[int]]:
        """Return the newest postings between two numbers, newest first."""
        return self._find([(query, after) for query in queries], before, limit, newest_first=True)

    def first_postings(self, query: TermQuery, *, before: int, limit: int) -> list[int]:
        """Return the oldest postings, oldest first."""
        return self._find([(query, 0)], before, limit)[0]

    def postings_after(self, wanted: Sequence[tuple[TermQuery, int]], *, before: int) -> list[list[int]]:
        """Return all postings of each query after a number, oldest first."""
        return self._find(wanted, before, None)

    def postings_within(self, wanted: Sequence[tuple[TermQuery, int]], ids: Collection[int]) -> list[list[int]]:
        """Return the postings of each query in these entries before a number."""
        found: list[list[int]] = [[] for _ in wanted]
        if ids and wanted:
            queries = [_template(query) for query, _ in wanted]
            values = queries, [before for _, before in wanted], list(ids), self._prefix, *self._own
            for number, postings in self._transaction.execute(_WITHIN, values, binary=True):
                found[number - 1] = postings
        return found

    def count_postings(self, queries: Sequence[TermQuery], *, before: int, limit: int) -> list[int]:
        """Return how many postings each query has, at most the limit."""
        values = *self._own, list(map(_template, queries)), before, limit
        return [count for (count,) in self._transaction.rows(_COUNT, values)]

    def _find(
        self, wanted: Sequence[tuple[TermQuery, int]], before: int, limit: int | None, *, newest_first: bool = False
    ) -> list[list[int]]:
        queries, after = [_template(query) for query, _ in wanted], [after for _, after in wanted]
        values = *self._own, queries, after, before, limit, newest_first
        return [postings for (postings,) in self._transaction.execute(_FIND, values, binary=True)]

    # Entries

    def places(self, ids: Iterable[int]) -> dict[int, Place]:
        """Return the positions of entries by id."""
        found = self._transaction.execute(_PLACES, (*self._own, list(ids)), binary=True)
        return {row[0]: row for row in found}

    def cuts(self, ids: Iterable[int]) -> dict[int, bytes]:
        """Return where the chunks of entries begin and end, packed."""
        return dict(self._transaction.execute(_CUTS, (*self._own, list(ids)), binary=True).fetchall())

    def entries_after(self, entry: int) -> Iterable[tuple[int, int, int, int, int, int]]:
        """Return all entries with a larger id, and how many chunks they have."""
        return self._transaction.execute(_ENTRIES, (*self._own, entry), binary=True)

    # Counts and names

    def totals(self) -> Totals:
        """Return the counts over the whole index."""
        return msgspec.structs.replace(self._totals)

    def gap(self) -> Gap | None:
        """Return which ids are not indexed yet, while later ones are."""
        gap = self._gap
        return msgspec.structs.replace(gap, before=msgspec.structs.replace(gap.before)) if gap else None

    def group(self, name: str) -> GroupEnd | None:
        """Return the end of a group."""
        row = self._transaction.row(_GROUP, (*self._own, name.encode()))
        return GroupEnd(*row) if row else None

    def author(self, name: str) -> tuple[int, int] | None:
        """Return the number of an author and whether the name was given."""
        row = self._transaction.row(_AUTHOR, (*self._own, name.encode()))
        return (row[0], row[1]) if row else None

    def participation(self, words: Sequence[str], *, floor: int, limit: int) -> Participation:
        """Return the busy authors, and those whose name is in a query."""
        busy = self._transaction.execute(_BUSY, (*self._own, floor, limit))
        called = self._transaction.execute(_CALLED, (*self._own, _encoded(words), floor))
        return Participation([number for (number,) in busy], called.fetchall())

    def names_among(self, words: Sequence[str], *, floor: int) -> set[str]:
        """Return the words that are in the names of participants."""
        return {word.decode() for (word,) in self._transaction.rows(_NAMES, (*self._own, _encoded(words), floor))}

    # Writing

    def add_author(self, name: str) -> int:
        """Add an author and the words of the name; return the number."""
        values = {"name": name.encode(), "words": _encoded(name.split()), "memory": self._own[0], "kind": self._own[1]}
        row = self._transaction.row(_ADD_AUTHOR, {**values, "tenant": self._transaction.tenant})
        assert row is not None
        return row[0]

    def write(self, batch: Batch) -> None:
        """Write a batch."""
        execute, key = self._transaction.execute, (self._transaction.tenant, *self._own)
        if batch.postings:
            ids = [posting for posting, _ in batch.postings]
            execute(_ADD_POSTINGS, (*key, ids, [self._lexemes(*row) for row in batch.postings]))
        if batch.entries:
            execute(_ADD_PLACES, (*key, *map(list, zip(*batch.entries, strict=True))))
        for other, entry in batch.after:
            execute(_LINK_AFTER, (other, entry, *self._own))
        for other, entry in batch.before:
            execute(_LINK_BEFORE, (other, entry, *self._own))
        if batch.groups:
            last_ends = {name.encode(): astuple(end) for name, end in batch.groups}
            execute(_PUT_GROUPS, (*key, list(last_ends), *map(list, zip(*last_ends.values(), strict=True))))
        for number, given, entries in batch.authors:
            execute(_COUNT_AUTHOR, (given, entries, number, *self._own))

    def save_totals(self, totals: Totals) -> None:
        """Replace the counts."""
        self._transaction.execute(_SAVE_TOTALS, (*astuple(totals), *self._own))
        self._totals = msgspec.structs.replace(totals)

    def save_gap(self, gap: Gap | None) -> None:
        """Replace the gap."""
        saved = msgspec.msgpack.encode(gap) if gap else None
        self._transaction.execute(_SAVE_GAP, (saved, *self._own))
        self._gap = _GAP.decode(saved) if saved else None

    def _lexemes(self, posting: int, text: str) -> str:
        """Return the tokens of a chunk after its memory, kind and block, separated by spaces."""
        prefix = f"{self._prefix}{posting >> ENTRY_BITS + BLOCK_BITS}:"
        lexemes = [prefix + token for token in dict.fromkeys(tokens(text)) if len(token) <= _MAX_TOKEN_BYTES]
        if len(text) > _MAX_CHUNK_BYTES // 16:
            lexemes = list(_up_to(lexemes, _MAX_CHUNK_BYTES))
        return " ".join(lexemes)


def _up_to(lexemes: Iterable[str], size: int) -> Generator[str]:
    for lexeme in lexemes:
        size -= len(lexeme.encode())
        if size < 0:
            return
        yield lexeme


def _template(query: TermQuery) -> str:
    """Return a query in the syntax of tsquery; "#" stands for memory, kind and block."""
    forms = _any(query.forms)
    return f"({forms})&({_any(query.also)})" if query.also else forms


def _any(forms: tuple[str, ...]) -> str:
    stems = dict.fromkeys(stem_token(form).replace("\\", "\\\\") for form in forms)
    return "|".join(f"'#{stem}'" for stem in stems)


def _encoded(words: Iterable[str]) -> list[bytes]:
    return [word.encode() for word in words]
