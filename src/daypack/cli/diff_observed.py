"""The difference between two calls of another program on the terminal: messages, tools, system prompt, parameters."""

import argparse
from collections.abc import Iterator, Sequence

from daypack.cli.observed_turns import cache_line, next_commands, unknown_note, usage
from daypack.cli.options import shown
from daypack.cli.terminal import colour, counted, json_text, print_note, safe_line, terminal_width
from daypack.session import Session
from daypack.session.comparison import compare_calls
from daypack.text.columns import fit
from daypack.turn.evidence.diff import ranges
from daypack.turn.evidence.observed.calls import Call
from daypack.turn.evidence.observed.diff import MessageChange, ObservedDifference
from daypack.types.history import Message

_PIPE_COLUMNS = 120
_MOST_LINES = 20  # of messages, and of the system prompt
_MOST_CHARS = 40  # of the value of a parameter
_ORIGIN = 24  # columns


def print_difference(session: Session, before: Call, after: Call, args: argparse.Namespace) -> int:
    """Print what changed from one call to the next; where only replies are known, the messages between them."""
    compared = compare_calls(session, before, after)
    if args.json:
        print(json_text(compared.as_json()))
        return 0
    width = terminal_width(_PIPE_COLUMNS)
    print(safe_line(f"{before.event} → {after.event}"))
    for name, text in _facts(before, after):
        print(fit(f"{name:<10} {text}", width))
    if compared.difference:
        for line in _lines(compared.difference, width):
            print(line)
    else:
        for line in _between_lines(session, compared.between, width):
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


def _between_lines(session: Session, messages: Sequence[Message], width: int) -> Iterator[str]:
    yield f"{'messages':<10} {counted(len(messages), 'message')} of history since the earlier call"
    rows: list[str] = []
    for message in messages:
        calls = " ".join(f"[{call.name}]" for call in message.tool_calls)
        text = " ".join(f"{shown(session, message.text)} {calls}".split())
        rows.append(colour(fit(f"  + {f'messages:{message.seq}':<14}  {message.role:<9}  {text}", width), "green"))
    yield from _cut(rows, "messages")
