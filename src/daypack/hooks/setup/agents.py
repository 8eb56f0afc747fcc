"""The coding agents on this machine: those whose program is on PATH or whose folder exists."""

import os
import shutil
from collections.abc import Collection, Mapping
from typing import NamedTuple, get_args

from daypack.errors import BadInput
from daypack.hooks.call import HostName
from daypack.importers.places import PLACES, Place


class Agent(NamedTuple):
    """A coding agent: its program, "" if it is not on PATH, and the folder with its settings and transcripts."""

    host: HostName
    title: str
    program: str
    folder: str


_KNOWN: dict[HostName, Place] = {host: PLACES[host] for host in get_args(HostName)}
# They use neither the shared plug-in folder nor the memories of projects: daypack packs their requests inside them.
WITHOUT_PLUGIN: frozenset[HostName] = frozenset({"hermes"})
TITLES: dict[HostName, str] = {host: known.title for host, known in _KNOWN.items()}


def find_agents(environ: Mapping[str, str], chosen: Collection[HostName] = ()) -> list[Agent]:
    """Return the agents that are installed, or the chosen ones. Raises BadInput if a chosen one is not installed."""
    found = [agent for host in _KNOWN if (agent := _find(host, environ)) is not None]
    for host in chosen:
        if host not in [agent.host for agent in found]:
            known = _KNOWN[host]
            folder = f"~/{known.folder.default}"
            problem = f"{known.title} is not installed: no {known.program} on PATH, and no folder {folder}"
            hint = f"install it first; if its folder is elsewhere, set {known.folder.variable}"
            raise BadInput(problem, operation="setup", place=f"--agent {host}", hint=hint)
    return [agent for agent in found if not chosen or agent.host in chosen]


def _find(host: HostName, environ: Mapping[str, str]) -> Agent | None:
    known = _KNOWN[host]
    folder = known.folder.find(environ)
    program = shutil.which(known.program, path=environ.get("PATH", os.defpath))
    return Agent(host, known.title, program or "", folder) if program or os.path.isdir(folder) else None
