"""Read trajectories of SWE-agent, one JSON document per run.

    {"history":[{"role":"assistant","content":"…","thought":"…","action":"ls","tool_calls":[…]}],"trajectory":[…],"info":{…}}

`history` is the conversation. If it is missing, the steps of `trajectory` are read instead, each an answer and an
observation. Otherwise the steps become events, with references instead of messages that repeat the history.
"""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from daypack.importers.readers.content_parts import openai_parts
from daypack.importers.readers.openai_responses import chat_role
from daypack.importers.transcript import (
    Draft,
    Origin,
    RawRow,
    Row,
    Step,
    StoreBlob,
    key_of,
    list_of,
    object_of,
    text_of,
    without,
)
from daypack.types.digest import digest_bytes

FORMAT = "swe-agent"
_RUN_CHARS = 8
_OF_A_STEP = ("response", "thought", "action", "observation", "execution_time")
_FIELDS = ("role", "content", "tool_calls", "tool_call_ids")


def is_document(value: object) -> bool:
    """Return True if a document is a trajectory."""
    fields = object_of(value)
    return isinstance(fields.get("trajectory"), list) or isinstance(fields.get("history"), list)


def rows_of(document: object) -> list[bytes]:
    """Return the conversation as rows."""
    fields = object_of(document)
    history = list_of(fields.get("history"))
    return [msgspec.json.encode(message) for message in history or _messages_of(list_of(fields.get("trajectory")))]


def extra_rows_of(document: object) -> list[bytes]:
    """Return the steps and the facts about the run as rows."""
    fields = object_of(document)
    positions = {msgspec.json.encode(message): at for at, message in enumerate(list_of(fields.get("history")))}
    rows = [{"trajectory": _shorten(object_of(step), positions)} for step in list_of(fields.get("trajectory"))]
    run = without(fields, "history", "trajectory")
    return [msgspec.json.encode(row) for row in (*rows, run) if row]


def run_id(document: object) -> str:
    """Return what tells a run from others of its instance, in every copy and as it grows; "" before its first step.

    Runs of a model without sampling may begin with the same words: the time that the first command took differs.
    """
    fields = object_of(document)
    steps = [object_of(step) for step in list_of(fields.get("trajectory"))[:1]]
    history = map(object_of, list_of(fields.get("history")))
    answer = [message for message in history if message.get("role") == "assistant"][:1]
    facts = [[step.get(name) for name in _OF_A_STEP] for step in steps]
    facts += [[message.get("content"), message.get("tool_calls")] for message in answer]
    return digest_bytes(msgspec.json.encode(facts)).partition(":")[2][:_RUN_CHARS] if facts else ""


class SweAgent:
    """Reads the messages of one trajectory."""

    def __init__(self, origin: Origin, store_blob: StoreBlob) -> None:
        self._origin = origin
        self._store_blob = store_blob

    def observe(self, row: Row) -> None:
        """See a row that an earlier import stored: later rows do not depend on it."""

    def is_boundary(self, row: Row) -> bool:  # noqa: ARG002 — required by RowReader
        """Return True: no message spans several rows."""
        return True

    def read(self, row: Row) -> Iterator[Step]:
        """Yield the message of a row."""
        fields = row.fields
        role = "tool" if fields.get("role") == "tool" else chat_role(fields.get("role"))
        if role is None:
            yield RawRow(row)
            return
        facts = without(fields, *_FIELDS)
        if facts.get("thought") == fields.get("content"):
            facts.pop("thought", None)
        call_ids = list_of(fields.get("tool_call_ids"))
        if len(call_ids) > 1:
            facts["tool_call_ids"] = call_ids
        if role == "tool" and not call_ids:
            # No provider accepts a result without its call.
            role, facts["role"] = "user", "tool"
        draft = {
            "role": role,
            "content": openai_parts(fields.get("content"), self._store_blob),
            "tool_calls": list_of(fields.get("tool_calls")),
            "tool_call_id": text_of(call_ids[0]) if call_ids else None,
            "client_key": key_of(self._origin, row),
            "meta": {"format": self._origin.format, "line": row.number, **facts},
        }
        yield Draft(without(draft), (row,))

    def finish(self) -> Iterator[Step]:
        """Yield nothing: no row is held back."""
        yield from ()

    def state(self) -> dict[str, Any] | None:
        """Return nothing: later rows do not depend on earlier ones."""
        return {}

    def resume(self, state: dict[str, Any]) -> None:
        """Continue: later rows do not depend on earlier ones."""


def _messages_of(steps: list[Any]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for step in map(object_of, steps):
        answer = step.get("response") or f"{step.get('thought') or ''}\n{step.get('action') or ''}".strip()
        messages.append(
            {"role": "assistant", "content": answer, **without(step, "response", "observation", "messages", "query")}
        )
        if step.get("observation") is not None:
            messages.append({"role": "user", "content": step["observation"], "message_type": "observation"})
    return messages


def _shorten(step: dict[str, Any], positions: dict[bytes, int]) -> dict[str, Any]:
    """Return a step in which messages of the history are replaced by their index in it."""
    short = dict(step)
    for name in ("messages", "query"):
        if isinstance(step.get(name), list):
            sent = cast(list[object], step[name])
            short[name] = [positions.get(msgspec.json.encode(message), message) for message in sent]
    return short
