"""Two paths exchanged in one step (renameat2, renamex_np), so that each always names something whole."""

import errno
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

_EXCHANGE = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS
_HERE = -100  # AT_FDCWD: paths are relative to the working folder
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)


def exchange(path: str, other: str, aside: str) -> None:
    """Exchange two paths of one file system; where it cannot, move `other` to `aside` first, then `path` there."""
    code = _swap()(path, other)
    if code in _UNSUPPORTED:
        os.rename(other, aside)
        os.rename(path, other)
    elif code:
        raise OSError(code, os.strerror(code), other)


@cache
def _swap() -> Callable[[str, str], int]:
    import ctypes  # noqa: PLC0415 — 10 ms, only here

    return find_swap(ctypes.CDLL(None, use_errno=True))


def find_swap(library: Any, platform: str = sys.platform) -> Callable[[str, str], int]:  # noqa: ANN401 — a C library
    """Return what exchanges two paths by a function of the C library and returns its error code."""
    import ctypes  # noqa: PLC0415

    name, start = ("renamex_np", ()) if platform == "darwin" else ("renameat2", (_HERE,))
    function = getattr(library, name, None)

    def call(path: str, other: str) -> int:
        if function is None:
            return errno.ENOSYS
        failed = function(*start, os.fsencode(path), *start, os.fsencode(other), _EXCHANGE)
        return ctypes.get_errno() if failed else 0

    return call
