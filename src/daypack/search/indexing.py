"""Writes entries to the index: chunks, neighbours, stretches and authors, in the caller's transaction."""

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache

from msgspec import Struct

from daypack.errors import BadInput
from daypack.search.neighbours import speaker
from daypack.search.postings import MAX_ID, posting
from daypack.search.tables import Batch, Entry, Gap, GroupEnd, IndexTables
from daypack.search.words import MAX_CHUNKS, find_speaker, fold, index_header, name_words, split_chunks

STRETCH_ENTRIES = 20  # length of a stretch without a group; a gap in time always ends one
GAP_SECONDS = 3_600
_FLUSH_ENTRIES = 2_000
_SPOKEN_BY = ("", "user", "assistant")  # roles whose text may begin with the speaker's name


class Doc(Struct, frozen=True):
    """An entry to index: a message, or an entry of a memory. Entries of one group are consecutive.

    A group is one stretch of conversation; without a group a stretch ends after some entries or at a gap in time.
    """

    id: int
    text: str
    author: str = ""
    role: str = ""
    when: str = ""
    group: str = ""
    summary: str = ""  # a paraphrase: words of it find the entry


class _Author:
    """An author in this batch."""

    def __init__(self, number: int, given: int) -> None:
        self.number = number
        self.given = given
        self.entries = 0


