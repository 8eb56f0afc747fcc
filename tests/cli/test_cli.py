"""The command line as a person and a script use it."""

import json
import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import daypack

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(home: str) -> Run:
    """Run `daypack …` with a home of its own."""

    def run(*args: str, stdin: str | bytes = "") -> subprocess.CompletedProcess[str]:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run(
            [sys.executable, "-m", "daypack", *args, "--home", home], input=data, capture_output=True, check=False
        )
        return subprocess.CompletedProcess(args, done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


def out(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_session_is_made_listed_and_shown(run: Run, home: str) -> None:
    path = run("session", "new", "talk", "--agent", "coder", "--model", "gpt-4").stdout.strip()
    assert path == f"{home}/home/{os.getuid()}/agent/coder/session/talk"
    run("append", "talk", "one two", "--agent", "coder")
    run("pin", "talk", "system", "Be brief.", "--agent", "coder")
    (listed,) = out(run("session", "list", "--agent", "coder", "--json"))
    assert (listed["session"], listed["messages"], listed["events"], listed["state"]) == ("talk", 1, 1, "active")
    shown = out(run("session", "show", "talk", "--agent", "coder", "--json"))
    assert (shown["tokens"], shown["pins"], shown["tokenizer"], shown["model"]) == (
        2,
        ["system.md"],
        "cl100k_base",
        "gpt-4",
    )
    assert "talk" in run("session", "list", "--agent", "coder").stdout
    assert "tokenizer   cl100k_base" in run("session", "show", "talk", "--agent", "coder").stdout
    assert "no sessions of agent default" in run("session", "list", "--agent", "default").stderr


def test_text_comes_from_the_argument_or_standard_input(run: Run) -> None:
    assert run("append", "talk", "hello").stdout == "msg-1\n"
    assert run("append", "talk", "--role", "assistant", stdin="from a pipe\n").stdout == "msg-2\n"
    call = '{"role": "assistant", "tool_calls": [{"id": "c", "name": "f"}]}'
    assert run("append", "talk", "--jsonl", "-", stdin=call).returncode == 0
    refused = run("append", "talk", "r", "--role", "tool")
    assert (refused.returncode, "calls waiting: c (f)" in refused.stderr) == (2, True)
    stored = out(
        run(
            "append", "talk", "r", "--role", "tool", "--tool-call-id", "c", "--name", "f", "--meta", '{"a":1}', "--json"
        )
    )
    assert (stored["tool_call_id"], stored["name"], stored["meta"], stored["seq"]) == ("c", "f", {"a": 1}, 4)
    lines = [json.loads(line) for line in run("log", "talk", "--json").stdout.splitlines()]
    assert [line.get("content") for line in lines] == ["hello", "from a pipe\n", None, "r"]


def test_a_client_key_makes_a_repeated_command_harmless(run: Run) -> None:
    assert run("append", "talk", "pay", "--client-key", "k").stdout == "msg-1\n"
    assert run("append", "talk", "pay", "--client-key", "k").stdout == "msg-1\n"
    refused = run("append", "talk", "pay more", "--client-key", "k")
    assert refused.returncode == 2
    assert "was already used for a different payload" in refused.stderr


def test_a_stream_of_messages_is_appended_and_can_be_copied_with_log(run: Run, tmp_path: Path) -> None:
    lines = [json.dumps({"role": "user", "content": f"text {number}"}) for number in range(2500)]
    (tmp_path / "in.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert (
        run("append", "talk", "--jsonl", str(tmp_path / "in.jsonl")).stdout
        == "2,500 messages appended (msg-1 to msg-2500)\n"
    )
    copied = run("append", "copy", "--jsonl", "-", "--json", stdin=run("log", "talk", "-n", "0", "--json").stdout)
    assert out(copied) == {"appended": 2500, "first": "msg-1", "last": "msg-2500"}
    first, second = (run("log", name, "-n", "0", "--json").stdout for name in ("talk", "copy"))
    assert first == second


def test_a_bad_line_in_a_stream_is_named_and_the_way_on_is_told(run: Run) -> None:
    good = '{"role":"user","content":"ok"}\n'
    done = run("append", "talk", "--jsonl", "-", stdin=good * 3 + '{"role":"user","content":7}\n' + good)
    assert done.returncode == 2
    assert "3 messages appended before the error; continue with --skip 3" in done.stderr
    assert "line 4" in done.stderr
    assert "must be text or a list of parts, not int" in done.stderr
    rest = run("append", "talk", "--jsonl", "-", "--skip", "4", stdin=good * 3 + "bad\n" + good)
    assert rest.stdout == "1 message appended (msg-4)\n"


@pytest.mark.parametrize(
    "args",
    [("--role", "tool"), ("--name", "n" * 300), ("--meta", "[1]"), ("--tool-call-id", "c"), ("--client-key", "")],
)
def test_a_refused_message_creates_no_session(run: Run, args: tuple[str, ...]) -> None:
    assert run("append", "new", "hello", *args).returncode in (1, 2)
    assert run("session", "list", "--json").stdout == "[]\n"


def test_log_shows_messages_tool_calls_and_events_for_people(run: Run, home: str) -> None:
    with daypack.open_session("talk", home=home) as session:
        session.append(
            "assistant",
            [{"type": "thinking", "text": "hm"}, {"type": "image", "source": "a.png"}],
            tool_calls=[{"id": "c", "name": "read", "arguments": '{"path":"a"}'}],
        )
        session.append_event("tool.failed", {"code": 1})
    shown = run("log", "talk").stdout
    assert "msg-1" in shown
    assert "(thinking) hm" in shown
    assert "[image a.png]" in shown
    assert '→ read {"path":"a"}' in shown
    assert 'tool.failed  {"code":1}' in run("log", "talk", "--events").stdout


def test_log_shows_the_newest_few(run: Run) -> None:
    run("append", "talk", "--jsonl", "-", stdin="".join(f'{{"role":"user","content":"t{n}"}}\n' for n in range(30)))
    assert [json.loads(line)["seq"] for line in run("log", "talk", "-n", "5", "--json").stdout.splitlines()] == [
        26,
        27,
        28,
        29,
        30,
    ]


def test_log_follows_what_others_append(run: Run, home: str) -> None:
    session = daypack.open_session("talk", home=home)
    session.append("user", "before")
    command = [sys.executable, "-u", "-m", "daypack", "log", "talk", "-f", "--json", "--home", home]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as following:
        assert following.stdout
        assert json.loads(following.stdout.readline())["content"] == "before"
        session.append("user", "after")
        assert json.loads(following.stdout.readline())["content"] == "after"
        following.terminate()


HOSTILE = "\x1b]0;title\x07 \x1b[2J \x9b31m \u202e evil \r over \x7f \x00"


def test_control_characters_from_data_never_reach_the_terminal(run: Run, home: str) -> None:
    with daypack.open_session("talk", home=home) as session:
        session.append("user", HOSTILE, name="\x1b[31mname")
        session.append("assistant", "", tool_calls=[{"id": "\x1b", "name": "\x1b[1m", "arguments": "\x1b[2J"}])
        session.append_event("\x1b[31mred", {"x": HOSTILE})
        session.pin("p", HOSTILE)
    shown = [run("log", "talk"), run("log", "talk", "--json"), run("log", "talk", "--events"), run("pin", "talk")]
    shown += [
        run("pin", "talk", "--json"),
        run("append", "talk", HOSTILE.replace("\0", ""), "--json"),
        run("log", "\x1b[31mx"),
    ]
    for done in shown:
        text = done.stdout + done.stderr
        assert text
        assert [char for char in text if ord(char) < 32 and char != "\n"] == []
        assert not any(char in text for char in "\x7f\x9b\u202e")
    assert json.loads(shown[1].stdout.splitlines()[0])["content"] == HOSTILE


def on_a_terminal(home: str, *args: str, **variables: str) -> str:
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", **variables}
    child = subprocess.Popen([sys.executable, "-m", "daypack", *args, "--home", home], stdout=follower, env=environment)
    os.close(follower)
    text = b""
    while True:
        try:
            data = os.read(leader, 65536)
        except OSError:
            break
        if not data:
            break
        text += data
    child.wait()
    os.close(leader)
    return text.decode()


def test_colour_is_for_terminals_only(run: Run, home: str) -> None:
    run("append", "talk", "hello")
    assert "\x1b[32muser\x1b[0m" in on_a_terminal(home, "log", "talk")
    assert "\x1b" not in on_a_terminal(home, "log", "talk", NO_COLOR="1")
    assert "\x1b" not in run("log", "talk").stdout


def test_pins_are_set_listed_and_taken_off(run: Run, tmp_path: Path) -> None:
    (tmp_path / "rules.txt").write_text("Never guess.", encoding="utf-8")
    assert run("session", "new", "talk").returncode == 0
    assert run("pin", "talk", "system", "Be brief.").stdout == "pinned system\n"
    assert run("pin", "talk", "rules", "--file", str(tmp_path / "rules.txt")).returncode == 0
    assert run("pin", "talk", "more", stdin="from a pipe").returncode == 0
    assert out(run("pin", "talk", "--json")) == {
        "more.md": "from a pipe",
        "rules.md": "Never guess.",
        "system.md": "Be brief.",
    }
    assert run("pin", "talk", "rules", "--remove").stdout == "removed rules\n"
    gone = run("pin", "talk", "rules", "--remove")
    assert (gone.returncode, "no pin named 'rules'" in gone.stderr) == (1, True)


def test_doctor_finds_nothing_wrong_or_tells_and_exits_with_3(run: Run, home: str) -> None:
    run("append", "talk", "hello")
    run("append", "other", "hello")
    assert run("doctor").stdout == "2 sessions checked, no problems\n"
    assert run("doctor", "talk").stdout == "1 session checked, no problems\n"
    log = daypack.open_session("talk", home=home).path / "messages.jsonl"
    log.write_bytes(log.read_bytes().replace(b"hello", b"jello"))
    done = run("doctor")
    assert done.returncode == 3
    assert f"damage: {log}, line 1, offset 0: checksum does not match" in done.stdout
    report = run("doctor", "talk", "--json")
    assert report.returncode == 3
    assert json.loads(report.stdout)["findings"][0]["severity"] == "damage"
    shown = run("log", "talk")
    assert (shown.returncode, shown.stdout) == (3, "")
    assert "line 1, offset 0" in shown.stderr
    assert run("doctor", "none").returncode == 1


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        ((), 2, "usage: daypack COMMAND"),
        (("--help",), 0, "usage: daypack COMMAND"),
        (("dance",), 2, "unknown command 'dance'"),
        (("log", "none"), 1, "no such session"),
        (("append", "a/b", "x"), 2, "has a path separator"),
        (("append", "x", "y", "--meta", "{"), 2, "--meta"),
        (("append", "x"), 2, "nothing to append"),
        (("append", "x", ""), 2, "nothing to append"),
        (("append", "x", "y", "--client-key", ""), 2, "client_key"),
        (("append", "x", "y", "--skip", "3"), 2, "--skip requires --jsonl"),
        (("pin", "x", "--file", "f"), 2, "cannot be combined"),
        (("session", "dance"), 2, "unknown action 'dance'"),
        (("append", "x", "y", "--jsonl", "-"), 2, "--jsonl cannot be combined with text"),
        (("append", "x", "--jsonl", "-", "--skip", "-1"), 2, "must be a number of 0 or more"),
        (("pin", "x", "--remove"), 2, "cannot be combined"),
        (("pin", "x", "n", "text", "--file", "f"), 2, "cannot be combined"),
        (("append", "x", "--jsonl", "/nowhere"), 2, "No such file"),
        (("append", "x", "y", "--role", "king"), 2, "invalid choice"),
        (("pin", "none"), 1, "no such session"),
        (("session", "show", "none"), 1, "no such session"),
    ],
)  # fmt: skip
def test_wrong_use_is_told_and_never_a_traceback(home: str, args: tuple[str, ...], code: int, text: str) -> None:
    place = ["--home", home] if args and args[0] != "--help" else []
    command = [sys.executable, "-m", "daypack", *args, *place]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert text in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_the_place_may_stand_before_the_command(home: str) -> None:
    for rest in (["append", "talk", "x"], ["session", "show", "talk"]):
        command = [sys.executable, "-m", "daypack", "--home", home, "--json", *rest]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)


