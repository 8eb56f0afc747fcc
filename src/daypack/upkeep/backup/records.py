"""What a user's folder remembers of backups, erasures and revoked tokens, so that none undoes another unnoticed.

    backups.jsonl    {"path":"/mnt/b/1.tar","digest":"sha256:…","created_at":"2026-11-17T21:00:00.000Z","scope":"user"}
    erasures.jsonl   {"at":"2026-11-17T22:00:00.000Z","kind":"literal","digest":"hmac-sha256:…","marker":"[erased:…]",
                      "sessions":["default/work"],"memories":["mem_…"],"backups":["sha256:… default/old"]}
    revocations.jsonl {"at":"2026-11-17T22:00:00.000Z","token":"5c1e…"}

They only grow. Lines that cannot be read are skipped.
"""

import os
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TypeVar

import msgspec
from msgspec import Struct

from daypack.errors import WriteFailed
from daypack.files import atomic, jsonl
from daypack.files.durable import sync
from daypack.history.logs.lines import UNREADABLE

BACKUPS = "backups.jsonl"
ERASURES = "erasures.jsonl"
REVOCATIONS = "revocations.jsonl"
MERGED = (ERASURES, REVOCATIONS)  # where a restore adds the lines of a backup to those that are there


class KnownBackup(Struct, frozen=True):
    """A backup that was made of a home."""

    path: str
    digest: str
    created_at: str
    scope: str


class Erasure(Struct, frozen=True):
    """Something that was erased: from which sessions and memories, and which backups held it then."""

    at: str
    kind: str
    digest: str
    marker: str
    sessions: tuple[str, ...] = ()  # agent/name
    memories: tuple[str, ...] = ()
    backups: tuple[str, ...] = ()  # digest and session (or "memory") of those that are only in a backup


class Revocation(Struct, frozen=True):
    """A token that was revoked, of memories in files or in any database."""

    at: str
    token: str


Line = TypeVar("Line", KnownBackup, Erasure, Revocation)
_FILES: dict[type[Struct], str] = {KnownBackup: BACKUPS, Erasure: ERASURES, Revocation: REVOCATIONS}


def moment() -> str:
    """Return the time in the format of these records: UTC, milliseconds."""
    return datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def known_backups(folder: str) -> list[KnownBackup]:
    """Return the backups that a user's folder knows; of several at one path, the newest."""
    by_path = {known.path: known for known in _read(os.path.join(folder, BACKUPS), KnownBackup)}
    return list(by_path.values())


def erasures(folder: str) -> list[Erasure]:
    """Return the erasures that a user's folder knows."""
    return _read(os.path.join(folder, ERASURES), Erasure)


def revocations(folder: str) -> set[str]:
    """Return the tokens that a user's folder knows to be revoked."""
    return {revocation.token for revocation in _read(os.path.join(folder, REVOCATIONS), Revocation)}


def add_record(folder: str, record: KnownBackup | Erasure | Revocation) -> None:
    """Append a record durably; with memories in a database, it may be the first file of the home."""
    atomic.make_folders(folder)
    path = os.path.join(folder, _FILES[type(record)])
    _append(path, msgspec.json.encode(record) + b"\n")


def _append(path: str, lines: bytes) -> None:
    try:
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(fd).st_size
            torn = size and jsonl.read_at(fd, size - 1, 1) != b"\n"
            jsonl.write_all(fd, (b"\n" if torn else b"") + lines)
            sync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        hint = "free space or fix permissions, then try again"
        raise WriteFailed(error.strerror or str(error), operation="record", place=path, hint=hint) from error
    atomic.sync_folder(os.path.dirname(path))


def add_lines(path: str, other: str) -> None:
    """Append the records of another file that a file lacks; what others append meanwhile stays."""
    ours = set((atomic.read(path) or b"").split(b"\n"))
    theirs = dict.fromkeys((atomic.read(other) or b"").split(b"\n"))
    if missing := [line for line in theirs if line and line not in ours]:
        _append(path, b"".join(line + b"\n" for line in missing))


def _read(path: str, shape: type[Line]) -> list[Line]:
    found: list[Line] = []
    for line in (atomic.read(path) or b"").split(b"\n"):
        with suppress(*UNREADABLE):
            found += [msgspec.json.decode(line, type=shape)] if line else []
    return found
