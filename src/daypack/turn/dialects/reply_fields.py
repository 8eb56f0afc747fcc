"""Replies of client libraries as plain objects, without importing the libraries."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from daypack.errors import BadInput, DaypackError, EmptyReply

_MAX_DEPTH = 90
_MAX_NAME_CHARS = 80
# Types of the events a stream consists of.
_STREAMED = ("message_", "content_block_", "response.")
_PLAIN = (str, int, float, bool, type(None))


def open_reply(reply: object) -> dict[str, Any]:
    """Return a reply as a dict of plain values; refuse what is no finished reply."""
    if reply is None:
        raise unusable("is missing", "reply", "give the text or what the client returned")
    if isinstance(reply, BaseException):
        raise unusable(f"is an error: {reply}", "reply", "a failed call has nothing to append")
    if hasattr(reply, "__await__"):
        raise unusable("has not been awaited", "reply", "write: reply = await client…")
    opened = plain_fields(reply, "reply")
    if isinstance(error := opened.get("error"), (dict, str)) and error:
        said = text_at(cast(dict[str, Any], error), "message") if isinstance(error, dict) else error
        raise unusable(f"is an error: {said}", "reply.error", "a failed call has nothing to append")
    if text_at(opened, "object").endswith(".chunk") or text_at(opened, "type").startswith(_STREAMED):
        raise unusable("is a piece of a stream", "reply", "read the stream to its end and give the final message")
    return opened


def failure_of(reply: object, refusal: DaypackError) -> dict[str, Any]:
    """Return the class and status of the provider's error that a refused reply is; empty if it is none."""
    if isinstance(reply, BaseException):
        status = getattr(reply, "status_code", None)
        return {"error": type(reply).__name__} | ({"status": status} if isinstance(status, int) else {})
    if isinstance(refusal, EmptyReply):
        return {} if isinstance(reply, str) else {"error": EmptyReply.__name__}
    if refusal.place not in ("reply.error", "status"):
        return {}
    fields = plain_fields(reply, "reply")
    words = object_at(fields, "error")
    names = (text_at(words, "code"), text_at(words, "type"), text_at(fields, "status"))
    return {"error": next(filter(None, names), "error")[:_MAX_NAME_CHARS]}


def plain_fields(value: object, place: str) -> dict[str, Any]:
    """Return an object of a client library as a dict of plain values."""
    fields = _plain(value, place, 0)
    if not isinstance(fields, dict):
        raise unusable(f"cannot be read: {_kind(value)}", place, "give the text or what the client returned")
    return cast(dict[str, Any], fields)


def is_stream(value: object) -> bool:
    """Return True if a reply arrives in pieces, also if it must be entered first, as client libraries' helpers must."""
    return any(hasattr(value, name) for name in ("__next__", "__anext__", "__aiter__", "__enter__", "__aenter__"))


def unusable(problem: str, place: str, hint: str) -> BadInput:
    """Return the error for a reply or stream that cannot be read; `problem` says what it is or has."""
    subject = "the stream" if place == "stream" else "the reply"
    return BadInput(f"{subject} {problem}", operation="read reply", place=place, hint=hint)


def text_at(value: Mapping[str, Any], key: str) -> str:
    """Return the text under a key; empty when there is none."""
    found = value.get(key)
    return found if isinstance(found, str) else ""


def object_at(value: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the object under a key; empty when there is none."""
    found = value.get(key)
    return cast(dict[str, Any], found) if isinstance(found, dict) else {}


def list_at(value: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the objects in the list under a key."""
    found = value.get(key)
    items = cast(list[Any], found) if isinstance(found, list) else []
    return [cast(dict[str, Any], item) for item in items if isinstance(item, dict)]


def _plain(value: object, place: str, depth: int) -> Any:  # noqa: ANN401 — a JSON value
    if isinstance(value, _PLAIN):
        return value
    if depth > _MAX_DEPTH:
        raise unusable(f"is nested deeper than {_MAX_DEPTH} levels", place, "give what the client returned")
    if isinstance(value, Mapping):
        items = cast(Mapping[object, object], value).items()
        return {str(key): _plain(item, f"{place}.{key}", depth + 1) for key, item in items}
    if isinstance(value, (list, tuple)):
        listed = cast(list[object], value)
        return [_plain(item, f"{place}[{index}]", depth + 1) for index, item in enumerate(listed)]
    return _plain(_unwrap(value, place), place, depth + 1)


def _unwrap(value: Any, place: str) -> object:  # noqa: ANN401 — any library's object
    """Return one level of an object: pydantic models, structs, and everything that keeps its fields in a dict."""
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    if callable(dump := getattr(value, "model_dump", None)):
        try:
            # Only what the provider sent: the library's defaults are not part of the reply.
            return dump(exclude_unset=True, warnings=False)
        except TypeError:
            return dump()
    if hasattr(value, "__next__") or hasattr(value, "__anext__") or hasattr(value, "__aiter__"):
        raise unusable("is a stream", place, "read the stream to its end and give the final message")
    if callable(dump := getattr(value, "to_dict", None)):
        return dump()
    fields = getattr(value, "__dict__", None)
    if isinstance(fields, dict) and not isinstance(value, type):
        return {name: item for name, item in cast(dict[str, object], fields).items() if not name.startswith("_")}
    raise unusable(f"cannot be read: {_kind(value)}", place, "give the text or what the client returned")


def _kind(value: object) -> str:
    return type(value).__name__
