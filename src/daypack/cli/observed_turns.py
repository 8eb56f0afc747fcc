"""Calls of other programs on the terminal: in words."""

import time
from typing import Any

import msgspec

from daypack.cli.terminal import safe_line, shell_word
from daypack.text.columns import age
from daypack.turn.evidence.observed.calls import Call
from daypack.turn.evidence.words import break_words, program_name

NONE = "–"


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
