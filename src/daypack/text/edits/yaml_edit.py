"""Edit settings in a YAML text without touching the rest: a scalar or an item of a list, one level below the top.

plugins:
  enabled: [disk-cleanup, daypack]     or a line for each item
context:
  engine: daypack

Only the plain block style of settings files is understood. Anything else at the place of the edit (flow mappings,
anchors, tags, several documents, duplicate keys, tabs) raises ValueError, so that nothing is guessed.
"""

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

Value = str | list[str] | None
Keys = tuple[str, str]
_KEY = re.compile(r"""(?P<indent> *)(?P<key>[A-Za-z_][\w.-]*|"[^"\\]*"|'[^']*') *:(?: (?P<rest>.*)|(?P<none>))$""")
_ITEM = re.compile(r"(?P<indent> *)- (?P<item>.*)$")
_PLAIN = re.compile(r"[A-Za-z_][\w./-]*")
_WORDS = ("true", "false", "yes", "no", "on", "off", "null", "y", "n")
_EMPTY = ("", "~", "null", "{}", "[]")
_SPECIAL = "&*!|>%@`{"


class _Found(NamedTuple):
    """Where an entry is: the line of its key, the lines below it, and the indentation of these; -1 if there is none."""

    line: int
    stop: int
    indent: int
    rest: str


def look_up(text: str, keys: Keys) -> Value:
    """Return the scalar or the list of an entry; None if it has no value. Raises ValueError for another style."""
    lines = _lines(text)
    found = _find_entry(lines, keys)
    return None if found is None else _value(lines, found, keys)


def insert(text: str, keys: Keys, value: str) -> str:
    """Return the text with a scalar at these keys; a comment after it stays."""
    lines = _lines(text)
    found = _find_entry(lines, keys)
    if found is None:
        changed = _add_entry(text, lines, keys, _scalar(value))
    else:
        if isinstance(_value(lines, found, keys), list):
            raise ValueError(f"{'.'.join(keys)} is a list")
        key, _, old = lines[found.line].partition(":")
        comment = _comment(old)
        lines[found.line] = f"{key}: {_scalar(value)}{comment}{_newline(text)}"
        changed = "".join(lines)
    return _verified(changed, keys, value)


def add_item(text: str, keys: Keys, item: str) -> str:
    """Return the text with an item at the end of a list, which is made where there is none."""
    lines = _lines(text)
    found = _find_entry(lines, keys)
    items = _value(lines, found, keys) if found else None
    if isinstance(items, str):
        raise ValueError(f"{'.'.join(keys)} is not a list")  # noqa: TRY004 — wrong content, not a wrong argument
    items = items or []
    if item in items:
        return text
    if found is None:
        changed = _add_entry(text, lines, keys, f"[{_scalar(item)}]")
    elif found.indent >= 0:
        last = max(number for number in range(found.line + 1, found.stop) if _ITEM.match(lines[number].rstrip("\r\n")))
        lines[last] = lines[last].rstrip("\r\n") + _newline(text)
        lines.insert(last + 1, f"{' ' * found.indent}- {_scalar(item)}{_newline(text)}")
        changed = "".join(lines)
    else:
        changed = _set_flow(text, lines, found, [*items, item])
    return _verified(changed, keys, [*items, item])


def remove_item(text: str, keys: Keys, item: str) -> str:
    """Return the text without an item of a list; an empty list stays."""
    lines = _lines(text)
    found = _find_entry(lines, keys)
    items = _value(lines, found, keys) if found else None
    if found is None or not isinstance(items, list) or item not in items:
        return text
    left = [other for other in items if other != item]
    if found.indent < 0 or not left:
        del lines[found.line + 1 : found.stop]
        changed = _set_flow(text, lines, found, left)
    else:
        kept = [line for line in lines[found.line + 1 : found.stop] if _item(line) != item]
        changed = "".join((*lines[: found.line + 1], *kept, *lines[found.stop :]))
    return _verified(changed, keys, left)


def remove(text: str, keys: Keys, *, pruned: int = 0) -> str:
    """Return the text without an entry, and with `pruned` without the key above it if nothing else is below it."""
    lines = _lines(text)
    found = _find_entry(lines, keys)
    if found is None:
        return text
    _value(lines, found, keys)
    del lines[found.line : found.stop]
    top = _find_top(lines, keys[0])
    if pruned and top is not None and top.indent < 0 and top.rest == "":
        del lines[top.line : top.stop]
    return _verified("".join(lines), keys, None)


def has_key(text: str, key: str) -> bool:
    """Return True if a key is at the top."""
    return _find_top(_lines(text), key) is not None


def is_empty(text: str) -> bool:
    """Return True if a text has nothing but comments."""
    return not any(map(_is_content, _lines(text)))


def _lines(text: str) -> list[str]:
    lines = text.splitlines(keepends=True)
    content = [line.rstrip("\r\n") for line in lines if _is_content(line)]
    if any(line.startswith(("---", "...", "%")) for line in content[1:]) or (content and content[0][:1] in "%."):
        raise ValueError("several documents or directives")
    if any("\t" in line[: len(line) - len(line.lstrip())] for line in content):
        raise ValueError("a tab in the indentation")
    for line in content:
        if line[:1] not in (" ", "-", "#") and _KEY.match(line) is None:
            raise ValueError(f"the line {line[:60]!r} is no key")
    return lines


