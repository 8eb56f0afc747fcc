"""Set and remove tables in a TOML text, leaving every other byte unchanged."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, cast

_MISSING = object()
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def parse(text: str) -> dict[str, Any]:
    """Return the document of a text. Raises ValueError if it is not TOML."""
    return tomllib.loads(text.removeprefix("\ufeff"))


def look_up(document: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any] | None:
    """Return the table under nested keys; None if there is none. Raises ValueError if the value is no table."""
    value: object = document
    for key in keys:
        if not isinstance(value, dict):
            raise ValueError(f"{'.'.join(keys)} is not a table")  # noqa: TRY004 — wrong content, not a wrong argument
        value = cast("dict[str, object]", value).get(key, _MISSING)
        if value is _MISSING:
            return None
    if not isinstance(value, dict):
        raise ValueError(f"{'.'.join(keys)} is not a table")  # noqa: TRY004
    return cast("dict[str, Any]", value)


def insert(text: str, keys: Sequence[str], fields: Mapping[str, Any]) -> str:
    """Return the text with these fields in the table `[a.b]`; an existing table keeps its other fields.

    Raises ValueError if the text is not TOML or if the edited text does not parse to the expected value.
    """
    document = parse(text)
    existing = look_up(document, keys)
    if existing is None:
        changed = _append(text, keys, fields)
    else:
        changes = {key: value for key, value in fields.items() if existing.get(key, _MISSING) != value}
        if not changes:
            return text
        changed = _edit(text, keys, changes)
    return _verified(changed, _with(document, keys, {**(existing or {}), **fields}), keys)


def remove(text: str, keys: Sequence[str]) -> str:
    """Return the text without the table `[a.b]` and the tables in it, and without the empty line after or before them.

    Comments after its last field stay: they are about what follows. Raises ValueError as `insert` does; a text without
    the table is returned unchanged.
    """
    document = parse(text)
    if look_up(document, keys) is None:
        return text
    lines = text.splitlines(keepends=True)
    kept: list[str] = []
    after: list[str] = []  # comments, and what is between them, since the last field of a removed table
    removing = False
    for line in lines:
        start = line.lstrip()[:1]
        if start == "[":
            kept += after
            after = []
            removing = _header_keys(line)[: len(keys)] == tuple(keys)
        if not removing:
            kept.append(line)
        elif start == "#" or (after and not start):
            after.append(line)
        else:
            after = []
    if after:
        kept += after
    elif removing and kept and not kept[-1].strip():
        kept.pop()
    return _verified("".join(kept), _without(document, keys), keys)


def _append(text: str, keys: Sequence[str], fields: Mapping[str, Any]) -> str:
    newline = _newline(text)
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    lines = [f"[{'.'.join(map(_key, keys))}]", *(_line(key, value) for key, value in fields.items())]
    return text + gap + newline.join(lines) + newline


def _edit(text: str, keys: Sequence[str], changes: Mapping[str, Any]) -> str:
    newline = _newline(text)
    lines = text.splitlines(keepends=True)
    headers = (at for at, line in enumerate(lines) if line.lstrip().startswith("["))
    at = next((at for at in headers if _header_keys(lines[at]) == tuple(keys)), None)
    if at is None:
        raise ValueError(f"no line [{'.'.join(keys)}]")
    stop = next((n for n in range(at + 1, len(lines)) if lines[n].lstrip().startswith("[")), len(lines))
    missing = dict(changes)
    lines[at] = lines[at].rstrip("\r\n") + newline
    for number in range(at + 1, stop):
        key = lines[number].partition("=")[0].strip()
        if key in missing:
            lines[number] = f"{_line(key, missing.pop(key))}{newline}"
    lines[at + 1 : at + 1] = [f"{_line(key, value)}{newline}" for key, value in missing.items()]
    return "".join(lines)


def _header_keys(line: str) -> tuple[str, ...]:
    """Return the keys of a line such as [a."b c"]; empty if it is no such line."""
    try:
        value: object = tomllib.loads(line)
    except ValueError:
        return ()
    keys: list[str] = []
    while isinstance(value, dict) and len(cast("dict[str, object]", value)) == 1:
        [(key, value)] = cast("dict[str, object]", value).items()
        keys.append(key)
    return tuple(keys)


def _verified(changed: str, wanted: Mapping[str, Any], keys: Sequence[str]) -> str:
    try:
        found = parse(changed)
    except ValueError:
        found = {}
    if _pruned(found, keys) != _pruned(wanted, keys):
        raise ValueError(f"the form of {'.'.join(keys)} is not supported")
    return changed


def _with(document: Mapping[str, Any], keys: Sequence[str], value: object) -> dict[str, Any]:
    if len(keys) > 1:
        value = _with(document.get(keys[0], {}), keys[1:], value)
    return {**document, keys[0]: value}


def _without(document: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    rest = dict(document)
    inner = rest.pop(keys[0])
    return {**rest, keys[0]: _without(inner, keys[1:])} if len(keys) > 1 else rest


def _pruned(document: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """Return the document without an empty table on the way to these keys: it needs no line of its own."""
    rest = dict(document)
    inner = rest.pop(keys[0], None)
    if len(keys) == 1 or not isinstance(inner, dict):
        return dict(document)
    pruned = _pruned(cast("dict[str, Any]", inner), keys[1:])
    return {**rest, keys[0]: pruned} if pruned else rest


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def _line(key: str, value: object) -> str:
    # JSON strings, numbers, booleans and lists of strings are valid TOML, except for the escape of DEL.
    return f"{key} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007F")
