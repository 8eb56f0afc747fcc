"""`daypack child`: list, show and record."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def _talk(command: Command) -> None:
    command("append", "talk", "hello")


def test_a_child_is_asked_answers_and_is_shown(command: Command, tmp_path: Path) -> None:
    (tmp_path / "ask.md").write_text("Chart the reef.")
    (tmp_path / "chart.svg").write_bytes(b"\xff<svg/>")
    started = command(
        "child", "talk", "rev", "--handoff", str(tmp_path / "ask.md"),
        "--status", "active", "--child-agent", "pilot", "--child-session", "talk--rev",
    )  # fmt: skip
    assert (started.returncode, started.stdout, started.stderr) == (0, "rev is active\n", "")
    assert command("child", "talk").stdout == "rev  active     no result\n"
    paths = ("--artifact", str(tmp_path / "chart.svg"), "--ref", "src/a.py", "--ref", "src/b.py", "--ref", "src/a.py")
    ended = command("child", "talk", "rev", "--result", "-", *paths, stdin=b"It is charted.\n\x1b[31m")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "rev is done\n", "")
    assert command("child", "talk").stdout == "rev  done       20 characters  1 artifact\n"
    assert command("child", "talk", "rev").stdout.splitlines() == [
        "name      rev",
        "status    done",
        "agent     pilot",
        "session   talk--rev",
        "ref       r1  src/a.py  named by child rev",
        "ref       r2  src/b.py  named by child rev",
        "artifact  context/child/rev/artifact/chart.svg",
        "",
        "handoff",
        "Chart the reef.",
        "",
        "result",
        "It is charted.",
        "\\x1b[31m",
    ]


def test_refs_are_added_to_those_there_are(command: Command) -> None:
    command("child", "talk", "rev", "--ref", "a.py")
    command("child", "talk", "rev", "--ref", "b.py", "--ref", "a.py")
    shown = json.loads(command("child", "talk", "rev", "--json").stdout)
    assert [(ref["id"], ref["path"]) for ref in shown["refs"]] == [("r1", "a.py"), ("r2", "b.py")]


def test_json_tells_all_of_each_child(command: Command) -> None:
    assert json.loads(command("child", "talk", "--json").stdout) == []
    made = json.loads(command("child", "talk", "b", "--status", "error", "--json").stdout)
    assert made == {
        "name": "b",
        "handoff": None,
        "result": None,
        "refs": [],
        "artifacts": [],
        "agent": None,
        "session": None,
        "status": "error",
    }
    command("child", "talk", "a", "--result", "-", stdin=b"x")
    listed = json.loads(command("child", "talk", "--json").stdout)
    assert [(one["name"], one["status"]) for one in listed] == [("a", "done"), ("b", "error")]
    assert json.loads(command("child", "talk", "b", "--json").stdout) == made


def test_a_result_that_nobody_waits_for_is_accepted_and_told(command: Command) -> None:
    unknown = command("child", "talk", "rev", "--result", "-", stdin=b"here I am")
    assert (unknown.returncode, unknown.stdout) == (0, "rev is done\n")
    assert unknown.stderr == "  → the child is not known to have been asked anything\n"
    command("child", "talk", "rev", "--handoff", "-", "--status", "cancelled", stdin=b"stop")
    late = command("child", "talk", "rev", "--result", "-", stdin=b"too late")
    assert late.stdout == "rev is cancelled\n"
    assert late.stderr == "  → the child had been cancelled before it answered\n"
    assert "too late" in command("child", "talk", "rev").stdout


def test_a_session_without_children_says_so(command: Command) -> None:
    done = command("child", "talk")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "no children recorded in talk\n")


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        (("talk", "rev"), 1, "no child named 'rev'"),
        (("none",), 1, "no such session"),
        (("talk", "--status", "done"), 2, "these options need the name of a child"),
        (("talk", "rev", "--status", "asleep"), 2, "invalid choice"),
        (("talk", "../rev", "--status", "done"), 2, "has a path separator"),
        (("talk", "rev", "--child-agent", "a/b"), 2, "has a path separator"),
        (("talk", "rev", "--handoff", "-", "--result", "-"), 2, "cannot hold both the handoff and the result"),
        (("talk", "rev", "--result", "none.md"), 2, "No such file"),
        (("talk", "rev", "--artifact", "none.svg"), 2, "No such file"),
        (("talk", "rev", "--artifact", "messages.jsonl"), 2, "is the name of a log"),
    ],
)
def test_wrong_use_is_told(command: Command, args: tuple[str, ...], code: int, text: str) -> None:
    done = command("child", *args)
    assert done.returncode == code
    assert text in done.stderr
    assert json.loads(command("child", "talk", "--json").stdout) == []


def test_a_text_that_is_not_utf_8_is_refused(command: Command) -> None:
    done = command("child", "talk", "rev", "--result", "-", stdin=b"\xff")
    assert done.returncode == 2
    assert "not UTF-8: byte 0 [standard input]" in done.stderr
