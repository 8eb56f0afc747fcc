"""What Codex told its screen: the log of its terminal interface, another file than the rollout.

    {"ts":"…","dir":"to_tui","kind":"codex_event","payload":{"id":"1","msg":{"type":"agent_message","message":"…"}}}

Whole answers, commands and, where they are written down, the user's words are messages. All other rows, key presses and
redraws among them, are kept as events.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from daypack.importers.parts import openai_parts
from daypack.importers.transcript import (
    Draft,
    Keep,
    Kept,
    Origin,
    Row,
    Step,
    first_text,
    key_of,
    list_of,
    object_of,
    text_of,
    time_of,
    without,
)

_REASONING = ("agent_reasoning", "agent_reasoning_raw_content")
_REASONING_DELTAS = ("agent_reasoning_delta", "agent_reasoning_raw_content_delta")


def is_row(row: Row) -> bool:
    """Say whether a row can only come from this log."""
    return {"ts", "dir", "kind"} <= set(row.fields)


def name_from(head: Sequence[Row]) -> str | None:
    """Return the id of the session, when it is told."""
    return first_text(_event(row).get("session_id") for row in head)


def model_from(head: Sequence[Row]) -> str | None:
    """Return the model, when it is told."""
    return first_text(row.fields.get("model") for row in head)


def cwd_from(head: Sequence[Row]) -> str | None:
    """Return the folder, when it is told."""
    return first_text(row.fields.get("cwd") for row in head)


class CodexScreen:
    """Reads the rows of one log."""

    def __init__(self, origin: Origin, keep: Keep) -> None:
        self._origin = origin
        self._keep = keep
        self._thought = ""  # since the last answer
        self._whole = False  # it was told as a whole, its pieces repeat it

    def note(self, row: Row) -> None:
        """See a row that was taken in before: nothing of it is needed."""

    def begins(self, row: Row) -> bool:  # noqa: ARG002 — asked of every reader
        """Say whether everything before this row is complete."""
        return not self._thought

    def read(self, row: Row) -> Iterator[Step]:
        """Yield what is complete with this row."""
        told, asked = _event(row), object_of(row.fields.get("payload"))
        kind = told.get("type")
        if kind == "agent_message" and isinstance(told.get("message"), str):
            yield self._draft(row, {"role": "assistant", "content": self._answer(told["message"])})
        elif kind == "exec_command_begin" and text_of(told.get("call_id")):
            arguments = msgspec.json.encode(without(told, "type", "call_id")).decode()
            call = {"id": told["call_id"], "name": "exec_command", "arguments": arguments}
            yield self._draft(row, {"role": "assistant", "tool_calls": [call]})
        elif kind == "exec_command_end" and text_of(told.get("call_id")):
            yield self._draft(row, {"role": "tool", "content": _output(told), "tool_call_id": told["call_id"]}, told)
        elif row.fields.get("kind") == "op" and asked.get("type") in ("user_input", "user_turn"):
            words = openai_parts(list_of(asked.get("items")), self._keep)
            yield self._draft(row, {"role": "user", "content": words}, without(asked, "items"))
        else:
            self._hear(told)
            yield Kept(row)

    def finish(self) -> Iterator[Step]:
        """Forget thoughts that no answer followed: their rows are kept."""
        self._thought, self._whole = "", False
        yield from ()

    def _hear(self, told: dict[str, Any]) -> None:
        if told.get("type") in _REASONING:
            self._thought = f"{self._thought}\n\n{told.get('text', '')}" if self._whole else str(told.get("text", ""))
            self._whole = True
        elif told.get("type") in _REASONING_DELTAS and not self._whole:
            self._thought += str(told.get("delta", ""))

    def _answer(self, words: str) -> str | list[dict[str, Any]]:
        thought, self._thought, self._whole = self._thought, "", False
        return [{"type": "thinking", "text": thought}, {"type": "text", "text": words}] if thought else words

    def _draft(self, row: Row, message: dict[str, Any], told: dict[str, Any] | None = None) -> Draft:
        names = ("call_id", "stdout", "stderr", "aggregated_output", "formatted_output")
        meta = {"format": self._origin.format, "line": row.number, "told": without(told or {}, *names) or None}
        fields = {"client_key": key_of(self._origin, row), "ts": time_of(row.fields["ts"]), "meta": without(meta)}
        return Draft({**message, **fields}, (row,))


def _event(row: Row) -> dict[str, Any]:
    if row.fields.get("kind") != "codex_event":
        return {}
    return object_of(object_of(row.fields.get("payload")).get("msg"))


def _output(told: dict[str, Any]) -> str:
    whole = text_of(told.get("aggregated_output"))
    return whole or f"{told.get('stdout') or ''}{told.get('stderr') or ''}"
