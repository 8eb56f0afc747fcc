"""Apply removals to texts, and return the difference as a patch.

Remaining lines are unchanged, with their line ends. A heading whose lines are all removed is removed too, and blank
lines do not pile up.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from daypack.text.statements.passages import BULLET, Document
from daypack.upkeep.lint.examples import Example
from daypack.upkeep.lint.removals import Removal


def edited(document: Document, removals: Sequence[Removal], examples: Sequence[Example] = ()) -> str:
    """Return a text after the removals, with each example shortened to one line."""
    if not removals and not any(example.short for example in examples):
        return document.text
    rows = dict(enumerate(document.rows, 1))
    for example in examples:
        if example.short:
            rows[example.first] = _label(document, example) + example.short
            for number in range(example.first + 1, example.last + 1):
                rows.pop(number, None)
    for removal in sorted(removals, key=lambda removal: len(removal.words)):
        _remove(rows, removal)
    for section in reversed(document.sections):
        inside = range(section.lines.first + 1, section.lines.last + 1)
        had = any(document.row(number).strip() for number in inside)
        if had and not any(rows.get(number, "").strip() for number in inside):
            rows.pop(section.lines.first, None)
    _remove_leads(document, rows)
    return document.joined(_without_gaps(document, rows))


def flattened(text: str) -> str:
    """Return a memory as one level of bullets; prose becomes bullets, headings and fenced blocks are unchanged."""
    document = Document("", text)
    rows = dict(enumerate(document.rows, 1))
    for item in document.items:
        match = BULLET.match(document.row(item.lines.first))
        numbers = range(item.lines.first, item.lines.last + 1)
        if match:
            rows |= {number: rows[number].removeprefix(match[1]) for number in numbers}
        elif not document.row(item.lines.first).lstrip().startswith("|"):
            joined = " ".join(rows.pop(number).strip() for number in numbers)
            rows[item.lines.first] = f"- {joined}"
    return document.joined(rows[number] for number in sorted(rows))


def diff(name: str, before: str, after: str) -> str:
    """Return a unified diff for `patch -p1` and `git apply`, empty if nothing changes."""
    from difflib import unified_diff  # noqa: PLC0415 — 5 ms that only an edit pays

    old, new = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (before, after))
    lines = unified_diff(old, new, f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def diff_all(changes: Mapping[str, tuple[str, str]]) -> str:
    """Return one patch for several files."""
    return "".join(diff(name, before, after) for name, (before, after) in changes.items())


def _remove(rows: dict[int, str], removal: Removal) -> None:
    numbers = [number for number in range(removal.first, removal.last + 1) if number in rows]
    if not removal.words:
        for number in numbers:
            del rows[number]
        return
    for number, words in zip(numbers, removal.words.split("\n"), strict=False):
        row = rows[number]
        left = row.replace(words.strip(), "", 1)
        bullet = BULLET.match(f"{left} ")
        if not left.strip() or (bullet and not left[bullet.end() - 1 :].strip()):
            del rows[number]
        else:
            rows[number] = re.sub(r"(?<=\S)  +", " ", left).rstrip(" ")


def _remove_leads(document: Document, rows: dict[int, str]) -> None:
    """Remove a line that introduces a list of which nothing is left."""
    for at, item in enumerate(document.items):
        listed: list[int] = []
        for other in document.items[at + 1 :]:
            if not item.is_lead or not BULLET.match(other.text):
                break
            listed.append(other.lines.first)
        if listed and not any(number in rows for number in listed):
            for number in range(item.lines.first, item.lines.last + 1):
                rows.pop(number, None)


def _label(document: Document, example: Example) -> str:
    """Return the indentation of an example, and "Example:" unless the line before ends in a colon."""
    above = next((row for row in reversed(document.rows[: example.first - 1]) if row.strip()), "")
    row = document.row(example.first)
    indent = row[: len(row) - len(row.lstrip())]
    return indent if above.rstrip().endswith(":") else f"{indent}Example: "


def _without_gaps(document: Document, rows: Mapping[int, str]) -> Iterator[str]:
    """Yield the rows without the blank lines that would pile up where lines were removed."""
    lines: list[str] = []
    last = 0
    for number in sorted(rows):
        blank = not rows[number].strip()
        gap = any(skipped not in rows for skipped in range(max(1, last - 1), number))
        if not (blank and gap and (not lines or not lines[-1].strip())):
            lines.append(rows[number])
        last = number
    end = max((number for number, row in enumerate(document.rows, 1) if row.strip()), default=0)
    while end not in rows and len(lines) > 1 and not lines[-1].strip() and not lines[-2].strip():
        lines.pop()
    if lines and lines[-1].strip() and not document.rows[-1].strip():
        lines.append("")  # the final line end
    yield from lines
