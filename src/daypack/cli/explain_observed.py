"""The explanation of a call of another program on the terminal: what it contained, by source."""

import argparse
from collections.abc import Sequence

from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.observed_turns import (
    NONE,
    cache_line,
    call_json,
    headline,
    next_commands,
    percent,
    unknown_note,
    usage,
)
from daypack.cli.options import shown
from daypack.cli.terminal import colour, counted, is_utf8, json_text, print_note, safe_line, table, terminal_width
from daypack.errors import Erased, NotFound, ReplayMismatch, SourceMissing
from daypack.session import Session
from daypack.session.chosen import open_call
from daypack.text.columns import fit
from daypack.turn.evidence.diff import ranges
from daypack.turn.evidence.observed.calls import Call
from daypack.turn.evidence.observed.explain import ObservedExplanation, explain_observed, parts_named, why_missing
from daypack.turn.evidence.observed.request import ObservedTurn
from daypack.turn.evidence.observed.sources import SentPart, SourceTotal

_PIPE_COLUMNS = 100
_BAR = 16  # cells of a bar
_NAMES = 6  # in one line
_MOST_CHARS = 40  # of the numbers of messages


def print_explanation(session: Session, call: Call, args: argparse.Namespace) -> int:
    """Print what a call contained; exit code 3 if its content changed since it was recorded."""
    turn = open_call(session, call)
    if turn is None:
        return _print_unknown(call, args)
    found = shown(session, explain_observed(session.history, call, turn))
    try:
        parts = parts_named(found, args.item) if args.item else ()
    except NotFound:
        why = why_missing(session.history, call, args.item)
        if not why:
            raise
        return _print_missing(call, args, why)
    if args.json:
        print(json_text({"event_id": call.event, **({"parts": parts} if args.item else _as_json(found))}))
    elif args.item:
        print("\n".join(_part_lines(found, parts)))
    else:
        print("\n".join(_lines(found)))
        hints = (
            f"`daypack diff {{}} {call.previous} {call.event}` shows what changed",
            "`daypack turns {}` lists all calls",
        )
        print_note(next_commands(args.session, *(hints if call.previous else hints[1:])))
    return 0 if _is_intact(turn) else EXIT_DAMAGE


def _print_missing(call: Call, args: argparse.Namespace, why: str) -> int:
    facts = {"event_id": call.event, "state": "omitted", "item": args.item, "why": why}
    print(json_text(facts) if args.json else f"omitted: {safe_line(why)}")
    return 0


def _is_intact(turn: ObservedTurn) -> bool:
    """Return False if what was rebuilt differs from what was recorded; print a note if it cannot be verified."""
    try:
        turn.verify()
    except (Erased, SourceMissing, ReplayMismatch) as error:
        print_note(f"not verified: {safe_line(error.problem)}")
        return not isinstance(error, ReplayMismatch)
    return True


def _print_unknown(call: Call, args: argparse.Namespace) -> int:
    if args.json:
        print(json_text({"event_id": call.event, "call": call_json(call), "sources": None, "parts": None}))
        return 0
    print("\n".join((headline(call), usage(call), f"cache: {cache_line(call)}")))
    print_note(unknown_note(call))
    print_note(next_commands(args.session, "`daypack diff {}` lists the messages since the call before"))
    return 0


def _as_json(found: ObservedExplanation) -> dict[str, object]:
    return {
        "call": call_json(found.call),
        "counted_by": found.counted_by,
        "tokens": found.tokens,
        "sources": found.sources,
        "parts": found.parts,
    }


def _lines(found: ObservedExplanation) -> list[str]:
    call = found.call
    lines = [
        headline(call),
        f"{usage(call)}; {counted(call.messages or 0, 'message')}",
        f"cache: {cache_line(call)}",
        "",
    ]
    rows = [
        (_amount(found, total.tokens), *_share(found, total), total.source, _what(total)) for total in found.sources
    ]
    width = terminal_width(_PIPE_COLUMNS)
    lines += [fit(line, width) for line in table(("tokens", "", "share", "source", "what"), rows, right=1)]
    method = "shares of the reported tokens" if call.input_tokens is not None else "not reported"
    return [*lines, "", colour(f"tokens by source are estimates ({safe_line(found.counted_by)}), {method}", "dim")]


def _amount(found: ObservedExplanation, tokens: int | None) -> str:
    scaled = found.scaled(tokens)
    return "unknown" if scaled is None else f"{scaled:,}"


def _share(found: ObservedExplanation, total: SourceTotal) -> tuple[str, str]:
    if not found.tokens or total.tokens is None:
        return "", ""
    cells = round(_BAR * total.tokens / found.tokens)
    return ("█" if _blocks() else "#") * cells, percent(total.tokens, found.tokens).rjust(5)


def _blocks() -> bool:
    import sys  # noqa: PLC0415 — only here

    return is_utf8(sys.stdout)


def _what(total: SourceTotal) -> str:
    facts: list[str] = []
    if total.names:
        more = len(total.names) - _NAMES
        facts.append(", ".join(total.names[:_NAMES]) + (f" and {more:,} more" if more > 0 else ""))
    if total.refs:
        facts.append(_messages(total.refs))
    if not facts and total.source in ("system", "tools") and total.parts > 1:
        facts.append(counted(total.parts, "block"))
    return " · ".join(facts)


def _messages(refs: Sequence[int]) -> str:
    listed = ranges(list(refs)) or ""
    if len(refs) == 1:
        return f"messages:{listed}"
    return (
        f"messages {listed}" if len(listed) <= _MOST_CHARS else f"{len(refs):,} messages from {refs[0]} to {refs[-1]}"
    )


def _part_lines(found: ObservedExplanation, parts: Sequence[SentPart]) -> list[str]:
    rows = [
        (
            _amount(found, part.tokens),
            f"message {part.message}" if part.message else NONE,
            part.source,
            part.ref or part.name or NONE,
            part.preview,
        )
        for part in parts
    ]
    width = terminal_width(_PIPE_COLUMNS)
    count = counted(len(parts), "part")
    head = f"included: {count} of {found.call.event}, {_sum(found, parts)}"
    return [head, *(fit(line, width) for line in table(("tokens", "place", "source", "from", "text"), rows, right=1))]


def _sum(found: ObservedExplanation, parts: Sequence[SentPart]) -> str:
    known = [found.scaled(part.tokens) for part in parts]
    return f"{sum(tokens or 0 for tokens in known):,} tokens" if None not in known else "tokens unknown"
