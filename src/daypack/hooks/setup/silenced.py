"""Why hooks do nothing although they are set up: settings of daypack and of the agents that switch them off."""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

from daypack.config import from_file
from daypack.errors import DaypackError
from daypack.history.layout import Home
from daypack.hooks.settings import HookSettings, read_settings
from daypack.hooks.setup import gemini
from daypack.hooks.setup.agents import find_agents
from daypack.types.names import did_you_mean, one_line

_SWITCH = "disableAllHooks"
_SWITCHABLE = ("claude", "qwen")
_MAX_BYTES = 1 << 22


class Silenced(NamedTuple):
    """A setting that keeps hooks from acting, or that means nothing, and its file."""

    place: str
    problem: str
    hint: str


def find_silenced(home: Home, environ: Mapping[str, str]) -> list[Silenced]:
    """Return such settings in config.toml and in the settings of installed agents."""
    return [*_in_config(home), *_in_agents(environ)]


def _in_config(home: Home) -> Iterator[Silenced]:
    if not os.path.exists(home.config):
        return
    try:
        settings, table = read_settings(home), from_file(home.config).get("hooks", {})
    except DaypackError as error:
        yield Silenced(home.config, f"hooks do nothing: {error.problem}", error.hint or "correct the file")
        return
    if not settings.enabled:
        hint = "remove `enabled = false` from [hooks]"
        yield Silenced(home.config, "hooks are switched off by `enabled = false` in [hooks]", hint)
    known = HookSettings.__struct_fields__
    for key in table:
        if key not in known:
            hint = did_you_mean(key, known) or f"known are {', '.join(known)}"
            yield Silenced(home.config, f"{one_line(key)} is no setting of [hooks]", hint)


def _in_agents(environ: Mapping[str, str]) -> Iterator[Silenced]:
    for agent in find_agents(environ):
        path = os.path.join(agent.folder, "settings.json")
        settings = _read(path)
        found = [_SWITCH] if agent.host in _SWITCHABLE and settings.get(_SWITCH) is True else []
        for switch in found or (gemini.find_switches(settings) if agent.host == "gemini" else ()):
            problem = f"{agent.title} runs no hooks: its settings have `{switch}`"
            yield Silenced(path, problem, "remove that line; until then nothing is recorded there")
        noted = gemini.enablement_file(agent.folder)
        if agent.host == "gemini" and (folders := gemini.find_disabled(_read(noted))):
            problem = f"{agent.title} has the extension disabled in {one_line(', '.join(folders))}"
            yield Silenced(noted, problem, "`gemini extensions enable daypack`; until then nothing is recorded there")


def _read(path: str) -> dict[str, Any]:
    """Return the settings of an agent; none if they cannot be read: the agent reports that itself."""
    try:
        with open(path, "rb") as file:
            text = file.read(_MAX_BYTES).decode()
        lines = [line for line in text.splitlines() if not line.lstrip().startswith("//")]
        settings = json.loads("\n".join(lines))
    except (OSError, ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", settings) if isinstance(settings, dict) else {}
