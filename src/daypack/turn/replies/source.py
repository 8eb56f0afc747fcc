"""The source of a reply that arrives in pieces: opened once, released once."""

from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task

_CLOSING: "set[Task[None]]" = set()  # an event loop does not keep its tasks alive


class Source:
    """A client's stream, a context manager that opens one, or an iterable of texts."""

    def __init__(self, given: object) -> None:
        self._given = given
        self.is_async = hasattr(given, "__aiter__") or not (hasattr(given, "__iter__") or hasattr(given, "__enter__"))
        self._opened: Any = None  # its iterator
        self._entered = False  # it is a context manager that was opened here
        self._released = False
        self._loop: AbstractEventLoop | None = None

    def pieces(self) -> Iterator[object]:
        """Return the iterator over what has not been read."""
        if self._opened is None:
            given: Any = self._given
            if not hasattr(given, "__iter__"):
                given = given.__enter__()
                self._entered = True
            self._opened = iter(given)
        return self._opened

    async def pieces_async(self) -> AsyncIterator[object]:
        """Do what `pieces` does, for an asynchronous source."""
        if self._opened is None:
            self._loop = running_loop()
            given: Any = self._given
            if not hasattr(given, "__aiter__"):
                given = await given.__aenter__()
                self._entered = True
            self._opened = aiter(given)
        return self._opened

    def release(self) -> None:
        """Close the connection; an asynchronous one is closed by its event loop, if that is running."""
        with suppress(Exception):  # it is of no use any more
            if not self.is_async:
                self._close()
            elif self._loop and self._loop.is_running() and not self._released:
                self._loop.call_soon_threadsafe(self._release_soon, self._loop)

    def _release_soon(self, loop: "AbstractEventLoop") -> None:
        task = loop.create_task(self.release_async())
        _CLOSING.add(task)
        task.add_done_callback(_CLOSING.discard)

    async def release_async(self) -> None:
        """Do what `release` does, for an asynchronous source."""
        with suppress(Exception):
            closed = self._close()
            if hasattr(closed, "__await__"):
                await cast("Awaitable[object]", closed)

    def _close(self) -> object:
        """Close it, or leave it if it was entered here; an asynchronous one returns what must be awaited."""
        released, self._released = self._released, True
        for name in ("__aexit__", "__exit__") if self._entered else ("aclose", "close"):
            if not released and callable(close := getattr(self._given, name, None)):
                return close(None, None, None) if self._entered else close()
        return None


def running_loop() -> "AbstractEventLoop | None":
    """Return the event loop that runs in this thread, if it is asyncio's."""
    import asyncio  # noqa: PLC0415 — 30 ms that only asynchronous callers pay, who have it already

    try:
        return asyncio.get_running_loop()
    except RuntimeError:  # an event loop that is not asyncio's
        return None
