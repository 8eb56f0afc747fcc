"""Find tool call examples of several lines, and shorten each to one line.

```json                          `{"tool": "read_file", "path": "a.csv"}`
{
  "tool": "read_file",
  "path": "a.csv"
}
```
"""

import re
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from daypack.upkeep.lint.passages import Document, Fence

_MAX_CHARS = 200
_OUTPUT = re.compile(r"\s*(?:#\s*)?(?:(?:output|results?|returns?|response)\b|→|=>)", re.I)
_PROMPT = re.compile(r"^\s*(?:[$%>]|>>>)\s+")
_CALL = re.compile(r"\s*[\w.]+\s*\(")


class Example(Struct, frozen=True, omit_defaults=True):
    """An example of several lines; `short` is the same in one line, None if that is not possible."""

    source: str
    first: int
    last: int
    short: str | None = None


def find_examples(document: Document) -> tuple[Example, ...]:
    """Return the fenced examples of a text that have more than one line."""
    return tuple(_examples(document))


def _examples(document: Document) -> Iterator[Example]:
    for fence in document.fences:
        rows = [row for row in fence.body if row.strip()]
        if len(rows) > 1:
            yield Example(document.name, fence.lines.first, fence.lines.last, shorten(fence, rows))


def shorten(fence: Fence, rows: Sequence[str]) -> str | None:
    """Return an example in one line: a JSON object, a call, or a command; None for a program."""
    line = _json(rows) or _call(rows) or (_command(rows) if _is_shell(fence, rows) else None)
    return f"`{line}`" if line and len(line) <= _MAX_CHARS and "`" not in line else None


def _json(rows: Sequence[str]) -> str | None:
    """Return a JSON value in one line, in its original spelling."""
    text = "\n".join(rows)
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return None
    if text.lstrip()[:1] not in "{[":
        return None
    line = " ".join(row.strip() for row in rows)
    return re.sub(r"([{\[]) | (?=[}\]])", r"\1", line)


def _call(rows: Sequence[str]) -> str | None:
    """Join a call that spans several lines; its output is dropped."""
    if not _CALL.match(rows[0]):
        return None
    taken: list[str] = []
    depth = 0
    for row in rows:
        taken.append(row.strip())
        depth += sum(row.count(bracket) for bracket in "([{") - sum(row.count(bracket) for bracket in ")]}")
        if depth <= 0:
            break
    if depth != 0:
        return None
    line = re.sub(r"([(\[{]) | (?=[)\]}])", r"\1", " ".join(taken))
    rest = rows[len(taken) :]
    return re.sub(r",(?=[)\]}])", "", line) if not rest or _OUTPUT.match(rest[0]) or _CALL.match(rest[0]) else None


def _is_shell(fence: Fence, rows: Sequence[str]) -> bool:
    named = fence.language.lower() in ("bash", "sh", "shell", "console", "zsh")
    return named or rows[0].rstrip().endswith("\\") or bool(_PROMPT.match(rows[0]))


def _command(rows: Sequence[str]) -> str | None:
    """Return the first command with its continuation lines; one example of several is enough."""
    commands: list[str] = []
    continued = False
    for row in rows:
        line = _PROMPT.sub("", row).strip()
        if line.startswith("#") and not continued:
            continue
        text = line.removesuffix("\\").strip()
        if continued:
            commands[-1] += f" {text}"
        elif not _OUTPUT.match(row):
            commands.append(text)
        continued = line.endswith("\\")
    if any(re.match(r"(?:if|for|while|function|case|cat <<)\b", command) for command in commands):
        return None
    return commands[0] if commands else None
