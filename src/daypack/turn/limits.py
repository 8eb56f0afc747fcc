"""Limits: what a window may hold, from a number, a mapping or the file `context/budget`.

32000
{"tokens": 32000, "bytes": 200000, "items": 400, "ms": 50, "targets": {"ui": {"tokens": 4000}}}
"""

from collections.abc import Mapping
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta, Struct

from daypack.errors import BadConfig, BadInput, BudgetTooSmall
from daypack.turn.items import Cost
from daypack.types.kinds import Target

DEFAULT_TOKENS = 128_000
OUTPUT_RESERVE_TOKENS = 4096
REQUEST_TOKENS = 7  # what a provider puts around the whole request, and around the prefix and what follows the tail
_BOUNDLESS = 1 << 60

Limit = Annotated[int, Meta(ge=0, le=_BOUNDLESS)]


class Limits(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The most a pack may take; None: no limit."""

    tokens: Limit | None = None
    bytes: Limit | None = None
    items: Limit | None = None
    ms: Limit | None = None

    @property
    def reserved_tokens(self) -> int:
        """The tokens that are kept for the answer."""
        return 0 if self.tokens is None else min(OUTPUT_RESERVE_TOKENS, self.tokens // 4)

    @property
    def room(self) -> Cost:
        """What is left for the pack itself."""
        tokens = _BOUNDLESS if self.tokens is None else self.tokens - self.reserved_tokens - REQUEST_TOKENS
        return Cost(
            max(0, tokens),
            _BOUNDLESS if self.bytes is None else self.bytes,
            _BOUNDLESS if self.items is None else self.items,
        )


class _File(Limits, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    targets: dict[Target, Limits] = {}


def limits_from(value: int | Mapping[str, Any] | Limits, target: Target) -> Limits:
    """Return the limits a caller gave; no room at all is refused."""
    if isinstance(value, Limits):
        limits = value
    else:
        try:
            limits = _shaped({"tokens": value} if isinstance(value, int) else dict(value), target)
        except (msgspec.ValidationError, TypeError, ValueError) as error:
            hint = "give a number of tokens, or a mapping with tokens, bytes, items, ms"
            raise BadInput(f"{value!r}: {error}", operation="prepare", place="budget", hint=hint) from error
    if 0 in (limits.tokens, limits.bytes, limits.items):
        hint = "leave the budget out for the limit in context/budget, or give more"
        raise BudgetTooSmall("a budget of 0 holds nothing", operation="prepare", place="budget", hint=hint)
    return limits


def limits_in(text: str, target: Target, place: str) -> Limits:
    """Return the limits of the text of `context/budget`; 0 or nothing means no limit."""
    text = text.strip()
    try:
        value = msgspec.json.decode(text) if text else 0
        if not isinstance(value, (int, dict)) or isinstance(value, bool):
            raise BadConfig("is neither a number nor an object", operation="read budget", place=place, hint=_HINT)
        limits = _shaped({"tokens": value} if isinstance(value, int) else cast(dict[str, Any], value), target)
    except (msgspec.DecodeError, TypeError, ValueError, RecursionError) as error:
        raise BadConfig(str(error), operation="read budget", place=place, hint=_HINT) from error
    return Limits(limits.tokens or None, limits.bytes or None, limits.items or None, limits.ms or None)


_HINT = 'write a number of tokens, or {"tokens": …, "bytes": …, "items": …, "ms": …, "targets": {…}}'


def _shaped(value: dict[str, Any], target: Target) -> Limits:
    found = msgspec.convert(value, _File)
    own = found.targets.get(target, Limits())
    return Limits(*(getattr(own, name) if getattr(own, name) is not None else getattr(found, name) for name in _NAMES))


_NAMES = Limits.__struct_fields__
# Made here, not by the first who needs it: the library does that without a lock, and two threads at once crash it.
_WARM = msgspec.json.Decoder(_File)
