"""Printing a turn: as a one-page summary, as JSON, or as the body of a request."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from daypack.cli.options import read_budget, report_damage, work_in_background
from daypack.cli.terminal import json_text, print_note, safe_line, shell_word, table
from daypack.cli.turn_inputs import add_items, check_standard_input, naming_items, read_given, read_tools
from daypack.cli.window_bar import draw, terminal_look, window_of
from daypack.errors import BadInput, Erased
from daypack.session import Session
from daypack.session.chosen import open_turn
from daypack.turn.dialects import NAMES, encode
from daypack.turn.evidence.diff import ranges
from daypack.turn.evidence.words import EPOCHS
from daypack.turn.items import CALLER
from daypack.turn.turn import Turn
from daypack.types.kinds import TARGETS

LATEST = "latest"
_WIDEST_BAR = 100  # columns
_FEW = 3  # members of a family that are listed separately


def add_window(parser: argparse.ArgumentParser) -> None:
    """Add the options that decide what a turn contains and how it is printed."""
    parser.add_argument(
        "--budget",
        metavar="N|JSON",
        help="tokens of the window, e.g. 32000 or 32k, or a JSON object with tokens, bytes, items, ms "
        "(default: context/budget, else that of the last turn)",
    )
    parser.add_argument("--target", choices=TARGETS, default="model", help="reader of the pack (default: %(default)s)")
    parser.add_argument("--model", help="model to be called; determines the tokenizer")
    parser.add_argument(
        "--tools",
        metavar="FILE",
        help="JSON list of the tools that the call passes; they count in the budget; - is standard input",
    )
    add_items(parser)
    parser.add_argument(
        "--window",
        action="append",
        default=[],
        metavar="NAME=N",
        help="a number of the window's policy for this turn, e.g. epoch_share=0.5; may be repeated",
    )
    parser.add_argument(
        "--refresh", action="store_true", help="start a new epoch, so that the prefix includes recent changes"
    )
    add_dialect(parser)


def prepare_turn(session: Session, args: argparse.Namespace, *, dry_run: bool) -> Turn:
    """Prepare the turn that the options ask for, print it and report damaged lines."""
    check_standard_input(args, "tools", "items", "ids")
    budget = read_budget(args.budget, "--budget") if args.budget is not None else None
    if args.refresh:
        session.refresh()
    work_in_background(session, args)
    tools = read_tools(args.tools) if args.tools is not None else None
    given = read_given(args)
    with naming_items(args.items):
        turn = session.prepare(
            budget=budget, model=args.model, target=args.target, tools=tools, dry_run=dry_run, **given
        )
    print_turn(turn, args)
    report_damage(session, set())
    return turn


def read_numbers(texts: Sequence[str]) -> dict[str, str]:
    """Parse the values of --window; the policy checks names and numbers."""
    numbers: dict[str, str] = {}
    for text in texts:
        name, separator, number = text.partition("=")
        if not separator:
            hint = "pass a name and a number such as epoch_share=0.5"
            raise BadInput(f"{text!r} has no number", operation="read options", place="--window", hint=hint)
        numbers[name.strip()] = number.strip()
    return numbers


def add_dialect(parser: argparse.ArgumentParser) -> None:
    """Add --dialect."""
    parser.add_argument(
        "--dialect", choices=NAMES, help="print the body of the request to send, as JSON, instead of the summary"
    )


def event_named(session: Session, name: str | None) -> str:
    """Return the id of a turn's event; `latest`, or no name, is the newest turn for the model."""
    return session.turns.newest() if name in (None, LATEST) else name


def read_turn(session: Session, event: str) -> tuple[Turn, bool]:
    """Return a recorded turn, and False if its bytes differ; print a note if they do, or if a part was erased."""
    turn, problem = open_turn(session, event)
    if problem:
        print_note(f"not verified: {safe_line(problem.problem)}")
    return turn, problem is None or isinstance(problem, Erased)


def print_turn(turn: Turn, args: argparse.Namespace, **more: object) -> None:
    """Print a turn in the format the options ask for; `more` is added to the JSON."""
    if args.dialect:
        print_document(encode(turn.request(args.dialect)) + b"\n")
    elif args.json:
        print(json_text({**as_json(turn), **more}))
    else:
        print("\n".join(summarise(turn)))


