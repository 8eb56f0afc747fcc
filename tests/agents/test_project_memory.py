"""The memory of the project in real coding agents: nine tools in the first request, and no memory_id is needed."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coding_agents import Claude, Copilot, Gemini, Machine, Program, Story, installed

import daypack
from daypack.history.home import find_home
from daypack.memory.project import find_project
from daypack.memory.project.memory import expected_memory
from daypack.serve.toolset import NAMES

PLUGIN = Path(daypack.__file__).parent / "hooks" / "plugin"


def first_tools(program: Program, story: Story, prompt: str) -> dict[str, Any]:
    """Ask in a subfolder of the project; return the tools of daypack in the first request that has the prompt."""
    folder = program.machine.project / "src"
    folder.mkdir(exist_ok=True)
    story.on(prompt, "Done.")
    program.ask(prompt, cwd=folder)
    body = next(body for body in program.machine.endpoint.bodies if prompt in json.dumps(body))
    given: Sequence[dict[str, Any]] = [tool.get("function", tool) for tool in body["tools"]]
    tools = [each for tool in given for each in tool.get("functionDeclarations", [tool])]
    fields = ("input_schema", "parameters", "parametersJsonSchema")
    schemas = {tool["name"]: next(tool[name] for name in fields if name in tool) for tool in tools}
    return {re.split(r"__|-|^mcp_daypack_", name)[-1]: schemas[name] for name in schemas if "daypack" in name}


def check_tools(machine: Machine, tools: dict[str, Any]) -> None:
    home, project = find_home(machine.daypack_home), find_project(str(machine.project))
    assert sorted(tools) == sorted(NAMES)
    memory_id = expected_memory(home, project)
    for name in ("get_context", "add_entry", "search_memories"):
        assert memory_id in tools[name]["properties"]["memory_id"]["description"]
        assert "memory_id" not in tools[name].get("required", ())


def test_claude_code_sees_all_tools_after_mcp_install(machine: Machine, story: Story) -> None:
    claude = installed(Claude, machine)
    machine.daypack("mcp", "install", "claude", "--user-wide", "--yes")
    check_tools(machine, first_tools(claude, story, "What do you remember?"))


def test_copilot_gets_the_memory_of_its_folder_though_it_starts_servers_in_that_of_the_plug_in(
    machine: Machine, story: Story
) -> None:
    copilot = installed(Copilot, machine)
    copilot.run("plugin", "marketplace", "add", str(PLUGIN))
    copilot.run("plugin", "install", "daypack@daypack")
    check_tools(machine, first_tools(copilot, story, "What does Copilot remember?"))


def test_gemini_gets_the_memory_of_its_folder(machine: Machine, story: Story) -> None:
    gemini = installed(Gemini, machine)
    machine.daypack("setup", "--yes", "--agent", "gemini")
    check_tools(machine, first_tools(gemini, story, "What does Gemini remember?"))
