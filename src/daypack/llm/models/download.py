"""Downloads of large files: they resume after an interruption and get their final name only after a digest check.

<file>.part        the bytes so far, locked by the process that downloads
<file>.part.json   {"url":"https://…","etag":"\\"9f…\\"","sha256":"ab…","size_bytes":1107409472}
"""

import errno
import fcntl
import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException
from typing import Literal

import msgspec
from msgspec import Struct

from daypack.errors import ModelFailed, ModelMissing, StorageFailed, WriteFailed
from daypack.files.durable import sync, sync_path
from daypack.forks import forks
from daypack.llm.addresses import origin
from daypack.llm.client import (
    ANY_ORIGIN,
    NETWORK_ERRORS,
    BusyServer,
    Exchange,
    RedirectRefused,
    Request,
    Response,
    Retry,
    describe_error,
    open_exchange,
    send_with_retries,
)
from daypack.plain_files import open_plain
from daypack.types.deadline import NO_DEADLINE

RETRY = Retry(if_broken=True)
_IDLE_SECONDS = 60.0
_READ_BYTES = 1 << 18
_HEX = frozenset("0123456789abcdef")

Progress = Callable[[int, int], None]  # bytes so far, bytes in total or 0


class Fetched(Struct, frozen=True):
    """A downloaded file. `verified` says where the digest it was compared with came from, "" if there was none."""

    url: str
    sha256: str
    size_bytes: int
    verified: Literal["", "given", "hub"] = ""


class _Note(Struct, frozen=True, omit_defaults=True):
    """The file that a .part file is the beginning of."""

    url: str
    etag: str = ""
    sha256: str = ""
    size_bytes: int = 0


def fetch(
    url: str, path: str, *, sha256: str | None = None, progress: Progress | None = None, retry: Retry = RETRY
) -> Fetched:
    """Download a file to `path`, resuming an earlier attempt.

    The bytes are compared with `sha256`, else with the digest the hub announces.
    """
    download = _Download(url, path, (sha256 or "").lower(), progress or (lambda _done, _total: None))
    try:
        return send_with_retries(download.attempt, retry, progress=lambda: download.done)
    except RedirectRefused as error:
        hint = "name another address with --from" if error.target else "check the address"
        raise ModelFailed(str(error), operation="download", place=url, hint=hint) from error
    except NETWORK_ERRORS as error:
        hint = "try again: the download resumes at its last byte" if download.done else "check the address"
        raise ModelFailed(describe_error(error), operation="download", place=url, hint=hint) from error
    finally:
        download.close()


