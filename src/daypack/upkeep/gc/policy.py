"""The garbage collection policy: how long derived files are kept, and whether a session may be deleted.

    context/gc.policy   pack_ttl=1d
                        swap_ttl=30d
                        dedup_min_refs=1
                        keep_messages=1
                        keep_events=1

One `key=value` per line; `#` begins a comment. A missing key has the value above. The first `gc --apply` after a
change records the file in a `gc.policy` event, so that deleting `context/` does not lose it.
"""

import os
import re
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from daypack.errors import BadConfig, DaypackError
from daypack.files import atomic
from daypack.history.draft import draft_event
from daypack.history.session import History
from daypack.types.digest import digest_bytes
from daypack.types.history import Event

POLICY = "gc.policy"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_DURATION = re.compile(r"([0-9]{1,9})([smhdw])")
_NUMBER = re.compile(r"[0-9]{1,9}")
_FIELDS = {
    "pack_ttl": "pack_ttl_seconds",
    "swap_ttl": "swap_ttl_seconds",
    "dedup_min_refs": "dedup_min_refs",
    "keep_messages": "keep_messages",
    "keep_events": "keep_events",
}
_DURATION_HINT = "write a number and s, m, h, d or w, as in 30d"
_NUMBER_HINT = "write a number of 0 or more"
_SWITCH_HINT = "write 1 or 0: it is a switch, not a count, and 0 by itself deletes nothing"


class Policy(Struct, frozen=True):
    """How long files are kept. `keep_*` delete nothing: both at 0 allow `gc SESSION --delete` without --force."""

    pack_ttl_seconds: int = 86400
    swap_ttl_seconds: int = 30 * 86400
    dedup_min_refs: int = 1
    keep_messages: bool = True
    keep_events: bool = True

    @property
    def allows_deletion(self) -> bool:
        """True if the session may be deleted by name."""
        return not self.keep_messages and not self.keep_events


def parse_policy(text: str, place: str = POLICY) -> Policy:
    """Parse a policy; an unknown key or a bad value raises BadConfig with its line number."""
    settings: dict[str, Any] = {}
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        setting = line.partition("#")[0].strip()
        if not setting:
            continue
        key, equals, value = (part.strip() for part in setting.partition("="))
        where = f"{place}, line {number}"
        if not equals:
            raise _bad(f"{setting!r} is not key=value", where, f"write one of {_keys()}, '=' and a value")
        field = _FIELDS.get(key)
        if field is None:
            raise _bad(f"unknown key {key!r}", where, f"use one of {_keys()}, or remove the line")
        if field in settings:
            raise _bad(f"{key} is set twice", where, "remove one of the two lines")
        settings[field] = _value(key, value, where)
    return Policy(**settings)


def format_policy(policy: Policy) -> str:
    """Return the text of a policy, one key per line."""
    return (
        f"pack_ttl={format_duration(policy.pack_ttl_seconds)}\n"
        f"swap_ttl={format_duration(policy.swap_ttl_seconds)}\n"
        f"dedup_min_refs={policy.dedup_min_refs}\n"
        f"keep_messages={int(policy.keep_messages)}\n"
        f"keep_events={int(policy.keep_events)}\n"
    )


def format_duration(seconds: int) -> str:
    """Return a duration in days, or in the largest smaller unit that divides it."""
    for unit in ("d", "h", "m"):
        if seconds % _UNITS[unit] == 0:
            return f"{seconds // _UNITS[unit]}{unit}"
    return f"{seconds}s"


def read_policy(history: History) -> Policy:
    """Return the policy of a session: the file, else the newest recorded policy, else the default."""
    data = atomic.read(_path(history))
    if data is None:
        data = recorded_policy(history, history.events.records())
    return Policy() if data is None else parse_policy(_text(data, _path(history)), _path(history))


def recorded_policy(history: History, events: Iterable[Event]) -> bytes | None:
    """Return the newest policy recorded in events, None if there is none."""
    newest = None
    for event in events:
        if event.type == POLICY:
            newest = event
    if newest is None:
        return None
    try:
        return history.captured(newest.data)
    except (DaypackError, KeyError, TypeError, AttributeError):
        return None  # written by another program, or its blob is missing, which the plan reports


def record_policy(history: History, recorded: bytes | None) -> Event | None:
    """Record the policy file in an event if it differs from `recorded`, the newest recorded text. Requires the lock."""
    data = atomic.read(_path(history))
    if data is None or (recorded is not None and digest_bytes(data) == digest_bytes(recorded)):
        return None
    _text(data, _path(history))
    return history.append_event(draft_event(POLICY, history.capture(data)))


def restore_policy(history: History, events: Iterable[Event]) -> bool:
    """Write a deleted policy file again from its event; return True if a policy is recorded."""
    data = recorded_policy(history, events)
    if data is not None and not os.path.lexists(_path(history)):
        atomic.make_folders(history.layout.context)
        atomic.replace(_path(history), data)
    return data is not None


def _path(history: History) -> str:
    return history.layout.derived("gc_policy")


def _text(data: bytes, place: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise _bad("is not UTF-8 text", place, "save it as UTF-8, or remove it to use the defaults") from error


def _value(key: str, value: str, where: str) -> int | bool:
    if key.endswith("_ttl"):
        if match := _DURATION.fullmatch(value):
            return int(match[1]) * _UNITS[match[2]]
        raise _bad(f"invalid {key}: {value!r}", where, _DURATION_HINT)
    if key.startswith("keep_"):
        if value in ("0", "1"):
            return value == "1"
        raise _bad(f"invalid {key}: {value!r}", where, _SWITCH_HINT)
    if _NUMBER.fullmatch(value):
        return int(value)
    raise _bad(f"invalid {key}: {value!r}", where, _NUMBER_HINT)


def _keys() -> str:
    return ", ".join(_FIELDS)


def _bad(problem: str, place: str, hint: str) -> BadConfig:
    return BadConfig(problem, operation="read policy", place=place, hint=hint)
