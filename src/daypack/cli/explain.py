"""Say why an item is in a turn or not; without an item, say it of everything the turn knew."""

import argparse
from typing import Any

import msgspec

from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import json_text, safe, safe_line, say
from daypack.cli.turn_summary import event_named, read_turn
from daypack.errors import SourceMissing
from daypack.session import Session
from daypack.turn.items import Item
from daypack.turn.turn import Turn


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument("item", nargs="?", help="an item's id or source, messages:12 or msg-12 (default: everything)")
    parser.add_argument(
        "--event", metavar="EV", help="the turn's event (default: the newest turn; a dry run when there is none)"
    )


def run(args: argparse.Namespace) -> int:
    """Explain; exit code 3 when the turn could not be made again byte for byte."""
    with open_named(args) as session:
        turn, proved = _turn(session, args.event)
        if args.json:
            print(json_text({"event_id": turn.event_id, **_as_json(turn, args.item)}))
        else:
            text = turn.explain(args.item)
            say(
                f"of {safe_line(turn.event_id)}:" if turn.event_id else "of a dry run, because no turn is recorded yet:"
            )
            print(safe_line(text) if args.item else safe(text))
    return 0 if proved else EXIT_DAMAGE


def _turn(session: Session, event: str | None) -> tuple[Turn, bool]:
    if event:
        return read_turn(session, event_named(session, event))
    try:
        newest = session.turns.newest()
    except SourceMissing:
        return session.prepare(dry_run=True), True
    return read_turn(session, newest)


def _as_json(turn: Turn, item: str | None) -> dict[str, Any]:
    if item is not None:
        state, text = turn.explain(item).split(maxsplit=1)
        return {"item": item, "state": state, "text": text}
    known = {one.id: (one, "prefix") for one in turn.parts.epoch.prefix}
    known |= {one.id: (one, "after") for one in turn.parts.volatile}
    shown: list[dict[str, Any]] = []
    for one in turn.items:
        name = one.item_ref or one.source
        tail = {"item": name, "part": "tail", "tokens": one.tokens}
        shown.append(_shown(*known[name]) if name in known else tail)
    return {
        "tokens": turn.tokens,
        "in": shown,
        "out": msgspec.to_builtins(turn.omitted),
        "gone": msgspec.to_builtins(turn.missing),
    }


def _shown(item: Item, part: str) -> dict[str, Any]:
    return {
        "item": item.id,
        "part": part,
        "tokens": item.tokens,
        "authority": item.authority,
        "priority": item.priority,
        "score": item.score,
        "redacted": item.redacted,
    }
