"""Set and remove values in a JSON text under nested keys, leaving every other byte unchanged.

With `comments`, the text may have comments and trailing commas, as the settings of several programs do.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

_SPACE = " \t\r\n"
_INDENT = "  "
_decoder = json.JSONDecoder()
_STRING = r'"(?:[^"\\]|\\.)*"'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)


class _Member(NamedTuple):
    """A member of an object: where its key begins, and where its value begins and ends."""

    key: int
    start: int
    stop: int


class _Object(NamedTuple):
    """An object in a text: its members, the positions of its braces, and two indentations."""

    members: dict[str, _Member]
    start: int
    stop: int
    outer_indent: str
    inner_indent: str


def parse(text: str, *, comments: bool = False) -> dict[str, Any]:
    """Return the object of a text; {} if it is empty. Raises ValueError if it is not a JSON object."""
    bare = _bare(text, comments=comments)
    return _object(json.loads(bare), "the file") if bare.strip() else {}


def look_up(document: dict[str, Any], keys: Sequence[str]) -> object:
    """Return the value under nested keys; None if there is none."""
    value: object = document
    for key in keys:
        value = cast("dict[str, object]", value).get(key) if isinstance(value, dict) else None
    return value


def insert(text: str, keys: Sequence[str], value: object, *, comments: bool = False) -> str:
    """Return the text with `value` under nested keys; missing objects are made.

    Raises ValueError if the text is not a JSON object, if a value on the way is no object, or if the edited text does
    not parse to the expected value.
    """
    document = parse(text, comments=comments)
    wanted = _with(document, keys, value)
    if wanted == document:
        return text
    if not _bare(text, comments=comments).strip():
        return text + _dump(wanted, "", _INDENT, _newline(text)) + _newline(text)
    changed = _insert(text, _bare(text, comments=comments), keys, value)
    return _verified(changed, wanted, comments=comments)


def remove(text: str, keys: Sequence[str], *, pruned: int = 0, comments: bool = False) -> str:
    """Return the text without the value under nested keys, and without up to `pruned` objects that this empties.

    Raises ValueError as `insert` does; a text without the value is returned unchanged.
    """
    document = parse(text, comments=comments)
    if keys[-1] not in _object(look_up(document, keys[:-1]) or {}, "the file"):
        return text
    emptied = list(keys)
    while pruned and len(emptied) > 1 and look_up(document, emptied[:-1]) == {emptied[-1]: look_up(document, emptied)}:
        emptied.pop()
        pruned -= 1
    changed = _remove(text, _uncommented(text, comments=comments), emptied)
    return _verified(changed, _without(document, emptied), comments=comments)


def _bare(text: str, *, comments: bool) -> str:
    """Return the text with a byte order mark, comments and trailing commas replaced by as many spaces."""
    commas = _uncommented(text, comments=comments)
    return _blank(_TRAILING_COMMA, commas) if comments else commas


def _uncommented(text: str, *, comments: bool) -> str:
    bare = " " + text[1:] if text.startswith("\ufeff") else text
    return _blank(_COMMENT, bare) if comments else bare


def _blank(pattern: re.Pattern[str], text: str) -> str:
    """Return the text with spaces for what a pattern finds, except for strings."""
    return pattern.sub(lambda match: match[0] if match[0][0] == '"' else re.sub(r"[^\r\n]", " ", match[0]), text)


def _verified(changed: str, wanted: dict[str, Any], *, comments: bool) -> str:
    try:
        found = parse(changed, comments=comments)
    except ValueError:
        found = None
    if found != wanted:
        raise ValueError("a key appears twice")
    return changed


def _object(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} is not a JSON object")  # noqa: TRY004 — wrong content, not a wrong argument
    return cast("dict[str, Any]", value)


def _with(document: dict[str, Any], keys: Sequence[str], value: object) -> dict[str, Any]:
    if len(keys) > 1:
        value = _with(_object(document.get(keys[0], {}), keys[0]), keys[1:], value)
    return {**document, keys[0]: value}


def _without(document: dict[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    if len(keys) > 1:
        return {**document, keys[0]: _without(document[keys[0]], keys[1:])}
    return {key: value for key, value in document.items() if key != keys[0]}


def _insert(text: str, bare: str, keys: Sequence[str], value: object) -> str:
    here = _read_object(bare, _skip_space(bare, 0), "", _INDENT)
    unit = here.inner_indent
    for depth, key in enumerate(keys):
        member = here.members.get(key)
        if member is None:
            for missing in reversed(keys[depth + 1 :]):
                value = {missing: value}
            return _add(text, bare, here, (key, _dump(value, here.inner_indent, unit, _newline(text))))
        if depth == len(keys) - 1:
            written = _dump(value, here.inner_indent, unit, _newline(text))
            return text[: member.start] + written + text[member.stop :]
        here = _read_object(bare, member.start, here.inner_indent, unit)
    raise ValueError("no key")


def _add(text: str, bare: str, here: _Object, member: tuple[str, str]) -> str:
    """Return the text with a key and its written value appended to an object; comments stay on their lines."""
    key, value = member
    line = f"{_newline(text)}{here.inner_indent}{json.dumps(key, ensure_ascii=False)}: {value}"
    if not here.members:
        kept = text[here.start + 1 : here.stop].rstrip()  # comments
        return f"{text[: here.start + 1]}{kept}{line}{_newline(text)}{here.outer_indent}{text[here.stop :]}"
    last = max(each.stop for each in here.members.values())
    line_end = _before_space(bare, bare.find("\n", last), "\r")
    rest = text[last:line_end].strip(_SPACE)
    if line_end < last or line_end > here.stop or bare[last:line_end].strip() or rest in ("", ","):
        return f"{text[:last]},{line}{text[last:]}"
    comma = "" if rest.startswith(",") else ","
    return f"{text[:last]}{comma}{text[last:line_end]}{line}{text[line_end:]}"


def _remove(text: str, commas: str, keys: Sequence[str]) -> str:
    """Return the text without a member; `commas` is the text without comments, but with trailing commas."""
    bare = _blank(_TRAILING_COMMA, commas)
    here = _read_object(bare, _skip_space(bare, 0), "", _INDENT)
    for key in keys[:-1]:
        here = _read_object(bare, here.members[key].start, here.inner_indent, _INDENT)
    member = here.members[keys[-1]]
    start = _before_space(text, member.key)
    after = _skip_space(commas, member.stop)
    if commas[after] == ",":
        return text[:start] + text[member.stop : after].strip(_SPACE) + text[after + 1 :]
    previous = max((other.stop for other in here.members.values() if other.stop <= start), default=None)
    if previous is None:
        inside = text[here.start + 1 : start] + text[member.stop : here.stop]
        start, stop = (start, member.stop) if inside.strip() else (here.start + 1, here.stop)
        return text[:start] + text[stop:]
    comma = commas.index(",", previous)
    return text[:comma] + text[comma + 1 : start] + text[member.stop :]


def _read_object(bare: str, at: int, outer_indent: str, unit: str) -> _Object:
    members: dict[str, _Member] = {}
    position = _skip_space(bare, at + 1)
    space = bare[at + 1 : position]
    indented = "\n" in space and bare[position] != "}"
    inner_indent = space.rpartition("\n")[2] if indented else outer_indent + unit
    while bare[position] != "}":
        begin = position
        key, position = _decoder.raw_decode(bare, position)
        start = _skip_space(bare, _skip_space(bare, position) + 1)  # after the colon
        _, stop = _decoder.raw_decode(bare, start)
        members[key] = _Member(begin, start, stop)
        position = _skip_space(bare, stop)
        if bare[position] == ",":
            position = _skip_space(bare, position + 1)
    return _Object(members, at, position, outer_indent, inner_indent)


def _before_space(text: str, at: int, space: str = _SPACE) -> int:
    while at > 0 and text[at - 1] in space:
        at -= 1
    return at


def _skip_space(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _dump(value: object, indent: str, unit: str, newline: str) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", f"{newline}{indent}")