def test_the_text_may_stand_behind_the_options(run: Run) -> None:
    assert run("append", "talk", "--role", "assistant", "hello").stdout == "msg-1\n"


def test_the_agent_may_come_from_the_environment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYPACK_AGENT", "coder")
    run("session", "new", "talk")
    assert "/agent/coder/session/talk" in run("session", "show", "talk").stdout


def test_log_tells_of_damage_while_it_follows(run: Run, home: str) -> None:
    session = daypack.open_session("talk", home=home)
    session.append("user", "before")
    command = [sys.executable, "-u", "-m", "daypack", "log", "talk", "-f", "--home", home]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as following:
        assert following.stdout
        assert following.stderr
        assert b"msg-1" in following.stdout.readline()
        with (session.path / "messages.jsonl").open("ab") as file:
            file.write(b"garbage\n")
        assert b"line 2, offset" in following.stderr.readline()
        following.terminate()


def test_blank_lines_inside_a_text_are_shown(run: Run) -> None:
    run("append", "talk", "one\n\ntwo\n")
    assert run("log", "talk").stdout.endswith("    one\n    \n    two\n")


def test_a_session_that_cannot_be_opened_is_listed_with_its_reason(run: Run, home: str) -> None:
    run("append", "talk", "x")
    session = daypack.open_session("talk", home=home)
    (session.path / "messages.jsonl").unlink()
    assert "the log is missing" in run("session", "list").stdout


