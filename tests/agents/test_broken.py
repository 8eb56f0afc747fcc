"""A daypack that crashes, is gone or waits for a locked database: the turn is held, and is recorded later."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from coding_agents import PROGRAMS, Claude, Codex, Machine, Program, Story, eventually, installed, read_parts
from model_endpoint import ModelEndpoint

BROKEN = "#!/bin/sh\necho 'Traceback (most recent call last):'\nhead -c 100000 /dev/urandom\nkill -SEGV $$\n"


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


def test_a_daypack_that_crashes_stops_no_turn(program: Program) -> None:
    machine = program.machine
    working = (machine.bin / "daypack").read_text()
    first = len(machine.endpoint.requests)
    machine.put_daypack(BROKEN)
    try:
        program.ask("Say something.")
    finally:
        machine.put_daypack(working)
    parts = read_parts(machine.endpoint.bodies[first])
    assert any("Say something." in part.text for part in parts)
    assert not any("Traceback" in part.text for part in parts)


@pytest.mark.parametrize("program", [Claude, Codex], ids=lambda kind: kind.name, indirect=True)
def test_a_locked_memory_stops_no_turn_and_nothing_said_is_lost(program: Program) -> None:
    machine = program.machine
    session = program.ask("Module Maple uses port 4501.")
    machine.wait_for(program.agent, session, "I answer.")
    eventually(lambda: [entry for entry in machine.entries() if "4501" in entry])
    (store,) = machine.daypack_home.glob("home/*/memory/store.sqlite")
    with closing(sqlite3.connect(store)) as database:
        database.execute("PRAGMA locking_mode=EXCLUSIVE")
        database.execute("BEGIN EXCLUSIVE")
        program.ask("Module Rowan uses port 4602.", session)
    program.ask("Module Sorrel uses port 4703.", session)
    parts = machine.wait_for(program.agent, session, "4703")
    assert [part.text for part in parts if part.role == "user" and "uses port" in part.text] == [
        "Module Maple uses port 4501.",
        "Module Rowan uses port 4602.",
        "Module Sorrel uses port 4703.",
    ]
    eventually(lambda: [entry for entry in machine.entries() if "4703" in entry])
    assert [entry for entry in machine.entries() if "uses port" in entry] == [
        "Module Maple uses port 4501.",
        "Module Rowan uses port 4602.",
        "Module Sorrel uses port 4703.",
    ]
