"""A turn keeps its time, whatever its memory server does, and asks it once for each user message."""

import random
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from campaigns import Campaign
from stubborn_server import (
    BROKEN,
    DOCUMENT,
    HANGING,
    LYING,
    Behaviour,
    StubbornServer,
    answers,
    answers_after_release,
    never_answers,
    response,
)
from turn.scenes import FakeMemory, lost, sent, stage

from daypack.errors import DaypackError, ServerUnreachable
from daypack.memory import answers as answering
from daypack.memory import remote
from daypack.memory.answers import Answers, Question, Reply
from daypack.memory.remote import RETRY
from daypack.session import Session
from daypack.turn import memory_binding
from daypack.turn.memory_binding import Binding, write_binding
from daypack.turn.survey.memory import ANSWER
from daypack.turn.turn import Turn
from daypack.types.deadline import Deadline
from daypack.types.history import Message
from daypack.types.memory import Remembered

MEMORY = "3" * 32
WRITTEN = "2026-11-16T06:00:00Z"
CONTEXT: dict[str, Any] = {
    "memory_id": MEMORY,
    "document_id": "d" * 32,
    "version": 1,
    "content": DOCUMENT,
    "created_at": WRITTEN,
}
PAGE: dict[str, Any] = {"memory_id": MEMORY, "entries": [], "count": 0, "applied_limit": 10}
SHORT = {"tokens": 8000, "ms": 75}  # of which a memory has four fifths
LONG = {"tokens": 8000, "ms": 60_000}


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "RETRY", RETRY._replace(pause_seconds=0.001))


def bound(home: str, url: str, name: str = "work", **settings: Any) -> Session:
    """A session bound to a server. Its turns have a clock that stands still: a busy machine takes no time from them."""
    session = stage(home, name, **settings)
    session.turns.inputs.timer = lambda: 0.0
    write_binding(session.history, Binding(memory_id=MEMORY, url=url))
    session.append("user", "When is the launch?")
    return session


def call(session: Session, number: int) -> None:
    """One step of a tool loop."""
    session.append("assistant", "", tool_calls=[{"id": f"c{number}", "name": "look"}])
    session.append("tool", f"seen {number}", tool_call_id=f"c{number}")


def has_document(turn: Turn) -> bool:
    return "called Heron" in turn.quoted


def until_idle() -> None:
    """Wait until no thread asks a memory."""
    for thread in threading.enumerate():
        if thread.name == "daypack memory":
            thread.join()


def replayed(session: Session, turn: Turn) -> bool:
    again = session.replay(turn.event_id or "")
    return (again.pack_json, sent(again), again.missing) == (turn.pack_json, sent(turn), turn.missing)


@pytest.mark.parametrize("behaviour", HANGING)
def test_a_turn_ends_while_its_memory_server_still_holds_the_connection(home: str, behaviour: Behaviour) -> None:
    with StubbornServer(behaviour) as server:
        session = bound(home, server.url)
        turn = session.prepare(budget=SHORT)
        assert server.holds()
        assert lost(turn, ANSWER).question == (
            f"What is in memory {MEMORY} at {server.url}? It did not answer in the 60 ms it had."
        )
        assert replayed(session, turn)


def test_without_a_limit_of_its_own_a_turn_gives_a_server_what_the_settings_say(home: str) -> None:
    with StubbornServer(never_answers) as server:
        session = bound(home, server.url, memory_ms=70)
        assert "in the 70 ms it had" in lost(session.prepare(budget=8000), ANSWER).question
        assert server.holds()


