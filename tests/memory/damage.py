"""Damage for tests of stores: a field of a stored record is changed behind the store's back."""

import os
import sqlite3
from contextlib import closing

from daypack.memory.tools import Memories

GUARDED = ("entries", "texts", "documents")


def change(memories: Memories, *statements: str) -> None:
    """Run statements on the file of a store, without its guards; the store is closed and opened again."""
    memories.close()
    with closing(sqlite3.connect(store_path(memories))) as file, file:
        saved = [row[0] for row in file.execute("SELECT sql FROM sqlite_master WHERE type = 'trigger'")]
        for table in GUARDED:
            file.execute(f"DROP TRIGGER {table}_unchanged")
            file.execute(f"DROP TRIGGER {table}_kept")
        for statement in statements:
            file.execute(statement)
        for guard in saved:
            file.execute(guard)


def store_path(memories: Memories) -> str:
    """Return the path of the file."""
    return os.path.join(os.path.dirname(memories.backend.indexes.folder), "store.sqlite")
