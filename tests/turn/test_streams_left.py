"""Streams that threads, forks, loops and the garbage collector leave: each reply is stored once, none stays open."""

import asyncio
import gc
import os
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from turn.clients import ask, check_next
from turn.scenes import stage

from daypack.errors import BadInput, SessionClosed, StorageFailed
from daypack.session import Session, open_session
from daypack.turn.replies.reception import Reception


class Connection:
    """A source that notes when it is closed."""

    def __init__(self, *texts: str) -> None:
        self._texts = iter(texts)
        self.closed = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        return next(self._texts)

    def close(self) -> None:
        self.closed += 1


class AwaitedConnection:
    """The same for an event loop."""

    def __init__(self, *texts: str) -> None:
        self._texts = list(texts)
        self.closed = 0

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        if not self._texts:
            raise StopAsyncIteration
        return self._texts.pop(0)

    async def close(self) -> None:
        self.closed += 1


def replies(session: Session) -> list[tuple[str, str | None]]:
    return [(message.text, message.incomplete) for message in session.messages() if message.role == "assistant"]


def test_a_left_connection_is_closed_with_the_next_operation(home: str) -> None:
    with stage(home) as session:
        ask(session)
        connection, kept = Connection("One ", "two"), Connection("Three ", "four")
        for _ in session.stream(connection):
            break
        session.append("user", "No.")
        assert connection.closed == 1
        stream = session.stream(kept)
        for _ in stream:
            break
        session.append("user", "No.")
        assert kept.closed == 1
        assert stream.close() is not None
        assert kept.closed == 1
        opened = Connection("Five ", "six")
        pieces = iter(session.stream(opened))
        next(pieces)
    assert opened.closed == 1


def test_a_left_connection_is_closed_by_its_event_loop(home: str) -> None:
    async def run(session: Session) -> None:
        connection = AwaitedConnection("One ", "two")
        async for _ in session.stream(connection):
            break
        await asyncio.to_thread(session.append, "user", "No.")
        while not connection.closed:
            await asyncio.sleep(0)

    with stage(home) as session:
        ask(session)
        asyncio.run(asyncio.wait_for(run(session), 60))
        assert replies(session) == [("One ", "abandoned")]


def test_a_loop_within_a_loop_does_not_end_the_outer_one(home: str) -> None:
    with stage(home) as session:
        ask(session)
        stream = session.stream(["One ", "two ", "three ", "four"])
        seen: list[str] = []
        for text in stream:
            seen.append(text)
            for inner in stream:
                seen.append(inner)
                break
            session.append_event("note", {})
            session.tail(1)
        assert "".join(seen) == "One two three four"
        assert replies(session) == [("One two three four", None)]


def test_streams_that_are_never_read_are_not_kept(home: str) -> None:
    with stage(home) as session:
        ask(session)
        for _ in range(10):
            session.stream(["One"])
        session.append("user", "No.")
        gc.collect()
        assert not [found for found in gc.get_objects() if isinstance(found, Reception)]
        assert replies(session) == []


