"""Streams as servers send them: pieces that are missing, repeated, out of order or in another shape."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from turn.clients import ask, check_next
from turn.scenes import stage

from daypack.errors import BadInput
from daypack.session import Session
from daypack.types.history import Message

Pieces = list[dict[str, Any]]


def chunk(**delta: Any) -> dict[str, Any]:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}


def call(name: str | None = None, arguments: Any = "", **fields: Any) -> dict[str, Any]:
    named = {} if name is None else {"name": name}
    return chunk(tool_calls=[{**fields, "function": {**named, "arguments": arguments}}])


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


def block(index: int, *texts: str) -> Pieces:
    deltas = [event("content_block_delta", index=index, delta={"type": "text_delta", "text": text}) for text in texts]
    start = event("content_block_start", index=index, content_block={"type": "text", "text": ""})
    return [start, *deltas, event("content_block_stop", index=index)]


def use(index: int, **fields: Any) -> Pieces:
    start = event("content_block_start", index=index, content_block={"type": "tool_use", "input": {}, **fields})
    return [start, event("content_block_stop", index=index)]


def says(index: int, text: str) -> dict[str, Any]:
    return event("response.output_text.delta", output_index=index, content_index=0, delta=text)


def item(text: str, **fields: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text}]
    done = {"type": "message", "role": "assistant", "content": content, **fields}
    return event("response.output_item.done", item=done)


THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
END: dict[str, Any] = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
STOP = [event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 3}), event("message_stop")]
COMPLETED = event("response.completed", response={"output": []})
WHOLE: dict[str, tuple[Pieces, str, list[tuple[str, str, str]]]] = {
    "calls that repeat a number": (
        [call("f", '{"x":1}', index=0, id="a"), call("g", '{"y":2}', index=0, id="b"), END],
        "",
        [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')],
    ),
    "calls that repeat a number and have no ids": (
        [call("f", '{"x":1}', index=0), call("g", '{"y":2}', index=0), END],
        "",
        [("call_0", "f", '{"x":1}'), ("call_1", "g", '{"y":2}')],
    ),
    "a call in pieces without a number": (
        [call("f", '{"x"', id="a"), call(None, ":1}"), call("g", "{}", id="b"), END],
        "",
        [("a", "f", '{"x":1}'), ("b", "g", "{}")],
    ),
    "a call whose name and id are repeated": (
        [call("f", '{"x"', index=0, id="a"), call("f", ":1}", index=0, id="a"), END],
        "",
        [("a", "f", '{"x":1}')],
    ),
    "arguments as an object": ([call("f", {"x": 1}, index=0, id="a"), END], "", [("a", "f", '{"x":1}')]),
    "a choice without a number": ([{"choices": [{"index": None, "delta": {"content": "Hi"}}]}, END], "Hi", []),
    "a first chunk without choices": ([{"object": "chat.completion.chunk"}, chunk(content="Hi"), END], "Hi", []),
    "words as parts": (
        [chunk(content=[THOUGHT]), chunk(content=[{"type": "text", "text": "Hi"}]), END],
        "Hi",
        [],
    ),
    "a refusal after words": ([chunk(content="Hi"), chunk(refusal="No"), END], "Hi\nNo", []),
    "sound": ([chunk(audio={"transcript": "Hi "}), chunk(audio={"transcript": "there"}), END], "Hi there", []),
    "two halves of a character": ([chunk(content="\ud83d"), chunk(content="\ude00"), END], "\U0001f600", []),
    "blocks that repeat a number": ([*block(0, "One "), *block(0, "two"), *STOP], "One two", []),
    "a block without a beginning": (
        [event("content_block_delta", index=0, delta={"type": "text_delta", "text": "Hi"}), *STOP],
        "Hi",
        [],
    ),
    "texts around a call": (
        [*block(0, "One"), *use(1, id="t", name="f"), *block(2, "Two"), *STOP],
        "One\nTwo",
        [("t", "f", "{}")],
    ),
    "neighbouring blocks": ([*block(0, "One "), *block(1, "two"), *STOP], "One two", []),
    "items without deltas": ([item("Hi", id="1"), COMPLETED], "Hi", []),
    "two messages": ([says(0, "One"), says(1, "Two"), COMPLETED], "One\nTwo", []),
    "items without numbers": ([item("One", id="1"), item("Two", id="2"), COMPLETED], "One\nTwo", []),
}


@pytest.mark.parametrize("name", WHOLE)
def test_what_servers_send_is_read_as_it_was_meant(home: str, name: str) -> None:
    pieces, text, calls = WHOLE[name]
    with stage(home) as session:
        ask(session)
        stream = session.stream(pieces)
        seen = "".join(stream)
        assert stream.message is not None
        assert (stream.message.text, stream.message.incomplete) == (text, None)
        assert [(call.id, call.name, call.arguments) for call in stream.message.tool_calls] == calls
        assert seen.encode("utf-16", "surrogatepass").decode("utf-16") == text
        check_next(session)


@pytest.mark.parametrize("name", WHOLE)
def test_each_beginning_of_a_stream_is_stored_and_marked(home: str, name: str) -> None:
    pieces = WHOLE[name][0]
    with stage(home) as session:
        for cut in range(1, len(pieces)):
            ask(session)
            seen = "".join(session.stream(pieces[:cut]))
            [newest] = session.tail(1)
            if newest.role == "assistant":
                assert seen == newest.text or not newest.text.isprintable() or "\ud83d" in seen
                whole = any(piece.get("type") == "message_delta" for piece in pieces[:cut])
                assert newest.incomplete == (None if whole else "ended early")
            else:
                assert seen == ""
        check_next(session)


def test_an_empty_reason_to_stop_is_no_end(home: str) -> None:
    with stage(home) as session:
        ask(session)
        list(session.stream([{"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": ""}]}]))
        assert session.tail(1)[0].incomplete == "ended early"


UNREADABLE: dict[str, Pieces] = {
    "a call without a name": [chunk(content="Hi"), call(None, "{}", index=0, id="a"), END],
    "an old call": [chunk(content="Hi"), chunk(function_call={"name": "f", "arguments": "{}"}), END],
    "a use without a name": [*block(0, "Hi"), *use(1), *STOP],
    "a call without an id": [
        says(0, "Hi"),
        event("response.output_item.done", output_index=1, item={"type": "function_call", "name": "f"}),
        COMPLETED,
    ],
    "a number that JSON lines do not have": [chunk(content="Hi", annotations=[{"n": 1 << 70}]), END],
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_the_words_of_a_reply_that_cannot_be_read_are_stored(home: str, name: str) -> None:
    with stage(home) as session:
        ask(session)
        stream = session.stream(UNREADABLE[name])
        seen: list[str] = []
        with pytest.raises(BadInput) as raised:
            seen.extend(stream)
        assert seen == ["Hi"]
        [message] = session.tail(1)
        assert stream.message == message
        assert (message.text, message.incomplete) == ("Hi", type(raised.value).__name__)
        assert message.meta is not None
        assert "Hi" in msgspec.json.encode(msgspec.json.decode(message.meta["unreadable"])).decode()
        check_next(session)


def test_texts_and_events_do_not_mix(home: str) -> None:
    with stage(home) as session:
        mixed: list[list[object]] = [["Hi", chunk(content="x")], [chunk(content="Hi"), "x"]]
        for pieces in mixed:
            ask(session)
            with pytest.raises(BadInput, match="has both texts and events"):
                list(session.stream(pieces))
            assert (session.tail(1)[0].text, session.tail(1)[0].incomplete) == ("Hi", "BadInput")
        with pytest.raises(BadInput, match="a piece that cannot be read: keys text"):
            list(session.stream([{"text": 3}]))
        with pytest.raises(BadInput, match="ended with an error: overloaded"):
            list(session.stream([{"error": {"message": "overloaded"}}]))


def test_annotations_of_a_reply_that_broke_off_are_kept(home: str) -> None:
    note = event("response.output_text.annotation.added", output_index=0, content_index=0, annotation={"type": "x"})
    with stage(home) as session:
        message = _broken(session, [says(0, "Hi"), note])
        assert message.meta is not None
        assert message.meta["text"]["annotations"] == [{"type": "x"}]


def _broken(session: Session, pieces: Pieces) -> Message:
    def source() -> Iterator[dict[str, Any]]:
        yield from pieces
        raise ConnectionError

    ask(session)
    with pytest.raises(ConnectionError):
        session.accept(source())
    return session.tail(1)[0]


class _Counted(str):
    """A text that counts how many characters are copied when something is added to it."""

    copied = 0

    def __add__(self, other: str) -> "_Counted":
        _Counted.copied += len(self) + len(other)
        return _Counted(str.__add__(self, other))

    def __radd__(self, other: str) -> "_Counted":
        return _Counted(other).__add__(self)


def _in_block(text: str) -> dict[str, Any]:
    return event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})


WAYS: dict[str, Callable[[str], dict[str, Any]]] = {
    "chat": lambda text: chunk(content=text),
    "arguments": lambda text: call(None, text, index=0),
    "anthropic": _in_block,
    "responses": lambda text: says(0, text),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_piece_costs_the_same_however_long_the_reply_is(home: str, way: str) -> None:
    _Counted.copied = 0
    with stage(home) as session:
        ask(session)
        list(session.stream(WAYS[way](_Counted("token ")) for _ in range(2000)))
        assert _Counted.copied < 2000 * 100
