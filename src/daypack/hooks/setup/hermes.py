"""What makes daypack the context engine of Hermes Agent: a plug-in folder in its home, and two settings.

~/.hermes/plugins/daypack/{plugin.yaml, __init__.py}
~/.hermes/config.yaml                                   plugins.enabled: [daypack], context.engine: daypack

Hermes runs in a Python environment of its own. If daypack is not installed in it, the plug-in lends it the three
packages that it needs and no other: Hermes tries to import many, and must not find those of another environment.
"""

import os
import re
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from typing import cast

from daypack.errors import BadConfig
from daypack.hooks.setup.agents import Agent
from daypack.hooks.setup.installation import Entry, Existing, Part, Settings, Source, Whole
from daypack.hooks.setup.plugin_folder import PLUGIN, is_temporary, plugin_version

_LENT = ("daypack", "msgspec", "splintr")
_OTHERS = ("compressor", PLUGIN)  # engines that may be replaced: Hermes' own, and ours
_ASK = (
    "import sys, sysconfig, importlib.util as u; "
    "print(sys.implementation.cache_tag, sysconfig.get_platform(), bool(u.find_spec('daypack')))"
)
_ASK_SECONDS = 20
_STEPS = 4  # from a script on PATH to the interpreter: links are followed in one
_MANIFEST = """name: {name}
version: "{version}"
description: Packs every request, and keeps the whole history
"""
_MODULE = '''"""daypack as the context engine of Hermes; `daypack setup` writes this file."""

import sys
from importlib.machinery import PathFinder

_PLACES = {places!r}


class _Lent:
    """Finds these packages where `daypack setup` was run, and only if Hermes' environment has none of its own."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        return PathFinder.find_spec(name, [_PLACES[name]]) if name in _PLACES else None


if _PLACES:
    sys.meta_path.append(_Lent)


def register(ctx):
    from daypack.adapters.hermes import register

    register(ctx, home={home!r}, uid={uid!r})
'''


def list_hermes_parts(agent: Agent, source: Source, existing: Existing) -> tuple[Part, ...]:
    """Return the plug-in and the settings. Raises BadConfig if Hermes cannot import daypack, or has another engine."""
    settings = os.path.join(agent.folder, "config.yaml")
    _check_other(existing(settings, "yaml", ("context", "engine")), settings)
    enabled = existing(settings, "yaml", ("plugins", "enabled"))
    items = cast("list[str]", enabled) if isinstance(enabled, list) else []
    folder = os.path.join(agent.folder, "plugins", PLUGIN)
    user = os.path.dirname(source.marketplace)
    module = _MODULE.format(
        places=_lend(_find_python(agent), agent),
        home=os.path.dirname(os.path.dirname(user)),
        uid=os.path.basename(user),
    )
    return (
        Whole(os.path.join(folder, "plugin.yaml"), _MANIFEST.format(name=PLUGIN, version=plugin_version()).encode()),
        Whole(os.path.join(folder, "__init__.py"), module.encode(), names_source=True),
        Settings(
            settings,
            "yaml",
            (
                Entry(("plugins", "enabled"), items if PLUGIN in items else [*items, PLUGIN], item=("enabled", PLUGIN)),
                Entry(("context", "engine"), PLUGIN),
            ),
        ),
    )


def _check_other(chosen: object, settings: str) -> None:
    if chosen is not None and chosen not in _OTHERS:
        hint = "to use daypack instead, set it to compressor, then run `daypack setup` again"
        raise BadConfig(
            f"context.engine is {chosen}, and Hermes uses one", operation="setup", place=settings, hint=hint
        )


def _lend(python: str, agent: Agent) -> dict[str, str]:
    """Return where the plug-in finds the packages; nothing if Hermes' environment has daypack itself."""
    tag, platform, has_daypack = [*_ask(python).split(), "", "", ""][:3]
    if has_daypack == "True":
        return {}
    command = f"{python} -m pip install {_wheel()}"
    if (tag, platform) != (sys.implementation.cache_tag, sysconfig.get_platform()):
        problem = f"Hermes runs on {tag or 'an unknown Python'}, daypack on {sys.implementation.cache_tag}"
        raise BadConfig(problem, operation="setup", place=python, hint=f"install daypack there: {command}")
    places = {name: _place_of(name) for name in _LENT}
    if any(is_temporary(place, os.environ) for place in places.values()):
        problem = "daypack runs from a cache that may be deleted"
        raise BadConfig(problem, operation="setup", place=agent.folder, hint=f"install it in Hermes' Python: {command}")
    return places


def _ask(python: str) -> str:
    """Return what an interpreter says about itself; "" if it does not run."""
    command = [python, "-I", "-c", _ASK]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_ASK_SECONDS, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def _place_of(name: str) -> str:
    """Return the folder that a package of ours is imported from."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise BadConfig(f"{name} has no file", operation="setup", place=name, hint="install daypack with pip")
    is_package = spec.submodule_search_locations is not None
    return os.path.dirname(os.path.dirname(spec.origin) if is_package else spec.origin)


def _wheel() -> str:
    return "daypack-*.whl"


def _find_python(agent: Agent) -> str:
    """Return Hermes' interpreter: by its script on PATH, else where its installer puts it."""
    path = agent.program
    for _ in range(_STEPS):
        if not path:
            break
        if os.path.basename(path).startswith("python"):
            return path
        path = _leads_to(path)
    installed = os.path.join(agent.folder, "hermes-agent", "venv", "bin", "python")
    if os.access(installed, os.X_OK):
        return installed
    problem = "the Python of Hermes is not found"
    hint = f"install daypack in it with `pip install {_wheel()}`, then run `daypack setup` with `hermes` on PATH"
    raise BadConfig(problem, operation="setup", place=agent.program or agent.folder, hint=hint)


def _leads_to(script: str) -> str:
    """Return the interpreter or the other script that a script starts; "" if that is not clear."""
    try:
        with open(script, "rb") as file:
            text = file.read(4096).decode("utf-8", "replace")
    except OSError:
        return ""
    first = text.partition("\n")[0]
    if first.startswith("#!") and os.path.basename(first[2:].split()[0] if first[2:].split() else "").startswith(
        "python"
    ):
        return first[2:].split()[0]
    for path in re.findall(r"/[^\s\"']+/bin/(?:python[\d.]*|hermes)\b", text):
        if path != script and os.access(path, os.X_OK):
            return path
    return ""
