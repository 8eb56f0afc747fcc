"""Runs of opencode that end with their reply: each is recorded, right after another one or beside it."""

import json
from concurrent.futures import ThreadPoolExecutor

from coding_agents import Machine, OpenCode, Story, installed


def test_runs_that_end_at_once_are_all_recorded(machine: Machine, story: Story) -> None:
    program = installed(OpenCode, machine)
    machine.daypack("setup", "--yes", "--agent", "opencode")
    names = ("Alder", "Birch", "Cedar", "Elder")
    said = {name: f"The service {name} listens on port {4500 + at}." for at, name in enumerate(names)}
    for name, prompt in said.items():
        story.on(prompt, f"I noted {name}.")
    sessions = {name: program.ask(said[name]) for name in names[:2]}  # one right after the other
    with ThreadPoolExecutor(2) as both:
        sessions.update(zip(names[2:], both.map(program.ask, [said[name] for name in names[2:]]), strict=True))
    for name, session in sessions.items():
        texts = [part.text for part in machine.wait_for("opencode", session, f"I noted {name}.")]
        assert texts == [said[name], f"I noted {name}."]
    assert set(said.values()) <= set(machine.entries())
    (ledger,) = machine.daypack_home.glob("home/*/past.json")
    (row,) = (row for path, row in json.loads(ledger.read_text()).items() if path.endswith("/opencode.db"))
    assert sorted(row[3]) == sorted(f"opencode/{session}" for session in sessions.values())
    assert machine.failures() == ""


def test_a_run_is_recorded_although_daypack_answered_too_late(machine: Machine, story: Story) -> None:
    program = installed(OpenCode, machine)
    program.variables = {**program.variables, "DAYPACK_PATIENCE_MS": "1"}
    machine.daypack("setup", "--yes", "--agent", "opencode")
    prompt = "The service Hazel listens on port 4510."
    story.on(prompt, "I noted Hazel.")
    session = program.ask(prompt)
    machine.wait_for("opencode", session, "I noted Hazel.")
    (line,) = machine.failures().splitlines()
    assert f" opencode texts {session} Error: no answer within 1 ms" in line
