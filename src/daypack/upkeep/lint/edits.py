"""Apply removals to texts, and return the difference as a patch.

Remaining lines are unchanged. A heading whose lines are all removed is removed too, and blank lines do not pile up.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from daypack.upkeep.lint.examples import Example
from daypack.upkeep.lint.passages import Document
from daypack.upkeep.lint.removals import Removal

_BULLET = re.compile(r"(\s*)(?:[-*+•]|\d{1,3}[.)])\s+")


def edited(document: Document, removals: Sequence[Removal], examples: Sequence[Example] = ()) -> str:
    """Return a text after the removals, with each example shortened to one line."""
    if not removals and not any(example.short for example in examples):
        return document.text
    rows = dict(enumerate(document.rows, 1))
    before = {number for number, row in rows.items() if row.strip()}
    for example in examples:
        if example.short:
            rows[example.first] = _label(document, example) + example.short
            for number in range(example.first + 1, example.last + 1):
                rows.pop(number, None)
    for removal in removals:
        _remove(rows, removal)
    _remove_empty(document, rows, before)
    return _joined(document, rows)


def flattened(text: str) -> str:
    """Return a memory as one level of bullets; prose becomes bullets, headings and fenced blocks are unchanged."""
    document = Document("", text)
    lines: list[str] = []
    items = {item.lines.first: item for item in document.items}
    number = 1
    while number <= len(document.rows):
        item = items.get(number)
        row = document.row(number)
        if item is None:
            lines.append(row)
            number += 1
            continue
        rows = document.rows[item.lines.first - 1 : item.lines.last]
        if row.lstrip().startswith("|"):
            lines += rows
        elif match := _BULLET.match(row):
            lines += [row[len(match[1]) :] if row.startswith(match[1]) else row for row in rows]
        else:
            lines.append("- " + " ".join(row.strip() for row in rows))
        number = item.lines.last + 1
    return "\n".join(lines)


def diff(name: str, before: str, after: str) -> str:
    """Return a unified diff for `patch -p1` and `git apply`, empty if nothing changes."""
    return "".join(_diff(name, before, after))


def diff_all(changes: Mapping[str, tuple[str, str]]) -> str:
    """Return one patch for several files."""
    return "".join(diff(name, before, after) for name, (before, after) in changes.items())


def _diff(name: str, before: str, after: str) -> Iterator[str]:
    from difflib import unified_diff  # noqa: PLC0415 — 5 ms that only an edit pays

    old, new = (text.splitlines(keepends=True) for text in (before, after))
    for line in unified_diff(old, new, f"a/{name}", f"b/{name}"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _remove(rows: dict[int, str], removal: Removal) -> None:
    if not removal.words:
        for number in range(removal.first, removal.last + 1):
            rows.pop(number, None)
        return
    for number in range(removal.first, removal.last + 1):
        row = rows.get(number, "")
        if removal.words in row:
            left = row.replace(removal.words, "", 1).rstrip()
            match = _BULLET.match(f"{left} ")
            if match and not left[match.end() - 1 :].strip():
                rows.pop(number)
            else:
                rows[number] = re.sub(r"(?<=\S)  +", " ", left)
            return


def _label(document: Document, example: Example) -> str:
    """Return the indentation of an example, and "Example:" unless the line before ends in a colon."""
    above = next((row for row in reversed(document.rows[: example.first - 1]) if row.strip()), "")
    row = document.row(example.first)
    indent = row[: len(row) - len(row.lstrip())]
    return indent if above.rstrip().endswith(":") else f"{indent}Example: "


def _remove_empty(document: Document, rows: dict[int, str], before: set[int]) -> None:
    """Remove headings and list titles whose content was removed."""
    starts = [number for number, _, _ in document.headings]
    for section in reversed(document.sections):
        inside = range(section.lines.first + 1, section.lines.last + 1)
        had = any(number in before for number in inside)
        if had and not any(rows.get(number, "").strip() for number in inside):
            rows.pop(section.lines.first, None)
    for block in document.blocks:
        inside = [item for item in block.children[1:] if any(rows.get(n, "").strip() for n in _numbers(item.lines))]
        if block.title and not inside and block.lines.first not in starts:
            for number in _numbers(block.children[0].lines):
                rows.pop(number, None)


def _numbers(lines: tuple[int, int]) -> range:
    return range(lines[0], lines[1] + 1)


def _joined(document: Document, rows: Mapping[int, str]) -> str:
    lines: list[str] = []
    last = 0
    for number in sorted(rows):
        blank = not rows[number].strip()
        gap = any(skipped not in rows for skipped in range(max(1, last - 1), number))
        if not (blank and gap and (not lines or not lines[-1].strip())):
            lines.append(rows[number])
        last = number
    while len(lines) > 1 and not lines[-1].strip() and not lines[-2].strip():
        lines.pop()
    text = "\n".join(lines)
    if document.text.endswith("\n") and not text.endswith("\n"):
        text += "\n"
    return text
