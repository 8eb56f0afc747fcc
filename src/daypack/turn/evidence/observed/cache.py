"""Cache breaks: how much of a call's beginning the provider had to read again, and why, as far as it can be known."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, cast

from msgspec import Struct

from daypack.turn.evidence.observed.record import CacheMark

Cause = Literal["compaction", "model", "tools", "system", "messages", "parameters", "expired", "unknown"]

# A call reads from the cache what the call before it wrote there: everything it sent, up to the last mark. Providers
# round this to blocks, so a small difference is no break.
_LOST_SHARE = 0.05
_LOST_TOKENS = 32
_SHORT_TTL, _LONG_TTL = 300, 3600  # seconds; what providers state


class CacheBreak(Struct, frozen=True, omit_defaults=True):
    """Why a call could not use all of what the call before it left in the cache."""

    causes: tuple[Cause, ...]  # the first that counts, then what else changed
    detail: str = ""
    lost_tokens: int | None = None  # read again; None if nothing was reported


class Side(Struct, frozen=True, kw_only=True):
    """What the cache depends on, for a call; None or empty where it is not known."""

    at: str
    model: str | None = None
    input_tokens: int | None = None
    cached_tokens: int | None = None
    count: int | None = None  # of messages
    shape: str = ""
    params: Mapping[str, Any] = {}
    ttl_seconds: int = _SHORT_TTL


class Change(Struct, frozen=True, kw_only=True):
    """What is known of the way from one call to the next."""

    kept: int | None = None  # messages that both begin with; None if it is not known
    compaction: str | None = None  # between them, what began it; None if there was none
    tools: str = ""  # which were added and removed
    system: bool = False


def find_break(before: Side, after: Side, change: Change) -> CacheBreak | None:
    """Return the break of the cache between two calls; None if there is none, or nothing is known."""
    lost = _lost_tokens(before, after)
    if lost is not None and (lost < _LOST_TOKENS or lost < _LOST_SHARE * (before.input_tokens or 0)):
        return None
    causes = dict(_causes(before, after, change))
    if not causes and lost is not None:
        seconds = _seconds_between(before.at, after.at)
        if seconds is not None and seconds > before.ttl_seconds:
            waited, kept = _duration(seconds), _duration(before.ttl_seconds)
            causes["expired"] = f"{waited} since the last call, kept for {kept}"
        else:
            causes["unknown"] = "nothing that is recorded explains it"
    if not causes:
        return None
    return CacheBreak(tuple(causes), next(iter(causes.values())), lost)


def ttl_of(marks: Sequence[CacheMark]) -> int:
    """Return how long the provider keeps what a call marked, in seconds."""
    return _LONG_TTL if any(mark.value.get("ttl") == "1h" for mark in marks) else _SHORT_TTL


def ttl_of_usage(usage: Mapping[str, Any]) -> int:
    """Return how long the provider keeps what a call wrote, from the usage that it reported."""
    written = usage.get("cache_creation")
    amounts = cast(dict[str, Any], written) if isinstance(written, dict) else dict[str, Any]()
    return _LONG_TTL if amounts.get("ephemeral_1h_input_tokens") else _SHORT_TTL


def _lost_tokens(before: Side, after: Side) -> int | None:
    if before.input_tokens is None or after.cached_tokens is None:
        return None
    return max(0, min(before.input_tokens, after.input_tokens or before.input_tokens) - after.cached_tokens)


def _causes(before: Side, after: Side, change: Change) -> list[tuple[Cause, str]]:
    """Return what changed, in the order in which it counts: a compaction explains the rest, then as providers read."""
    causes: list[tuple[Cause, str]] = []
    if change.compaction is not None:
        causes.append(("compaction", f"compacted ({change.compaction})" if change.compaction else "compacted"))
    if before.model and after.model and before.model != after.model:
        causes.append(("model", f"{before.model} → {after.model}"))
    if change.tools:
        causes.append(("tools", change.tools))
    if change.system:
        causes.append(("system", "the system prompt changed"))
    if change.kept is not None and before.count is not None and change.kept < before.count:
        causes.append(("messages", f"message {change.kept + 1:,} of {before.count:,} changed"))
    if names := _changed_parameters(before.params, after.params):
        causes.append(("parameters", f"{', '.join(names)} changed"))
    return causes


def _changed_parameters(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    if not before or not after:
        return []
    names = sorted({*before, *after} - {"model", "max_tokens", "betas"})
    return [name for name in names if before.get(name) != after.get(name)]


def _seconds_between(before: str, after: str) -> float | None:
    try:
        return (datetime.fromisoformat(after) - datetime.fromisoformat(before)).total_seconds()
    except (ValueError, TypeError):
        return None


def _duration(seconds: float) -> str:
    if seconds < 5400:
        return f"{seconds / 60:,.0f} min"
    return f"{seconds / 3600:,.0f} h" if seconds < 172_800 else f"{seconds / 86_400:,.0f} d"
