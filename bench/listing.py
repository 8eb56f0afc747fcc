"""Listing many sessions, beside a Python that only looks at their files; and showing a long one."""

import os
import shutil
import sys
import time

import daypack
from bench.histories import TEXTS, Histories
from bench.measure import alternate, run, say
from bench.table import Row, Section, compare, duration
from daypack.history.home import find_home

ROUNDS = 7
_SESSIONS, _QUICK_SESSIONS = 10_000, 1_000
_MOST_LIST_NS = 1e9
_SETTLED_SECONDS = 2.5  # files that were written a moment ago are not indexed
_LOOK = """
import os, sys
for item in os.scandir(sys.argv[1]):
    for name in ("", "messages.jsonl", "events.jsonl", "meta.json", "state", "created_at", "updated_at", "cwd"):
        os.lstat(item.path + "/" + name)
"""


def measure(histories: Histories) -> Section:
    """Measure the list with its index, without it, and the longest history shown."""
    count = _QUICK_SESSIONS if histories.quick else _SESSIONS
    home, folder = _many(histories, count)
    longest = max(histories.sizes)
    name = histories.ours(longest)
    say(f"listing: {ROUNDS} rounds")
    command = [sys.executable, "-m", "daypack", "session"]
    listing = run([*command, "list", "--home", home])
    cold = listing(1).cpu
    blocks = {
        "look": run([sys.executable, "-c", _LOOK, folder]),
        "list": listing,
        "bare": run([sys.executable, "-c", "pass"]),
        "show": run([*command, "show", "--home", histories.home, name]),
    }
    series = alternate(blocks, rounds=ROUNDS, operations=1)
    spent = series["list"].middle("cpu")
    ratios = compare("", series["list"], series["look"])
    looked = duration(series["look"].middle("cpu"))
    shown = compare("", series["show"], series["bare"])
    bare = duration(series["bare"].middle("cpu"))
    rows = (
        Row(
            f"session list, {count:,} sessions",
            None,
            duration(spent),
            looked,
            ratios.wall,
            ratios.quiet,
            ratios.cpu,
            "CPU ≤ 1 s",
            spent <= _MOST_LIST_NS,
        ),
        Row(f"the first list of {count:,} sessions", None, duration(cold), looked),
        Row("session show", longest, duration(series["show"].middle("cpu")), bare, shown.wall, shown.quiet, shown.cpu),
    )
    notes = (
        "ours and beside are CPU times; beside a list: Python that calls lstat on the same files",
        "beside show: bare Python (python -c pass)",
    )
    return Section(f"Listing ({ROUNDS} rounds)", rows, notes)


def _many(histories: Histories, count: int) -> tuple[str, str]:
    """Make a home of many short sessions; return it and the folder that holds them."""
    say(f"writing {count:,} sessions")
    home = os.path.join(histories.folder, "many")
    with daypack.open_session("session-0", home=home, durability="os", workspace="") as session:
        session.append("user", TEXTS[0])
        session.append("assistant", TEXTS[1])
    folder = find_home(home).sessions("default")
    for number in range(1, count):
        shutil.copytree(session.path, os.path.join(folder, f"session-{number}"))
    time.sleep(_SETTLED_SECONDS)
    return home, folder
