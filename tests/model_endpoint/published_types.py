"""Requests checked against the types that the client libraries publish, with unknown fields refused everywhere."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, SchemaValidator

# What tells the members of a union apart; a member whose own value differs is not the one that was meant.
_TAGS = ("role", "type")
_CONTAINERS = ("list_type", "dict_type", "string_type")


def problems(published: type, body: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the published type of a request does not allow in a body."""
    try:
        _validator(published).validate_python(body, strict=True)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False)
        for detail in _meant(found) or found:
            yield f"{_place(detail['loc'])}: {detail['msg']}"


@lru_cache
def _validator(published: type) -> SchemaValidator:
    return SchemaValidator(cast(Any, _tighten(TypeAdapter(published).core_schema)))


def _tighten(node: object) -> object:
    """Return a schema that refuses unknown fields and reads lists at once instead of lazily."""
    if isinstance(node, dict):
        fields = cast(dict[str, object], node)
        tight = {
            key: value if key in ("serialization", "metadata") else _tighten(value)
            for key, value in fields.items()
            if not (key == "config" and fields.get("type") == "typed-dict")
        }
        if tight.get("type") == "typed-dict":
            tight["extra_behavior"] = "forbid"
        elif tight.get("type") == "generator":
            tight["type"] = "list"
        return tight
    if isinstance(node, list):
        return [_tighten(item) for item in cast(list[object], node)]
    if isinstance(node, tuple):
        return tuple(_tighten(item) for item in cast(tuple[object, ...], node))
    return node


def _meant(found: list[ErrorDetails]) -> list[ErrorDetails]:
    """Return the problems without those of union members that the value was not meant to be."""
    others = {
        detail["loc"][:-1] for detail in found if detail["type"] in ("literal_error", "missing") and _is_tag(detail)
    }
    others |= {detail["loc"] for detail in found if detail["type"] in _CONTAINERS and _is_member(detail["loc"])}
    return [detail for detail in found if not any(detail["loc"][: len(other)] == other for other in others)]


def _is_tag(detail: ErrorDetails) -> bool:
    return detail["loc"][-1] in _TAGS


def _is_member(place: tuple[int | str, ...]) -> bool:
    """Whether a place ends with the name of a member of a union: names of types are no field names."""
    last = str(place[-1])
    return not last.islower() or "[" in last or last == "str"


def _place(place: tuple[int | str, ...]) -> str:
    text = ""
    for step in place:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step.isidentifier() and step.islower() and step != "str":
            text += f".{step}"
    return text.lstrip(".")
