"""What set-up has written, so that it can be taken back exactly: <home>/setup.json, and the lock of set-ups.

{"version":1,"files":[{"host":"claude","path":"…/settings.json","format":"json","before":"sha256:…","after":"sha256:…",
"steps":[{"at":120,"removed":"","inserted":"…"}],"entries":[{"keys":["enabledPlugins","…"],"made":1}],"folders":[]}]}
"""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, Literal

import msgspec
from msgspec import Struct

from daypack.errors import BadConfig
from daypack.files import atomic
from daypack.files.lock import LockableFile
from daypack.history.layout import Home
from daypack.hooks.call import HostName

Format = Literal["json", "jsonc", "toml", "yaml", "whole"]
_VERSION = 1


class Step(Struct, frozen=True):
    """A replacement in a text: at this character, what was removed and what was inserted."""

    at: int
    removed: str
    inserted: str


class EntryRecord(Struct, frozen=True):
    """An entry that was set: its keys, how many of the objects above it were made, and the value that it replaced.

    `item` is a field of a table and the element that was added to the list in it.
    """

    keys: tuple[str, ...]
    made: int = 0
    previous: Any = None
    item: tuple[str, str] | None = None


class FileRecord(Struct, frozen=True, kw_only=True):
    """A file that was written for a host, or for all of them (None).

    `before` and `after` are digests, `before` is "" if there was no file. The steps lead from one to the other; they
    are empty if the agent changed the file between two set-ups. `folders` are those that were made for it. `trusts`
    says under which keys the agent may store what it knows of the plug-in.
    """

    host: HostName | None
    path: str
    format: Format
    before: str
    after: str
    steps: tuple[Step, ...] = ()
    entries: tuple[EntryRecord, ...] = ()
    folders: tuple[str, ...] = ()
    trusts: tuple[str, ...] = ()


class SetupRecord(Struct, frozen=True):
    """Everything that set-up has written."""

    version: int = _VERSION
    files: tuple[FileRecord, ...] = ()

    def find(self, path: str) -> FileRecord | None:
        """Return the record of a file."""
        return next((file for file in self.files if file.path == path), None)


def record_path(home: Home) -> str:
    """Return the path of the record."""
    return os.path.join(home.folder, "setup.json")


def read_record(home: Home) -> SetupRecord:
    """Return the record; an empty one if nothing was set up."""
    path = record_path(home)
    data = atomic.read(path)
    if data is None:
        return SetupRecord()
    try:
        record = msgspec.json.decode(data, type=SetupRecord)
        if record.version != _VERSION:
            raise ValueError(f"version {record.version} is not known")
    except ValueError as error:
        hint = "use the version of daypack that wrote it; or delete it and run `daypack setup`, which makes it anew"
        raise BadConfig(f"cannot be read: {error}", operation="setup", place=path, hint=hint) from error
    return record


def write_record(home: Home, record: SetupRecord) -> None:
    """Replace the record; one without files is deleted."""
    path = record_path(home)
    if record.files:
        atomic.make_folders(home.folder)
        atomic.replace(path, msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")
    elif atomic.exists(path):
        atomic.remove(path)


@contextmanager
def one_at_a_time(home: Home) -> Generator[None]:
    """Hold the lock of set-ups, which is on the user's folder itself; where there are no locks, do without."""
    atomic.make_folders(home.folder)
    lock = LockableFile()
    try:
        with suppress(OSError):
            lock.fd = os.open(home.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(lock.fd, fcntl.LOCK_EX)
        yield
    finally:
        lock.close()
