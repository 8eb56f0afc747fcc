"""Erasure in a memory store: rows are deleted or rewritten in one transaction, and their bytes removed from the files.

SQLite keeps deleted bytes in free pages and in the journal. So the file is rewritten (VACUUM) and the journal
truncated. Until then the store is marked unclean, and the next process that opens it does the rest.
"""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any
from zlib import crc32

from daypack.errors import EntryMissing, StorageFailed
from daypack.memory.store.inserts import MemoryRow
from daypack.memory.store.port import ID_CHARS, Rewritten, is_id, memory_missing, split_id
from daypack.memory.store.tables import size_of, split_tags, text_crc
from daypack.types.digest import digest_bytes
from daypack.types.memory import About

if TYPE_CHECKING:
    from sqlite3 import Connection

_ERASED = "SELECT m.number, m.owner, m.entries, m.bytes FROM memories m JOIN users u ON u.number = m.owner"
_ENTRY = (
    "SELECT t.number, t.raw, t.summary, e.session, e.role, e.author, e.at, e.source, e.tags"
    " FROM entries e JOIN texts t ON t.number = e.text WHERE e.memory = ? AND e.seq = ?"
)
_MEMORIES = "SELECT number, owner, id, title, description FROM memories ORDER BY number"
_WORDS = 6  # the column of entries after which there is only text


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
    _end(connection, owner, (1, entries, size))


def erase_entry(connection: "Connection", memory: MemoryRow, entry_id: str) -> None:
    """Delete the rows of an entry; its seq is not reused."""
    seq = find_seq(connection, memory, entry_id)
    number, raw, summary, *known, tags = connection.execute(_ENTRY, (memory.number, seq)).fetchone()
    _begin(connection, memory.number)
    connection.execute("DELETE FROM texts WHERE number = ?", (number,))
    for table in ("entries", "tags", "keys"):
        connection.execute(f"DELETE FROM {table} WHERE memory = ? AND seq = ?", (memory.number, seq))  # noqa: S608
    words = (*known, *(tags or "").split("\n"))
    size = size_of(raw, summary, About(tags=tuple(word for word in words if word)))
    query = "UPDATE memories SET entries = entries - 1, bytes = bytes - ? WHERE number = ?"
    connection.execute(query, (size, memory.number))
    _end(connection, memory.owner, (0, 1, size))


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
            size = memory.write()
            query = "UPDATE memories SET bytes = bytes + ? WHERE number = ?"
            connection.execute(query, (size, row[0]))
            _end(connection, row[1], (0, 0, -size))
            done.append(memory.counts)
    return done


def _is_among(memory_id: str, memory_ids: Collection[str] | None) -> bool:
    return memory_ids is None or memory_id in memory_ids


