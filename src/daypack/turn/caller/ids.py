"""The caller's own ids of a turn: they are in its event, its envelope and every event of that, unchanged."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, cast

import msgspec

from daypack.errors import BadInput, DaypackError
from daypack.history.draft import plain
from daypack.protocol.verdict import MAX_DEPTH, is_deep
from daypack.text.redact.redact import redact_value
from daypack.types.names import did_you_mean
from daypack.types.shapes import Link

MAX_ID_CHARS = 512
MAX_BYTES = 16_384  # of all ids of a turn, as JSON: they are in its event
MAX_LEVELS = MAX_DEPTH - 3  # they are the metadata of an event, the fourth level of an envelope document
_EVENT_IDS = ("thread_id", "task_id", "run_id", "attempt_id", "step_id", "tool_call_id")  # an event has fields for them
_TEXTS = (*_EVENT_IDS, "parent_id")
_REFS = ("policy_refs", "actor_refs")


class TurnIds(TypedDict, total=False):
    """What a turn is a part of, in the words of the caller's runtime."""

    thread_id: str
    task_id: str
    run_id: str
    attempt_id: str
    parent_id: str
    step_id: str
    tool_call_id: str
    native_ids: Mapping[str, Any]  # name of a protocol -> its id, or ids, of the same turn
    policy_refs: Sequence[Link]
    actor_refs: Sequence[Link]


def read_ids(given: Mapping[str, Any], *, redacting: bool) -> dict[str, Any]:
    """Return the ids that a caller passed as plain JSON; raise BadInput for what is no id."""
    if not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] — the edge
        raise _bad(f"must be an object, not {type(given).__name__}", "ids", "pass a mapping such as {'task_id': 't-1'}")
    known = TurnIds.__annotations__
    ids: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known:
            hint = did_you_mean(str(name), known) or f"use {', '.join(known)}; other ids go into native_ids"
            raise _bad(f"{name!r} is not an id of a turn", "ids", hint)
        if value is not None:
            ids[name] = _checked(name, value)
    try:
        size = len(msgspec.json.encode(ids))
    except UnicodeEncodeError:
        raise _bad("a lone surrogate cannot be stored as UTF-8", "ids", "pass valid text") from None
    if size > MAX_BYTES:
        raise _bad(f"{size:,} bytes of ids, at most {MAX_BYTES:,}", "ids", "pass references instead of contents")
    if is_deep(ids, MAX_LEVELS):
        raise _bad(f"nested deeper than {MAX_LEVELS} levels", "ids", "pass references instead of contents")
    return redact_value(ids)[0] if redacting else ids


def event_fields(ids: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an envelope's event that name what it is a part of."""
    fields: dict[str, Any] = {name: ids[name] for name in _EVENT_IDS if name in ids}
    if "policy_refs" in ids:
        fields["policy_refs"] = tuple(ids["policy_refs"])
    if more := {name: ids[name] for name in ("parent_id", "native_ids") if name in ids}:
        fields["metadata"] = more
    return fields


def _checked(name: str, value: object) -> Any:  # noqa: ANN401 — JSON
    place = f"ids.{name}"
    try:
        value = plain(value, place)
    except DaypackError as error:
        raise _bad(error.problem, error.place or place, error.hint) from error
    if name in _TEXTS:
        return _text(value, place)
    if name in _REFS:
        return _links(value, place)
    if not isinstance(value, dict):
        raise _bad(f"must be an object, not {_kind(value)}", place, "pass {'<protocol>': '<id>'}")
    return cast(dict[str, Any], value)


def _text(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise _bad(f"must be text, not {_kind(value)}", place, "pass the id as text")
    if not 0 < len(value) <= MAX_ID_CHARS:
        problem = f"an id has 1 to {MAX_ID_CHARS} characters, got {len(value):,}"
        raise _bad(problem, place, "leave it out if there is none" if not value else "pass the id alone")
    return value


def _links(value: object, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise _bad(f"must be a list, not {_kind(value)}", place, "pass a list of ids or objects")
    for at, link in enumerate(cast(list[object], value)):
        if not isinstance(link, str | dict):
            raise _bad(f"must be text or an object, not {_kind(link)}", f"{place}[{at}]", "pass an id or an object")
    return cast(list[Any], value)


def _kind(value: object) -> str:
    return type(value).__name__


def _bad(problem: str, place: str, hint: str) -> BadInput:
    return BadInput(problem, operation="prepare", place=place, hint=hint)
