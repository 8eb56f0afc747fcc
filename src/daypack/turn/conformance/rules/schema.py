"""Rules about single objects: required fields, JSON types, times, and content where the mode says it is."""

from collections.abc import Iterator

from daypack.turn.conformance.subject import Finding, Subject, text
from daypack.types.kinds import WITHHELD_STATES

_BY_REFERENCE = ("ref", "resource_link", "artifact_ref", "tool_result_ref")


def required(subject: Subject) -> Iterator[Finding]:
    """Look at every required field."""
    yield from _of("schema.required", subject)


def types(subject: Subject) -> Iterator[Finding]:
    """Look at the type of every known field."""
    yield from _of("schema.type", subject)


def times(subject: Subject) -> Iterator[Finding]:
    """Look at every time."""
    yield from _of("schema.time", subject)


def content(subject: Subject) -> Iterator[Finding]:
    """Look at every item whose mode is known."""
    for item in subject.records("items"):
        mode, state = text(item.value, "content_mode"), text(item.value, "redaction_state")
        field = "content" if mode == "inline" else "content_ref" if mode in _BY_REFERENCE else ""
        if field and state not in WITHHELD_STATES:
            there = item.value.get(field) is not None
            problem = "" if there else f"content_mode is {mode}, and there is no {field}"
            yield Finding(f"{item.path}.{field}", problem)


def _of(rule: str, subject: Subject) -> Iterator[Finding]:
    return (Finding(field.path, field.problem) for field in subject.fields if field.rule == rule)
