"""Insert a table into a TOML text, leaving every other byte unchanged."""

import json
import tomllib
from collections.abc import Collection, Mapping
from typing import Any, cast


def insert(text: str, keys: tuple[str, str], entry: Mapping[str, Any], forbidden: Collection[str] = ()) -> str:
    """Return the text with `entry` in the table `[a.b]`; an existing table keeps its other fields.

    Raises ValueError if the text is not TOML, if the table has a `forbidden` field, or if the edited text does not
    parse to the expected value.
    """
    outer, inner = keys
    document = tomllib.loads(text)
    group = document.get(outer, {})
    existing = cast("dict[str, Any]", group).get(inner) if isinstance(group, dict) else None
    header = f"[{outer}.{inner}]"
    if existing is None:
        changed = _append(text, header, entry)
        wanted: dict[str, Any] = dict(entry)
    else:
        if conflicts := existing.keys() & set(forbidden):
            raise ValueError(f"{inner} already has {', '.join(sorted(conflicts))}")
        # Only the fields that start the server change; limits and environment set by the user are kept.
        changes = {key: entry[key] for key in ("command", "args") if key in entry and existing.get(key) != entry[key]}
        if not changes:
            return text
        changed = _edit(text, header, changes)
        wanted = {**existing, **changes}
    if tomllib.loads(changed) != {**document, outer: {**group, inner: wanted}}:
        raise ValueError(f"the form of {outer}.{inner} is not supported")
    return changed


def _append(text: str, header: str, entry: Mapping[str, Any]) -> str:
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    return text + gap + "\n".join([header, *(_line(key, value) for key, value in entry.items())]) + "\n"


def _edit(text: str, header: str, changes: Mapping[str, Any]) -> str:
    lines = text.splitlines(keepends=True)
    at = next((at for at, line in enumerate(lines) if line.partition("#")[0].strip() == header), None)
    if at is None:
        raise ValueError(f"no line {header}")
    stop = next((n for n in range(at + 1, len(lines)) if lines[n].lstrip().startswith("[")), len(lines))
    missing = dict(changes)
    lines[at] = lines[at].rstrip("\r\n") + "\n"
    for number in range(at + 1, stop):
        key = lines[number].partition("=")[0].strip()
        if key in missing:
            lines[number] = f"{_line(key, missing.pop(key))}\n"
    lines[at + 1 : at + 1] = [f"{_line(key, value)}\n" for key, value in missing.items()]
    return "".join(lines)


def _line(key: str, value: object) -> str:
    # JSON strings, numbers and lists of strings are valid TOML, except for the escape of DEL.
    return f"{key} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007F")