def test_a_stream_keeps_its_session_open(home: str) -> None:
    def begin() -> Any:
        session = open_session("kept", home=home)
        ask(session)
        return session.stream(["One ", "two"])

    stream = begin()
    gc.collect()
    assert "".join(stream) == "One two"

    async def texts() -> AsyncIterator[str]:
        yield "Three"

    def accept() -> Any:
        return open_session("kept", home=home).accept(texts())

    assert asyncio.run(accept()).text == "Three"
    del stream
    with open_session("kept", home=home) as session:
        assert replies(session) == [("One two", None), ("Three", None)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("way", ["close", "append", "read"])
def test_a_forked_child_does_not_store_its_parents_reply(home: str, way: str) -> None:
    with stage(home) as session:
        ask(session)
        pieces = iter(session.stream(["One ", "two"]))
        next(pieces)
        if not (child := os.fork()):
            try:
                if way == "read":
                    list(pieces)
                elif way == "append":
                    del pieces
                    session.append("user", "Child.")
                session.close()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert list(pieces) == ["two"]
        assert replies(session) == [("One two", None)]
        check_next(session)


def test_closing_in_another_thread_ends_the_loop(home: str) -> None:
    """The reader waits in the source, which cannot be closed then and would have much more to say."""
    waiting, closed = threading.Event(), threading.Event()
    taken: list[int] = []

    def source() -> Iterator[str]:
        yield "One "
        waiting.set()
        closed.wait()
        for _ in range(100):
            taken.append(1)
            yield "two "

    with stage(home) as session:
        ask(session)
        stream = session.stream(source())

        def close() -> None:
            waiting.wait()
            stream.close()
            closed.set()

        closing = threading.Thread(target=close)
        closing.start()
        assert list(stream) == ["One "]
        closing.join()
        assert len(taken) == 1
        assert replies(session) == [("One ", "abandoned")]


def test_an_error_of_a_source_that_another_thread_closed_is_no_error(home: str) -> None:
    with stage(home) as session:
        ask(session)

        def source() -> Iterator[str]:
            yield "One "
            closing = threading.Thread(target=stream.close)
            closing.start()
            closing.join()
            raise ConnectionError("closed")

        stream = session.stream(source())
        assert list(stream) == ["One "]
        assert replies(session) == [("One ", "abandoned")]


def test_threads_that_meet_a_left_stream_store_it_once(home: str) -> None:
    with stage(home) as session:
        ask(session)
        failed: list[BaseException] = []

        def work(start: threading.Barrier) -> None:
            start.wait()
            try:
                session.tail(1)
            except BaseException as error:
                failed.append(error)

        for _ in range(50):
            for _ in session.stream(["One ", "two"]):
                break
            start = threading.Barrier(4)
            threads = [threading.Thread(target=work, args=(start,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert failed == []
        assert len(replies(session)) == 50


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_an_interrupt_while_a_reply_is_stored_does_not_lose_or_repeat_it(
    home: str, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    with stage(home) as session:
        ask(session)
        append = session.history.append

        def interrupted(drafts: Any) -> Any:
            if late:
                append(drafts)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(session.history, "append", interrupted)
            with pytest.raises(KeyboardInterrupt):
                list(session.stream(["One ", "two"]))
        assert replies(session) == [("One two", None)]
        check_next(session)


def test_a_stream_that_outlives_its_session_says_so(home: str) -> None:
    async def texts() -> AsyncIterator[str]:
        yield "One"

    with stage(home) as session:
        ask(session)
        stream, awaited = session.stream(iter(["One ", "two"])), session.stream(texts())
    with pytest.raises(SessionClosed, match="the session was closed before the stream was read"):
        list(stream)
    with pytest.raises(SessionClosed, match=r"before close\(\) or the end of `with`"):
        asyncio.run(awaited.adrain())


def test_the_message_of_a_loop_that_was_left_is_there_at_once(home: str) -> None:
    with stage(home) as session:
        ask(session)
        stream = session.stream(iter(["One ", "two"]))
        for _ in stream:
            assert stream.message is None
            break
        assert stream.message is not None
        assert (stream.message.text, stream.message.incomplete) == ("One ", "abandoned")


def test_a_stream_is_awaited_for_its_message(home: str) -> None:
    async def texts() -> AsyncIterator[str]:
        yield "One "
        yield "two"

    async def run(session: Session) -> str:
        return (await session.stream(texts())).text

    with stage(home) as session:
        ask(session)
        assert asyncio.run(run(session)) == "One two"
        with pytest.raises(BadInput, match="not asynchronous"):
            asyncio.run(session.stream(iter(["One"])).adrain())


def test_reading_works_while_a_left_stream_cannot_be_stored(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with stage(home) as session:
        ask(session)
        for _ in session.stream(iter(["One ", "two"])):
            break
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", fail)
            patch.setattr(os, "writev", fail)
            assert [message.text for message in session.tail(2)] == ["Go on."]
            assert len(session.messages()) == 1
            with pytest.raises(StorageFailed):
                session.append("user", "And now?")
        session.append("user", "And now?")
        assert [message.text for message in session.tail(2)] == ["One ", "And now?"]
