"""Entries for this server in the configuration files of MCP clients: planned, shown as a diff, then written.

The rest of a file stays the same, byte for byte: the entry is inserted into the text, and the result is parsed and
compared before it is written. A file that cannot be parsed is not touched.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from daypack.errors import BadConfig, BadInput
from daypack.files import atomic
from daypack.files.planned import Change, current
from daypack.text.edits import json_edit, toml_edit

CLIENTS = ("claude", "codex", "gemini")
NAME = "daypack"
TOKEN_VARIABLE = "DAYPACK_TOKEN"  # noqa: S105 — the name of a variable
_BACKUP = ".before-daypack"
# By default Codex waits 60 s for a tool; the first search after a large import may take longer.
_CODEX_LIMITS = {"startup_timeout_sec": 10, "tool_timeout_sec": 120}

# Of Claude Code: without it the model sees only the names of the tools. A user may have switched it off.
_CHOICES = {"alwaysLoad": True}
_REMOTE_FIELDS = ("url", "httpUrl")  # such an entry points to a running server and is not overwritten
_WITH_COMMENTS = ("gemini",)  # its settings may have comments


class Snippet(NamedTuple):
    """Lines to paste for one client that connects to a running server."""

    client: str
    instruction: str
    text: str


def config_path(client: str, *, folder: str, user_wide: bool, environ: Mapping[str, str]) -> str:
    """Return a client's file: Claude Code's in the project folder unless user-wide, the others' in the home folder."""
    home = environ.get("HOME") or os.path.expanduser("~")
    if client == "claude" and user_wide:
        return os.path.join(environ.get("CLAUDE_CONFIG_DIR") or home, ".claude.json")
    if client == "claude":
        return os.path.join(folder, ".mcp.json")
    if client == "codex":
        return os.path.join(environ.get("CODEX_HOME") or os.path.join(home, ".codex"), "config.toml")
    if client == "gemini":
        return os.path.join(home, ".gemini", "settings.json")
    raise BadInput(f"unknown client {client!r}", operation="install", hint=f"choose {', '.join(CLIENTS)}")


def plan(client: str, path: str, command: Sequence[str]) -> Change:
    """Return the change to a client's file that makes it start this server."""
    before = current(path)
    try:
        text = (before or b"").decode()
        after = _insert(client, text, _entry(client, command))
    except ValueError as error:
        hint = f"fix the file, or add the output of `daypack mcp install {client} --print` to it yourself"
        problem = f"cannot be changed safely: {error}"
        raise BadConfig(problem, operation="install", place=path, hint=hint) from error
    return Change(path, before, after.encode())


def write(change: Change) -> str | None:
    """Write a planned change atomically; return the path of the backup, if the file existed."""
    change.check()
    path = os.path.realpath(change.path)
    backup = None if change.before is None else _back_up(path, change.before)
    change.apply()
    return backup


def print_entry(client: str, command: Sequence[str]) -> str:
    """Return the lines for a client's file, to be pasted by hand."""
    return _insert(client, "", _entry(client, command))


def list_snippets(url: str, *, token_required: bool) -> tuple[Snippet, ...]:
    """Return what to paste so that each client connects to `url`. Tokens stay in the environment, not in the files."""
    claude: dict[str, Any] = {"type": "http", "url": url, **_CHOICES}
    gemini: dict[str, Any] = {"httpUrl": url}
    codex = [f"[mcp_servers.{NAME}]", f'url = "{url}"']
    command = f"claude mcp add --transport http {NAME} {url}"
    if token_required:
        claude["headers"] = {"Authorization": f"Bearer ${{{TOKEN_VARIABLE}}}"}
        gemini["headers"] = {"Authorization": f"Bearer ${TOKEN_VARIABLE}"}
        codex.append(f'bearer_token_env_var = "{TOKEN_VARIABLE}"')
        command += f' --header "Authorization: Bearer ${TOKEN_VARIABLE}"'
    return (
        Snippet("Claude Code", "run this", command),
        Snippet("Claude Code", "or add this to .mcp.json", json_edit.insert("", ("mcpServers", NAME), claude).rstrip()),
        Snippet("Codex", "add this to ~/.codex/config.toml", "\n".join(codex)),
        Snippet(
            "Gemini CLI",
            "add this to ~/.gemini/settings.json",
            json_edit.insert("", ("mcpServers", NAME), gemini).rstrip(),
        ),
    )


def _entry(client: str, command: Sequence[str]) -> dict[str, Any]:
    entry: dict[str, Any] = {"command": command[0], "args": list(command[1:])}
    if client == "claude":
        return {"type": "stdio", **entry, **_CHOICES}
    return entry | (_CODEX_LIMITS if client == "codex" else {})


def _insert(client: str, text: str, entry: dict[str, Any]) -> str:
    if client == "codex":
        keys = ("mcp_servers", NAME)
        existing = toml_edit.look_up(toml_edit.parse(text), keys)
        _check(existing or {})
        # Only the fields that start the server change; limits and environment set by the user are kept.
        fields = entry if existing is None else {key: entry[key] for key in ("command", "args")}
        return toml_edit.insert(text, keys, fields)
    keys = ("mcpServers", NAME)
    comments = client in _WITH_COMMENTS
    value = json_edit.look_up(json_edit.parse(text, comments=comments), keys)
    if value is not None and not isinstance(value, dict):
        raise ValueError(f"{NAME} is not a JSON object")
    fields = cast("dict[str, Any]", value or {})
    _check(fields)
    kept = {key: value for key, value in fields.items() if key in _CHOICES}
    return json_edit.insert(text, keys, {**fields, **entry, **kept}, comments=comments)


def _check(fields: dict[str, Any]) -> None:
    if conflicts := fields.keys() & set(_REMOTE_FIELDS):
        raise ValueError(f"{NAME} already has {', '.join(sorted(conflicts))}")


def _back_up(path: str, data: bytes) -> str:
    for number in range(1, 1000):
        backup = path + _BACKUP + (f"-{number}" if number > 1 else "")
        if atomic.create(backup, data):
            return backup
    raise BadInput("too many backups", operation="install", place=path, hint=f"remove some *{_BACKUP}* files")
