"""Other agents in a project that Claude Code worked on: one turn with what is known, and the tools."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from coding_agents import Claude, Copilot, Gemini, Machine, Program, Qwen, Story, installed, offered_tools, read_parts
from model_endpoint import ModelEndpoint, Say

from daypack.serve.toolset import NAMES

PROMPT = "On which host does the staging database run?"
DOCUMENT = "# Project\n\n## Stable facts\n\n- Jobs are started by Quartzkeeper, the scheduler of this project.\n"
FACT = "The staging database runs on the host db-staging-17.internal, and its port is 6543."


@dataclass
class Turn:
    """A turn that was held: the session, and the requests that it made."""

    program: Program
    session: str
    bodies: list[dict[str, Any]]

    @property
    def first(self) -> str:
        return "\n".join(part.text for part in read_parts(self.bodies[0]))


@pytest.fixture(scope="module", params=[Copilot, Qwen, Gemini], ids=lambda kind: kind.name)
def turn(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Turn]:
    story = Story()
    with ModelEndpoint(answer=story.answer, strict=False) as endpoint:
        machine = Machine(tmp_path_factory.mktemp(request.param.name), endpoint)
        program = installed(request.param, machine)
        machine.daypack("setup", "--yes")
        machine.run("daypack", "memory", "context", "--put", "-", stdin=DOCUMENT)
        claude = installed(Claude, machine)
        machine.wait_for(claude.agent, claude.ask(FACT), FACT)
        first = len(endpoint.requests)
        look = Say("I look.", calls=(program.shell("cat README.md"),))
        search = Say(calls=(program.memory_tool("search_memories", {"query": "staging database"}),))
        story.on(PROMPT, look, search, "It runs on the staging host.")
        session = program.ask(PROMPT)
        machine.wait_for(program.agent, session, "It runs on the staging host.")
        yield Turn(program, session, endpoint.bodies[first:])


def test_the_nine_tools_are_offered(turn: Turn) -> None:
    ours = [name for name in offered_tools(turn.bodies[0]) if "daypack" in name]
    assert sorted(re.split(r"__|-|^mcp_daypack_", name)[-1] for name in ours) == sorted(NAMES)


def test_a_tool_finds_the_memory_of_the_project_without_an_id(turn: Turn) -> None:
    outputs = [part.text for part in read_parts(turn.bodies[2]) if part.role == "tool"]
    assert FACT in outputs[-1]


def test_the_first_request_has_the_document_and_what_belongs_to_the_prompt(turn: Turn) -> None:
    assert "Quartzkeeper" in turn.first
    assert FACT in turn.first


def test_the_turn_is_recorded_without_what_was_injected(turn: Turn) -> None:
    recorded = turn.program.machine.recorded(turn.program.agent, turn.session)
    said = [part for part in recorded if part.role in ("user", "assistant") and not part.is_call]
    assert [(part.role, part.text) for part in said] == [
        ("user", PROMPT),
        ("assistant", "I look."),
        ("assistant", "It runs on the staging host."),
    ]
    entries = turn.program.machine.entries()
    assert [entry for entry in entries if "db-staging-17.internal" in entry] == [FACT]
    assert turn.program.machine.failures() == ""
