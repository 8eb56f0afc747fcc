"""The objects of an envelope document: each record and item with its id and its JSON path."""

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

Json = dict[str, Any]

# The lists of an envelope: the object they hold, and the field with its id.
LISTS = {
    "surfaces": ("context_surface", "surface_id"),
    "selections": ("context_selection", "selection_id"),
    "budgets": ("context_budget", "budget_id"),
    "windows": ("context_window", "window_id"),
    "assemblies": ("context_assembly", "assembly_id"),
    "injections": ("context_injection", "injection_id"),
    "compactions": ("context_compaction", "compaction_id"),
    "summaries": ("context_summary", "summary_id"),
    "missing_contexts": ("missing_context", "missing_id"),
    "events": ("context_event", "event_id"),
}
# References between records: the list, the field, and the list that it leads to.
RECORD_LINKS = (
    ("selections", "surface_id", "surfaces"),
    ("selections", "budget_ref", "budgets"),
    ("budgets", "window_ref", "windows"),
    ("windows", "budget_ref", "budgets"),
    ("assemblies", "budget_ref", "budgets"),
    ("assemblies", "window_ref", "windows"),
    ("injections", "assembly_id", "assemblies"),
    ("compactions", "summary_ref", "summaries"),
)
ITEMS = "items"  # the list of a surface, named like those of the envelope
ID_FIELDS = {ITEMS: "item_id", **{name: field for name, (_, field) in LISTS.items()}}


class Object(NamedTuple):
    """One record or item of a document."""

    list: str  # "budgets", …, or "items"
    path: str  # "$.budgets[0]"
    id: str  # empty if it has none
    value: Json

    def __str__(self) -> str:
        return f"{self.list} {self.id or self.path}"


def objects_of(document: Json) -> tuple[Object, ...]:
    """Return every record and item of a document; items come directly before their surface."""
    return tuple(_objects(document))


def records(document: Json, name: str) -> Iterator[Object]:
    """Yield the records of one list."""
    field = LISTS[name][1]
    for path, value in elements(document, name, "$"):
        yield Object(name, path, _id(value, field), value)


def items(surface: Object) -> Iterator[Object]:
    """Yield the items that a surface holds in full."""
    for path, value in elements(surface.value, ITEMS, surface.path):
        yield Object(ITEMS, path, _id(value, "item_id"), value)


def elements(value: Json, field: str, path: str) -> Iterator[tuple[str, Json]]:
    """Yield the JSON objects in a list field, each with its path; anything else is left to the schema rules."""
    for at, element in enumerate(listed(value, field)):
        if isinstance(element, dict):
            yield f"{path}.{field}[{at}]", cast("Json", element)


def listed(value: Json, field: str) -> list[Any]:
    """Return a list field; empty if it is absent or no list."""
    found = value.get(field)
    return cast("list[Any]", found) if isinstance(found, list) else []


def strings(value: Json, field: str) -> list[str]:
    """Return the strings of a list field."""
    return [element for element in listed(value, field) if isinstance(element, str)]


def _objects(document: Json) -> Iterator[Object]:
    for name in LISTS:
        for record in records(document, name):
            if name == "surfaces":
                yield from items(record)
            yield record


def _id(value: Json, field: str) -> str:
    found = value.get(field)
    return found if isinstance(found, str) else ""
