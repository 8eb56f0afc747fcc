"""Rules about targets: what one target sees is never taken for what another sees."""

from collections.abc import Iterator

from daypack.turn.conformance.objects import RECORD_LINKS, items, strings
from daypack.turn.conformance.subject import Finding, Subject, text

# Who sees an injection point; those of other runtimes are free.
POINTS = {
    "system_prompt": ("model",),
    "developer_prompt": ("model",),
    "message_history": ("model",),
    "user_message_appendix": ("model",),
    "tool_argument": ("tool",),
    "tool_visible_resource": ("tool",),
    "ui_panel": ("ui", "user", "reviewer"),
    "runtime_metadata": ("runtime",),
    "peer_agent_message": ("peer_agent",),
    "review_export": ("reviewer", "evidence_export"),
}
_TARGETS = frozenset(target for targets in POINTS.values() for target in targets)


def item(subject: Subject) -> Iterator[Finding]:
    """Look at the items that assemblies show."""
    for assembly in subject.records("assemblies"):
        target = text(assembly.value, "target")
        for path, shown in subject.shown(assembly) if target else ():
            allowed = strings(shown.value, "visibility")  # none breaks a rule of the schema
            problem = f"{shown.id!r} is visible to {', '.join(allowed)}, not to {target}" if allowed else ""
            yield Finding(path, "" if target in allowed else problem)


def surface(subject: Subject) -> Iterator[Finding]:
    """Look at the items of surfaces that state their targets."""
    for found in subject.records("surfaces"):
        targets = frozenset(strings(found.value, "visibility"))
        for held in items(found) if targets else ():
            allowed = strings(held.value, "visibility")
            problem = f"{held.id!r} is visible to none of {', '.join(sorted(targets))}" if allowed else ""
            yield Finding(f"{held.path}.visibility", "" if targets.intersection(allowed) else problem)


def chain(subject: Subject) -> Iterator[Finding]:
    """Look at the targets of records that refer to each other."""
    for name, field, other in RECORD_LINKS:
        for record in subject.records(name):
            linked = subject.linked(record, field, other)
            own, theirs = text(record.value, "target"), text(linked.value, "target") if linked else ""
            if own and theirs and linked:
                problem = f"for {own}, {linked} is for {theirs}"
                yield Finding(f"{record.path}.target", "" if own == theirs else problem)


def point(subject: Subject) -> Iterator[Finding]:
    """Look at injections whose point and target are both of the model's own."""
    for injection in subject.records("injections"):
        place, target = text(injection.value, "injection_point"), text(injection.value, "target")
        if place in POINTS and target in _TARGETS:
            problem = f"{target} does not see {place}; {' and '.join(POINTS[place])} can"
            yield Finding(f"{injection.path}.injection_point", "" if target in POINTS[place] else problem)
