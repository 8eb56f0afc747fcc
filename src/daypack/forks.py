"""What a forked child must not inherit: locks held by threads that it does not have, and state they had half changed.

A fork copies the memory of a process, but only the thread that forked. A lock that another thread held stays locked in
the child for good, and what it protected may be half changed. So locks are new in the child, and what another thread
was changing is dropped and read again.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cached_property as _locked_property
from types import FrameType
from typing import Any, Protocol, TypeVar
from weakref import WeakMethod, WeakSet

_MAX_WAIT_SECONDS = 5.0  # a fork waits at most so long for other threads
_POLL_SECONDS = 0.001
_IMPORTLIB = "<frozen importlib._bootstrap>"
_PACKAGE = os.path.dirname(__file__) + os.sep

Value = TypeVar("Value")


class Forgetful(Protocol):
    """Something that drops, in a forked child, what belongs to its parent."""

    def forget(self) -> None:
        """Drop it; the only thread of the child calls this, before anything else runs there."""
        ...


class Forks:
    """Counts forks, and has things drop what a child must not inherit."""

    def __init__(self) -> None:
        self.count = 0
        self._forgetful: WeakSet[Forgetful] = WeakSet()
        self._postponing: list[int] = []  # threads within `postponed`
        os.register_at_fork(before=self._wait, after_in_child=self._forked)

    def watch(self, thing: Forgetful) -> None:
        """Call its `forget` in every child forked from now on, as long as something else refers to it."""
        self._forgetful.add(thing)

    @contextmanager
    def postponed(self) -> Generator[None]:
        """Let forks by other threads wait: for a library that could not do this in the child if it were half done."""
        thread = threading.get_ident()
        self._postponing.append(thread)
        try:
            yield
        finally:
            self._postponing.remove(thread)

    def _wait(self) -> None:
        """Wait for other threads that postpone forks, and for their imports, whose locks a child could not release."""
        own, until = threading.get_ident(), time.monotonic() + _MAX_WAIT_SECONDS
        while any(thread != own for thread in self._postponing[:]) or _is_importing(own):
            if time.monotonic() > until:
                return
            time.sleep(_POLL_SECONDS)

    def _forked(self) -> None:
        self.count += 1
        self._postponing = [thread for thread in self._postponing if thread == threading.get_ident()]
        for thing in list(self._forgetful):
            thing.forget()


class ThreadLock:
    """A reentrant lock for the threads of one process; a forked child gets a new one.

    `torn`, a method, is called in a child whose parent forked while another thread had the lock.
    """

    def __init__(self, torn: Callable[[], None] | None = None) -> None:
        self._torn = WeakMethod(torn) if torn else None  # a strong one would keep its object from being freed
        self._lock = threading.RLock()
        self._owner = 0
        self._depth = 0
        forks.watch(self)

    def forget(self) -> None:
        """In a forked child: take a new lock."""
        held = self._depth and self._owner != threading.get_ident()
        self._lock = threading.RLock()
        self._depth = 0
        if held and self._torn and (torn := self._torn()):
            torn()

    def __enter__(self) -> None:
        self._lock.acquire()
        self._owner = threading.get_ident()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        if self._depth:  # else this thread forked while it had the lock: the child has nothing to release
            self._depth -= 1
            self._lock.release()


class cached_property(_locked_property[Value]):  # noqa: N801 — used like the one it replaces
    """A property that is computed once; unlike that of Python 3.11, without a lock that a child could inherit."""

    def __get__(self, instance: object, owner: type[Any] | None = None) -> Any:  # noqa: ANN401 — as in the base
        if instance is None:
            return self
        value = instance.__dict__[self.attrname or ""] = self.func(instance)
        return value


def _is_importing(own: int) -> bool:
    """Return True if another thread is within an import that this package asked for."""
    frames = sys._current_frames()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] — documented, in spite of its name
    return any(_imports(frame) for thread, frame in frames.items() if thread != own)


def _imports(frame: FrameType | None) -> bool:
    """Return True if code of this package waits for an import: what others import is their own business."""
    called = ""
    while frame is not None:
        place = frame.f_code.co_filename
        if called == _IMPORTLIB and place.startswith(_PACKAGE):
            return True
        called, frame = place, frame.f_back
    return False


forks = Forks()
