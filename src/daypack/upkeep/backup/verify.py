"""Verify a backup by restoring it to a scratch folder: digests, counts, `doctor` on every session and store."""

import os
from typing import NamedTuple

from msgspec import Struct, structs

from daypack.errors import Damaged
from daypack.files import atomic
from daypack.history.layout import Home, Layout
from daypack.upkeep.backup.database.lines import check
from daypack.upkeep.backup.database.member import records_of
from daypack.upkeep.backup.extraction import extract, remove_tree
from daypack.upkeep.backup.manifest import Backup, Item, Scope
from daypack.upkeep.backup.scratch import scratch_folder
from daypack.upkeep.backup.snapshot import STORE, count_store
from daypack.upkeep.backup.tarball import not_a_backup
from daypack.upkeep.doctor import Finding, examine_session
from daypack.upkeep.store_doctor.report import examine_memories


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
    with scratch_folder("daypack-verify-") as folder:
        return verify_in(path, os.path.join(folder, "scratch"))


def verify_in(path: str, scratch: str) -> Verified:
    """Restore a backup to a folder that does not exist, examine it there, and remove it."""
    with Backup(path) as backup:
        atomic.make_folders(scratch, durable=False)
        try:
            extract(backup, backup.manifest.files, scratch)
            examined = [_examine(backup, item, scratch) for item in backup.manifest.items]
        finally:
            remove_tree(scratch)
        manifest, items = backup.manifest, backup.manifest.items
        return Verified(
            digest=backup.digest,
            created_at=manifest.created_at,
            scope=manifest.scope,
            users=manifest.users,
            sessions=sum(item.sessions or bool(item.session) for item in items),
            messages=sum(found.messages for found in examined),
            events=sum(found.events for found in examined),
            memories=sum(item.memories for item in items),
            entries=sum(item.entries for item in items),
            files=len(manifest.files),
            bytes=manifest.bytes,
            findings=tuple(finding for found in examined for finding in found.findings),
        )


class _Examined(NamedTuple):
    """What was found in a part, and how many lines its logs have."""

    findings: list[Finding]
    messages: int = 0
    events: int = 0


def _examine(backup: Backup, item: Item, scratch: str) -> _Examined:
    folder, shown = os.path.join(scratch, item.path), os.path.join(backup.manifest.root, item.path)
    if item.kind == "database":
        return _examine_records(backup, item, shown)
    if item.kind == "memory":
        return _Examined([_moved(found, folder, shown) for found in _examine_store(backup, item, scratch)])
    if not item.session:
        return _Examined([])
    counts = tuple(_lines(os.path.join(folder, name)) for name in ("messages.jsonl", "events.jsonl"))
    if counts != (item.messages, item.events):
        raise not_a_backup(backup.path, f"{item.name} has {counts} lines, not {(item.messages, item.events)}")
    findings = examine_session(Layout(scratch, folder))
    return _Examined([_moved(found, folder, shown) for found in findings if found.severity != "note"], *counts)


def _moved(found: Finding, folder: str, shown: str) -> Finding:
    """Return a finding with the path it has in the home."""
    path = shown + found.path[len(folder) :] if found.path.startswith(folder) else found.path
    return structs.replace(found, path=path)


def _lines(path: str) -> int:
    return (atomic.read(path) or b"").count(b"\n")


def _examine_store(backup: Backup, item: Item, scratch: str) -> list[Finding]:
    """Return what `doctor` finds in a store; its bytes are those that were backed up."""
    place = Home(scratch, item.user)
    path = os.path.join(place.memory, STORE)
    if not os.path.exists(path):
        return []
    advice = "it is in the backup as it is; restore it from an earlier one"
    findings = [
        structs.replace(found, advice=advice)
        for found in examine_memories(place).report().findings
        if found.severity == "damage"  # indexes are not in a backup
    ]
    try:
        counts = count_store(path)
    except Damaged as error:
        return findings or [Finding("damage", path, error.problem, advice)]
    if counts != (item.memories, item.entries, item.documents) and not findings:
        raise not_a_backup(backup.path, f"{item.name} has {counts[1]:,} entries, not {item.entries:,}")
    return findings


def _examine_records(backup: Backup, item: Item, shown: str) -> _Examined:
    """Find the records of a database that do not match their checksum: they are in the backup as they were."""
    checked = check(records_of(backup, item))
    counts = tuple(checked.counts.get(name, 0) for name in ("memories", "entries", "documents"))
    if counts != (item.memories, item.entries, item.documents):
        raise not_a_backup(backup.path, f"{item.name} has {counts[1]:,} entries, not {item.entries:,}")
    advice = "it was damaged in the database, and is in the backup as it is; restore an earlier one"
    findings = [Finding("damage", shown, f"{record}: checksum mismatch", advice) for record in checked.damaged]
    if checked.more:
        findings.append(Finding("damage", shown, f"{checked.more:,} more records: checksum mismatch", advice))
    return _Examined(findings, checked.messages, checked.events)
