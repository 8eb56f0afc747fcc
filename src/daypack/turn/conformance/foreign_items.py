"""The items of a document as values of this package: what others left out or named differently is no obstacle.

A field that limits what may be done with an item must be understood; any other that is not is ignored with a warning.
"""

from collections import Counter
from collections.abc import Iterator
from typing import NoReturn, cast

import msgspec

from daypack.errors import BadInput
from daypack.turn.conformance.objects import Json, Object, items, records
from daypack.turn.conformance.schema import examine
from daypack.turn.conformance.subject import Subject
from daypack.types.canonical import canonical
from daypack.types.context import ContextItem

# Fields of items and sources that can be ignored: they describe, they do not limit.
_IGNORABLE = frozenset(
    (
        *("schema_version", "title", "mime_type", "language", "token_estimate", "byte_size", "priority", "created_at"),
        *("digest", "policy_refs", "provenance_refs", "external_mappings", "license", "retrieved_at", "modified_at"),
        *("selector", "source_kind"),
    )
)
_HINT = "`daypack conform FILE` lists every rule that the document breaks"


def read_document_items(document: Json, place: str) -> tuple[tuple[ContextItem, ...], tuple[str, ...]]:
    """Return the items of a document, and warnings about what had to be ignored.

    Raise BadInput, with the JSON path, for an item whose needed fields have the wrong type.
    """
    found: list[ContextItem] = []
    warnings: list[str] = []
    for surface in records(document, "surfaces"):
        for item in items(surface):
            if "item_id" not in item.value:
                warnings.append(f"{item.path} has no item_id: turns cannot use it")
            else:
                found.append(_item(item, place, warnings))
    return tuple(found), tuple(warnings)


def check_duplicates(subject: Subject, place: str) -> None:
    """Refuse a document in which an id of a list names two things; the same item may be on several surfaces."""
    seen: dict[tuple[str, str], Object] = {}
    for found in subject.objects:
        first = seen.setdefault((found.list, found.id), found) if found.id else found
        if first is found or (found.list == "items" and canonical(first.value) == canonical(found.value)):
            continue
        _refuse(f"the id {found.id!r} is used twice, first in {first.path}", f"{place} {found.path}")


def missing_fields(subject: Subject) -> Iterator[str]:
    """Yield a warning for each field that objects lack, with their number."""
    lacking = [field for field in subject.fields if field.rule == "schema.required" and field.problem]
    paths = {field.problem: field.path for field in reversed(lacking)}  # the first of each
    for problem, count in Counter(field.problem for field in lacking).items():
        more = f" and {count - 1:,} more" if count > 1 else ""
        yield f"{problem}: {paths[problem].rpartition('.')[0]}{more}"


def _item(item: Object, place: str, warnings: list[str]) -> ContextItem:
    stated = _without_null(item.value)
    if not stated.get("visibility"):
        warnings.append(f"{item.path}: no visibility is stated, so no target may see it")
        stated["visibility"] = ["custom"]
    sources: object = stated.pop("source_refs", [])
    value = _usable("context_item", stated, item.path, place, warnings)
    value.setdefault("context_kind", "custom")
    value.setdefault("content_mode", "inline" if "content" in value else "ref")
    if not isinstance(sources, list):
        _refuse("source_refs must be a list", f"{place} {item.path}.source_refs")
    value["source_refs"] = [
        _source(source, f"{item.path}.source_refs[{at}]", place, warnings)
        for at, source in enumerate(cast("list[object]", sources))
    ]
    try:
        return msgspec.convert(value, ContextItem)
    except msgspec.ValidationError as error:
        _refuse(str(error), f"{place} {item.path}")


def _source(source: object, path: str, place: str, warnings: list[str]) -> object:
    if not isinstance(source, dict):
        return source
    value = _usable("context_source_ref", _without_null(cast("Json", source)), path, place, warnings)
    return {"source_id": path, "uri": "unknown", "source_kind": "custom", **value}


def _usable(kind: str, value: Json, path: str, place: str, warnings: list[str]) -> Json:
    """Return an object without fields that have the wrong type and can be ignored."""
    kept = dict(value)
    for field in examine(kind, value, path):
        name = field.path.removeprefix(f"{path}.").partition(".")[0].partition("[")[0]
        if not field.problem or name not in kept or field.rule == "schema.time":
            continue
        if name not in _IGNORABLE:
            _refuse(field.problem, f"{place} {field.path}")
        warnings.append(f"{field.path}: {field.problem}; ignored")
        del kept[name]
    return kept


def _without_null(value: Json) -> Json:
    return {name: _whole(inner) for name, inner in value.items() if inner is not None}


def _whole(value: object) -> object:
    """Return a value with whole numbers as integers: 5.0 and 5 are one number in JSON, and two in Python."""
    if isinstance(value, dict):
        return {name: _whole(inner) for name, inner in cast("Json", value).items()}
    if isinstance(value, list):
        return [_whole(inner) for inner in cast("list[object]", value)]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) <= 1 << 64 else value


def _refuse(problem: str, place: str) -> NoReturn:
    raise BadInput(problem, operation="read envelope", place=place, hint=_HINT)
