"""The manifest: the last member of a backup, which lists every file with its size and digest.

    {"format":"daypack-backup/1","created_at":"2026-11-17T21:00:00.000Z","root":"/home/ada/.daypack",
     "scope":"user","users":["1000"],"items":[{"path":"home/1000/agent/default/session/work","kind":"session","messages":12,
     "events":30,"position":{"messages.jsonl":948,"events.jsonl":4100}},…],
     "files":[{"path":"home/1000/config.toml","size":87,"sha256":"…"},…],"digest":"sha256:…"}

The digest is that of the bytes before `,"digest"`, and is the identity of the backup.
"""

import os
from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from daypack.errors import BadName, StorageFailed
from daypack.history.layout import check_name
from daypack.history.logs.lines import UNREADABLE
from daypack.types.digest import digest_bytes
from daypack.upkeep.backup.tarball import Member, members, not_a_backup, read_member

FORMAT = "daypack-backup/1"
NAME = "manifest.json"
ItemKind = Literal["session", "archived", "memory", "database", "file"]
Scope = Literal["home", "user", "session"]
_MOST_BYTES = 1 << 30
_KEY = b',"digest":"'
_MOST_NAME = 255  # bytes of a file name, on Linux
MOST_PARTS = 64  # of a path; nothing that daypack writes has so many


class Item(Struct, frozen=True, omit_defaults=True):
    """A part that is restored whole: a session, the memories of a user, or a file of the user's folder.

    Memories are the folder with their store, or the records of a database (see `database/lines.py`).

    `position` is the length of each log at one moment; lines that were appended later are not in the backup.
    """

    path: str  # relative to the root
    kind: ItemKind
    messages: int = 0  # lines
    events: int = 0
    memories: int = 0
    entries: int = 0
    documents: int = 0
    sessions: int = 0  # of a database
    position: dict[str, int] = {}

    @property
    def user(self) -> str:
        """The user it belongs to."""
        return self.path.split("/")[1]

    @property
    def name(self) -> str:
        """The name that people type: default/work, archive/default/work-1, memory, config.toml."""
        parts = self.path.split("/")
        return f"{parts[3]}/{parts[5]}" if self.kind == "session" else "/".join(parts[2:])

    @property
    def session(self) -> str:
        """The session it is a copy of, as agent/name; "" if it is none. The number of an archived one is left out."""
        if self.kind == "archived":
            return self.name.removeprefix("archive/").rpartition("-")[0]
        return self.name if self.kind == "session" else ""


class File(Struct, frozen=True):
    """A file of a backup."""

    path: str  # relative to the root
    size: int
    sha256: str


class Manifest(Struct, frozen=True):
    """What a backup contains."""

    format: str
    created_at: str  # when copying began
    root: str  # where it was copied from
    scope: Scope
    users: tuple[str, ...]
    items: tuple[Item, ...]
    files: tuple[File, ...]

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(file.size for file in self.files)


