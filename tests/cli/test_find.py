"""`daypack find`: all sessions of all agents."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import daypack
from daypack.history.home import find_home

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def sessions(home: str, tmp_path: Path) -> str:
    """Sessions of two agents; the first has a folder."""
    with daypack.open_session("deploy", agent="claude-code", home=home, durability="os") as session:
        session.append("user", "The server does not start.")
        session.append("assistant", "Port 8080 was taken, so I changed the port to 8093 in server.toml.")
    Path(session.path, "cwd").write_text(f"{tmp_path}/lamp\n", encoding="utf-8")
    with daypack.open_session("harbour", agent="codex", home=home, durability="os") as session:
        for number in range(6):
            session.append("user", f"The tide table of day {number} is missing.")
    return home


def test_a_result_has_agent_project_age_role_line_and_the_command_that_opens_it(
    command: Command, sessions: str
) -> None:
    done = command("find", "where did we fix the port?", "--home", sessions)
    assert (done.returncode, done.stderr) == (0, "no session mentions: fix\n")
    head, line, opening = done.stdout.splitlines()
    agent, project, since, role = head.split(" · ")
    assert (agent, project, role) == ("claude-code", "lamp", "assistant")
    assert since.endswith((" s", " min"))
    assert line == "    Port 8080 was taken, so I changed the port to 8093 in server.toml."
    assert opening == f"    daypack log claude-code/deploy --around 2 --home {shlex.quote(sessions)}"
    shown = command(*shlex.split(opening)[1:4], "2", "-n", "1")
    assert "changed the port to 8093" in shown.stdout


def test_further_matches_of_a_session_are_counted(command: Command, sessions: str) -> None:
    done = command("find", "tide table")
    assert done.stdout.count("codex") == 6  # three times in the heads and in the commands
    assert "    # 3 more in this session\n" in done.stdout


def test_json_is_a_list_of_hits_with_all_fields(command: Command, sessions: str) -> None:
    hits = json.loads(command("find", "port of the server", "--json", "-k", "1").stdout)
    assert [set(hit) for hit in hits] == [
        {
            "agent",
            "session",
            "seq",
            "role",
            "ts",
            "cwd",
            "project",
            "line",
            "marks",
            "score",
            "parts",
            "relevance",
            "more",
            "same",
            "short",
            "id",
            "command",
        }
    ]
    assert (hits[0]["agent"], hits[0]["session"], hits[0]["id"]) == ("claude-code", "deploy", "msg-2")
    assert command("find", "zeppelin", "--json").stdout == "[]\n"


def test_nothing_found_is_a_note_and_exit_code_1(command: Command, sessions: str) -> None:
    done = command("find", "zeppelin")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "no session mentions: zeppelin\nnothing found in 8 messages of 2 sessions\n"


def test_filters_are_options(command: Command, sessions: str, tmp_path: Path) -> None:
    assert "codex" not in command("find", "table of the port", "--agent", "claude-code").stdout
    assert command("find", "port", "--project", f"{tmp_path}/lamp").returncode == 0
    assert command("find", "tide table", "--project", "lamp").returncode == 1
    assert command("find", "port", "--since", "2d", "--until", "today", "--role", "assistant").returncode == 0
    assert command("find", "port", "--role", "user").returncode == 1
    wrong = command("find", "port", "--since", "soon")
    assert wrong.returncode == 2
    assert "'soon' is no time" in wrong.stderr


def test_a_hostile_message_cannot_control_the_terminal(command: Command, home: str) -> None:
    with daypack.open_session("bad\u00e9", home=home, durability="os") as session:
        session.append("user", "The \x1b]0;owned\x07zeppelin \u202e\x9b2J has\0 landed")
    done = command("find", "zeppelin landed")
    assert "zeppelin" in done.stdout
    assert not set(done.stdout) & {"\x1b", "\x07", "\u202e", "\x9b", "\0"}


def test_a_long_line_is_cut_around_its_first_match(
    command: Command, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    with daypack.open_session("long", home=home, durability="os") as session:
        session.append("user", f"{'word ' * 40}the zeppelin {'word ' * 40}")
    line = command("find", "zeppelin").stdout.splitlines()[1]
    assert "zeppelin" in line
    assert len(line) <= 60
    assert (line.strip()[0], line[-1]) == ("…", "…")


def test_indexing_of_many_messages_is_announced(
    command: Command, sessions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daypack.cli.find._ANNOUNCED", 5)
    done = command("find", "port")
    assert done.stderr == "indexing 2 sessions: 0 of 8 messages (this happens once; later only what is new)\n"
    assert command("find", "port").stderr == ""


def test_ctrl_c_says_that_the_next_search_continues(
    command: Command, sessions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daypack.cli.find._ANNOUNCED", 5)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("daypack.upkeep.find.index.FindIndex.add", interrupt)
        done = command("find", "port")
    assert done.returncode == 130
    assert "the next `daypack find` continues there" in done.stderr
    assert command("find", "port").returncode == 0


@pytest.mark.parametrize("is_indexed", [True, False])
def test_a_home_that_cannot_be_written_is_searched(command: Command, sessions: str, *, is_indexed: bool) -> None:
    if is_indexed:
        command("find", "port")
    # Root may write everywhere, unless it gives up these rights.
    rights = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
    subprocess.run(["chmod", "-R", "a-w", sessions], check=True)
    try:
        daypack_find = [*rights, sys.executable, "-m", "daypack", "find", "port of the server", "--home", sessions]
        done = subprocess.run(daypack_find, capture_output=True, text=True, check=False)
    finally:
        subprocess.run(["chmod", "-R", "u+w", sessions], check=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "changed the port to 8093" in done.stdout
    assert os.path.exists(find_home(sessions).find_index) == is_indexed


def test_an_erased_word_is_not_in_the_index_any_more(command: Command, sessions: str) -> None:
    secret = "zx81quux77"
    with daypack.open_session("leak", home=sessions, durability="os") as session:
        session.append("user", f"The password of the lamp is {secret}.")
    assert command("find", secret).returncode == 0
    index = find_home(sessions).find_index
    assert secret.encode() in Path(index).read_bytes()
    done = command("erase", "leak", "--literal", secret, "--apply")
    assert done.returncode == 0, done.stderr
    assert index not in done.stdout
    assert command("find", secret).returncode == 1
    for name in os.listdir(os.path.dirname(index)):
        assert secret.encode() not in Path(os.path.dirname(index), name).read_bytes()


def test_notes_say_which_words_occur_nowhere_and_that_all_results_are_weak(command: Command, home: str) -> None:
    with daypack.open_session("quay", home=home, durability="os") as session:
        for number in range(200):
            session.append("user", f"Step {number} compiled module m{number}.")
        for number in range(7):
            session.append("user", f"Pier {number} was painted on day d{number}.")
    done = command("find", "harbour pier")
    assert done.returncode == 0
    assert "no session mentions: harbour\nonly weak matches:" in done.stderr
    nothing = command("find", "harbour", "compiled")
    assert (nothing.returncode, nothing.stdout) == (1, "")
    assert nothing.stderr == "no session mentions: harbour\nnothing found in 207 messages of 1 session\n"


def test_calls_of_tools_are_shown_in_words_and_long_lines_end_between_words(command: Command, home: str) -> None:
    words = " ".join(f"word{number}" for number in range(60))
    with daypack.open_session("quay", home=home, durability="os") as session:
        call = daypack.ToolCall(id="1", name="Bash", arguments='{"command":"git push origin lantern"}')
        session.append("assistant", "", tool_calls=[call])
        session.append("user", f"{words} lighthouse {words}")
    assert "\n    Bash: git push origin lantern\n" in command("find", "lantern").stdout
    line = command("find", "lighthouse").stdout.splitlines()[1].strip()
    assert line.startswith("…word")
    assert line.endswith("…")
    assert " lighthouse " in line
    assert set(line.strip("…").split()) <= {*words.split(), "lighthouse"}
