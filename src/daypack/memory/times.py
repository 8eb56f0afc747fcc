"""Times of a memory: milliseconds since 1970 to compare, RFC 3339 in UTC to show."""

import time
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

_DAY_MS = 86_400_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_FIRST = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // _MILLISECOND
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND


def now_ms() -> int:
    """Return the current time."""
    return time.time_ns() // 1_000_000


def parse_time(text: str | None) -> int | None:
    """Return an ISO 8601 time as milliseconds since 1970 (UTC if it has no zone); None for any other text."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except (ValueError, TypeError):
        return None
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MILLISECOND


def parse_end_time(text: str) -> int | None:
    """Return a time as `parse_time` does, but for a date without a time the last millisecond of that day."""
    try:
        date.fromisoformat(text)
    except ValueError:
        return parse_time(text)
    return None if (moment := parse_time(text)) is None else moment + _DAY_MS - 1


def format_time(moment: int) -> str:
    """Return milliseconds since 1970 as RFC 3339 in UTC; times outside the years 1 to 9999 are clipped to them."""
    seconds, rest = divmod(min(max(moment, _FIRST), _LAST), 1000)
    return f"{_second(seconds)}.{rest:03}Z"


@lru_cache(1024)
def _second(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()[:19]  # strftime writes the year 999 with three digits
