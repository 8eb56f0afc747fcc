"""The repository as a marketplace: each program installs the plug-in from it by its own commands."""

import re
import shutil
from pathlib import Path

import pytest
from coding_agents import Claude, Codex, Copilot, Gemini, Machine, Program, Qwen, installed, offered_tools

from daypack.serve.toolset import NAMES

ROOT = Path(__file__).parents[2]
PLUGIN = "src/daypack/hooks/plugin/daypack"
EXTENSION = "src/daypack/hooks/plugin/gemini"
COMMANDS: dict[type[Program], list[str]] = {
    Claude: ["plugin marketplace add {}", "plugin install daypack@daypack"],
    Codex: ["plugin marketplace add {}", "plugin add daypack@daypack"],
    Copilot: ["plugin marketplace add {}", "plugin install daypack@daypack"],
    Qwen: ["extensions install {}:daypack --consent"],
    Gemini: [f"extensions link {{}}/{EXTENSION} --consent"],
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A copy of what the plug-in is in the repository: Qwen Code leaves a folder in a marketplace."""
    for folder in (".claude-plugin", PLUGIN, EXTENSION):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


@pytest.mark.parametrize("kind", COMMANDS, ids=lambda kind: kind.name)
def test_a_program_installs_the_plug_in_from_the_repository(
    kind: type[Program], machine: Machine, repository: Path
) -> None:
    program = installed(kind, machine)
    for command in COMMANDS[kind]:
        program.run(*command.format(repository).split(), stdin="y\n")
    first = len(machine.endpoint.requests)
    program.ask(f"Hello, {kind.name}.")
    body = machine.endpoint.bodies[first]
    if kind is Codex:  # without the setting that `daypack setup` makes, its models have to search for them
        (search,) = (tool["description"] for tool in body["tools"] if tool["type"] == "tool_search")
        assert "\n- daypack: " in search
    else:
        offered = [name for name in offered_tools(body) if "daypack" in name]
        assert sorted(re.split(r"__|-|^mcp_daypack_", name)[-1] for name in offered) == sorted(NAMES)


def test_claude_code_finds_no_fault_in_the_plug_in(machine: Machine) -> None:
    claude = installed(Claude, machine)
    said = claude.run("plugin", "validate", str(ROOT / PLUGIN))
    assert "\N{HEAVY CHECK MARK} Validation passed\n" in said
