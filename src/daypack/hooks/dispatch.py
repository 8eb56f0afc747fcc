"""From an event to what is done about it: which module answers, and whether the transcript is taken in."""

from daypack.errors import BadInput
from daypack.history.layout import Home
from daypack.hooks.call import HookCall
from daypack.hooks.settings import read_settings

EVENTS = frozenset({"SessionStart", "UserPromptSubmit", "PreCompact", "Stop", "SubagentStop", "SessionEnd"})


def answer(call: HookCall, home: Home) -> str:
    """Return the text for the window; empty if there is none."""
    if not read_settings(home).allows(call.event):
        return ""
    if call.event not in EVENTS:
        hint = f"hooks act at {', '.join(sorted(EVENTS))}"
        raise BadInput(f"no such event: {call.event}", operation="answer", place=call.host, hint=hint)
    return ""
