"""The scripted model: it is given a request as a provider gets it, and answers in that provider's shape.

It knows what to do from the story, and nothing else. What it is asked for, it looks up in the request itself; what is
not there, it searches with a tool; the stamp of the protocol it copies from the request, as any model has to.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from demo.story import FACTS, STEPS, Blocks, Call, Fact, Form

SEPARATOR = "<<<CONTEXT>>>"
_STAMP = re.compile(r'"version":2\.3,"runtime":(\{"round":[^{}]*\})')
_TIERS = ("core", "working", "ephemeral")


def answer(number: int, said: int, body: Mapping[str, Any], dialect: str) -> dict[str, Any]:
    """Return the reply to a request of a turn in which the model has spoken `said` times already."""
    step = STEPS[number - 1]
    if said < len(step.batches):
        return _shape(dialect, "", _named(number, said, step.batches[said]))
    words = text_of(body)
    fact = next((one for one in FACTS if one.asked == number), None)
    if fact is None:
        text = step.answers
    elif fact.words in words:
        text = stated(fact)
    elif said == len(step.batches):
        return _shape(dialect, "", _named(number, said, (Call("search_history", {"query": fact.query}),)))
    else:
        text = "I do not know."
    return _shape(dialect, _signed(text, words, step.blocks or {}, step.form), [])


def text_of(body: object) -> str:
    """Return every word of a request."""
    return "\n".join(_words(body))


def stated(fact: Fact) -> str:
    """Return what the model answers when it found a fact."""
    return f"It is {fact.words}."


def _words(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in cast("Mapping[str, object]", value).values():
            yield from _words(one)
    elif isinstance(value, Sequence):
        for one in cast("Sequence[object]", value):
            yield from _words(one)


def _named(number: int, said: int, calls: Sequence[Call]) -> list[tuple[str, Call]]:
    return [(f"call_{number}_{said}_{at}", call) for at, call in enumerate(calls)]


def _signed(text: str, words: str, blocks: Blocks, form: Form) -> str:
    """Add the snapshot, in the form the story says: as it should be, or as models do it."""
    stamps = _STAMP.findall(words)
    if not stamps or form == "missing":
        return text
    runtime: dict[str, Any] = json.loads(stamps[-1])
    number = runtime["round"]
    tiers = {
        tier: [{**one, "round": number} for one in blocks.get(tier, [])]
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
        parts += [{"type": "tool_use", "id": one, "name": call.name, "input": call.arguments} for one, call in calls]
        stop = "tool_use" if calls else "end_turn"
        return {"type": "message", "role": "assistant", "content": parts, "stop_reason": stop}
    if dialect == "responses":
        said: list[dict[str, Any]] = [{"type": "output_text", "text": text, "annotations": []}]
        items: list[dict[str, Any]] = [{"type": "message", "role": "assistant", "content": said}] if text else []
        items += [
            {"type": "function_call", "call_id": one, "name": call.name, "arguments": json.dumps(call.arguments)}
            for one, call in calls
        ]
        return {"object": "response", "status": "completed", "output": items}
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [
            {"id": one, "type": "function", "function": {"name": call.name, "arguments": json.dumps(call.arguments)}}
            for one, call in calls
        ]
    return {"object": "chat.completion", "choices": [{"index": 0, "message": message}]}
