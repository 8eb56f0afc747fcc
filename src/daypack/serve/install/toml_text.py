"""A table put into a TOML text, with every other byte left where it is."""

import json
import tomllib
from collections.abc import Collection, Mapping
from typing import Any, cast


def insert(text: str, keys: tuple[str, str], entry: Mapping[str, Any], unless: Collection[str] = ()) -> str:
    """Return the text with the table `[a.b]` holding `entry`; a table that is there keeps what else it has.

    ValueError: the text is no TOML, the table has a field of `unless`, or the result would not say exactly what the
    text said and this.
    """
    outer, inner = keys
    whole = tomllib.loads(text)
    group = whole.get(outer, {})
    known = cast("dict[str, Any]", group).get(inner) if isinstance(group, dict) else None
    header = f"[{outer}.{inner}]"
    if known is None:
        changed = _append(text, header, entry)
        wanted: dict[str, Any] = dict(entry)
    else:
        if found := known.keys() & set(unless):
            raise ValueError(f"{inner} has {', '.join(sorted(found))} there")
        # What somebody set themselves (limits, environment) stays; only what starts the server is ours to change.
        news = {key: value for key, value in entry.items() if key in ("command", "args") and known.get(key) != value}
        if not news:
            return text
        changed = _edit(text, header, news)
        wanted = {**known, **news}
    if tomllib.loads(changed) != {**whole, outer: {**group, inner: wanted}}:
        raise ValueError(f"{outer}.{inner} is written in a way that is not understood here")
    return changed


def _append(text: str, header: str, entry: Mapping[str, Any]) -> str:
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    return text + gap + "\n".join([header, *(_line(key, value) for key, value in entry.items())]) + "\n"


def _edit(text: str, header: str, news: Mapping[str, Any]) -> str:
    lines = text.splitlines(keepends=True)
    at = next((at for at, line in enumerate(lines) if line.partition("#")[0].strip() == header), None)
    if at is None:
        raise ValueError(f"there is no line {header}")
    stop = next((n for n in range(at + 1, len(lines)) if lines[n].lstrip().startswith("[")), len(lines))
    missing = dict(news)
    lines[at] = lines[at].rstrip("\r\n") + "\n"
    for number in range(at + 1, stop):
        key = lines[number].partition("=")[0].strip()
        if key in missing:
            lines[number] = f"{_line(key, missing.pop(key))}\n"
    lines[at + 1 : at + 1] = [f"{_line(key, value)}\n" for key, value in missing.items()]
    return "".join(lines)


def _line(key: str, value: object) -> str:
    # A JSON text, number or list of texts is a TOML one, as long as nothing is escaped that TOML escapes otherwise.
    return f"{key} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007F")
