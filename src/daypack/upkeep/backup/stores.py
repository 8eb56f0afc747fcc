"""Compares the store in a backup with the one in its place, and keeps tokens that were revoked since revoked.

A token is known to be revoked if the home has a record of it, if the audit log says so, or if it is gone from the store
that it was copied from. A new store has another id: what it lacks says nothing.
"""

import os
from collections.abc import Set as AbstractSet
from contextlib import closing
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from daypack.errors import Damaged, DaypackError
from daypack.files import atomic, read_only
from daypack.files.database import BUSY_SECONDS
from daypack.files.durable import sync_commits
from daypack.history.layout import Home
from daypack.memory.audit_log.log import NAME as AUDIT
from daypack.memory.audit_log.reading import Selection, read_lines, select
from daypack.upkeep.backup.records import revocations

if TYPE_CHECKING:
    from sqlite3 import Connection

_TABLES = ("users", "memories", "entries", "texts", "documents", "tags", "keys", "tokens", "quarantine")
_DIGITS = 1 << 256


class Tokens(NamedTuple):
    """The tokens of a store."""

    store: str
    ids: frozenset[str]


def tokens_of(path: str) -> Tokens | None:
    """Return the tokens of a store; None if there is none, or it cannot be read."""
    import sqlite3  # noqa: PLC0415 — 5 ms

    if not os.path.lexists(path):
        return None
    try:
        with closing(read_only.connect(path, seconds=BUSY_SECONDS)) as file:
            ids = frozenset(str(row[0]) for row in file.execute("SELECT id FROM tokens"))
            return Tokens(str((file.execute("SELECT id FROM store").fetchone() or ("",))[0]), ids)
    except (sqlite3.Error, DaypackError, UnicodeError):
        return None


def revoked_tokens(copy: str, current: str, home: Home) -> frozenset[str]:
    """Return the tokens of a copied store that were revoked where it is restored to."""
    copied, there = tokens_of(copy), tokens_of(current)
    if copied is None or not copied.ids:
        return frozenset()
    revoked = known_revocations(home)
    if there is not None and there.store == copied.store:
        revoked |= copied.ids - there.ids
    return frozenset(copied.ids & revoked)


def known_revocations(home: Home) -> set[str]:
    """Return the tokens that a home knows to be revoked; also if that was interrupted: it was meant."""
    lines = select(read_lines(os.path.join(home.audit, AUDIT)), Selection(action="token.revoke"))
    return revocations(home.folder) | {line.target for line in lines}


def drop_tokens(path: str, revoked: AbstractSet[str]) -> None:
    """Remove tokens from a store that is not in its place yet."""
    import sqlite3  # noqa: PLC0415 — 5 ms

    if not revoked:
        return
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as file:
            file.execute("PRAGMA secure_delete=ON")
            sync_commits(file)
            file.execute("BEGIN")
            file.executemany("DELETE FROM tokens WHERE id = ?", [(token,) for token in revoked])
            file.execute("COMMIT")
    except sqlite3.Error as error:
        hint = "restore it from an earlier backup"
        raise Damaged(str(error), operation="restore", place=path, hint=hint) from error
    atomic.sync_folder(os.path.dirname(path))


def is_same_store(copy: str, current: str, revoked: AbstractSet[str]) -> bool:
    """Return True if two stores have the same records, apart from tokens that stay revoked."""
    import sqlite3  # noqa: PLC0415 — 5 ms

    try:
        with (
            closing(read_only.connect(copy, seconds=BUSY_SECONDS)) as first,
            closing(read_only.connect(current, seconds=BUSY_SECONDS)) as second,
        ):
            return all(_sum(first, table, revoked) == _sum(second, table, frozenset()) for table in _TABLES)
    except (sqlite3.Error, DaypackError, UnicodeError):
        return False


def _sum(file: "Connection", table: str, without: AbstractSet[str]) -> int:
    """Return a digest of the rows of a table, in any order."""
    total = 0
    for row in file.execute(f"SELECT * FROM {table}"):  # noqa: S608 — the names are ours
        if table != "tokens" or row[0] not in without:
            total += int.from_bytes(sha256(repr(row).encode("utf-8", "surrogateescape")).digest(), "big")
    return total % _DIGITS
