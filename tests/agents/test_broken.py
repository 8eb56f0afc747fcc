"""A daypack that crashes, hangs, is gone or cannot write: the turn of the agent goes on, and nothing of it is lost."""

from collections.abc import Iterator

import pytest
from coding_agents import PROGRAMS, Codex, Machine, Program, Story, installed, read_parts
from model_endpoint import ModelEndpoint

CRASHING = "#!/bin/sh\necho 'Traceback (most recent call last):'\nkill -SEGV $$\n"
GARBAGE = "#!/bin/sh\nhead -c 100000 /dev/urandom\nexit 2\n"


@pytest.fixture(scope="module", params=PROGRAMS, ids=lambda kind: kind.name)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    story = Story(other="I answer.")
    with ModelEndpoint(answer=story.answer, strict=False) as endpoint:
        machine = Machine(tmp_path_factory.mktemp(request.param.name), endpoint)
        program = installed(request.param, machine)
        machine.daypack("setup", "--yes")
        if isinstance(program, Codex):
            program.trust()
        yield program


@pytest.mark.parametrize("broken", [CRASHING, GARBAGE], ids=["crashing", "garbage"])
def test_a_broken_daypack_stops_no_turn(program: Program, broken: str) -> None:
    machine = program.machine
    working = (machine.bin / "daypack").read_text()
    first = len(machine.endpoint.requests)
    machine.put_daypack(broken)
    try:
        program.ask("Say something.")
    finally:
        machine.put_daypack(working)
    (body, *_) = machine.endpoint.bodies[first:]
    assert any("Say something." in part.text for part in read_parts(body))
    assert not any("Traceback" in part.text for part in read_parts(body))
