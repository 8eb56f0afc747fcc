"""Apply removals to texts, and return the difference as a patch.

Remaining lines are unchanged, with their line ends. A heading or an introduction whose lines are all removed is removed
too, and blank lines do not pile up.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

from daypack.text.statements.passages import BULLET, Document, Lines
from daypack.upkeep.lint.examples import Example
from daypack.upkeep.lint.removals import Removal


def edited(document: Document, removals: Sequence[Removal], examples: Sequence[Example] = ()) -> str:
    """Return a text after the removals, with each example shortened to one line."""
    rows = dict(enumerate(document.rows, 1))
    for example in filter(lambda example: example.short, examples):
        _drop(rows, example.lines)
        rows[example.first] = f"{_label(document, example)}{example.short}"
    for removal in sorted(removals, key=lambda removal: len(removal.words)):
        _remove(rows, removal)
    if rows == dict(enumerate(document.rows, 1)):
        return document.text
    for head, inside in _heads(document):
        had = any(document.row(number).strip() for number in inside)
        if had and not any(rows.get(number, "").strip() for number in inside):
            _drop(rows, head)
    return document.joined(_without_gaps(document, rows))


def flattened(text: str) -> str:
    """Return a memory as one level of bullets; prose becomes bullets, headings and fenced blocks are unchanged."""
    document = Document("", text)
    rows = dict(enumerate(document.rows, 1))
    for item in document.items:
        match = BULLET.match(item.text)
        if match:
            rows |= {number: rows[number].removeprefix(match[1]) for number in item.lines.numbers}
        elif not item.text.lstrip().startswith("|"):
            _drop(rows, item.lines)
            rows[item.lines.first] = f"- {' '.join(item.text.split())}"
    return document.joined(rows[number] for number in sorted(rows))


def diff(name: str, before: str, after: str) -> str:
    """Return a unified diff for `patch -p1` and `git apply`, empty if nothing changes."""
    from difflib import unified_diff  # noqa: PLC0415 — 5 ms that only an edit pays

    old, new = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (before, after))
    lines = unified_diff(old, new, f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _drop(rows: dict[int, str], lines: Lines) -> None:
    for number in lines.numbers:
        rows.pop(number, None)


def _remove(rows: dict[int, str], removal: Removal) -> None:
    if not removal.words:
        _drop(rows, removal.lines)
        return
    numbers = [number for number in removal.lines.numbers if number in rows]
    for number, words in zip(numbers, removal.words.split("\n"), strict=False):
        left = rows[number].replace(words.strip(), "", 1)
        rows[number] = re.sub(r"(?<=\S)  +", " ", left).rstrip(" ")
        if not BULLET.sub("", f"{left} ", count=1).strip():
            del rows[number]


def _heads(document: Document) -> Iterator[tuple[Lines, range]]:
    """Yield headings, and lines that introduce a list, each with the numbers of the lines below it."""
    for section in reversed(document.sections):
        yield Lines(section.lines.first, section.lines.first), section.lines.numbers[1:]
    for at, item in enumerate(document.items):
        listed = list(takewhile(lambda other: BULLET.match(other.text), document.items[at + 1 :]))
        if item.is_lead and listed:
            yield item.lines, range(listed[0].lines.first, listed[-1].lines.last + 1)


def _label(document: Document, example: Example) -> str:
    """Return the indentation of an example, and "Example:" unless the line before ends in a colon."""
    above = "\n".join(document.rows[: example.first - 1]).rstrip()
    row = document.row(example.first)
    return row[: len(row) - len(row.lstrip())] + ("" if above.endswith(":") else "Example: ")


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
    yield from lines
