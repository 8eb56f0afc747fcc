"""Rules about references: ids occur once, and what is referred to is in the document."""

from collections.abc import Iterator
from typing import cast

from daypack.turn.conformance.objects import ID_FIELDS, RECORD_LINKS, Json, Object, elements, listed, strings
from daypack.turn.conformance.subject import Finding, Subject, text
from daypack.types.canonical import canonical

# The fields of the envelope that name records, and the list that holds those.
_ENVELOPE = {
    "surface_refs": "surfaces",
    "item_refs": "items",
    "selection_refs": "selections",
    "budget_ref": "budgets",
    "window_refs": "windows",
    "assembly_refs": "assemblies",
    "injection_refs": "injections",
    "compaction_refs": "compactions",
    "missing_context_refs": "missing_contexts",
}
_ITEMS = (
    ("selections", "candidate_item_refs"),
    ("selections", "selected_item_refs"),
    ("assemblies", "source_item_refs"),
    ("compactions", "source_item_refs"),
    ("summaries", "source_item_refs"),
)
# Lists of objects inside records, with the fields of those objects that name items.
_INNER_ITEMS = (
    ("selections", "omitted_item_refs", "item_ref"),
    ("budgets", "truncation_records", "item_ref"),
    ("windows", "segments", "item_refs"),
    ("assemblies", "ordered_blocks", "item_refs"),
)


def unique(subject: Subject) -> Iterator[Finding]:
    """Look at every id; the same item may be on several surfaces."""
    seen: dict[str, Object] = {}
    context_id = text(subject.document, "context_id")
    for found in subject.objects:
        if not found.id:
            if found.value.get(ID_FIELDS[found.list]) == "":
                yield Finding(found.path, "the id is empty")
            continue
        first = seen.setdefault(found.id, found)
        same = first is found or (first.list == found.list == "items" and _equal(first.value, found.value))
        if found.id == context_id:
            yield Finding(found.path, f"{found.id!r} is the id of the envelope")
        else:
            yield Finding(found.path, "" if same else f"{found.id!r} is also the id of {first.path}")


def envelope(subject: Subject) -> Iterator[Finding]:
    """Look at the envelope's refs of each list that is in the document, and at the records in it."""
    for field, name in _ENVELOPE.items():
        records = subject.by_list[name]
        if not records or field not in subject.document:
            continue
        single = field == "budget_ref"
        refs = [text(subject.document, field)] if single else strings(subject.document, field)
        path = f"$.{field}"
        for at, ref in enumerate(refs):
            known = ref in records or (name == "items" and ref in subject.known_items)
            yield Finding(path if single else f"{path}[{at}]", "" if known else f"{ref!r} is not in {name}")
        if not single:
            named = frozenset(refs)
            for found in records.values():
                yield Finding(found.path, "" if found.id in named else f"{found.id!r} is not in {field}")


def record(subject: Subject) -> Iterator[Finding]:
    """Look at the references between records."""
    for name, field, other in RECORD_LINKS:
        if not subject.by_list[other] and field != "summary_ref":
            continue  # that list is elsewhere
        for found in subject.records(name):
            if ref := text(found.value, field):
                known = ref in subject.by_list[other]
                yield Finding(f"{found.path}.{field}", "" if known else f"{ref!r} is not in {other}")


def item(subject: Subject) -> Iterator[Finding]:
    """Look at every reference to an item, if the document has a surface."""
    if not subject.by_list["surfaces"]:
        return
    for path, ref in _item_refs(subject):
        known = ref in subject.known_items
        yield Finding(path, "" if known else f"{ref!r} is no item, and no surface lists it as available")


def event(subject: Subject) -> Iterator[Finding]:
    """Look at what events are about."""
    context_id = text(subject.document, "context_id")
    ids = {context_id, *(found.id for found in subject.objects), *subject.known_items}
    for found in subject.records("events"):
        if named := text(found.value, "context_id"):
            problem = "" if named == context_id else f"{named!r} is another context"
            yield Finding(f"{found.path}.context_id", problem)
        if about := text(found.value, "subject"):
            yield Finding(f"{found.path}.subject", "" if about in ids else f"{about!r} is no object of the document")


def _item_refs(subject: Subject) -> Iterator[tuple[str, str]]:
    for name, field in _ITEMS:
        for found in subject.records(name):
            yield from _refs(found.value, field, found.path)
    for name, inner, field in _INNER_ITEMS:
        for found in subject.records(name):
            for path, value in elements(found.value, inner, found.path):
                yield from _refs(value, field, path)
    for found in subject.records("selections"):
        signals: object = found.value.get("ranking_signals")
        for ref in cast("Json", signals) if isinstance(signals, dict) else ():
            yield f"{found.path}.ranking_signals[{ref!r}]", ref


def _refs(value: Json, field: str, path: str) -> Iterator[tuple[str, str]]:
    if ref := text(value, field):
        yield f"{path}.{field}", ref
    for at, ref in enumerate(listed(value, field)):
        if isinstance(ref, str):
            yield f"{path}.{field}[{at}]", ref


def _equal(first: Json, other: Json) -> bool:
    return canonical(first) == canonical(other)
