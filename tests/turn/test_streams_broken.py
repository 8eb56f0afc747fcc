"""Streams that break off or are left: what came is stored and marked, and the next turn is valid."""

import gc
import os
import threading

import msgspec
import pytest
from model_endpoint import Call, Fail, ModelEndpoint, Say
from turn.clients import WAYS, Client, ask, check_next
from turn.scenes import stage

from daypack.errors import BadInput, EmptyReply, StorageFailed
from daypack.session import open_session
from daypack.turn.dialects import NAMES

READ = Call("read_file", {"path": "a.py", "lines": [1, 20]})
HELLO = Say("Hello, how are you?", input_tokens=40, cached_tokens=30)
FULL = Say("I look at it.", calls=(READ, Call("list", {})), thinking="Which file?", input_tokens=40, cached_tokens=30)


# A reply that breaks off


@pytest.mark.parametrize("cut", [1, 3])
@pytest.mark.parametrize(("dialect", "helper"), WAYS)
def test_a_stream_that_breaks_off_stores_what_came(home: str, dialect: str, helper: bool, cut: int) -> None:
    with ModelEndpoint(Say("One two three four.", cut_after=cut), HELLO) as endpoint, stage(home) as session:
        client = Client(dialect, endpoint)
        seen: list[str] = []
        stream = session.stream(client.stream(ask(session), helper=helper))
        with pytest.raises(Exception, match=r".") as raised:
            seen.extend(stream)
        assert not isinstance(raised.value, BadInput)
        assert seen == ["One ", "two ", "three "][:cut]
        [message] = session.tail(1)
        assert (message.role, message.text) == ("assistant", "".join(seen))
        assert message.incomplete == type(raised.value).__name__
        # The second attempt replaces it; nothing of it is sent.
        turn = session.prepare(budget=8000)
        assert turn.messages()[-1] == {"role": "user", "content": "Go on."}
        assert [omission.note for omission in turn.omitted] == ["broke off; the next reply replaces it"]
        session.accept(client.create(turn))
        check_next(session)
        assert "One" not in str(session.prepare(budget=8000).messages())


@pytest.mark.parametrize("dialect", NAMES)
def test_a_reply_that_broke_off_is_shown_when_the_user_answers_it(home: str, dialect: str) -> None:
    with ModelEndpoint(Say("One two three.", cut_after=2), HELLO) as endpoint, stage(home) as session:
        client = Client(dialect, endpoint)
        with pytest.raises(Exception, match=r"."):
            session.accept(client.stream(ask(session)))
        turn = ask(session, "Why two?")
        assert [message["content"] for message in turn.messages()] == ["Go on.", "One two ", "Why two?"]
        session.accept(client.create(turn))
        check_next(session)


@pytest.mark.parametrize("dialect", NAMES)
def test_an_error_in_the_stream_stores_what_came(home: str, dialect: str) -> None:
    with ModelEndpoint(Say("One two three.", fail_after=2)) as endpoint, stage(home) as session:
        with pytest.raises(Exception, match=r"(?i)error|overloaded"):
            session.accept(Client(dialect, endpoint).stream(ask(session)))
        assert session.tail(1)[0].text == "One two "
        assert session.tail(1)[0].incomplete
        check_next(session)


@pytest.mark.parametrize(("dialect", "helper"), WAYS)
@pytest.mark.parametrize("cut", range(1, 9))
def test_a_call_that_was_cut_off_is_not_a_call(home: str, dialect: str, helper: bool, cut: int) -> None:
    say = Say("Look.", calls=(Call("list", {}), READ), thinking="Hm.", cut_after=cut)
    with ModelEndpoint(say, HELLO) as endpoint, stage(home) as session:
        client = Client(dialect, endpoint)
        with pytest.raises(Exception, match=r"."):
            session.accept(client.stream(ask(session), helper=helper))
        message = session.tail(1)[0]
        assert message.incomplete
        whole = [(call.name, msgspec.json.decode(call.arguments)) for call in message.tool_calls]
        assert whole in ([], [("list", {})], [("list", {}), ("read_file", READ.arguments)])
        cut_off = (message.meta or {}).get("unfinished_calls", [])
        assert len(message.tool_calls) + len(cut_off) <= 2
        if cut >= 5:
            assert len(message.tool_calls) + len(cut_off) == 2
        check_next(session)
        session.accept(client.create(session.prepare(budget=8000)))
        check_next(session)


