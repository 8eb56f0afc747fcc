"""Tell the story in a terminal: `python -m demo`, or `make demo`."""

import argparse
import os
import shutil
import sys
import tempfile
from contextlib import closing

from demo.screen import Screen
from demo.telling import Telling
from demo.wire import Server, environment
from demo.writer import AGENT, NAME


def main() -> int:
    """Run it in a folder of its own, which is removed at the end."""
    parser = argparse.ArgumentParser(prog="python -m demo", description="Sixty turns of an agent in a small window.")
    parser.add_argument("--fast", action="store_true", help="do not wait for a reader")
    parser.add_argument("--keep", action="store_true", help="keep the folder of the session, and say where it is")
    args = parser.parse_args()
    settings = environment()  # the story is the same for everybody
    os.environ.clear()
    os.environ.update(settings)
    home = tempfile.mkdtemp(prefix="daypack-demo-")
    screen = Screen(fast=args.fast)
    try:
        with Server(home) as server, closing(Telling(screen, home, server)) as telling:
            telling.tell()
            failures = telling.failures
    finally:
        if args.keep:
            print(f"\n Everything is in {home}; look around with\n   daypack log {NAME} --agent {AGENT} --home {home}")
        else:
            shutil.rmtree(home, ignore_errors=True)
    for failure in failures:
        print(f"daypack: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader has gone: so does the teller, without a word
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
