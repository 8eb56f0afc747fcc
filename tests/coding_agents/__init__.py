"""Real coding agents, driven without a terminal against a scripted model on loopback.

    with ModelEndpoint(answer=story.answer, strict=False) as endpoint:
        machine = Machine(tmp_path, endpoint)
        claude = Claude(machine)
        session = claude.ask("Read the README")
        claude.compact(session)

A `Machine` is a home folder, a repository, `daypack` on PATH and nothing of the machine that runs the tests. A `Story`
has the model's replies. `wire` reads what an agent sent, in any of the four APIs.
"""

from coding_agents.machine import Machine, eventually
from coding_agents.programs import PROGRAMS, Claude, Codex, Copilot, Gemini, OpenCode, Program, Qwen, installed
from coding_agents.story import Story
from coding_agents.wire import Part, offered_tools, read_parts

__all__ = [
    "PROGRAMS",
    "Claude",
    "Codex",
    "Copilot",
    "Gemini",
    "Machine",
    "OpenCode",
    "Part",
    "Program",
    "Qwen",
    "Story",
    "eventually",
    "installed",
    "offered_tools",
    "read_parts",
]
