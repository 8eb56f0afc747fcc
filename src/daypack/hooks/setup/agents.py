"""The coding agents on this machine: those whose program is on PATH or whose folder exists."""

import os
import shutil
from collections.abc import Collection, Mapping
from typing import NamedTuple

from daypack.errors import BadInput
from daypack.hooks.call import HostName


class Agent(NamedTuple):
    """A coding agent: its program, "" if it is not on PATH, and the folder with its settings and transcripts."""

    host: HostName
    title: str
    program: str
    folder: str


class _Known(NamedTuple):
    title: str
    program: str
    variable: str  # names the folder
    folder: str  # in the user's home, without the variable


_KNOWN: dict[HostName, _Known] = {
    "claude": _Known("Claude Code", "claude", "CLAUDE_CONFIG_DIR", ".claude"),
    "codex": _Known("Codex", "codex", "CODEX_HOME", ".codex"),
    "copilot": _Known("Copilot CLI", "copilot", "COPILOT_HOME", ".copilot"),
    "qwen": _Known("Qwen Code", "qwen", "QWEN_HOME", ".qwen"),
}
TITLES: dict[HostName, str] = {host: known.title for host, known in _KNOWN.items()}


def find_agents(environ: Mapping[str, str], chosen: Collection[HostName] = ()) -> list[Agent]:
    """Return the agents that are installed, or the chosen ones. Raises BadInput if a chosen one is not installed."""
    found = [agent for host in _KNOWN if (agent := _find(host, environ)) is not None]
    for host in chosen:
        if host not in [agent.host for agent in found]:
            known = _KNOWN[host]
            problem = f"{known.title} is not installed: no {known.program} on PATH, and no folder ~/{known.folder}"
            hint = f"install it first; if its folder is elsewhere, set {known.variable}"
            raise BadInput(problem, operation="setup", place=f"--agent {host}", hint=hint)
    return [agent for agent in found if not chosen or agent.host in chosen]


def user_home(environ: Mapping[str, str]) -> str:
    """Return the user's home folder."""
    return environ.get("HOME") or os.path.expanduser("~")


def _find(host: HostName, environ: Mapping[str, str]) -> Agent | None:
    known = _KNOWN[host]
    folder = os.path.abspath(environ.get(known.variable) or os.path.join(user_home(environ), known.folder))
    program = shutil.which(known.program, path=environ.get("PATH", os.defpath))
    return Agent(host, known.title, program or "", folder) if program or os.path.isdir(folder) else None
