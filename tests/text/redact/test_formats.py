"""No pattern can be made to do much work: repeats are bounded, long ones give nothing back, none repeats a repeat."""

import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from daypack.text.redact.formats import FORMATS, HOOKS, KINDS, PATTERNS, REACH, RUN, pattern_of

# Private, but the only way to see what a pattern says.
constants: Any = importlib.import_module("re._constants")
parser: Any = importlib.import_module("re._parser")

SOURCES = {
    **{f"{kind} {number}": pattern for number, (kind, _, pattern) in enumerate((*FORMATS, *HOOKS))},
    **PATTERNS,
}
REPEATS: set[Any] = {constants.MAX_REPEAT, constants.MIN_REPEAT, constants.POSSESSIVE_REPEAT}
# What may give back: at most this many characters.
MAX_BACKTRACK = 40


def repeats(node: Any, outside: tuple[Any, ...] = ()) -> Iterator[tuple[Any, int, int, tuple[Any, ...]]]:
    """Each repeat in a parsed pattern: its kind, least, most, and the repeats around it."""
    if isinstance(node, tuple) and len(node) == 2 and node[0] in REPEATS:  # pyright: ignore[reportUnknownArgumentType]
        kind, (least, most, inside) = node  # pyright: ignore[reportUnknownVariableType]
        yield kind, int(least), int(most), outside  # pyright: ignore[reportUnknownArgumentType]
        yield from repeats(inside, (*outside, (int(least), int(most))))  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(node, (list, tuple, parser.SubPattern)):
        for one in node:  # pyright: ignore[reportUnknownVariableType]
            yield from repeats(one, outside)


def faults(pattern: bytes) -> list[str]:
    found: list[str] = []
    for kind, least, most, outside in repeats(parser.parse(pattern)):
        if most >= constants.MAXREPEAT:
            found.append("unbounded")
        elif most != least and most > MAX_BACKTRACK and kind is not constants.POSSESSIVE_REPEAT:
            found.append(f"gives back up to {most - least}")
        if least != most and most > 1 and any(low != high and high > 1 for low, high in outside):
            found.append("a repeat that varies inside another")
    return found


@pytest.mark.parametrize("name", SOURCES)
def test_a_pattern_does_bounded_work_at_each_place(name: str) -> None:
    assert faults(SOURCES[name]) == []


@pytest.mark.parametrize(
    "pattern", [rb"eyJ\w+\.", rb"a{2,}", rb"(?:a{1,9}b){1,9}", rb"[a-z]{1,500}x", rb"(?=a*)b", b"a*?b"]
)
def test_the_check_of_work_can_fail(pattern: bytes) -> None:
    assert faults(pattern) != []


def test_every_format_begins_with_what_makes_its_search_fast() -> None:
    for kind, anchors, pattern in FORMATS:
        assert re.match(rb"[A-Za-z0-9\[]", pattern), kind
        for anchor in anchors:
            assert len(anchor) >= 2, kind


def test_every_format_is_longer_than_the_run_it_is_looked_for_in() -> None:
    for kind, _, pattern in FORMATS:
        shortest, _ = parser.parse(pattern).getwidth()
        assert shortest >= len(RUN), kind
    assert len("1234567890:") < REACH


def test_kinds_can_stand_in_a_marker() -> None:
    assert len(set(KINDS)) == len(KINDS)
    assert all(re.fullmatch(r"[a-z][a-z-]+", kind) for kind in KINDS)


def test_nothing_is_compiled_before_it_is_needed() -> None:
    code = """
from daypack.text.redact.redact import redact
from daypack.text.redact.formats import pattern_of

print(pattern_of.cache_info().currsize)
redact("nothing to see in here")
print(pattern_of.cache_info().currsize)
redact("AKIA2E0A8F3B244C9986")
print(pattern_of.cache_info().currsize)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    at_import, clean, with_key = map(int, done.stdout.split())
    assert (at_import, clean) == (0, 0)
    assert 1 <= with_key <= 4


def test_a_pattern_is_compiled_once() -> None:
    assert pattern_of("url") is pattern_of("url")