def print_document(data: bytes) -> None:
    """Print JSON for another program: byte for byte in a pipe, indented and escaped on a terminal."""
    if sys.stdout.isatty():
        print(msgspec.json.format(json_text(msgspec.json.decode(data)), indent=2))
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def as_json(turn: Turn) -> dict[str, Any]:
    """Return the contents of pack.json, plus the omitted and missing items."""
    return {
        **msgspec.to_builtins(turn.pack),
        "event_id": turn.event_id,
        "tokens": turn.tokens,
        "reserved_tokens": turn.record.limits.reserved_tokens,
        "new_epoch": turn.new_epoch or None,
        "omitted": [msgspec.to_builtins(omission.recorded()) for omission in turn.omitted],
        "missing": msgspec.to_builtins(turn.missing),
        **({"tools": msgspec.to_builtins(turn.record.tools)} if turn.record.tools else {}),
        **({"cache_lost": turn.cache_lost} if turn.cache_lost else {}),
        **({"expected": turn.expected} if turn.expected else {}),
        **({"ids": turn.record.ids} if turn.record.ids else {}),
    }


def summarise(turn: Turn) -> list[str]:
    """Return the lines of the summary: what is in the turn, what was omitted, and why."""
    lines = [_headline(turn), *_picture(turn), "", *(f"{name:<9} {text}" for name, text in _facts(turn)), ""]
    lines += table(("tokens", "kind", "source"), _rows(turn), right=1)
    lines += ["", "omitted", *(_omitted(turn) or ["  nothing"])]
    lines += ["", "missing", *(_missing(turn) or ["  nothing"])]
    return lines


def group(ids: Sequence[str]) -> list[tuple[str, list[int]]]:
    """Return names for items, each with the positions in `ids` it covers: large families share one name."""
    families: dict[str, list[int]] = {}
    for at, item in enumerate(ids):
        families.setdefault(_family(item), []).append(at)
    named: list[tuple[str, list[int]]] = []
    for family, members in families.items():
        if len(members) > _FEW:
            named.append((_family_name(family, [ids[at] for at in members]), members))
        else:
            named += [(ids[at], [at]) for at in members]
    return named


def short(ids: Sequence[str]) -> str:
    """Return the ids of items as one line; large families are summarized: 27 excerpts from messages 12-840."""
    return ", ".join(safe_line(name) for name, _ in group(ids))


def _family(item: str) -> str:
    """Return the family of an item: excerpts, memory entries, tool outputs, items of one imported envelope."""
    kind, _, rest = item.partition(":")
    if kind in ("excerpt", "memory", "tool") and rest:
        return kind
    return f"import:{rest.partition(':')[0]}" if kind == "import" else item


def _family_name(family: str, members: Sequence[str]) -> str:
    if family in ("memory", "tool"):
        return f"{len(members):,} {'memory entries' if family == 'memory' else 'tool outputs'}"
    if family != "excerpt":
        return f"{len(members):,} items of {family}"
    numbers = [int(item.removeprefix("excerpt:")) for item in members]
    return f"{len(members):,} excerpts from messages {min(numbers)}-{max(numbers)}"


def _headline(turn: Turn) -> str:
    parts, limits = turn.parts, turn.record.limits
    room = f"{turn.tokens:,} tokens, no limit"
    if limits.tokens is not None:
        room = f"{turn.tokens:,} of {limits.tokens:,} tokens, {limits.reserved_tokens:,} reserved for the reply"
    reader = "" if turn.target == "model" else f" for {turn.target}"
    return safe_line(f"{parts.agent}/{parts.session}{reader}: {room}")


def _picture(turn: Turn) -> list[str]:
    """Return the window as a bar, with what a prompt cache is expected to hold."""
    if not turn.budget_tokens:  # a window without a limit has no free part
        return [f"expected cache hit: {turn.expected_cached_tokens:,} tokens"]
    look = terminal_look(_WIDEST_BAR)
    return draw(window_of(turn), look, look.width)


