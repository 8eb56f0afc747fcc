"""Recreate a recorded turn from the history and verify that every byte is the same."""

import argparse

from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import Progress, colour, counted, json_text, print_note, safe_line
from daypack.cli.turn_summary import add_dialect, event_named, print_turn
from daypack.errors import BadInput, DaypackError, Erased
from daypack.session import Session
from daypack.turn.ledger import TURN


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument(
        "event", nargs="?", help="event of the turn, e.g. ev-12 (default: the newest; see `daypack turns`)"
    )
    parser.add_argument("--all", action="store_true", help="verify every recorded turn")
    add_dialect(parser)


def run(args: argparse.Namespace) -> int:
    """Replay one turn or all; exit code 3 if a turn does not verify."""
    if args.all and (args.event or args.dialect):
        hint = "replay SESSION --all, or replay SESSION EVENT --dialect NAME"
        raise BadInput(
            "--all cannot be combined with an event or --dialect", operation="replay", place="arguments", hint=hint
        )
    with open_named(args) as session:
        if args.all:
            return _replay_all(session, args)
        turn = session.replay(event_named(session, args.event))
        if not args.json and not args.dialect:
            print(f"{colour('verified', 'green')}  {turn.event_id}: {', '.join(map(safe_line, turn.record.sha256))}")
        print_turn(turn, args, verified=turn.record.sha256)
    return 0


def _replay_all(session: Session, args: argparse.Namespace) -> int:
    progress = Progress("turns verified")
    verified, erased, failed = 0, list[str](), list[dict[str, str]]()
    for event in session.events():
        if event.type != TURN:
            continue
        try:
            session.replay(event.id)
            verified += 1
            progress.show(verified)
        except Erased:
            erased.append(event.id)
        except DaypackError as error:
            failed.append({"event": event.id, "problem": error.problem, "place": error.place})
            progress.clear()
            if not args.json:
                print(f"{colour('failed', 'red')}  {safe_line(event.id)}: {safe_line(error.problem)}")
    progress.clear()
    for damage in session.damage:
        print_note(f"damaged: {safe_line(str(damage))}")
    if args.json:
        found = {"verified": verified, "erased": erased, "failed": failed, "damaged": len(session.damage)}
        print(json_text(found))
    else:
        lost = f", {len(erased):,} erased" if erased else ""
        print(f"{counted(verified, 'turn')} verified, {len(failed):,} failed{lost}")
    return EXIT_DAMAGE if failed or session.damage else 0
