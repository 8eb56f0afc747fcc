"""The counts of memories and users, computed from their records: after an erasure, and to compare what is stored."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sqlite3 import Connection

# The bytes an entry counts for: its texts and the words beside them; tags without what separates them.
_ENTRIES = """
SELECT count(*), coalesce(sum(
    length(t.raw) + coalesce(length(CAST(t.summary AS BLOB)), 0) + coalesce(length(CAST(e.session AS BLOB)), 0)
    + coalesce(length(CAST(e.role AS BLOB)), 0) + coalesce(length(CAST(e.author AS BLOB)), 0)
    + coalesce(length(CAST(e.at AS BLOB)), 0) + coalesce(length(CAST(e.source AS BLOB)), 0)
    + coalesce(length(CAST(replace(e.tags, char(10), '') AS BLOB)), 0)), 0)
FROM entries e LEFT JOIN texts t ON t.number = e.text WHERE e.memory = ?
"""
_DOCUMENTS = "SELECT coalesce(sum(length(CAST(content AS BLOB))), 0) FROM documents WHERE memory = ?"


_MAX_NUMBER = (1 << 32) - 1  # what an id can hold
_CLOCK_MS = 86_400_000  # a clock may have been set back by a day
_MOST_ERASED = 1 << 31  # a counter further ahead of its records than that is damaged: no store had so many


class Counts(NamedTuple):
    """How much a memory holds."""

    entries: int
    bytes: int


def count_memory(connection: "Connection", number: int) -> Counts:
    """Return what a memory holds, from its entries and documents."""
    entries, size = connection.execute(_ENTRIES, (number,)).fetchone()
    return Counts(entries, size + connection.execute(_DOCUMENTS, (number,)).fetchone()[0])


def recount(connection: "Connection", number: int) -> None:
    """Set the counts of a memory by its records, and change the usage of its owner by the difference."""
    entries, size = count_memory(connection, number)
    query = "SELECT owner, entries, bytes FROM memories WHERE number = ?"
    owner, former_entries, former_bytes = connection.execute(query, (number,)).fetchone()
    connection.execute("UPDATE memories SET entries = ?, bytes = ? WHERE number = ?", (entries, size, number))
    query = "UPDATE users SET entries = entries + ?, bytes = bytes + ? WHERE number = ?"
    connection.execute(query, (entries - former_entries, size - former_bytes, owner))


def recount_user(connection: "Connection", number: int) -> None:
    """Set the usage of a user to the sums of the memories, deleted or not."""
    query = (
        "UPDATE users SET (memories, entries, bytes) ="
        " (SELECT count(*), coalesce(sum(entries), 0), coalesce(sum(bytes), 0) FROM memories WHERE owner = ?1)"
        " WHERE number = ?1"
    )
    connection.execute(query, (number,))


def right_numbers(connection: "Connection", number: int, now: int) -> tuple[int, int, int]:
    """Return `newest`, `documents` and `latest` of a memory: as stored if that can be, else as its records have them.

    `newest` and `documents` may be ahead of the records (the newest were erased), `latest` only if the clock was.
    """
    query = "SELECT newest, documents, latest FROM memories WHERE number = ?"
    newest, documents, latest = connection.execute(query, (number,)).fetchone()
    seqs, times = connection.execute(
        "SELECT coalesce(max(seq), 0), coalesce(max(created), 0) FROM entries"
        " WHERE memory = ?1 AND typeof(seq) = 'integer' AND seq <= ?2 AND typeof(created) = 'integer'",
        (number, _MAX_NUMBER),
    ).fetchone()
    versions, document_times = connection.execute(
        "SELECT coalesce(max(version), 0), coalesce(max(created), 0) FROM documents"
        " WHERE memory = ?1 AND typeof(version) = 'integer' AND version <= ?2 AND typeof(created) = 'integer'",
        (number, _MAX_NUMBER),
    ).fetchone()
    return plausible_numbers((newest, documents, latest), (seqs, versions, max(times, document_times)), now)


def plausible_numbers(
    stored: tuple[object, object, object], found: tuple[int, int, int], now: int
) -> tuple[int, int, int]:
    """Return the newest entry and document and the latest time: as stored if that can be, else as the records have."""
    newest, documents, latest = stored
    seqs, versions, made = found
    if not isinstance(latest, int) or not 0 <= latest <= max(now + _CLOCK_MS, made):
        latest = min(made, now)
    return _number(newest, seqs), _number(documents, versions), latest


def _number(stored: object, least: int) -> int:
    if isinstance(stored, int) and least <= stored <= min(_MAX_NUMBER, least + _MOST_ERASED):
        return stored
    return least
