"""Which known backups still hold what is erased: those that can be read are searched, the others are named.

An erasure never changes a backup. It says which file to delete, and records itself, so that a restore knows it.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from daypack.errors import DaypackError
from daypack.history.layout import Home
from daypack.memory.store.sqlite import SqliteStore
from daypack.upkeep.backup.database.lines import as_bytes
from daypack.upkeep.backup.database.member import records_of
from daypack.upkeep.backup.extraction import extract
from daypack.upkeep.backup.manifest import Backup, Item
from daypack.upkeep.backup.records import KnownBackup, known_backups
from daypack.upkeep.backup.scratch import scratch_folder
from daypack.upkeep.backup.snapshot import STORE
from daypack.upkeep.backup.tarball import read_member
from daypack.upkeep.erase.scope import Elsewhere, spelled_in
from daypack.upkeep.erase.target import Target


class Searched(NamedTuple):
    """What is looked for in a backup."""

    target: Target
    change: Callable[[str], str]  # what it makes of the texts of a memory
    line: bytes  # of an erased message, as it is in the log
    session: str  # of an erased message, as agent/name


class Holding(NamedTuple):
    """A backup that holds it, or may hold it because it cannot be read here."""

    found: Elsewhere
    parts: tuple[str, ...]  # for the record of the erasure: the digest of the backup, and the session or "memory"


def backups_holding(home: Home, searched: Searched) -> list[Holding]:
    """Return the known backups that hold what is erased, and those of which it is unknown."""
    holding = (_search(known, searched) for known in known_backups(home.folder))
    return [found for found in holding if found is not None]


def _search(known: KnownBackup, searched: Searched) -> Holding | None:
    made = f"a backup made {known.created_at}"
    try:
        with Backup(known.path) as backup:
            parts = dict.fromkeys(item.session or item.kind for item in _holding(backup, searched))
            digest = backup.digest
    except DaypackError as error:
        missing = "not there now" if not os.path.lexists(known.path) else error.problem
        reason = f"{made}, {missing}: it may hold it; find the file and delete it"
        return Holding(Elsewhere(known.path, reason, is_backup=True), ())
    if not parts:
        return None
    reason = f"{made} holds it: make a new backup after the erasure, then delete this one"
    found = Elsewhere(known.path, reason, is_backup=True, is_certain=True)
    return Holding(found, tuple(f"{digest} {part}" for part in parts))


def _holding(backup: Backup, searched: Searched) -> Iterator[Item]:
    """Yield the parts of a backup that hold it: of a message, only copies of its session; of an entry, memories."""
    kind = searched.target.kind
    for item in backup.manifest.items:
        if kind == "entry" and item.kind not in ("memory", "database"):
            continue
        if kind == "message" and item.session != searched.session and not item.sessions:
            continue
        if _is_in_files(backup, item, searched) or _is_in_memories(backup, item, searched):
            yield item


def _is_in_files(backup: Backup, item: Item, searched: Searched) -> bool:
    if searched.line and searched.line in backup.read(f"{item.path}/messages.jsonl"):
        return True
    spellings = searched.target.spellings
    files = backup.files_of(item)
    return any(spelled_in(read_member(backup.fd, backup.members[file.path]), spellings) for file in files)


def _is_in_memories(backup: Backup, item: Item, searched: Searched) -> bool:
    if item.kind == "database":
        rows = (line.row for line in records_of(backup, item).rows())
        texts = (text for row in rows for text in _texts(row))
        line = searched.line.decode("utf-8", "replace")
        return any(searched.change(text) != text or (line and line in text) for text in texts)
    return item.kind == "memory" and _is_in_store(backup, item, searched)


def _texts(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts of a row; those that are not UTF-8 with a sign for what is not."""
    for column, value in row.items():
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            yield as_bytes(column, value).decode("utf-8", "replace")


def _is_in_store(backup: Backup, item: Item, searched: Searched) -> bool:
    """Search the texts of a store: in its bytes a long text is in several pieces."""
    files = [file for file in backup.files_of(item) if file.path == f"{item.path}/{STORE}"]
    with scratch_folder("daypack-erase-") as folder:
        extract(backup, files, folder)
        for file in files:
            store = SqliteStore(os.path.join(folder, file.path))
            try:
                return bool(store.rewrite(searched.change, None, dry_run=True))
            finally:
                store.close()
        return False
