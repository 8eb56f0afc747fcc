"""Erasure in a memory store: rows are deleted or rewritten in one transaction, and their bytes removed from the files.

SQLite keeps deleted bytes in free pages and in the journal. So the file is rewritten (VACUUM) and the journal
truncated. Until then the store is marked unclean, and the next process that opens it does the rest.
"""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from daypack.errors import StorageFailed
from daypack.memory.store.checksums import UNVERIFIABLE, checksum, is_intact
from daypack.memory.store.counts import recount
from daypack.memory.store.inserts import MemoryRow
from daypack.memory.store.port import Rewritten, entry_missing, is_id, memory_missing, split_id
from daypack.memory.store.reading import tolerant
from daypack.memory.store.rows import (
    WRONG_VALUES,
    Owner,
    Row,
    document_record,
    entry_record,
    seal_memory,
    split_tags,
)
from daypack.memory.store.tables import DOCUMENT, ENTRY
from daypack.types.digest import digest_bytes

if TYPE_CHECKING:
    from sqlite3 import Connection

KEY = 10  # the column of an ENTRY row with the client key
_ERASED = "SELECT m.number, m.owner, m.entries, m.bytes FROM memories m JOIN users u ON u.number = m.owner"
_MEMORIES = (
    "SELECT m.number, m.owner, u.user, m.id, m.title, m.description FROM memories m JOIN users u ON u.number = m.owner"
    " ORDER BY m.number"
)


def erase_memory(connection: "Connection", user: str, memory_id: str) -> None:
    """Delete all rows of a memory, deleted or not."""
    query = f"{_ERASED} WHERE m.id = ? AND u.user = ?"
    row = connection.execute(query, (memory_id, user)).fetchone() if is_id(memory_id) else None
    if not row:
        raise memory_missing(memory_id, "erase memory")
    number, owner, entries, size = row
    _begin(connection, number)
    connection.execute("DELETE FROM texts WHERE number IN (SELECT text FROM entries WHERE memory = ?)", (number,))
    for table in ("entries", "tags", "keys", "documents"):
        connection.execute(f"DELETE FROM {table} WHERE memory = ?", (number,))  # noqa: S608 — a constant
    connection.execute("DELETE FROM memories WHERE number = ?", (number,))
    connection.execute("DELETE FROM quarantine WHERE memory = ?", (memory_id,))
    _end(connection, owner, (1, entries, size))


def erase_entry(connection: "Connection", memory: MemoryRow, entry_id: str) -> None:
    """Delete the rows of an entry; its seq is not reused."""
    seq = find_seq(connection, memory, entry_id)
    query = "SELECT text FROM entries WHERE memory = ? AND seq = ?"
    _begin(connection, memory.number)
    # The number of a damaged entry's text may be that of another entry.
    alone = "NOT EXISTS (SELECT 1 FROM entries e WHERE e.text = texts.number AND (e.memory, e.seq) IS NOT (?, ?))"
    place = (memory.number, seq)
    connection.execute(f"DELETE FROM texts WHERE number = ({query}) AND {alone}", (*place, *place))  # noqa: S608
    for table in ("entries", "tags", "keys"):
        connection.execute(f"DELETE FROM {table} WHERE memory = ? AND seq = ?", (memory.number, seq))  # noqa: S608
    connection.execute("DELETE FROM quarantine WHERE memory = ? AND id = ?", (memory.memory_id, entry_id))
    connection.execute("DELETE FROM erasing")
    recount(connection, memory.number)


def find_rewritten(
    connection: "Connection", change: Callable[[str], str], memory_ids: Collection[str] | None
) -> list[Rewritten]:
    """Return the memories whose texts `change` changes, of all users; None: among all memories."""
    found = [_Rewriting(connection, change, row) for row in connection.execute(_MEMORIES).fetchall()]
    return [
        memory.counts for memory in found if memory.counts[2:] != (0, 0, 0) and _is_among(memory.counts[0], memory_ids)
    ]


def rewrite_texts(
    connection: "Connection", change: Callable[[str], str], memory_ids: Collection[str] | None
) -> list[Rewritten]:
    """Replace the texts of entries, documents and memories by what `change` makes of them; ids and numbers stay."""
    done: list[Rewritten] = []
    for row in connection.execute(_MEMORIES).fetchall():
        memory = _Rewriting(connection, change, row)
        if memory.counts[2:] != (0, 0, 0) and _is_among(memory.counts[0], memory_ids):
            _begin(connection, row[0])
            memory.write()
            connection.execute("DELETE FROM erasing")
            done.append(memory.counts)
    return done


