"""Durable appends: one message, synced when the call returns, at several history lengths."""

import asyncio
import os
from collections.abc import Callable
from contextlib import ExitStack
from itertools import cycle

import orjson

from bench import peer
from bench.histories import LINE_BYTES, RECORDS, TEXTS, Histories
from bench.measure import Block, alternate, repeat, say
from bench.table import Limit, Row, Section, compare
from daypack import Session

ROUNDS, OPERATIONS = 60, 20
_NOTES = (
    "beside: orjson.dumps + os.write + os.fsync on a plain file of as many lines, in the same rounds",
    "seen elsewhere, on similar machines, × of that baseline: OpenAI Agents advanced session 1,791 at 1,000,000;",
    "LangGraph saver 14,288 at 100,000; LangChain file history 22,848 at 100,000",
)


def measure(histories: Histories) -> Section:
    """Compare at every length, then the longest with the shortest."""
    sizes = histories.sizes
    blocks: dict[str, Block] = {}
    with ExitStack() as stack, asyncio.Runner() as runner:
        for size in sizes:
            session = stack.enter_context(histories.open(histories.ours(size)))
            plain = stack.enter_context(open(histories.plain(size), "ab", buffering=0))
            blocks[f"plain {size}"] = repeat(synced_write(plain.fileno()))
            blocks[f"ours {size}"] = repeat(append_to(session))
            if store := peer.open_store(histories.folder, size):
                stack.callback(store.close)
                blocks[f"peer {size}"] = peer.appending(store, runner)
        say(f"durable appends: {ROUNDS} rounds")
        series = alternate(blocks, rounds=ROUNDS, operations=OPERATIONS)
    rows = [
        compare("daypack append", series[f"ours {size}"], series[f"plain {size}"], Limit(1.5), size) for size in sizes
    ]
    first, last = series[f"ours {sizes[0]}"], series[f"ours {sizes[-1]}"]
    rows.append(compare(f"  longest beside {sizes[0]:,}", last, first, Limit(1.3), sizes[-1]))
    rows += [
        compare(peer.NAME, series[f"peer {size}"], series[f"plain {size}"], None, size)
        for size in sizes
        if f"peer {size}" in series
    ] or [Row(peer.NAME, ours="not installed")]
    title = f"Durable append of {LINE_BYTES} bytes, p50 ({ROUNDS} rounds of {OPERATIONS} appends each)"
    return Section(title, tuple(rows), _NOTES)


def append_to(session: Session) -> Callable[[], object]:
    """Return the call that appends the next text."""
    texts = cycle(TEXTS)
    return lambda: session.append("user", next(texts))


def synced_write(fd: int) -> Callable[[], object]:
    """Return the call that puts the next line on disk, without anything around it."""
    records = cycle(RECORDS)

    def write() -> None:
        os.write(fd, orjson.dumps(next(records), option=orjson.OPT_APPEND_NEWLINE))
        os.fsync(fd)

    return write
