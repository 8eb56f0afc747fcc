"""Files and folders that programs name in their own settings; settings that cannot be read name none.

~/.basic-memory/config.json   {"projects":{"work":{"path":"/home/ada/notes"}}}, or "work":"/home/ada/notes"
~/.claude-mem/settings.json   {"CLAUDE_MEM_DATA_DIR":"/data/mem"}, of earlier versions below "env"
~/.claude.json and others     {"mcpServers":{"memory":{"env":{"MEMORY_FILE_PATH":"/home/ada/memory.jsonl"}}}}
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec

from daypack.plain_files import open_plain

_MAX_BYTES = 64 << 20
_known: dict[str, tuple[tuple[int, int, int], dict[str, Any]]] = {}
_MCP_SETTINGS = (
    ".claude.json",
    ".cursor/mcp.json",
    ".copilot/mcp-config.json",
    ".gemini/settings.json",
    ".qwen/settings.json",
    ".config/Claude/claude_desktop_config.json",
    "Library/Application Support/Claude/claude_desktop_config.json",
)


def user_home(environ: Mapping[str, str]) -> str:
    """Return the user's home folder."""
    return environ.get("HOME") or os.path.expanduser("~")


def basic_memory_projects(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the folders of the projects of basic-memory."""
    folder = environ.get("BASIC_MEMORY_CONFIG_DIR")
    if not folder:
        above = environ.get("XDG_CONFIG_HOME")
        folder = os.path.join(above, "basic-memory") if above else os.path.join(user_home(environ), ".basic-memory")
    for project in _dict(_read(os.path.join(folder, "config.json")).get("projects")).values():
        yield from _absolute(_dict(project).get("path") or project, environ)


def claude_mem_folder(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the folder that the settings of claude-mem name, unless a variable does."""
    if not environ.get("CLAUDE_MEM_DATA_DIR"):
        settings = _read(os.path.join(user_home(environ), ".claude-mem", "settings.json"))
        yield from _absolute(_dict(settings.get("env", settings)).get("CLAUDE_MEM_DATA_DIR"), environ)


def mcp_memory_files(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the files that MCP clients name for the reference memory server."""
    home = user_home(environ)
    yield from _absolute(environ.get("MEMORY_FILE_PATH"), environ)
    for name in _MCP_SETTINGS:
        settings = _read(os.path.join(home, name))
        projects = _dict(settings.get("projects")).values()  # of Claude Code
        for part in (settings, *map(_dict, projects)):
            yield from _memory_files(part.get("mcpServers"), environ)
    codex = os.path.join(environ.get("CODEX_HOME") or os.path.join(home, ".codex"), "config.toml")
    yield from _memory_files(_read(codex).get("mcp_servers"), environ)


def _memory_files(servers: object, environ: Mapping[str, str]) -> Iterator[str]:
    for server in _dict(servers).values():
        yield from _absolute(_dict(_dict(server).get("env")).get("MEMORY_FILE_PATH"), environ)


def _absolute(path: object, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a path if it is one that does not depend on where the program runs."""
    if isinstance(path, str) and "\0" not in path:
        path = os.path.join(user_home(environ), path[2:]) if path.startswith("~/") else path
        if os.path.isabs(path):
            yield path


def _read(path: str) -> dict[str, Any]:
    """Return the settings in a file, which is read again only when it has changed: a watch asks every second."""
    try:
        found = os.stat(path)
        state = found.st_mtime_ns, found.st_size, found.st_ino
        known = _known.get(path)
        if known and known[0] == state:
            return known[1]
        with open_plain(path) as file:
            settings = _decode(path, file.read(_MAX_BYTES))
    except (OSError, ValueError, msgspec.MsgspecError, RecursionError):
        return {}
    _known[path] = state, settings
    return settings


def _decode(path: str, data: bytes) -> dict[str, Any]:
    if path.endswith(".toml"):
        import tomllib  # noqa: PLC0415 — not for a hook

        return _dict(tomllib.loads(data.decode()))
    return _dict(msgspec.json.decode(data))


def _dict(value: object) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}
