"""A turn on the terminal: found by its event, told in a page, or printed as the body of a request."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from daypack.cli.terminal import colour, json_text, safe_line, say
from daypack.errors import ReplayMismatch
from daypack.session import Session
from daypack.turn.dialects import NAMES, encode
from daypack.turn.evidence.diff import ranges
from daypack.turn.turn import Turn

LATEST = "latest"
_FEW = 3  # of a family that are listed one by one
_EPOCHS = {
    "first": "it is the first turn",
    "refresh": "a refresh was asked for",
    "overflow": "the window was full",
    "compaction": "a compaction was made or taken back",
    "budget_changed": "the budget is another one",
    "tokenizer_changed": "tokens are counted in another way",
    "redaction_changed": "secrets are treated in another way",
    "renderer_changed": "another version of daypack renders it",
    "withdrawn": "something in its prefix may not be shown any more",
    "damaged": "its record, or a message of its tail, is damaged",
}


def add_dialect(parser: argparse.ArgumentParser) -> None:
    """Add the option that asks for the body of a request."""
    parser.add_argument(
        "--dialect", choices=NAMES, help="print the body of the request to send, as JSON, instead of the summary"
    )


def event_named(session: Session, name: str) -> str:
    """Return the id of a turn's event; `latest` is the newest turn for the model."""
    return session.turns.newest() if name == LATEST else name


def read_turn(session: Session, event: str) -> tuple[Turn, bool]:
    """Return a recorded turn and whether it is proved; one that no longer gives the same bytes is told and shown."""
    try:
        return session.replay(event), True
    except ReplayMismatch as error:
        say(f"not verified: {safe_line(error.problem)}")
        return session.turns.replay(event, verify_digests=False), False


def print_turn(turn: Turn, args: argparse.Namespace, **more: object) -> None:
    """Print a turn as the options want it; `more` goes into the JSON."""
    if args.dialect:
        print_document(encode(turn.request(args.dialect)) + b"\n")
    elif args.json:
        print(json_text({**as_json(turn), **more}))
    else:
        print("\n".join(summarise(turn)))


def print_document(data: bytes) -> None:
    """Print JSON for another program: byte for byte, but escaped where a terminal would act on it."""
    if sys.stdout.isatty():
        print(msgspec.json.format(json_text(msgspec.json.decode(data)), indent=2))
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def as_json(turn: Turn) -> dict[str, Any]:
    """Return what pack.json holds, and what happened on the way."""
    return {
        **msgspec.to_builtins(turn.pack),
        "event_id": turn.event_id,
        "tokens": turn.tokens,
        "reserved_tokens": turn.record.limits.reserved_tokens,
        "new_epoch": turn.new_epoch or None,
        "omitted": msgspec.to_builtins(turn.omitted),
        "missing": msgspec.to_builtins(turn.missing),
        **({"expected": turn.expected} if turn.expected else {}),
    }


