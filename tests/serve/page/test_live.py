"""Live events: a page learns that a session grew, and streams never keep a server busy."""

import json
import threading
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio
import httpx
import pytest
from memory_server import run_daypack
from serve.page.pages import View, enter, look, start_view
from starlette.requests import Request
from starlette.responses import Response

import daypack
from daypack.history.home import find_home
from daypack.serve.http.limits import Shares
from daypack.serve.http.turns import Call, Caller
from daypack.serve.page import live
from daypack.serve.page.access import PageAccess
from daypack.serve.page.live import Counts, Live, Stream
from daypack.serve.page.routes import PageRoutes
from daypack.serve.page.views.opened import OpenedHome

WORK = {"agent": "default", "session": "work"}


@pytest.fixture
def view(home: str) -> Iterator[View]:
    with daypack.open_session("work", home=home, durability="os") as session:
        session.append("user", "hello")
    with start_view(home, "--no-open", "--log-level", "info") as view:
        yield view


@contextmanager
def followed(client: httpx.Client, **watched: str) -> "Generator[Iterator[tuple[str, Any]]]":
    """Open a stream and return its events."""
    with client.stream("GET", "/page/live", params=watched) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield read_events(answer.iter_lines())


def read_events(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    kind = ""
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            yield kind, json.loads(value)


def wait_for(events: Iterator[tuple[str, Any]], wanted: tuple[str, Any]) -> None:
    assert any(event == wanted for event in events)


def test_a_page_learns_that_another_process_appended(view: View, home: str) -> None:
    client = enter(view.url)
    with followed(client, **WORK) as events, followed(client) as all_sessions:
        assert next(events) == ("session", {"messages": 1, "events": 0})
        assert run_daypack(home, "append", "work", "more").returncode == 0
        wait_for(events, ("session", {"messages": 2, "events": 0}))
        assert run_daypack(home, "pin", "work", "rules", "Be brief.").returncode == 0
        wait_for(events, ("session", {"messages": 2, "events": 1}))
        assert run_daypack(home, "append", "other", "hello").returncode == 0
        assert any(["default", "other"] in data["changed"] for _, data in all_sessions)


def test_a_new_page_learns_what_changed_just_before_its_stream_opened(view: View) -> None:
    with followed(enter(view.url)) as events:
        assert next(events) == ("sessions", {"changed": [["default", "work"]]})


def test_unknown_sessions_and_names_that_leave_the_home_are_refused(view: View) -> None:
    client = enter(view.url)
    assert client.get("/page/live", params=WORK | {"session": "nothing"}).status_code == 404
    assert client.get("/page/live", params=WORK | {"session": "../work"}).status_code == 400


def test_ctrl_c_ends_a_server_with_open_streams_in_order(view: View) -> None:
    client = enter(view.url)
    with followed(client, **WORK) as events, followed(client):
        next(events)
        code, log = view.stop()
        assert "session" not in dict(events)  # it ends as HTTP ends an answer, not by a broken connection
    assert code == 0
    assert [line["event"] for line in log] == ["server.started", "server.stopped"]


def test_of_too_many_streams_the_oldest_ends_and_says_why(view: View) -> None:
    client = enter(view.url)
    with ExitStack() as stack:
        opened = [stack.enter_context(followed(client)) for _ in range(live.MOST_PER_USER + 1)]
        assert list(opened[0])[-1] == ("replaced", {})
        assert look(view.url).get("/health").status_code == 200


def test_many_streams_take_no_call_and_no_thread_from_others(view: View) -> None:
    client = enter(view.url)
    with ExitStack() as stack:
        for _ in range(live.MOST_PER_USER):
            stack.enter_context(followed(client, **WORK))
        answers: list[int] = []
        asking = [
            threading.Thread(target=lambda: answers.append(client.get("/page/data/start").status_code))
            for _ in range(8)
        ]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
        metrics = look(view.url).get("/metrics").text
    assert answers == [200] * 8
    assert "daypack_queued_calls 0" in metrics
    assert 'daypack_request_seconds_count{route="/page/live"' not in metrics


def test_a_stream_sends_a_comment_when_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "HEARTBEAT_SECONDS", 0.01)
    assert anyio.run(Stream("ada", None, None).next) == ": still here\n\n"


