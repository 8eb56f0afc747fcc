"""Find tool call examples of several lines, and shorten each to one line.

```json                          `{"tool": "read_file", "path": "a.csv"}`
{
  "tool": "read_file",
  "path": "a.csv"
}
```
"""

import re
from collections.abc import Sequence

import msgspec

from daypack.text.statements.passages import Document, Span

_MAX_CHARS = 200
_OUTPUT = re.compile(r"\s*(?:#\s*)?(?:(?:output|results?|returns?|response)\b|→|=>)", re.IGNORECASE)
_PROMPT = re.compile(r"^\s*(?:[$%>]|>>>)\s+")
_CALL = re.compile(r"\s*[\w.]+\s*\(")
_PROGRAM = re.compile(r"(?:if|for|while|function|case|cat <<)\b")
_SHELLS = ("bash", "sh", "shell", "console", "zsh")


class Example(Span, frozen=True, omit_defaults=True):
    """An example of several lines; `short` is the same in one line, None if that is not possible."""

    short: str | None = None


def find_examples(document: Document) -> tuple[Example, ...]:
    """Return the fenced examples of a text that have more than one line."""
    bodies = [(fence, [row for row in fence.body if row.strip()]) for fence in document.fences]
    return tuple(Example(document.name, *f.lines, _shortened(rows, f.language)) for f, rows in bodies if len(rows) > 1)


def _shortened(rows: Sequence[str], language: str) -> str | None:
    """Return an example in one line: a JSON object, a call, or a command; None for a program."""
    shell = language.lower() in _SHELLS or rows[0].rstrip().endswith("\\") or bool(_PROMPT.match(rows[0]))
    line = _json(rows) or _call(rows) or (_command(rows) if shell else None)
    return f"`{line}`" if line and len(line) <= _MAX_CHARS and "`" not in line else None


def _json(rows: Sequence[str]) -> str | None:
    try:
        msgspec.json.decode("\n".join(rows))
    except (msgspec.DecodeError, UnicodeError):
        return None
    return _on_one_line(rows) if rows[0].lstrip()[:1] in "{[" else None


def _call(rows: Sequence[str]) -> str | None:
    """Join a call that spans several lines; its output is dropped."""
    depth, count = 0, 0
    for row in rows if _CALL.match(rows[0]) else ():
        depth += sum(row.count(bracket) for bracket in "([{") - sum(row.count(bracket) for bracket in ")]}")
        count += 1
        if depth <= 0:
            break
    rest = rows[count:]
    if not count or depth or (rest and not _OUTPUT.match(rest[0]) and not _CALL.match(rest[0])):
        return None
    return re.sub(r",(?=[)\]}])", "", _on_one_line(rows[:count]))


def _on_one_line(rows: Sequence[str]) -> str:
    return re.sub(r"([(\[{]) | (?=[)\]}])", r"\1", " ".join(row.strip() for row in rows))


def _command(rows: Sequence[str]) -> str | None:
    """Return the first command with its continuation lines; one example of several is enough."""
    text = "\n".join(_PROMPT.sub("", row).strip() for row in rows if not _OUTPUT.match(row))
    commands = [row for row in re.sub(r"\s*\\\n\s*", " ", text).split("\n") if not row.startswith("#")]
    return None if any(map(_PROGRAM.match, commands)) else next(iter(commands), None)
