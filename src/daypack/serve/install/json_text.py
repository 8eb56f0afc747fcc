"""A value put into a JSON text under two keys, with every other byte left where it is."""

import json
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, cast

_SPACE = " \t\r\n"
_UNIT = "  "
_decoder = json.JSONDecoder()


class _Span(NamedTuple):
    start: int
    stop: int


class _Members(NamedTuple):
    """An object in a text: where the values of its members stand, its two braces, and what its lines begin with."""

    spans: dict[str, _Span]
    start: int
    stop: int
    outside: str
    inside: str


def insert(text: str, keys: tuple[str, str], entry: Mapping[str, Any], unless: Collection[str] = ()) -> str:
    """Return the text with `entry` under the two keys; fields that are already there and not in `entry` stay.

    ValueError: the text is no JSON object, what is there has a field of `unless`, or the result would not say exactly
    what the text said and this.
    """
    outer, inner = keys
    if not text.strip():
        return _dump({outer: {inner: dict(entry)}}, "", _UNIT) + "\n"
    whole = _object(json.loads(text), "the file")
    group = _object(whole.get(outer, {}), outer)
    known = _object(group.get(inner, {}), inner)
    if found := known.keys() & set(unless):
        raise ValueError(f"{inner} has {', '.join(sorted(found))} there")
    wanted = {**known, **entry}
    if known == wanted:
        return text
    changed = _change(text, keys, wanted)
    if json.loads(changed) != {**whole, outer: {**group, inner: wanted}}:
        raise ValueError("a key stands in it twice")
    return changed


def _object(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} is no JSON object")  # noqa: TRY004 — what the file says, not how we were called
    return cast("dict[str, Any]", value)


def _change(text: str, keys: tuple[str, str], wanted: Mapping[str, Any]) -> str:
    outer, inner = keys
    top = _read_members(text, _skip(text, 0), "")
    unit = top.inside
    if outer not in top.spans:
        return _add(text, top, outer, _dump({inner: wanted}, unit, unit))
    group = _read_members(text, top.spans[outer].start, unit)
    value = _dump(wanted, group.inside, unit)
    if inner not in group.spans:
        return _add(text, group, inner, value)
    span = group.spans[inner]
    return text[: span.start] + value + text[span.stop :]


def _add(text: str, members: _Members, key: str, value: str) -> str:
    """Return the text with one member more, as the last of an object."""
    member = f"\n{members.inside}{json.dumps(key)}: {value}"
    if members.spans:
        last = max(span.stop for span in members.spans.values())
        return f"{text[:last]},{member}{text[last:]}"
    return f"{text[: members.start + 1]}{member}\n{members.outside}{text[members.stop :]}"


def _read_members(text: str, at: int, outside: str) -> _Members:
    spans: dict[str, _Span] = {}
    here = _skip(text, at + 1)
    before = text[at + 1 : here]
    inside = before.rpartition("\n")[2] if "\n" in before and text[here] != "}" else outside * 2 or _UNIT
    while text[here] != "}":
        key, here = _decoder.raw_decode(text, here)
        start = _skip(text, _skip(text, here) + 1)  # behind the colon
        _, stop = _decoder.raw_decode(text, start)
        spans[key] = _Span(start, stop)
        here = _skip(text, stop)
        if text[here] == ",":
            here = _skip(text, here + 1)
    return _Members(spans, at, here, outside, inside)


def _skip(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at


def _dump(value: Mapping[str, Any], indent: str, unit: str) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", f"\n{indent}")
