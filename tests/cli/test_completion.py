"""Completion scripts, driven in the shells themselves: what is offered after a line, and what a line becomes."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from cli.conftest import Command

import daypack
from daypack.cli.completion import SHELLS, specs, write_script
from daypack.cli.main import COMMANDS

Offer = Callable[[str], list[str]]
NAMES = ("demo", "it's $HOME", "my notes", "telegram:12", "telegram:34")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the scripts, some files, and a home with sessions."""
    folder = tmp_path_factory.mktemp("place")
    for name in NAMES:
        daypack.open_session(name, home=folder / "home", durability="os").close()
    for name in ("demo", "review", "review--child"):
        daypack.open_session(name, agent="coder", home=folder / "home", durability="os").close()
    daypack.open_session("elsewhere", home=folder / "other home", durability="os").close()
    for shell in SHELLS:
        (folder / f"daypack.{shell}").write_text(write_script(shell), encoding="utf-8")
    (folder / "functions").mkdir()
    (folder / "functions" / "_daypack").symlink_to("../daypack.zsh")
    (folder / "folder").mkdir()
    (folder / "file.json").touch()
    return folder


@pytest.fixture(autouse=True)
def _at_the_place(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYPACK_HOME", str(place / "home"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(place)


def find(shell: str) -> str:
    return shutil.which(shell) or pytest.skip(f"{shell} is not installed")


def offer_bash(line: str) -> list[str]:
    """Return what bash would insert for a line, by calling the function as readline does."""
    code = (
        "source daypack.bash; COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDBREAKS=$' \\t\\n\"\\'@><=;|&(:'; "
        '_daypack 2>/dev/null; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run([find("bash"), "-c", code, "bash", line], capture_output=True, text=True, check=True)
    return done.stdout.split("\n")[:-1] if done.stdout != "\n" else []


def offer_fish(line: str) -> list[str]:
    """Return the words that fish offers after a line, without their descriptions."""
    code = "source daypack.fish; complete -C $argv[1]"
    command = [find("fish"), "--no-config", "-c", code, line]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "HOME": os.getcwd()})
    return [offered.split("\t")[0] for offered in done.stdout.splitlines()]


@pytest.mark.parametrize("offer", [offer_bash, offer_fish])
def test_commands_actions_and_options_are_offered(offer: Offer) -> None:
    assert sorted(offer("daypack ")) == sorted([*COMMANDS, "help"])
    assert offer("daypack sess") == ["session"]
    assert sorted(offer("daypack session ")) == ["list", "new", "show"]
    assert sorted(offer("daypack append --")) == sorted(
        option for spec in specs() if spec.name == "append" for each in spec.options for option in each.names
        if option.startswith("--")
    )  # fmt: skip
    assert offer("daypack session list --ag") == ["--agent"]
    assert offer("daypack session --ag") == ["--agent"]
    assert offer("daypack nonsense --") == []


@pytest.mark.parametrize("offer", [offer_bash, offer_fish])
def test_choices_and_files_are_offered_where_they_belong(offer: Offer) -> None:
    assert sorted(offer("daypack append --role ")) == ["assistant", "system", "tool", "user"]
    assert offer("daypack append demo --role us") == ["user"]
    assert sorted(offer("daypack switch demo protocol ")) == ["off", "on"]
    assert offer("daypack completion z") == ["zsh"]
    assert offer("daypack help compl") == ["completion"]
    assert offer("daypack mcp ins") == ["install"]
    assert offer("daypack append demo --jsonl fil") == ["file.json"]
    assert [name.rstrip("/") for name in offer("daypack append --home fold")] == ["folder"]
    assert "file.json" in offer("daypack import ")
    assert "file.json" in offer("daypack import one.jsonl two.jsonl f")
    assert offer("daypack append demo text ") == []
    assert offer("daypack append --skip ") == []


@pytest.mark.parametrize("offer", [offer_bash, offer_fish])
def test_sessions_and_agents_are_those_of_the_place_that_the_line_names(offer: Offer, place: Path) -> None:
    assert offer("daypack log d") == ["demo"]
    assert offer("daypack log rev") == ["review"]  # of another agent, by its name alone
    assert offer("daypack log coder") == ["coder/demo"]  # not by its name alone
    assert offer("daypack log --agent coder ") == ["demo", "review"]
    assert offer("daypack log --agent=coder r") == ["review"]
    assert offer("daypack --agent coder log r") == ["review"]
    assert offer(f"daypack --home {place}/other\\ home log ") == ["elsewhere"]
    assert offer("daypack log --agent c") == ["coder"]
    assert offer("daypack search demo ") == []  # the query
    assert offer("daypack index demo it") == offer("daypack log it")  # the second of any number
    assert offer("daypack backup --session de") == ["demo"]


