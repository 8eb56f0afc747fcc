"""What makes the plug-in active in each agent: the entries and files that the agent's own install command writes.

Measured with claude 2.1.197 and 2.1.325, codex 0.166.0, copilot 1.0.102, qwen 0.24.4 and gemini 0.61.0 in empty homes.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import msgspec

from daypack.errors import BadConfig, DaypackError
from daypack.hooks.call import HostName
from daypack.hooks.setup import gemini, opencode
from daypack.hooks.setup.agents import Agent
from daypack.hooks.setup.plugin_folder import GEMINI, MANIFEST, PLUGIN, plugin_version
from daypack.hooks.setup.record import Format

SERVER = "daypack"  # the name that `daypack mcp install` gives the server
_ID = f"{PLUGIN}@{PLUGIN}"  # plug-in and marketplace
_DIRECT_TOOLS = ("direct_only_tool_namespaces", f"mcp__{PLUGIN}")


class Entry(NamedTuple):
    """A value under nested keys; in TOML, the fields of a table.

    `names_source` marks the entry that says where the plug-in comes from: another value is another installation.
    `item` is a field of the table and an element of the list in it; such an entry is left out where it cannot be made.
    """

    keys: tuple[str, ...]
    value: Any
    names_source: bool = False
    item: tuple[str, str] | None = None


class Settings(NamedTuple):
    """Entries in a settings file of an agent.

    `new` is the text of a file that does not exist yet, without the entries. `trusts` are the keys of a table and the
    beginning of those names in it under which the agent stores what it knows of the plug-in.
    """

    path: str
    format: Format
    entries: tuple[Entry, ...]
    new: str = ""
    trusts: tuple[str, ...] = ()


class Whole(NamedTuple):
    """A file that belongs to the plug-in; `names_source` as in an entry."""

    path: str
    data: bytes
    names_source: bool = False


Part = Settings | Whole
Existing = Callable[[str, Format, tuple[str, ...]], Any]  # the value in a settings file under nested keys, or None


class Source(NamedTuple):
    """What is installed: the folder of the marketplace, its files, and the time, as agents write it."""

    marketplace: str
    files: Mapping[str, bytes]
    now: str

    @property
    def plugin(self) -> str:
        """The folder of the plug-in."""
        return os.path.join(self.marketplace, PLUGIN)


def list_parts(agent: Agent, source: Source, existing: Existing) -> tuple[Part, ...]:
    """Return what an agent needs so that the plug-in is installed and enabled in it."""
    return _PARTS[agent.host](agent.folder, source, existing)


def find_other_server(agent: Agent, existing: Existing) -> str:
    """Return the file in which `daypack mcp install` put the memory tools for all projects; "" if there is none."""
    if agent.host == "claude":
        beside = os.path.basename(agent.folder) == ".claude"  # CLAUDE_CONFIG_DIR has it inside
        path = os.path.join(os.path.dirname(agent.folder) if beside else agent.folder, ".claude.json")
        keys, format = ("mcpServers", SERVER), "json"  # noqa: A001 — the word of the record
    elif agent.host == "codex":
        path, keys, format = os.path.join(agent.folder, "config.toml"), ("mcp_servers", SERVER), "toml"  # noqa: A001
    elif agent.host == "gemini":
        path, keys, format = os.path.join(agent.folder, "settings.json"), ("mcpServers", SERVER), "jsonc"  # noqa: A001
    else:
        return ""
    try:
        return path if existing(path, format, keys) is not None else ""
    except DaypackError:  # only a remark would be missing
        return ""


def _claude(folder: str, source: Source, existing: Existing) -> tuple[Part, ...]:
    origin = {"source": "directory", "path": source.marketplace}
    plugins = os.path.join(folder, "plugins")
    marketplaces = os.path.join(plugins, "known_marketplaces.json")
    installed = os.path.join(plugins, "installed_plugins.json")
    marketplace = {"source": origin, "installLocation": source.marketplace}
    install = {"scope": "user", "installPath": source.plugin, "version": plugin_version()}
    others, times = _installs(existing(installed, "json", ("plugins", _ID)), install, source.now)
    return (
        Settings(
            os.path.join(folder, "settings.json"),
            "json",
            (
                Entry(("extraKnownMarketplaces", PLUGIN), {"source": origin}, names_source=True),
                Entry(("enabledPlugins", _ID), value=True),
            ),
        ),
        Settings(
            marketplaces,
            "json",
            (
                Entry(
                    (PLUGIN,),
                    _timed(existing(marketplaces, "json", (PLUGIN,)), marketplace, source.now),
                    names_source=True,
                ),
            ),
        ),
        Settings(
            installed,
            "json",
            (Entry(("plugins", _ID), [*others, {**install, **times}]),),
            new='{\n  "version": 2,\n  "plugins": {}\n}\n',
        ),
    )


def _timed(existing: object, value: dict[str, Any], now: str) -> dict[str, Any]:
    """Return the entry with the time it already has, if it is there unchanged."""
    times = _fields(existing, "lastUpdated") if _has(existing, value) else {}
    return {**value, "lastUpdated": now, **times}


def _installs(existing: object, install: dict[str, Any], now: str) -> tuple[list[Any], dict[str, Any]]:
    """Return the installations for single projects, and the times of the one for the user."""
    installs = cast("list[Any]", existing) if isinstance(existing, list) else []
    others = [other for other in installs if _fields(other, "scope") != {"scope": "user"}]
    mine = next((each for each in installs if _fields(each, "scope") == {"scope": "user"}), None)
    times = {"installedAt": now, **_fields(mine, "installedAt"), "lastUpdated": now}
    return others, {**times, **(_fields(mine, "lastUpdated") if _has(mine, install) else {})}


def _has(existing: object, fields: dict[str, Any]) -> bool:
    return isinstance(existing, dict) and cast("dict[str, Any]", existing).items() >= fields.items()


def _fields(value: object, name: str) -> dict[str, Any]:
    return {name: value[name]} if isinstance(value, dict) and name in value else {}


def _codex(folder: str, source: Source, existing: Existing) -> tuple[Part, ...]:
    cache = os.path.join(folder, "plugins", "cache", PLUGIN, PLUGIN, plugin_version())
    settings = os.path.join(folder, "config.toml")
    return (
        Settings(
            settings,
            "toml",
            (
                Entry(
                    ("marketplaces", PLUGIN),
                    {"source_type": "local", "source": source.marketplace},
                    names_source=True,
                ),
                Entry(("plugins", _ID), {"enabled": True}),
                _direct_tools(settings, existing),
            ),
            trusts=("hooks", "state", f"{_ID}:"),
        ),
        *(
            Whole(os.path.join(cache, os.path.relpath(path, PLUGIN)), data)
            for path, data in source.files.items()
            if path.startswith(f"{PLUGIN}/")
        ),
    )


def _direct_tools(settings: str, existing: Existing) -> Entry:
    """Return the entry that lets Codex's model see the tools; otherwise it has to search for them first."""
    keys, (field, item) = ("features", "code_mode"), _DIRECT_TOOLS
    try:
        table = cast("dict[str, Any]", existing(settings, "toml", keys) or {})
    except BadConfig:  # not a table, or no TOML at all, which the other entries report
        table = {}
    items = cast("list[Any]", table.get(field) or [])
    return Entry(keys, {field: items if item in items else [*items, item]}, item=_DIRECT_TOOLS)


