"""From an event to what is done about it: which module answers, and whether the transcript is taken in."""

from daypack.errors import BadInput
from daypack.history.layout import Home
from daypack.hooks.call import HookCall, Injection
from daypack.hooks.hosts import HOSTS
from daypack.hooks.settings import read_settings
from daypack.hooks.state import SessionState

TAKE_IN = frozenset({"PreCompact", "Stop", "SubagentStop", "SessionEnd"})
EVENTS = TAKE_IN | {"SessionStart", "UserPromptSubmit"}


def answer(call: HookCall, home: Home) -> str:
    """Return the text for the window; empty if there is none."""
    if not read_settings(home).allows(call.event):
        return ""
    if call.event not in EVENTS:
        hint = f"hooks act at {', '.join(sorted(EVENTS))}"
        raise BadInput(f"no such event: {call.event}", operation="answer", place=call.host, hint=hint)
    if call.event in TAKE_IN:
        from daypack.hooks import take_in  # noqa: PLC0415 — a prompt does not need it

        take_in.request(call, home)
    if call.event in ("Stop", "SubagentStop", "SessionEnd"):
        return ""
    state = SessionState(home, call.agent, call.session)
    injection = _injection_for(call, home, state) if HOSTS[call.host].takes(call.event) else None
    if injection and not HOSTS[call.host].fits(call.event, injection.text):
        length, limit = HOSTS[call.host].length(injection.text), HOSTS[call.host].limit(call.event)
        raise BadInput(f"the text has {length:,}, the limit is {limit:,}", operation="inject", place=call.host)
    state.record(call, injection)  # before it is printed: what is in a window must be known
    return injection.text if injection else ""


def _injection_for(call: HookCall, home: Home, state: SessionState) -> Injection | None:
    """Return what an event adds to the window; each event imports only what it needs."""
    if call.event == "UserPromptSubmit":
        from daypack.hooks.prompt import on_prompt  # noqa: PLC0415

        return on_prompt(call, home, state.injected())
    if call.event == "PreCompact":
        from daypack.hooks.compaction import before_compaction  # noqa: PLC0415

        rules = before_compaction(call, home)
        return Injection(rules) if rules else None
    if call.source == "compact":
        from daypack.hooks.compaction import after_compaction  # noqa: PLC0415

        return after_compaction(call, home)
    from daypack.hooks.start import on_start  # noqa: PLC0415

    return on_start(call, home, state.injected() if call.source == "resume" else ())
