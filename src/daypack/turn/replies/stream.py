"""The stream of a reply for the caller: text piece by piece, with `for` or `async for`; its end stores the reply."""

from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, Self

from daypack.errors import BadInput, EmptyReply
from daypack.turn.dialects.reply_fields import is_stream, unusable
from daypack.turn.replies.reception import ABANDONED, Reception
from daypack.turn.replies.source import Source, running_loop
from daypack.types.history import Message

if TYPE_CHECKING:
    from asyncio import Future

_AWAITED = "this stream is asynchronous"
_SYNC = "this stream is not asynchronous"


class ReplyStream:
    """The reply of one call while it arrives.

    for text in session.stream(client.chat.completions.create(stream=True, …)):
        print(text, end="", flush=True)

    When the source ends, the whole reply is stored with its usage, and `message` has it. Closing the stream before
    stores what came, marked incomplete; so does an error of the source, and leaving the loop.
    """

    def __init__(self, source: Source, reception: Reception, owner: object = None) -> None:
        self._source = source
        self._owner = owner  # the session: dropped before its stream, it would end it
        self._reception = reception

    @property
    def is_async(self) -> bool:
        """True if it is read with `async for`."""
        return self._source.is_async

    @property
    def message(self) -> Message | None:
        """The message as stored; None before the end, and if nothing came. After a loop that was left: what came."""
        if self._reception.abandoned:
            self._reception.abandon()
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

    def __del__(self) -> None:
        # Only a mark: the garbage collector may call this anywhere, even while this thread holds the session's lock.
        self._reception.left = True

    def read_next(self) -> str:
        """Return the next text; raise StopIteration once the reply is stored."""
        reception = self._reception
        reception.require_session()
        while not reception.ended:
            try:
                text = self._read()
            except BaseException as error:
                closed = reception.ended
                self._finish(type(error).__name__)
                if closed and isinstance(error, Exception):
                    break  # another thread closed it, and the source with it
                raise
            if text is None:
                self._finish(None)
                text = reception.rest()
            if text:
                return text
        raise StopIteration

    def _read(self) -> str | None:
        """Read the source up to the next text; None at its end."""
        for piece in self._source.pieces():
            if (text := self._reception.take(piece)) or self._reception.ended:
                return text
        return None

    async def read_next_async(self) -> str:
        """Return the next text; raise StopAsyncIteration once the reply is stored."""
        reception = self._reception
        reception.require_session()
        while not reception.ended:
            try:
                text = await self._read_async()
            except BaseException as error:
                closed = reception.ended
                await self._finish_async(type(error).__name__)
                if closed and isinstance(error, Exception):
                    break
                raise
            if text is None:
                await self._finish_async(None)
                text = reception.rest()
            if text:
                return text
        raise StopAsyncIteration

    async def _read_async(self) -> str | None:
        async for piece in await self._source.pieces_async():
            if (text := self._reception.take(piece)) or self._reception.ended:
                return text
        return None

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
            problem = "the stream ended before anything came; nothing was stored"
            raise EmptyReply(problem, operation="accept", place="stream", hint="call the model again")
        return self.message

    def __await__(self) -> Generator[Any, Any, Message]:
        return self.adrain().__await__()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _finish(self, reason: str | None) -> None:
        """Release the connection and store what came."""
        try:
            self._source.release()
        finally:
            self._reception.end(reason)

    async def _finish_async(self, reason: str | None) -> None:
        try:
            await self._source.release_async()
        finally:
            if not self._reception.ended:
                await _in_thread(lambda: self._reception.end(reason))


class _Pieces:
    """The iterator of one loop. When the loop is left, what came is stored with the session's next operation."""

    def __init__(self, stream: ReplyStream, reception: Reception) -> None:
        self._stream = stream
        self._reception = reception
        reception.readers.add(id(self))

    def __iter__(self) -> Self:
        return self

    def __aiter__(self) -> Self:
        return self

    def __next__(self) -> str:
        return self._stream.read_next()

    async def __anext__(self) -> str:
        return await self._stream.read_next_async()

    def __del__(self) -> None:
        self._reception.left = True  # only a mark, as above
        self._reception.readers.discard(id(self))


async def _in_thread(store: Callable[[], object]) -> None:
    """Store without blocking the event loop; a second cancellation does not stop it."""
    import asyncio  # noqa: PLC0415 — as in `running_loop`

    if running_loop() is None:
        store()
        return
    storing = asyncio.ensure_future(asyncio.to_thread(store))
    storing.add_done_callback(_note_failure)
    await asyncio.shield(storing)


def _note_failure(storing: "Future[object]") -> None:
    """Look at the error of a storing that no task waits for any more: the session's next operation tries again."""
    if not storing.cancelled():
        storing.exception()


def check_source(source: object) -> None:
    """Refuse what is no stream."""
    if hasattr(source, "__await__"):
        raise unusable("has not been awaited", "stream", "write: stream = await client…")
    if isinstance(source, BaseException):
        raise unusable(f"is an error: {source}", "stream", "a failed call has nothing to append")
    listed = isinstance(source, (list, tuple))
    if not listed and not is_stream(source):
        hint = "pass stream=True to the client's call, or give a finished reply to session.accept"
        raise unusable(f"is a {type(source).__name__}, not a client's stream", "stream", hint)
