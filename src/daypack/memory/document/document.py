"""The context document of a memory: lasting knowledge as Markdown, under five headings.

    # Memory

    ## Participants
    - Sam

    ## Timeline
    - 17 Aug 2025 – The Q3 launch date moved to 17 Aug 2025

It grows from raw entries. A line that something new makes wrong is replaced where it stands; what it says already is
not said again; everything else in it is left as it is, byte for byte.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from daypack.memory.document.markdown import HEADINGS, fit_document, parse, render, trim_document
from daypack.memory.document.raw import RawEntry, raw_of
from daypack.types.memory import PLACEHOLDER

if TYPE_CHECKING:
    from daypack.memory.document.findings import Finding

__all__ = [
    "HEADINGS",
    "RawEntry",
    "fit_document",
    "initial_document",
    "is_placeholder",
    "merge",
    "parse",
    "raw_of",
    "render",
    "trim_document",
]

TITLE = "# Memory"
PERSONA_MAX_CHARS = 1000
# What stands in an example in place of the constant; it is read, never written.
_FORMER_PLACEHOLDER = "NEW MEMORY – init context"


def initial_document(persona: str | None = None) -> str:
    """Return the document of a memory that knows nothing yet: headings, and the persona line when there is one."""
    line = " ".join((persona or "").split())
    if len(line) > PERSONA_MAX_CHARS:
        from daypack.text.trim import trim  # noqa: PLC0415 — a server that starts need not pay for it

        line = trim(line, PERSONA_MAX_CHARS)
    head = [TITLE, line] if line else [TITLE]
    return "\n\n".join([*head, *(f"## {heading}" for heading in HEADINGS)]) + "\n"


def is_placeholder(text: str) -> bool:
    """Whether a document is what a new memory holds; also as it stands in an example and inside a JSON object."""
    if text in (PLACEHOLDER, _FORMER_PLACEHOLDER):
        return True
    if PLACEHOLDER not in text:
        return False
    try:
        value = msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeEncodeError, RecursionError):
        return False
    return tuple(value.values()) == (PLACEHOLDER,)


def merge(document: str, entries: Sequence[RawEntry]) -> str:
    """Return a document with what lasts of raw entries, oldest first, made without a model; it fits the cap.

    The same entries a second time change nothing. A placeholder or a blank text is taken for an empty document.
    """
    # Who only reads or writes documents need not pay for what understands entries.
    from daypack.memory.document.draft import Draft  # noqa: PLC0415
    from daypack.memory.document.findings import learn  # noqa: PLC0415

    text = initial_document() if is_placeholder(document) or not document.strip() else document
    draft = Draft(parse(text))
    for finding in _settled(learn(entries, text)):
        draft.take(finding)
    return fit_document(render(draft.page)) if draft.changed else trim_document(text)


def _settled(findings: "Sequence[Finding]") -> "list[Finding]":
    """Return what is left to say when entries have been read to their end: later ones may undo earlier ones."""
    from daypack.memory.document.compare import repeats, supersedes  # noqa: PLC0415

    kept: list[Finding] = []
    for one in findings:
        if one.done:
            _tick(kept, one)
            if one.done == "said":
                kept.append(one)
            continue
        if any(repeats(one, other.text) and other.heading == one.heading and not other.done for other in kept):
            continue
        if one.update:
            kept = [
                other
                for other in kept
                if other.done or other.heading in ("Participants", "Open tasks") or not supersedes(one, other.text)
            ]
        kept.append(one)
    return kept


def _tick(kept: "list[Finding]", done: "Finding") -> None:
    """Note which of the tasks before it a sentence says are done; a bare "done" answers what was asked just before."""
    from daypack.memory.document.compare import completes  # noqa: PLC0415

    for at, one in enumerate(kept):
        if one.heading != "Open tasks" or one.done:
            continue
        if one.entry == done.entry - 1 if done.done == "bare" else completes(done.text, one.text):
            kept[at] = one._replace(done="ticked")
