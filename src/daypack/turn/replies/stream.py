"""The stream of a reply for the caller: text piece by piece, with `for` or `async for`; its end stores the reply."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any, Self, cast

from daypack.errors import BadInput, EmptyReply
from daypack.turn.dialects.reply_fields import is_stream, unusable
from daypack.turn.replies.reception import ABANDONED, Reception
from daypack.types.history import Message

_AWAITED = "this stream is asynchronous"
_SYNC = "this stream is not asynchronous"


class ReplyStream:
    """The reply of one call while it arrives.

    for text in session.stream(client.chat.completions.create(stream=True, …)):
        print(text, end="", flush=True)

    When the source ends, the whole reply is stored with its usage, and `message` has it. Closing the stream before
    stores what came, marked incomplete; so does an error of the source, and leaving the loop.
    """

    def __init__(self, source: object, reception: Reception) -> None:
        self._source = source
        self.is_async = hasattr(source, "__aiter__") or not (
            hasattr(source, "__iter__") or hasattr(source, "__enter__")
        )
        self._reception = reception
        self._opened: Any = None  # the source's iterator
        self._entered = False  # the source is a context manager that this stream opened

    @property
    def message(self) -> Message | None:
        """The message as stored; None before the end, and if nothing came."""
        return self._reception.message

    def __iter__(self) -> Iterator[str]:
        if self.is_async:
            hint = "write: async for text in session.stream(…)"
            raise BadInput(_AWAITED, operation="read stream", place="for", hint=hint)
        return _Pieces(self, self._reception)

    def __aiter__(self) -> AsyncIterator[str]:
        if not self.is_async:
            hint = "take the asynchronous client, or read it in a thread: await asyncio.to_thread(session.accept, …)"
            raise BadInput(_SYNC, operation="read stream", place="async for", hint=hint)
        return _Pieces(self, self._reception)

    def read_next(self) -> str:
        """Return the next text; raise StopIteration once the reply is stored."""
        reception = self._reception
        try:
            while not reception.ended:
                for piece in self._events():
                    if text := reception.take(piece):
                        return text
                if text := reception.rest():
                    return text
                self._finish(None)
        except BaseException as error:
            self._finish(type(error).__name__)
            raise
        raise StopIteration

    async def read_next_async(self) -> str:
        """Return the next text; raise StopAsyncIteration once the reply is stored."""
        reception = self._reception
        try:
            while not reception.ended:
                async for piece in await self._async_events():
                    if text := reception.take(piece):
                        return text
                if text := reception.rest():
                    return text
                await self._finish_async(None)
        except BaseException as error:
            await self._finish_async(type(error).__name__)
            raise
        raise StopAsyncIteration

    def close(self) -> Message | None:
        """Stop reading, store what came, and return the message; None if nothing came."""
        if self.is_async and not self._reception.ended:
            hint = "write: await stream.aclose()"
            raise BadInput(_AWAITED, operation="close stream", place="close", hint=hint)
        self._finish(ABANDONED)
        return self.message

    async def aclose(self) -> Message | None:
        """Do what `close` does, for an asynchronous source."""
        await self._finish_async(ABANDONED)
        return self.message

    def drain(self) -> Message:
        """Read to the end and return the message."""
        for _ in self:
            pass
        return self._stored()

    async def adrain(self) -> Message:
        """Do what `drain` does, for an asynchronous source."""
        async for _ in self:
            pass
        return self._stored()

    def _stored(self) -> Message:
        if self.message is None:
            problem = "ended before anything came; nothing was stored"
            raise EmptyReply(problem, operation="accept", place="stream", hint="call the model again")
        return self.message

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _events(self) -> Iterator[object]:
        if self._opened is None:
            source: Any = self._source
            if not hasattr(source, "__iter__"):
                self._entered, source = True, source.__enter__()
            self._opened = iter(source)
        return self._opened

    async def _async_events(self) -> AsyncIterator[object]:
        if self._opened is None:
            source: Any = self._source
            if not hasattr(source, "__aiter__"):
                self._entered, source = True, await source.__aenter__()
            self._opened = aiter(source)
        return self._opened

    def _finish(self, reason: str | None) -> None:
        """Release the connection and store what came."""
        try:
            if not self._reception.ended:
                with suppress(Exception):  # the connection is of no use any more
                    self._release()
        finally:
            self._reception.end(reason)

    async def _finish_async(self, reason: str | None) -> None:
        if self._reception.ended:
            return
        try:
            with suppress(Exception):
                released = self._release()
                if hasattr(released, "__await__"):
                    await cast("Awaitable[object]", released)
        finally:
            await _in_thread(lambda: self._reception.end(reason))

    def _release(self) -> object:
        """Close the source, or leave it if it was entered here; an asynchronous one returns what must be awaited."""
        source = self._source
        for name in ("__aexit__", "__exit__") if self._entered else ("aclose", "close"):
            if callable(close := getattr(source, name, None)):
                return close(None, None, None) if self._entered else close()
        return None


class _Pieces:
    """The iterator of one loop. When the loop is left, what came is stored with the session's next operation."""

    def __init__(self, stream: ReplyStream, reception: Reception) -> None:
        self._stream = stream
        self._reception = reception
        reception.abandoned = False

    def __iter__(self) -> Self:
        return self

    def __aiter__(self) -> Self:
        return self

    def __next__(self) -> str:
        return self._stream.read_next()

    async def __anext__(self) -> str:
        return await self._stream.read_next_async()

    def __del__(self) -> None:
        # Only a mark: the garbage collector may call this anywhere, even while this thread holds the session's lock.
        self._reception.abandoned = True


async def _in_thread(store: Callable[[], object]) -> None:
    """Store without blocking the event loop; a second cancellation does not stop it."""
    import asyncio  # noqa: PLC0415 — 30 ms that only asynchronous callers pay, who have it already

    try:
        asyncio.get_running_loop()
    except RuntimeError:  # an event loop that is not asyncio's
        store()
        return
    await asyncio.shield(asyncio.ensure_future(asyncio.to_thread(store)))


def check_source(source: object) -> None:
    """Refuse what is no stream."""
    if hasattr(source, "__await__"):
        raise unusable("has not been awaited", "stream", "write: stream = await client…")
    if isinstance(source, BaseException):
        raise unusable(f"is an error: {source}", "stream", "a failed call has nothing to append")
    listed = isinstance(source, (list, tuple))
    if not listed and not is_stream(source):
        hint = "pass stream=True to the client's call, or give a finished reply to session.accept"
        raise unusable(f"is no stream: {type(source).__name__}", "stream", hint)
