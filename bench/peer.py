"""The peer: the SQLite session of the OpenAI Agents SDK, which keeps an agent's history in a database file."""

import asyncio
import json
import os
import sqlite3
import time
from contextlib import closing
from importlib import import_module
from itertools import cycle, islice
from typing import Any, Protocol

from bench.histories import TEXTS
from bench.measure import Block, Taken, say, settle

NAME = "OpenAI Agents SQLiteSession"
_ID = "bench"
_BATCH = 10_000


class Store(Protocol):
    """What is used of the peer."""

    async def add_items(self, items: list[Any]) -> None:
        """Append messages."""
        ...

    def close(self) -> None:
        """Close the database."""
        ...


def open_store(folder: str, size: int) -> Store | None:
    """Return the peer's session with so many messages; None when the SDK is not installed."""
    try:
        shape = import_module("agents").SQLiteSession
    except ImportError:
        return None
    path = os.path.join(folder, f"peer-{size}.db")
    store: Store = shape(_ID, path)
    say(f"filling an {NAME} with {size:,} messages")
    _fill(path, size)
    settle()
    return store


def _fill(path: str, size: int) -> None:
    """Put rows into the tables the peer made, as it would have put them one by one."""
    rows = cycle((_ID, json.dumps(_item(text))) for text in TEXTS)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO agent_sessions (session_id) VALUES (?)", (_ID,))
        for start in range(0, size, _BATCH):
            chunk = islice(rows, min(_BATCH, size - start))
            connection.executemany("INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)", chunk)
            connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _item(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def appending(store: Store, runner: asyncio.Runner) -> Block:
    """Return the block that appends to the peer, one message after the other, inside one event loop."""
    items = cycle([_item(text) for text in TEXTS])

    async def add(operations: int) -> Taken:
        walls: list[int] = []
        cpu = time.process_time_ns()
        for item in islice(items, operations):
            start = time.perf_counter_ns()
            await store.add_items([item])
            walls.append(time.perf_counter_ns() - start)
        return Taken(walls, time.process_time_ns() - cpu)

    return lambda operations: runner.run(add(operations))
