"""Large outputs of tools, where the user switched that on: the model sees a part, the id recalls the whole."""

import re

import pytest
from coding_agents import Claude, Copilot, Machine, Program, Story, installed, read_parts
from model_endpoint import Say

LONG = "for n in $(seq 1 400); do echo line $n of the report; done"


@pytest.fixture(scope="module")
def swapping(machine: Machine) -> Machine:
    """A machine whose user wants large outputs swapped."""
    machine.daypack("session", "new", "any")
    (folder,) = machine.daypack_home.glob("home/*")
    (folder / "config.toml").write_text("[hooks]\nswap_output_tokens = 300\n", encoding="utf-8")
    machine.daypack("setup", "--yes")
    return machine


@pytest.mark.parametrize("kind", [Claude, Copilot], ids=lambda kind: kind.name)
def test_a_large_output_is_shown_in_part_and_recalled_whole(
    kind: type[Program], swapping: Machine, story: Story
) -> None:
    program = installed(kind, swapping)
    story.on(f"Print the report, {kind.name}.", Say(calls=(program.shell(LONG),)), "It is long.")
    first = len(swapping.endpoint.requests)
    program.ask(f"Print the report, {kind.name}.")
    (shown,) = (part.text for part in read_parts(swapping.endpoint.bodies[first + 1]) if part.role == "tool")
    assert "line 1 of the report" in shown
    assert "line 400 of the report" in shown
    assert "line 200 of the report" not in shown
    named = re.search(r"`daypack (recall [^`]+)`", shown)
    assert named, shown
    whole = swapping.daypack(*named[1].split())
    assert [f"line {number} of the report" for number in range(1, 401)] == re.findall(r"line \d+ of the report", whole)
