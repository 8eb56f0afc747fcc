"""Show what changed from one recorded turn to another; without events, from the last but one to the newest."""

import argparse
from itertools import islice

from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import json_text, safe_line, shell_word
from daypack.cli.turn_summary import read_turn, short
from daypack.errors import SourceMissing
from daypack.session import Session
from daypack.session.chosen import Chosen, choose
from daypack.session.comparison import compare_turns, require_one_kind
from daypack.turn.evidence.diff import Difference
from daypack.turn.evidence.observed.calls import find_call
from daypack.turn.evidence.turn_list import newest_turns


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument(
        "before", nargs="?", help="event of the earlier turn, e.g. ev-12 (default: the one before the newest)"
    )
    parser.add_argument("after", nargs="?", help="event of the later turn (default: the newest; see `daypack turns`)")


def run(args: argparse.Namespace) -> int:
    """Compare and print; exit code 3 if a turn does not replay byte for byte."""
    with open_named(args) as session:
        after = choose(session, args.after)
        before = choose(session, args.before) if args.before else _last_but_one(session, after)
        require_one_kind(before, after)
        if before.call and after.call:
            from daypack.cli.diff_observed import print_difference  # noqa: PLC0415 — not for turns of daypack

            return print_difference(session, before.call, after.call, args)
        (old, old_verified), (new, new_verified) = (read_turn(session, chosen.event) for chosen in (before, after))
    compared = compare_turns(old, new)
    if args.json:
        print(json_text(compared.as_json()))
    else:
        texts = (f"{turn.event_id} ({turn.tokens:,} tokens)" for turn in (old, new))
        print(safe_line(" → ".join(texts)))
        for name, text in _lines(compared.difference):
            print(f"{name:<9} {text}")
    return 0 if old_verified and new_verified else EXIT_DAMAGE


def _last_but_one(session: Session, after: Chosen) -> Chosen:
    """Return the turn of the same kind before the one that is given."""
    if after.call:
        before = find_call(session.history, after.call.previous) if after.call.previous else None
        if before:
            return Chosen(before.event, before)
        raise _only_one(session, f"no call before {after.event} is known")
    turns = list(islice(newest_turns(session.history, "model"), 2))
    if len(turns) < 2:
        raise _only_one(session, f"only one turn for model is recorded: {after.event}")
    return Chosen(turns[1].event, None)


def _only_one(session: Session, problem: str) -> SourceMissing:
    hint = f"`daypack prepare {shell_word(session.name)}` records the next one"
    return SourceMissing(problem, operation="diff", place=session.history.layout.folder, hint=hint)


def _lines(found: Difference) -> list[tuple[str, str]]:
    more = found.tokens[1] - found.tokens[0]
    numbers = {"added": found.messages_added, "dropped": found.messages_dropped}
    ids = {"added": found.added, "dropped": found.dropped, "changed": found.changed, "moved": found.moved}
    return [
        ("tokens", f"{more:+,}" if more else "unchanged"),
        ("epoch", "unchanged" if found.epoch_kept else "new"),
        ("prefix", "unchanged" if found.prefix_kept else "changed"),
        ("tail", "continued" if found.tail_kept else "changed"),
        ("messages", ", ".join(f"{text} {what}" for what, text in numbers.items() if text) or "unchanged"),
        *((name, short(items)) for name, items in ids.items() if items),
    ]
