"""One thread for numpy's matrices: ours are small, and threads that wait for each other on busy cores spin.

Measured with two threads on two busy cores: 2 to 10 times the processor time for the same vectors.
"""

import ctypes
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache

# OpenBLAS as it comes with numpy, and as distributions have it. Another library keeps its own ways.
_ENDINGS = (("scipy_", "64_"), ("scipy_", ""), ("", "64_"), ("", ""))

_lock = threading.Lock()
_inside = 0
_before = 0


@contextmanager
def one_thread() -> Generator[None]:
    """Let matrices be multiplied by the calling thread alone; the setting comes back when the last one leaves."""
    global _inside, _before  # noqa: PLW0603 — the library has one setting for the process
    found = _controls()
    if found is None:
        yield
        return
    read, write = found
    with _lock:
        if not _inside:
            _before = read()
            write(1)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                write(_before)


@cache
def _controls() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Return what reads and what sets the number of threads; None where there is no such library."""
    module = sys.modules.get("numpy._core._multiarray_umath")
    if module is None or not module.__file__:
        return None
    try:
        library = ctypes.CDLL(module.__file__)  # is loaded already; a name is looked for in what it depends on, too
    except OSError:
        return None
    for before, after in _ENDINGS:
        try:
            read = library[f"{before}openblas_get_num_threads{after}"]
            write = library[f"{before}openblas_set_num_threads{after}"]
        except AttributeError:
            continue
        write.restype = None
        return read, write
    return None