def _is_content(line: str) -> bool:
    stripped = line.strip()
    return bool(stripped) and not stripped.startswith("#")


def _find_top(lines: Sequence[str], key: str) -> _Found | None:
    return _find(lines, key, 0, len(lines), 0)


def _find_entry(lines: Sequence[str], keys: Keys) -> _Found | None:
    top = _find_top(lines, keys[0])
    if top is None:
        return None
    if top.rest not in _EMPTY:
        raise ValueError(f"{keys[0]} is no block of keys")
    if top.indent < 0:
        return None
    if any(_KEY.match(line.rstrip("\r\n")) is None for line in _children(lines, top)):
        raise ValueError(f"{keys[0]} is no block of keys")
    return _find(lines, keys[1], top.line + 1, top.stop, top.indent)


def _children(lines: Sequence[str], found: _Found) -> list[str]:
    below = (line for line in lines[found.line + 1 : found.stop] if _is_content(line))
    return [line for line in below if _indent(line) == found.indent and not _ITEM.match(line.rstrip("\r\n"))]


def _find(lines: Sequence[str], key: str, start: int, stop: int, indent: int) -> _Found | None:
    """Return where a key with this indentation is between two lines."""
    numbers = [
        number
        for number in range(start, stop)
        if _is_content(lines[number])
        and (match := _KEY.match(lines[number].rstrip("\r\n")))
        and len(match["indent"]) == indent
        and match["key"].strip("\"'") == key
    ]
    if len(numbers) > 1:
        raise ValueError(f"{key} is there twice")
    if not numbers:
        return None
    (line,) = numbers
    end = last = line + 1
    inner = -1
    while last < stop:
        if _is_content(lines[last]):
            is_item = bool(_ITEM.match(lines[last].rstrip("\r\n"))) and _indent(lines[last]) == indent
            if _indent(lines[last]) <= indent and not is_item:
                break
            inner = _indent(lines[last]) if inner < 0 else inner
            end = last + 1
        last += 1
    match = _KEY.match(lines[line].rstrip("\r\n"))
    return _Found(line, end, inner, _bare((match["rest"] or "") if match else ""))


def _value(lines: Sequence[str], found: _Found, keys: Keys) -> Value:
    name = ".".join(keys)
    if found.indent >= 0:
        items = [_item(line) for line in lines[found.line + 1 : found.stop] if _is_content(line)]
        if found.rest or any(item is None for item in items):
            raise ValueError(f"{name} is no list of names")
        return [item for item in items if item is not None]
    if found.rest in _EMPTY:
        return [] if found.rest == "[]" else None
    if found.rest.startswith("["):
        if not found.rest.endswith("]"):
            raise ValueError(f"{name} is a list of several lines in brackets")
        return [_unquote(item.strip(), name) for item in found.rest[1:-1].split(",") if item.strip()]
    return _unquote(found.rest, name)


def _item(line: str) -> str | None:
    match = _ITEM.match(line.rstrip("\r\n"))
    if match is None:
        return None
    text = _bare(match["item"])
    return _unquote(text, "item") if not re.search(r":(?: |$)", text) else None


def _unquote(text: str, name: str) -> str:
    if text[:1] in ("'", '"'):
        if len(text) > 1 and text[-1] == text[0] and text[0] not in text[1:-1] and "\\" not in text:
            return text[1:-1]
    elif text[:1] not in _SPECIAL and "[" not in text:
        return text
    raise ValueError(f"the form of {name} is not supported")


def _bare(rest: str) -> str:
    """Return a value without the comment after it."""
    return rest[: len(rest) - len(_comment(rest))].strip()


def _comment(rest: str) -> str:
    rest = rest.rstrip("\r\n")
    match = re.search(r"(?:^| +)#.*$", re.sub(r"\"[^\"]*\"|'[^']*'", lambda quoted: "x" * len(quoted[0]), rest))
    return rest[match.start() :] if match else ""


def _add_entry(text: str, lines: list[str], keys: Keys, value: str) -> str:
    newline = _newline(text)
    top = _find_top(lines, keys[0])
    if top is None:
        gap = "" if not text or text.endswith("\n") else newline
        return f"{text}{gap}{keys[0]}:{newline}  {keys[1]}: {value}{newline}"
    if top.rest:  # an explicit nothing
        lines[top.line] = f"{keys[0]}:{_comment(lines[top.line].partition(':')[2])}"
    lines[top.line] = lines[top.line].rstrip("\r\n") + newline
    indent = top.indent if top.indent > 0 else 2
    lines.insert(top.line + 1, f"{' ' * indent}{keys[1]}: {value}{newline}")
    return "".join(lines)


def _set_flow(text: str, lines: list[str], found: _Found, items: Sequence[str]) -> str:
    key, _, old = lines[found.line].partition(":")
    flow = f"[{', '.join(map(_scalar, items))}]"
    lines[found.line] = f"{key}: {flow}{_comment(old)}{_newline(text)}"
    return "".join(lines)


def _scalar(value: str) -> str:
    return value if _PLAIN.fullmatch(value) and value.lower() not in _WORDS else json.dumps(value)


def _verified(changed: str, keys: Keys, wanted: Value) -> str:
    if look_up(changed, keys) != wanted:
        raise ValueError(f"the form of {'.'.join(keys)} is not supported")
    return changed


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
