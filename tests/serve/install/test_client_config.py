"""Entries in other programs' configuration: shown first, written whole, everything else left byte for byte."""

import json
import os
import pty
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from daypack.cli import mcp
from daypack.cli.parser import Parser
from daypack.errors import BadConfig, BadInput
from daypack.files.planned import Change
from daypack.memory.tools import open_memory
from daypack.serve.install.client_config import CLIENTS, config_path, plan, print_entry, write

COMMAND = ["/opt/day pack/bin/daypack", "mcp", '--home=/data/"quoted"/ä']
ENTRY = {"command": COMMAND[0], "args": COMMAND[1:]}
RUN = "import sys; from daypack.cli import main; main.COMMANDS.setdefault('mcp', ''); sys.exit(main.run())"


def command_line(*arguments: str, folder: Path, stdin: int = subprocess.DEVNULL) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "HOME": str(folder), "DAYPACK_HOME": str(folder / "store")}
    environ = {name: value for name, value in environ.items() if name not in ("CODEX_HOME", "CLAUDE_CONFIG_DIR")}
    command = [sys.executable, "-c", RUN, "mcp", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environ, stdin=stdin, capture_output=True, text=True, check=False, timeout=60
    )


def read_entry(client: str, text: str) -> dict[str, object]:
    if client == "codex":
        return tomllib.loads(text)["mcp_servers"]["daypack"]
    return json.loads(text)["mcpServers"]["daypack"]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_missing_file_is_made_with_the_entry_alone(client: str, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    change = plan(client, str(path), COMMAND)
    assert change.before is None
    assert write(change) is None
    assert read_entry(client, path.read_text()).items() >= ENTRY.items()
    assert print_entry(client, COMMAND) == path.read_text()


BEFORE = {
    "claude": '{"numStartups":3, "mcpServers": {"other": {"command":"x", "args":[ ]}}, "pi": 3.140, "é": "\\u00e9"}',
    "codex": '# mine\nmodel = "o"   # keep\n\n[mcp_servers.other]\ncommand = "x"\n\n[tui]\na = """\n[no table]\n"""',
    "gemini": '{\n    "ui": {"theme": "x"},\n    "mcpServers": {}\n}\n',
}


@pytest.mark.parametrize("client", CLIENTS)
def test_what_a_file_said_before_is_still_there_byte_for_byte(client: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(BEFORE[client])
    change = plan(client, str(path), COMMAND)
    write(change)
    after = path.read_text()
    assert read_entry(client, after).items() >= ENTRY.items()
    at = next(at for at in range(len(after) + 1) if after[: at + 1] != BEFORE[client][: at + 1])
    rest = BEFORE[client][at:]
    assert after == after[:at] + after[at : len(after) - len(rest)] + rest
    removed = [line for line in change.diff().splitlines() if line.startswith("-") and not line.startswith("---")]
    assert len(removed) <= 1  # the line that had no comma, or no end, yet


@pytest.mark.parametrize("client", CLIENTS)
def test_an_entry_that_is_there_is_left_alone(client: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(BEFORE[client])
    write(plan(client, str(path), COMMAND))
    again = plan(client, str(path), COMMAND)
    assert not again.needed
    assert again.diff() == ""


@pytest.mark.parametrize(
    ("client", "before"),
    [
        ("claude", '{"mcpServers": {"daypack": {"command": "old", "env": {"A": "b"}}}}'),
        ("gemini", '{"mcpServers": {"daypack": {"args": [], "env": {"A": "b"}, "command": "old"}, "z": {}}}'),
        ("codex", '[mcp_servers.daypack]\ncommand = "old"\nargs = []\n[mcp_servers.daypack.env]\nA = "b"\n'),
        ("codex", '[mcp_servers.daypack.env]\nA = "b"\n\n[mcp_servers.daypack]  # mine\nstartup_timeout_sec = 99'),
    ],
)
def test_an_older_entry_gets_the_new_command_and_keeps_what_was_set(client: str, before: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(before)
    write(plan(client, str(path), COMMAND))
    entry = read_entry(client, path.read_text())
    assert entry.items() >= ENTRY.items()
    assert entry["env"] == {"A": "b"}
    assert "99" not in before or entry["startup_timeout_sec"] == 99
    assert not plan(client, str(path), COMMAND).needed


@pytest.mark.parametrize(
    ("client", "before"),
    [
        ("claude", "{"),
        ("claude", "[]"),
        ("claude", '{"mcpServers": []}'),
        ("claude", '{"mcpServers": {"daypack": 1}}'),
        ("claude", '{"mcpServers": {"daypack": {"type": "http", "url": "http://x"}}}'),
        ("claude", '{"mcpServers": {"a": {}}, "mcpServers": {"b": {}}, "x": {"a": 1, "a": 2}, "mcpServers": 0}'),
        ("claude", '{\n  // a comment\n  "mcpServers": {}\n}'),
        ("codex", "a = ["),
        ("codex", 'mcp_servers = { other = { command = "x" } }'),
        ("codex", '[mcp_servers]\ndaypack = { command = "x" }'),
        ("codex", '[mcp_servers.daypack]\nurl = "http://x"'),
        ("codex", '[mcp_servers.daypack]\nargs = [\n  "a",\n]\ncommand = "x"'),
    ],
)
def test_a_file_that_cannot_be_changed_safely_is_not_touched(client: str, before: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(before)
    with pytest.raises(BadConfig, match="cannot be changed safely") as caught:
        plan(client, str(path), COMMAND)
    assert "--print" in caught.value.hint
    assert path.read_text() == before
    assert os.listdir(tmp_path) == ["file"]


def test_bytes_that_are_no_text_are_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(BadConfig):
        plan("claude", str(path), COMMAND)


def test_a_key_that_stands_twice_is_not_guessed_about(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text('{"mcpServers": {"daypack": {}}, "mcpServers": {"b": {}}}')
    write(plan("claude", str(path), COMMAND))  # the last one counts, for every reader
    assert json.loads(path.read_text())["mcpServers"].keys() == {"b", "daypack"}


def test_the_former_file_is_kept_aside_and_none_of_them_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for text in ("{}", '{"a": 1}'):
        path.write_text(text)
        backup = write(plan("claude", str(path), COMMAND))
        assert backup
        assert Path(backup).read_text() == text
    assert len(os.listdir(tmp_path)) == 3


def test_a_link_stays_a_link_and_a_private_file_private(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("{}")
    real.chmod(0o640)
    link.symlink_to(real)
    backup = write(plan("claude", str(link), COMMAND))
    assert link.is_symlink()
    assert read_entry("claude", real.read_text())
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert backup
    assert stat.S_IMODE(os.stat(backup).st_mode) == 0o600


def test_a_file_that_changed_since_it_was_shown_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("{}")
    change = plan("claude", str(path), COMMAND)
    path.write_text('{"a": 1}')
    with pytest.raises(BadInput, match="changed in the meantime"):
        write(change)
    assert path.read_text() == '{"a": 1}'


def test_the_files_are_those_the_clients_read() -> None:
    def found(client: str, *, user_wide: bool = False, **environ: str) -> str:
        return config_path(client, folder="/p", user_wide=user_wide, environ={"HOME": "/h", **environ})

    assert found("claude") == "/p/.mcp.json"
    assert found("claude", user_wide=True) == "/h/.claude.json"
    assert found("claude", user_wide=True, CLAUDE_CONFIG_DIR="/c") == "/c/.claude.json"
    assert found("codex") == "/h/.codex/config.toml"
    assert found("codex", CODEX_HOME="/x") == "/x/config.toml"
    assert found("gemini") == "/h/.gemini/settings.json"
    with pytest.raises(BadInput, match="unknown client"):
        found("cursor")


def test_the_difference_is_a_unified_diff() -> None:
    change = Change("f", b"a\nb", b"a\nc\n")
    assert change.diff().splitlines() == ["--- f", "+++ f", "@@ -1,2 +1,2 @@", " a", "-b", "+c"]


def test_without_a_terminal_the_difference_is_shown_and_nothing_written(tmp_path: Path) -> None:
    done = command_line("install", "claude", folder=tmp_path)
    assert done.returncode == 2
    assert '+    "daypack": {' in done.stdout
    assert "--yes" in done.stderr
    assert not (tmp_path / ".mcp.json").exists()


def test_with_yes_it_is_written_once_and_a_memory_is_named_by_its_id(tmp_path: Path) -> None:
    with open_memory(home=tmp_path / "store") as memories:
        memory_id = memories.create_memory("launch").memory_id
    first = command_line("install", "codex", "--yes", "--memory", "launch", folder=tmp_path)
    assert first.returncode == 0, first.stderr
    entry = read_entry("codex", (tmp_path / ".codex" / "config.toml").read_text())
    assert entry["command"] == sys.executable
    expected = ["-P", "-m", "daypack", "mcp", f"--home={tmp_path / 'store'}", f"--memory={memory_id}"]
    assert entry["args"] == expected
    again = command_line("install", "codex", "--yes", "--memory", memory_id[:8], folder=tmp_path)
    assert again.returncode == 0
    assert again.stdout == ""
    assert "already installed" in again.stderr
    unknown = command_line("install", "codex", "--yes", "--memory", "nothing", folder=tmp_path)
    assert (unknown.returncode, unknown.stdout) == (1, "")


def test_print_prints_the_lines_and_writes_nothing(tmp_path: Path) -> None:
    done = command_line("install", "gemini", "--print", folder=tmp_path)
    assert done.returncode == 0
    assert read_entry("gemini", done.stdout)["command"] == sys.executable
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("answer", "written"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_on_a_terminal_it_asks(answer: str, written: bool, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, answer.encode())
    done = command_line("install", "claude", folder=tmp_path, stdin=theirs)
    os.close(ours)
    os.close(theirs)
    assert "Write this change?" in done.stdout
    assert done.returncode == (0 if written else 1)
    assert (tmp_path / ".mcp.json").exists() == written


@pytest.mark.parametrize("arguments", [("install",), ("install", "cursor"), ("remove", "claude")])
def test_what_is_not_known_is_refused(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = command_line(*arguments, folder=tmp_path)
    assert done.returncode == 2
    assert "  → " in done.stderr


def test_the_command_is_this_program_by_its_full_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "daypack"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(program), "mcp"])
    parser = Parser()
    mcp.configure(parser)
    given = ["install", "codex", "--session", "s", "--agent=-a", "--user", "ada"]
    assert mcp.own_command(parser.parse(given)) == [
        str(program), "mcp", "--user=ada", "--session=s", "--agent=-a",
    ]  # fmt: skip
    program.chmod(0o644)
    assert mcp.own_command(parser.parse([]))[:4] == [sys.executable, "-P", "-m", "daypack"]


def test_claude_code_loads_the_tools_unless_the_user_switched_that_off(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write(plan("claude", str(path), COMMAND))
    assert read_entry("claude", path.read_text())["alwaysLoad"] is True
    path.write_text('{"mcpServers": {"daypack": {"command": "old", "alwaysLoad": false}}}')
    write(plan("claude", str(path), COMMAND))
    assert read_entry("claude", path.read_text())["alwaysLoad"] is False
