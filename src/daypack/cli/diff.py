"""Say what changed from one recorded turn to another."""

import argparse

import msgspec

from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import json_text, safe_line
from daypack.cli.turn_summary import event_named, read_turn, short
from daypack.turn.evidence.diff import Difference, compare


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument("before", help="the event of the one turn, e.g. ev-12, or latest")
    parser.add_argument("after", help="the event of the other")


def run(args: argparse.Namespace) -> int:
    """Compare and print; exit code 3 when a turn could not be made again byte for byte."""
    with open_named(args) as session:
        names = [event_named(session, args.before), event_named(session, args.after)]
        (one, proved), (other, proved_too) = (read_turn(session, name) for name in names)
        found = compare(one, other)
    if args.json:
        print(json_text({"before": names[0], "after": names[1], **msgspec.to_builtins(found)}))
    else:
        before, after = (f"{name} ({turn.tokens:,} tokens)" for name, turn in zip(names, (one, other), strict=True))
        print(safe_line(f"{before} → {after}"))
        for name, text in _lines(found):
            print(f"{name:<9} {text}")
    return 0 if proved and proved_too else EXIT_DAMAGE


def _lines(found: Difference) -> list[tuple[str, str]]:
    more = found.tokens[1] - found.tokens[0]
    numbers = {"added": found.messages_added, "dropped": found.messages_dropped}
    ids = {"added": found.added, "dropped": found.dropped, "changed": found.changed, "moved": found.moved}
    return [
        ("tokens", f"{more:+,}" if more else "as many"),
        ("epoch", "the same" if found.epoch_kept else "another one"),
        ("prefix", "the same" if found.prefix_kept else "another one"),
        ("tail", "goes on" if found.tail_kept else "begins elsewhere"),
        ("messages", ", ".join(f"{text} {what}" for what, text in numbers.items() if text) or "the same"),
        *((name, short(items)) for name, items in ids.items() if items),
    ]
