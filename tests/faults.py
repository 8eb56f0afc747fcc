"""Faults at any file call: the calls daypack makes are counted, and the n-th one fails, stops short or kills."""

import errno
import fcntl
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Literal

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
ERRORS = (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EINTR, errno.EACCES, errno.ENOLCK, errno.EROFS)
Fault = Literal["error", "kill", "short"]


class Faults:
    """What happens at which call; `count` says how many calls there were."""

    def __init__(self, at: int = 0, fault: Fault = "error", code: int = errno.EIO, *, persistent: bool = False) -> None:
        self.at = at
        self.fault = fault
        self.code = code
        self.persistent = persistent
        self.count = 0
        self.hit = False

    def call(self, name: str, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.count += 1
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
            real(*args, **kwargs)  # the descriptor is gone whatever close says
        raise OSError(self.code, os.strerror(self.code))


@contextmanager
def injected(faults: Faults) -> Generator[Faults]:
    """Let the calls of this process go through `faults`."""
    real = {name: getattr(os, name) for name in CALLS}
    flock = fcntl.flock

    def wrap(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: faults.call(name, function, *args, **kwargs)  # type: ignore[misc]

    for name, function in real.items():
        setattr(os, name, wrap(name, function))
    fcntl.flock = wrap("flock", flock)  # type: ignore[assignment]
    try:
        yield faults
    finally:
        for name, function in real.items():
            setattr(os, name, function)
        fcntl.flock = flock  # type: ignore[assignment]


@contextmanager
def refused_writing(code: int) -> Generator[None]:
    """Let every call that changes the file system fail, as on a read-only or a full one."""
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