class IndexWriter:
    """Collects entries and writes them in batches; `finish` writes the last batch.

    With a `block`, a stretch without a group ends at every multiple of so many ids. So the entries of a block get the
    same neighbours and stretches whether the entries before them are known or not.
    """

    def __init__(self, tables: IndexTables, block: int = 0) -> None:
        self.totals = tables.totals()
        self.gap = tables.gap()
        self._tables = tables
        self._block = block
        self._first: tuple[int, float | None] | None = None  # the first entry without a group that was added
        self._groups: dict[str, GroupEnd] = {}
        self._authors: dict[str, _Author] = {}
        self._entries: dict[int, Entry] = {}
        self._batch = Batch()

    def skip_to(self, start: int) -> None:
        """Leave a gap between the newest entry and `start`, the beginning of a block."""
        assert self.gap is None
        assert is_block_start(start, self._block)
        self.gap = Gap(self.totals.newest + 1, start, self._load_group(""))
        self._groups[""] = GroupEnd()
        self.totals.newest = start - 1

    def add(self, doc: Doc) -> None:
        """Add an entry; an entry the index has is skipped, an entry without words only advances `newest`."""
        if doc.id <= self.totals.newest:
            return
        self.totals.newest = doc.id
        self._add(doc)

    def fill(self, start: int, docs: Iterable[Doc]) -> None:
        """Add the entries from `start` to the end of the gap."""
        gap = self.gap
        assert gap is not None
        assert start == gap.start or is_block_start(start, self._block)
        newest = self._load_group("")
        self._groups[""] = end = gap.before if start == gap.start else GroupEnd()
        for doc in docs:
            self._add(doc)
        if gap.after:
            if end.newest and not _are_apart(end.moment, gap.after_moment):
                self._link(end.newest, gap.after)
                self._batch.before.append((end.newest, gap.after))
            self._groups[""] = newest
        elif not end.newest:
            self._groups[""] = newest
        # else: the gap is still the end of the conversation, which later entries continue
        gap.stop = start
        if self._first:
            gap.after, gap.after_moment = self._first

    def _add(self, doc: Doc) -> None:
        totals = self.totals
        if doc.id > MAX_ID:
            raise BadInput("the id is too large", operation="index", place=str(doc.id), hint=f"at most {MAX_ID}")
        totals.oldest = min(totals.oldest, doc.id) if totals.oldest else doc.id
        if not doc.text or doc.text.isspace():
            return
        totals.entries += 1
        name = doc.author or (find_speaker(doc.text) if doc.role in _SPOKEN_BY else "")
        cuts = self._add_chunks(doc)
        before, stretch = self._place(doc)
        who = speaker(self._number(name, doc), is_user=doc.role == "user")
        self._entries[doc.id] = [doc.id, stretch, before, 0, who, cuts]
        if len(self._entries) >= _FLUSH_ENTRIES:
            self._flush()

    def _add_chunks(self, doc: Doc) -> bytes:
        """Add the words of each chunk; return the start and stop offsets of the chunks, packed."""
        head = _head(doc.when[:40], doc.author)
        chunks = split_chunks(doc.text)
        whole = len(chunks) == 1
        if doc.summary:
            del chunks[MAX_CHUNKS - 1 :]
        for number, (start, stop, words) in enumerate(chunks):
            self._add_posting(doc.id, number, words, head, doc.text if whole else doc.text[start:stop])
        if doc.summary:
            # One more chunk, which is shown as the beginning of the entry.
            self._add_posting(doc.id, len(chunks), len(doc.summary.split()), head, doc.summary)
            chunks.append(chunks[0])
        return b"".join(start.to_bytes(4, "little") + stop.to_bytes(4, "little") for start, stop, _ in chunks)

    def _add_posting(self, entry: int, chunk: int, words: int, head: str, text: str) -> None:
        body = fold(text)
        if body:
            self._batch.postings.append((posting(entry, chunk, words), f"{head} {body}" if head else body))
            self.totals.chunks += 1
            self.totals.words += words

    def _place(self, doc: Doc) -> tuple[int, int]:
        """Link the entry to the previous entry of its group; return that entry and the stretch."""
        group = self._groups.get(doc.group)
        if group is None:
            group = self._groups[doc.group] = self._load_group(doc.group)
        moment = _moment(doc.when)
        before = 0 if _are_apart(moment, group.moment) else group.newest
        fresh = self._begins_block(group.newest, doc)
        if not before or fresh or (group.length >= STRETCH_ENTRIES and not doc.group):
            self.totals.stretches += 1
            group.stretch, group.length = self.totals.stretches, 0
        if before:
            self._link(before, doc.id)
        if not doc.group and self._first is None:
            self._first = doc.id, moment
        group.newest, group.length = doc.id, group.length + 1
        group.moment = group.moment if moment is None and not fresh else moment
        return before, group.stretch

    def _begins_block(self, before: int, doc: Doc) -> bool:
        return bool(self._block) and not doc.group and (before - 1) // self._block != (doc.id - 1) // self._block

    def _link(self, before: int, after: int) -> None:
        if before in self._entries:
            self._entries[before][3] = after
        else:
            self._batch.after.append((after, before))

    def _load_group(self, name: str) -> GroupEnd:
        return self._tables.group(clean(name)) or GroupEnd()

    def _number(self, name: str, doc: Doc) -> int:
        """Return the number of the author, negative if the name was found in the text."""
        words = _name(name) if name else ""
        if not words:
            return 0
        author = self._authors.get(words)
        if author is None:
            author = self._authors[words] = self._load_author(words)
        if doc.author and not author.given:
            author.given = 1
            self.totals.persons += 1
        author.entries += 1
        return author.number if doc.author else -author.number

    def _load_author(self, words: str) -> _Author:
        known = self._tables.author(words)
        return _Author(*known) if known else _Author(self._tables.add_author(words), 0)

    def _flush(self) -> None:
        batch = self._batch
        batch.entries = list(self._entries.values())
        batch.groups = [(clean(name), end) for name, end in self._groups.items()]
        batch.authors = [(author.number, author.given, author.entries) for author in self._authors.values()]
        self._tables.write(batch)
        self._batch = Batch()
        conversation = self._groups.get("")
        for written in (self._entries, self._groups, self._authors):
            written.clear()
        if conversation:
            self._groups[""] = conversation  # within a gap, its stored state is that of the newest entries

    def finish(self) -> int:
        """Write the last batch; return the newest id."""
        if self.gap and not self.gap.after and self._first:
            self.gap.after, self.gap.after_moment = self._first
        self._flush()
        self._tables.save_totals(self.totals)
        if self.gap:
            self._tables.save_gap(self.gap if self.gap.start < self.gap.stop else None)
        return self.totals.newest


def is_block_start(entry: int, block: int) -> bool:
    """Return True for the first id of a block."""
    return block > 0 and entry % block == 1 % block


def clean(text: str) -> str:
    """Return text that a database can store: lone surrogates become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


@lru_cache(256)
def _head(when: str, author: str) -> str:
    return index_header(when, author)


@lru_cache(256)
def _name(author: str) -> str:
    return " ".join(name_words(author))


def _are_apart(moment: float | None, other: float | None) -> bool:
    return moment is not None and other is not None and abs(moment - other) > GAP_SECONDS


def _moment(when: str) -> float | None:
    """Return an ISO time as seconds, None for anything else."""
    if not when:
        return None
    try:
        moment = datetime.fromisoformat(when)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
