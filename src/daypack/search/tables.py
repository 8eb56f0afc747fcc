"""What word search reads from and writes to the place of an index: the tables, without the language of a database.

Scoring is the same code over all tables, so that the same entries give the same answer in the same order. A chunk of an
entry is one number, its posting: `postings.posting` makes it, and newer entries have larger ones. Tables store which
terms are in which chunk.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from msgspec import Struct

from daypack.search.neighbours import Place
from daypack.types.deadline import Deadline

Answer = TypeVar("Answer")
Entry = list[int | bytes]  # id, stretch, before, after, speaker, cuts: the columns of `Batch.entries`


class TermQuery(Struct, frozen=True):
    """Matches chunks that contain any of `forms` and, unless `also` is empty, any of those as well.

    A form is a word of a query and always one token, but not stemmed yet: it matches what `tokens.stem_token` makes
    equal, as `painting` and `painted`.
    """

    forms: tuple[str, ...]
    also: tuple[str, ...] = ()


class Totals(Struct):
    """Counts over the whole index; all 0 in an empty one."""

    newest: int = 0  # the highest id, including entries without words
    oldest: int = 0  # the lowest id
    entries: int = 0  # that have words
    chunks: int = 0
    words: int = 0
    stretches: int = 0
    persons: int = 0  # authors whose name was given


class GroupEnd(Struct):
    """The end of a conversation, to which the next entry is linked."""

    newest: int = 0
    moment: float | None = None
    stretch: int = 0
    length: int = 0


class Gap(Struct):
    """Ids from `start` to before `stop` that are not indexed yet, while later ones are. There is at most one.

    `before` is the end of the conversation before it, `after` the first entry after it: they become neighbours of what
    fills it.
    """

    start: int
    stop: int
    before: GroupEnd
    after: int = 0
    after_moment: float | None = None


class Participation(Struct, frozen=True):
    """Authors that matter to a query: `busy` ones, and those `called` in it with how many of its words name them."""

    busy: list[int]
    called: list[tuple[int, int]]


class Batch(Struct):
    """What is written at once, in the order of the fields; every list may be empty.

    Postings and entries are new and ascend, except after a gap: then they are older than others. Texts are folded by
    `words.fold`: their terms are `tokens.tokens(text)`. They and the names have no lone surrogates, but may have NULs.
    """

    postings: list[tuple[int, str]] = []  # posting, text
    entries: list[Entry] = []
    after: list[tuple[int, int]] = []  # (a, e): the entry after e is a
    before: list[tuple[int, int]] = []  # (b, e): the entry before e is b
    groups: list[tuple[str, GroupEnd]] = []  # name and end: added, or replaced; the last one if a name repeats
    authors: list[tuple[int, int, int]] = []  # number, 1 if given now, entries to add


class IndexTables(Protocol):
    """The tables of one index within one transaction: everything that is read is of one state.

    Nothing is cached between transactions. What was written before in the same transaction is read.
    """

    @property
    def identity(self) -> object:
        """Equal as long as the index is the same and only grew; another value after it was replaced or reopened."""
        ...

    # Reading postings. Bounds are exclusive; a list of answers is in the order of what was asked.

    def newest_postings(self, queries: Sequence[TermQuery], *, after: int, before: int, limit: int) -> list[list[int]]:
        """Return the newest postings of each query that are > `after` and < `before`, newest first, `limit` of each."""
        ...

    def first_postings(self, query: TermQuery, *, before: int, limit: int) -> list[int]:
        """Return the oldest postings of a query that are < `before`, oldest first."""
        ...

    def postings_after(self, wanted: Sequence[tuple[TermQuery, int]], *, before: int) -> list[list[int]]:
        """Return all postings of each query that are > the number beside it and < `before`, oldest first."""
        ...

    def postings_within(self, wanted: Sequence[tuple[TermQuery, int]], ids: Collection[int]) -> list[list[int]]:
        """Return all postings of each query in these entries that are < the number beside it, oldest first.

        The entry of a posting is `posting >> postings.ENTRY_BITS`. There may be ten thousand ids, or none.
        """
        ...

    def count_postings(self, queries: Sequence[TermQuery], *, before: int, limit: int) -> list[int]:
        """Return how many postings < `before` each query has, or `limit` if there are more."""
        ...

    # Reading entries. Ids may repeat, and those the index does not have are left out.

    def places(self, ids: Iterable[int]) -> dict[int, Place]:
        """Return the positions of entries by id, ids ascending; a plain tuple in the order of `Place` will do."""
        ...

    def cuts(self, ids: Iterable[int]) -> dict[int, bytes]:
        """Return the `cuts` of entries by id, as they were written."""
        ...

    def entries_after(self, entry: int) -> Iterable[tuple[int, int, int, int, int, int]]:
        """Return all entries with a larger id, ids ascending: the columns of `Place`, and the number of chunks.

        The chunks of an entry are len(cuts) / 8.
        """
        ...

    # Reading counts and names. Words are compared byte by byte.

    def totals(self) -> Totals:
        """Return a new object with the counts."""
        ...

    def gap(self) -> Gap | None:
        """Return a new object with the gap, None if there is none."""
        ...

    def group(self, name: str) -> GroupEnd | None:
        """Return a new object with the end of a group, None if it has no entries; "" is a name too."""
        ...

    def author(self, name: str) -> tuple[int, int] | None:
        """Return the number of an author and 1 if the name was given, else 0; None for an unknown name."""
        ...

    def participation(self, words: Sequence[str], *, floor: int, limit: int) -> Participation:
        """Return the authors that matter to a query with these words.

        Busy: authors with at least `floor` entries, by entries, then by number, both ascending; the first `limit`.
        Called: authors with the most of these words in their name, most first, at most 2. Only those count whose name
        was given, or who have at least `floor` entries. Ties are in any order, and a word that repeats counts once.
        """
        ...

    def names_among(self, words: Sequence[str], *, floor: int) -> set[str]:
        """Return the words in names of authors whose name was given, or who have at least `floor` entries."""
        ...

    # Writing

    def add_author(self, name: str) -> int:
        """Add an author without entries whose name was not given; return the number, which is above 0.

        Numbers ascend from 1. Each word of the name (separated by one space) becomes a word for `participation`.
        """
        ...

    def write(self, batch: Batch) -> None:
        """Write a batch. Counts of authors are added to, and a name that was given once remains so."""
        ...

    def save_totals(self, totals: Totals) -> None:
        """Replace the counts."""
        ...

    def save_gap(self, gap: Gap | None) -> None:
        """Replace the gap; None removes it."""
        ...


class IndexPlace(Protocol):
    """Where an index is: it runs work over its tables, of one thread at a time.

    An index is derived. A place that cannot be used is replaced by an empty one, so that the caller builds it again.
    """

    @property
    def path(self) -> str:
        """The place for people and errors, without a password."""
        ...

    @property
    def times_opened(self) -> int:
        """A number that changes when the index is replaced or opened again."""
        ...

    def run(self, operation: str, work: Callable[[IndexTables], Answer], *, writing: bool = False) -> Answer | None:
        """Run `work` in one transaction, all or nothing; None if the index was unusable and has been replaced.

        Calls of several threads never overlap, because what a search keeps in memory follows the tables. With
        `writing`, transactions of other processes do not overlap either, and `work` is called once: it may consume an
        iterator.
        """
        ...

    def waiting(self, operation: str, deadline: Deadline) -> AbstractContextManager[None]:
        """Wait for others that write to the index until the deadline only; then `run` with `writing` fails."""
        ...

    def close(self) -> None:
        """Close connections; `run` opens them again."""
        ...
