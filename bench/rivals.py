"""The way other systems pack a window: load the whole history, then truncate it."""

import json
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from importlib import import_module
from typing import Any

from bench.measure import Block, repeat, say, settle
from daypack.text.tokens import counter_named

LANGGRAPH = "LangGraph SqliteSaver, trim_messages"
_CONFIG = {"configurable": {"thread_id": "bench", "checkpoint_ns": ""}}


def as_items(messages: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Return messages as the OpenAI Agents SDK stores them: calls and their results are items of their own."""
    for message in messages:
        if message["role"] == "tool":
            yield {"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}
            continue
        yield {"role": message["role"], "content": message["content"]}
        for call in message.get("tool_calls", ()):
            yield {
                "type": "function_call",
                "call_id": call["id"],
                "name": call["name"],
                "arguments": call["arguments"],
            }


def newest_within(tokens: int) -> Callable[[list[Any]], list[Any]]:
    """Return the trimmer: the newest items that fit, counted until they do not; the tokenizer is ours."""
    count = counter_named("o200k_base").count
    count("")  # loads the vocabulary

    def trim(items: list[Any]) -> list[Any]:
        left = tokens
        for at in range(len(items) - 1, -1, -1):
            item = items[at]
            left -= count(item.get("content") or item.get("output") or item.get("arguments") or "")
            if left < 0:
                return items[at + 1 :]
        return items

    return trim


def langgraph_packing(path: str, messages: Iterable[dict[str, Any]], tokens: int) -> Block | None:
    """Return the block that reads a checkpoint with all messages and trims it; None when it is not installed."""
    try:
        saver = import_module("langgraph.checkpoint.sqlite").SqliteSaver
        empty = import_module("langgraph.checkpoint.base").empty_checkpoint
        shapes = import_module("langchain_core.messages")
    except ImportError:
        return None
    say(f"filling {LANGGRAPH.split(',', maxsplit=1)[0]}")
    checkpoint = empty() | {
        "channel_values": {"messages": [_as_langchain(shapes, message) for message in messages]},
        "channel_versions": {"messages": 1},
    }
    with closing(sqlite3.connect(path)) as connection:
        saver(connection).put(_CONFIG, checkpoint, {"source": "loop", "step": 1}, {"messages": 1})
        connection.commit()
    settle()
    store = saver(sqlite3.connect(path, check_same_thread=False))

    def pack() -> object:
        found = store.get_tuple(_CONFIG)
        return shapes.trim_messages(
            found.checkpoint["channel_values"]["messages"],
            max_tokens=tokens,
            token_counter="approximate",
            strategy="last",
            start_on="human",
        )

    return repeat(pack)


def _as_langchain(shapes: Any, message: dict[str, Any]) -> Any:  # noqa: ANN401 — a module and a class of the rival
    if message["role"] == "tool":
        return shapes.ToolMessage(message["content"], tool_call_id=message["tool_call_id"])
    if message["role"] == "user":
        return shapes.HumanMessage(message["content"])
    calls = [
        {"id": call["id"], "name": call["name"], "args": json.loads(call["arguments"])}
        for call in message.get("tool_calls", ())
    ]
    return shapes.AIMessage(message["content"], tool_calls=calls)
