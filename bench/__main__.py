"""`python -m bench [part …] [--quick]`, from the root of the repository: prints one table of ratios and targets."""

import argparse
import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence

from bench import (
    append,
    cache,
    compaction,
    evidence,
    find,
    floor,
    growth,
    haystack,
    hooks,
    listing,
    memory,
    nosync,
    page,
    postgres,
    protocol,
    recall,
    rules,
    servers,
    sessions,
    startup,
    tail,
    threads,
    turn,
    window,
)
from bench.histories import Histories
from bench.table import Section, render

PARTS: dict[str, Callable[[Histories], Section]] = {
    "append": append.measure,
    "nosync": nosync.measure,
    "threads": threads.measure,
    "tail": tail.measure,
    "startup": startup.measure,
    "listing": listing.measure,
    "turn": turn.measure,
    "growth": growth.measure,
    "evidence": evidence.measure,
    "cache": cache.measure,
    "window": window.measure,
    "recall": recall.measure,
    "rules": rules.measure,
    "compaction": compaction.measure,
    "memory": memory.measure,
    "postgres": postgres.measure,
    "sessions": sessions.measure,
    "floor": floor.measure,
    "haystack": haystack.measure,
    "find": find.measure,
    "page": page.measure,
    "servers": servers.measure,
    "protocol": protocol.measure,
    "hooks": hooks.measure,
}
SIZES = (1_000, 10_000, 100_000, 1_000_000)
QUICK_SIZES = SIZES[:2]
_LEGEND = """\
wall × and CPU ×: daypack / baseline within a round, median over all rounds; the quartiles are those of the clock that
the target names. fastest 10% ×: the same ratio for the fastest tenth of all calls, which other load delays least.\
"""


def _set_environment(folder: str) -> None:
    """Run processes like an installed daypack: with default settings and compiled modules."""
    for name in list(os.environ):
        if name.startswith("DAYPACK_") or name == "PYTHONDONTWRITEBYTECODE":
            del os.environ[name]
    os.environ["PYTHONPYCACHEPREFIX"] = os.path.join(folder, "compiled")


def _end(_: int, __: object) -> None:
    sys.exit(1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the named parts, or all, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"one of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="shorter histories and fewer calls")
    options = parser.parse_args(arguments)
    if unknown := [part for part in options.parts if part not in PARTS]:
        parser.error(f"unknown part {', '.join(unknown)}; choose from {', '.join(PARTS)}")
    signal.signal(signal.SIGTERM, _end)  # exit normally, so that the temporary files are removed
    start, load = time.monotonic(), os.getloadavg()[0]
    # In the current folder: a real disk, not a file system in memory.
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=os.getcwd()) as folder:
        _set_environment(folder)
        histories = Histories(folder, QUICK_SIZES if options.quick else SIZES, quick=options.quick)
        sections = [PARTS[part](histories) for part in PARTS if not options.parts or part in options.parts]
    print(render(sections))
    print()
    print(_LEGEND)
    print(
        f"Python {platform.python_version()}, {os.cpu_count()} CPUs, load {load:.1f} at the start and"
        f" {os.getloadavg()[0]:.1f} at the end, {time.monotonic() - start:.0f} seconds in total."
    )


if __name__ == "__main__":
    main()