def test_a_reader_that_goes_away_is_no_error(home: str) -> None:
    with daypack.open_session("talk", home=home, durability="os") as session:
        session.append_many([{"role": "user", "content": "x" * 500} for _ in range(2000)])
    command = f"{sys.executable} -m daypack log talk -n 0 --home {home} | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.startswith("msg-1")


def test_the_version_is_printed() -> None:
    command = [sys.executable, "-m", "daypack", "--version"]
    assert (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout == f"daypack {daypack.__version__}\n"
    )


def test_progress_is_shown_on_long_input(
    home: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from daypack.cli.terminal import Progress

    times = iter([0.0, 1.0, 6.0, 6.0, 7.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(times))
    progress = Progress("messages appended")
    progress.show(10)
    progress.show(2000)
    progress.show(3000)
    assert capsys.readouterr().err == "2,000 messages appended\n"


def test_a_dash_is_standard_input(run: Run, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert run("append", "talk", "-", stdin="from a file\n").stdout == "msg-1\n"
    assert run("pin", "talk", "system", "-", stdin="Be brief.").returncode == 0
    memory_id = run("memory", "new", "Harbour").stdout.strip()
    assert run("memory", "add", memory_id, "-", stdin="The crane is red.").returncode == 0
    assert out(run("log", "talk", "--json"))["content"] == "from a file\n"
    assert out(run("pin", "talk", "--json")) == {"system.md": "Be brief."}


@pytest.mark.parametrize(
    ("args", "stdin", "problem"),
    [
        (("append", "talk", "-"), b"", "nothing to append: it is empty [standard input]"),
        (("append", "talk"), b" \n", "nothing to append: it is empty [standard input]"),
        (("append", "talk", "-"), b"\x89PNG\r\n", "not UTF-8: byte 0 [standard input]"),
        (("append", "talk", "--jsonl", "-"), b"\x89PNG\r\n", "line 1, JSON"),
        (("pin", "talk", "system", "-"), b"\xff", "not UTF-8: byte 0 [standard input]"),
    ],
)
def test_an_unusable_standard_input_is_refused_and_creates_nothing(
    run: Run, home: str, args: tuple[str, ...], stdin: bytes, problem: str
) -> None:
    if args[0] == "pin":
        run("session", "new", "talk")
    done = run(*args, stdin=stdin)
    assert (done.returncode, done.stdout) == (2, "")
    assert problem in done.stderr
    assert args[0] == "pin" or "--jsonl" in args or not Path(home, "home").exists()


def test_a_file_that_fails_while_it_is_read_is_refused_by_name(run: Run) -> None:
    for args in (("append", "talk", "--jsonl", "/proc/self/mem"), ("accept", "talk", "/proc/self/mem")):
        done = run(*args)
        assert (done.returncode, done.stderr.splitlines()[0]) == (2, "daypack: Input/output error [/proc/self/mem]")
