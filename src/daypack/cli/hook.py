"""Answer one event of a coding agent: its JSON on standard input, what to add to its window on standard output.

The plug-in that `daypack setup` installs runs this. Without a name the agent is recognised by its environment. Whatever
fails ends with exit code 0 and leaves a line in hook.log; `daypack doctor` shows the newest.
"""

import argparse

from daypack.hooks.hosts import HOSTS, NAMES
from daypack.hooks.main import run as run_hook


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "host",
        nargs="?",
        choices=tuple(NAMES),
        metavar="|".join(HOSTS),
        help="the agent (default: as its environment says)",
    )


def run(args: argparse.Namespace) -> int:
    """Answer the event on standard input; `__main__` does so without this module."""
    return run_hook([args.host] if args.host else []) or 0
