"""Removes the index of a memory from the tables that hold those of all memories."""

# ruff: noqa: S608 — the parts of statements are constants

from collections.abc import Sequence
from typing import Any

from daypack.postgres.transaction import Transaction

WORDS = ("postings", "places", "conversations", "authors", "author_names")
TABLES = ("indexes", *WORDS, "embeddings", "small_vectors")  # partitioned by the hash of the tenant
# A new generation, also of an index that is not there yet: a batch that was read before is refused.
_RENEW = """
INSERT INTO indexes(tenant, memory, kind, format, generation)
SELECT %s, %s, kind, %s, nextval('index_generations') FROM unnest(%s::smallint[]) kind
ON CONFLICT (tenant, memory, kind) DO UPDATE SET format = excluded.format, generation = excluded.generation, newest = 0,
    oldest = 0, entries = 0, chunks = 0, words = 0, stretches = 0, persons = 0, gap = NULL, skipped = ''
"""
_INDEX = """
INSERT INTO jobs(tenant, memory, goal, documents)
SELECT tenant, number, newest, documents FROM memories WHERE tenant = %s AND number = %s
"""
_PARTITIONS = """
WITH parts AS MATERIALIZED (SELECT inhparent, inhrelid FROM pg_inherits WHERE inhparent = ANY(%s::regclass[]))
SELECT inhrelid::regclass::text FROM parts JOIN pg_class c ON c.oid = inhrelid,
    regexp_match(pg_get_expr(relpartbound, c.oid), 'modulus (\\d+), remainder (\\d+)') AS hash
WHERE satisfies_hash_partition(inhparent, hash[1]::int, hash[2]::int, %s::text)
"""


def erase_words(transaction: Transaction, memory: int, kinds: Sequence[int], form: int = 0) -> None:
    """Delete the words of indexes of a memory; each gets another generation. A writer at work is waited for."""
    transaction.execute(_RENEW, (transaction.tenant, memory, form, list(kinds)))
    for table in WORDS:
        statement = f"DELETE FROM {table} WHERE tenant = %s AND memory = %s AND kind = ANY(%s::smallint[])"
        transaction.execute(statement.encode(), (transaction.tenant, memory, list(kinds)))


def erase_vectors(transaction: Transaction, memory: int, keep: bytes | None = None) -> list[str]:
    """Remove the vectors of a memory, except those of the model `keep`; return the partitions it had for itself.

    The row of `embeddings` goes first: a batch that another process is writing is then complete, or never written.
    """
    query = (
        "DELETE FROM embeddings WHERE tenant = %s AND memory = %s AND model IS DISTINCT FROM %s"
        " RETURNING place, generation"
    )
    removed = transaction.rows(query, (transaction.tenant, memory, keep))
    remove_rows(transaction, memory, removed)
    return [f"daypack.vectors_{place:d}" for place, _ in removed if place]


def remove_rows(transaction: Transaction, memory: int, removed: Sequence[tuple[Any, ...]]) -> None:
    """Remove the vectors of a memory at places, each of one generation."""
    for place, generation in removed:  # the place as a literal: other partitions are not locked
        query = f"DELETE FROM vectors WHERE place = {place:d} AND tenant = %s AND memory = %s AND generation = %s"
        transaction.execute(query.encode(), (transaction.tenant, memory, generation))


def discard_vectors(transaction: Transaction, memory: int, model: bytes, generation: int) -> None:
    """Remove vectors of which some are damaged or missing, and have all of them made again."""
    query = (
        "DELETE FROM embeddings WHERE tenant = %s AND memory = %s AND model = %s AND generation = %s"
        " RETURNING place, generation"
    )
    removed = transaction.rows(query, (transaction.tenant, memory, model, generation))
    remove_rows(transaction, memory, removed)
    if removed:
        transaction.execute(_INDEX, (transaction.tenant, memory))


def list_partitions(transaction: Transaction) -> list[str]:
    """Return the partitions in which the indexes of the transaction's tenant are, or were."""
    return [
        f"daypack.{name.removeprefix('daypack.')}"
        for (name,) in transaction.rows(_PARTITIONS, (list(TABLES), transaction.tenant))
    ]
