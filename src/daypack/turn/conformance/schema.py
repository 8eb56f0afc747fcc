"""What the types of the thirteen objects demand of plain JSON values: required fields, JSON types, times.

The types are those that `schemas/*.json` is written from, so that both always agree. Vocabularies are open and no part
of it.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple, cast

from msgspec import inspect

from daypack.types.context import OBJECTS

_TIME = re.compile(
    r"(?P<minute>\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d):(?P<second>\d\d)(?P<fraction>(?:\.\d+)?)(?P<offset>[Zz]|[+-]\d\d:\d\d)",
    re.ASCII,
)


class Field(NamedTuple):
    """A field and one demand on it; no problem if it is met."""

    rule: str  # "schema.required", "schema.type" or "schema.time"
    path: str
    problem: str = ""


def examine(kind: str, value: object, path: str = "$") -> Iterator[Field]:
    """Yield the fields of an object of that kind, and of the objects inside it."""
    yield from _examine(_type(kind), value, path)


def read_time(text: str) -> datetime | None:
    """Return a date and time of RFC 3339; None for anything else, also for other forms of ISO 8601."""
    match = _TIME.fullmatch(text)
    if not match:
        return None
    second = match["second"].replace("60", "59")  # Python knows no leap seconds
    try:
        return datetime.fromisoformat(f"{match['minute']}:{second}{match['fraction']}{match['offset']}".upper())
    except ValueError:
        return None


@cache
def _type(kind: str) -> inspect.Type:
    return inspect.type_info(OBJECTS[kind])


def _examine(type_: inspect.Type, value: object, path: str) -> Iterator[Field]:
    while isinstance(type_, inspect.Metadata):
        schema = cast("dict[str, object]", type_.extra_json_schema or {})
        if schema.get("format") == "date-time" and isinstance(value, str):
            yield Field("schema.time", path, "" if read_time(value) else f"{value[:40]!r} is not a date and time")
        type_ = type_.type
    if isinstance(type_, inspect.UnionType) and (member := _member(type_, value)):
        yield from _examine(member, value, path)
        return
    if not _fits(type_, value):
        yield Field("schema.type", path, f"expected {_name(type_)}, got {_value_name(value)}")
        return
    yield Field("schema.type", path)
    match type_:
        case inspect.StructType():
            yield from _fields(type_, cast("dict[str, Any]", value), path)
        case inspect.VarTupleType(item_type=inner):
            for at, element in enumerate(cast("list[object]", value)):
                yield from _examine(inner, element, f"{path}[{at}]")
        case inspect.DictType(value_type=inner):
            for key, element in cast("dict[str, object]", value).items():
                yield from _examine(inner, element, f"{path}[{key!r}]")
        case _:
            pass


def _fields(type_: inspect.StructType, value: dict[str, Any], path: str) -> Iterator[Field]:
    for field in type_.fields:
        if field.encode_name in value:
            yield from _examine(field.type, value[field.encode_name], f"{path}.{field.encode_name}")
        # What daypack reads may lack the version; what a runtime writes may not.
        if field.required or field.encode_name == "schema_version":
            problem = "" if field.encode_name in value else f"{_object_name(type_)} requires {field.encode_name}"
            yield Field("schema.required", f"{path}.{field.encode_name}", problem)


def _object_name(type_: inspect.StructType) -> str:
    """Return the name of an object as docs/envelope.md and the schemas spell it: ContextItem is context_item."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type_.cls.__name__).lower()


def _member(type_: inspect.UnionType, value: object) -> inspect.Type | None:
    return next((member for member in type_.types if _fits(member, value)), None)


def _fits(type_: inspect.Type, value: object) -> bool:
    match type_:
        case inspect.Metadata(type=inner):
            return _fits(inner, value)
        case inspect.UnionType(types=members):
            return any(_fits(member, value) for member in members)
        case inspect.VarTupleType(min_length=least):
            return isinstance(value, list) and len(cast("list[object]", value)) >= (least or 0)
        case inspect.IntType(ge=least):
            whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            return whole and not isinstance(value, bool) and (least is None or cast("int", value) >= least)
        case inspect.FloatType():
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case _:
            return isinstance(value, _PYTHON.get(type(type_), object))


_PYTHON: dict[type[inspect.Type], type] = {
    inspect.StructType: dict,
    inspect.DictType: dict,
    inspect.StrType: str,
    inspect.BoolType: bool,
    inspect.NoneType: type(None),
}
_NAMES: dict[type[inspect.Type], str] = {
    inspect.StructType: "an object",
    inspect.DictType: "an object",
    inspect.StrType: "a text",
    inspect.BoolType: "true or false",
    inspect.NoneType: "null",
    inspect.FloatType: "a number",
}


def _name(type_: inspect.Type) -> str:
    match type_:
        case inspect.Metadata(type=inner):
            return _name(inner)
        case inspect.UnionType(types=members):
            return " or ".join(dict.fromkeys(map(_name, members)))
        case inspect.VarTupleType(min_length=least):
            return "a list that is not empty" if least else "a list"
        case inspect.IntType(ge=least):
            return "a whole number" if least is None else f"a whole number of at least {least}"
        case _:
            return _NAMES.get(type(type_), "any value")


def _value_name(value: object) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    return "null" if value is None else str(value).lower()
