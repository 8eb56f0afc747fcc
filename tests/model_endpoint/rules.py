"""Rules that all providers have: tool definitions, tool calls, images."""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from jsonschema import Draft202012Validator, SchemaError

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
Block = dict[str, Any]

_FIRST_BYTES = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}


def check_tools(tools: Iterable[tuple[str, str, object, bool]]) -> Iterator[str]:
    """Check definitions, each given as its place, its name, the schema of its arguments, and whether it is strict."""
    names: set[str] = set()
    for place, name, schema, strict in tools:
        if not NAME.fullmatch(name):
            yield f"{place}: the name {name!r} is not 1 to 64 letters, digits, _ or -"
        if name in names:
            yield f"{place}: there are two tools named {name}"
        names.add(name)
        if schema is not None:
            yield from _check_schema(place, schema, strict=strict)


def _check_schema(place: str, schema: object, *, strict: bool) -> Iterator[str]:
    if not isinstance(schema, dict):
        yield f"{place}: the schema of the arguments is not an object"
        return
    fields = cast(Block, schema)
    try:
        Draft202012Validator.check_schema(fields)
    except SchemaError as error:
        yield f"{place}: invalid JSON schema at {error.json_path}: {error.message}"
        return
    if fields.get("type") != "object":
        yield f"{place}: the schema's type must be object, it is {fields.get('type')!r}"
    properties = set(fields.get("properties", {}))
    if missing := set(fields.get("required", ())) - properties:
        yield f"{place}: required names unknown properties: {', '.join(sorted(missing))}"
    if strict and (fields.get("additionalProperties") is not False or set(fields.get("required", ())) != properties):
        yield f"{place}: a strict schema needs additionalProperties false, and every property in required"


def check_choice(choice: str | None, tools: Iterable[str]) -> Iterator[str]:
    """Check that the tool the model must call is defined."""
    if choice is not None and choice not in tools:
        yield f"tool_choice: there is no tool {choice}"


def check_image(place: str, media_type: str, data: str) -> Iterator[str]:
    """Check that the bytes of an image are those of the type it says."""
    if media_type not in _FIRST_BYTES:
        yield f"{place}: {media_type} is not one of {', '.join(_FIRST_BYTES)}"
        return
    try:
        image = base64.b64decode(data, validate=True)
    except binascii.Error:
        yield f"{place}: the data is not valid base64"
        return
    if not _FIRST_BYTES[media_type].match(image):
        yield f"{place}: the data is not that of {media_type}"


def check_image_url(place: str, url: str) -> Iterator[str]:
    """Check the address of an image: https, or data:."""
    if found := re.fullmatch(r"data:([\w/+.-]+);base64,(.*)", url, re.DOTALL):
        yield from check_image(place, found[1], found[2])
    elif not url.startswith(("https://", "http://")):
        yield f"{place}: {url[:40]!r} is neither an address nor a data URL"


def as_objects(value: object) -> list[Block]:
    """Return a list of objects as such; anything else as an empty list."""
    return cast(list[Block], value) if isinstance(value, list) else []


def as_object(value: object) -> Block:
    """Return an object as such; anything else as an empty one."""
    return cast(Block, value) if isinstance(value, dict) else {}


def estimate_tokens(*values: object) -> int:
    """Return about how many tokens the values of a request are: a token is four characters of text."""
    return sum(map(_chars, values)) // 4


def _chars(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(_chars, cast(Mapping[str, object], value).values()))
    if isinstance(value, (list, tuple)):
        return sum(map(_chars, cast(list[object], value)))
    return 0