class Backup:
    """An open backup, whose manifest matches its members."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd = _open(path)
        try:
            self.digest, self.manifest, self.members = _read(self.fd, path)
        except BaseException:
            os.close(self.fd)
            raise
        self._files: dict[str, list[File]] = {}
        owners = {item.path for item in self.manifest.items}
        for file in self.manifest.files:
            self._files.setdefault(_owner_of(file.path, owners), []).append(file)

    def __enter__(self) -> "Backup":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)

    def files_of(self, item: Item) -> list[File]:
        """Return the files of an item."""
        return self._files.get(item.path, [])

    def read(self, path: str) -> bytes:
        """Return the bytes of a file; b"" if it is not in the backup."""
        member = self.members.get(path)
        return b"".join(read_member(self.fd, member)) if member else b""


def seal(manifest: Manifest) -> tuple[bytes, str]:
    """Return the bytes of a manifest, and its digest."""
    body = msgspec.json.encode(manifest)[:-1]
    digest = digest_bytes(body)
    return body + _KEY + digest.encode() + b'"}', digest


def _open(path: str) -> int:
    from stat import S_ISREG  # noqa: PLC0415 — only here

    from daypack.files.atomic import refusal  # noqa: PLC0415

    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        hint = "check the path; `daypack backup --list` lists the backups that your home knows"
        raise StorageFailed("no such file", operation="read backup", place=path, hint=hint) from error
    except OSError as error:
        raise refusal(path, error, "read backup") from error
    if not S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise not_a_backup(path, "not a plain file")
    return fd


def _read(fd: int, path: str) -> tuple[str, Manifest, dict[str, Member]]:
    found: dict[str, Member] = {}
    last: Member | None = None
    for member in members(fd, path):
        if last is not None and last.name == NAME:
            raise not_a_backup(path, "members after the manifest")
        if member.name in found:
            raise not_a_backup(path, f"{member.name!r} is in it twice")
        found[member.name] = last = member
    if last is None or last.name != NAME:
        raise not_a_backup(path, "has no manifest: it is not a backup, or the file was cut off")
    if last.size > _MOST_BYTES:
        raise not_a_backup(path, "the manifest is too large")
    body, key, digest = b"".join(read_member(fd, last)).rpartition(_KEY)
    if not key or digest != (expected := digest_bytes(body)).encode() + b'"}':
        raise not_a_backup(path, "the manifest does not match its digest")
    try:
        manifest = msgspec.json.decode(body + b"}", type=Manifest)
    except UNREADABLE as error:
        raise not_a_backup(path, f"the manifest cannot be read: {error}") from error
    del found[NAME]
    _check(manifest, found, path)
    return expected, manifest, found


def _check(manifest: Manifest, found: dict[str, Member], path: str) -> None:
    """Refuse a manifest that does not describe the members, or names a place outside of a home."""
    if manifest.format != FORMAT:
        raise not_a_backup(path, f"format {manifest.format!r}; this version of daypack reads {FORMAT!r}")
    if [(file.path, file.size) for file in manifest.files] != [(member.name, member.size) for member in found.values()]:
        raise not_a_backup(path, "the members are not those of the manifest")
    owners = {item.path for item in manifest.items}
    if len(owners) < len(manifest.items):
        raise not_a_backup(path, "a part is in it twice")
    if "\0" in manifest.root:
        raise not_a_backup(path, f"{manifest.root!r} is no folder")
    for item in manifest.items:
        if not is_item(item.path, item.kind) or item.user not in manifest.users:
            raise not_a_backup(path, f"{item.path!r} is no place in a home")
    for file in manifest.files:
        if not _is_safe(file.path) or not _owner_of(file.path, owners):
            raise not_a_backup(path, f"{file.path!r} is no place in a home")


def is_item(path: str, kind: ItemKind) -> bool:
    """Return True if a path, relative to the root, is that of an item of this kind."""
    names = _names(path.split("/"), kind)
    try:
        return names is not None and all(check_name(name, "name") for name in names)
    except BadName:
        return False


def _names(parts: Sequence[str], kind: ItemKind) -> Sequence[str] | None:
    """Return the parts of a path that people chose."""
    match parts, kind:
        case ["home", user, "agent", agent, "session", session], "session":
            return user, agent, session
        case ["home", user, "archive", agent, session], "archived":
            return user, agent, session
        case ["home", user, "memory" | "database" as name], _ if name == kind:
            return (user,)
        case ["home", user, name], "file" if name not in ("agent", "archive", "memory", "model", "database"):
            return user, name
        case _:
            return None


def _is_safe(path: str) -> bool:
    parts = path.split("/")
    return (
        "\0" not in path
        and len(parts) <= MOST_PARTS
        and all(part not in ("", ".", "..") and len(part.encode("utf-8", "replace")) <= _MOST_NAME for part in parts)
    )


def _owner_of(path: str, owners: set[str]) -> str:
    """Return the path of the item that a file belongs to; "" if there is none."""
    while path and path not in owners:
        path = path.rpartition("/")[0]
    return path
