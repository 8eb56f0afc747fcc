"""Reading an envelope document: one JSON object that every runtime reads the same way, with a context_id."""

from typing import NoReturn, cast

from daypack.errors import BadInput
from daypack.protocol.verdict import scan, skip_space
from daypack.turn.conformance.objects import ITEMS, LISTS, Json

MAX_CHARS = 256 << 20  # a session of years is smaller
_HINT = "pass one JSON object as docs/envelope.md describes it"


def read_document(data: bytes | str, place: str = "envelope") -> Json:
    """Return a document as plain JSON values; raise BadInput, with the JSON path, if it is unreadable.

    Beyond what is no JSON, this refuses what runtimes read differently: a key that occurs twice, half characters,
    numbers beyond a double, more than 64 levels.
    """
    document = _parse(data, place)
    if not isinstance(document, dict):
        _refuse("expected a JSON object", place, "$")
    document = cast("Json", document)
    if not document.get("context_id") or not isinstance(document["context_id"], str):
        _refuse("context_id must be a text that is not empty", place, "$.context_id")
    for name in LISTS:
        for at, record in enumerate(_list(document, name, place, "$")):
            if name == "surfaces":
                _list(record, ITEMS, place, f"$.surfaces[{at}]")
    return document


def _parse(data: bytes | str, place: str) -> object:
    try:
        text = data if isinstance(data, str) else data.decode()
    except UnicodeDecodeError as error:
        _refuse(f"not UTF-8: byte {error.start:,}", place, "$")
    verdict = scan(text, skip_space(text), MAX_CHARS)
    if problem := verdict.problem or verdict.refused:
        _refuse(problem, place, "$")
    if verdict.mended:
        _refuse("a text has half of a surrogate pair, which UTF-8 cannot express", place, "$")
    if skip_space(text, verdict.end) < len(text):
        _refuse("more text follows the JSON value", place, "$")
    return verdict.value


def _list(value: Json, field: str, place: str, path: str) -> list[Json]:
    """Return a list of objects; absent and null are empty."""
    found: object = value.get(field)
    if found is None:
        return []
    if not isinstance(found, list):
        _refuse(f"{field} must be a list", place, f"{path}.{field}")
    for at, element in enumerate(cast("list[object]", found)):
        if not isinstance(element, dict):
            _refuse(f"{field} must hold objects", place, f"{path}.{field}[{at}]")
    return cast("list[Json]", found)


def _refuse(problem: str, place: str, path: str) -> NoReturn:
    raise BadInput(problem, operation="read envelope", place=place if path == "$" else f"{place} {path}", hint=_HINT)
