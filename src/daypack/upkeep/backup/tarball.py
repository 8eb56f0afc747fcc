"""The container of a backup: an uncompressed tar of plain files, written in order and read strictly.

    header (512 bytes) · data, padded to 512 bytes · … · two empty blocks

A name that is long or not ASCII has a pax header with `path` before its own. Everything else that tar can express is
refused: links, folders, devices, sparse files, other pax keys. Without compression no member is larger than the file.
"""

import os
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import NamedTuple

from daypack.errors import Damaged
from daypack.files import jsonl
from daypack.files.durable import sync

BLOCK = 512
MOST_MEMBERS = 2_000_000
_MOST_PAX = 1 << 16  # bytes of a pax header: one name
_CHUNK = 1 << 20
_RECORD = 21 * BLOCK  # the longest end that `tar` writes
_MAGIC = b"ustar"  # of the first header: what begins otherwise is no tar
_FILE, _PAX = b"0", b"x"


class Member(NamedTuple):
    """A file in a tar."""

    name: str
    offset: int
    size: int


class TarWriter:
    """Writes members to a descriptor; `position` and `cut` undo what was written last."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.position = 0

    def add(self, name: str, size: int, chunks: Iterable[bytes]) -> str:
        """Write one file of exactly `size` bytes and return its SHA-256; raise EOFError if it is shorter."""
        self._write(_header(name, size))
        digest, left = sha256(), size
        for chunk in chunks:
            data = chunk[:left]
            digest.update(data)
            self._write(data)
            left -= len(data)
        if left:
            raise EOFError(name)
        self._write(bytes(-size % BLOCK))
        return digest.hexdigest()

    def cut(self, position: int) -> None:
        """Remove everything after a position."""
        os.ftruncate(self._fd, position)
        os.lseek(self._fd, position, os.SEEK_SET)
        self.position = position

    def finish(self) -> None:
        """Write the end mark and flush it to disk."""
        self._write(bytes(2 * BLOCK))
        sync(self._fd)

    def _write(self, data: bytes) -> None:
        if data:
            jsonl.write_all(self._fd, data)
            self.position += len(data)


def _header(name: str, size: int) -> bytes:
    from tarfile import PAX_FORMAT, TarInfo  # noqa: PLC0415 — only where a backup is written

    info = TarInfo(name)  # time, owner and group 0: the same files make the same bytes
    info.size, info.mode = size, 0o600
    return info.tobuf(PAX_FORMAT)


def members(fd: int, path: str) -> Iterator[Member]:
    """Yield the files of a tar; raise Damaged for anything that `TarWriter` does not write."""
    size, at, count = os.fstat(fd).st_size, 0, 0
    long_name, pax_size = "", 0
    while True:
        block = jsonl.read_at(fd, at, BLOCK)
        if at == 0 and block[257:262] != _MAGIC:
            raise not_a_backup(path, "not a backup: `daypack backup` writes tar files")
        if len(block) < BLOCK:
            raise not_a_backup(path, "the end is missing: the file was cut off")
        if not any(block):
            _check_end(fd, at, size, path)
            return
        name, length, kind = _parse(block, path)
        at += BLOCK
        if kind == _PAX and not (long_name or pax_size):
            if length > _MOST_PAX:
                raise not_a_backup(path, "a name is too long")
            long_name, pax_size = _parse_pax(jsonl.read_at(fd, at, length), path)
            at += length + -length % BLOCK
            continue
        if kind != _FILE:
            raise not_a_backup(path, f"member {name!r} is not a plain file")
        length = pax_size or length
        if at + length > size:
            raise not_a_backup(path, f"member {long_name or name!r} is longer than the file")
        count += 1
        if count > MOST_MEMBERS:
            raise not_a_backup(path, f"more than {MOST_MEMBERS:,} members")
        yield Member(long_name or name, at, length)
        at += length
        padding = -length % BLOCK
        if any(jsonl.read_at(fd, at, padding)):
            raise not_a_backup(path, f"bytes between the members, after {long_name or name!r}")
        at += padding
        long_name, pax_size = "", 0


def _check_end(fd: int, at: int, size: int, path: str) -> None:
    """Raise unless empty blocks end the file, two or more: other writers of tars fill up a record."""
    if size - at < 2 * BLOCK:
        raise not_a_backup(path, "the end is missing: the file was cut off")
    if size - at > _RECORD or any(jsonl.read_at(fd, at, size - at)):
        raise not_a_backup(path, "bytes after the end")


def read_member(fd: int, member: Member) -> Iterator[bytes]:
    """Yield the bytes of a member."""
    at, stop = member.offset, member.offset + member.size
    while at < stop and (data := jsonl.read_at(fd, at, min(_CHUNK, stop - at))):
        yield data
        at += len(data)


def not_a_backup(path: str, problem: str) -> Damaged:
    """Return the error for a file that is damaged, or was not written by `daypack backup`."""
    hint = "use another backup; nothing was restored from this one"
    return Damaged(problem, operation="read backup", place=path, hint=hint)


def _parse(block: bytes, path: str) -> tuple[str, int, bytes]:
    try:
        stated = int(block[148:156].rstrip(b"\0 ") or b"0", 8)
        if stated != sum(block[:148]) + 8 * 0x20 + sum(block[156:]):
            raise ValueError("checksum")
        length = int(block[124:136].rstrip(b"\0 ") or b"0", 8)
        name = block[:100].rstrip(b"\0").decode("ascii")
        if length < 0 or block[257:263] != b"ustar\0" or any(block[345:500]):
            raise ValueError("format")
    except ValueError as error:
        raise not_a_backup(path, "not a backup, or a damaged header") from error
    return name, length, block[156:157]


def _parse_pax(data: bytes, path: str) -> tuple[str, int]:
    """Return the `path` and `size` of a pax header; no other key is known."""
    values: dict[str, str] = {}
    try:
        while data:
            length = int(data[: data.index(b" ")])
            record = data[:length].decode()
            key, _, value = record[record.index(" ") + 1 :].partition("=")
            if length < 1 or not value.endswith("\n") or key not in ("path", "size") or key in values:
                raise ValueError(key)
            values[key] = value[:-1]
            data = data[length:]
        size = int(values.get("size", "0"))
        if size < 0:
            raise ValueError("size")
        return values.get("path", ""), size
    except ValueError as error:
        raise not_a_backup(path, "a damaged name") from error
