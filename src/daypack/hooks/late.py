"""A prompt in a host that takes texts with prompts only: those of a start and of a compaction come with it."""

from msgspec.structs import replace

from daypack.history.layout import Home
from daypack.hooks.call import HookCall, Injection
from daypack.hooks.compaction import compaction_id, show_recap
from daypack.hooks.composition import SEPARATOR
from daypack.hooks.hosts import HOSTS
from daypack.hooks.intake import take_in
from daypack.hooks.prompt import on_prompt
from daypack.hooks.recap.recap import read_recap
from daypack.hooks.start import on_start
from daypack.hooks.state import SessionState
from daypack.hooks.stored_session import layout_of

_WAIT_SECONDS = 1.5  # for a take-in after the turn before: it finds the compaction


def on_late_prompt(call: HookCall, home: Home, state: SessionState) -> Injection | None:
    """Return the texts that the window lacks, the most important first; None if there are none.

    The window that a compaction left has nothing of what was injected before.
    """
    source = state.take_start(call)
    found = [_after_compaction(call, home, state)]
    if source:
        found.append(on_start(replace(call, source=source), home, state.injected()))
    found.append(on_prompt(call, home, state.injected()))
    texts: list[str] = []
    items: list[str] = []
    for injection in found:
        if injection and HOSTS[call.host].fits(call.event, SEPARATOR.join((*texts, injection.text))):
            texts.append(injection.text)
            items += injection.items
    return Injection(SEPARATOR.join(texts), tuple(dict.fromkeys(items))) if texts else None


def _after_compaction(call: HookCall, home: Home, state: SessionState) -> Injection | None:
    """Return what the newest compaction lost, once; None if the host has not compacted since the last time."""
    take_in.wait_for(home, call, _WAIT_SECONDS)
    recap = read_recap(layout_of(call, home))
    if recap is None or not recap.lost or (found := compaction_id(recap)) in state.injected():
        return None
    state.begin_late(call, found)
    return show_recap(call, recap)
