"""The coding agents by themselves: what the tests of this folder rely on, and no fault of daypack when it fails."""

import json

import pytest
from coding_agents import PROGRAMS, Machine, Part, Program, Story, installed, read_parts
from coding_agents.programs import Gemini, Qwen
from model_endpoint import Say


@pytest.mark.parametrize("kind", PROGRAMS, ids=lambda kind: kind.name)
def test_an_agent_calls_a_tool_and_resumes_a_session(kind: type[Program], machine: Machine, story: Story) -> None:
    program = installed(kind, machine)
    story.on(f"What does {kind.name} see?", Say("I look.", calls=(program.shell("cat README.md"),)), "A readme.")
    story.on(f"What else does {kind.name} see?", "Nothing.")
    first = len(machine.endpoint.requests)
    session = program.ask(f"What does {kind.name} see?")
    assert program.ask(f"What else does {kind.name} see?", session) == session
    resumed = next(
        parts
        for parts in map(read_parts, machine.endpoint.bodies[first:])
        if any("What else" in part.text for part in parts)
    )
    texts = [part.text for part in resumed if part.role == "assistant" and not part.is_call]
    assert texts == ["I look.", "A readme."]
    call = program.shell("cat README.md")
    expected = Part("assistant", json.dumps(call.arguments, sort_keys=True), call.name)
    assert [part for part in resumed if part.is_call] == [expected]
    output, *again = [part.text for part in resumed if part.role == "tool"]
    assert not again or kind is Gemini, "which sends it twice in a session that is resumed"
    # Once, on a busy machine, Qwen Code passed on another output; the cause is not known.
    assert "Retries are in retry.py." in output or kind is Qwen
    assert program.transcript(session).stat().st_size > 0
