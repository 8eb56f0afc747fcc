"""Files with items: a JSON array, JSON lines, one item, or an envelope document as `daypack export` writes it."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from daypack.errors import BadInput
from daypack.turn.conformance.digests import verify
from daypack.turn.conformance.document import read_document
from daypack.turn.conformance.foreign_items import read_document_items
from daypack.types.context import ContextItem

_HINT = "write a JSON array of items, one item per line, or an envelope document"
_OWN = "item:"  # how the ids of a caller's items begin in an envelope

GivenItem = ContextItem | Mapping[str, Any]


def read_item_document(data: bytes, place: str) -> list[GivenItem]:
    """Return the items in a file, for `prepare(items=…)`; raise BadInput with the number of the item or line."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise _bad(f"not UTF-8: byte {error.start:,}", place) from error
    if not text.strip():
        return []
    try:
        value: object = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        if len(text.split("\n", 1)) == 1 or text.lstrip()[:1] == "[":
            raise _bad(f"not JSON: {error}", place) from error
        return _lines(text, place)
    if isinstance(value, list):
        return [_object(item, f"{place}, item {at}") for at, item in enumerate(cast(list[object], value), 1)]
    item = _object(value, f"{place}, item 1")
    is_envelope = isinstance(item, dict) and not {"surfaces", "context_id"}.isdisjoint(item)
    return _envelope_items(data, place) if is_envelope else [item]


def _lines(text: str, place: str) -> list[GivenItem]:
    items: list[GivenItem] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            where = f"{place}, line {number}"
            try:
                items.append(_object(msgspec.json.decode(line), where))
            except (msgspec.DecodeError, RecursionError) as error:
                raise _bad(f"not JSON: {error}", where) from error
    return items


def _object(value: object, place: str) -> GivenItem:
    if not isinstance(value, dict):
        raise _bad(f"an item must be an object, not {type(value).__name__}", place)
    return cast(dict[str, Any], value)


def _envelope_items(data: bytes, place: str) -> list[GivenItem]:
    """Return the items on the surfaces of an envelope, each once; the clock of another turn means nothing here."""
    document = read_document(data, place)
    if different := verify(document).differences:
        hint = "get the document again from its producer"
        raise BadInput("; ".join(map(str, different[:3])), operation="read items", place=place, hint=hint)
    found = {item.item_id: item for item in read_document_items(document, place)[0]}
    return [
        msgspec.structs.replace(item, item_id=_own_id(name, found))
        for name, item in found.items()
        if item.context_kind != "runtime_state"
    ]


def _own_id(name: str, taken: Mapping[str, object]) -> str:
    """Return the id under which an item of a caller was passed, so that it has the same id in the next envelope."""
    bare = name.removeprefix(_OWN)
    return bare if bare and bare not in taken else name


def _bad(problem: str, place: str) -> BadInput:
    return BadInput(problem, operation="read items", place=place, hint=_HINT)
