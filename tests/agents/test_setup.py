"""`daypack setup` and `daypack setup --remove` on the settings of the real programs."""

import pytest
from coding_agents import PROGRAMS, Claude, Codex, Machine, Program, installed

# How each program says which plug-ins it has.
LISTS: dict[str, tuple[str, ...]] = {
    "claude": ("plugin", "list"),
    "codex": ("plugin", "list"),
    "copilot": ("plugin", "list"),
    "qwen": ("extensions", "list"),
    "gemini": ("extensions", "list"),
    "opencode": ("debug", "config"),
}
SETTINGS = {
    ".claude/settings.json": '{\n    "model": "opus",\n    "env": {"EDITOR":   "vi"}\n}\n',
    ".copilot/settings.json": '{"banner": "never"}',
    ".gemini/settings.json": '{"ui": {"theme":  "Default"}}',
    ".qwen/settings.json": '{\n  "ui": {"theme": "Default"} // mine\n}\n',
}
# SQLite notes every reader there, and `daypack setup` reads the sessions that already happened.
NOT_COMPARED = (".daypack", ".local/share/opencode/opencode.db-shm")


@pytest.fixture
def used(machine: Machine) -> Machine:
    """A machine whose user has settings of their own, and has started every program."""
    for name, text in SETTINGS.items():
        path = machine.home / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for kind in PROGRAMS:
        listed(installed(kind, machine))
    return machine


def listed(program: Program) -> str:
    """Return what a program says about its plug-ins; some say it on standard error."""
    done = program.machine.run(program.command, *LISTS[program.name], more=program.variables)
    return done.stdout + done.stderr


def test_a_set_up_is_taken_back_byte_for_byte(used: Machine) -> None:
    before = used.files(without=NOT_COMPARED)
    used.daypack("setup", "--yes")
    with_daypack = used.files(without=NOT_COMPARED)
    used.daypack("setup", "--yes")
    assert used.files(without=NOT_COMPARED) == with_daypack
    used.daypack("setup", "--remove", "--yes")
    after = used.files(without=NOT_COMPARED)
    assert set(after) == set(before)
    assert {name for name in before if before[name] != after[name]} == set()


def test_every_program_lists_the_plug_in_until_it_is_removed(used: Machine) -> None:
    used.daypack("setup", "--yes")
    for kind in PROGRAMS:
        assert "daypack" in listed(kind(used)), kind.name
    used.daypack("setup", "--remove", "--yes")
    for kind in PROGRAMS:
        assert "daypack" not in listed(kind(used)), kind.name


def test_what_a_set_up_changed_is_taken_back_exactly_after_it_was_used(used: Machine) -> None:
    claude, codex = Claude(used), Codex(used)
    before = used.files(without=NOT_COMPARED)
    used.daypack("setup", "--yes")
    changed = {name for name, content in used.files(without=NOT_COMPARED).items() if before.get(name) != content}
    codex.trust()
    claude.ask("Say something.")
    codex.ask("Say something.")
    used.daypack("setup", "--remove", "--yes")
    after = used.files(without=NOT_COMPARED)
    assert len(changed) > 5
    assert {name: after.get(name) for name in changed} == {name: before.get(name) for name in changed}
