"""List the recorded turns of a session, the newest last: their ids, tokens, epochs and cache hits."""

import argparse
import time
from itertools import islice

from daypack.cli.event_words import EPOCH_REASONS
from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.options import add_place, natural, open_named, report_damage, shown
from daypack.cli.terminal import json_text, print_note, shell_word, table
from daypack.text.columns import AGE_COLUMNS, age
from daypack.turn.evidence.turn_list import ListedTurn, newest_turns

_NONE = "–"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument(
        "-n", type=natural, default=20, metavar="COUNT", help="number to show, 0 for all (default: %(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Print one line per turn; exit code 3 if the log of events is damaged."""
    with open_named(args) as session:
        listed = newest_turns(session.history)
        turns = list(islice(listed, args.n or None))[::-1]
        earlier = next(listed, None) is not None
        if args.json:
            print(json_text([shown(session, turn) for turn in turns]))
        elif not turns:
            print_note(f"no turn is recorded yet; `daypack prepare {shell_word(session.name)}` records one")
        else:
            print("\n".join(_lines(turns)))
            _print_hints(session.name, turns, earlier=earlier)
        report_damage(session, set())
        return EXIT_DAMAGE if session.damage else 0


def _lines(turns: list[ListedTurn]) -> list[str]:
    head = ["turn", "age", "tokens", "budget", "expected cache", "reported cache", "epoch"]
    with_target = any(turn.target != "model" for turn in turns)
    if with_target:
        head.insert(-1, "for")
    now, rows = time.time(), list[list[str]]()
    for turn in turns:
        row = [turn.event, age(turn.at, now).rjust(AGE_COLUMNS), f"{turn.tokens:,}", _number(turn.budget_tokens)]
        row += [f"{turn.expected_cached_tokens:,}", _reported(turn)]
        row += [turn.target] if with_target else []
        rows.append([*row, _epoch(turn)])
    return table(head, rows, right=6)


def _number(value: int | None) -> str:
    return _NONE if value is None else f"{value:,}"


def _reported(turn: ListedTurn) -> str:
    """Return the cache hit that the provider reported, out of the input that it counted."""
    if turn.input_tokens is None:
        return _NONE
    return f"{_number(turn.cached_tokens)} of {turn.input_tokens:,}"


def _epoch(turn: ListedTurn) -> str:
    erased = f"; erased in part by {turn.erased}" if turn.erased else ""
    if turn.new_epoch is None:
        return f"continues {turn.epoch}{erased}"
    return f"new: {EPOCH_REASONS.get(turn.new_epoch, turn.new_epoch)}{erased}"


def _print_hints(session: str, turns: list[ListedTurn], *, earlier: bool) -> None:
    name = shell_word(session)
    if earlier:
        print_note("earlier turns are not shown; -n 0 shows all")
    whole = [turn.event for turn in turns if not turn.erased]
    if len(whole) < len(turns):
        print_note("turns that showed what was erased no longer verify: `replay` and `export` refuse them")
    if not whole:
        print_note(f"`daypack prepare {name}` records the next turn")
        return
    hint = f"`daypack explain {name} --event {whole[-1]}` lists what is in it"
    if len(turns) > 1 and not any(turn.erased for turn in turns[-2:]):
        hint += f"; `daypack diff {name}` compares the newest two"
    print_note(hint)
