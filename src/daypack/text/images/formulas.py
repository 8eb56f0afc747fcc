"""The formulas that providers publish for the tokens of an image.

- OpenAI, in tiles of 512 pixels after shrinking to 2,048 × 2,048 and a short side of 768: a base and a price per tile,
  only the base with detail low (GPT-4o, 4.1, 5, o1, o3).
- OpenAI, in patches of 32 pixels up to a budget, times a factor (mini and nano of 4.1 and 5, o4-mini, from 5.2 on all).
  From 5.4 on detail original has a budget of 10,000 patches; from 5.5 on that is the default.
- Anthropic, in patches of 28 pixels after shrinking to a longest side and a number of patches: 1,568 and 1,568; from
  Claude 4.7 on 2,576 and 4,784.
- Gemini: 258 for each tile, at least 1,120, the default of Gemini 3.

Without a model, or for a model that is not in the table, an image costs the most that any of these charge at their
usual detail; except GPT-4o mini, whose image tokens are cheap and twenty times as many. An image of unknown size, for
instance one given by its address, costs the formula's maximum. Fractions are rounded up, and detail auto is counted as
high.
"""

import re
from functools import lru_cache
from math import ceil
from typing import NamedTuple, Protocol

from daypack.text.images.sizes import Size


class Rule(Protocol):
    """The formula of some models."""

    def tokens(self, size: Size | None, detail: str) -> int:
        """Return the tokens of an image; if its size is unknown, the most that it can have."""
        ...


class Tiles(NamedTuple):
    """A fixed and a price per tile."""

    fixed: int
    tile: int

    def tokens(self, size: Size | None, detail: str) -> int:
        """Count the tiles of a shrunk image."""
        if detail == "low":
            return self.fixed
        width, height = size.within(2048) if size else (2048.0, 768.0)
        factor = min(1.0, 768 / min(width, height))
        return self.fixed + self.tile * ceil(width * factor / 512) * ceil(height * factor / 512)


class Patches(NamedTuple):
    """Patches up to a budget, times a factor."""

    budget: int
    hundredths: int = 100  # of a token, for each patch
    side: int = 32
    edge: int = 2048
    original: int = 0  # the budget of detail original; 0: there is no such detail
    is_default: bool = False  # without a detail the model takes the original

    def tokens(self, size: Size | None, detail: str) -> int:
        """Count the patches of a shrunk image."""
        budget, edge = self.budget, self.edge
        if self.original and (detail == "original" or (self.is_default and detail in ("", "auto"))):
            budget, edge = self.original, 6000
        patches = budget
        if size:
            width, height = size.within(edge)
            patches = min(budget, ceil(width / self.side) * ceil(height / self.side))
        return -(-patches * self.hundredths // 100)


class Gemini(NamedTuple):
    """Tiles whose size follows that of the image."""

    least: int = 1120
    most: int = 16 * 258

    def tokens(self, size: Size | None, detail: str) -> int:  # noqa: ARG002 — it has no details
        """Count the tiles; small images are one."""
        if size is None:
            return self.most
        unit = max(256, min(768, int(min(size) / 1.5)))
        return max(self.least, 258 * ceil(size.width / unit) * ceil(size.height / unit))


class Dearest(NamedTuple):
    """The most that any of several formulas charges."""

    rules: tuple[Rule, ...]

    def tokens(self, size: Size | None, detail: str) -> int:
        """Return the maximum."""
        return max(rule.tokens(size, detail) for rule in self.rules)


_GPT = Tiles(85, 170)
_NANO = Patches(1536, 246)
_CLAUDE = Patches(1568, side=28, edge=1568)
_SHARP_CLAUDE = Patches(4784, side=28, edge=2576)
_LATE_GPT = Patches(2500, 120, original=10_000)
_UNKNOWN = Dearest((_GPT, _NANO, _LATE_GPT, _SHARP_CLAUDE))
# The first that matches the beginning of a model's name, without the provider.
_RULES: tuple[tuple[re.Pattern[str], Rule], ...] = tuple(
    (re.compile(pattern), rule)
    for pattern, rule in (
        (r"gpt-4o-mini", Tiles(2833, 5667)),
        (r"gpt-(4\.1|5|5\.\d+)(-\w+)?-nano", _NANO),
        (r"gpt-(4\.1|5|5\.\d+)(-\w+)?-mini", Patches(1536, 162)),
        (r"o4-mini", Patches(1536, 172)),
        (r"(chat)?gpt-4(o|\.1|\.5|-turbo|-vision)", _GPT),
        (r"o[13]\b", Tiles(75, 150)),
        (r"computer-use", Tiles(65, 129)),
        (r"gpt-5(\.[01])?(?![.\d])", Tiles(70, 140)),
        (r"gpt-5\.[23](?!\d)", Patches(1536, 120)),
        (r"gpt-5\.4(?!\d)", _LATE_GPT),
        (r"gpt-(5\.|[6-9])", Patches(2500, 120, original=10_000, is_default=True)),
    )
)
_BY_COUNTER: dict[str, Rule] = {
    "o200k+est1-claude3": _CLAUDE,
    "o200k+est1-claude4.7": _SHARP_CLAUDE,
    "o200k+est1-gemini": Gemini(),
}


@lru_cache(maxsize=64)
def rule_for(model: str | None, counter: str) -> Rule:
    """Return the formula for a model's name, as providers and routers write it, or else for a token counter's."""
    name = re.sub(r"^(?:[a-z-]+[.:])+", "", (model or "").strip().lower().rpartition("/")[2])
    found = next((rule for pattern, rule in _RULES if pattern.match(name)), None)
    return found or _BY_COUNTER.get(counter, _UNKNOWN)