def test_a_stream_of_a_token_ends_so_that_the_token_is_checked_again(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert anyio.run(Stream("ada", None, Counts(1, 1), 0.0).next) == ""
    monkeypatch.setattr(live, "HEARTBEAT_SECONDS", 0.01)
    assert anyio.run(Stream("ada", None, None, 60.0).next) == ": still here\n\n"
    lasting: list[float | None] = []

    def open_stream(streams: Live, user: str, watched: Any, counts: Any, seconds: float | None = None) -> Stream:
        lasting.append(seconds)
        return Stream(user, watched, counts, 0.0)

    monkeypatch.setattr(Live, "open", open_stream)

    async def follow(caller: Caller) -> Response:
        tenants = cast("Any", SimpleNamespace(owner="ada"))
        routes = PageRoutes(tenants, Shares(), OpenedHome(home, None, None), PageAccess("ada"))
        scope: dict[str, Any] = {"type": "http", "method": "GET", "query_string": b"", "headers": []}
        return await routes.follow(Request(scope | {"daypack.call": Call(caller), "daypack.caller": caller}))

    for token_id in ("", "t1"):
        assert isinstance(anyio.run(follow, Caller("ada", writes=True, token_id=token_id)), live.EventStream)
    assert lasting == [None, live.TOKEN_SECONDS]


def test_streams_that_have_ended_do_not_count(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MOST_PER_USER", 2)
    streams = Live(OpenedHome(home, None, None), 3)
    first, second, third = (streams.open("ada", None, None) for _ in range(3))
    assert (first.ended, second.ended, third.ended) == (True, False, False)
    fourth = streams.open("bob", None, None)  # of three that run
    assert [stream.ended for stream in (second, third, fourth)] == [False] * 3
    streams.open("bob", None, None)
    assert (second.ended, third.ended, fourth.ended) == (True, False, False)


def test_a_stream_that_opens_while_the_server_stops_ends_at_once(home: str) -> None:
    async def check() -> str:
        streams = Live(OpenedHome(home, None, None), 3)
        streams.end_streams()
        return await streams.open("ada", None, None).next()

    assert anyio.run(check) == ""


def test_looking_at_a_stream_opens_none(view: View, home: str) -> None:
    client = enter(view.url)
    with followed(client, **WORK) as events:
        next(events)
        for _ in range(live.MOST_PER_USER + 1):
            answer = client.head("/page/live", params=WORK)
            assert (answer.status_code, answer.content) == (200, b"")
            assert answer.headers["content-type"].startswith("text/event-stream")
        assert client.head("/page/live", params=WORK | {"session": "nothing"}).status_code == 404
        assert run_daypack(home, "append", "work", "more").returncode == 0
        wait_for(events, ("session", {"messages": 2, "events": 0}))  # it was not replaced


def test_an_agent_whose_folder_cannot_be_read_does_not_hide_the_others(home: str) -> None:
    with daypack.open_session("work", home=home, durability="os") as session:
        session.append("user", "hello")
    broken = Path(find_home(home).sessions("broken"))
    broken.parent.mkdir()
    broken.symlink_to(broken)

    async def run() -> str:
        streams = Live(OpenedHome(home, None, None), 10)
        async with streams.running():
            return await streams.open("ada", None, None).next()

    assert anyio.run(run) == 'event: sessions\ndata: {"changed":[["default","work"]]}\n\n'


def test_what_happens_while_a_client_does_not_read_is_reported_once() -> None:
    async def run() -> list[str]:
        stream = Stream("ada", ("a", "b"), Counts(1, 1))
        first = await stream.next()
        for number in range(2, 1000):
            stream.count(Counts(number, 1))
            stream.report({("a", f"s{number % 3}")})
        second = await stream.next()
        stream.end()
        return [first, second, await stream.next()]

    first, second, last = anyio.run(run)
    assert first == 'event: session\ndata: {"messages":1,"events":1}\n\n'
    assert second == (
        'event: session\ndata: {"messages":999,"events":1}\n\n'
        'event: sessions\ndata: {"changed":[["a","s0"],["a","s1"],["a","s2"]]}\n\n'
    )
    assert last == ""


def test_a_client_that_does_not_read_is_disconnected_when_its_stream_ends(home: str) -> None:
    closed: list[str] = []

    class Connection:
        def close(self, reason: str) -> None:
            closed.append(reason)
            unblocked.set()

    unblocked = anyio.Event()

    async def receive() -> Any:
        raise AssertionError("nothing is asked of the client")

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body" and not closed:
            sending.set()
            await unblocked.wait()

    sending = anyio.Event()

    async def run() -> None:
        streams = Live(OpenedHome(home, None, None), 10)
        response = live.EventStream(streams, streams.open("ada", None, None))
        scope: dict[str, Any] = {"daypack.connection": Connection()}
        async with anyio.create_task_group() as group:
            group.start_soon(response, scope, receive, send)
            await sending.wait()
            streams.end_streams()

    anyio.run(run)
    assert closed == ["unread"]
