"""Entries for this server in the configuration of other programs: planned as text, shown, then written.

Everything else in such a file stays byte for byte: an entry is put into the text, and the result is read back and
compared before it is written. A file that cannot be read is not touched.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from daypack.errors import BadConfig, BadInput
from daypack.files import atomic
from daypack.serve.install import json_text as jsontext
from daypack.serve.install import toml_text as tomltext

CLIENTS = ("claude", "codex", "gemini")
NAME = "daypack"
_BACKUP = ".before-daypack"
# Codex waits 10 s for a server and 60 s for a tool unless told otherwise; a first search in a large import may last.
_CODEX_LIMITS = {"startup_timeout_sec": 10, "tool_timeout_sec": 120}

_ELSEWHERE = ("url", "httpUrl")  # of an entry for a server that is reached, not started: somebody wanted it so


class Change(NamedTuple):
    """What would be done to a file. `before` is None when there is no file, `after` is `before` when all is there."""

    path: str
    before: str | None
    after: str

    @property
    def needed(self) -> bool:
        """Whether there is anything to write."""
        return self.before != self.after

    def diff(self) -> str:
        """Return the change as a unified diff."""
        from difflib import unified_diff  # noqa: PLC0415 — for this command only

        before, after = (text.splitlines(keepends=True) for text in (self.before or "", self.after))
        lines = unified_diff(before, after, self.path, self.path)
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def locate(client: str, *, folder: str, user_wide: bool, environ: Mapping[str, str]) -> str:
    """Return the file a client reads: Claude Code's in the project folder unless user-wide, the others' at home."""
    home = environ.get("HOME") or os.path.expanduser("~")
    if client == "claude" and user_wide:
        return os.path.join(environ.get("CLAUDE_CONFIG_DIR") or home, ".claude.json")
    if client == "claude":
        return os.path.join(folder, ".mcp.json")
    if client == "codex":
        return os.path.join(environ.get("CODEX_HOME") or os.path.join(home, ".codex"), "config.toml")
    if client == "gemini":
        return os.path.join(home, ".gemini", "settings.json")
    raise BadInput(f"{client!r} is no client", operation="install", hint=f"there are {', '.join(CLIENTS)}")


def plan(client: str, path: str, command: Sequence[str]) -> Change:
    """Return what has to change in a client's file so that it starts this server."""
    data = atomic.read(os.path.realpath(path))  # people keep such files elsewhere and link to them
    try:
        before = None if data is None else data.decode()
        after = _insert(client, before or "", _entry(client, command))
    except ValueError as error:
        hint = f"mend the file, or put the lines of `daypack mcp install {client} --print` into it yourself"
        problem = f"it cannot be changed safely: {error}"
        raise BadConfig(problem, operation="install", place=path, hint=hint) from error
    return Change(path, before, after)


def write(change: Change) -> str | None:
    """Write a planned change, all of it or nothing; return where the former file was copied to."""
    path = os.path.realpath(change.path)
    data = atomic.read(path)
    if (None if data is None else data.decode(errors="replace")) != change.before:
        raise BadInput(
            "the file changed in the meantime", operation="install", place=change.path, hint="run the command again"
        )
    atomic.make_folders(os.path.dirname(path))
    backup = None if data is None else _keep(path, data)
    atomic.publish(path, change.after.encode())
    return backup


def paste(client: str, command: Sequence[str]) -> str:
    """Return the lines somebody can put into a client's file themselves."""
    return _insert(client, "", _entry(client, command))


def _entry(client: str, command: Sequence[str]) -> dict[str, Any]:
    entry: dict[str, Any] = {"command": command[0], "args": list(command[1:])}
    if client == "claude":
        return {"type": "stdio", **entry}
    return entry | (_CODEX_LIMITS if client == "codex" else {})


def _insert(client: str, text: str, entry: dict[str, Any]) -> str:
    if client == "codex":
        return tomltext.insert(text, ("mcp_servers", NAME), entry, _ELSEWHERE)
    return jsontext.insert(text, ("mcpServers", NAME), entry, _ELSEWHERE)


def _keep(path: str, data: bytes) -> str:
    """Copy a file aside, under a name that is free."""
    for number in range(1, 1000):
        aside = path + _BACKUP + (f"-{number}" if number > 1 else "")
        if atomic.create(aside, data):
            return aside
    raise BadInput("there are too many backups", operation="install", place=path, hint=f"remove some *{_BACKUP}*")
