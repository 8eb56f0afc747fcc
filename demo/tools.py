"""The tools of the scripted agent: deterministic output, long enough to fill a window."""

import random
from typing import Any

_PLACES = ("Sandvik", "Holm", "Nordpier", "Skarvøy", "Lyngnes", "Ytre Vik")
_NOUNS = ("berth", "sailing", "booking", "seat", "vehicle", "refund", "ticket", "deck", "route", "crossing")
_VERBS = ("check", "load", "price", "book", "cancel", "move", "count", "close", "print", "merge")
_STATES = ("open", "paid", "cancelled", "waiting", "checked in")


def use(name: str, arguments: dict[str, Any]) -> str:
    """Return the output of a tool call."""
    chance = random.Random(f"{name} {sorted(arguments.items())}")
    if name == "read_file":
        return _file(arguments["path"], chance)
    if name == "run_tests":
        return _tests(arguments["part"], chance)
    if name == "query":
        return _rows(arguments["sql"].split()[3], chance)
    return _log(arguments["name"], chance)


def _file(path: str, chance: random.Random) -> str:
    lines = [f'"""{path}: a part of the booking site of Nordpier."""', ""]
    if path == "tariffs.py":
        lines += ["MAX_CARS = 38", ""]
    for number in range(14):
        verb, noun, other = chance.choice(_VERBS), chance.choice(_NOUNS), chance.choice(_NOUNS)
        lines += [
            f"def {verb}_{noun}_{number}({other}s: list[str], day: int = {chance.randint(1, 28)}) -> int:",
            f"    total = len({other}s) * {chance.randint(40, 900)} + day * {chance.randint(2, 60)}",
            f"    if total > {chance.randint(1000, 9000)}:",
            f'        raise ValueError("too many for the {noun} of {chance.choice(_PLACES)}")',
            f"    return total - {chance.randint(1, 99)}",
            "",
        ]
    return "\n".join(lines)


def _tests(part: str, chance: random.Random) -> str:
    names = [f"{chance.choice(_VERBS)}_{chance.choice(_NOUNS)}_{number}" for number in range(34)]
    lines = [f"tests/test_{part}.py::test_{name} PASSED in {chance.randint(1, 400)} ms" for name in names]
    return "\n".join([*lines, f"===== {len(lines)} passed ====="])


def _rows(table: str, chance: random.Random) -> str:
    lines = [f"-- {table}", "id | day | from | to | crowns | state"]
    for _ in range(34):
        start, end = chance.sample(_PLACES, 2)
        day = f"2026-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"
        fare = f"{chance.randint(84, 2400)} | {chance.choice(_STATES)}"
        lines.append(f"{chance.randint(1000, 9999)} | {day} | {start} | {end} | {fare}")
    return "\n".join(lines)


def _log(name: str, chance: random.Random) -> str:
    lines: list[str] = []
    for number in range(30):
        at = f"2026-11-{1 + number // 6:02} {chance.randint(7, 23):02}:{chance.randint(0, 59):02}"
        what = f"{chance.choice(_VERBS)} {chance.choice(_NOUNS)} {chance.randint(100, 999)}"
        lines.append(f"{at} {name}[{chance.randint(200, 900)}]: {what} took {chance.randint(1, 90)} ms, ok")
    return "\n".join(lines)