def _is_among(memory_id: str, memory_ids: Collection[str] | None) -> bool:
    return memory_ids is None or memory_id in memory_ids


class Rewriter:
    """What an erasure makes of the rows of one memory. Rows that were damaged stay damaged."""

    def __init__(self, change: Callable[[str], str], owner: Owner) -> None:
        self._change = change
        self._owner = owner

    def value(self, value: Any) -> Any:  # noqa: ANN401 — of a row that may be damaged
        """Return a value without what is erased; also one that is no text any more."""
        if isinstance(value, bytes):
            return self._change(value.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        return self._change(value) if isinstance(value, str) else value

    def entry(self, row: Row) -> Row | None:
        """Return what an ENTRY row becomes; None if it stays as it is."""
        seq, stem, created, moment, *words, key, raw, summary, _ = row
        new_raw, new_summary, new_key = self.value(raw), self.value(summary), self.value(key)
        new_words = [self.value(word) for word in words]
        same = (new_raw, new_summary, new_words) == (raw, summary, words)
        if not same and isinstance(raw, bytes) and isinstance(new_raw, bytes) and isinstance(new_key, str):
            # `capture` makes keys with the digest of the text, which could confirm a guess.
            new_key = new_key.replace(_key_digest(raw), _key_digest(new_raw))
        if same and new_key == key:
            return None
        return self.sealed_entry(row, (seq, stem, created, moment, *new_words, new_key, new_raw, new_summary))

    def sealed_entry(self, row: Row, new: Row) -> Row:
        """Return a changed ENTRY row, which lacks its checksum, with the one it gets."""
        return (*new, self._sealed(entry_record, row, (*new, 0)))

    def document(self, row: Row) -> Row | None:
        """Return what a DOCUMENT row becomes; None if it stays as it is."""
        version, stem, created, content, _ = row
        changed = self.value(content)
        if changed == content:
            return None
        new = (version, stem, created, changed)
        return (*new, self._sealed(document_record, row, (*new, 0)))

    def _sealed(self, record: Callable[[Row, Owner], Any], row: Row, new: Row) -> int:
        try:
            return checksum(record(new, self._owner)) if is_intact(record(row, self._owner), row[-1]) else UNVERIFIABLE
        except WRONG_VALUES:
            return UNVERIFIABLE


class _Rewriting:
    """The rows of one memory that change. Rows are replaced, never updated: triggers protect entries and documents."""

    def __init__(self, connection: "Connection", change: Callable[[str], str], row: Row) -> None:
        self._connection = connection
        self._number, _, user, memory_id, title, description = row
        self._owner = Owner(user, memory_id)
        self._rewriter = Rewriter(change, self._owner)
        self._names = change(title), change(description)
        self._renamed = self._names != (title, description)
        self._entries: list[tuple[Row, Any]] = []  # as ENTRY, with the number of the text
        self._documents: list[tuple[Row, Any]] = []  # as DOCUMENT, with its number
        self._keys: list[tuple[str, str, int]] = []
        self._keys_with_text = 0  # the others have only a digest of the text
        self._quarantine: list[tuple[str | bytes, int, str]] = []
        with tolerant(connection):
            self._read_entries()
            self._read_documents()
            self._read_quarantine()
        fields = self._keys_with_text + len(self._quarantine) + self._renamed
        counted = (len(self._entries), len(self._documents), fields)
        self.counts = Rewritten(memory_id, self._names[0], *counted)

    def _read_entries(self) -> None:
        texts: dict[Any, Any] = dict(
            self._connection.execute("SELECT seq, text FROM entries WHERE memory = ?", (self._number,))
        )
        for row in self._connection.execute(f"{ENTRY} ORDER BY e.seq", (self._number,)):
            new = self._rewriter.entry(row)
            if new is None:
                continue
            seq, key = row[0], row[KEY]
            self._keys_with_text += self._rewriter.value(key) != key
            if new[KEY] != key:
                self._keys.append((key, new[KEY], seq))
            self._entries.append((new, texts.get(seq)))

    def _read_documents(self) -> None:
        numbers: dict[Any, Any] = dict(
            self._connection.execute("SELECT version, number FROM documents WHERE memory = ?", (self._number,))
        )
        for row in self._connection.execute(DOCUMENT, (self._number,)):
            if new := self._rewriter.document(row):
                self._documents.append((new, numbers.get(row[0])))

    def _read_quarantine(self) -> None:
        query = "SELECT value, record, field FROM quarantine WHERE memory = ?"
        for value, record, field in self._connection.execute(query, (self._owner.memory_id,)):
            new = self._rewriter.value(value)
            if new != value:
                self._quarantine.append((new, record, field))

    def write(self) -> None:
        """Write the rows and count the memory's bytes again."""
        memory, many = self._number, self._connection.executemany
        many("DELETE FROM texts WHERE number = ?", [(text,) for _, text in self._entries])
        texts = [(text, *_storable(row[-3:])) for row, text in self._entries]
        many("INSERT INTO texts VALUES (?, ?, ?, ?)", texts)
        seqs = [(memory, row[0]) for row, _ in self._entries]
        many("DELETE FROM entries WHERE memory = ? AND seq = ?", seqs)
        entries = [(memory, row[0], text, *_storable(row[1:-3])) for row, text in self._entries]
        many("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", entries)
        many("DELETE FROM tags WHERE memory = ? AND seq = ?", seqs)
        tags = [(memory, tag, row[0]) for row, _ in self._entries for tag in split_tags(_text(row[9]))]
        many("INSERT OR IGNORE INTO tags VALUES (?, ?, ?)", tags)
        many("DELETE FROM documents WHERE number = ?", [(number,) for _, number in self._documents])
        documents = [(number, memory, *_storable(row)) for row, number in self._documents]
        many("INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?)", documents)
        many("DELETE FROM keys WHERE memory = ? AND key = ?", [(memory, key) for key, _, _ in self._keys])
        many("INSERT OR IGNORE INTO keys VALUES (?, ?, ?)", [(memory, new, seq) for _, new, seq in self._keys])
        many("UPDATE quarantine SET value = ? WHERE record = ? AND field = ?", map(_storable, self._quarantine))
        if self._renamed:
            query = "UPDATE memories SET title = ?, description = ? WHERE number = ?"
            self._connection.execute(query, (*self._names, memory))
            seal_memory(self._connection, memory)
        recount(self._connection, memory)


def _storable(row: Row) -> Row:
    """Return a row with text that is no UTF-8 as bytes, which SQLite stores."""
    return tuple(_text(value) if isinstance(value, str) else value for value in row)


def _text(value: Any) -> Any:  # noqa: ANN401 — of a row that may be damaged
    try:
        value.encode()
    except (UnicodeEncodeError, AttributeError):
        return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else None
    return value


def _key_digest(raw: bytes) -> str:
    return digest_bytes(raw)[7:19]


def find_seq(connection: "Connection", memory: MemoryRow, entry_id: str) -> int:
    """Return the seq of an entry, or raise EntryMissing."""
    if is_id(entry_id):
        stem, seq = split_id(entry_id)
        query = "SELECT 1 FROM entries WHERE memory = ? AND seq = ? AND stem = ?"
        if connection.execute(query, (memory.number, seq, stem)).fetchone():
            return seq
    raise entry_missing(entry_id)


def _begin(connection: "Connection", number: int) -> None:
    connection.execute("INSERT INTO erasing VALUES (?)", (number,))
    connection.execute("UPDATE store SET unclean = unclean + 1")


def _end(connection: "Connection", owner: int, counts: tuple[int, int, int]) -> None:
    connection.execute("DELETE FROM erasing")
    query = "UPDATE users SET memories = memories - ?, entries = entries - ?, bytes = bytes - ? WHERE number = ?"
    connection.execute(query, (*counts, owner))


def clean(connection: "Connection") -> None:
    """Remove the bytes of deleted rows from the files; must run outside a transaction."""
    unclean = connection.execute("SELECT unclean FROM store").fetchone()[0]
    connection.execute("VACUUM")
    busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    if busy:
        problem = "the rows are erased, but another process is reading, so their bytes are still in the journal"
        raise StorageFailed(
            problem, operation="erase", hint="they are removed when the store is opened next, or by the next erasure"
        )
    # Another process may have erased in the meantime; then the store stays unclean.
    connection.execute("UPDATE store SET unclean = 0 WHERE unclean = ?", (unclean,))
