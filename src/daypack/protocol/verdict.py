"""The verdict on JSON: what `JSON.parse` would say of a text, and what is refused here beyond that.

Beyond: a key that comes twice, a number that becomes Infinity, more than 64 levels, more than 4 Mi characters.
"""

import json
import re
from math import isinf
from typing import Any, NamedTuple, cast

MAX_DEPTH = 64
MAX_CHARS = 4 << 20
_SPACE = re.compile(r"[ \t\n\r]*")  # what JSON calls white space, and nothing else
_HALVES = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_SAFE_DIGITS = 18


class Verdict(NamedTuple):
    """A value and where it ends, or why there is none."""

    value: object = None
    end: int = -1
    problem: str = ""  # why JSON.parse refuses it
    refused: str = ""  # what is refused here in any case, also where JSON.parse takes it
    mended: bool = False  # it held half characters, which no UTF-8 can spell


class _Constant(ValueError):
    """NaN, Infinity or -Infinity."""


class _Objection(Exception):
    """Something JSON.parse takes."""


def skip_space(text: str, at: int = 0) -> int:
    """Return where the white space that begins at `at` ends."""
    found = _SPACE.match(text, at)
    return found.end() if found else at


def judge(text: str) -> tuple[object, str]:
    """Return the value of a whole text, or why `JSON.parse` would refuse it."""
    verdict = scan(text, skip_space(text))
    if verdict.problem:
        return None, verdict.problem
    if verdict.end >= 0 and skip_space(text, verdict.end) < len(text):
        return None, f"something follows the value at {_place(text, verdict.end)}"
    return verdict.value, ""


def scan(text: str, at: int, max_chars: int = MAX_CHARS) -> Verdict:
    """Read the one value that begins at `at`; what follows it is not looked at."""
    try:
        verdict = _decode(_STRICT, text, at)
    except _Objection as objection:
        verdict = _decode(_LENIENT, text, at)
        return verdict if verdict.end < 0 else Verdict(None, verdict.end, refused=str(objection))
    return verdict if verdict.end < 0 else _weigh(text, at, verdict, max_chars)


def _decode(decoder: json.JSONDecoder, text: str, at: int) -> Verdict:
    try:
        return Verdict(*decoder.raw_decode(text, at))
    except _Constant as error:
        return _never(error)
    except json.JSONDecodeError as error:
        return Verdict(problem=f"{error.msg.removesuffix(' at')} at {_place(text, error.pos)}")
    except RecursionError:
        return Verdict(refused=_TOO_DEEP)


def _never(constant: _Constant) -> Verdict:
    problem = f"{constant} is no JSON"
    return Verdict(problem=problem, refused=problem)


def _weigh(text: str, at: int, verdict: Verdict, max_chars: int) -> Verdict:
    end = verdict.end
    if end - at > max_chars:
        return Verdict(None, end, refused=f"it is larger than {max_chars >> 20} Mi characters")
    if text.count("{", at, end) + text.count("[", at, end) > MAX_DEPTH and is_deep(verdict.value):
        return Verdict(None, end, refused=_TOO_DEEP)
    if (text.find("\\u", at, end) >= 0 or not _is_spelled(text)) and _HALVES.search(text, at, end):
        whole = well_formed(verdict.value)
        return Verdict(whole, end, mended=whole != verdict.value)
    return verdict


def _is_spelled(text: str) -> bool:
    """Whether a text can be written as UTF-8: far faster to try than to look for what cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_deep(value: object, most: int = MAX_DEPTH) -> bool:
    """Return True if a JSON value has more than that many levels of objects and lists."""
    level = [value]
    for _ in range(most):
        level = [inner for outer in level for inner in _inside(outer) if isinstance(inner, (dict, list))]
        if not level:
            return False
    return True


def _inside(value: object) -> Any:  # noqa: ANN401 — JSON
    return cast(dict[str, Any], value).values() if isinstance(value, dict) else value


def well_formed(value: object) -> Any:  # noqa: ANN401 — JSON
    """Return a value whose strings hold no half characters: each became U+FFFD, two that belong together one."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if _HALVES.search(value) else value
    if isinstance(value, dict):
        known = cast(dict[str, Any], value)
        return {well_formed(key): well_formed(item) for key, item in known.items()}
    if isinstance(value, list):
        return [well_formed(item) for item in cast(list[Any], value)]
    return value


def _place(text: str, at: int) -> str:
    return f"line {text.count(chr(10), 0, at) + 1} column {at - text.rfind(chr(10), 0, at)}"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise _Objection(f"the key {twice!r} comes twice")
    return made


def _fraction(text: str) -> float:
    number = float(text)
    if isinf(number):
        raise _Objection(f"{text[:40]} is too large for a number")
    return number


def _integer(text: str) -> int | float:
    """Return a whole number; beyond 64 bits it is what JSON.parse makes of it."""
    if len(text) <= _SAFE_DIGITS or (len(text) <= 20 and -(1 << 63) <= int(text) < 1 << 63):
        return int(text)
    return _fraction(text)


def _refuse(name: str) -> object:
    raise _Constant(name)


_TOO_DEEP = f"it is nested deeper than {MAX_DEPTH} levels"
_STRICT = json.JSONDecoder(object_pairs_hook=_once, parse_float=_fraction, parse_int=_integer, parse_constant=_refuse)
_LENIENT = json.JSONDecoder(parse_int=float, parse_constant=_refuse)
