"""Run the demo in a terminal: `python -m demo`, or `make demo`."""

import argparse
import os
import shutil
import sys
import tempfile
from contextlib import closing

from demo.mcp_client import Server, environment
from demo.scenes import Demo
from demo.screen import Screen
from demo.writer import AGENT, NAME


def main() -> int:
    """Run the demo in a temporary folder and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m demo", description="Sixty turns of an agent in a small window.")
    parser.add_argument("--fast", action="store_true", help="do not pause between scenes")
    parser.add_argument("--keep", action="store_true", help="keep the session's folder and print its path")
    args = parser.parse_args()
    settings = environment()  # the run does not depend on the user's settings
    os.environ.clear()
    os.environ.update(settings)
    home = tempfile.mkdtemp(prefix="daypack-demo-")
    screen = Screen(fast=args.fast)
    try:
        with Server(home) as server, closing(Demo(screen, home, server)) as demo:
            demo.run()
            failures = demo.failures
    finally:
        if args.keep:
            print(f"\n The session is in {home}; show it with\n   daypack log {NAME} --agent {AGENT} --home {home}")
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
    except BrokenPipeError:  # the reader of the output has closed it: exit silently
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
