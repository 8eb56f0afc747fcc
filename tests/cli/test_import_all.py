"""`daypack import --all`: the commands, what they print, and their exit codes."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from agents_home import AgentsHome, set_minute
from user_home import UserHome

Run = Callable[..., CompletedProcess[str]]
ID = "01a1ec69-6358-7c01-b518-b5b523a473a9"


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AgentsHome:
    monkeypatch.setenv("DAYPACK_DURABILITY", "os")
    return AgentsHome(tmp_path / "user", monkeypatch)


def test_all_places_are_imported_and_listed(agents: AgentsHome, command: Run) -> None:
    agents.claude("a", "One?", "Two.")
    agents.claude("b", "One?")
    agents.codex(ID, "Where is the port?")
    done = command("import", "--all")
    assert done.returncode == 0, done.stderr
    assert "imported:" in done.stdout
    assert "daypack find" in done.stderr.splitlines()[-1]
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["2", "2", "3", "0", "0", "Claude", "Code"] in rows
    assert ["1", "1", "1", "0", "0", "Codex"] in rows
    assert "nothing found of Copilot CLI (~/.copilot)" in done.stderr
    assert "Where is the port?" in command("log", f"codex/{ID}").stdout
    again = command("import", "--all")
    assert "everything is imported" in again.stdout
    assert "imported:" not in again.stdout


def test_a_dry_run_counts_and_writes_nothing(agents: AgentsHome, command: Run, home: str) -> None:
    agents.claude("a", "One?")
    done = command("import", "--all", "--dry-run")
    assert done.returncode == 0
    assert "nothing written" in done.stderr
    assert ["1", "0.2", "kB", "1", "0.2", "kB", "Claude", "Code"] in [line.split() for line in done.stdout.splitlines()]
    assert not os.path.exists(home)


def test_only_the_chosen_agents_are_imported(agents: AgentsHome, command: Run, home: str) -> None:
    agents.claude("a", "One?")
    agents.codex(ID, "One?")
    for name in ("claude", "claude-code"):
        assert "Codex" not in command("import", "--all", "--agent", name, "--dry-run").stdout
    assert "Codex" in command("import", "--all", "--agent", "claude,codex", "--dry-run").stdout
    refused = command("import", "--all", "--agent", "codx")
    assert refused.returncode == 2
    assert "did you mean codex?" in refused.stderr


def test_the_default_agent_does_not_restrict_the_places(
    agents: AgentsHome, command: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents.claude("a", "One?")
    monkeypatch.setenv("DAYPACK_AGENT", "mine")
    assert command("import", "--all").returncode == 0
    assert "One?" in command("log", "claude-code/a").stdout


def test_only_files_since_a_time_are_imported(agents: AgentsHome, command: Run) -> None:
    set_minute(agents.claude("old", "One?"), 5)
    agents.claude("new", "One?")
    assert json.loads(command("import", "--all", "--since", "2d", "--json").stdout)["places"][0]["new_files"] == 1
    since = json.loads(command("import", "--all", "--since", "1970-01-01T00:10:00Z", "--json").stdout)
    assert since["places"][0]["new_files"] == 0
    assert json.loads(command("import", "--all", "--json").stdout)["places"][0]["new_files"] == 1
    assert "must be an age such as 7d" in command("import", "--all", "--since", "yesterdayish").stderr


def test_only_sessions_of_a_project_are_imported(agents: AgentsHome, command: Run, tmp_path: Path, home: str) -> None:
    for name in ("here", "there"):
        (tmp_path / name / ".git").mkdir(parents=True)
        agents.claude(name, "One?", cwd=str(tmp_path / name))
    done = command("import", "--all", "--project", str(tmp_path / "here"), "--json")
    assert json.loads(done.stdout)["places"][0]["imported"]["sessions"] == 1
    assert command("log", "claude-code/here").returncode == 0
    assert command("log", "claude-code/there").returncode != 0
    assert command("import", "--all", "--project", str(tmp_path / "nowhere")).returncode == 2


def test_files_that_fail_are_named_with_reasons_and_the_exit_code_is_one(agents: AgentsHome, command: Run) -> None:
    agents.claude("a", "One?")
    for number in range(3):
        agents.claude(f"broken{number}", "One?").write_text("no transcript\n")
    done = command("import", "--all")
    assert done.returncode == 1
    assert done.stderr.count("unknown format") == 3
    assert ["4", "1", "1", "0", "3", "Claude", "Code"] in [line.split() for line in done.stdout.splitlines()]
    (agents.folder / ".claude/projects/-work/broken0.jsonl").write_text("still none\n")
    answer = command("import", "--all", "--json")
    assert answer.returncode == 1
    (failed,) = json.loads(answer.stdout)["failed"]
    assert failed["path"].endswith("broken0.jsonl")


@pytest.mark.parametrize(
    "arguments",
    [
        ("import",),
        ("import", "--all", "some.jsonl"),
        ("import", "some.jsonl", "--dry-run"),
        ("import", "some.jsonl", "--since", "1d"),
        ("import", "--all", "--session", "x"),
        ("import", "--watch", "--dry-run"),
        ("import", "--watch", "missing.jsonl"),
    ],
)
def test_options_that_do_not_go_together_are_refused(command: Run, arguments: tuple[str, ...]) -> None:
    done = command(*arguments)
    assert done.returncode == 2
    assert "→" in done.stderr


def test_a_session_that_was_deleted_is_counted_as_left_out(agents: AgentsHome, command: Run, home: str) -> None:
    agents.claude("a", "One?")
    command("import", "--all")
    for path in Path(home).glob("home/*/agent/claude-code/session/a"):
        os.rename(path, f"{home}/elsewhere")
    agents.claude("a", "Two?", first=3)
    done = command("import", "--all")
    assert done.returncode == 0
    assert "1 file left out: you deleted here what came from it" in done.stderr


class TestCapture:
    """Words go into memories only of agents that are set up."""

    @pytest.fixture
    def user(self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> UserHome:
        user = UserHome(tmp_path / "user", capsys, monkeypatch)
        user.install("claude")
        (user.work / ".git").mkdir()
        agents = AgentsHome.__new__(AgentsHome)
        agents.folder = user.folder
        agents.claude("a", "Which file has the parser?", "The parser is in parse.py.", cwd=str(user.work))
        return user

    def test_not_without_a_set_up_and_then_by_it(self, user: UserHome) -> None:
        assert user.daypack("import", "--all").returncode == 0
        assert "parse.py" not in user.daypack("memory", "show").stdout
        out = user.set_up().stdout
        assert "imported 1 session: 0 new messages" in out
        assert "parse.py" in user.daypack("memory", "show").stdout

    def test_where_the_agent_is_set_up(self, user: UserHome) -> None:
        user.set_up("--no-import")
        answer = json.loads(user.daypack("import", "--all", "--json").stdout)
        assert answer["places"][0]["imported"]["entries"] > 0
        assert "parse.py" in user.daypack("memory", "show").stdout

    def test_not_where_hooks_are_switched_off(self, user: UserHome) -> None:
        user.set_up("--no-import")
        (config,) = user.folder.glob(".daypack/home/*/")
        (config / "config.toml").write_text("[hooks]\nenabled = false\n")
        answer = json.loads(user.daypack("import", "--all", "--json").stdout)
        assert answer["places"][0]["imported"]["entries"] == 0