def _copilot(folder: str, source: Source, _: Existing) -> tuple[Part, ...]:
    origin = {"source": "directory", "path": source.marketplace}
    return (
        Settings(
            os.path.join(folder, "settings.json"),
            "jsonc",
            (
                Entry(("extraKnownMarketplaces", PLUGIN), {"source": origin}, names_source=True),
                Entry(("enabledPlugins", _ID), value=True),
            ),
        ),
    )


def _qwen(folder: str, source: Source, _: Existing) -> tuple[Part, ...]:
    link = {"source": source.plugin, "type": "link", "originSource": "QwenCode", "externalContent": False}
    data = msgspec.json.format(msgspec.json.encode(link), indent=2)
    return (Whole(os.path.join(folder, "extensions", PLUGIN, ".qwen-extension-install.json"), data, names_source=True),)


def _gemini(folder: str, source: Source, _: Existing) -> tuple[Part, ...]:
    path, data = gemini.link_file(folder, source.marketplace)
    return (Whole(path, data, names_source=True),)


def _opencode(folder: str, source: Source, _: Existing) -> tuple[Part, ...]:
    manifest = msgspec.json.decode(source.files[MANIFEST])
    server = opencode.server_entry(manifest["mcpServers"][PLUGIN]["args"])
    entry = Entry(("mcp", SERVER), server)
    script = os.path.join(source.marketplace, opencode.SCRIPT)
    return (
        Whole(opencode.loader_path(folder), opencode.render_loader(script), names_source=True),
        Settings(opencode.settings_path(folder), "jsonc", (entry,), new=opencode.NEW_SETTINGS),
    )


_PARTS: dict[HostName, Callable[[str, Source, Existing], tuple[Part, ...]]] = {
    "claude": _claude,
    "codex": _codex,
    "copilot": _copilot,
    "qwen": _qwen,
    "gemini": _gemini,
    "opencode": _opencode,
}
LOADED: dict[HostName, str] = {
    "claude": PLUGIN,
    "copilot": PLUGIN,
    "qwen": PLUGIN,
    "gemini": GEMINI,
    "opencode": os.path.dirname(opencode.SCRIPT),
}
"""The folder of the marketplace that an agent loads in place; the others have copies of its files."""