def summarise(turn: Turn) -> list[str]:
    """Return the lines that tell a person what is in a turn, what is not, and why."""
    lines = [_headline(turn), *(f"{name:<9} {text}" for name, text in _facts(turn)), ""]
    lines += table(("tokens", "kind", "source"), _rows(turn), right=1)
    lines += ["", "left out", *(_left(turn) or ["  nothing"])]
    lines += ["", "missing", *(_missing(turn) or ["  nothing"])]
    return lines


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: int = 0) -> list[str]:
    """Return lines with columns of equal width, the first `right` of them to the right."""
    cells = [[safe_line(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(head))]
    lines = [
        "  ".join(cell.rjust(width) if at < right else cell.ljust(width) for at, (cell, width) in enumerate(zipped))
        for zipped in (list(zip(row, widths, strict=True)) for row in cells)
    ]
    return [colour(lines[0].rstrip(), "dim"), *(line.rstrip() for line in lines[1:])]


def group(ids: Sequence[str]) -> list[tuple[str, list[int]]]:
    """Return what to call items, and which of `ids` each name stands for: many of one family have one name."""
    families: dict[str, list[int]] = {}
    for at, one in enumerate(ids):
        families.setdefault(_family(one), []).append(at)
    named: list[tuple[str, list[int]]] = []
    for family, members in families.items():
        if len(members) > _FEW:
            named.append((_family_name(family, [ids[at] for at in members]), members))
        else:
            named += [(ids[at], [at]) for at in members]
    return named


def short(ids: Sequence[str]) -> str:
    """Name items by their ids, many of one family as one: 27 excerpts from messages 12-840."""
    return ", ".join(safe_line(name) for name, _ in group(ids))


def _family(item: str) -> str:
    """Return what items can be many of: excerpts, entries of memory, items of one imported envelope."""
    kind, _, rest = item.partition(":")
    if kind in ("excerpt", "memory", "tool") and rest:
        return kind
    return f"import:{rest.partition(':')[0]}" if kind == "import" else item


def _family_name(family: str, members: Sequence[str]) -> str:
    if family in ("memory", "tool"):
        return f"{len(members):,} {'entries of memory' if family == 'memory' else 'tool outputs'}"
    if family != "excerpt":
        return f"{len(members):,} items of {family}"
    numbers = [int(one.removeprefix("excerpt:")) for one in members]
    return f"{len(members):,} excerpts from messages {min(numbers)}-{max(numbers)}"


def _headline(turn: Turn) -> str:
    parts, limits = turn.parts, turn.record.limits
    room = f"{turn.tokens:,} tokens, no limit"
    if limits.tokens is not None:
        room = f"{turn.tokens:,} of {limits.tokens:,} tokens, {limits.reserved_tokens:,} are kept for the answer"
    return safe_line(f"{parts.agent}/{parts.session} for {turn.target}: {room}")


def _facts(turn: Turn) -> list[tuple[str, str]]:
    record, parts = turn.record, turn.parts
    start = f"with message {parts.messages[0].seq}" if parts.messages else "without messages"
    if turn.new_epoch:
        epoch = f"begins {start}: {_EPOCHS.get(turn.new_epoch, safe_line(turn.new_epoch))}"
    else:
        epoch = f"goes on since {record.epoch}, {start}"
    cached = f"{turn.expected_cached_tokens:,} tokens are" if turn.expected_cached_tokens else "nothing is"
    facts = [
        ("epoch", epoch),
        ("prefix", f"{record.stable.prefix_tokens:,} tokens, {_kept(turn)}"),
        ("cache", f"{cached} expected from the provider's cache"),
        ("stable", f"{turn.stable_tokens:,} tokens, what the next turn can begin with"),
        ("counted", f"by {turn.token_method}"),
    ]
    if others := _limits(turn):
        facts.append(("limits", others))
    if redacted := _redacted(turn):
        facts.append(("redacted", redacted))
    recorded = f"as {turn.event_id}, {record.context_id}"
    facts.append(("recorded", recorded if turn.event_id else "nothing: a dry run tells what would fit"))
    return facts


def _kept(turn: Turn) -> str:
    if not turn.new_epoch or turn.expected_cached_tokens:
        return "the same as in the turn before"
    return "the first one" if turn.new_epoch == "first" else "not the one of the turn before"


def _limits(turn: Turn) -> str:
    limits, used = turn.record.limits, turn.record.used
    told = [
        f"{used.bytes:,} of {limits.bytes:,} bytes" if limits.bytes is not None else "",
        f"{used.items:,} of {limits.items:,} items" if limits.items is not None else "",
        f"{limits.ms:,} ms to look for more" if limits.ms is not None else "",
    ]
    return ", ".join(filter(None, told))


def _redacted(turn: Turn) -> str:
    found = turn.record.redacted
    if "off" in found:
        return "nothing: redaction is off"
    items = [one for one in (*turn.parts.epoch.prefix, *turn.parts.volatile) if one.redacted]
    kinds = sorted({kind for one in items for kind in one.redacted} | {kind for one in found.values() for kind in one})
    numbers = sorted(map(int, found))
    named = [f"messages:{ranges(numbers)}"] if numbers else []
    return f"{', '.join(kinds)} in {short([*named, *(one.id for one in items)])}" if kinds else ""


def _rows(turn: Turn) -> list[tuple[str, str, str]]:
    """Return the items of a pack; many of a family are one, and the words around excerpts are counted too."""
    rows: list[tuple[str, str, str]] = []
    for name, members in group([item.item_ref or item.source for item in turn.items]):
        items = [turn.items[at] for at in members]
        source = f"{items[0].source} {items[0].range}" if items[0].range else items[0].source
        rows.append((f"{sum(item.tokens for item in items):,}", items[0].kind, name if len(items) > 1 else source))
    if around := turn.tokens - sum(item.tokens for item in turn.items):
        rows.append((f"{around:,}", "", "words around the excerpts"))
    return rows


def _left(turn: Turn) -> list[str]:
    rows: list[tuple[str, str, str]] = []
    masked = [one for one in turn.omitted if one.swap and one.item.startswith("tool:")]
    for one in turn.omitted:
        if one in masked and len(masked) > _FEW:
            continue
        why = f"{one.reason}: {one.note}" if one.note else one.reason
        tokens = f"{one.tokens:,} tokens" if one.tokens else ""
        rows.append((one.item, tokens, f"{why} (may change the answer)" if one.high_impact else why))
    if len(masked) > _FEW:
        rows.append((f"{len(masked):,} tool outputs", "", "too_large: one line stands for each; recall gives it back"))
    return [f"  {line}" for line in table(("", "", ""), rows)[1:]]


def _missing(turn: Turn) -> list[str]:
    rows = [(one.id, one.severity, one.question) for one in turn.missing]
    return [f"  {line}" for line in table(("", "", ""), rows)[1:]]
