"""Limits numpy's OpenBLAS to one thread while our small matrices are multiplied.

Threads that wait for each other on busy cores spin: with two threads on two busy cores the same vectors cost 2 to 10
times the CPU time. threadpoolctl cannot do this: its limits belong to the first thread that sets one and end with it,
although other threads are still inside.
"""

import ctypes
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache

from daypack.forks import ThreadLock

# Symbol prefixes and suffixes of OpenBLAS in numpy's wheels and in distributions. Other libraries are left alone.
_AFFIXES = (("scipy_", "64_"), ("scipy_", ""), ("", "64_"), ("", ""))

_lock = ThreadLock()
_users = 0
_original = 0


@contextmanager
def single_threaded() -> Generator[None]:
    """Multiply matrices on the calling thread alone; the last thread to leave restores the setting."""
    global _users, _original  # noqa: PLW0603 — the library has one setting for the process
    controls = _controls()
    if controls is None:
        yield
        return
    read, write = controls
    with _lock:
        if not _users:
            _original = read()
            write(1)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                write(_original)


@cache
def _controls() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Return the functions that get and set the number of threads; None without OpenBLAS."""
    module = sys.modules.get("numpy._core._multiarray_umath")
    if module is None or not module.__file__:
        return None
    try:
        library = ctypes.CDLL(module.__file__)  # already loaded; symbols are also looked up in its dependencies
    except OSError:
        return None
    for prefix, suffix in _AFFIXES:
        try:
            read = library[f"{prefix}openblas_get_num_threads{suffix}"]
            write = library[f"{prefix}openblas_set_num_threads{suffix}"]
        except AttributeError:
            continue
        write.restype = None
        return read, write
    return None
