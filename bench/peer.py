"""The peer: the SQLite session of the OpenAI Agents SDK, which stores an agent's history in a database."""

import asyncio
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable
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

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Read the messages."""
        ...

    def close(self) -> None:
        """Close the database."""
        ...


def open_store(folder: str, size: int) -> Store | None:
    """Return the peer's session with so many messages; None when the SDK is not installed."""
    return open_with(os.path.join(folder, f"peer-{size}.db"), islice(cycle(_item(text) for text in TEXTS), size))


def open_with(path: str, items: Iterable[dict[str, Any]]) -> Store | None:
    """Return the peer's session with these messages; None when the SDK is not installed."""
    try:
        shape = import_module("agents").SQLiteSession
    except ImportError:
        return None
    store: Store = shape(_ID, path)
    say(f"filling an {NAME}")
    _fill(path, iter(items))
    settle()
    return store


def _fill(path: str, items: Iterable[dict[str, Any]]) -> None:
    """Put rows into the tables the peer made, as it would have put them one by one."""
    rows = ((_ID, json.dumps(item)) for item in items)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO agent_sessions (session_id) VALUES (?)", (_ID,))
        while chunk := list(islice(rows, _BATCH)):
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


def packing(store: Store, runner: asyncio.Runner, trim: Callable[[list[Any]], object]) -> Block:
    """Return the block that reads what the peer has and trims it, again and again, inside one event loop."""

    async def pack(operations: int) -> Taken:
        walls: list[int] = []
        cpu = time.process_time_ns()
        for _ in range(operations):
            start = time.perf_counter_ns()
            trim(await store.get_items())
            walls.append(time.perf_counter_ns() - start)
        return Taken(walls, time.process_time_ns() - cpu)

    return lambda operations: runner.run(pack(operations))
