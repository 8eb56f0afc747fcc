"""Content-addressed files: the name is the digest of the bytes.

blob/sha256-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
"""

import os

from daypack.errors import Damaged, SourceMissing
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
