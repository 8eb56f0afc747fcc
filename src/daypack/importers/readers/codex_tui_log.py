"""Read the log of Codex's terminal interface (TUI), which is a different file than the rollout.

    {"ts":"…","dir":"to_tui","kind":"codex_event","payload":{"id":"1","msg":{"type":"agent_message","message":"…"}}}

Complete answers, commands and logged user input become messages. All other rows, such as key presses and redraws,
become events.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from daypack.importers.readers.content_parts import openai_parts
from daypack.importers.transcript import (
    Draft,
    Origin,
    RawRow,
    Row,
    Step,
    StoreBlob,
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
    """Return True if only TUI logs contain such a row."""
    return {"ts", "dir", "kind"} <= set(row.fields)


def session_id(head: Sequence[Row]) -> str | None:
    """Return the session id if the log contains it."""
    return first_text(_event(row).get("session_id") for row in head)


def first_model(head: Sequence[Row]) -> str | None:
    """Return the model if the log contains it."""
    return first_text(row.fields.get("model") for row in head)


def first_cwd(head: Sequence[Row]) -> str | None:
    """Return the working directory if the log contains it."""
    return first_text(row.fields.get("cwd") for row in head)


class CodexTuiLog:
    """Reads the rows of one log."""

    def __init__(self, origin: Origin, store_blob: StoreBlob) -> None:
        self._origin = origin
        self._store_blob = store_blob
        self._thinking = ""  # since the last answer
        self._complete = False  # a complete text was logged: deltas repeat it

    def observe(self, row: Row) -> None:
        """See a row that an earlier import stored: later rows do not depend on it."""

    def is_boundary(self, row: Row) -> bool:  # noqa: ARG002 — required by RowReader
        """Return True if all messages before this row are complete."""
        return not self._thinking

    def read(self, row: Row) -> Iterator[Step]:
        """Yield the steps that this row completes."""
        event, operation = _event(row), object_of(row.fields.get("payload"))
        kind = event.get("type")
        if kind == "agent_message" and isinstance(event.get("message"), str):
            yield self._draft(row, {"role": "assistant", "content": self._answer(event["message"])})
        elif kind == "exec_command_begin" and text_of(event.get("call_id")):
            arguments = msgspec.json.encode(without(event, "type", "call_id")).decode()
            call = {"id": event["call_id"], "name": "exec_command", "arguments": arguments}
            yield self._draft(row, {"role": "assistant", "tool_calls": [call]})
        elif kind == "exec_command_end" and text_of(event.get("call_id")):
            yield self._draft(row, {"role": "tool", "content": _output(event), "tool_call_id": event["call_id"]}, event)
        elif row.fields.get("kind") == "op" and operation.get("type") in ("user_input", "user_turn"):
            content = openai_parts(list_of(operation.get("items")), self._store_blob)
            yield self._draft(row, {"role": "user", "content": content}, without(operation, "items"))
        else:
            self._collect_thinking(event)
            yield RawRow(row)

    def finish(self) -> Iterator[Step]:
        """Drop thinking that no answer followed: its rows are already events."""
        self._thinking, self._complete = "", False
        yield from ()

    def state(self) -> dict[str, Any] | None:
        """Return nothing: later rows do not depend on earlier ones."""
        return {}

    def resume(self, state: dict[str, Any]) -> None:
        """Continue: later rows do not depend on earlier ones."""

    def _collect_thinking(self, event: dict[str, Any]) -> None:
        if event.get("type") in _REASONING:
            self._thinking = (
                f"{self._thinking}\n\n{event.get('text', '')}" if self._complete else str(event.get("text", ""))
            )
            self._complete = True
        elif event.get("type") in _REASONING_DELTAS and not self._complete:
            self._thinking += str(event.get("delta", ""))

    def _answer(self, text: str) -> str | list[dict[str, Any]]:
        thinking, self._thinking, self._complete = self._thinking, "", False
        return [{"type": "thinking", "text": thinking}, {"type": "text", "text": text}] if thinking else text

    def _draft(self, row: Row, message: dict[str, Any], event: dict[str, Any] | None = None) -> Draft:
        names = ("call_id", "stdout", "stderr", "aggregated_output", "formatted_output")
        meta = {"format": self._origin.format, "line": row.number, "event": without(event or {}, *names) or None}
        fields = {"client_key": key_of(self._origin, row), "ts": time_of(row.fields["ts"]), "meta": without(meta)}
        return Draft({**message, **fields}, (row,))


def _event(row: Row) -> dict[str, Any]:
    if row.fields.get("kind") != "codex_event":
        return {}
    return object_of(object_of(row.fields.get("payload")).get("msg"))


def _output(event: dict[str, Any]) -> str:
    combined = text_of(event.get("aggregated_output"))
    return combined or f"{event.get('stdout') or ''}{event.get('stderr') or ''}"
