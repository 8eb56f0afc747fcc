"""Fault injection at file calls: calls are counted, and the n-th fails, writes half its data or kills the process."""

import errno
import fcntl
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Literal

from daypack.files import durable

CALLS = (
    "open",
    "write",
    "pwrite",
    "read",
    "pread",
    "fsync",
    "fdatasync",
    "ftruncate",
    "replace",
    "link",
    "unlink",
    "mkdir",
    "stat",
    "fstat",
    "lseek",
    "close",
)
FULL_SYNC = 51  # F_FULLFSYNC of macOS; no command of Linux
ERRORS = (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EINTR, errno.EACCES, errno.ENOLCK, errno.EROFS)
Fault = Literal["error", "kill", "short"]


class Faults:
    """Fails call number `at`, counted from 1, and with `persistent` all later ones; `calls` lists the names so far."""

    def __init__(self, at: int = 0, fault: Fault = "error", code: int = errno.EIO, *, persistent: bool = False) -> None:
        self.at = at
        self.fault = fault
        self.code = code
        self.persistent = persistent
        self.calls: list[str] = []
        self.hit = False

    @property
    def count(self) -> int:
        return len(self.calls)

    def call(self, name: str, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.calls.append(name)
        if self.at == 0 or not (self.count == self.at or (self.persistent and self.count > self.at)):
            return real(*args, **kwargs)
        self.hit = True
        if self.fault == "kill":
            if name in ("write", "pwrite"):
                real(args[0], args[1][: len(args[1]) // 2], *args[2:])
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fault == "short" and name in ("write", "pwrite") and self.count == self.at and len(args[1]) > 1:
            return real(args[0], args[1][: len(args[1]) // 2], *args[2:])
        if name == "close":
            real(*args, **kwargs)  # the descriptor is closed even when close reports an error
        raise OSError(self.code, os.strerror(self.code))


@contextmanager
def injected(faults: Faults) -> Generator[Faults]:
    """Route the file calls of this process through `faults`."""
    real = {name: getattr(os, name) for name in CALLS}
    flock, control = fcntl.flock, fcntl.fcntl

    def wrap(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: faults.call(name, function, *args, **kwargs)  # type: ignore[misc]

    for name, function in real.items():
        setattr(os, name, wrap(name, function))
    fcntl.flock = wrap("flock", flock)  # type: ignore[assignment]
    fcntl.fcntl = wrap("fcntl", control)  # type: ignore[assignment]
    try:
        yield faults
    finally:
        for name, function in real.items():
            setattr(os, name, function)
        fcntl.flock, fcntl.fcntl = flock, control  # type: ignore[assignment]


def calls_of(work: Callable[[], object], faults: Faults | None = None) -> list[str]:
    """Run `work` without a fault and return the names of its calls, in order."""
    with injected(faults or Faults()) as counting:
        work()
    return counting.calls


@contextmanager
def mac(refusal: int | None = None) -> Generator[list[int]]:
    """Sync as on macOS: by a full sync (here a call that only counts), or by fsync if the file system refuses it.

    Yields the descriptors that were synced fully. Faults that are injected inside reach both calls.
    """
    real, status, synced = durable.FULL_SYNC, os.fstat, list[int]()
    control: Callable[..., Any] = fcntl.fcntl

    def call(fd: int, command: int, *arguments: Any) -> Any:
        if command != FULL_SYNC:
            return control(fd, command, *arguments)
        if refusal is not None:
            raise OSError(refusal, os.strerror(refusal))
        status(fd)  # a closed descriptor is refused
        synced.append(fd)
        return 0

    durable.FULL_SYNC, fcntl.fcntl = FULL_SYNC, call  # type: ignore[assignment]
    try:
        yield synced
    finally:
        durable.FULL_SYNC, fcntl.fcntl = real, control  # type: ignore[assignment]


@contextmanager
def refused_writing(code: int) -> Generator[None]:
    """Fail every call that changes the file system, as on a full or read-only disk."""
    real = {name: getattr(os, name) for name in CALLS}

    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(code, os.strerror(code))

    def open_to_read(path: str, flags: int, *args: Any, **kwargs: Any) -> int:
        writing = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        return refuse() if writing else real["open"](path, flags, *args, **kwargs)

    for name in ("write", "pwrite", "fsync", "fdatasync", "ftruncate", "replace", "link", "unlink", "mkdir"):
        setattr(os, name, refuse)
    os.open = open_to_read  # type: ignore[assignment]
    try:
        yield
    finally:
        for name, function in real.items():
            setattr(os, name, function)
