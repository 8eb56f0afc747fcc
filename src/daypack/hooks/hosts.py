"""The coding agents: how each is recognised, which answers it takes, and how long they may be.

Measured with Claude Code 2.1.325, Codex 0.166.0, Copilot CLI 1.0.102, Qwen Code 0.24.4 and Gemini CLI 0.61.0. Claude
Code replaces a text of more than 10,000 UTF-16 units by a preview, Codex cuts one of more than 10,000 bytes in the
middle; both limits here leave room. The others took 140,000 characters; they get what Claude Code gets, because more
helps no model.

Gemini CLI takes texts with prompts and with tool results, and of the latter only what `recall_before_edit` adds is
used; the rest waits for a prompt, as `only_prompts` says. When a session starts without a terminal, it puts the text of
a hook before the user's first prompt, and a resumed session loses both. No event says that it has compacted:
PreCompress comes before every request, whether there is anything to compress or not.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from daypack.errors import BadInput
from daypack.hooks.call import OWN_EVENTS, HostName

NAMES: dict[str, HostName] = {
    "claude": "claude",
    "claude-code": "claude",
    "codex": "codex",
    "copilot": "copilot",
    "qwen": "qwen",
    "gemini": "gemini",
    "opencode": "opencode",
}
"""What `daypack hook` accepts as the name of a host."""
_CONTEXT = frozenset({"SessionStart", "UserPromptSubmit"})
_BEFORE_TOOLS = _CONTEXT | {"PreToolUse"}  # Qwen Code runs that hook and drops its text
_THREE_TEXTS = 20_000  # of a start, a compaction and a prompt, in one
_QWEN_COMPACTION_LENGTH = 3_900  # it keeps 4,000 characters of what hooks add to the summary's instructions


class Host(Struct, frozen=True, kw_only=True):
    """A coding agent.

    `context_events` take JSON with `additionalContext`, `text_events` plain text. `unit` is what `max_length` counts.
    """

    name: HostName
    context_events: frozenset[str] = _CONTEXT
    text_events: frozenset[str] = frozenset()
    is_flat: bool = False  # the key is at the top, not in hookSpecificOutput
    only_prompts: bool = False  # a prompt carries what belongs to a start, and what follows a compaction
    has_messages: bool = True  # shows a `systemMessage` to the user
    unit: Literal["utf-8", "utf-16-le"] = "utf-16-le"
    max_length: int = 9_500
    shorter: Mapping[str, int] = {}  # the limits of single events

    def takes(self, event: str) -> bool:
        """Return True if a text can be added to the window at this event."""
        return event in self.context_events or event in self.text_events

    def limit(self, event: str) -> int:
        """Return how long a text for this event may be, in `unit`."""
        return self.shorter.get(event, self.max_length)

    def length(self, text: str) -> int:
        """Return the length of a text as the host counts it."""
        encoded = text.encode(self.unit, "surrogatepass")
        return len(encoded) if self.unit == "utf-8" else len(encoded) // 2

    def fits(self, event: str, text: str) -> bool:
        """Return True if the host shows this text whole."""
        return self.length(text) <= self.limit(event)

    def answer(self, event: str, text: str = "", message: str = "") -> bytes:
        """Return standard output: a text for the window and a line for the user; empty if there is neither."""
        if event in self.text_events:
            return text.encode("utf-8", "replace")
        if message and not self.has_messages:
            text, message = f"{message}\n\n{text}".strip(), ""
        fields: dict[str, Any] = {"systemMessage": message} if message else {}
        if text and self.is_flat:
            fields["additionalContext"] = text
        elif text:
            own = OWN_EVENTS.get(self.name, {}).get(event, event)
            fields["hookSpecificOutput"] = {"hookEventName": own, "additionalContext": text}
        return msgspec.json.encode(fields) if fields else b""


HOSTS: dict[HostName, Host] = {
    "claude": Host(name="claude", context_events=_BEFORE_TOOLS, text_events=frozenset({"PreCompact"})),
    "codex": Host(name="codex", context_events=_BEFORE_TOOLS, unit="utf-8", max_length=9_600),
    "copilot": Host(name="copilot", context_events=_BEFORE_TOOLS, is_flat=True, has_messages=False),
    "qwen": Host(
        name="qwen",
        context_events=_CONTEXT | {"PreCompact"},
        shorter={"PreCompact": _QWEN_COMPACTION_LENGTH},
    ),
    "gemini": Host(
        name="gemini",
        context_events=frozenset({"UserPromptSubmit", "PreToolUse"}),
        only_prompts=True,
        max_length=_THREE_TEXTS,
    ),
    # Its plug-in adds the texts to the messages itself.
    "opencode": Host(name="opencode", context_events=frozenset(), text_events=_CONTEXT | {"PreCompact"}),
}
# Variables that hold the id of the session for which the hook runs.
_SESSION_VARIABLES: dict[str, HostName] = {
    "CLAUDE_CODE_SESSION_ID": "claude",
    "QWEN_CODE_SESSION_ID": "qwen",
    "GEMINI_SESSION_ID": "gemini",
}
# Variables that are there; the first that is decides. Copilot and Codex both set PLUGIN_ROOT, all but Codex
# set CLAUDE_PROJECT_DIR.
_VARIABLES: dict[str, HostName] = {
    "COPILOT_CLI": "copilot",
    "COPILOT_PLUGIN_ROOT": "copilot",
    "PLUGIN_ROOT": "codex",
    "QWEN_PROJECT_DIR": "qwen",
    "QWEN_CODE_SESSION_ID": "qwen",
    "GEMINI_PROJECT_DIR": "gemini",
    "CLAUDE_PROJECT_DIR": "claude",
    "CLAUDE_CODE_SESSION_ID": "claude",
    "CLAUDECODE": "claude",
}


def recognise(fields: Mapping[str, Any], environ: Mapping[str, str]) -> HostName:
    """Return the host that runs a hook.

    An agent that another agent started inherits its variables, so that the session's own id is asked for first.
    """
    if session := fields.get("session_id"):
        for variable, host in _SESSION_VARIABLES.items():
            if environ.get(variable) == session:
                return host
    for variable, host in _VARIABLES.items():
        if environ.get(variable):
            return host
    raise BadInput(
        "no variable of a known coding agent is set",
        operation="recognise the agent",
        place="environment",
        hint=f"name it: daypack hook {'|'.join(HOSTS)}",
    )