def test_names_are_quoted_for_bash_and_colons_do_not_repeat_what_was_typed() -> None:
    assert offer_bash("daypack log i") == ["it\\'s\\ \\$HOME"]
    assert offer_bash("daypack log my\\ n") == ["my\\ notes"]
    assert offer_bash("daypack log tele") == ["telegram:12", "telegram:34"]
    assert offer_bash("daypack log telegram:") == ["12", "34"]
    assert offer_bash("daypack log telegram:3") == ["34"]
    assert offer_bash("daypack append --role=us") == ["user"]


MARK, PROMPT = "END OF LINE", "type here: "
STARTS = {
    "bash": ["--norc", "--noprofile", "-i"],
    "zsh": ["-f", "-i"],
    "fish": ["--no-config", "-i"],
}
LOADS = {
    "bash": "source ./daypack.bash",
    "zsh": "autoload -Uz compinit; compinit -u -D; source ./daypack.zsh",
    "zsh by fpath": "fpath=($PWD/functions $fpath); autoload -Uz compinit; compinit -u -D",
    "fish": f"source ./daypack.fish; function fish_prompt; echo -n '{PROMPT}'; end",
}


class Terminal:
    """An interactive shell in a terminal, with the script loaded."""

    def __init__(self, shell: str) -> None:
        program, arguments = find(shell.split(maxsplit=1)[0]), STARTS[shell.split(maxsplit=1)[0]]
        self._child, self._fd = pty.fork()
        if not self._child:
            os.environ |= {"PS1": PROMPT, "TERM": "dumb", "HOME": os.getcwd()}
            os.execv(program, [program, *arguments])
        self._printed = b""
        self._wait_for(rf"{PROMPT}|[#>] ")
        self._type(f"{LOADS[shell]}; printf '%s %s\\n' now ready\r")
        self._wait_for(f"now ready\r?\n.*{PROMPT}")

    def _type(self, text: str) -> None:
        self._printed = b""
        os.write(self._fd, text.encode())

    def _wait_for(self, pattern: str) -> re.Match[str]:
        until = time.monotonic() + 60
        while not (found := re.search(pattern, self._printed.decode("utf-8", "replace"), re.DOTALL)):
            assert time.monotonic() < until, self._printed
            if select.select([self._fd], [], [], 1)[0]:
                self._printed += os.read(self._fd, 1 << 16)
        return found

    def complete(self, line: str) -> list[str]:
        """Type a line and a tab, and return the words that the line then has for the shell."""
        # Control-A: before the line; Control-E: after it. The line becomes the arguments of printf.
        self._type(f"{line}\t\x01printf '<%s>' \x05 '{MARK}'\r")
        shown = self._wait_for(f"(<daypack>[^\r\n]*)<{MARK}>.*{PROMPT}")[1]
        return shown[1:-1].split("><")

    def close(self) -> None:
        os.close(self._fd)
        os.waitpid(self._child, 0)


@pytest.mark.parametrize("shell", LOADS)
def test_a_tab_completes_the_line_in_a_terminal(shell: str) -> None:
    with closing(Terminal(shell)) as terminal:
        assert terminal.complete("daypack compacti") == ["daypack", "compactions"]
        assert terminal.complete("daypack session sh") == ["daypack", "session", "show"]
        assert terminal.complete("daypack append demo --tool-c") == ["daypack", "append", "demo", "--tool-call-id"]
        assert terminal.complete("daypack append demo --role us") == ["daypack", "append", "demo", "--role", "user"]
        assert terminal.complete("daypack append demo --role=us") == ["daypack", "append", "demo", "--role=user"]
        assert terminal.complete("daypack log my") == ["daypack", "log", "my notes"]
        assert terminal.complete("daypack log --agent coder rev") == ["daypack", "log", "--agent", "coder", "review"]
        assert terminal.complete("daypack log it") == ["daypack", "log", "it's $HOME"]
        assert terminal.complete("daypack log telegram:1") == ["daypack", "log", "telegram:12"]
        assert terminal.complete("daypack index demo my") == ["daypack", "index", "demo", "my notes"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_is_printed_whole_and_shells_can_read_it(shell: str, bare_command: Command) -> None:
    script = bare_command("completion", shell).stdout
    assert script == write_script(shell)
    assert not re.search(r"@[A-Z]+@", script)
    assert subprocess.run([find(shell), "-n", "/dev/stdin"], input=script, text=True, check=True).returncode == 0


def test_names_are_listed_one_per_line_and_for_programs(bare_command: Command, place: Path) -> None:
    there = f"--home={place / 'home'}"
    assert bare_command("completion", "sessions", there).stdout.split("\n") == [*NAMES, "coder/demo", "review", ""]
    assert bare_command("completion", "agents", "--json", there).stdout == '["coder","default"]\n'


def test_listing_names_opens_no_session_and_loads_nothing_that_a_turn_needs() -> None:
    code = "import sys; from daypack.cli.main import run; run(['completion', 'sessions']); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "'daypack.history.layout'" in done.stdout
    for heavy in ("daypack.session", "daypack.turn.prepare", "sqlite3", "splintr"):
        assert f"'{heavy}'" not in done.stdout
