"""Trajectories of SWE-agent: one JSON document per run.

    {"history":[{"role":"assistant","content":"…","thought":"…","action":"ls","tool_calls":[…]}],"trajectory":[…],"info":{…}}

`history` is the conversation. Where it is missing the steps of `trajectory` are read instead: an answer and an
observation each. Otherwise the steps are kept as events, without what they repeat of the history.
"""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from daypack.importers.openai_responses import chat_role
from daypack.importers.parts import openai_parts
from daypack.importers.transcript import (
    Draft,
    Keep,
    Kept,
    Origin,
    Row,
    Step,
    key_of,
    list_of,
    object_of,
    text_of,
    without,
)

FORMAT = "swe-agent"
_FIELDS = ("role", "content", "tool_calls", "tool_call_ids")


def is_document(value: object) -> bool:
    """Say whether a document is a trajectory."""
    fields = object_of(value)
    return isinstance(fields.get("trajectory"), list) or isinstance(fields.get("history"), list)


def rows_of(document: object) -> list[bytes]:
    """Return the conversation as rows."""
    fields = object_of(document)
    history = list_of(fields.get("history"))
    return [msgspec.json.encode(one) for one in history or _told(list_of(fields.get("trajectory")))]


def extra_rows_of(document: object) -> list[bytes]:
    """Return what stands beside the conversation: the steps, and what is told of the run."""
    fields = object_of(document)
    places = {msgspec.json.encode(one): at for at, one in enumerate(list_of(fields.get("history")))}
    rows = [{"trajectory": _shorten(object_of(step), places)} for step in list_of(fields.get("trajectory"))]
    beside = without(fields, "history", "trajectory")
    return [msgspec.json.encode(row) for row in (*rows, beside) if row]


class SweAgent:
    """Reads the messages of one trajectory."""

    def __init__(self, origin: Origin, keep: Keep) -> None:
        self._origin = origin
        self._keep = keep

    def note(self, row: Row) -> None:
        """See a row that was taken in before: nothing of it is needed."""

    def begins(self, row: Row) -> bool:  # noqa: ARG002 — asked of every reader
        """Say whether everything before this row is complete: it always is."""
        return True

    def read(self, row: Row) -> Iterator[Step]:
        """Yield the message of a row."""
        fields = row.fields
        role = "tool" if fields.get("role") == "tool" else chat_role(fields.get("role"))
        if role is None:
            yield Kept(row)
            return
        told = without(fields, *_FIELDS)
        if told.get("thought") == fields.get("content"):
            told.pop("thought", None)
        answered = list_of(fields.get("tool_call_ids"))
        if len(answered) > 1:
            told["tool_call_ids"] = answered
        if role == "tool" and not answered:
            # No provider takes a result without its call.
            role, told["role"] = "user", "tool"
        draft = {
            "role": role,
            "content": openai_parts(fields.get("content"), self._keep),
            "tool_calls": list_of(fields.get("tool_calls")),
            "tool_call_id": text_of(answered[0]) if answered else None,
            "client_key": key_of(self._origin, row),
            "meta": {"format": self._origin.format, "line": row.number, **told},
        }
        yield Draft(without(draft), (row,))

    def finish(self) -> Iterator[Step]:
        """Yield nothing: no row is held back."""
        yield from ()


def _told(steps: list[Any]) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    for step in map(object_of, steps):
        words = step.get("response") or f"{step.get('thought') or ''}\n{step.get('action') or ''}".strip()
        told.append(
            {"role": "assistant", "content": words, **without(step, "response", "observation", "messages", "query")}
        )
        if step.get("observation") is not None:
            told.append({"role": "user", "content": step["observation"], "message_type": "observation"})
    return told


def _shorten(step: dict[str, Any], places: dict[bytes, int]) -> dict[str, Any]:
    """Return a step in which messages of the history are replaced by their position there, from 0."""
    short = dict(step)
    for name in ("messages", "query"):
        if isinstance(step.get(name), list):
            sent = cast(list[object], step[name])
            short[name] = [places.get(msgspec.json.encode(one), one) for one in sent]
    return short