def _facts(turn: Turn) -> list[tuple[str, str]]:
    record, parts = turn.record, turn.parts
    start = f"from message {parts.messages[0].seq}" if parts.messages else "no messages"
    if turn.new_epoch:
        epoch = f"new, {start}: {EPOCHS.get(turn.new_epoch, safe_line(turn.new_epoch))}"
    else:
        epoch = f"continues {record.epoch}, {start}"
    facts = [
        ("epoch", epoch),
        ("prefix", f"{record.stable.prefix_tokens:,} tokens, {_prefix_state(turn)}"),
        ("stable", f"{turn.stable_tokens:,} tokens that the next turn can reuse"),
        ("counted", f"by {turn.token_method}"),
    ]
    if turn.cache_lost:
        lost = {"tools_changed": "the tools changed"}.get(turn.cache_lost, safe_line(turn.cache_lost))
        facts.insert(2, ("cache", f"not usable: {lost}"))
    if others := _limits(turn):
        facts.append(("limits", others))
    if redacted := _redacted(turn):
        facts.append(("redacted", redacted))
    unrecorded = f"nothing; `daypack prepare {shell_word(parts.session)}` records the turn"
    facts.append(("recorded", f"as {turn.event_id}, {record.context_id}" if turn.event_id else unrecorded))
    return facts


def _prefix_state(turn: Turn) -> str:
    if not turn.new_epoch or turn.expected_cached_tokens:
        return "unchanged"
    return "new" if turn.new_epoch == "first" else "changed"


def _limits(turn: Turn) -> str:
    limits, used = turn.record.limits, turn.record.used
    texts = [
        f"{used.bytes:,} of {limits.bytes:,} bytes" if limits.bytes is not None else "",
        f"{used.items:,} of {limits.items:,} items" if limits.items is not None else "",
        f"{limits.ms:,} ms for searching" if limits.ms is not None else "",
    ]
    return ", ".join(filter(None, texts))


def _redacted(turn: Turn) -> str:
    found = turn.record.redacted
    if "off" in found:
        return "nothing (redaction is off)"
    items = [item for item in turn.inserted if item.redacted]
    in_messages = {kind for kinds in found.values() for kind in kinds}
    kinds = sorted({kind for item in items for kind in item.redacted} | in_messages)
    numbers = sorted(map(int, found))
    named = [f"messages:{ranges(numbers)}"] if numbers else []
    return f"{', '.join(kinds)} in {short([*named, *(item.id for item in items)])}" if kinds else ""


def _rows(turn: Turn) -> list[tuple[str, str, str]]:
    """Return the rows of the item table; large families share a row."""
    rows: list[tuple[str, str, str]] = []
    for name, members in group([item.item_ref or item.source for item in turn.items]):
        items = [turn.items[at] for at in members]
        source = f"{items[0].source} {items[0].range}" if items[0].range else items[0].source
        if source.startswith(CALLER):
            source = items[0].item_ref or source  # the name that `explain` and the omissions use
        rows.append((f"{sum(item.tokens for item in items):,}", items[0].kind, name if len(items) > 1 else source))
    if around := turn.tokens - sum(item.tokens for item in turn.items):
        rows.append((f"{around:,}", "", "text around the excerpts"))
    return rows


def _omitted(turn: Turn) -> list[str]:
    rows: list[tuple[str, str, str]] = []
    masked = [omission for omission in turn.omitted if omission.swap and omission.item.startswith("tool:")]
    for omission in turn.omitted:
        if omission in masked and len(masked) > _FEW:
            continue
        why = omission.explain(omission.note)
        tokens = f"{omission.tokens:,} tokens" if omission.tokens else ""
        rows.append((omission.item, tokens, f"{why} (may change the reply)" if omission.high_impact else why))
    if len(masked) > _FEW:
        rows.append(
            (f"{len(masked):,} tool outputs", "", "too_large: replaced by one-line stubs; print them with recall")
        )
    return [f"  {line}" for line in table(("", "", ""), rows)[1:]]


def _missing(turn: Turn) -> list[str]:
    rows = [(missing.id, missing.severity, missing.question) for missing in turn.missing]
    return [f"  {line}" for line in table(("", "", ""), rows)[1:]]
