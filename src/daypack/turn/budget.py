"""Limits of a window, from a number, a text, a mapping or the file `context/budget`.

32000 or 32k
{"tokens": 32000, "bytes": 200000, "items": 400, "ms": 50, "targets": {"ui": {"tokens": 4000}}}
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta, Struct

from daypack.errors import BadConfig, BadInput, BudgetTooSmall
from daypack.turn.items import Cost
from daypack.turn.policy import DEFAULT_BUDGET_TOKENS, OUTPUT_RESERVE_TOKENS, REQUEST_TOKENS
from daypack.types.kinds import TARGETS, Target
from daypack.types.names import did_you_mean

_UNLIMITED = 1 << 60

Limit = Annotated[int, Meta(ge=0, le=_UNLIMITED)]


class Limits(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The most a pack can take; None: no limit."""

    tokens: Limit | None = None
    bytes: Limit | None = None
    items: Limit | None = None
    ms: Limit | None = None

    @property
    def reserved_tokens(self) -> int:
        """The tokens reserved for the answer."""
        return 0 if self.tokens is None else min(OUTPUT_RESERVE_TOKENS, self.tokens // 4)

    @property
    def room(self) -> Cost:
        """The space for the pack itself: the limits without the reserve for the answer."""
        tokens = _UNLIMITED if self.tokens is None else self.tokens - self.reserved_tokens - REQUEST_TOKENS
        return Cost(
            max(0, tokens),
            _UNLIMITED if self.bytes is None else self.bytes,
            _UNLIMITED if self.items is None else self.items,
        )

    def room_beside(self, tools: Cost) -> Cost:
        """Return the space that the tools of the request leave."""
        return self.room.less(tools)


DEFAULT_LIMITS = Limits(DEFAULT_BUDGET_TOKENS)


def budget_for(tokens: int) -> int:
    """Return the smallest budget whose room holds so many tokens."""
    needed = tokens + REQUEST_TOKENS
    return max(needed + OUTPUT_RESERVE_TOKENS, 0) if needed >= 3 * OUTPUT_RESERVE_TOKENS else -(-needed * 4 // 3)


def limits_from(value: int | str | Mapping[str, Any] | Limits, target: Target) -> Limits:
    """Return the limits that a caller passed; raise BudgetTooSmall if they leave no space at all."""
    if isinstance(value, Limits):
        limits = value
    elif isinstance(value, int) and not isinstance(value, bool) and 0 < value < _UNLIMITED:
        return Limits(value)
    else:
        try:
            limits = _read(parse_budget(value) if isinstance(value, str) else value, target)
        except ValueError as error:
            raise BadInput(str(error), operation="prepare", place="budget", hint=BUDGET_HINT) from error
    if 0 in (limits.tokens, limits.bytes, limits.items):
        hint = "raise the budget, or leave it out to use context/budget"
        raise BudgetTooSmall("a budget of 0 has no space", operation="prepare", place="budget", hint=hint)
    return limits


def parse_budget_file(text: str, target: Target, place: str) -> Limits:
    """Return the limits in the text of `context/budget`; 0 or an empty file means no limit."""
    try:
        limits = _read(parse_budget(text), target)
    except ValueError as error:
        raise BadConfig(str(error), operation="read budget", place=place, hint=BUDGET_HINT) from error
    return Limits(limits.tokens or None, limits.bytes or None, limits.items or None, limits.ms or None)


BUDGET_HINT = "give a number of tokens such as 32000 or 32k, or an object with tokens, bytes, items, ms"


def parse_budget(text: str) -> int | dict[str, Any]:
    """Parse a number of tokens or a JSON object; raise ValueError if it is neither. An empty text is 0: no limit."""
    text = text.strip()
    if not text.startswith("{"):
        return parse_tokens(text or "0")
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise ValueError(f"{text!r} is not a budget: the JSON is not valid") from None


_NUMBER = re.compile(r"([0-9]{1,3}(?:,[0-9]{3})+|[0-9]+(?:_[0-9]+)*)(?:\.([0-9]+))?\s?([km]?)", re.IGNORECASE)
_MOST_DIGITS = 40
_ZEROS = {"": 0, "k": 3, "m": 6}


def parse_tokens(text: str) -> int:
    """Parse a number of tokens as people write it: 8000, 8,000, 200_000, 8k, 1.5k, 1m; raise ValueError otherwise."""
    match = _NUMBER.fullmatch(text.strip()) if len(text) <= _MOST_DIGITS else None
    if match:
        whole, fraction, unit = match[1].replace(",", "").replace("_", ""), match[2] or "", match[3].lower()
        zeros = _ZEROS[unit] - len(fraction)
        if zeros >= 0:
            return int(whole + fraction + "0" * zeros)
    raise ValueError(f"{text!r} is not a budget")


def _read(value: object, target: Target) -> Limits:
    """Return the limits for a target; raise ValueError with the problem."""
    if not isinstance(value, Mapping):
        return Limits(_limit("the budget", value))
    fields = dict(cast("Mapping[str, Any]", value))
    targets: object = fields.pop("targets", None) or {}
    if not isinstance(targets, Mapping):
        raise ValueError(f'targets must be an object such as {{"ui": {{"tokens": 4000}}}}, got {targets!r}')  # noqa: TRY004 — read by the caller
    common, own = _limits(fields), Limits()
    for name, given in cast("Mapping[str, Any]", targets).items():
        if name not in TARGETS:
            raise ValueError(f"there is no target {name!r}; {did_you_mean(name, TARGETS)}".rstrip("; "))
        if not isinstance(given, Mapping):
            raise ValueError(f"the limits of {name} must be an object, got {given!r}")  # noqa: TRY004
        limits = _limits(cast("Mapping[str, Any]", given))
        own = limits if name == target else own
    return Limits(*(getattr(own, name) if getattr(own, name) is not None else getattr(common, name) for name in _NAMES))


def _limits(fields: Mapping[str, Any]) -> Limits:
    for name in fields:
        if name not in _NAMES:
            raise ValueError(f"there is no limit {name!r}; {did_you_mean(str(name), _NAMES)}".rstrip("; "))
    return Limits(**{name: _limit(name, value) for name, value in fields.items() if value is not None})


def _limit(name: str, value: object) -> int:
    number = value
    if isinstance(value, str):
        try:
            number = parse_tokens(value)
        except ValueError:
            number = None
    if isinstance(number, int) and not isinstance(number, bool) and 0 <= number <= _UNLIMITED:
        return number
    if isinstance(number, int) and number > _UNLIMITED:
        raise ValueError(f"{name} is larger than any window: {value!r}")
    raise ValueError(f"{name} must be a whole number of 0 or more, got {value!r}")


_NAMES = Limits.__struct_fields__
