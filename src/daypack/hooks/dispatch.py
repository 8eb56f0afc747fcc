"""From an event to what is done about it: which module answers, and whether the transcript is taken in.

Every event imports only what it needs: most of the time of a hook is start-up.
"""

from collections.abc import Collection

from daypack.errors import BadInput
from daypack.history.layout import Home
from daypack.hooks.call import HookCall, Injection
from daypack.hooks.hosts import HOSTS
from daypack.hooks.settings import read_settings

_TAKEN_IN = frozenset({"PreCompact", "Stop", "SubagentStop", "SessionEnd"})
_INJECTING = frozenset({"PreCompact", "PreToolUse", "SessionStart", "UserPromptSubmit"})
_EVENTS = _TAKEN_IN | _INJECTING | {"PostToolUse"}


def answer(call: HookCall, home: Home, message: str = "") -> bytes:
    """Return what a hook prints: a text for the window and a message for the user; empty if there is nothing."""
    settings = read_settings(home)
    host = HOSTS[call.host]
    if not settings.allows(call.event):
        return host.answer(call.event, "", message)
    if call.event not in _EVENTS:
        hint = f"hooks act at {', '.join(sorted(_EVENTS))}"
        raise BadInput(f"no such event: {call.event}", operation="answer", place=call.host, hint=hint)
    if call.event == "PreToolUse" and not settings.recall_before_edit:
        return b""
    if call.event == "PostToolUse":
        if not settings.swap_output_tokens:
            return b""
        from daypack.hooks.tool_output import swap_output  # noqa: PLC0415

        return swap_output(call, home, settings.swap_output_tokens)
    if call.event in _TAKEN_IN:
        from daypack.hooks.intake.take_in import request  # noqa: PLC0415

        request(call, home)
    return host.answer(call.event, _inject(call, home) if call.event in _INJECTING else "", message)


def _inject(call: HookCall, home: Home) -> str:
    """Return the text for the window, and record it before it is printed: what is in a window must be known."""
    from daypack.hooks.state import SessionState  # noqa: PLC0415

    state, host = SessionState(home, call.agent, call.session), HOSTS[call.host]
    if host.only_prompts and call.event == "SessionStart":
        state.begin_late(call)
        return ""
    if host.only_prompts and call.event == "UserPromptSubmit":
        from daypack.hooks.late import on_late_prompt  # noqa: PLC0415

        injection = on_late_prompt(call, home, state)
    else:
        state.begin(call)
        injected = state.injected()
        injection = _say(call, home, injected)
        if injection and injection.items and injected.issuperset(injection.items):
            return ""
    if injection is None:
        return ""
    if not host.fits(call.event, injection.text):
        length, limit = host.length(injection.text), host.limit(call.event)
        raise BadInput(f"the text has {length:,}, the limit is {limit:,}", operation="inject", place=call.host)
    state.record(call, injection)
    return injection.text


def _say(call: HookCall, home: Home, injected: Collection[str]) -> Injection | None:
    if not HOSTS[call.host].takes(call.event):
        return None
    if call.event == "UserPromptSubmit":
        from daypack.hooks.prompt import on_prompt  # noqa: PLC0415

        return on_prompt(call, home, injected)
    if call.event == "PreToolUse":
        from daypack.hooks.file_decisions.before_edit import before_edit  # noqa: PLC0415

        return before_edit(call, home, injected)
    if call.event == "PreCompact":
        from daypack.hooks.compaction import before_compaction  # noqa: PLC0415

        rules = before_compaction(call, home)
        return Injection(rules) if rules else None
    if call.source == "compact":
        from daypack.hooks.compaction import after_compaction  # noqa: PLC0415

        return after_compaction(call, home)
    from daypack.hooks.start import on_start  # noqa: PLC0415

    return on_start(call, home, injected)
