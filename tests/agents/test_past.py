"""Sessions from before `daypack setup`, as the real programs left them."""

import pytest
from coding_agents import PROGRAMS, Machine, Program, Story, installed
from model_endpoint import Say


@pytest.mark.parametrize("kind", PROGRAMS, ids=lambda kind: kind.name)
def test_a_session_from_before_is_imported_and_remembered(kind: type[Program], machine: Machine, story: Story) -> None:
    program = installed(kind, machine)
    question = f"In which file does the {kind.name} client retry requests?"
    story.on(question, Say("I look.", calls=(program.shell("cat README.md"),)), "The retries are in retry.py.")
    session = program.ask(question)
    out = machine.daypack("setup", "--yes", "--agent", kind.name)
    assert "imported 1 session" in out
    log = machine.daypack("log", session)
    assert question in log
    assert "The retries are in retry.py." in log
    assert "retry.py" in machine.daypack("memory", "search", f"which file does the {kind.name} client retry requests")
    assert "imported" not in machine.daypack("setup", "--yes", "--agent", kind.name)
