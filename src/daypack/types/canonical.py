"""The canonical form of a JSON value (RFC 8785), so that every runtime computes the same digest of it.

`{"b": 1.0, "a": [1e-7]}` is written `{"a":[1e-7],"b":1}`: keys sorted by UTF-16 code units, no white space, numbers as
ECMAScript prints a double, UTF-8.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import cast

import msgspec

from daypack.types.digest import digest_bytes

_EXACT = 1 << 53  # a double holds every whole number up to this one


def digest_json(value: object) -> str:
    """Return the digest of a JSON value's canonical form."""
    return digest_bytes(canonical(value))


def canonical(value: object) -> bytes:
    """Return the canonical form of a JSON value; raise ValueError for what JSON cannot express."""
    parts: list[str] = []
    _write(value, parts)
    return "".join(parts).encode()


def _write(value: object, parts: list[str]) -> None:
    if isinstance(value, str):
        parts.append(msgspec.json.encode(value).decode())
    elif value is None or isinstance(value, bool):
        parts.append("null" if value is None else "true" if value else "false")
    elif isinstance(value, (int, float)):
        parts.append(_number(value))
    elif isinstance(value, Mapping):
        _write_object(cast("Mapping[str, object]", value), parts)
    elif isinstance(value, (list, tuple)):
        _write_array(cast("Sequence[object]", value), parts)
    else:
        raise ValueError(f"{type(value).__name__} is not a JSON value")


def _write_object(value: Mapping[str, object], parts: list[str]) -> None:
    # Only keys beyond ASCII can be in another order as UTF-16 than as code points.
    names = sorted(value) if all(map(str.isascii, value)) else sorted(value, key=lambda name: name.encode("utf-16-be"))
    separator = "{"
    for name in names:
        parts += (separator, msgspec.json.encode(name).decode(), ":")
        _write(value[name], parts)
        separator = ","
    parts.append("}" if names else "{}")


def _write_array(values: Sequence[object], parts: list[str]) -> None:
    separator = "["
    for value in values:
        parts.append(separator)
        _write(value, parts)
        separator = ","
    parts.append("]" if values else "[]")


def _number(value: float) -> str:
    """Return a number as ECMAScript prints it: the fewest digits that read back as the same double."""
    if isinstance(value, int) and abs(value) <= _EXACT:
        return str(value)
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if not isfinite(number):
        raise ValueError("a number is too large for a double")
    if number == 0:
        return "0"
    mantissa, _, power = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    padded = whole + fraction
    digits = padded.lstrip("0")
    point = len(whole) + int(power or 0) - (len(padded) - len(digits))  # where the decimal point is in the digits
    digits = digits.rstrip("0")
    return f"{'-' if number < 0 else ''}{_decimal(digits, point)}"


def _decimal(digits: str, point: int) -> str:
    if len(digits) <= point <= 21:
        return digits.ljust(point, "0")
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{point - 1:+d}"