class _Rewriting:
    """The rows of one memory that change. Rows are replaced, never updated: triggers protect entries and documents."""

    def __init__(self, connection: "Connection", change: Callable[[str], str], row: tuple[Any, ...]) -> None:
        self._connection = connection
        self._number, _, memory_id, title, description = row
        self._names = change(title), change(description)
        self._renamed = self._names != (title, description)
        self._texts: list[tuple[Any, ...]] = []
        self._entries: list[tuple[Any, ...]] = []
        self._documents: list[tuple[Any, ...]] = []
        self._size = 0
        self._digests: dict[int, tuple[str, str]] = {}  # by seq, as in client keys
        changed = self._read_entries(change)
        self._read_documents(change)
        keys = connection.execute("SELECT key, seq FROM keys WHERE memory = ?", (self._number,)).fetchall()
        self._keys = [(key, new, seq) for key, seq in keys if (new := self._new_key(change(key), seq)) != key]
        fields = sum(change(key) != key for key, _ in keys) + self._renamed
        self.counts = Rewritten(memory_id, self._names[0], changed, len(self._documents), fields)

    def _new_key(self, key: str, seq: int) -> str:
        """Return a key with the digest of the new text: `capture` makes keys with one, which could confirm a guess."""
        old, new = self._digests.get(seq, ("", ""))
        return key.replace(old, new) if old else key

    def _read_entries(self, change: Callable[[str], str]) -> int:
        query = (
            "SELECT e.*, t.raw, t.summary FROM entries e JOIN texts t ON t.number = e.text WHERE e.memory = ?"
            " ORDER BY e.seq"
        )
        changed = 0
        for *entry, raw, summary in self._connection.execute(query, (self._number,)):
            new_raw = change(raw.decode()).encode()
            new_summary = None if summary is None else change(summary)
            words = entry[_WORDS:]
            new_words = [None if word is None else change(word) for word in words]
            if (new_raw, new_summary, new_words) == (raw, summary, words):
                continue
            changed += 1
            self._digests[entry[1]] = _key_digest(raw), _key_digest(new_raw)
            self._texts.append((entry[2], new_raw, new_summary, text_crc(new_raw, new_summary)))
            self._entries.append((*entry[:_WORDS], *new_words))
            self._size += _size(new_raw, new_summary, new_words) - _size(raw, summary, words)
        return changed

    def _read_documents(self, change: Callable[[str], str]) -> None:
        query = "SELECT number, memory, version, stem, created, content FROM documents WHERE memory = ?"
        for *row, content in self._connection.execute(query, (self._number,)):
            new = change(content)
            if new != content:
                self._documents.append((*row, new, crc32(new.encode())))
                self._size += len(new.encode()) - len(content.encode())

    def write(self) -> int:
        """Write the rows and return how many bytes the memory grew."""
        memory, many = self._number, self._connection.executemany
        many("DELETE FROM texts WHERE number = ?", [(text[0],) for text in self._texts])
        many("INSERT INTO texts VALUES (?, ?, ?, ?)", self._texts)
        seqs = [(memory, entry[1]) for entry in self._entries]
        many("DELETE FROM entries WHERE memory = ? AND seq = ?", seqs)
        many("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", self._entries)
        many("DELETE FROM tags WHERE memory = ? AND seq = ?", seqs)
        tags = [(memory, tag, entry[1]) for entry in self._entries for tag in split_tags(entry[-1])]
        many("INSERT OR IGNORE INTO tags VALUES (?, ?, ?)", tags)
        many("DELETE FROM documents WHERE number = ?", [(document[0],) for document in self._documents])
        many("INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?)", self._documents)
        many("DELETE FROM keys WHERE memory = ? AND key = ?", [(memory, key) for key, _, _ in self._keys])
        many("INSERT OR IGNORE INTO keys VALUES (?, ?, ?)", [(memory, new, seq) for _, new, seq in self._keys])
        query = "UPDATE memories SET title = ?, description = ? WHERE number = ?"
        self._connection.execute(query, (*self._names, memory))
        return self._size


def _key_digest(raw: bytes) -> str:
    return digest_bytes(raw)[7:19]


def _size(raw: bytes, summary: str | None, words: Sequence[str | None]) -> int:
    *known, tags = words
    return size_of(raw, summary, About(tags=tuple(word for word in (*known, *split_tags(tags)) if word)))


def find_seq(connection: "Connection", memory: MemoryRow, entry_id: str) -> int:
    """Return the seq of an entry, or raise EntryMissing."""
    if is_id(entry_id):
        stem, seq = split_id(entry_id)
        query = "SELECT 1 FROM entries WHERE memory = ? AND seq = ? AND stem = ?"
        if connection.execute(query, (memory.number, seq, stem)).fetchone():
            return seq
    place = str(entry_id)[:ID_CHARS].encode("utf-8", "replace").decode()
    hint = "call list_entries without before and after to get the newest entries"
    raise EntryMissing("there is no such entry in this memory", operation="find entry", place=place, hint=hint)


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
