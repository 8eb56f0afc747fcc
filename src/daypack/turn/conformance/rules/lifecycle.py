"""Rules about the lifecycle: sources, surface, selection, budget, assembly, injection, evidence."""

from collections.abc import Iterator
from datetime import datetime
from typing import cast

from daypack.turn.conformance.objects import Json, Object
from daypack.turn.conformance.schema import read_time
from daypack.turn.conformance.subject import Finding, Subject, text

# The lists that a state implies.
_STATES = {
    "available": ("surfaces",),
    "selected": ("surfaces", "selections"),
    "assembled": ("surfaces", "selections", "assemblies"),
    "injected": ("surfaces", "selections", "assemblies", "injections"),
    "compacted": ("compactions",),
}
# What a record is made from: its list, the field that names the other, and the list of the other.
_MADE_FROM = (
    ("selections", "surface_id", "surfaces"),
    ("assemblies", "budget_ref", "budgets"),
    ("injections", "assembly_id", "assemblies"),
)
_MADE = {
    "surfaces": "context.surface.created",
    "selections": "context.selection.completed",
    "budgets": "context.budget.applied",
    "assemblies": "context.assembly.created",
    "injections": "context.injection.applied",
}
# What the data of an event may repeat: the list of its subject, the member, and the field that it repeats or counts.
_FIGURES = {
    "context.surface.created": ("surfaces", "items", "items"),
    "context.selection.completed": ("selections", "omitted", "omitted_item_refs"),
    "context.budget.applied": ("budgets", "tokens", "actual_tokens"),
    "context.assembly.created": ("assemblies", "hash", "hash"),
}
# Pairs of events about one subject: the first cannot come after the second.
_STEPS = (
    ("context.selection.started", "context.selection.completed"),
    ("context.compaction.started", "context.compaction.completed"),
    ("context.missing.detected", "context.missing.requested"),
    ("context.missing.detected", "context.missing.resolved"),
    ("context.missing.requested", "context.missing.resolved"),
)


def state(subject: Subject) -> Iterator[Finding]:
    """Look at the records that the state implies; a list that the envelope names by refs only may be elsewhere."""
    stated = text(subject.document, "lifecycle")
    for name in _STATES.get(stated, ()):
        # Nothing to show is nothing to inject.
        empty = name == "injections" and not any(_blocks(found) for found in subject.records("assemblies"))
        there = bool(subject.by_list[name]) or empty or bool(subject.document.get(_REFS[name]))
        yield Finding("$.lifecycle", "" if there else f"{stated!r} implies {name}, and there are none")


def order(subject: Subject) -> Iterator[Finding]:
    """Look at events of records that were made from each other, and at steps of the same record."""
    places: dict[tuple[str, str], int] = {}
    events = subject.records("events")
    for at, event in enumerate(events):
        places.setdefault((text(event.value, "event_type"), text(event.value, "subject")), at)
    for earlier, later in _expected(subject):
        first, second = places.get(earlier), places.get(later)
        if first is not None and second is not None:
            problem = "" if first < second else f"{later[0]} of {later[1]!r} is before {earlier[0]} of {earlier[1]!r}"
            yield Finding(events[second].path, problem)


def time(subject: Subject) -> Iterator[Finding]:
    """Look at records that were made from others."""
    for record, other in _pairs(subject):
        made, before = _moment(record, "created_at"), _moment(other, "created_at")
        if made and before:
            problem = "" if made >= before else f"older than {other}, which it was made from"
            yield Finding(f"{record.path}.created_at", problem)


def clock(subject: Subject) -> Iterator[Finding]:
    """Look at the times of events."""
    latest: datetime | None = None
    for event in subject.records("events"):
        if moment := _moment(event, "time"):
            problem = "" if latest is None or moment >= latest else "earlier than the event before it"
            yield Finding(f"{event.path}.time", problem)
            latest = moment


def figures(subject: Subject) -> Iterator[Finding]:
    """Look at the members of `data` that repeat something of the subject."""
    for event in subject.records("events"):
        data: object = event.value.get("data")
        found = _FIGURES.get(text(event.value, "event_type"))
        if not found or not isinstance(data, dict):
            continue
        name, member, field = found
        subject_of = subject.by_list[name].get(text(event.value, "subject"))
        there = subject_of.value.get(field) if subject_of else None
        repeated: object = cast("Json", data).get(member)
        held: object = len(cast("list[object]", there)) if isinstance(there, list) else there
        if subject_of and held is not None and isinstance(repeated, (int, float, str)):
            problem = f"states {repeated!r}, {subject_of} has {held!r}"
            yield Finding(f"{event.path}.data.{member}", "" if repeated == held else problem)


def _pairs(subject: Subject) -> Iterator[tuple[Object, Object]]:
    for name, field, other in _MADE_FROM:
        for record in subject.records(name):
            if made_from := subject.linked(record, field, other):
                yield record, made_from
    for selection in subject.records("selections"):  # the budget is applied to what was selected
        if budget := subject.linked(selection, "budget_ref", "budgets"):
            yield budget, selection


def _expected(subject: Subject) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    for record, made_from in _pairs(subject):
        yield (_MADE[made_from.list], made_from.id), (_MADE[record.list], record.id)
    for about in {text(event.value, "subject") for event in subject.records("events")}:
        for earlier, later in _STEPS:
            yield (earlier, about), (later, about)


def _moment(record: Object, field: str) -> datetime | None:
    return read_time(text(record.value, field))


def _blocks(assembly: Object) -> bool:
    return bool(assembly.value.get("ordered_blocks"))


_REFS = {
    "surfaces": "surface_refs",
    "selections": "selection_refs",
    "assemblies": "assembly_refs",
    "injections": "injection_refs",
    "compactions": "compaction_refs",
}
