"""Recorded agent sessions: their messages, and what a message costs in a request."""

from collections.abc import Iterator
from typing import Any

import orjson

from daypack.files.blobs import name_of
from daypack.importers.transcript import Draft, Step, Transcript, parse_row
from daypack.text.tokens import counter_named

MESSAGE_TOKENS, CALL_TOKENS = 4, 8  # around a message and around a call


def messages_of(transcript: Transcript, *, children: bool = False) -> Iterator[dict[str, Any]]:
    """Return the messages of a transcript; those of child agents only if asked for."""
    reader = transcript.reader(name_of)
    steps: list[Step] = []
    for number, line in enumerate(transcript.lines.read(), 1):
        row = parse_row(number, line.raw)
        if row.value is not None:
            steps += reader.read(row)
    steps += reader.finish()
    return (step.message for step in steps if isinstance(step, Draft) and (children or not step.child))


def weigh(message: dict[str, Any]) -> int:
    """Return the tokens of a message in the shape of OpenAI's chat API."""
    count = counter_named("o200k_base").count
    content = message.get("content") or ""
    calls = [call.get("function") or call.get("custom") for call in message.get("tool_calls", ())]
    tokens = count(content if isinstance(content, str) else orjson.dumps(content).decode()) + MESSAGE_TOKENS
    return tokens + sum(count("\n".join(call.values())) + CALL_TOKENS for call in calls)