def test_the_default_is_two_seconds_and_counts_for_memories_on_a_server(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []
    ask = Answers.ask

    def asking(self: Answers, question: Question, how: answering.Ask, deadline: Deadline) -> Callable[[], Reply]:
        given.append(deadline.seconds)
        return ask(self, question, how, deadline)

    monkeypatch.setattr(Answers, "ask", asking)
    with StubbornServer(answers) as server:
        session = bound(home, server.url)
        session.prepare(budget=8000)
        session.prepare(budget=LONG)
        session.memory = FakeMemory("near")
        session.prepare(budget=8000)
    assert given == [2.0, 48.0, float("inf")]


def test_a_memory_is_asked_once_for_a_user_message_and_in_one_round(home: str) -> None:
    with StubbornServer(answers) as server:
        session = bound(home, server.url)
        for number in range(5):
            turn = session.prepare(budget=LONG)
            assert has_document(turn)
            assert "moved to 17 Aug" in sent(turn)
            assert turn.missing == ()
            call(session, number)
        assert len(server.requests) == 1
        assert server.requests[0].startswith(b"POST /api/search_memories ")
        session.append("user", "And who comes to the launch?")
        session.prepare(budget=LONG)
        assert len(server.requests) == 2
        session.refresh()
        session.prepare(budget=LONG)
        assert len(server.requests) == 3


def test_a_memory_of_the_caller_is_asked_once_for_a_user_message_too(home: str) -> None:
    session = stage(home)
    session.memory = memory = FakeMemory("x", [Remembered("e1", "Bought in May.")])
    session.append("user", "Who owns the boat?")
    for number in range(3):
        session.prepare()
        call(session, number)
    assert memory.queries == ["Who owns the boat?"]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long turns were ready to wait for a request of theirs."""
    seconds: list[float] = []
    wait = threading.Event.wait

    class Waited(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            seconds.append(-1.0 if timeout is None else timeout)
            return wait(self, timeout)

    monkeypatch.setattr(answering, "Event", Waited)
    return seconds


def test_a_dead_server_is_waited_for_once_in_a_loop_on_one_message(home: str, waits: list[float]) -> None:
    with StubbornServer(never_answers) as server:
        session = bound(home, server.url)
        assert "60 ms" in lost(session.prepare(budget=SHORT), ANSWER).question
        for number in range(12):
            call(session, number)
            turn = session.prepare(budget=SHORT)
            assert "has not answered the request of an earlier call" in lost(turn, ANSWER).question
        assert len(server.requests) == 1
        assert 0 < waits[0] <= 0.06
        assert waits[1:] == [0.0] * 12
        session.append("user", "And now?")
        assert "60 ms" in lost(session.prepare(budget=SHORT), ANSWER).question
        assert waits[-1] > 0, "another message asks again"


def test_a_failure_is_remembered_for_a_while_and_the_record_says_so(home: str, waits: list[float]) -> None:
    now = [0.0]
    with StubbornServer(BROKEN["closes"]) as server:
        session = bound(home, server.url)
        session.turns.inputs.timer = lambda: now[0]
        first = lost(session.prepare(budget=LONG), ANSWER).question
        assert server.url in first
        asked = len(server.requests)
        call(session, 1)
        again = lost(session.prepare(budget=LONG), ANSWER).question
        assert "not asked again for this message within 15 s" in again
        assert len(server.requests) == asked
        now[0] = 16.0
        server.behaviour = answers
        call(session, 2)
        session.prepare(budget=LONG)  # asks without waiting
        assert waits[-1] == 0.0
        until_idle()
        call(session, 3)
        turn = session.prepare(budget=LONG)
        assert (has_document(turn), turn.missing) == (True, ())


def test_a_late_answer_is_used_by_the_next_turn(home: str) -> None:
    with StubbornServer(answers_after_release) as server:
        session = bound(home, server.url)
        turn = session.prepare(budget=SHORT)
        assert not has_document(turn)
        server.released.set()
        until_idle()
        call(session, 1)
        later = session.prepare(budget=SHORT)
        assert (has_document(later), later.missing) == (True, ())
        assert "moved to 17 Aug" in sent(later)
        assert len(server.requests) == 1
        assert replayed(session, turn)
        assert replayed(session, later)


def test_a_late_document_is_used_for_another_message_but_its_entries_are_not(home: str) -> None:
    with StubbornServer(answers_after_release) as server:
        session = bound(home, server.url)
        session.prepare(budget=SHORT)
        server.released.set()
        until_idle()
        server.released.clear()
        server.behaviour = never_answers
        session.append("user", "And what of the boat?")
        turn = session.prepare(budget=SHORT)
        assert "60 ms" in lost(turn, ANSWER).question
        assert has_document(turn)
        assert "moved to 17 Aug" not in sent(turn)
        assert replayed(session, turn)


def test_a_server_that_stops_answering_takes_no_document_away(home: str) -> None:
    with StubbornServer(answers) as server:
        session = bound(home, server.url)
        assert has_document(session.prepare(budget=LONG))
    session.close()
    session = stage(home)  # another process knows the document from the epoch alone
    session.append("user", "And now?")
    turn = session.prepare(budget=LONG)
    assert "Connection refused" in lost(turn, ANSWER).question
    assert has_document(turn)
    assert turn.new_epoch == ""
    assert turn.omitted == ()


def test_a_memory_of_the_caller_that_hangs_does_not_hold_a_turn_with_a_limit(home: str) -> None:
    release = threading.Event()

    class Hanging(FakeMemory):
        def document(self) -> str | None:
            release.wait()
            return "late"

    session = stage(home)
    session.append("user", "Who owns the boat?")
    session.memory = Hanging()
    turn = session.prepare(budget=SHORT)
    assert "60 ms" in lost(turn, ANSWER).question
    assert not release.is_set()
    release.set()
    until_idle()
    assert "late" in session.prepare(budget=SHORT).quoted


def test_a_capture_makes_the_next_call_ask_again(home: str) -> None:
    with StubbornServer(answers) as server:
        session = bound(home, server.url)
        session.prepare(budget=LONG)
        with pytest.raises(DaypackError):
            session.capture()  # the server says nothing that a keeper understands
        asked = len(server.requests)
        session.prepare(budget=LONG)
        assert len(server.requests) == asked + 1


def test_a_process_ends_while_its_memory_server_hangs(home: str) -> None:
    code = """
import sys, daypack
session = daypack.open_session("work", home=sys.argv[1], workspace="")
turn = session.prepare(budget={"tokens": 8000, "ms": 50})
session.close()
print(turn.missing[0].id)
"""
    with StubbornServer(never_answers) as server:
        bound(home, server.url).close()
        ran = subprocess.run([sys.executable, "-c", code, home], capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"{ANSWER}\n", "")
        assert not server.released.is_set()


# Capture, bind, close


def test_a_capture_stops_at_a_server_that_does_not_answer(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "ANSWER_SECONDS", 1.0)
    monkeypatch.setattr(memory_binding, "CLOSING_SECONDS", 0.05)
    with StubbornServer(never_answers) as server:

        def behave(_: StubbornServer, connection: socket.socket) -> None:
            head = server.requests[-1]
            if b"get_context" in head or b"list_entries" in head:
                connection.sendall(response(CONTEXT if b"get_context" in head else PAGE))
            else:
                server.released.wait()

        server.behaviour = behave
        session = bound(home, server.url)
        for number in range(20):
            session.append("user", f"Fact {number}: the launch is on day {number}.")
        assert session.capture() == ()
        assert sum(b"add_entry" in head for head in server.requests) == 1
        assert session.meta["memory"]["captured_through"] == 0
        with pytest.raises(DaypackError):
            session.close()


def test_closing_gives_a_server_a_few_seconds_in_all(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []
    within = remote.RemoteMemories.within

    def limited(self: remote.RemoteMemories, deadline: Deadline) -> remote.RemoteMemories:
        given.append(deadline.seconds)
        return within(self, deadline)

    monkeypatch.setattr(remote.RemoteMemories, "within", limited)
    monkeypatch.setattr(memory_binding, "CLOSING_SECONDS", 0.05)

    def nothing(*_: object) -> Iterator[Message]:
        return iter(())

    monkeypatch.setattr(memory_binding.Bound, "_uncaptured", nothing)
    replies = [CONTEXT, PAGE]

    def behave(server: StubbornServer, connection: socket.socket) -> None:
        connection.sendall(response(replies.pop(0))) if replies else server.released.wait()

    with StubbornServer(behave) as server:
        session = bound(home, server.url)
        session.capture()
        with pytest.raises(ServerUnreachable):
            session.close()
        assert given == [0.05]
        assert server.holds()


def test_binding_to_a_server_that_does_not_answer_ends_with_an_error(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "ANSWER_SECONDS", 0.05)
    with StubbornServer(never_answers) as server:
        session = stage(home)
        with pytest.raises(ServerUnreachable, match="no response in time"):
            session.bind_memory(MEMORY, url=server.url, user="ada")
        assert "memory" not in session.meta


# Many servers


def test_slow_dead_and_lying_servers_cost_no_turn_and_change_no_replay(home: str, campaign: Campaign) -> None:
    draw = random.Random(campaign.seed)
    kinds: dict[str, Behaviour] = {one.__name__: one for one in HANGING}
    kinds |= {"answers": answers, "late": answers_after_release, **BROKEN}
    kinds |= {f"lies: {name}": one for name, one in LYING.items()}
    tried = 0
    for number in range(campaign.size("memory servers", 200, least=len(kinds))):
        name = [*kinds][number] if number < len(kinds) else draw.choice([*kinds])
        with StubbornServer(kinds[name]) as server:
            session = bound(home, server.url, f"s{number}")
            first_ms = 60_000 if name.startswith("lies") else draw.choice((10, 40, 80))
            turns = [session.prepare(budget={"tokens": 8000, "ms": first_ms})]
            call(session, 1)
            server.behaviour = kinds[draw.choice([*kinds])]
            turns.append(session.prepare(budget={"tokens": 8000, "ms": 30}))
            session.append("user", "And who comes?")
            turns.append(session.prepare(budget={"tokens": 8000, "ms": 30}))
            for turn in turns:
                assert replayed(session, turn), name
                told = {item.item_ref for item in turn.items} | {left.item for left in turn.omitted}
                assert turn.missing or "memory" in told, name
                assert all(server.url in gap.question for gap in turn.missing if gap.id == ANSWER), name
            server.released.set()
            until_idle()
            session.close()
            tried += 1
    assert tried >= len(kinds)


def test_a_memory_that_is_gone_is_not_said_to_be_silent(home: str) -> None:
    session = stage(home, "work")
    write_binding(session.history, Binding(memory_id=MEMORY))
    session.append("user", "When is the launch?")
    question = lost(session.prepare(budget=8000), ANSWER).question
    assert "It cannot be used: " in question
    assert "did not answer" not in question
