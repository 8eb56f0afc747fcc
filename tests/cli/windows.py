"""Windows to draw, and what a terminal shows of a drawing."""

import random
import re

from daypack.cli.window_bar import KINDS, Window

EMPTY = dict.fromkeys(KINDS, 0)


def windows(number: int) -> list[Window]:
    """Return windows with random content, including an empty one."""
    chance = random.Random(number)
    found = [Window(EMPTY, 16_000, 4_000, 0)]
    for _ in range(number):
        edges = sorted(chance.randint(0, 12_000) for _ in KINDS)
        parts = [after - before for before, after in zip((0, *edges), edges, strict=False)]
        found.append(Window(dict(zip(KINDS, parts, strict=True)), 16_000, 4_000, chance.randint(0, sum(parts))))
    return found


def visible(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
