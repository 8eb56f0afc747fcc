"""Content-addressed files: the name is the digest of the bytes.

blob/sha256-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
"""

import os
from contextlib import suppress
from typing import Protocol

from daypack.errors import Damaged, SourceMissing, StorageFailed
from daypack.files import atomic
from daypack.types.digest import digest_bytes


def name_of(data: bytes) -> str:
    """Return the file name of these bytes."""
    return f"sha256-{digest_bytes(data)[7:]}"


def put(folder: str, data: bytes, *, durable: bool = True) -> str:
    """Store bytes under their digest, once, and return the name; if not durable, a power failure may lose them."""
    name = name_of(data)
    path = os.path.join(folder, name)
    if not os.path.lexists(path):
        atomic.create(path, data, durable=durable)
    return name


def get(folder: str, name: str) -> bytes:
    """Return the bytes of a name; raise Damaged if they do not match it."""
    path = os.path.join(folder, name)
    data = atomic.read(path)
    if data is None:
        raise SourceMissing("no such blob", operation="read blob", place=path, hint="restore it from a backup")
    if name_of(data) != name:
        raise Damaged("bytes do not match the name", operation="read blob", place=path, hint="restore it from a backup")
    return data


class BlobSource(Protocol):
    """Where the blobs of a folder that is only a cache come from, and go to."""

    def add_blob(self, name: str, data: bytes) -> None:
        """Have a blob stored, at the latest with the next line that is appended."""
        ...

    def fetch_blob(self, name: str) -> bytes | None:
        """Return a stored blob; None if there is none."""
        ...


class BlobFolder:
    """The blobs of a session. In a cache, one that is missing is fetched when it is read."""

    def __init__(self, path: str, source: BlobSource | None = None) -> None:
        self._path = path
        self._source = source

    def put(self, data: bytes, *, durable: bool = True) -> str:
        """Store bytes, once, and return their name; if not durable, a power failure may lose them."""
        if self._source is None:
            atomic.make_folders(self._path)
            return put(self._path, data, durable=durable)
        name = name_of(data)
        self._source.add_blob(name, data)  # also if the file is there: an append that failed may have left it
        self._keep(name, data)
        return name

    def get(self, name: str) -> bytes:
        """Return the bytes of a name; raise Damaged if they do not match it."""
        if self._source is None:
            return get(self._path, name)
        with suppress(SourceMissing, Damaged):
            return get(self._path, name)
        data = self._source.fetch_blob(name)
        if data is None or name_of(data) != name:
            return get(self._path, name)
        self._keep(name, data)
        return data

    def has(self, name: str) -> bool:
        """Return True if there is a blob of that name."""
        if self._source is None:
            return os.path.lexists(os.path.join(self._path, name))
        try:
            data = self.get(name)
        except (SourceMissing, Damaged):
            return False
        self._source.add_blob(name, data)  # a worker that was killed may have left it here and not stored it
        return True

    def _keep(self, name: str, data: bytes) -> None:
        """Write a file of a cache; if that fails, for example because the folder was deleted, it is fetched again."""
        path = os.path.join(self._path, name)
        with suppress(StorageFailed):
            if not os.path.lexists(path) or name_of(atomic.read(path) or b"") != name:
                atomic.make_folders(self._path, durable=False, inside=os.path.dirname(self._path))
                atomic.replace(path, data, durable=False)
