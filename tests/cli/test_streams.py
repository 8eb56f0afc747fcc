"""A closed pipe, a full disk as standard output, closed streams and Ctrl-C: never a traceback, for any command."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import daypack
from daypack.cli.main import COMMANDS, run

PRINTING = (
    "help",
    "--version",
    "log talk",
    "log talk --events --json",
    "session show talk",
    "pack talk --dialect openai",
    "search talk harbour",
    "recall talk msg-1",
    "replay talk --all",
    "export talk",
    "doctor",
    "memory new x",
    "append talk x",
    "tiers talk",
)


@pytest.fixture
def talk(home: str) -> str:
    """A home with a session that is larger than the buffer of a pipe."""
    with daypack.open_session("talk", home=home, durability="os") as session:
        session.append_many([{"role": "user", "content": f"harbour {number} " + "x" * 500} for number in range(400)])
        session.pin("system", "Be brief.")
        session.add_rule("Never guess.")
        session.prepare()
    return home


def start(home: str, command: str, **streams: int) -> subprocess.Popen[str]:
    place = [] if command.startswith("--") else ["--home", home]
    whole = [sys.executable, "-m", "daypack", *command.split(), *place]
    given = {"stdin": subprocess.DEVNULL, "stderr": subprocess.PIPE, **streams}
    return subprocess.Popen(whole, text=True, **given)  # pyright: ignore[reportCallIssue, reportArgumentType]


def in_parallel(home: str, commands: Sequence[str], **streams: int) -> list[tuple[str, int, str]]:
    """Run commands, a few at a time, and return the exit code and the standard error of each."""
    done: list[tuple[str, int, str]] = []
    for at in range(0, len(commands), 4):
        started = [(args, start(home, args, **streams)) for args in commands[at : at + 4]]
        for args, process in started:
            _, err = process.communicate()
            done.append((args, process.returncode, err or ""))
    return done


def test_a_full_disk_as_output_is_one_clear_error_of_every_command(talk: str) -> None:
    with Path("/dev/full").open("w") as full:
        for args, code, err in in_parallel(talk, PRINTING, stdout=full.fileno()):
            problem, hint = err.splitlines()[-2:]
            assert problem == "daypack: cannot write: No space left on device [standard output]", args
            assert hint == "  → the command may have done its work: check before you repeat it"
            assert (code, "Traceback" in err, "Exception" in err) == (1, False, False), args


def test_a_closed_pipe_is_no_error_of_any_command(talk: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    for args, code, err in in_parallel(talk, PRINTING, stdout=writing):
        assert (code, "Traceback" in err, "Broken" in err, "Exception" in err) == (0, False, False, False), args
    os.close(writing)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_every_command_can_be_written_to_a_full_disk(
    name: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert run([name, "--help"]) == 1
    assert "cannot write: No space left on device [standard output]" in capfd.readouterr().err


def test_help_to_a_full_disk_fails_without_a_buffer_too(talk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    with Path("/dev/full").open("w") as full:
        [(_, code, err)] = in_parallel(talk, ["help append"], stdout=full.fileno())
    assert (code, "cannot write: No space left on device" in err) == (1, True)


def test_json_is_json_whatever_standard_output_encodes(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = "Grüße 日本 😀 \x1b[31m"
    with daypack.open_session("talk", home=home) as session:
        session.append("user", words)
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    process = start(home, "log talk --json", stdout=subprocess.PIPE)
    out, _ = process.communicate()
    assert out.isascii()
    assert json.loads(out)["content"] == words


def test_an_unwritable_standard_error_changes_nothing(talk: str) -> None:
    with Path("/dev/full").open("w") as full:
        for args, code in (("log none", 1), ("log", 2), ("rules talk", 0)):
            process = start(talk, args, stdout=subprocess.DEVNULL, stderr=full.fileno())
            assert process.wait() == code


@pytest.mark.parametrize(
    ("redirection", "code"), [(">&-", 0), ("2>&-", 0), (">&- 2>&-", 0), ("<&-", 0), ("<&- >&- 2>&-", 0)]
)
def test_closed_streams_are_like_the_null_device(talk: str, redirection: str, code: int) -> None:
    before = Path(talk, "home", str(os.getuid()), "agent/default/session/talk/messages.jsonl").read_bytes()
    command = f"{sys.executable} -m daypack rules talk --home {talk} {redirection}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)
    after = Path(talk, "home", str(os.getuid()), "agent/default/session/talk/messages.jsonl").read_bytes()
    assert before == after


def test_nothing_to_read_from_a_closed_standard_input(home: str) -> None:
    command = f"{sys.executable} -m daypack append talk --home {home} <&-"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, "nothing to append" in done.stderr) == (2, True)


def test_a_terminal_without_unicode_shows_escapes(home: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "daypack", "log", "none", "--home", home]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, "\\u2192" in done.stderr, "Traceback" in done.stderr) == (1, True, False)


INTERRUPTED = """
import signal, sys
from daypack.__main__ import main
moment, seen = int(sys.argv.pop(1)), 0
def interrupt(event, arguments):
    global seen
    if event in ("import", "open"):
        seen += 1
        if seen == moment:
            signal.raise_signal(signal.SIGINT)
sys.addaudithook(interrupt)
code = main()
if not moment:
    print(seen, file=sys.stderr)
sys.exit(code)
"""


def interrupted(home: str, moment: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", INTERRUPTED, str(moment), "pack", "talk", "--home", home]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_ctrl_c_has_no_traceback_at_any_moment(talk: str) -> None:
    moments = int(interrupted(talk, 0).stderr.splitlines()[-1])
    assert moments > 100
    for moment in [1, 2, 3, *range(5, moments, moments // 7)]:
        done = interrupted(talk, moment)
        assert (done.returncode, done.stderr) == (130, ""), moment


MAKING_A_CLASS = """
import signal, sys
from importlib.abc import Loader, MetaPathFinder
from importlib.util import spec_from_loader
class Named:
    def __set_name__(self, owner, name):
        signal.raise_signal(signal.SIGINT)
class Interrupting(Loader, MetaPathFinder):
    def find_spec(self, name, path, target=None):
        return spec_from_loader(name, self) if name == "daypack.cli.log" else None
    def exec_module(self, module):
        type("Owner", (), {"name": Named()})
sys.meta_path.insert(0, Interrupting())
from daypack.__main__ import main
sys.exit(main())
"""


def test_ctrl_c_has_no_traceback_while_an_import_makes_a_class(talk: str) -> None:
    command = [sys.executable, "-c", MAKING_A_CLASS, "log", "talk", "--home", talk]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "")


@pytest.mark.parametrize(
    "late",
    [
        "import atexit; atexit.register(signal.raise_signal, signal.SIGINT)",
        "import weakref; weakref.finalize(signal, signal.raise_signal, signal.SIGINT)",
        "import threading; threading._register_atexit(signal.raise_signal, signal.SIGINT)",
    ],
)
def test_ctrl_c_has_no_traceback_while_the_program_exits(talk: str, late: str) -> None:
    program = f"import signal, sys; from daypack.__main__ import main; code = main(); {late}; sys.exit(code)"
    command = [sys.executable, "-c", program, "log", "talk", "-n", "1", "--home", talk]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "")


def test_ctrl_c_ends_a_command_that_follows_or_waits(talk: str) -> None:
    with start(talk, "log talk -f --json -n 1", stdout=subprocess.PIPE) as following:
        assert following.stdout
        assert json.loads(following.stdout.readline())["seq"] == 400
        following.send_signal(signal.SIGINT)
        assert following.communicate()[1] == ""
    assert following.returncode == 130
