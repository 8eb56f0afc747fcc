"""Verify a backup by restoring it to a scratch folder: digests, counts, SQLite's check, `doctor` on every session."""

import os
from contextlib import closing

from msgspec import Struct, structs

from daypack.errors import DaypackError
from daypack.files import atomic
from daypack.history.layout import Layout
from daypack.memory.store.sqlite import SqliteStore
from daypack.upkeep.backup.extraction import extract, remove_tree
from daypack.upkeep.backup.manifest import Backup, Item, Scope
from daypack.upkeep.backup.snapshot import STORE, count_store
from daypack.upkeep.backup.tarball import not_a_backup
from daypack.upkeep.doctor import Finding, examine_session


class Verified(Struct, frozen=True):
    """A backup that was restored to a scratch folder and found whole.

    `findings` are what `doctor` says of the sessions in it: a damaged session is backed up as it is.
    """

    digest: str
    created_at: str
    scope: Scope
    users: tuple[str, ...]
    sessions: int
    messages: int
    events: int
    memories: int
    entries: int
    files: int
    bytes: int
    findings: tuple[Finding, ...]

    @property
    def is_damaged(self) -> bool:
        """True if something in it was damaged before it was backed up."""
        return any(finding.severity == "damage" for finding in self.findings)


def verify(path: str) -> Verified:
    """Verify a backup in a temporary folder."""
    import tempfile  # noqa: PLC0415 — 4 ms, only here

    folder = tempfile.mkdtemp(prefix="daypack-verify-")
    try:
        return verify_in(path, os.path.join(folder, "scratch"))
    finally:
        remove_tree(folder)


def verify_in(path: str, scratch: str) -> Verified:
    """Restore a backup to a folder that does not exist, examine it there, and remove it."""
    with Backup(path) as backup:
        atomic.make_folders(scratch, durable=False)
        try:
            extract(backup, backup.manifest.files, scratch)
            findings = tuple(finding for item in backup.manifest.items for finding in _examine(backup, item, scratch))
        finally:
            remove_tree(scratch)
        manifest, items = backup.manifest, backup.manifest.items
        return Verified(
            digest=backup.digest,
            created_at=manifest.created_at,
            scope=manifest.scope,
            users=manifest.users,
            sessions=sum(bool(item.session) for item in items),
            messages=sum(item.messages for item in items),
            events=sum(item.events for item in items),
            memories=sum(item.memories for item in items),
            entries=sum(item.entries for item in items),
            files=len(manifest.files),
            bytes=manifest.bytes,
            findings=findings,
        )


def _examine(backup: Backup, item: Item, scratch: str) -> list[Finding]:
    folder, shown = os.path.join(scratch, item.path), os.path.join(backup.manifest.root, item.path)
    if item.kind == "memory" and os.path.exists(store := os.path.join(folder, STORE)):
        problem = _problem_of_store(backup, item, store)
        advice = "it is in the backup as it is; restore it from an earlier one"
        return [Finding("damage", os.path.join(shown, STORE), problem, advice)] if problem else []
    if not item.session:
        return []
    counts = tuple(_lines(os.path.join(folder, name)) for name in ("messages.jsonl", "events.jsonl"))
    if counts != (item.messages, item.events):
        raise not_a_backup(backup.path, f"{item.name} has {counts} lines, not {(item.messages, item.events)}")
    return [
        structs.replace(found, path=shown + found.path[len(folder) :])
        for found in examine_session(Layout(scratch, folder))
        if found.severity != "note"
    ]


def _lines(path: str) -> int:
    return (atomic.read(path) or b"").count(b"\n")


def _problem_of_store(backup: Backup, item: Item, path: str) -> str:
    """Return what is wrong with a store; its bytes are those that were backed up."""
    import sqlite3  # noqa: PLC0415 — 5 ms

    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            state = connection.execute("PRAGMA integrity_check").fetchone()[0]
        counts = count_store(path)
        with closing(SqliteStore(path)) as store:
            store.accounts.list()
    except (sqlite3.Error, DaypackError) as error:
        return str(error) if isinstance(error, sqlite3.Error) else error.problem
    if counts != (item.memories, item.entries, item.documents):
        raise not_a_backup(backup.path, f"{item.name} has {counts[1]:,} entries, not {item.entries:,}")
    return "" if state == "ok" else state