class _Download:
    """A download in progress: `done` counts the bytes in the .part file."""

    def __init__(self, url: str, path: str, sha256: str, progress: Progress) -> None:
        self._url = url
        self._path = path
        self._part = f"{path}.part"
        self._given = sha256
        self._progress = progress
        self._fd = self._open()
        forks.watch(self)
        self._note = self._read_note()
        self._hash = hashlib.sha256()
        self.done = 0
        if self._note is not None:
            self._read_part()
        else:
            self._restart()

    def attempt(self) -> Fetched:
        """Request the missing bytes; raise one of NETWORK_ERRORS if not all of them arrive."""
        headers = {"Accept-Encoding": "identity", "Connection": "close", "User-Agent": "daypack"}
        if self._note and self.done:
            headers["Range"] = f"bytes={self.done}-"
            if self._note.etag:
                headers["If-Range"] = self._note.etag
        request = Request("GET", self._url, headers=headers)
        with open_exchange(request, deadline=NO_DEADLINE, redirects=ANY_ORIGIN, idle_seconds=_IDLE_SECONDS) as exchange:
            announced = self._read_announcement(exchange)
            self._check_response(exchange, announced)
            if exchange.status != 416:
                self._receive(exchange, announced)
        return self._finish()

    def close(self) -> None:
        """Release the file and its lock; an empty .part file is deleted."""
        fd, self._fd = self._fd, -1
        if fd < 0:
            return
        with suppress(OSError):
            if not self.done:
                os.unlink(self._part)
            fcntl.flock(fd, fcntl.LOCK_UN)  # explicit: a child that was just forked may not have closed it yet
        with suppress(OSError):
            os.close(fd)

    def forget(self) -> None:
        """In a forked child: close the file, or it would hold the lock as long as the child lives."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def _read_announcement(self, exchange: Exchange) -> _Note:
        """Read what the hub announces about the file, in its response or in a redirect to a storage host."""
        sha256, size = "", 0
        hops = [*exchange.history, (exchange.url, exchange.headers)]
        for url, headers in hops:
            if origin(url) == origin(self._url):
                sha256 = _digest(headers.get("x-linked-etag", "")) or sha256
                linked = headers.get("x-linked-size", "")
                size = int(linked) if linked.isdigit() else size
        etag = exchange.headers.get("etag", "")
        strong = "" if etag.startswith("W/") else etag
        return _Note(self._url, strong, sha256 or _digest(etag), size)

    def _check_response(self, exchange: Exchange, announced: _Note) -> None:
        """Prepare the .part file for the body; raise HTTPException if the request must be sent again."""
        status, note = exchange.status, self._note
        if status in (401, 403, 404, 410):
            problem = f"the file does not exist or is not accessible (HTTP {status})"
            raise ModelMissing(problem, operation="download", place=self._url, hint="check the address")
        span = exchange.headers.get("content-range", "")
        if status == 416 and self.done:
            if not span.endswith(f"/{self.done}"):  # otherwise the .part file is complete
                self._restart()
                raise HTTPException("the file is shorter than before")
            return
        if status in RETRY.busy_statuses:
            raise BusyServer(Response(status, exchange.headers, b""))
        if status not in (200, 206):
            raise HTTPException(f"HTTP {status}")
        if self._given and announced.sha256 and self._given != announced.sha256:
            hint = f"the hub announces sha256 {announced.sha256}; check the source of your digest"
            raise self._failed("the file is not the one you named", hint)
        if status == 200:
            self._restart()  # the file has changed, or the server does not support ranges
        elif not span.startswith(f"bytes {self.done}-") or (note and not _same(note, announced)):
            self._restart()
            raise HTTPException("the file has changed")

    def _receive(self, exchange: Exchange, announced: _Note) -> None:
        known = "content-length" in exchange.headers
        total = announced.size_bytes or (self.done + exchange.missing_bytes if known else 0)
        self._check_room(total - self.done)
        self._write_note(msgspec.structs.replace(announced, size_bytes=total))
        while data := exchange.read(_READ_BYTES):
            self._write(data)
            self._progress(self.done, total)
        if exchange.missing_bytes or self.done < total:
            raise HTTPException("the connection was cut off")

    def _finish(self) -> Fetched:
        note, sha256 = self._note or _Note(self._url), self._hash.hexdigest()
        expected = self._given or note.sha256
        if expected and sha256 != expected:
            self._restart()
            hint = "the bytes were deleted; try again, or name another address with --from"
            raise self._failed(f"wrong digest: sha256 is {sha256}, expected {expected}", hint)
        verified = "given" if self._given else "hub" if note.sha256 else ""
        fetched = Fetched(self._url, sha256, self.done, verified)
        try:
            sync(self._fd)
            write_file(f"{self._path}.json", msgspec.json.encode(fetched))
            os.replace(self._part, self._path)
            sync_path(os.path.dirname(self._path) or ".", os.O_DIRECTORY)
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
                raise BlockingIOError  # the other process has just given it its final name
        except OSError as error:
            os.close(fd)
            raise self._failed("another process is downloading this file", "wait for it, then try again") from error
        return fd

    def _read_note(self) -> _Note | None:
        try:
            with open_plain(f"{self._part}.json") as file:
                note = msgspec.json.decode(file.read(), type=_Note)
        except (OSError, msgspec.MsgspecError):
            return None
        # Without an ETag or a digest the rest cannot be matched to the beginning.
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
                error.strerror or str(error), operation="download", place=self._part, hint="delete it, then try again"
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
            return  # then a full disk fails the write
        if wanted > status.f_bavail * status.f_frsize:
            raise self._unwritable(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), wanted)

    def _unwritable(self, error: OSError, wanted: int = 0) -> WriteFailed:
        room = f"{wanted:,} more bytes are needed; " if wanted else ""
        hint = f"{room}free space or fix permissions, then try again: the download resumes"
        return WriteFailed(error.strerror or str(error), operation="download", place=self._part, hint=hint)

    def _failed(self, problem: str, hint: str) -> ModelFailed:
        return ModelFailed(problem, operation="download", place=self._url, hint=hint)


def write_file(path: str, data: bytes) -> None:
    """Replace a small file atomically."""
    temporary = f"{path}.tmp-{os.getpid()}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            sync(fd)
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _same(note: _Note, announced: _Note) -> bool:
    return note.sha256 == announced.sha256 and note.etag == announced.etag


def _digest(etag: str) -> str:
    """Return an ETag that is a sha256, "" for any other."""
    text = etag.removeprefix("W/").strip('"').lower()
    return text if len(text) == 64 and set(text) <= _HEX else ""
