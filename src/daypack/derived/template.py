"""CONTEXT.md: a task and four lists of one-sentence bullets, in one strict shape.

    # Context

    ## Task
    Move the export to S3.

    ## Decisions
    - Keep boto3.
    …

`render` writes it and `parse` reads exactly what `render` wrote.
"""

from typing import cast

from daypack.errors import BadInput
from daypack.types.compaction import SECTIONS, Section
from daypack.types.records import ContextDoc

MAX_BULLETS = 10
MAX_BULLET_CHARS = 320
TITLE = "# Context"
HEADINGS: dict[Section, str] = {section: f"## {section.capitalize()}" for section in SECTIONS}
_MARKS: dict[Section, str] = {"decisions": "- ", "facts": "- ", "pending": "- [ ] ", "errors": "- "}


def render(doc: ContextDoc) -> str:
    """Return the text of CONTEXT.md; each text becomes one line, and cannot be taken for a heading."""
    task = one_line(doc.task)
    if task.startswith(("#", "\\")):
        task = f"\\{task}"
    parts = [TITLE, f"{HEADINGS['task']}\n{task}".rstrip("\n")]
    for section, mark in _MARKS.items():
        texts: tuple[str, ...] = getattr(doc, section)
        parts.append("\n".join([HEADINGS[section], *(mark + line for text in texts if (line := one_line(text)))]))
    return "\n\n".join(parts) + "\n"


def parse(text: str) -> ContextDoc:
    """Read what `render` wrote; anything else is refused with the line at which it differs."""
    doc = _read_strict(text)
    expected = render(doc)
    if expected == text:
        return doc
    lines, wanted = text.split("\n"), expected.split("\n")
    at = next((n for n, pair in enumerate(zip(lines, wanted, strict=False)) if pair[0] != pair[1]), -1)
    at = at if at >= 0 else min(len(lines), len(wanted))
    raise BadInput(
        f"line {at + 1} is not in the shape of the template", operation="read CONTEXT.md", hint="write it with render"
    )


def problems(text: str) -> list[str]:
    """Return the problems of a CONTEXT.md, none if it is valid."""
    from daypack.text.sentences import sentences  # noqa: PLC0415 — 5 ms that a turn need not pay

    try:
        doc = parse(text)
    except BadInput as error:
        return [error.problem]
    found: list[str] = []
    for section in SECTIONS:
        texts = (doc.task,) if section == "task" else cast(tuple[str, ...], getattr(doc, section))
        if len(texts) > MAX_BULLETS:
            found.append(f"{section} has {len(texts)} bullets, more than {MAX_BULLETS}")
        for number, bullet in enumerate(texts, 1):
            if len(bullet) > MAX_BULLET_CHARS:
                found.append(f"{section} {number} has {len(bullet)} characters, more than {MAX_BULLET_CHARS}")
            if len(sentences(bullet)) > 1:
                found.append(f"{section} {number} is more than one sentence")
    return found


def one_line(text: str) -> str:
    """Return a text on one line."""
    return " ".join(text.split())


def _read_strict(text: str) -> ContextDoc:
    task = ""
    lists: dict[Section, list[str]] = {name: [] for name in _MARKS}
    section: Section | None = None
    headings: dict[str, Section] = {heading: name for name, heading in HEADINGS.items()}
    for line in text.split("\n"):
        if line in headings:
            section = headings[line]
        elif section == "task" and line:
            task = line[1:] if line.startswith("\\") else line
        elif section and section != "task" and line.startswith(_MARKS[section]):
            lists[section].append(line[len(_MARKS[section]) :])
        elif line and (section or line != TITLE):
            break  # the shape is left here: what follows must not be taken for a part of it
    return ContextDoc(task, *(tuple(bullets) for bullets in lists.values()))
