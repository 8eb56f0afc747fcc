"""The context document of a memory: lasting knowledge as Markdown, under five headings.

    # Memory

    ## Participants
    - Sam

    ## Timeline
    - 17 Aug 2025 – The Q3 launch date moved to 17 Aug 2025

It grows from raw entries. An outdated line is replaced in place, a repeated statement is not added again, and
everything else stays byte for byte.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from daypack.errors import BadInput
from daypack.memory.document.markdown import HEADINGS, fit_document, parse, render, trim_document
from daypack.types.memory import PLACEHOLDER, Entry, RawEntry

if TYPE_CHECKING:
    from daypack.memory.document.findings import Finding

TITLE = "# Memory"
PERSONA_MAX_CHARS = 1000
# Older clients wrote this instead of the constant; it is read, never written.
_FORMER_PLACEHOLDER = "NEW MEMORY – init context"


def initial_document(persona: str | None = None) -> str:
    """Return the document of an empty memory: the headings and, if given, one line with the persona."""
    line = " ".join((persona or "").split())
    if len(line) > PERSONA_MAX_CHARS:
        from daypack.text.trim import trim  # noqa: PLC0415 — start-up time of servers

        line = trim(line, PERSONA_MAX_CHARS)
    head = [TITLE, line] if line else [TITLE]
    return "\n\n".join([*head, *(f"## {heading}" for heading in HEADINGS)]) + "\n"


def read_content(content: object) -> object:
    """Return the text of a document; {} means the initial document, as an object or as text."""
    if isinstance(content, Mapping):
        if content:
            hint = "the context document is Markdown text; {} writes the initial document"
            raise BadInput("content is an object, not text", operation="put_context", hint=hint)
        return initial_document()
    if isinstance(content, str) and "".join(content.split()) == "{}":
        return initial_document()
    return content


def is_placeholder(text: str) -> bool:
    """Return True if a document is the placeholder of a new memory, also in its former wording or in a JSON object."""
    if text in (PLACEHOLDER, _FORMER_PLACEHOLDER):
        return True
    if PLACEHOLDER not in text:
        return False
    try:
        value = msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeEncodeError, RecursionError):
        return False
    return tuple(value.values()) == (PLACEHOLDER,)


def without_summary(entry: Entry) -> RawEntry:
    """Return the part of an entry that a document may be built from."""
    return RawEntry(entry.raw_entry, author=entry.author, role=entry.role, at=entry.at, source=entry.source)


def merge(document: str, entries: Sequence[RawEntry]) -> str:
    """Return a document extended by what lasts of raw entries (oldest first), without a model; it fits the limit.

    Merging the same entries again changes nothing. A placeholder or a blank text counts as an empty document.
    """
    # Reading and writing documents must not load the code that understands entries.
    from daypack.memory.document.editor import Editor  # noqa: PLC0415
    from daypack.memory.document.findings import extract_findings  # noqa: PLC0415

    text = initial_document() if is_placeholder(document) or not document.strip() else document
    editor = Editor(parse(text))
    for finding in _consolidate(extract_findings(entries, text)):
        editor.apply(finding)
    return fit_document(render(editor.sections)) if editor.changed else trim_document(text)


def _consolidate(findings: "Sequence[Finding]") -> "list[Finding]":
    """Return the findings that still hold after the last entry: later ones may repeat, replace or complete others."""
    from daypack.memory.document.compare import repeats, supersedes  # noqa: PLC0415

    current: list[Finding] = []
    for finding in findings:
        if finding.done:
            _complete_tasks(current, finding)
            if finding.done == "stated":
                current.append(finding)
            continue
        same_heading = [other for other in current if other.heading == finding.heading and not other.done]
        if any(repeats(finding, other.text) for other in same_heading):
            continue
        if finding.update:
            current = [
                other
                for other in current
                if other.done or other.heading in ("Participants", "Open tasks") or not supersedes(finding, other.text)
            ]
        current.append(finding)
    return current


def _complete_tasks(current: "list[Finding]", done: "Finding") -> None:
    """Mark the earlier tasks that a sentence says are done; a bare "done" refers to the entry just before it."""
    from daypack.memory.document.compare import completes  # noqa: PLC0415

    for at, finding in enumerate(current):
        if finding.heading != "Open tasks" or finding.done:
            continue
        if finding.entry == done.entry - 1 if done.done == "bare" else completes(done.text, finding.text):
            current[at] = finding._replace(done="ticked")
