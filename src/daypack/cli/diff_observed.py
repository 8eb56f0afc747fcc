"""The difference between two calls of another program on the terminal: messages, tools, system prompt, parameters."""

import argparse
from collections.abc import Iterator, Sequence

import msgspec

from daypack.cli.observed_turns import cache_line, call_json, next_commands, unknown_note, usage
from daypack.cli.options import shown
from daypack.cli.terminal import colour, counted, json_text, print_note, safe_line, terminal_width
from daypack.session import Session
from daypack.session.chosen import open_call
from daypack.text.columns import fit
from daypack.turn.evidence.diff import ranges
from daypack.turn.evidence.observed.calls import Call
from daypack.turn.evidence.observed.diff import MessageChange, ObservedDifference, compare_observed
from daypack.turn.evidence.observed.links import Links
from daypack.types.history import Message

_PIPE_COLUMNS = 120
_MOST_LINES = 20  # of messages, and of the system prompt
_MOST_CHARS = 40  # of the value of a parameter
_ORIGIN = 24  # columns


def print_difference(session: Session, before: Call, after: Call, args: argparse.Namespace) -> int:
    """Print what changed from one call to the next; where only replies are known, the messages between them."""
    old, new = open_call(session, before), open_call(session, after)
    found = shown(session, compare_observed(old, new, Links(session.history))) if old and new else None
    between = [] if found else _between(session, before, after)
    calls = {"before": call_json(before), "after": call_json(after)}
    if args.json:
        facts = msgspec.to_builtins(found) if found else None
        added = [{"message": f"messages:{message.seq}", "role": message.role} for message in between]
        print(json_text({**calls, "difference": facts, "messages_between": added if not found else None}))
        return 0
    width = terminal_width(_PIPE_COLUMNS)
    print(safe_line(f"{before.event} → {after.event}"))
    for name, text in _facts(before, after):
        print(fit(f"{name:<10} {text}", width))
    if found:
        for line in _lines(found, width):
            print(line)
    else:
        for line in _between_lines(session, between, width):
            print(line)
        print_note(unknown_note(after if after.content == "unknown" else before))
    if after.content != "unknown":
        hint = f"`daypack explain {{}} --event {after.event}` lists what is in the later call"
        print_note(next_commands(args.session, hint))
    return 0


def _facts(before: Call, after: Call) -> Iterator[tuple[str, str]]:
    if before.input_tokens is not None and after.input_tokens is not None:
        more = after.input_tokens - before.input_tokens
        yield "tokens", f"{before.input_tokens:,} → {after.input_tokens:,} ({more:+,})"
    yield "reported", usage(after)
    if after.previous == before.event:
        yield "cache", cache_line(after)
    if before.model != after.model:
        yield "model", f"{before.model} → {after.model}"


def _lines(found: ObservedDifference, width: int) -> Iterator[str]:
    tools = [*(f"+{name}" for name in found.tools_added), *(f"−{name}" for name in found.tools_removed)]
    tools += [f"changed {name}" for name in found.tools_changed]
    tools = tools or (["in another order"] if found.tools_reordered else [])
    yield fit(f"{'tools':<10} {_or_unchanged(', '.join(tools), known=found.shape_known)}", width)
    changed = f"{counted(len(found.system), 'line')} of difference" if found.system else ""
    yield fit(f"{'system':<10} {_or_unchanged(changed, known=found.shape_known)}", width)
    yield from (_diff_line(line, width) for line in _cut(found.system, "lines"))
    for change in found.parameters:
        if change.name not in ("model", "betas"):
            yield fit(f"{'parameter':<10} {change.name}: {_value(change.before)} → {_value(change.after)}", width)
    yield fit(f"{'messages':<10} {_summary(found)}", width)
    yield from _cut([_change(change, width) for change in found.changes], "messages")


def _or_unchanged(text: str, *, known: bool) -> str:
    return text or ("unchanged" if known else "unknown")


def _summary(found: ObservedDifference) -> str:
    added = sum(change.change == "added" for change in found.changes)
    removed = len(found.changes) - added
    later = found.common - found.kept
    facts = [f"{found.kept:,} kept"] + ([f"{later:,} kept after a change"] if later else [])
    facts += [f"{removed:,} removed"] if removed else []
    facts += [f"{added:,} added"] if added else []
    return ", ".join(facts)


def _change(change: MessageChange, width: int) -> str:
    sign = "+" if change.change == "added" else "−"
    said = [part for part in change.parts if part.ref] or change.parts  # what a person or the model said, if anything
    text = "; ".join(part.preview or f"[{part.source}]" for part in said) or "empty"
    refs = ranges(sorted({int(part.ref.removeprefix("messages:")) for part in change.parts if part.ref}))
    others = dict.fromkeys(part.source for part in change.parts if not part.ref)
    origin = ", ".join((*((f"messages:{refs}",) if refs else ()), *others))
    text = text if change.known else "content unknown"
    line = fit(f"  {sign} {change.position:>4}  {change.role:<9}  {origin:<{_ORIGIN}}  {text}", width)
    return colour(line, "green" if sign == "+" else "red")


def _diff_line(line: str, width: int) -> str:
    name = "green" if line.startswith("+") else "red" if line.startswith("-") else "dim"
    return colour(fit(f"  {line}", width), name)


def _cut(lines: Sequence[str], what: str) -> Iterator[str]:
    yield from lines[:_MOST_LINES]
    if len(lines) > _MOST_LINES:
        yield f"  … {len(lines) - _MOST_LINES:,} more {what}; --json has all"


def _value(value: object) -> str:
    text = "none" if value is None else json_text(value)
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"


# Calls of which only the replies are known


def _between(session: Session, before: Call, after: Call) -> list[Message]:
    """Return the messages of history from the reply to one call up to the reply to another, which is left out."""
    first, last = (_number(call.reply) for call in (before, after))
    if not first or not last:
        return [message for message in session.messages() if before.at < message.ts <= after.at]
    return list(session.messages(first, last - 1)) if first < last else []


def _number(reply: str | None) -> int:
    number = (reply or "").removeprefix("msg-")
    return int(number) if number.isdecimal() else 0


def _between_lines(session: Session, messages: Sequence[Message], width: int) -> Iterator[str]:
    yield f"{'messages':<10} {counted(len(messages), 'message')} of history since the earlier call"
    rows: list[str] = []
    for message in messages:
        calls = " ".join(f"[{call.name}]" for call in message.tool_calls)
        text = " ".join(f"{shown(session, message.text)} {calls}".split())
        rows.append(colour(fit(f"  + {f'messages:{message.seq}':<14}  {message.role:<9}  {text}", width), "green"))
    yield from _cut(rows, "messages")
