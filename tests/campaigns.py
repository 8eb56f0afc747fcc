"""The size of campaigns: tests that kill, fail a call, damage a reply or attack as another user again and again.

A tenth of each runs by default, all of it with CAMPAIGN_SCALE=1 (`make campaigns`). The seed is the day, so that ten
days of a tenth reach every call; CAMPAIGN_SEED repeats the choice of an earlier run.
"""

import math
import os
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

SCALE = float(os.environ.get("CAMPAIGN_SCALE") or 0.1)
SEED = int(os.environ.get("CAMPAIGN_SEED") or datetime.now(UTC).toordinal())
Kind = Literal[
    "kills",
    "faults",
    "attacks",
    "damaged replies",
    "damaged transcripts",
    "concurrent writes",
    "turns",
    "forks",
    "crash images",
    "memory servers",
    "held connections",
    "soak requests",
    "broken hook inputs",
    "barriers",
    "questions",
]


class Campaign:
    """Decides how often a test tries, and counts it in `ran`."""

    def __init__(self, scale: float = SCALE, seed: int = SEED) -> None:
        self.scale = scale
        self.seed = seed
        self.ran = Counter[str]()

    def size(self, kind: Kind, full: int, least: int = 1) -> int:
        """Return how many times to try."""
        size = min(full, max(least, math.ceil(full * self.scale)))
        self.ran[kind] += size
        return size

    def calls(self, kind: Kind, names: Sequence[str], every: int = 1) -> list[int]:
        """Return the numbers, from 1, of the calls to hit: spread over all, with at least one call of every name.

        At full size, every n-th call is hit: all of them unless `every` says otherwise.
        """
        step = max(1, round(every / self.scale))
        chosen = set(range(self.seed % step, len(names), step))
        for name in sorted(set(names) - {names[at] for at in chosen}):
            places = [at for at, called in enumerate(names) if called == name]
            chosen.add(places[self.seed % len(places)])
        self.ran[kind] += len(chosen)
        return sorted(at + 1 for at in chosen)


def report(ran: Counter[str]) -> str:
    """Return a line for the end of a run."""
    counts = ", ".join(f"{count:,} {kind}" for kind, count in sorted(ran.items()))
    return f"campaigns at {SCALE:.0%} of their size (CAMPAIGN_SEED={SEED}): {counts}"
