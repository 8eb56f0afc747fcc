"""What to paste into the configuration of an agent so that it uses a server at an address."""

from typing import Any, NamedTuple

import msgspec

NAME = "daypack"
TOKEN_VARIABLE = "DAYPACK_TOKEN"  # noqa: S105 — the name of a variable


class Invitation(NamedTuple):
    """The lines for one agent, and where they go."""

    agent: str
    place: str
    lines: str


def invite(url: str, *, token_required: bool) -> tuple[Invitation, ...]:
    """Return the lines for each agent. A token stays in the environment: none of these files is a place for one."""
    claude: dict[str, Any] = {"type": "http", "url": url}
    gemini: dict[str, Any] = {"httpUrl": url}
    codex = [f"[mcp_servers.{NAME}]", f'url = "{url}"']
    command = f"claude mcp add --transport http {NAME} {url}"
    if token_required:
        claude["headers"] = {"Authorization": f"Bearer ${{{TOKEN_VARIABLE}}}"}
        gemini["headers"] = {"Authorization": f"Bearer ${TOKEN_VARIABLE}"}
        codex.append(f'bearer_token_env_var = "{TOKEN_VARIABLE}"')
        command += f' --header "Authorization: Bearer ${TOKEN_VARIABLE}"'
    return (
        Invitation("Claude Code", "run this", command),
        Invitation("Claude Code", "or put this into .mcp.json", _servers(claude)),
        Invitation("Codex", "put this into ~/.codex/config.toml", "\n".join(codex)),
        Invitation("Gemini CLI", "put this into ~/.gemini/settings.json", _servers(gemini)),
    )


def _servers(entry: dict[str, Any]) -> str:
    return msgspec.json.format(msgspec.json.encode({"mcpServers": {NAME: entry}})).decode()
