"""Rules about what is not there: redacted content, compacted content, missing context."""

from collections.abc import Iterator
from itertools import chain

from daypack.turn.conformance.objects import Json, listed, strings
from daypack.turn.conformance.subject import Finding, Subject, is_stated, text
from daypack.types.kinds import WITHHELD_STATES

_REDACTED = ("masked", "summarized", *WITHHELD_STATES)
_ANSWERS = {
    "resolved": ("resolution_refs",),
    "requested": ("requested_from", "candidate_sources"),
    "waiting": ("requested_from", "candidate_sources"),
}


def content(subject: Subject) -> Iterator[Finding]:
    """Look at items whose content was withheld."""
    for item in subject.records("items"):
        stated = text(item.value, "redaction_state")
        if stated in WITHHELD_STATES:
            problem = f"redaction_state is {stated}, and the content is there"
            yield Finding(f"{item.path}.content", problem if item.value.get("content") is not None else "")


def state(subject: Subject) -> Iterator[Finding]:
    """Look at assemblies and blocks that show redacted items and state something about it."""
    for assembly in subject.records("assemblies"):
        blocks = [
            (path, block, [ref for ref in strings(block, "item_refs") if _is_shown_redacted(subject, ref)])
            for path, block in subject.blocks(assembly)
        ]
        shown = [ref for _, _, refs in blocks for ref in refs]
        for path, value, inside in ((assembly.path, assembly.value, shown), *blocks):
            if inside and (stated := text(value, "redaction_state")):
                problem = f"none, and {', '.join(inside[:5])} is redacted"
                yield Finding(f"{path}.redaction_state", problem if stated == "none" else "")


def event(subject: Subject) -> Iterator[Finding]:
    """Look at documents with events whose assemblies show redacted items."""
    events = [text(event.value, "event_type") for event in subject.records("events")]
    applied = "context.redaction.applied" in events
    for assembly in subject.records("assemblies") if events else ():
        for path, item in subject.shown(assembly):
            if _is_redacted(item.value):
                yield Finding(path, "" if applied else f"{item.id!r} is redacted, and no event is about a redaction")


def sources(subject: Subject) -> Iterator[Finding]:
    """Look at compactions and summaries."""
    for name in ("compactions", "summaries"):
        for found in subject.records(name):
            if isinstance(found.value.get("source_item_refs"), list):
                problem = "" if strings(found.value, "source_item_refs") else "there are no sources"
                yield Finding(f"{found.path}.source_item_refs", problem)


def missing(subject: Subject) -> Iterator[Finding]:
    """Look at missing context that was resolved or requested."""
    for found in subject.records("missing_contexts"):
        stated = text(found.value, "status")
        if fields := _ANSWERS.get(stated):
            there = any(map(is_stated, chain.from_iterable(_values(found.value, field) for field in fields)))
            problem = f"status is {stated}, and there is no {' or '.join(fields)}"
            yield Finding(f"{found.path}.status", "" if there else problem)


def _values(record: Json, field: str) -> list[object]:
    return listed(record, field) or [record.get(field)]


def _is_shown_redacted(subject: Subject, ref: str) -> bool:
    return ref in subject.items and _is_redacted(subject.items[ref].value)


def _is_redacted(item: dict[str, object]) -> bool:
    return text(item, "redaction_state") in _REDACTED
