"""Replies that arrive in pieces: real clients, sync and awaited, with the protocol, and what is no stream."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import pytest
from model_endpoint import Call, ModelEndpoint, Say
from turn.clients import WAYS, Client, ask, check_next
from turn.scenes import stage
from turn.snapshot_replies import block, kept_of, section, taken_in, talking

from daypack.errors import BadInput
from daypack.session import Session
from daypack.turn.dialects import NAMES
from daypack.turn.ledger import USAGE
from daypack.types.history import Event, Message

READ = Call("read_file", {"path": "a.py", "lines": [1, 20]})
HELLO = Say("Hello, how are you?", input_tokens=40, cached_tokens=30)
FULL = Say("I look at it.", calls=(READ, Call("list", {})), thinking="Which file?", input_tokens=40, cached_tokens=30)
CUT = Say("Cut", stop="length", input_tokens=40)


def usage(session: Session) -> list[Event]:
    return [event for event in session.events() if event.type == USAGE]


def same(message: Message, other: Message) -> bool:
    """Two messages say the same: ids of replies and calls count up."""
    plain = [msgspec.json.decode(msgspec.json.encode(one)) for one in (message, other)]
    for one in plain:
        for name in ("seq", "id", "ts", "crc"):
            one.pop(name, None)
        one["meta"].pop("id", None)
        one["meta"].pop("text", None)
        for call in one.get("tool_calls", ()):
            call.pop("id")
            call["arguments"] = msgspec.json.decode(call["arguments"])
        for part in one["content"] if isinstance(one["content"], list) else ():
            part.get("meta", {}).pop("id", None)
            part.get("meta", {}).pop("encrypted_content", None)
            part.pop("signature", None)
    return plain[0] == plain[1]


# A reply that comes whole


@pytest.mark.parametrize(
    "say", [HELLO, FULL, Say("Cut", stop="length", input_tokens=40)], ids=["text", "calls", "length"]
)
@pytest.mark.parametrize(("dialect", "helper"), WAYS)
def test_a_stream_stores_what_the_whole_reply_would(home: str, dialect: str, helper: bool, say: Say) -> None:
    with ModelEndpoint(say, say) as endpoint, stage(home) as session:
        client = Client(dialect, endpoint)
        whole = session.accept(client.create(ask(session)))
        for call in whole.tool_calls:
            session.append("tool", "done", tool_call_id=call.id)
        stream = session.stream(client.stream(ask(session), helper=helper))
        assert "".join(stream) == say.said
        assert stream.message is not None
        assert stream.message.incomplete is None
        assert session.tail(1) == (stream.message,)
        assert same(stream.message, whole)
        counted = [
            {
                name: event.data[name]
                for name in ("input_tokens", "output_tokens", "cached_tokens")
                if name in event.data
            }
            for event in usage(session)
        ]
        assert counted[0] == counted[1]
        assert counted[0]["output_tokens"] == 7


@pytest.mark.parametrize(("dialect", "helper"), WAYS)
def test_a_stream_can_be_awaited(home: str, dialect: str, helper: bool) -> None:
    async def run(session: Session, endpoint: ModelEndpoint) -> None:
        client = Client(dialect, endpoint, is_async=True)
        stream = session.stream(await client.open(ask(session), helper=helper))
        assert "".join([text async for text in stream]) == FULL.said
        assert session.tail(1) == (stream.message,)
        await client.aclose()

    with ModelEndpoint(FULL) as endpoint, stage(home) as session:
        asyncio.run(run(session, endpoint))
        [message] = session.tail(1)
        assert [msgspec.json.decode(call.arguments) for call in message.tool_calls] == [READ.arguments, {}]
        assert usage(session)[0].data["output_tokens"] == 7


@pytest.mark.parametrize(("dialect", "helper"), WAYS)
def test_accept_reads_a_stream_to_its_end(home: str, dialect: str, helper: bool) -> None:
    async def run(session: Session, endpoint: ModelEndpoint) -> Message:
        client = Client(dialect, endpoint, is_async=True)
        accepting: Any = session.accept(await client.open(ask(session), helper=helper))
        message: Message = await accepting
        await client.aclose()
        return message

    with ModelEndpoint(HELLO, HELLO) as endpoint, stage(home) as session:
        message = session.accept(Client(dialect, endpoint).stream(ask(session), helper=helper))
        assert message.text == HELLO.text
        assert asyncio.run(run(session, endpoint)).text == HELLO.text
        check_next(session)


def test_the_text_comes_as_the_model_says_it(home: str) -> None:
    with ModelEndpoint(Say("One two three.", pause_after=2)) as endpoint, stage(home) as session:
        stream = iter(session.stream(Client("anthropic", endpoint).stream(ask(session))))
        assert [next(stream), next(stream)] == ["One ", "two "]  # the third is not sent yet
        endpoint.resume()
        assert list(stream) == ["three."]


def test_texts_are_a_stream_too(home: str) -> None:
    with stage(home) as session:
        ask(session)
        stream = session.stream(["Hel", "", "lo"])
        assert list(stream) == ["Hel", "lo"]
        assert stream.message is not None
        assert stream.message == session.tail(1)[0]
        assert (stream.message.text, stream.message.incomplete) == ("Hello", None)
        assert session.accept(iter(["Good", "bye"])).text == "Goodbye"


def test_arguments_are_stored_as_the_model_wrote_them(home: str) -> None:
    written = '{"path" : "a.py",  "n": 1.0, "big": 1e5, "u": "\\u00e9"}'
    for dialect in NAMES:
        with ModelEndpoint(Say(calls=(Call("f", written),))) as endpoint, stage(home, dialect) as session:
            message = session.accept(Client(dialect, endpoint).stream(ask(session)))
            if dialect != "anthropic":
                assert message.tool_calls[0].arguments == written
            assert msgspec.json.decode(message.tool_calls[0].arguments) == msgspec.json.decode(written)


# Awaited


def test_a_cancelled_task_stores_what_came(home: str) -> None:
    async def read(session: Session, client: Client, seen: asyncio.Event) -> None:
        stream = session.stream(await client.open(ask(session)))
        async for _ in stream:
            seen.set()

    async def run(session: Session, endpoint: ModelEndpoint) -> None:
        client, seen = Client("anthropic", endpoint, is_async=True), asyncio.Event()
        task = asyncio.create_task(read(session, client, seen))
        await seen.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        endpoint.resume()
        await client.aclose()

    with ModelEndpoint(Say("One two three.", pause_after=1)) as endpoint, stage(home) as session:
        asyncio.run(run(session, endpoint))
        assert (session.tail(1)[0].text, session.tail(1)[0].incomplete) == ("One ", "CancelledError")
        check_next(session)


def test_leaving_an_awaited_loop_stores_what_came(home: str) -> None:
    async def pieces() -> AsyncIterator[str]:
        for text in ("One ", "two"):
            yield text

    async def run(session: Session) -> None:
        ask(session)
        async for _ in session.stream(pieces()):
            break
        session.append("user", "No.")
        assert [message.text for message in session.tail(2)] == ["One ", "No."]
        session.prepare(budget=8000)
        async with session.stream(pieces()) as stream:
            async for _ in stream:
                break
        assert stream.message is not None
        assert (stream.message.text, stream.message.incomplete) == ("One ", "abandoned")
        assert (await session.stream(pieces())).text == "One two"

    with stage(home) as session:
        asyncio.run(run(session))


def test_storing_does_not_block_the_event_loop(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []

    async def pieces() -> AsyncIterator[str]:
        yield "One"

    with stage(home) as session:
        ask(session)
        append = session.history.append

        def noted(drafts: Any) -> Any:
            threads.append(threading.get_ident())
            return append(drafts)

        monkeypatch.setattr(session.history, "append", noted)
        asyncio.run(session.stream(pieces()).adrain())
        assert len(threads) == 1
        assert threads[0] != threading.get_ident()


# The protocol


@pytest.mark.parametrize("dialect", NAMES)
@pytest.mark.requirement("S0-R8.2")
def test_no_byte_of_a_snapshot_is_shown(home: str, dialect: str) -> None:
    def answer(_: Any) -> Say:
        whole = "Done, 3 < 4.\n" + section(turn.expected, core=[block()])
        return Say(split=tuple(whole[at : at + 5] for at in range(0, len(whole), 5)))

    with ModelEndpoint(answer=answer) as endpoint, talking(home) as session:
        session.append("user", "Go on.")
        turn = session.prepare(budget=8000)
        stream = session.stream(Client(dialect, endpoint).stream(turn))
        assert "".join(stream) == "Done, 3 < 4.\n"
        assert stream.message is not None
        assert stream.message.text == "Done, 3 < 4.\n"
        assert len(taken_in(session)) == 1
        check_next(session)


@pytest.mark.parametrize("stop", [None, "length"])
@pytest.mark.parametrize("cut", [1, 3, 4, 8, 12, 13, 14, 20, 60])
@pytest.mark.requirement("S0-R8.2")
def test_a_snapshot_that_was_cut_off_is_not_shown(home: str, cut: int, stop: str | None) -> None:
    with talking(home) as session:
        session.append("user", "Go on.")
        turn = session.prepare(budget=8000)
        whole = "Is 3 < 4? Yes. " + section(turn.expected, core=[block()])

        def pieces() -> Iterator[dict[str, Any]]:
            for text in whole[: 15 + cut]:
                yield {"choices": [{"index": 0, "delta": {"content": text}}]}
            yield {"choices": [{"index": 0, "delta": {}, "finish_reason": stop}]}

        seen = "".join(session.stream(pieces()))
        [message] = session.tail(1)
        assert message.incomplete == (None if stop else "ended early")
        assert seen == message.text == "Is 3 < 4? Yes. "
        assert kept_of(message)["text"] == whole[15 : 15 + cut]
        check_next(session)


def test_a_whole_reply_can_end_like_a_separator(home: str) -> None:
    with talking(home) as session:
        ask(session)
        stream = session.stream(["A shift is written <", "<"])
        assert "".join(stream) == "A shift is written <<"
        assert session.tail(1)[0].text == "A shift is written <<"


# What is no stream


def test_what_is_no_stream_is_refused(home: str) -> None:
    async def never() -> None: ...

    async def texts() -> AsyncIterator[str]:
        yield "One"

    with stage(home) as session:
        ask(session)
        unawaited = never()
        wrong: list[tuple[object, str]] = [
            ("text", "is a str, not a client's stream"),
            (None, "is a NoneType, not"),
            ({"choices": []}, "is a dict, not"),
            (unawaited, "has not been awaited"),
            (ValueError("no"), "is an error: no"),
        ]
        for source, problem in wrong:
            with pytest.raises(BadInput, match=problem):
                session.stream(source)
        unawaited.close()
        for pieces, problem in (
            ([b"bytes"], "is bytes"),
            ([{"kind": "mystery"}], "has a piece that cannot be read: keys kind"),
            ([{"type": "mystery"}], "a piece that cannot be read: type 'mystery'"),
            ([3], "cannot be read: int"),
            ([{"choices": [{"index": 1, "delta": {"content": "x"}}]}], "several choices"),
        ):
            with pytest.raises(BadInput, match=problem):
                list(session.stream(pieces))
        with pytest.raises(BadInput, match="asynchronous"):
            list(session.stream(texts()))

        async def wrongly() -> None:
            async for _ in session.stream(["One"]):
                pass

        with pytest.raises(BadInput, match="not asynchronous"):
            asyncio.run(wrongly())
        assert [message.role for message in session.messages()] == ["user"]
