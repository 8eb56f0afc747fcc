"""Explain why an item is in a turn or not; without an item, everything the turn knew."""

import argparse
from typing import Any

import msgspec

from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import json_text, print_note, safe, safe_line
from daypack.cli.turn_summary import read_turn
from daypack.errors import SourceMissing
from daypack.session import Session
from daypack.session.chosen import Chosen, choose
from daypack.turn.evidence.explain import Explanation, explain_all, explain_item
from daypack.turn.evidence.overhead import overhead
from daypack.turn.items import Item
from daypack.turn.turn import Turn


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument(
        "item",
        nargs="?",
        help="an item's id or source, messages:12 or msg-12; of a call of another program also a tool, file or hook "
        "(default: everything)",
    )
    parser.add_argument(
        "--event",
        metavar="EV",
        help="event of the turn, see `daypack turns` (default: the newest turn, or a dry run if there is none)",
    )


def run(args: argparse.Namespace) -> int:
    """Explain and print; exit code 3 if the turn does not replay byte for byte."""
    with open_named(args) as session:
        chosen = _choose(session, args.event)
        if chosen and chosen.call:
            from daypack.cli.explain_observed import print_explanation  # noqa: PLC0415 — not for turns of daypack

            return print_explanation(session, chosen.call, args)
        turn, verified = read_turn(session, chosen.event) if chosen else (session.prepare(dry_run=True), True)
        if args.json:
            print(json_text({"event_id": turn.event_id, **_as_json(turn, args.item)}))
        else:
            text = turn.explain(args.item)
            print_note(f"turn {safe_line(turn.event_id)}" if turn.event_id else "dry run: no turn is recorded yet")
            print(safe_line(text) if args.item else safe(text))
    return 0 if verified else EXIT_DAMAGE


def _choose(session: Session, event: str | None) -> Chosen | None:
    """Return the turn to explain; None if no turn is recorded yet."""
    try:
        return choose(session, event)
    except SourceMissing:
        if event:
            raise
        return None


def _as_json(turn: Turn, item: str | None) -> dict[str, Any]:
    if item is not None:
        return msgspec.to_builtins(explain_item(turn, item))
    inserted = {item.id: item for item in turn.inserted}
    found = [_with_ranking(row, inserted.get(row.item)) for row in explain_all(turn) if row.state == "included"]
    return {
        "tokens": turn.tokens,
        "added": msgspec.to_builtins(overhead(turn)),
        "included": found,
        "omitted": [msgspec.to_builtins(omission.recorded()) for omission in turn.omitted],
        "missing": msgspec.to_builtins(turn.missing),
    }


def _with_ranking(row: Explanation, item: Item | None) -> dict[str, Any]:
    fields = {"item": row.item, "part": row.part, "tokens": row.tokens}
    if item is None:  # messages of the tail are not ranked
        return fields
    ranking = {"authority": item.authority, "priority": item.priority, "score": item.score, "redacted": item.redacted}
    return {**fields, **ranking}
