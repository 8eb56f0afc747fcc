"""Recreate a recorded turn from the history and verify that every byte is the same."""

import argparse

from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import Progress, colour, counted, json_text, print_note, safe_line
from daypack.cli.turn_summary import add_dialect, print_turn
from daypack.errors import BadInput, DaypackError, Erased, SourceMissing
from daypack.session import Session
from daypack.session.chosen import choose
from daypack.turn.evidence.observed.request import RequestReader
from daypack.turn.ledger import OBSERVED, TURN
from daypack.types.history import Event


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
        chosen = choose(session, args.event)
        if chosen.call:
            from daypack.cli.replay_observed import print_replay  # noqa: PLC0415 — not for turns of daypack

            return print_replay(session, chosen.call, args)
        turn = session.replay(chosen.event)
        if not args.json and not args.dialect:
            print(f"{colour('verified', 'green')}  {turn.event_id}: {', '.join(map(safe_line, turn.record.sha256))}")
        print_turn(turn, args, verified=turn.record.sha256)
    return 0


def _replay_all(session: Session, args: argparse.Namespace) -> int:
    progress, observed = Progress("turns verified"), RequestReader(session.history)
    verified, erased, unknown, failed = 0, list[str](), list[str](), list[dict[str, str]]()
    for event in session.events():
        if event.type not in (TURN, OBSERVED):
            continue
        try:
            _verify(session, observed, event)
            verified += 1
            progress.show(verified)
        except Erased:
            erased.append(event.id)
        except _Unknown:
            unknown.append(event.id)
        except DaypackError as error:
            failed.append({"event": event.id, "problem": error.problem, "place": error.place})
            progress.clear()
            if not args.json:
                print(f"{colour('failed', 'red')}  {safe_line(event.id)}: {safe_line(error.problem)}")
    progress.clear()
    for damage in session.damage:
        print_note(f"damaged: {safe_line(str(damage))}")
    if args.json:
        found = {"verified": verified, "erased": erased, "unknown": unknown, "failed": failed}
        print(json_text({**found, "damaged": len(session.damage)}))
    else:
        lost = f", {len(erased):,} erased" if erased else ""
        lost += f", {len(unknown):,} not recorded whole" if unknown else ""
        print(f"{counted(verified, 'turn')} verified, {len(failed):,} failed{lost}")
    return EXIT_DAMAGE if failed or session.damage else 0


class _Unknown(Exception):
    """A call of another program whose content is not known: nothing can be verified, and nothing is damaged."""


def _verify(session: Session, observed: RequestReader, event: Event) -> None:
    if event.type == TURN:
        session.replay(event.id)
        return
    turn = observed.open(event.id)
    try:
        turn.verify()
    except SourceMissing as error:
        raise _Unknown from error
