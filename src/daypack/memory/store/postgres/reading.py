"""Reads of one memory: its row, and the records asked for, in one round trip and as of one moment."""

from typing import Any, NamedTuple

from daypack.memory.store.port import EntryRange
from daypack.memory.store.postgres.statements import (
    DOCUMENTS_OF,
    ENTRIES_OF,
    SEQS_OF,
    TAGGED,
    document_row,
    entry_row,
)
from daypack.memory.store.rows import Owner, Row, document_of, entry_of, where_conditions
from daypack.types.memory import ContextDocument, DamagedRecord, Entry, Where


class Query(NamedTuple):
    """A statement about a memory, and what follows the values that name it (tenant, tenant, id)."""

    text: str
    values: tuple[Any, ...] = ()


def entries_in(entry_range: EntryRange) -> Query:
    """Select the entries of a range in its order: ascending if it extends forward, else descending."""
    conditions = entry_range.conditions
    text = " AND ".join((ENTRIES_OF, *(f"{comparison} %s" for comparison in conditions)))
    order = "ASC" if entry_range.forward else "DESC"
    return Query(f"{text} ORDER BY seq {order} LIMIT %s", (*conditions.values(), entry_range.limit))


def entries_at(seqs: list[int]) -> Query:
    """Select the entries with these seqs."""
    return Query(f"{ENTRIES_OF} AND seq = ANY(%s::bigint[])", (seqs,))


def entry_keyed(client_key: str) -> Query:
    """Select the entry stored with a client key."""
    return Query(f"{ENTRIES_OF} AND client_key = %s", (client_key.encode(),))


def seq_of(seq: int, stem: bytes) -> Query:
    """Select the seq of an entry if it has these random bytes."""
    return Query(f"{SEQS_OF} AND seq = %s AND stem = %s", (seq, stem))


def newest_seq(user: str, memory_id: str) -> Query:
    """Select the highest seq of an existing entry; a damaged one may have a higher seq than was ever assigned."""
    assigned = "(SELECT newest FROM memories WHERE tenant = %s AND id = %s)"
    return Query(f"{SEQS_OF} AND seq <= {assigned} ORDER BY seq DESC LIMIT 1", (user, memory_id))


def seqs_where(user: str, memory_id: str, where: Where) -> Query:
    """Select the seqs of the entries that match all conditions and tags."""
    conditions = where_conditions(where)
    text = " AND ".join((SEQS_OF, *(f"{comparison} %s" for comparison in conditions))) + TAGGED * len(where.tags)
    values = [value.encode() if isinstance(value, str) else value for value in conditions.values()]
    tagged = [value for tag in where.tags for value in (user, user, memory_id, tag.encode())]
    return Query(text, (*values, *tagged))


def documents_after(version: int, limit: int) -> Query:
    """Select the versions of the document after one, ascending."""
    return Query(f"{DOCUMENTS_OF} AND version > %s ORDER BY version LIMIT %s", (version, limit))


def documents_until(version: int | None, limit: int) -> Query:
    """Select the versions of the document up to one, by default the newest, descending."""
    condition = "" if version is None else " AND version <= %s"
    values = (limit,) if version is None else (version, limit)
    return Query(f"{DOCUMENTS_OF}{condition} ORDER BY version DESC LIMIT %s", values)


def entries_of(rows: list[Row], owner: Owner) -> list[Entry | DamagedRecord]:
    """Return the entries of rows."""
    return [entry_of(entry_row(row), owner) for row in rows]


def documents_of(rows: list[Row], owner: Owner) -> list[ContextDocument | DamagedRecord]:
    """Return the versions of the document of rows."""
    return [document_of(document_row(row), owner) for row in rows]
