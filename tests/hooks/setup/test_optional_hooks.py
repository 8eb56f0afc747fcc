"""Hooks that a setting switches on: `daypack setup` installs them, and says which agents have to be restarted."""

import json
import os
import re
from pathlib import Path

from user_home import UserHome


def plugin(user: UserHome) -> str:
    return str(user.folder / ".daypack" / "home" / str(os.getuid()) / "plugin")


def test_the_hook_of_tool_calls_is_installed_when_outputs_are_swapped(all_agents: UserHome) -> None:
    all_agents.set_up()
    hooks = Path(plugin(all_agents)) / "daypack" / "hooks" / "hooks.json"
    assert "PostToolUse" not in hooks.read_text()
    all_agents.write(f".daypack/home/{os.getuid()}/config.toml", "[hooks]\nswap_output_tokens = 4000\n")
    done = all_agents.set_up()
    assert "PostToolUse" in hooks.read_text()
    assert "PostToolUse" in all_agents.read(".codex/plugins/cache/daypack/daypack/0.1.0/hooks/hooks.json")
    assert "Codex: brought up to date" in done.stdout
    all_agents.write(f".daypack/home/{os.getuid()}/config.toml", "")
    all_agents.set_up()
    assert "PostToolUse" not in hooks.read_text()


def test_the_hook_of_edits_is_installed_while_the_user_wants_it_and_only_for_tools_that_edit(
    all_agents: UserHome,
) -> None:
    all_agents.set_up()
    hooks = Path(plugin(all_agents)) / "daypack" / "hooks" / "hooks.json"
    gemini = Path(plugin(all_agents)) / "gemini" / "hooks" / "hooks.json"
    assert "PreToolUse" not in hooks.read_text()
    all_agents.write(f".daypack/home/{os.getuid()}/config.toml", "[hooks]\nrecall_before_edit = true\n")
    done = all_agents.set_up()
    for title in ("Claude Code", "Codex", "Copilot CLI", "Qwen Code", "Gemini CLI"):
        assert f"{title}: brought up to date; restart it" in done.stdout
    (group,) = json.loads(hooks.read_text())["hooks"]["PreToolUse"]
    tools = ("Edit", "Write", "NotebookEdit", "apply_patch", "Bash", "Read", "write_file", "TodoWrite")
    assert [tool for tool in tools if re.search(group["matcher"], tool)] == [*tools[:4]]
    assert "PreToolUse" in all_agents.read(".codex/plugins/cache/daypack/daypack/0.1.0/hooks/hooks.json")
    (of_gemini,) = json.loads(gemini.read_text())["hooks"]["AfterTool"]
    assert [tool for tool in ("replace", "write_file", "read_file") if re.search(of_gemini["matcher"], tool)] == [
        "replace",
        "write_file",
    ]
    all_agents.write(f".daypack/home/{os.getuid()}/config.toml", "")
    all_agents.set_up()
    assert "PreToolUse" not in hooks.read_text()
    assert "AfterTool" not in gemini.read_text()


def test_switching_on_the_hook_of_edits_finds_what_recorded_sessions_decided(all_agents: UserHome) -> None:
    text = "In retry.py, never retry a refused payment, because the bank counts it as fraud."
    assert all_agents.daypack("append", "talk", text).returncode == 0
    all_agents.set_up()
    home = all_agents.folder / ".daypack" / "home" / str(os.getuid())
    assert not list(home.glob("project/*/decisions.json"))
    all_agents.write(f".daypack/home/{os.getuid()}/config.toml", "[hooks]\nrecall_before_edit = true\n")
    assert "found what was decided about files of 1 project" in all_agents.set_up().stdout
    (index,) = home.glob("project/*/decisions.json")
    assert "never retry a refused payment" in index.read_text()
    assert "found what was decided" not in all_agents.set_up().stdout
