"""The plug-in folder: one version, one set of commands, and nothing that disturbs an agent where daypack is missing."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import daypack

ROOT = Path(__file__).parents[2]
MARKETPLACE = ROOT / "src" / "daypack" / "hooks" / "plugin"
PLUGIN = MARKETPLACE / "daypack"
GEMINI = MARKETPLACE / "gemini"


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def hook_commands(folder: Path = PLUGIN) -> dict[str, str]:
    hooks = read(folder / "hooks" / "hooks.json")["hooks"]
    return {event: group["hooks"][0]["command"] for event, groups in hooks.items() for group in groups}


def run(command: list[str], folder: Path, input: str = "") -> subprocess.CompletedProcess[str]:  # noqa: A002
    """Run a command where no program is on PATH but a shell, `cat` and what the folder has."""
    for program in ("sh", "cat"):
        if not (folder / program).exists():
            os.symlink(shutil.which(program) or "", folder / program)
    environ = {"PATH": str(folder), "HOME": str(folder)}
    return subprocess.run(command, input=input, capture_output=True, text=True, env=environ, check=False, timeout=60)


def write_program(folder: Path, name: str, exit_code: int = 0) -> None:
    program = folder / name
    program.write_text(f'#!/bin/sh\necho "{name} $@"\ncat\nexit {exit_code}\n')
    program.chmod(0o755)


@pytest.mark.parametrize("folder", [ROOT, MARKETPLACE])
def test_the_repository_and_the_shipped_folder_are_marketplaces_of_the_plug_in(folder: Path) -> None:
    [entry] = read(folder / ".claude-plugin" / "marketplace.json")["plugins"]
    assert (folder / entry["source"]).resolve() == PLUGIN
    assert entry["version"] == daypack.__version__


def test_the_plug_in_has_the_version_of_the_program() -> None:
    assert read(PLUGIN / ".claude-plugin" / "plugin.json")["version"] == daypack.__version__
    assert read(GEMINI / "gemini-extension.json")["version"] == daypack.__version__


def test_the_hooks_do_not_run_for_every_tool_call() -> None:
    assert set(hook_commands()) == {
        "SessionStart", "UserPromptSubmit", "PreCompact", "Stop", "SubagentStop", "SessionEnd",
    }  # fmt: skip


@pytest.mark.parametrize("event", hook_commands())
def test_a_hook_passes_the_input_to_daypack_else_to_uvx_else_is_silent(event: str, tmp_path: Path) -> None:
    command = ["sh", "-c", hook_commands()[event]]
    nothing = run(command, tmp_path, "{}")
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, "", "")
    write_program(tmp_path, "uvx")
    assert run(command, tmp_path, "{}").stdout == "uvx daypack hook\n{}"
    write_program(tmp_path, "daypack")
    assert run(command, tmp_path, "{}").stdout == "daypack hook\n{}"


def test_the_extension_of_gemini_names_the_host_and_says_nothing_on_standard_error(tmp_path: Path) -> None:
    commands = hook_commands(GEMINI)
    assert set(commands) == {"SessionStart", "BeforeAgent", "AfterAgent", "SessionEnd"}
    write_program(tmp_path, "daypack")
    for command in commands.values():
        assert run(["sh", "-c", command], tmp_path, "{}").stdout == "daypack hook gemini\n{}"
    (tmp_path / "daypack").write_text("#!/bin/sh\necho trouble >&2\nkill -SEGV $$\n")
    done = run(["sh", "-c", commands["BeforeAgent"]], tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_timeouts_of_gemini_are_in_milliseconds_and_above_those_of_the_program() -> None:
    hooks = read(GEMINI / "hooks" / "hooks.json")["hooks"]
    timeouts = {event: group["hooks"][0]["timeout"] for event, [group] in hooks.items()}
    assert timeouts == {"SessionStart": 10_000, "BeforeAgent": 5_000, "AfterAgent": 5_000, "SessionEnd": 3_000}


@pytest.mark.parametrize("program", ["daypack", "uvx"])
def test_a_program_that_fails_does_not_block_the_agent_and_tells_it_nothing(program: str, tmp_path: Path) -> None:
    write_program(tmp_path, program, exit_code=2)
    done = [run(["sh", "-c", command], tmp_path) for command in hook_commands().values()]
    assert {(each.returncode, each.stdout) for each in done} == {(0, "")}


def test_the_server_is_daypack_else_uvx_and_its_tools_are_loaded_at_once(tmp_path: Path) -> None:
    server = read(PLUGIN / ".claude-plugin" / "plugin.json")["mcpServers"]["daypack"]
    command = [server["command"], *server["args"]]
    assert server["alwaysLoad"] is True  # Claude Code
    assert server["alwaysLoadTools"] is True  # Qwen Code
    assert run(command, tmp_path).returncode == 127
    write_program(tmp_path, "uvx")
    assert run(command, tmp_path).stdout == "uvx daypack mcp --with-hooks\n"
    write_program(tmp_path, "daypack")
    assert run(command, tmp_path).stdout == "daypack mcp --with-hooks\n"


def test_no_command_depends_on_variables_that_only_some_agents_expand() -> None:
    texts = [path.read_text(encoding="utf-8") for path in MARKETPLACE.rglob("*.json")]
    assert not [text for text in texts if "PLUGIN_ROOT" in text]


def test_the_skill_says_in_a_few_words_when_to_use_it() -> None:
    text = (PLUGIN / "skills" / "daypack" / "SKILL.md").read_text(encoding="utf-8")
    [description] = re.findall(r"^description: (.+)$", text, re.MULTILINE)
    assert len(description) <= 120
