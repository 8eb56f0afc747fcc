"""Calls of other programs on the terminal: their names, their usage and their cache breaks in words."""

import time
from typing import Any, NamedTuple

import msgspec

from daypack.cli.terminal import safe_line, shell_word
from daypack.errors import SourceMissing
from daypack.session import Session
from daypack.text.columns import age
from daypack.turn.evidence.observed.cache import CacheBreak
from daypack.turn.evidence.observed.calls import Call, find_call
from daypack.turn.evidence.observed.request import ObservedTurn, open_observed
from daypack.types.history import Event

LATEST = "latest"
NONE = "–"
PROGRAMS = {
    "claude-code": "Claude Code",
    "codex": "Codex",
    "copilot": "Copilot",
    "qwen": "Qwen Code",
    "gemini": "Gemini CLI",
}
_CAUSES = {
    "compaction": "compacted",
    "model": "model changed",
    "tools": "tools changed",
    "system": "system prompt changed",
    "messages": "earlier messages changed",
    "parameters": "parameters changed",
    "expired": "expired",
    "unknown": "cause unknown",
}


class Chosen(NamedTuple):
    """The turn that a command is about: one of daypack's own, or a call of another program."""

    event: str
    call: Call | None  # None: daypack prepared it


def choose(session: Session, name: str | None) -> Chosen:
    """Return the turn with a name, or the newest of all; raise SourceMissing if there is none."""
    if name not in (None, LATEST):
        call = find_call(session.history, name) if _may_be_observed(session, name) else None
        return Chosen(name, call)
    prepared = _newest_prepared(session)
    call = find_call(session.history)
    if call and (prepared is None or call.at > prepared.ts):
        return Chosen(call.event, call)
    return Chosen(session.turns.newest(), None)


def _newest_prepared(session: Session) -> Event | None:
    try:
        seq = int(session.turns.newest().removeprefix("ev-"))
    except SourceMissing:
        return None
    return next(iter(session.history.events.records(seq, seq)), None)


def _may_be_observed(session: Session, name: str) -> bool:
    """Return True unless a name is that of a turn of daypack."""
    number = name.removeprefix("ev-")
    if name.startswith("msg-") or not number.isdecimal() or len(number) > 17:
        return name.startswith("msg-")
    found = next(iter(session.history.events.records(int(number), int(number))), None)
    return found is not None and found.type != "context.turn"


def open_call(session: Session, call: Call) -> ObservedTurn | None:
    """Return the recorded request of a call; None if only its reply is known."""
    return open_observed(session.history, call.event) if call.content == "recorded" else None


def program_name(program: str) -> str:
    """Return the name of a program as people write it."""
    return PROGRAMS.get(program, program)


def headline(call: Call) -> str:
    """Return one line about a call: when, by what, which model."""
    facts = [f"{age(call.at, time.time())} ago" if call.at else "", program_name(call.program), call.model or ""]
    if call.agent:
        facts.append(f"sub-agent {call.agent}")
    if call.reply:
        facts.append(f"reply {call.reply}")
    return safe_line(f"{call.event}: {', '.join(filter(None, facts))}")


def usage(call: Call) -> str:
    """Return what the provider reported about a call."""
    if call.input_tokens is None:
        return "no usage was reported"
    facts = [f"{call.input_tokens:,} tokens in", f"{cached(call)} from the cache"]
    if call.cache_written_tokens:
        facts.append(f"{call.cache_written_tokens:,} written to it")
    if call.output_tokens is not None:
        facts.append(f"{call.output_tokens:,} out")
    return ", ".join(facts)


def cached(call: Call) -> str:
    """Return the tokens that were read from the cache, with their share."""
    if call.cached_tokens is None:
        return NONE
    return f"{call.cached_tokens:,} ({percent(call.cached_tokens, call.input_tokens)})"


def percent(part: int, whole: int | None) -> str:
    """Return a share: 96 %."""
    return f"{100 * part / whole:.0f} %" if whole else "0 %"


def cause_words(found: CacheBreak) -> str:
    """Return the cause of a cache break in a few words: tools changed: +count_lines."""
    cause = found.causes[0]
    if cause == "compaction":
        return found.detail
    return _CAUSES[cause] if cause in ("model", "system", "unknown") else f"{_CAUSES[cause]}: {found.detail}"


def break_words(found: CacheBreak) -> str:
    """Return everything that is known about a cache break."""
    words = cause_words(found)
    if found.causes[0] in ("model", "unknown") and found.detail:
        words += f": {found.detail}"
    others = [_CAUSES[name] for name in found.causes[1:]]
    return f"{words} (also {', '.join(others)})" if others else words


def cache_line(call: Call) -> str:
    """Return what happened to the cache in one line."""
    if call.first:
        return "no earlier call is known"
    if call.cache_break is None:
        return "continued" if call.cached_tokens is not None else "not reported"
    lost = call.cache_break.lost_tokens
    again = f"; {lost:,} tokens were read again" if lost is not None else ""
    return f"break: {break_words(call.cache_break)}{again}"


def unknown_note(call: Call) -> str:
    """Return why nothing is known of what a call contained."""
    program = program_name(call.program)
    return f"what the call contained is unknown: {program} recorded its usage, and no request"


def call_json(call: Call) -> dict[str, Any]:
    """Return a call for programs."""
    return msgspec.to_builtins(call)


def next_commands(session: str, *texts: str) -> str:
    """Return a hint with commands to copy; {} is the session."""
    return "; ".join(text.replace("{}", shell_word(session)) for text in texts)


def short_model(model: str | None) -> str:
    """Return the name of a model without its maker and its date."""
    name, dash, date = (model or NONE).removeprefix("claude-").rpartition("-")
    return name if dash and len(date) == 8 and date.isdecimal() else (model or NONE).removeprefix("claude-")
