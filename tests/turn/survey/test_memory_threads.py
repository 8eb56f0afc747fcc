"""Threads that ask memories are bounded, whatever servers and sessions do."""

import threading

import pytest
from stubborn_server import StubbornServer, answers, answers_after_release, never_answers
from turn.scenes import lost
from turn.survey.test_memory import LONG, SHORT, bound, has_document, until_idle

from daypack.memory import answers as answering
from daypack.memory.answers import Answers, Question
from daypack.turn.memory_binding import Binding, write_binding
from daypack.turn.survey.memory import ANSWER
from daypack.types.deadline import Deadline


def until_answered(waiting: int) -> None:
    """Wait until no more than so many threads ask a memory."""
    while sum(thread.name == "daypack memory" for thread in threading.enumerate()) > waiting:
        threading.Event().wait(0.001)


def test_a_server_that_hangs_collects_no_threads(home: str) -> None:
    with StubbornServer(never_answers) as server:
        session = bound(home, server.url)
        turn = session.prepare(budget={"tokens": 8000, "ms": 20})
        for number in range(6):
            session.append("user", f"Question {number}?")
            turn = session.prepare(budget={"tokens": 8000, "ms": 20})
        assert "has not answered earlier requests" in lost(turn, ANSWER).question
        assert server.holds(2)
        assert len(server.requests) <= 2


def test_a_server_that_hangs_collects_no_threads_by_refreshing(home: str) -> None:
    with StubbornServer(never_answers) as server:
        session = bound(home, server.url)
        for _ in range(6):
            session.refresh()
            turn = session.prepare(budget={"tokens": 8000, "ms": 20})
            assert "It" in lost(turn, ANSWER).question
        assert server.holds(2)
        assert len(server.requests) <= 2


def test_threads_of_many_sessions_and_bindings_are_bounded_and_another_memory_is_asked_meanwhile(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    until_idle()
    monkeypatch.setattr(answering, "_MAX_THREADS", 5)
    with StubbornServer(never_answers) as dead, StubbornServer(answers) as live:
        for number in range(4):
            with bound(home, dead.url, f"work{number}") as session:
                session.prepare(budget={"tokens": 8000, "ms": 20})
        session = bound(home, live.url)
        assert has_document(session.prepare(budget=LONG))
        until_answered(4)
        questions: list[str] = []
        for number in range(4):
            write_binding(session.history, Binding(memory_id=f"{number}" * 32, url=dead.url))
            questions.append(lost(session.prepare(budget={"tokens": 8000, "ms": 20}), ANSWER).question)
        assert "5 requests of this process to memories are not answered yet" in questions[-1]
        assert len(dead.requests) <= 5


def test_an_answer_from_before_a_refresh_is_not_used(home: str) -> None:
    with StubbornServer(answers_after_release) as server:
        session = bound(home, server.url)
        session.prepare(budget=SHORT)
        assert server.holds()
        session.refresh()
        server.released.set()
        until_idle()
        assert not has_document(session.prepare(budget={"tokens": 8000, "ms": 0}))


def test_a_memory_of_the_caller_that_hangs_for_good_has_two_threads(home: str) -> None:
    answers, asked = Answers(lambda: next(seconds)), threading.Semaphore(0)
    seconds = iter(range(0, 100_000, 100))  # every look at the clock is later than any deadline
    release = threading.Event()

    def hang(_: Deadline) -> answering.Answer:
        asked.release()
        release.wait()
        return answering.Answer("late")

    given = Deadline.after(0.01, lambda: 0.0)
    replies = [answers.ask(Question("m", number), hang, given)() for number in range(5)]
    assert "has not answered earlier requests" in replies[-1].problem
    assert [asked.acquire(timeout=60) for _ in range(2)] == [True, True]
    assert not asked.acquire(blocking=False)
    release.set()
