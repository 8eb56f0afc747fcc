"""Downloads of large files: they go on where they stopped, and nothing unchecked gets the final name.

<file>.part        the bytes so far, locked by whoever writes them
<file>.part.json   {"url":"https://…","etag":"\\"9f…\\"","sha256":"ab…","size_bytes":1107409472}
"""

import errno
import fcntl
import hashlib
import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Literal
from urllib.parse import urljoin

import msgspec
from msgspec import Struct

from daypack.errors import ModelFailed, ModelMissing, StorageFailed, WriteFailed
from daypack.llm.client import TROUBLE, Deadline, Exchange, Request, origin, reason

ATTEMPTS = 5  # in a row that bring nothing
MAX_REDIRECTS = 5
_IDLE_SECONDS = 60.0
_READ_BYTES = 1 << 18
_HEX = frozenset("0123456789abcdef")

Progress = Callable[[int, int], None]  # bytes so far, bytes of the whole or 0


class Fetched(Struct, frozen=True):
    """A file that was fetched: whose digest proved it is in `verified`, "" when there was none to compare with."""

    url: str
    sha256: str
    size_bytes: int
    verified: Literal["", "given", "hub"] = ""


class _Note(Struct, frozen=True, omit_defaults=True):
    """What the bytes of a .part file are the beginning of."""

    url: str
    etag: str = ""
    sha256: str = ""
    size_bytes: int = 0


class _Cut(Exception):
    """The connection ended before the file did, or could not be made."""


def fetch(
    url: str, path: str, *, sha256: str | None = None, progress: Progress | None = None, pause_seconds: float = 0.5
) -> Fetched:
    """Fetch a file to `path`, going on where an earlier attempt stopped.

    The bytes are compared with `sha256`, else with the digest the hub announces.
    """
    download = _Download(url, path, (sha256 or "").lower(), progress or (lambda _done, _total: None))
    try:
        failures, pause = 0, pause_seconds
        while True:
            before = download.done
            try:
                return download.attempt()
            except _Cut as cut:
                failures, pause = (0, pause_seconds) if download.done > before else (failures + 1, pause)
                if failures == ATTEMPTS:
                    hint = "try again: it goes on where it stopped" if download.done else "check the address"
                    raise ModelFailed(str(cut), operation="download", place=url, hint=hint) from cut.__cause__
            time.sleep(pause)
            pause *= 2
    finally:
        download.close()


