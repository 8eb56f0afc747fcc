"""Reads the entries and documents of a memory from a file that may be damaged.

A range is read with one query. If SQLite cannot finish it (a malformed page, bytes that are no text), its records are
read one by one, so that only those that cannot be read are missing, and each of them is reported.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from daypack.files.database import is_damage
from daypack.memory.store.inserts import MemoryRow
from daypack.memory.store.port import EntryRange
from daypack.memory.store.rows import Owner, Row, damaged_row, document_of, entry_of
from daypack.memory.store.tables import DOCUMENT, ENTRY
from daypack.types.memory import ContextDocument, DamagedRecord, Entry

if TYPE_CHECKING:
    from sqlite3 import Connection

_MOST_STEPS = 200_000  # numbers to try one by one: a damaged counter must not take hours
_Item = TypeVar("_Item", Entry, ContextDocument)


class _Table(NamedTuple):
    """How the records of a kind are read: by a query for one memory, with a column that numbers them."""

    kind: str
    query: str
    column: str
    convert: Callable[[Row, Owner], Any]


_ENTRIES = _Table("entry", ENTRY, "e.seq", entry_of)
_DOCUMENTS = _Table("document", DOCUMENT, "version", document_of)


def read_entries(connection: "Connection", memory: MemoryRow, entries: EntryRange) -> list[Entry | DamagedRecord]:
    """Return the entries of a range in its order: ascending if it extends forward, else descending."""
    applied = {f"e.{comparison} ?": bound for comparison, bound in entries.conditions.items()}
    order = "ASC" if entries.forward else "DESC"
    query = " AND ".join((ENTRY, *applied)) + f" ORDER BY e.seq {order} LIMIT ?"
    try:
        rows = connection.execute(query, (memory.number, *applied.values(), entries.limit)).fetchall()
    except Exception as error:
        if not is_damage(error):
            raise
        first = 1 if entries.after_seq is None else entries.after_seq + 1
        last = memory.newest if entries.before_seq is None else min(memory.newest, entries.before_seq - 1)
        numbers = range(first, last + 1) if entries.forward else range(last, first - 1, -1)
        condition = "".join(f" AND {condition}" for condition in applied if "created" in condition)
        times = tuple(value for condition, value in applied.items() if "created" in condition)
        table = _ENTRIES._replace(query=ENTRY + condition)
        return _one_by_one(connection, memory, table, numbers, (entries.limit, *times))
    return _in_order([entry_of(row, memory.owner_id) for row in rows], entries)


def _in_order(found: list[Entry | DamagedRecord], entries: EntryRange) -> list[Entry | DamagedRecord]:
    """Return entries in the order of their seqs, each once: a damaged page may list them otherwise."""
    if all((first.seq < second.seq) is entries.forward for first, second in pairwise(found)):
        return found
    low, high = entries.after_seq or 0, entries.before_seq
    damaged = [entry for entry in found if isinstance(entry, DamagedRecord)]
    intact = {
        entry.seq: entry
        for entry in found
        if isinstance(entry, Entry) and entry.seq > low and (high is None or entry.seq < high)
    }
    return sorted([*intact.values(), *damaged], key=lambda entry: entry.seq, reverse=not entries.forward)


def pick_entries(connection: "Connection", memory: MemoryRow, seqs: Collection[int]) -> list[Entry | DamagedRecord]:
    """Return the existing entries among these seqs."""
    query = f"{ENTRY} AND e.seq IN ({','.join('?' * len(seqs))})"
    try:
        rows = connection.execute(query, (memory.number, *seqs)).fetchall()
    except Exception as error:
        if not is_damage(error):
            raise
        return _one_by_one(connection, memory, _ENTRIES, seqs, (len(seqs),))
    return [entry_of(row, memory.owner_id) for row in rows]


def find_seqs(
    connection: "Connection", memory: MemoryRow, conditions: Mapping[str, Any], tags: Sequence[str]
) -> frozenset[int]:
    """Return the seqs of the entries that match all conditions and tags.

    Those that cannot be read are among them: if a search finds one by its index, it is reported as damaged.
    """
    query = " AND ".join(
        ("SELECT seq FROM entries WHERE memory = ?", *(f"{comparison} ?" for comparison in conditions))
    )
    values = (memory.number, *conditions.values())
    tagged = " AND seq IN (SELECT seq FROM tags WHERE memory = ? AND tag = ?)" * len(tags)
    tag_values = [value for tag in tags for value in (memory.number, tag)]
    try:
        return frozenset(chain.from_iterable(connection.execute(query + tagged, (*values, *tag_values))))
    except Exception as error:
        if not is_damage(error):
            raise
    # Entries state their tags too, in case that the table of tags is damaged.
    one = query + " AND instr(char(10) || tags || char(10), char(10) || ? || char(10))" * len(tags) + " AND seq = ?"
    found: set[int] = set()
    for seq in range(memory.newest, max(0, memory.newest - _MOST_STEPS), -1):
        try:
            if connection.execute(one, (*values, *tags, seq)).fetchone():
                found.add(seq)
        except Exception as error:
            if not is_damage(error):
                raise
            found.add(seq)
    return frozenset(found)


def read_documents(
    connection: "Connection", memory: MemoryRow, after: int, limit: int
) -> list[ContextDocument | DamagedRecord]:
    """Return the versions of the document after one, ascending."""
    query = f"{DOCUMENT} AND version > ? ORDER BY version LIMIT ?"
    try:
        rows = connection.execute(query, (memory.number, after, limit)).fetchall()
    except Exception as error:
        if not is_damage(error):
            raise
        return _one_by_one(connection, memory, _DOCUMENTS, range(after + 1, memory.documents + 1), (limit,))
    return [document_of(row, memory.owner_id) for row in rows]


def read_document(connection: "Connection", memory: MemoryRow, version: int) -> ContextDocument | DamagedRecord | None:
    """Return a version of the document; None if it does not exist."""
    found = _one_by_one(connection, memory, _DOCUMENTS, (version,), (1,))
    return found[0] if found else None


def _one_by_one(
    connection: "Connection", memory: MemoryRow, table: _Table, numbers: Iterable[int], values: tuple[int, ...]
) -> list[Any]:
    """Return the records with these numbers, each read by itself; the first of `values` is the most to return."""
    limit, *others = values
    found: list[Any] = []
    query = f"{table.query} AND {table.column} = ?"
    with tolerant(connection):
        for step, number in enumerate(numbers):
            if len(found) >= limit or step >= _MOST_STEPS:
                break
            try:
                row = connection.execute(query, (memory.number, *others, number)).fetchone()
            except Exception as error:
                if not is_damage(error):
                    raise
                found.append(damaged_row(table.kind, number, problem=f"cannot be read: {error}"))
                continue
            if row:
                found.append(table.convert(row, memory.owner_id))
    return found


@contextmanager
def tolerant(connection: "Connection") -> Generator[None]:
    """Read bytes that are no UTF-8 as text that no checksum matches, instead of failing."""
    former = connection.text_factory
    connection.text_factory = _read_text
    try:
        yield
    finally:
        connection.text_factory = former


def _read_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
