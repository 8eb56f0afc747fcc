"""Appends without sync (durability="os"): the cost of the runtime itself."""

import os
from collections.abc import Callable
from itertools import cycle, islice

import orjson

from bench.append import append_to
from bench.histories import LINE_BYTES, RECORDS, TEXTS, Histories
from bench.measure import alternate, repeat, say, whole
from bench.table import Limit, Section, compare
from daypack import Session

ROUNDS, OPERATIONS = 40, 500
_LIMIT = 12


def measure(histories: Histories) -> Section:
    """Compare single calls by p50, and whole loops by CPU time."""
    path = os.path.join(histories.folder, "nosync.jsonl")
    say(f"appends without a sync: {ROUNDS} rounds")
    with histories.open("nosync", durability="os") as session, open(path, "ab", buffering=0) as plain:
        blocks = {
            "plain": repeat(_write(plain.fileno())),
            "ours": repeat(append_to(session)),
            "plain loop": whole(_write_loop(plain.fileno())),
            "ours loop": whole(_append_loop(session)),
        }
        series = alternate(blocks, rounds=ROUNDS, operations=OPERATIONS)
    rows = (
        compare("one call, p50", series["ours"], series["plain"], Limit(_LIMIT)),
        compare("whole loop", series["ours loop"], series["plain loop"], Limit(_LIMIT, "cpu")),
    )
    title = f'Append of {LINE_BYTES} bytes with durability="os" ({ROUNDS} rounds of {OPERATIONS} appends each)'
    return Section(title, rows, ("beside: orjson.dumps + os.write, which counts no tokens and keeps no index",))


def _write(fd: int) -> Callable[[], object]:
    records = cycle(RECORDS)
    return lambda: os.write(fd, orjson.dumps(next(records), option=orjson.OPT_APPEND_NEWLINE))


def _write_loop(fd: int) -> Callable[[int], None]:
    records = cycle(RECORDS)

    def loop(operations: int) -> None:
        for record in islice(records, operations):
            os.write(fd, orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))

    return loop


def _append_loop(session: Session) -> Callable[[int], None]:
    texts = cycle(TEXTS)

    def loop(operations: int) -> None:
        for text in islice(texts, operations):
            session.append("user", text)

    return loop
