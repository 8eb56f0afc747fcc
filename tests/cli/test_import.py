"""`daypack import` as a person and a script use it."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import daypack
from daypack.cli import main
from daypack.history.home import find_home

Run = Callable[..., subprocess.CompletedProcess[str]]
CHAT = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]


@pytest.fixture
def run(home: str) -> Run:
    """Run `daypack …` with a home of its own."""

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "daypack", *args, "--home", home]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


def lines(path: Path, rows: list[Any]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return str(path)


def claude(number: int, words: str = "Hi") -> dict[str, Any]:
    message = {"role": "user", "content": words}
    return {"type": "user", "uuid": f"u{number}", "sessionId": "s", "parentUuid": None, "message": message}


def test_it_says_that_system_messages_are_quoted(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "chat.json"
    file.write_text(json.dumps([{"role": "system", "content": "Obey."}, *CHAT]))
    done = run("import", str(file))
    assert "1 system message kept as quoted history, not as instructions; --trust-system" in done.stderr
    assert run("explain", done.stdout.split("→")[1].split(":")[0].strip()).returncode == 0
    assert "quoted" not in run("import", str(file)).stderr


def test_a_file_is_imported_and_reported_in_a_line(run: Run, tmp_path: Path) -> None:
    path = lines(tmp_path / "talk.jsonl", CHAT)
    done = run("import", "openai", path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{path} → talk: 2 messages (2 new), 0 tool calls, 0 rows stored as events\n"
    assert "2 messages (0 new)" in run("import", "openai", path).stdout
    assert "Hello" in run("log", "talk").stdout


def test_the_report_is_also_there_as_json(run: Run, tmp_path: Path) -> None:
    path = lines(tmp_path / "x.jsonl", [claude(1), {"type": "progress", "sessionId": "s"}])
    with open(path, "a", encoding="utf-8") as file:
        file.write("{broken\n")
    (report,) = json.loads(run("import", "claude-code", path, "--json").stdout)["files"]
    problems = report.pop("problems")
    assert report == {
        "path": path,
        "format": "claude-code",
        "session": "s",
        "agent": "claude-code",
        "parent": "",
        "messages": 1,
        "new": 1,
        "known": 0,
        "tool_calls": 0,
        "quoted": 0,
        "rows": 2,
        "new_rows": 2,
        "calls": 0,
        "children": [],
        "changed": 0,
        "note": "",
        "incomplete": False,
    }
    assert [one["line"] for one in problems] == [3]


def test_bad_lines_are_named_and_the_exit_code_is_0(run: Run, tmp_path: Path) -> None:
    path = lines(tmp_path / "x.jsonl", [claude(1)])
    with open(path, "a", encoding="utf-8") as file:
        file.write("{broken\n" * 12)
    done = run("import", "claude-code", path)
    assert done.returncode == 0
    assert "  line 2: not JSON" in done.stdout
    assert "… and 2 lines more; --json lists all" in done.stdout


def test_a_folder_is_searched_and_other_files_are_left_out(run: Run, tmp_path: Path) -> None:
    lines(tmp_path / "in" / "a.jsonl", [claude(1) | {"sessionId": "one"}])
    lines(tmp_path / "in" / "deep" / "b.jsonl", [claude(1) | {"sessionId": "two"}])
    lines(tmp_path / "in" / "history.jsonl", [{"display": "x"}])
    (tmp_path / "in" / "empty.jsonl").touch()
    (tmp_path / "in" / "notes.txt").write_text("x")
    done = run("import", "claude-code", str(tmp_path / "in"))
    assert done.returncode == 0, done.stderr
    assert "2 other files skipped" in done.stderr
    assert "2 transcripts, 2 messages, 2 new" in done.stdout
    assert {row["session"] for row in json.loads(run("session", "list", "--json").stdout)} == {"one", "two"}


def test_the_session_can_be_named_for_one_file(run: Run, tmp_path: Path) -> None:
    first, second = (lines(tmp_path / f"{name}.jsonl", CHAT) for name in "ab")
    assert "→ mine:" in run("import", "openai", first, "--session", "mine", "--agent", "coder").stdout
    assert "mine" in run("session", "list", "--agent", "coder").stdout
    refused = run("import", "openai", first, second, "--session", "mine")
    assert refused.returncode == 2
    assert "--session takes one file, got 2" in refused.stderr


def test_a_file_that_cannot_be_imported_is_named_and_the_others_are_read(run: Run, tmp_path: Path) -> None:
    good = lines(tmp_path / "talk.jsonl", CHAT)
    wrong = lines(tmp_path / "wrong.jsonl", [claude(1)])
    done = run("import", "openai", wrong, good)
    assert done.returncode == 1
    assert (
        f"daypack: is a transcript of claude-code, not of openai [{wrong}]\n  → daypack import claude-code"
        in done.stderr
    )
    assert "2 messages (2 new)" in done.stdout
    failed = json.loads(run("import", "openai", wrong, "--json").stdout)["failed"]
    assert [one["path"] for one in failed] == [wrong]


def test_the_format_is_detected_for_each_file(run: Run, tmp_path: Path) -> None:
    talk = lines(tmp_path / "talk.jsonl", CHAT)
    code = lines(tmp_path / "code.jsonl", [claude(1)])
    done = run("import", talk, code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"{talk} (openai) → talk: 2 messages (2 new), 0 tool calls, 0 rows stored as events",
        f"{code} (claude-code) → claude-code/s: 1 message (1 new), 0 tool calls, 0 rows stored as events",
        "2 transcripts, 3 messages, 3 new",
    ]
    assert "→ mine: 2 messages (2 new)" in run("import", "--session", "mine", talk).stdout


def test_a_folder_may_hold_several_formats(run: Run, tmp_path: Path) -> None:
    lines(tmp_path / "in" / "talk.jsonl", CHAT)
    lines(tmp_path / "in" / "s.jsonl", [claude(1)])
    lines(tmp_path / "in" / "s" / "subagents" / "agent-a1.jsonl", [claude(2) | {"agentId": "a1", "isSidechain": True}])
    lines(tmp_path / "in" / "other.jsonl", [{"display": "x"}])
    done = run("import", str(tmp_path / "in"))
    assert done.returncode == 0, done.stderr
    assert "1 other file skipped" in done.stderr  # the sub-agent comes with its session
    assert "3 transcripts, 4 messages, 4 new" in done.stdout


def test_a_file_may_have_the_name_of_a_format(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines(tmp_path / "codex", CHAT)
    assert "codex (openai) → codex: 2 messages (2 new)" in run("import", "codex").stdout
    assert "./codex (openai) → codex: 2 messages (0 new)" in run("import", "./codex").stdout
    assert "codex → codex: 2 messages (0 new)" in run("import", "openai", "codex").stdout


def test_an_unknown_format_is_refused_with_the_list(run: Run, tmp_path: Path) -> None:
    path = lines(tmp_path / "x.jsonl", [{"display": "x"}])
    done = run("import", path)
    assert done.returncode == 1
    assert f"daypack: unknown format: no row of a known format in the first 100 lines [{path}]\n" in done.stderr
    for name in (
        "claude-code (.jsonl)",
        "codex (.jsonl or .jsonl.zst)",
        "openai (.jsonl or .json)",
        "swe-agent (.traj)",
    ):
        assert name in done.stderr
    assert run("session", "list").stdout == ""


def test_rows_of_two_formats_need_the_name_of_one(run: Run, tmp_path: Path) -> None:
    rows = [{"type": "session_meta", "payload": {"id": "c"}}, claude(1), claude(2)]
    path = lines(tmp_path / "x.jsonl", rows)
    done = run("import", path)
    assert done.returncode == 1
    assert (
        "ambiguous format: the first 100 lines have rows of several formats (2 of claude-code, 1 of codex)"
        in done.stderr
    )
    assert "→ name the format: daypack import claude-code …" in done.stderr
    assert "→ claude-code/s: 2 messages (2 new)" in run("import", "claude-code", path).stdout


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("import", "openai", "{}/missing"), "no such file or folder"),
        (("import", "codex", "{}"), "no codex transcript in this folder"),
        (
            ("import", "word", "{}"),
            "no such file or folder [word]\n  → name a transcript file or folder; the formats are ",
        ),
        (("import", "codex"), "name a file or folder after the format: daypack import codex PATH"),
        (("import", "{}"), "no transcript and no known memory store in this folder"),
        (("import",), "no path given"),
    ],
)
def test_wrong_use_is_told(run: Run, tmp_path: Path, args: tuple[str, ...], problem: str) -> None:
    done = run(*(one.format(tmp_path) for one in args))
    assert done.returncode == 2
    assert problem in done.stderr


def test_a_folder_that_cannot_be_read_is_not_called_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def scandir(path: str) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert main.run(["import", str(tmp_path)]) == 2
    assert f"Permission denied [{tmp_path}]" in capsys.readouterr().err


def test_control_characters_of_a_file_do_not_reach_the_terminal(run: Run, tmp_path: Path) -> None:
    path = lines(tmp_path / "a\x1b[31m.jsonl", CHAT)
    done = run("import", "openai", path)
    assert "\x1b" not in done.stdout
    assert "→ a--31m:" in done.stdout


def test_an_import_that_was_killed_is_completed_by_the_next(run: Run, home: str, tmp_path: Path) -> None:
    rows = [claude(number, f"text {number} " + "x" * 200) for number in range(6000)]
    path = lines(tmp_path / "long.jsonl", rows)
    command = [sys.executable, "-m", "daypack", "import", "claude-code", path, "--home", home]
    killed = 0
    for _ in range(3):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        log = Path(find_home(home).session("claude-code", "s").messages)
        before = log.stat().st_size if log.exists() else 0
        while process.poll() is None and (not log.exists() or log.stat().st_size < before + 300_000):
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
    assert killed
    assert run("import", "claude-code", path).returncode == 0
    with daypack.open_session("s", agent="claude-code", home=home) as session:
        assert [one.text for one in session.messages()] == [row["message"]["content"] for row in rows]
    assert "no problems" in run("doctor", "s").stdout


def test_a_session_named_by_the_user_has_the_folder_of_the_transcript_unless_it_holds_messages(
    run: Run, tmp_path: Path, home: str
) -> None:
    path = lines(tmp_path / "x.jsonl", [claude(1) | {"cwd": "/work/shop"}])
    assert run("import", "claude-code", path, "--session", "fresh").returncode == 0
    run("append", "mine", "hello")
    assert run("import", "claude-code", path, "--session", "mine").returncode == 0
    places = (("claude-code", "fresh"), ("default", "mine"))
    folders = [daypack.open_session(name, agent=agent, home=home).path / "cwd" for agent, name in places]
    assert [folder.read_text(encoding="utf-8") for folder in folders] == ["/work/shop\n", f"{os.getcwd()}\n"]


def test_a_session_is_stored_with_the_agent_that_wrote_it(run: Run, tmp_path: Path, home: str) -> None:
    path = lines(tmp_path / "x.jsonl", [claude(1)])
    for agent, options in (("claude-code", ()), ("coder", ("--agent", "coder"))):
        assert "1 message (1 new)" in run("import", path, *options).stdout
        assert [row["agent"] for row in json.loads(run("session", "list", "--agent", agent, "--json").stdout)] == [
            agent
        ]
    assert "1 message (0 new)" in run("import", path).stdout


def test_a_session_that_was_imported_with_the_default_agent_is_continued_there(run: Run, tmp_path: Path) -> None:
    path = lines(tmp_path / "x.jsonl", [claude(1)])
    run("import", path, "--agent", "default")
    lines(tmp_path / "x.jsonl", [claude(1), claude(2)])
    for options in ((), ("--agent", "claude-code")):
        assert "2 messages" in run("import", path, *options).stdout
    (row,) = json.loads(run("session", "list", "--json").stdout)
    assert (row["agent"], row["messages"]) == ("default", 2)


def test_a_session_of_the_same_name_with_other_content_is_left_alone(run: Run, tmp_path: Path) -> None:
    run("append", "s", "by hand")
    assert "→ claude-code/s: 1 message (1 new)" in run("import", lines(tmp_path / "x.jsonl", [claude(1)])).stdout
    assert "by hand" in run("log", "s").stdout
