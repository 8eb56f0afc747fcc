"""Options that many commands share, and the session they name."""

import argparse
import os

from daypack.cli.terminal import print_note, safe_line
from daypack.session import Session, open_session


def add_place(parser: argparse.ArgumentParser, *, session: str | None = "name of the session") -> None:
    """Add the session name, the options that locate it, and --json."""
    if session:
        parser.add_argument("session", help=session)
    parser.add_argument("--home", metavar="DIR", help="root folder (default: DAYPACK_HOME, /ctx or ~/.daypack)")
    agent = os.environ.get("DAYPACK_AGENT") or "default"
    parser.add_argument(
        "--agent", default=agent, help="agent the session belongs to (default: DAYPACK_AGENT or 'default')"
    )
    parser.add_argument("--uid", help="user folder (default: DAYPACK_UID or your user id)")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def natural(text: str) -> int:
    """Parse an integer of 0 or more."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"must be a number of 0 or more, got {text!r}")
    return int(text)


def open_named(args: argparse.Namespace, *, create: bool = False) -> Session:
    """Open the session the arguments name."""
    return open_session(args.session, agent=args.agent, home=args.home, uid=args.uid, create=create)


def report_damage(session: Session, reported: set[str]) -> None:
    """Print the damaged lines that were found, each once."""
    new = [text for text in map(str, session.damage) if text not in reported]
    for text in new:
        print_note(f"damaged: {safe_line(text)}")
    if new:
        print_note(f"  → all other lines were read; run `daypack doctor {safe_line(session.name)}`")
    reported.update(new)


def compact_in_background(args: argparse.Namespace, choice: str) -> None:
    """Start a compaction by a model in a detached process, because this one exits soon."""
    import subprocess  # noqa: PLC0415 — only with a model
    import sys  # noqa: PLC0415

    place = [f"--{name}={value}" for name in ("home", "agent", "uid") if (value := getattr(args, name, None))]
    command = [sys.executable, "-m", "daypack", "compact", f"--model={choice}", *place, "--", args.session]
    quiet = subprocess.DEVNULL
    subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)  # noqa: S603 — our own program
    print_note("the window is filling up: compaction started in the background")