class _Download:
    """One file on its way."""

    def __init__(self, url: str, path: str, sha256: str, progress: Progress) -> None:
        self._url = url
        self._path = path
        self._part = f"{path}.part"
        self._given = sha256
        self._progress = progress
        self._fd = self._open()
        self._note = self._read_note()
        self._hash = hashlib.sha256()
        self.done = 0
        if self._note is not None:
            self._read_part()
        else:
            self._restart()

    def attempt(self) -> Fetched:
        """Fetch what is missing; _Cut when not all of it came."""
        headers = {"Accept-Encoding": "identity", "Connection": "close", "User-Agent": "daypack"}
        if self._note and self.done:
            headers["Range"] = f"bytes={self.done}-"
            if self._note.etag:
                headers["If-Range"] = self._note.etag
        try:
            exchange, announced = self._follow(headers)
            with exchange:
                self._make_ready(exchange, announced)
                if exchange.status != 416:
                    self._take(exchange, announced)
        except TROUBLE as error:
            raise _Cut(reason(error)) from error
        return self._finish()

    def close(self) -> None:
        """Let go of the file and its lock; a file without a byte is of no use to anybody."""
        with suppress(OSError):
            if not self.done:
                os.unlink(self._part)
            os.close(self._fd)

    def _follow(self, headers: dict[str, str]) -> tuple[Exchange, _Note]:
        """Ask, going where the hub sends us; what it announces of the file on the way is kept."""
        url, sha256, size = self._url, "", 0
        for _ in range(MAX_REDIRECTS + 1):
            exchange = Exchange(
                Request("GET", url, headers=headers), deadline=Deadline(float("inf")), idle_seconds=_IDLE_SECONDS
            )
            told = exchange.headers
            if origin(url) == origin(self._url):
                sha256 = _digest(told.get("x-linked-etag", "")) or sha256
                linked = told.get("x-linked-size", "")
                size = int(linked) if linked.isdigit() else size
            if exchange.status not in (301, 302, 303, 307, 308):
                etag = told.get("etag", "")
                sha256 = sha256 or _digest(etag)
                strong = "" if etag.startswith("W/") else etag
                return exchange, _Note(self._url, strong, sha256, size)
            exchange.close()
            former, url = url, urljoin(url, told.get("location", ""))
            if former.startswith("https:") and not url.startswith("https:"):
                raise self._failed("the hub sends us to an unprotected address", "name another address with --from")
        raise self._failed(f"more than {MAX_REDIRECTS} redirects", "check the address")

    def _make_ready(self, exchange: Exchange, announced: _Note) -> None:
        """Make ready for the body that comes; _Cut when the question must be put again."""
        status, note = exchange.status, self._note
        if status in (401, 403, 404, 410):
            problem = f"there is no such file for us (HTTP {status})"
            raise ModelMissing(problem, operation="download", place=self._url, hint="check the address")
        span = exchange.headers.get("content-range", "")
        if status == 416 and self.done:
            if not span.endswith(f"/{self.done}"):  # else all of it was here already
                self._restart()
                raise _Cut("the file is shorter than it was")
            return
        if status not in (200, 206):
            raise _Cut(f"HTTP {status}")
        if self._given and announced.sha256 and self._given != announced.sha256:
            hint = f"the hub announces sha256 {announced.sha256}; compare with where you have yours from"
            raise self._failed("the file is not the one you named", hint)
        if status == 200:
            self._restart()  # another file than before, or a server that has no ranges
        elif not span.startswith(f"bytes {self.done}-") or (note and not _same(note, announced)):
            self._restart()
            raise _Cut("the file is another one than before")

    def _take(self, exchange: Exchange, announced: _Note) -> None:
        known = "content-length" in exchange.headers
        total = announced.size_bytes or (self.done + exchange.missing_bytes if known else 0)
        self._check_room(total - self.done)
        self._write_note(msgspec.structs.replace(announced, size_bytes=total))
        while data := exchange.read(_READ_BYTES):
            self._write(data)
            self._progress(self.done, total)
        if exchange.missing_bytes or self.done < total:
            raise _Cut("the connection was cut off")

    def _finish(self) -> Fetched:
        note, sha256 = self._note or _Note(self._url), self._hash.hexdigest()
        expected = self._given or note.sha256
        if expected and sha256 != expected:
            self._restart()
            hint = "the bytes were thrown away; try again, or name another address with --from"
            raise self._failed(f"the bytes are not the announced ones: sha256 is {sha256}, not {expected}", hint)
        verified = "given" if self._given else "hub" if note.sha256 else ""
        fetched = Fetched(self._url, sha256, self.done, verified)
        try:
            os.fsync(self._fd)
            write_file(f"{self._path}.json", msgspec.json.encode(fetched))
            os.replace(self._part, self._path)
            sync_folder(os.path.dirname(self._path))
            os.unlink(f"{self._part}.json")
        except OSError as error:
            raise self._unwritable(error) from error
        return fetched

    # The .part file

    def _open(self) -> int:
        try:
            os.makedirs(os.path.dirname(self._path), 0o700, exist_ok=True)
            fd = os.open(self._part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StorageFailed(
                error.strerror or str(error), operation="download", place=self._part, hint="check permissions"
            ) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(fd).st_ino != os.stat(self._part).st_ino:
                raise BlockingIOError  # the other one gave it its final name just now
        except OSError as error:
            os.close(fd)
            raise self._failed("another process is fetching this file", "wait for it, then try again") from error
        return fd

    def _read_note(self) -> _Note | None:
        try:
            with open(f"{self._part}.json", "rb") as file:
                note = msgspec.json.decode(file.read(), type=_Note)
        except (OSError, msgspec.MsgspecError):
            return None
        # Without a name for its content nobody can tell whether the rest belongs to the beginning.
        return note if note.url == self._url and (note.etag or note.sha256) else None

    def _write_note(self, note: _Note) -> None:
        if note != self._note:
            try:
                write_file(f"{self._part}.json", msgspec.json.encode(note))
            except OSError as error:
                raise self._unwritable(error) from error
        self._note = note

    def _read_part(self) -> None:
        try:
            while data := os.read(self._fd, 1 << 20):
                self._hash.update(data)
                self.done += len(data)
        except OSError as error:
            raise StorageFailed(
                error.strerror or str(error), operation="download", place=self._part, hint="remove it, then try again"
            ) from error

    def _restart(self) -> None:
        try:
            with suppress(FileNotFoundError):
                os.unlink(f"{self._part}.json")
            os.ftruncate(self._fd, 0)
            os.lseek(self._fd, 0, os.SEEK_SET)
        except OSError as error:
            raise self._unwritable(error) from error
        self._hash, self._note, self.done = hashlib.sha256(), None, 0

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                count = os.write(self._fd, view)
            except OSError as error:
                raise self._unwritable(error) from error
            self._hash.update(view[:count])
            self.done += count
            view = view[count:]

    def _check_room(self, wanted: int) -> None:
        try:
            status = os.fstatvfs(self._fd)
        except OSError:
            return  # then the write will tell
        if wanted > status.f_bavail * status.f_frsize:
            raise self._unwritable(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), wanted)

    def _unwritable(self, error: OSError, wanted: int = 0) -> WriteFailed:
        room = f"it wants {wanted:,} bytes more; " if wanted else ""
        hint = f"{room}free space or fix permissions, then try again: it goes on where it stopped"
        return WriteFailed(error.strerror or str(error), operation="download", place=self._part, hint=hint)

    def _failed(self, problem: str, hint: str) -> ModelFailed:
        return ModelFailed(problem, operation="download", place=self._url, hint=hint)


def write_file(path: str, data: bytes) -> None:
    """Replace a small file as a whole."""
    temporary = f"{path}.tmp-{os.getpid()}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(fd)
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def sync_folder(folder: str) -> None:
    """Make the names in a folder durable."""
    fd = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _same(note: _Note, announced: _Note) -> bool:
    return note.sha256 == announced.sha256 and note.etag == announced.etag


def _digest(etag: str) -> str:
    """Return the sha256 an ETag of a large file is, "" when it is something else."""
    text = etag.removeprefix("W/").strip('"').lower()
    return text if len(text) == 64 and set(text) <= _HEX else ""
