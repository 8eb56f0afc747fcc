"""The scripted model: takes a request in a provider's format and replies in the same format.

It follows the story. It looks up facts in the request itself, searches with a tool for facts that are not there, and
copies the protocol's stamp from the request, as any model has to.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from demo.story import FACTS, STEPS, Blocks, Call, Fact, Form

SEPARATOR = "<<<CONTEXT>>>"
_STAMP = re.compile(r'"version":2\.3,"runtime":(\{"round":[^{}]*\})')
_TIERS = ("core", "working", "ephemeral")


def answer(number: int, replies: int, body: Mapping[str, Any], dialect: str) -> dict[str, Any]:
    """Return the reply to a request of turn `number`, in which the model has already replied `replies` times."""
    step = STEPS[number - 1]
    if replies < len(step.batches):
        return _shape(dialect, "", _with_ids(number, replies, step.batches[replies]))
    request = text_of(body)
    fact = next((fact for fact in FACTS if fact.asked == number), None)
    if fact is None:
        text = step.answers
    elif fact.words in request:
        text = stated(fact)
    elif replies == len(step.batches):
        return _shape(dialect, "", _with_ids(number, replies, (Call("search_history", {"query": fact.query}),)))
    else:
        text = "I do not know."
    return _shape(dialect, _with_snapshot(text, request, step.blocks or {}, step.form), [])


def text_of(body: object) -> str:
    """Return all text of a request."""
    return "\n".join(_strings(body))


def stated(fact: Fact) -> str:
    """Return the model's answer once it has found a fact."""
    return f"It is {fact.words}."


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for member in cast("Mapping[str, object]", value).values():
            yield from _strings(member)
    elif isinstance(value, Sequence):
        for element in cast("Sequence[object]", value):
            yield from _strings(element)


def _with_ids(number: int, replies: int, calls: Sequence[Call]) -> list[tuple[str, Call]]:
    return [(f"call_{number}_{replies}_{at}", call) for at, call in enumerate(calls)]


def _with_snapshot(text: str, request: str, blocks: Blocks, form: Form) -> str:
    """Append the snapshot in the form of the story: valid, or broken in a way that models break it."""
    stamps = _STAMP.findall(request)
    if not stamps or form == "missing":
        return text
    runtime: dict[str, Any] = json.loads(stamps[-1])
    number = runtime["round"]
    tiers = {
        tier: [{**block, "round": number} for block in blocks.get(tier, [])]
        for tier in (*_TIERS, *(blocks.keys() - _TIERS))
    }
    if form == "altered":
        runtime["round"] += 100
    snapshot: dict[str, Any] = {"version": 2.3, "runtime": runtime, "memory": tiers}
    snapshot |= {"capabilities": [{"name": "memory", "scope": "write_once"}], "active_task": "Move the booking site."}
    written = json.dumps(snapshot, ensure_ascii=False, separators=(",", ":"))
    if form == "fenced":
        written = f"```json\n{written}\n```"
    if form == "truncated":
        written = written[: len(written) // 2]
    return f"{text}\n{SEPARATOR}\n{written}"


def _shape(dialect: str, text: str, calls: Sequence[tuple[str, Call]]) -> dict[str, Any]:
    if dialect == "anthropic":
        parts: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        parts += [
            {"type": "tool_use", "id": call_id, "name": call.name, "input": call.arguments} for call_id, call in calls
        ]
        stop = "tool_use" if calls else "end_turn"
        return {"type": "message", "role": "assistant", "content": parts, "stop_reason": stop}
    if dialect == "responses":
        content: list[dict[str, Any]] = [{"type": "output_text", "text": text, "annotations": []}]
        items: list[dict[str, Any]] = [{"type": "message", "role": "assistant", "content": content}] if text else []
        items += [
            {"type": "function_call", "call_id": call_id, "name": call.name, "arguments": json.dumps(call.arguments)}
            for call_id, call in calls
        ]
        return {"object": "response", "status": "completed", "output": items}
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [
            {
                "id": call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call_id, call in calls
        ]
    return {"object": "chat.completion", "choices": [{"index": 0, "message": message}]}
