"""Strategies: replies made of pieces that a splitter may trip over, their chunkings, and good snapshots."""

from itertools import pairwise
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from protocol.replies import GOOD, RUNTIME, TIERS

from daypack.protocol import SEPARATOR

LIMITS = {"core": (0.35, 0.70), "working": (0.65, 0.55), "ephemeral": (0.80, 0.40)}
MARKS = ["<", "<<", "<<<", ">>>", "<<<CONTEXT", "CONTEXT>>>", "<<<context>>>", SEPARATOR, SEPARATOR, SEPARATOR]
JSON = ["{", "}", "[", "]", '"', "\\", ":", ",", "{}", '{"a":1}', '{"a":', "'", "NaN", "null", "1", "// x\n", "/* x */"]
AROUND = [
    "\n",
    "\r\n",
    " ",
    "```",
    "```json\n",
    "<json>",
    "</json>",
    "\ufeff",
    "\u00a0",
    "word",
    "Bye.",
    "记",
    "😀",
    "\x00",
]

modest = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
few = settings(modest, max_examples=40)

letters = st.characters(exclude_categories=["Cs"])
words = st.text(letters, max_size=8)


def replies() -> st.SearchStrategy[str]:
    """Any text, with and without tokens, snapshots and their ruins."""
    piece = st.sampled_from([*MARKS, *JSON, *AROUND, GOOD]) | words
    return st.lists(piece, max_size=12).map("".join)


@st.composite
def chunkings(draw: st.DrawFn, whole: st.SearchStrategy[str]) -> list[str]:
    """A text cut at any places."""
    text = draw(whole)
    if draw(st.booleans()):
        return list(text)
    places = sorted(draw(st.sets(st.integers(0, len(text)), max_size=12)) | {0, len(text)})
    return [text[one:two] for one, two in pairwise(places)]


def values() -> st.SearchStrategy[Any]:
    """Whatever JSON can say, so that a host and a browser read the same."""
    numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    plain = st.none() | st.booleans() | numbers | words | st.just(SEPARATOR)
    return st.recursive(
        plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3), max_leaves=6
    )


@st.composite
def tiers(draw: st.DrawFn, name: str, current: int) -> list[dict[str, Any]]:
    """Blocks that pass the limits of a tier, best first, no two of the same id or content."""
    decay, confidence = LIMITS[name]
    blocks = [
        {
            "id": f"{name}-{number}{draw(words)}",
            "type": f"t{draw(words)}",
            "decay": draw(st.floats(0, decay)),
            "confidence": draw(st.floats(confidence, 1)),
            "round": draw(st.integers(0, current)),
            "tags": draw(st.lists(words.map(str.strip).filter(bool), max_size=3, unique=True)),
            "content": f"{number} {draw(words | st.just(SEPARATOR))}".strip(),
            **draw(st.dictionaries(words.map("x-{}".format), values(), max_size=1)),
        }
        for number in range(draw(st.integers(0, 3)))
    ]
    return sorted(blocks, key=lambda one: -(0.5 * (1 - one["decay"]) + 0.5 * one["confidence"]))


@st.composite
def snapshots(draw: st.DrawFn) -> dict[str, Any]:
    """A snapshot that breaks no rule."""
    current = draw(st.integers(0, 2**53))
    runtime = {**RUNTIME, "round": current, "workspace": draw(words), "startup_at": draw(st.integers(0, 2**53))}
    return {
        "version": 2.3,
        "runtime": runtime,
        "memory": {name: draw(tiers(name, current)) for name in TIERS},
        "capabilities": draw(st.lists(st.fixed_dictionaries({"name": words, "scope": words}), max_size=2)),
        "active_task": draw(words | st.just(f"say {SEPARATOR}")),
        **draw(st.dictionaries(words.map("x-{}".format), values(), max_size=2)),
    }
