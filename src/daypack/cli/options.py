"""Options every command has, and the session they name."""

import argparse
import os

from daypack.cli.terminal import safe_line, say
from daypack.session import Session, open_session


def add_place(parser: argparse.ArgumentParser, *, session: str | None = "the session's name") -> None:
    """Add the session's name, where it lives, and --json."""
    if session:
        parser.add_argument("session", help=session)
    parser.add_argument("--home", metavar="DIR", help="root folder (default: DAYPACK_HOME, /ctx or ~/.daypack)")
    agent = os.environ.get("DAYPACK_AGENT") or "default"
    parser.add_argument("--agent", default=agent, help="whose session it is (default: DAYPACK_AGENT or 'default')")
    parser.add_argument("--uid", help="user folder (default: DAYPACK_UID or your user id)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def natural(text: str) -> int:
    """Read a number that is not negative."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 0 or more")
    return int(text)


def open_named(args: argparse.Namespace, *, create: bool = False) -> Session:
    """Open the session the arguments name."""
    return open_session(args.session, agent=args.agent, home=args.home, uid=args.uid, create=create)


def tell_damage(session: Session, told: set[str]) -> None:
    """Say which damaged lines were met, each once."""
    news = [text for text in map(str, session.damage) if text not in told]
    for text in news:
        say(f"damaged: {safe_line(text)}")
    if news:
        say(f"  → the other lines were read; `daypack doctor {safe_line(session.name)}` tells what to do")
    told.update(news)


def compact_behind(args: argparse.Namespace, choice: str) -> None:
    """Start a compaction by a model in a process of its own: this one ends before a model has read much."""
    import subprocess  # noqa: PLC0415 — few have a model
    import sys  # noqa: PLC0415

    place = [f"--{name}={value}" for name in ("home", "agent", "uid") if (value := getattr(args, name, None))]
    command = [sys.executable, "-m", "daypack", "compact", f"--model={choice}", *place, "--", args.session]
    quiet = subprocess.DEVNULL
    subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)  # noqa: S603 — ourselves
    say("the window fills: a compaction was started in the background")
