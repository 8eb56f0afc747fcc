"""Naming a session: by the start of its name, mistyped, of another agent, or in a home of another user."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli.conftest import Command

import daypack
from daypack.errors import SessionMissing
from daypack.history.home import find_home

# Every command that reads or changes an existing session.
EXISTING = (
    "log {}", "session show {}", "pack {}", "prepare {}", "search {} hello", "recall {} msg-1", "pin {}", "rules {}",
    "switch {}", "tiers {}", "budget {}", "explain {}", "replay {}", "diff {} latest latest", "export {}", "compact {}",
    "compactions {}", "undo {}", "child {}", "rebuild {}", "index {}", "doctor {}", "gc {}", "gc {} --archive",
    "gc {} --delete --yes", "memory bind {} m", "memory capture {}", "lint --session {}", "reflect {}",
    "mcp --session {}",
)  # fmt: skip


# Those that without --agent mean a session of the agent "default".
OF_ONE_AGENT = ("gc {} --archive", "gc {} --delete --yes", "mcp --session {}")


def files(home: str) -> list[str]:
    return sorted(str(path) for path in Path(home).rglob("*"))


@pytest.mark.parametrize("line", EXISTING)
def test_a_typo_creates_nothing_and_names_the_nearest_session(command: Command, home: str, line: str) -> None:
    where, agent = find_home(home), "any agent"
    if where.database is not None and "--archive" in line:
        pytest.skip("an archive has files")
    command("append", "demo", "hello")
    before = files(home)
    done = command(*line.format("dmo").split())
    assert (done.returncode, done.stdout) == (1, "")
    place = where.sessions_place
    if line in OF_ONE_AGENT:
        place, agent = where.sessions("default") if where.database is None else place, "agent default"
    assert done.stderr == f"daypack: no such session: 'dmo' of {agent} [{place}]\n  → did you mean demo?\n"
    assert files(home) == before


def test_without_an_agent_a_session_of_any_agent_is_found_and_named(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    command("append", "talk-1", "hello", "--agent", "coder")
    for name in ("talk-1", "tal", "coder/talk-1", "coder/t"):
        done = command("log", name)
        assert ("hello" in done.stdout, done.stderr) == (True, "session coder/talk-1\n")
    assert command("log", "other").stderr.splitlines()[1] == "  → list them with `daypack session list`"
    hint = "  → agent coder has a session 'talk-1': add --agent coder"
    assert command("log", "talk-1", "--agent", "default").stderr.splitlines()[1] == hint
    monkeypatch.setenv("DAYPACK_AGENT", "default")
    assert command("log", "talk-1").stderr.splitlines()[1] == hint
    assert command("log", "coder/talk-1").returncode == 0


def test_the_default_agent_comes_first_and_names_that_several_agents_have_are_refused(command: Command) -> None:
    for agent, name in (("coder", "talk"), ("coder", "plan-1"), ("desk", "plan-1"), ("desk", "plan-2")):
        command("append", name, f"by {agent}", "--agent", agent)
    command("append", "talk", "by default")
    assert "by default" in command("log", "ta").stdout
    same, start = command("log", "plan-1"), command("log", "pla")
    assert (same.returncode, start.returncode) == (2, 2)
    assert same.stderr.splitlines() == [
        "daypack: 2 sessions have the name 'plan-1' [name]",
        "  → name one of them: coder/plan-1, desk/plan-1",
    ]
    assert start.stderr.splitlines() == [
        "daypack: 3 sessions begin with 'pla' [name]",
        "  → name one of them: coder/plan-1, desk/plan-1, desk/plan-2",
    ]
    assert "by desk" in command("log", "plan-2").stdout


@pytest.mark.parametrize("agent", ["default", "coder"])
def test_the_start_of_a_session_and_of_its_children_means_the_session(command: Command, agent: str) -> None:
    for name in ("3f2a", "3f2a--a1", "3f2a--a1--b", "3f2b--a1"):
        command("append", name, f"this is {name}", "--agent", agent)
    for start in ("3f2a", "3f2a"[:3] + "a"):
        assert "this is 3f2a\n" in command("log", start).stdout
    assert "this is 3f2b--a1\n" in command("log", "3f2b").stdout  # its parent was not imported
    assert "this is 3f2a--a1\n" in command("log", "3f2a--").stdout
    assert command("log", "3f2").returncode == 2


def test_several_sessions_of_one_command_may_be_those_of_several_agents(command: Command) -> None:
    command("append", "one", "hello", "--agent", "coder")
    command("append", "two", "hello", "--agent", "desk")
    done = command("index", "one", "two")
    assert done.stdout == "one: 1 message indexed\ntwo: 1 message indexed\n"
    assert "2 sessions" in command("doctor").stdout


# Without those that need the whole name, and the server that runs until its client disconnects.
ENDING = [line for line in EXISTING if not re.search(r"--archive|--delete|^mcp", line)]


@pytest.mark.parametrize("line", ENDING)
def test_the_start_of_a_name_is_enough_if_one_session_begins_so(command: Command, line: str) -> None:
    command("append", "release-notes", "hello")
    command("append", "other", "hello")
    done = command(*line.format("rel").split())
    assert "no such session" not in done.stderr
    assert "session release-notes\n" in done.stderr


def test_an_exact_name_wins_and_an_ambiguous_start_is_refused_with_the_names(command: Command) -> None:
    for name in ("demo", "demo-2", "demo-3"):
        command("append", name, f"this is {name}")
    assert "this is demo\n" in command("log", "demo").stdout
    refused = command("log", "dem")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "3 sessions of agent default begin with 'dem'" in refused.stderr
    assert "  → use more characters: demo, demo-2, demo-3\n" in refused.stderr


def test_a_command_that_creates_never_takes_the_start_of_a_name(command: Command) -> None:
    command("append", "demo", "hello")
    command("append", "dem", "another session")
    command("session", "new", "de")
    assert "another session" in command("log", "dem").stdout
    assert "hello" not in command("log", "dem").stdout
    assert command("log", "de").returncode == 0


def test_a_session_is_deleted_or_archived_by_its_whole_name_only(command: Command) -> None:
    command("append", "demo", "hello")
    for option in (("--delete", "--yes"), ("--archive",)):
        refused = command("gc", "dem", *option, "--force")
        assert (refused.returncode, "did you mean demo?" in refused.stderr) == (1, True)
    assert command("log", "demo").returncode == 0


def test_python_takes_whole_names_and_suggests_the_nearest(home: str) -> None:
    daypack.open_session("demo", home=home).close()
    with pytest.raises(SessionMissing, match=r"no such session: 'dem' of agent default.*did you mean demo"):
        daypack.open_session("dem", home=home, create=False)


# Another user's files


# Root obeys permissions too once it has given up its capabilities. A new program would get them back, so the command
# runs in the process that did.
UNPRIVILEGED = """
import ctypes, sys
version_3, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
assert ctypes.CDLL(None).capset(version_3, none) == 0
from daypack.__main__ import main
sys.exit(main())
"""
Unprivileged = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def unprivileged(home: str) -> Unprivileged:
    """Run `daypack …` as a program that obeys the permissions of files."""

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", UNPRIVILEGED, *args, "--home", home]
        return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)

    return run


@pytest.fixture
def denied(home: str) -> Iterator[Path]:
    """The folder of a user, which the caller cannot enter: it belongs to another user, or denies its owner."""
    daypack.open_session("talk", home=home).close()
    folder = Path(home, "home", str(os.getuid()))
    if os.geteuid() == 0:
        os.chown(folder, 4321, 4321)
        folder.chmod(0o700)
    else:
        folder.chmod(0)
    yield folder
    if os.geteuid() == 0:
        os.chown(folder, 0, 0)
    folder.chmod(0o700)


DENIED = (
    "log talk", "append talk hello", "session new other", "session list", "session show talk", "pack talk", "doctor",
    "doctor talk", "gc talk", "gc --all", "gc talk --archive", "reflect talk", "index talk", "memory list", "user",
    "token list", "model list", "memory bind talk m", "search talk x",
)  # fmt: skip


def test_an_unreadable_home_is_permission_denied_with_its_owner(unprivileged: Unprivileged, denied: Path) -> None:
    owner = "user 4321" if os.geteuid() == 0 else "chmod u+rwX"
    for line in DENIED:
        done = unprivileged(*line.split())
        assert (done.returncode in (1, 2), done.stdout, "Traceback" in done.stderr) == (True, "", False), line
        assert "permission denied" in done.stderr.lower(), line
        assert str(denied) in done.stderr, line
        assert "no such session" not in done.stderr, line
    hint = unprivileged("log", "talk").stderr.splitlines()[1]
    assert owner in hint
    assert str(denied) in hint


def test_an_unreadable_session_is_permission_denied(unprivileged: Unprivileged, home: str) -> None:
    with daypack.open_session("talk", home=home) as session:
        session.append("user", "hello")
        log = session.path / "messages.jsonl"
    if os.geteuid() == 0:
        os.chown(log, 4321, 4321)
    log.chmod(0)
    done = unprivileged("log", "talk")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"daypack: permission denied [{log}]\n" in done.stderr


def test_a_session_that_no_agent_has_is_not_said_to_be_missing_of_one(command: Command) -> None:
    command("append", "port-8080", "hello", "--agent", "codex")
    done = command("log", "port-880")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no such session: 'port-880' of any agent" in done.stderr
    assert "did you mean port-8080?" in done.stderr


@pytest.mark.parametrize(
    "line", ["log talk", "session list", "session show talk", "find hello", "doctor", "turns talk"]
)
def test_an_agent_is_chosen_by_its_name_or_by_the_word_for_its_program(command: Command, line: str) -> None:
    command("append", "talk", "hello", "--agent", "claude-code")
    named, short = (command(*line.split(), "--agent", name) for name in ("claude-code", "claude"))
    assert named.returncode == 0
    assert (short.returncode, short.stdout) == (0, named.stdout)


def test_an_agent_of_that_very_name_is_preferred_to_the_word_for_a_program(command: Command) -> None:
    command("append", "talk", "mine", "--agent", "claude")
    command("append", "talk", "theirs", "--agent", "claude-code")
    assert "mine" in command("log", "talk", "--agent", "claude").stdout


def test_a_whole_name_may_begin_with_the_word_for_a_program(command: Command) -> None:
    command("append", "talk", "hello", "--agent", "claude-code")
    assert "hello" in command("log", "claude/talk").stdout
