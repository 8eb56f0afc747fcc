"""Redaction of records and other values: every text in them, except what identifies a record."""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from daypack.text.redact.redact import identifies, like, redact, redact_value

_Record = TypeVar("_Record", bound=Struct)


def redact_record(record: _Record, max_chars: Mapping[str, int] | None = None) -> _Record:
    """Return a record without secrets in its texts, also in the records it contains; ids, cursors and times stay.

    A marker can be longer than the secret was: `max_chars` names the fields whose texts are cut to a limit then.
    """
    limits = max_chars or {}
    changes = {
        name: shown[: limits.get(name)] if isinstance(shown, str) else shown
        for name in record.__struct_fields__
        if not identifies(name)
        if (value := getattr(record, name)) and (shown := redact_any(value, limits)) is not value
    }
    return replace(record, **changes) if changes else record


def redact_any(value: Any, limits: Mapping[str, int] | None = None) -> Any:  # noqa: ANN401 — of any type
    """Return a value without secrets in its texts; the same object if there are none."""
    if isinstance(value, str):
        return redact(value).text
    if isinstance(value, Struct):
        return redact_record(value, limits)
    if isinstance(value, dict | list):
        shown, kinds = redact_value(value)
        return _redact_keys(shown) if kinds or _has_secret_keys(value) else cast("Any", value)
    if isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        shown = [redact_any(item, limits) for item in items]
        return items if all(new is old for new, old in zip(shown, items, strict=True)) else like(items, shown)
    return value


def _has_secret_keys(value: Any) -> bool:  # noqa: ANN401
    if isinstance(value, list | tuple):
        return any(map(_has_secret_keys, cast("list[Any]", value)))
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return any((isinstance(key, str) and redact(key).kinds) or _has_secret_keys(item) for key, item in items)
    if isinstance(value, Struct):
        return any(_has_secret_keys(getattr(value, name)) for name in value.__struct_fields__)
    return False


def _redact_keys(value: Any) -> Any:  # noqa: ANN401
    """Return a value without secrets in the names of its members; those that become the same are numbered."""
    if isinstance(value, list):
        return [_redact_keys(item) for item in cast("list[Any]", value)]
    if isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        return like(items, list(map(_redact_keys, items)))
    if isinstance(value, Struct):
        return replace(value, **{name: _redact_keys(getattr(value, name)) for name in value.__struct_fields__})
    if not isinstance(value, dict):
        return value
    shown: dict[Any, Any] = {}
    for key, item in cast("dict[Any, Any]", value).items():
        name = first = redact(key).text if isinstance(key, str) else key
        while name in shown:
            name = f"{first} ({len(shown) + 1})"
        shown[name] = _redact_keys(item)
    return shown
