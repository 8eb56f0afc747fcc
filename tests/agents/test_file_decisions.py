"""Before an edit, where the user switched that on: the model reads what an earlier session decided about the file."""

import pytest
from coding_agents import PROGRAMS, Codex, Machine, OpenCode, Program, Qwen, Story, installed, read_parts
from model_endpoint import Say

DECIDED = "In {name}.py, never retry a refused payment, because the bank counts it as fraud."


@pytest.fixture(scope="module")
def recalling(machine: Machine) -> Machine:
    """A machine whose user wants to be reminded before edits."""
    machine.daypack("session", "new", "any")
    (folder,) = machine.daypack_home.glob("home/*")
    (folder / "config.toml").write_text("[hooks]\nrecall_before_edit = true\n", encoding="utf-8")
    for kind in PROGRAMS:
        installed(kind, machine)
    machine.daypack("setup", "--yes")
    return machine


@pytest.mark.parametrize("kind", PROGRAMS, ids=lambda kind: kind.name)
def test_the_model_reads_what_was_decided_about_the_file_that_it_edits(
    kind: type[Program], recalling: Machine, story: Story
) -> None:
    program = installed(kind, recalling)
    if isinstance(program, Codex):
        program.trust()
    decided = DECIDED.format(name=kind.name)
    story.on(decided, "Understood.")
    earlier = program.ask(decided)
    recalling.wait_for(program.agent, earlier, "Understood.")
    edit = f"Create the next module for {kind.name}."
    story.on(edit, Say(calls=(program.write(recalling.project / f"{kind.name}.py", "x = 1\n"),)), "Written.")
    first = len(recalling.endpoint.requests)
    later = program.ask(edit)
    shown = [
        part.text
        for part in read_parts(recalling.endpoint.bodies[first + 1])
        if f"decided before about {kind.name}.py" in part.text
    ]
    if isinstance(program, Qwen | OpenCode):  # the one would drop the text, the other would store it as the output
        assert not shown
    else:
        (text,) = shown
        assert decided in text
        assert f"{earlier[:8]} messages:" in text
    assert (recalling.project / f"{kind.name}.py").read_text(encoding="utf-8") == "x = 1\n"
    recalling.wait_for(program.agent, later, edit)
    assert not any("decided before" in entry for entry in recalling.entries())
    assert recalling.failures() == ""
