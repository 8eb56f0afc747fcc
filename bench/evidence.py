"""Evidence: the size of a turn's event in a session with tool loops, changing pins and caller items."""

import os
import random
from collections.abc import Iterator
from statistics import median
from typing import Any, cast

import orjson

from bench.conversations import Conversation
from bench.histories import Histories
from bench.measure import say
from bench.table import Row, Section
from daypack import Session

TURNS = 300
TOKENS = 16_000
_MEAN_BYTES, _MOST_BYTES = 3_000, 8_000
_ITEMS = 20
_PIN_EVERY, _ITEMS_EVERY = 25, 10
_KINDS = ("file_excerpt", "tool_result", "manual_note", "retrieval_result", "working_memory")


def measure(histories: Histories) -> Section:
    """Run a session and look at its log."""
    say(f"evidence of {TURNS} turns")
    with histories.open("evidence", durability="os", workspace="") as session:
        crowded = set(_run(session))
        path = session.history.layout.events
    sizes, of_crowded, epochs = _sizes(path, crowded)
    mean, most = sum(sizes) / len(sizes), max(of_crowded)
    rows = (
        Row(
            f"a turn's event, mean of {len(sizes):,}",
            ours=_bytes(mean),
            target=f"≤ {_bytes(_MEAN_BYTES)}",
            met=mean <= _MEAN_BYTES,
        ),
        Row("  median", ours=_bytes(median(sizes))),
        Row("  largest", ours=_bytes(max(sizes))),
        Row(
            f"with {_ITEMS} items of the caller, largest of {len(of_crowded)}",
            ours=_bytes(most),
            target=f"≤ {_bytes(_MOST_BYTES)}",
            met=most <= _MOST_BYTES,
        ),
    )
    notes = (
        f"a session of {TURNS} user messages with up to four tool loops each; a turn under {TOKENS:,} tokens before",
        f"every answer, {epochs} epochs; a pin changes every {_PIN_EVERY} messages; at one in {_ITEMS_EVERY} a turn",
        f"has {_ITEMS} items, others have none or two. The line as it stands in events.jsonl; texts are kept beside it",
    )
    return Section("Evidence (sizes, not times)", rows, notes)


def _run(session: Session) -> Iterator[str]:
    """Live through the session; yield the events of turns with many items."""
    chance, talk = random.Random(11), Conversation()
    for _ in talk.take(2_000):
        pass  # something to ask about
    session.pin("system.md", "You are a careful engineer. Say what you did and what is left.")
    for number in range(TURNS):
        if number % _PIN_EVERY == 0:
            session.pin("goal.md", f"Goal {number}: {_words(talk)}")
        session.append_many([talk.question() if number % 2 else _as("user", talk)])
        for step in range(chance.randint(0, 4)):
            session.prepare(budget=TOKENS, items=_items(talk, chance.choice((0, 0, 2))))
            call = {"id": f"call_{number}_{step}", "name": "run", "arguments": f'{{"command":"{_words(talk)[:60]}"}}'}
            session.append("assistant", "", tool_calls=[call])
            session.append("tool", " ".join(_words(talk) for _ in range(chance.randint(1, 6))), tool_call_id=call["id"])
        crowded = number % _ITEMS_EVERY == _ITEMS_EVERY - 1
        turn = session.prepare(budget=TOKENS, items=_items(talk, _ITEMS if crowded else 0))
        if crowded and turn.event_id:
            yield turn.event_id
        session.append_many([_as("assistant", talk)])


def _items(talk: Conversation, count: int) -> list[dict[str, Any]]:
    return [
        {
            "item_id": f"src/module_{number}.py",
            "context_kind": _KINDS[number % len(_KINDS)],
            "title": f"src/module_{number}.py, lines 1 to 40",
            "content": _words(talk),
            "source_refs": [f"file:///src/module_{number}.py"],
        }
        for number in range(count)
    ]


def _words(talk: Conversation) -> str:
    return str(next(talk.take(1))["content"])


def _as(role: str, talk: Conversation) -> dict[str, Any]:
    return {"role": role, "content": _words(talk)}


def _sizes(path: str, crowded: set[str]) -> tuple[list[int], list[int], int]:
    """Return the bytes of all turns and of the crowded ones, and how many epochs began."""
    sizes: list[int] = []
    of_crowded: list[int] = []
    epochs = 0
    with open(os.fspath(path), "rb") as file:
        for line in file:
            event = cast(dict[str, Any], orjson.loads(line))
            if event["type"] == "context.turn":
                sizes.append(len(line))
                epochs += "opening" in event["data"]
                if event["id"] in crowded:
                    of_crowded.append(len(line))
    return sizes, of_crowded, epochs


def _bytes(count: float) -> str:
    return f"{count / 1000:.3g} kB"
