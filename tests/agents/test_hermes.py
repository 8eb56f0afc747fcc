"""Hermes Agent with daypack as its context engine, set up by `daypack setup`: what is sent, and what is stored."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from coding_agents import Machine
from coding_agents.hermes import WINDOW, Hermes
from model_endpoint import Call, ModelEndpoint, Request, Say

TURNS = 12
REVIEW = "Review the conversation above"


class Told(NamedTuple):
    """A long conversation: the program, what it says, and the requests of it."""

    hermes: Hermes
    said: dict[str, Any]
    requests: list[list[dict[str, Any]]]
    settings: bytes


def answer(request: Request) -> Say:
    """Run a command first, then answer; a review of the conversation ends at once."""
    last = request.body["messages"][-1]
    if last["role"] == "user" and REVIEW not in str(last["content"]):
        return Say("Looking.", calls=(Call("terminal", {"command": "seq 1 900"}),))
    return Say("It is done.")


def prompt(number: int) -> str:
    return f"Question {number} about port {9000 + number}: " + f"word{number} " * 3000


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    with ModelEndpoint(answer=answer, strict=False) as endpoint:
        machine = Machine(tmp_path_factory.mktemp("machine"), endpoint)
        hermes = Hermes(machine)
        settings = hermes.settings.read_bytes()
        machine.daypack("setup", "--agent", "hermes", "--yes", "--no-import")
        said = hermes.converse(*map(prompt, range(TURNS)))
        bodies = [request.body["messages"] for request in endpoint.requests]
        requests = [body for body in bodies if not any(REVIEW in str(message["content"]) for message in body)]
        yield Told(hermes, said, requests, settings)


def test_hermes_takes_the_engine_and_its_tools(told: Told) -> None:
    assert told.said["engine"] == "daypack"
    assert told.said["is_engine"]
    assert told.said["tools"] == ["recall", "search_history"]
    assert told.said["answer"] == "It is done."


def test_every_request_stays_within_the_window_and_has_the_newest_question(told: Told) -> None:
    assert len(told.requests) == TURNS * 2
    assert len(told.requests[-1]) < told.said["messages"] / 2
    for number, messages in enumerate(told.requests):
        assert sum(len(str(message["content"])) for message in messages) / 4 < WINDOW * 0.75
        newest = [message for message in messages if message["role"] == "user"][-1]
        assert prompt(number // 2).strip() in newest["content"]


def test_every_call_travels_with_its_result(told: Told) -> None:
    for messages in told.requests:
        called = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
        assert called == [message["tool_call_id"] for message in messages if message["role"] == "tool"]


def test_the_system_prompt_and_the_beginning_of_a_request_stay_within_an_epoch(told: Told) -> None:
    assert len({str(messages[0]) for messages in told.requests}) == 1
    pairs = list(zip(told.requests, told.requests[1:], strict=False))
    breaks = [1 for before, after in pairs if after[: len(before)] != before]
    assert len(breaks) <= 3


def test_the_whole_history_is_in_one_session(told: Told) -> None:
    machine = told.hermes.machine
    assert machine.sessions("hermes") == [told.said["session"]]
    recorded = machine.recorded("hermes", told.said["session"])
    asked = [part.text.strip() for part in recorded if part.role == "user"]
    assert asked == [prompt(number).strip() for number in range(TURNS)]
    assert len([part for part in recorded if part.role == "tool"]) == TURNS
    assert "daypack could not" not in told.hermes.log()


def test_a_resumed_session_adds_only_what_is_new(told: Told) -> None:
    machine, session = told.hermes.machine, told.said["session"]
    before = machine.recorded("hermes", session)
    out = told.hermes.ask("And now?", "--resume", session)
    assert "It is done." in out
    after = machine.recorded("hermes", session)
    assert after[: len(before)] == before
    assert [part.text for part in after[len(before) :] if part.role == "user"] == ["And now?"]
    assert machine.sessions("hermes") == [session]


def test_a_failure_of_daypack_sends_the_original(told: Told) -> None:
    machine = told.hermes.machine
    moved = machine.daypack_home.rename(machine.root / "moved")
    machine.daypack_home.write_text("not a folder")
    try:
        asked = len(machine.endpoint.requests)
        assert "It is done." in told.hermes.ask("Is anything there?")
        sent = machine.endpoint.requests[asked].body["messages"]
        assert [message["role"] for message in sent] == ["system", "user"]
        assert sent[1]["content"] == "Is anything there?"
        assert "daypack could not pack a request" in told.hermes.log()
    finally:
        machine.daypack_home.unlink()
        Path(moved).rename(machine.daypack_home)


def test_removal_leaves_hermes_as_it_was(told: Told) -> None:
    told.hermes.machine.daypack("setup", "--agent", "hermes", "--remove", "--yes")
    assert told.hermes.settings.read_bytes() == told.settings
    assert not (told.hermes.home / "plugins" / "daypack").exists()
