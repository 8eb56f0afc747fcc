"""Two paths exchanged in one step, so that each always names something whole (Linux's renameat2)."""

import errno
import os
from collections.abc import Callable
from functools import cache

_EXCHANGE = 2  # RENAME_EXCHANGE
_HERE = -100  # AT_FDCWD: paths are relative to the working folder
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)


def exchange(path: str, other: str, aside: str) -> None:
    """Exchange two paths of one file system; where it cannot, move `other` to `aside` first, then `path` there."""
    code = _renameat2()(path, other)
    if code in _UNSUPPORTED:
        os.rename(other, aside)
        os.rename(path, other)
    elif code:
        raise OSError(code, os.strerror(code), other)


def _refuse(path: str, other: str) -> int:  # noqa: ARG001 — as `call`
    return errno.ENOSYS


@cache
def _renameat2() -> Callable[[str, str], int]:
    """Return what calls renameat2 and returns its error code."""
    import ctypes  # noqa: PLC0415 — 10 ms, only here

    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return _refuse

    def call(path: str, other: str) -> int:
        done = function(_HERE, os.fsencode(path), _HERE, os.fsencode(other), _EXCHANGE)
        return ctypes.get_errno() if done else 0

    return call
