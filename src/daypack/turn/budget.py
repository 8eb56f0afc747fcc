"""Limits of a window, from a number, a mapping or the file `context/budget`.

32000
{"tokens": 32000, "bytes": 200000, "items": 400, "ms": 50, "targets": {"ui": {"tokens": 4000}}}
"""

from collections.abc import Mapping
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta, Struct

from daypack.errors import BadConfig, BadInput, BudgetTooSmall
from daypack.turn.items import Cost
from daypack.turn.policy import DEFAULT_BUDGET_TOKENS, OUTPUT_RESERVE_TOKENS, REQUEST_TOKENS
from daypack.types.kinds import Target

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


DEFAULT_LIMITS = Limits(DEFAULT_BUDGET_TOKENS)


def budget_for(tokens: int) -> int:
    """Return the smallest budget whose room holds so many tokens."""
    needed = tokens + REQUEST_TOKENS
    return max(needed + OUTPUT_RESERVE_TOKENS, 0) if needed >= 3 * OUTPUT_RESERVE_TOKENS else -(-needed * 4 // 3)


class _File(Limits, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    targets: dict[Target, Limits] = {}


def limits_from(value: int | Mapping[str, Any] | Limits, target: Target) -> Limits:
    """Return the limits that a caller passed; raise BudgetTooSmall if they leave no space at all."""
    if isinstance(value, Limits):
        limits = value
    elif isinstance(value, int) and not isinstance(value, bool) and 0 < value < _UNLIMITED:
        return Limits(value)
    else:
        try:
            limits = _convert({"tokens": value} if isinstance(value, int) else dict(value), target)
        except (msgspec.ValidationError, TypeError, ValueError) as error:
            hint = "pass a number of tokens, or a mapping with tokens, bytes, items, ms"
            raise BadInput(f"{value!r}: {error}", operation="prepare", place="budget", hint=hint) from error
    if 0 in (limits.tokens, limits.bytes, limits.items):
        hint = "raise the budget, or leave it out to use context/budget"
        raise BudgetTooSmall("a budget of 0 has no space", operation="prepare", place="budget", hint=hint)
    return limits


def parse_budget_file(text: str, target: Target, place: str) -> Limits:
    """Return the limits in the text of `context/budget`; 0 or an empty file means no limit."""
    text = text.strip()
    try:
        value = msgspec.json.decode(text) if text else 0
        if not isinstance(value, (int, dict)) or isinstance(value, bool):
            raise BadConfig("neither a number nor an object", operation="read budget", place=place, hint=_HINT)
        limits = _convert({"tokens": value} if isinstance(value, int) else cast(dict[str, Any], value), target)
    except (msgspec.DecodeError, TypeError, ValueError, RecursionError) as error:
        raise BadConfig(str(error), operation="read budget", place=place, hint=_HINT) from error
    return Limits(limits.tokens or None, limits.bytes or None, limits.items or None, limits.ms or None)


_HINT = 'write a number of tokens, or {"tokens": …, "bytes": …, "items": …, "ms": …, "targets": {…}}'


def _convert(value: dict[str, Any], target: Target) -> Limits:
    parsed = msgspec.convert(value, _File)
    own = parsed.targets.get(target, Limits())
    return Limits(*(getattr(own, name) if getattr(own, name) is not None else getattr(parsed, name) for name in _NAMES))


_NAMES = Limits.__struct_fields__
# Built at import: msgspec builds a type without a lock, and two threads doing it at once crash.
_WARM = msgspec.json.Decoder(_File)
