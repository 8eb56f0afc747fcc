"""Insert a value into a JSON text under two nested keys, leaving every other byte unchanged."""

import json
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, cast

_SPACE = " \t\r\n"
_INDENT = "  "
_decoder = json.JSONDecoder()


class _Span(NamedTuple):
    start: int
    stop: int


class _Members(NamedTuple):
    """An object in a text: the spans of its values, the positions of its braces, and two indentations."""

    spans: dict[str, _Span]
    start: int
    stop: int
    outer_indent: str
    inner_indent: str


def insert(text: str, keys: tuple[str, str], entry: Mapping[str, Any], forbidden: Collection[str] = ()) -> str:
    """Return the text with `entry` under the two keys; existing fields that `entry` lacks are kept.

    Raises ValueError if the text is not a JSON object, if the existing value has a `forbidden` field, or if the edited
    text does not parse to the expected value.
    """
    outer, inner = keys
    if not text.strip():
        return _dump({outer: {inner: dict(entry)}}, "", _INDENT) + "\n"
    document = _object(json.loads(text), "the file")
    group = _object(document.get(outer, {}), outer)
    existing = _object(group.get(inner, {}), inner)
    if conflicts := existing.keys() & set(forbidden):
        raise ValueError(f"{inner} already has {', '.join(sorted(conflicts))}")
    wanted = {**existing, **entry}
    if existing == wanted:
        return text
    changed = _change(text, keys, wanted)
    if json.loads(changed) != {**document, outer: {**group, inner: wanted}}:
        raise ValueError("a key appears twice")
    return changed


def _object(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} is not a JSON object")  # noqa: TRY004 — wrong content, not a wrong argument
    return cast("dict[str, Any]", value)


def _change(text: str, keys: tuple[str, str], wanted: Mapping[str, Any]) -> str:
    outer, inner = keys
    top = _read_members(text, _skip_space(text, 0), "")
    unit = top.inner_indent
    if outer not in top.spans:
        return _add(text, top, outer, _dump({inner: wanted}, unit, unit))
    group = _read_members(text, top.spans[outer].start, unit)
    value = _dump(wanted, group.inner_indent, unit)
    if inner not in group.spans:
        return _add(text, group, inner, value)
    span = group.spans[inner]
    return text[: span.start] + value + text[span.stop :]


def _add(text: str, members: _Members, key: str, value: str) -> str:
    """Return the text with a member appended to an object."""
    member = f"\n{members.inner_indent}{json.dumps(key)}: {value}"
    if members.spans:
        last = max(span.stop for span in members.spans.values())
        return f"{text[:last]},{member}{text[last:]}"
    return f"{text[: members.start + 1]}{member}\n{members.outer_indent}{text[members.stop :]}"


def _read_members(text: str, at: int, outer_indent: str) -> _Members:
    spans: dict[str, _Span] = {}
    position = _skip_space(text, at + 1)
    space = text[at + 1 : position]
    indented = "\n" in space and text[position] != "}"
    inner_indent = space.rpartition("\n")[2] if indented else outer_indent * 2 or _INDENT
    while text[position] != "}":
        key, position = _decoder.raw_decode(text, position)
        start = _skip_space(text, _skip_space(text, position) + 1)  # after the colon
        _, stop = _decoder.raw_decode(text, start)
        spans[key] = _Span(start, stop)
        position = _skip_space(text, stop)
        if text[position] == ",":
            position = _skip_space(text, position + 1)
    return _Members(spans, at, position, outer_indent, inner_indent)


def _skip_space(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at


def _dump(value: Mapping[str, Any], indent: str, unit: str) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", f"\n{indent}")
