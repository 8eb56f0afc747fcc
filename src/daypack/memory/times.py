"""Times of a memory: milliseconds since 1970 where they are compared, RFC 3339 in UTC where they are shown."""

import time
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

_DAY_MS = 86_400_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_FIRST = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // _MILLISECOND
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND


def now_ms() -> int:
    """Return the time now."""
    return time.time_ns() // 1_000_000


def moment_of(text: str | None) -> int | None:
    """Return an ISO 8601 time as milliseconds since 1970, None for anything else; without a zone it is UTC."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except (ValueError, TypeError):
        return None
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MILLISECOND


def end_of(text: str) -> int | None:
    """Return the last millisecond of a time: of a mere date, the end of its day."""
    try:
        date.fromisoformat(text)
    except ValueError:
        return moment_of(text)
    return None if (moment := moment_of(text)) is None else moment + _DAY_MS - 1


def time_of(moment: int) -> str:
    """Return milliseconds since 1970 as RFC 3339 in UTC; what a zone has put before year 1 or after 9999, as these."""
    seconds, rest = divmod(min(max(moment, _FIRST), _LAST), 1000)
    return f"{_second(seconds)}.{rest:03}Z"


@lru_cache(1024)
def _second(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()[:19]  # strftime writes the year 999 with three digits
