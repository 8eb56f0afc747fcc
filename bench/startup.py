"""Start-up: CPU time of hook and command processes, and the size of an install."""

import os
import re
import sys
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from statistics import median

from bench.histories import TEXTS, Histories
from bench.measure import alternate, run, say
from bench.table import Row, Section, compare, duration

ROUNDS = 31
_HISTORY = 1000
_MOST_DISTRIBUTIONS = 5


def measure(histories: Histories) -> Section:
    """Measure the import and three commands, each beside a Python that does nothing."""
    name = histories.ours(_HISTORY)
    say(f"start-up: {ROUNDS} rounds")
    script = os.path.join(os.path.dirname(sys.executable), "daypack")
    daypack = [script] if os.path.exists(script) else [sys.executable, "-m", "daypack"]
    place = ["--home", histories.home, name]
    blocks = {
        "bare": run([sys.executable, "-c", "pass"]),
        "import": run([sys.executable, "-c", "import daypack"]),
        "append": run([*daypack, "append", *place, TEXTS[0]]),
        "log": run([*daypack, "log", "-n", "5", *place]),
        "status": run([*daypack, "status", "--line", "--home", histories.home]),
    }
    series = alternate(blocks, rounds=ROUNDS, operations=1)
    bare = series["bare"]
    above = median(one - other for one, other in zip(series["import"].cpu, bare.cpu, strict=True))
    rows: list[Row] = []
    for label, contender, spent, most in (
        ("import daypack, above bare", "import", above, 100),
        ("daypack append", "append", series["append"].middle("cpu"), 200),
        ("daypack log -n 5", "log", series["log"].middle("cpu"), 120),
        ("daypack status --line", "status", series["status"].middle("cpu"), 50),
    ):
        ratios = compare("", series[contender], bare)
        figures = (duration(spent), duration(bare.middle("cpu")), ratios.wall, ratios.quiet, ratios.cpu)
        rows.append(Row(label, None, *figures, target=f"CPU ≤ {most} ms", met=spent <= most * 1e6))
    brought = sorted(brought_by("daypack"))
    target, met = f"≤ {_MOST_DISTRIBUTIONS}", len(brought) <= _MOST_DISTRIBUTIONS
    rows.append(Row("distributions in a core install", ours=str(len(brought)), target=target, met=met))
    notes = [
        "ours and beside are CPU times; beside: bare Python (python -c pass)",
        f"beside itself a core install brings {', '.join(brought) or 'nothing'}",
    ]
    if find_spec("typing_extensions") and "typing-extensions" not in brought:
        notes.append("typing_extensions is installed here and msgspec imports it: a core install starts faster")
    return Section(f"Start-up ({ROUNDS} rounds, session of {_HISTORY:,} messages)", tuple(rows), tuple(notes))


def brought_by(name: str) -> set[str]:
    """Return the distributions that installing one brings without extras.

    Other conditions (a platform, a Python version) are not evaluated: whatever of them is installed here counts.
    """
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for requirement in distribution(waiting.pop()).requires or ():
            wanted, _, condition = requirement.partition(";")
            match = re.match(r"[\w.-]+", wanted)
            if not match or "extra" in condition:
                continue
            needed = re.sub(r"[-_.]+", "-", match[0]).lower()
            if needed not in found and _installed(needed):
                found.add(needed)
                waiting.append(needed)
    return found


def _installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True