def test_nothing_is_stored_of_a_stream_that_brought_nothing(home: str) -> None:
    for dialect in NAMES:
        with ModelEndpoint(Say("One two.", cut_after=0), Fail(500)) as endpoint, stage(home, dialect) as session:
            client = Client(dialect, endpoint)
            with pytest.raises(Exception, match=r"."):
                session.accept(client.stream(ask(session)))
            assert [message.role for message in session.messages()] == ["user"]
            with pytest.raises(Exception, match=r"500"):
                session.accept(client.stream(session.prepare(budget=8000)))
            check_next(session)


@pytest.mark.parametrize("dialect", NAMES)
def test_an_empty_reply_is_refused(home: str, dialect: str) -> None:
    with ModelEndpoint(Say("", stop="length")) as endpoint, stage(home) as session:
        turn = ask(session)
        with pytest.raises(EmptyReply, match=r"length|max_tokens|max_output_tokens"):
            session.accept(Client(dialect, endpoint).stream(turn))
        assert len(session.messages()) == 1
        with pytest.raises(EmptyReply, match="nothing came"):
            list(session.stream([]))
        check_next(session)


# A reply that nobody reads to its end


@pytest.mark.parametrize("dialect", NAMES)
def test_leaving_the_loop_stores_what_came(home: str, dialect: str) -> None:
    with ModelEndpoint(HELLO, HELLO, HELLO) as endpoint, stage(home) as session:
        client = Client(dialect, endpoint)
        for _ in session.stream(client.stream(ask(session))):
            break
        assert [message.text for message in session.tail(2)] == ["Go on.", "Hello, "]
        assert session.tail(1)[0].incomplete == "abandoned"
        stream = session.stream(client.stream(ask(session, "Again.")))
        for _ in stream:
            break
        session.append("user", "No.")
        assert [message.text for message in session.tail(2)] == ["Hello, ", "No."]
        with session.stream(client.stream(session.prepare(budget=8000))) as third:
            next(iter(third))
        assert third.message == session.tail(1)[0]
        check_next(session)


def test_an_error_of_the_caller_stores_what_came(home: str) -> None:
    with stage(home) as session:
        ask(session)

        def show() -> None:
            for text in session.stream(["One ", "two"]):
                raise ValueError(text)

        with pytest.raises(ValueError, match="One"):
            show()
        gc.collect()
        assert (session.tail(1)[0].text, session.tail(1)[0].incomplete) == ("One ", "abandoned")


def test_a_loop_can_be_taken_up_again(home: str) -> None:
    with stage(home) as session:
        ask(session)
        stream = session.stream(["One ", "two ", "three"])
        for _ in stream:
            break
        assert "".join(stream) == "two three"
        assert stream.message is not None
        assert (stream.message.text, stream.message.incomplete) == ("One two three", None)


def test_closing_the_session_stores_what_came(home: str) -> None:
    with stage(home) as session:
        ask(session)
        pieces = iter(session.stream(["One ", "two"]))
        next(pieces)
    with stage(home) as session:
        assert (session.tail(1)[0].text, session.tail(1)[0].incomplete) == ("One ", "abandoned")
    left = open_session("left", home=home)
    ask(left)
    pieces = iter(left.stream(["One ", "two"]))
    next(pieces)
    del left, pieces
    gc.collect()
    with open_session("left", home=home) as session:
        assert [message.text for message in session.tail(1)] == ["One "]


def test_another_thread_can_close_a_stream(home: str) -> None:
    with ModelEndpoint(Say("One two three.", pause_after=1)) as endpoint, stage(home) as session:
        stream = session.stream(Client("openai", endpoint).stream(ask(session)))
        pieces = iter(stream)
        assert next(pieces) == "One "
        closing = threading.Thread(target=stream.close)
        closing.start()
        closing.join()
        assert list(pieces) == []
        assert [message.text for message in session.messages()] == ["Go on.", "One "]


def test_a_full_disk_leaves_the_reply_to_be_stored_later(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with stage(home) as session:
        ask(session)
        stream = session.stream(["One ", "two"])

        def fail(*_: object) -> int:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", fail)
            patch.setattr(os, "writev", fail)
            with pytest.raises(StorageFailed):
                list(stream)
        message = stream.close()
        assert message is not None
        assert (message.text, message.incomplete) == ("One two", None)
