"""The requests that Claude Code records: every one of them is rebuilt as it went over the wire."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from coding_agents import Claude, Machine, Story, installed, read_parts
from coding_agents.story import is_summary_call
from model_endpoint import Call, ModelEndpoint, Say
from recorded_requests import assert_rebuilt

import daypack
from daypack.importers.import_file import Destination, import_file

FIRST, SECOND, THIRD, FOURTH = "Look at the project.", "Count its files twice.", "Ask somebody else.", "What is left?"
OTHER_WAY = "Go another way."


@dataclass
class Recorded:
    """The sessions of a conversation that daypack imported, and what went over the wire."""

    machine: Machine
    session: str
    fork: str
    wire: list[dict[str, Any]]

    def rebuilt(self, name: str) -> int:
        """Rebuild the recorded requests of a session, and return their number."""
        home = str(self.machine.daypack_home)
        with daypack.open_session(name, agent="claude-code", home=home, create=False) as session:
            return assert_rebuilt(session, self.wire)

    def daypack(self, *arguments: str) -> Any:
        return json.loads(self.machine.daypack(*arguments, "--json"))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    story = Story()
    with ModelEndpoint(answer=story.answer, strict=False) as endpoint:
        machine = Machine(tmp_path_factory.mktemp("requests"), endpoint)
        program = installed(Claude, machine)
        task = {"description": "look", "prompt": "Look for it.", "subagent_type": "general-purpose"}
        both = (program.shell("ls"), program.shell("ls -a"))
        story.on(FIRST, Say("I look.", calls=(program.shell("cat README.md"),), thinking="Let me see."), "A readme.")
        story.on(SECOND, Say(calls=both), "Some.")
        story.on(THIRD, Say("I ask.", calls=(Call("Agent", task),)), "It was asked.")
        story.on("Look for it.", Say("I look too.", calls=(program.shell("ls"),)), "Found.")
        story.on(FOURTH, "Nothing.")
        story.on(OTHER_WAY, "I do.")
        session = program.ask(FIRST)
        program.ask(SECOND, session)
        program.ask(THIRD, session)
        fork = program.fork(OTHER_WAY, session)
        program.compact(session, then=FOURTH)
        for name in (session, fork):
            import_file(
                "claude-code", str(program.transcript(name)), Destination(str(machine.daypack_home), agent=None)
            )
        yield Recorded(machine, session, fork, endpoint.bodies)


def test_every_request_of_a_session_its_sub_agents_and_its_copy_is_rebuilt(recorded: Recorded) -> None:
    names = recorded.machine.sessions("claude-code")
    counts = {name: recorded.rebuilt(name) for name in names}
    assert counts[recorded.session] >= 7
    assert counts[recorded.fork] >= 1
    assert any(name.startswith(f"{recorded.session}--") and counts[name] >= 2 for name in names), counts
    asked = [body for body in recorded.wire if not is_summary_call(read_parts(body))]
    own = {name: count for name, count in counts.items() if not name.startswith(recorded.fork)}
    assert sum(own.values()) + 1 == len(asked), "but for the one of the copy"


def test_every_call_is_listed_with_what_the_endpoint_reported(recorded: Recorded) -> None:
    listed = recorded.daypack("turns", recorded.session, "-n", "0")
    calls = [entry for entry in listed if entry["kind"] == "observed"]
    assert [entry["kind"] for entry in listed].count("compaction") == 1
    assert all(call["input_tokens"] for call in calls)
    assert all(call["reply"] for call in calls)


def test_nothing_in_a_request_is_of_unknown_origin(recorded: Recorded) -> None:
    for call in recorded.daypack("turns", recorded.session, "-n", "0"):
        if call["kind"] == "observed":
            parts = recorded.daypack("explain", recorded.session, "--event", call["event"])["parts"]
            assert [part for part in parts if part["source"] == "unknown"] == []


def test_the_commands_verify_and_compare_what_was_sent(recorded: Recorded) -> None:
    every = recorded.daypack("replay", recorded.session, "--all")
    assert (every["failed"], every["unknown"], every["verified"] > 6) == ([], [], True)
    found = recorded.daypack("diff", recorded.session)
    assert found["difference"]["shape_known"]
