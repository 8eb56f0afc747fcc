"""One event of a coding agent, as its hook receives it on standard input.

{"hook_event_name":"UserPromptSubmit","session_id":"…","transcript_path":"…","cwd":"…","prompt":"…"}
"""

from collections.abc import Mapping
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

from daypack.errors import BadInput

HostName = Literal["claude", "codex", "copilot", "qwen", "gemini", "hermes", "opencode"]
AGENTS: dict[HostName, str] = {
    "claude": "claude-code",
    "codex": "codex",
    "copilot": "copilot",
    "qwen": "qwen",
    "gemini": "gemini",
    "hermes": "hermes",
    "opencode": "opencode",
}
"""The agent under whose name the sessions of a host are stored."""
OWN_EVENTS: dict[HostName, dict[str, str]] = {
    "gemini": {"UserPromptSubmit": "BeforeAgent", "Stop": "AfterAgent", "PreToolUse": "AfterTool"}
}
"""The words of hosts that have other names for some events.

Gemini CLI takes no text before a tool runs; others show the text of PreToolUse with the result, and it does so after.
"""
_SOURCES = {"new": "startup"}  # Copilot's word


class HookCall(Struct, frozen=True, kw_only=True):
    """An event of a host; `fields` is the whole input, the rest of the fields are those that most events have."""

    host: HostName
    event: str
    session: str
    cwd: str
    transcript: str = ""
    source: str = ""  # of SessionStart: startup, resume, clear, compact
    prompt: str = ""  # of UserPromptSubmit
    fields: Mapping[str, Any] = {}

    @property
    def agent(self) -> str:
        """The agent under whose name the session is stored."""
        return AGENTS[self.host]

    def text(self, name: str) -> str:
        """Return a field of the input; empty if it is missing or no text."""
        return _text(self.fields, name)


class Injection(Struct, frozen=True):
    """A text for the window of a host, and the ids of what it contains, which are not injected again."""

    text: str
    items: tuple[str, ...] = ()


def read_fields(data: bytes) -> dict[str, Any]:
    """Parse the input of a hook, which must be a JSON object."""
    try:
        value: object = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise BadInput(f"not JSON: {error}", operation="read hook input", place="standard input") from error
    if not isinstance(value, dict):
        raise BadInput("not a JSON object", operation="read hook input", place="standard input")
    return cast(dict[str, Any], value)


def call_of(host: HostName, fields: Mapping[str, Any]) -> HookCall:
    """Return the event of an input; event, session and folder are required."""
    event, session, cwd = (_required(fields, name) for name in ("hook_event_name", "session_id", "cwd"))
    source = _text(fields, "source")
    return HookCall(
        host=host,
        event=next((ours for ours, own in OWN_EVENTS.get(host, {}).items() if own == event), event),
        session=session,
        cwd=cwd,
        transcript=_text(fields, "transcript_path"),
        source=_SOURCES.get(source, source),
        prompt=_text(fields, "prompt"),
        fields=fields,
    )


def read_call(host: HostName, data: bytes) -> HookCall:
    """Parse the input of a hook of a known host."""
    return call_of(host, read_fields(data))


def _required(fields: Mapping[str, Any], name: str) -> str:
    if not (text := _text(fields, name)):
        raise BadInput(f"{name} is missing", operation="read hook input", place="standard input")
    return text


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""
