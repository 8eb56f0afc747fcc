"""The folder that a coding agent works in, for an MCP server that the agent started.

Claude Code, Codex, Qwen Code and Gemini CLI start servers in that folder. Copilot CLI starts them in the folder of the
plug-in and gives the id of the session, of which it keeps a file:

<COPILOT_HOME>/session-state/<id>/workspace.yaml   cwd: /src/app
"""

import os
from collections.abc import Mapping

from daypack.plain_files import open_plain

_MAX_BYTES = 1 << 16


def agent_folder(environ: Mapping[str, str]) -> str | None:
    """Return the folder of the agent that started this process, or else the current one; None if it was deleted."""
    try:
        here = os.getcwd()
    except OSError:
        here = None
    plugin, session = environ.get("COPILOT_PLUGIN_ROOT"), environ.get("COPILOT_AGENT_SESSION_ID")
    if here and plugin and session and os.path.realpath(plugin) == os.path.realpath(here):
        return _copilot_folder(environ, session) or here
    return environ.get("CLAUDE_PROJECT_DIR") or here


def _copilot_folder(environ: Mapping[str, str], session: str) -> str | None:
    folder = environ.get("COPILOT_HOME") or os.path.join(os.path.expanduser("~"), ".copilot")
    path = os.path.join(folder, "session-state", os.path.basename(session), "workspace.yaml")
    try:
        with open_plain(path) as file:
            lines = file.read(_MAX_BYTES).decode(errors="surrogateescape").splitlines()
    except OSError:
        return None
    values = (line.partition(":")[2].strip() for line in lines if line.startswith("cwd:"))
    return next((_unquote(value) for value in values if value), None)


def _unquote(value: str) -> str:
    """Return a YAML scalar as text: plain, or in quotes, which paths with special characters get."""
    if value[:1] == value[-1:] == "'" and len(value) > 1:
        return value[1:-1].replace("''", "'")
    if value[:1] == value[-1:] == '"' and len(value) > 1:
        import json  # noqa: PLC0415 — the escapes of YAML's double quotes that occur in paths are those of JSON

        try:
            return str(json.loads(value))
        except ValueError:
            return value[1:-1]
    return value
