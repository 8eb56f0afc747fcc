"""Calls that last: answered in order, cancelled, told about, and finished before the loop ends."""

import json
import os
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec import Struct
from serve.wire import Message, by_id, initialize, make_offer, request, tool

from daypack.memory.requests import AwaitConsistency, CreateMemory, Request
from daypack.memory.tools import Memories
from daypack.serve.stdio import calls
from daypack.serve.stdio import loop as stdio
from daypack.types.memory import Consistency, User


def _unchanged(value: Any) -> Any:
    return value


class Slow:
    """Memories whose barrier lasts until it is let go, and which note the order of what they were asked."""

    backend = SimpleNamespace(shown=_unchanged, audit=None)

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.waiting = threading.Event()
        self.go = threading.Event()

    def call(self, request: Request[Any]) -> Struct:
        if isinstance(request, AwaitConsistency):
            self.waiting.set()
            assert self.go.wait(30)
            return Consistency(status="consistent", level="durable", token="t", search_index=True)
        if isinstance(request, CreateMemory):
            time.sleep(0.02 if request.title == "slow" else 0)
            self.asked.append(request.title)
            return User(user_id="u", name=request.title)
        return User(user_id="u", name=",".join(self.asked))

    def close(self) -> None:
        self.asked.append("closed")


class Talk:
    """A conversation with a loop that runs in a thread."""

    def __init__(self, memories: Slow, home: str) -> None:
        self.offer = make_offer(cast("Callable[[], Memories]", lambda: memories), home)
        (their_in, our_out), (our_in, their_out) = os.pipe(), os.pipe()
        self._out, self._in = os.fdopen(our_out, "wb"), os.fdopen(our_in, "rb")
        self._streams = os.fdopen(their_in, "rb"), os.fdopen(their_out, "wb")
        self.thread = threading.Thread(target=stdio.serve, args=(self.offer, *self._streams))
        self.thread.start()

    def __enter__(self) -> "Talk":
        self.ask(initialize())
        return self

    def __exit__(self, *_: object) -> None:
        self._out.close()
        self.thread.join(30)
        assert not self.thread.is_alive()
        for stream in (*self._streams, self._in):
            stream.close()

    def close(self) -> None:
        self._out.close()

    def send(self, *messages: object) -> None:
        self._out.write(b"".join(json.dumps(one).encode() + b"\n" for one in messages))
        self._out.flush()

    def receive(self) -> Message:
        return cast("Message", json.loads(self._in.readline()))

    def ask(self, message: object) -> Message:
        self.send(message)
        return self.receive()


def test_a_ping_is_answered_while_a_call_lasts(home: str) -> None:
    slow = Slow()
    with Talk(slow, home) as talk:
        talk.send(tool(1, "await_consistency"))
        assert slow.waiting.wait(30)
        assert talk.ask(request(2, "ping"))["id"] == 2
        assert talk.ask(tool(3, "get_user"))["id"] == 3
        slow.go.set()
        assert talk.receive()["id"] == 1


@pytest.mark.parametrize("named", [1, "1"])
def test_a_cancelled_call_is_not_answered(named: object, home: str) -> None:
    slow = Slow()
    with Talk(slow, home) as talk:
        talk.send(tool(1, "await_consistency"))
        assert slow.waiting.wait(30)
        talk.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": named}})
        assert talk.ask(request(2, "ping"))["id"] == 2
        slow.go.set()
        assert talk.ask(tool(3, "get_user"))["id"] == 3


def test_calls_take_effect_in_the_order_they_came(home: str) -> None:
    slow = Slow()
    with Talk(slow, home) as talk:
        titles = ["slow" if number % 3 == 0 else str(number) for number in range(30)]
        for number, title in enumerate(titles):
            talk.send(tool(number, "create_memory", title=title), tool(f"after {number}", "get_user"))
        told = by_id(talk.receive() for _ in range(60))
    assert slow.asked == titles
    for number in range(30):
        seen = told[f"after {number}"]["result"]["structuredContent"]["name"].split(",")
        assert seen[: number + 1] == titles[: number + 1]  # what was sent before it, and perhaps more


def test_who_asks_for_progress_is_told_of_it_until_the_answer(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "PROGRESS_SECONDS", 0.01)
    slow = Slow()
    with Talk(slow, home) as talk:
        asked = tool("a", "await_consistency")
        asked["params"]["_meta"] = {"progressToken": "p1"}
        talk.send(asked)
        told = [talk.receive() for _ in range(20)]
        slow.go.set()
        while told[-1].get("id") != "a":
            told.append(talk.receive())
        assert talk.ask(request(2, "ping"))["id"] == 2
    progress = [one["params"] for one in told[:-1]]
    assert {one["progressToken"] for one in progress} == {"p1"}
    assert all(one["method"] == "notifications/progress" for one in told[:-1])
    passed = [one["progress"] for one in progress]
    assert all(earlier < later for earlier, later in pairwise(passed))


def test_what_was_asked_for_before_the_end_is_still_answered(home: str) -> None:
    slow = Slow()
    with Talk(slow, home) as talk:
        talk.send(tool(1, "await_consistency"))
        assert slow.waiting.wait(30)
        talk.close()
        threading.Timer(0.1, slow.go.set).start()
        assert talk.receive()["id"] == 1
