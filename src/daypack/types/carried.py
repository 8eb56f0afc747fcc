"""Keys of a snapshot that the protocol does not define: they are carried on, and each turn hands them back.

{"version":2.3,"runtime":{…},"capabilities":[…],"mood":"calm","plan":{"step":2}}

A key that is left out stays, null removes it. What does not fit is not carried, and its last value stays.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec

from daypack.types.kinds import TIERS
from daypack.types.snapshot import Snapshot

MAX_KEYS = 16
MAX_KEY_CHARS = 64
MAX_VALUE_BYTES = 512
MAX_BYTES = 2048  # of all keys and values: they are sent with every turn that asks for a snapshot
_DEFINED = frozenset({*TIERS, *Snapshot.__struct_fields__} - {"extra"})
# What a terminal or a reader may act on instead of showing it.
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]")


def carry(former: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the keys that are carried on after a snapshot with these, and why others are not."""
    carried, refused = dict(former), dict[str, str]()
    for name, value in given.items():
        key = name.strip()
        if value is None:
            carried.pop(key, None)
            continue
        shown = _texts(value, lambda text: UNSEEN.sub("", text))
        problem = _problem(key, shown, {other: known for other, known in carried.items() if other != key})
        if problem:
            refused[name] = problem
        else:
            carried[key] = shown
    return carried, refused


def _problem(key: str, value: object, others: Mapping[str, Any]) -> str:
    if key in _DEFINED:
        return "the protocol defines this key"
    if not key or len(key) > MAX_KEY_CHARS or UNSEEN.search(key):
        return f"a key has 1 to {MAX_KEY_CHARS} visible characters"
    size = len(msgspec.json.encode(value))
    if size > MAX_VALUE_BYTES:
        return f"it has {size:,} bytes, at most {MAX_VALUE_BYTES} are carried"
    if len(others) >= MAX_KEYS:
        return f"{MAX_KEYS} other keys are carried already"
    if len(msgspec.json.encode({**others, key: value})) > MAX_BYTES:
        return f"all keys together may have {MAX_BYTES:,} bytes"
    return ""


def cleared(carried: Mapping[str, Any], clear: Callable[[str], str]) -> dict[str, Any]:
    """Return carried keys and values with every text cleared of secrets."""
    return cast(dict[str, Any], _texts(dict(carried), clear))


def _texts(value: object, change: Callable[[str], str]) -> Any:  # noqa: ANN401 — JSON
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_texts(item, change) for item in cast(list[object], value)]
    if isinstance(value, dict):
        fields = cast(dict[str, object], value)
        return {change(key): _texts(item, change) for key, item in fields.items()}
    return value
