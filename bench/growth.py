"""How a turn's cost grows with the history, and how long the first turn after an import makes its caller wait."""

import time
from collections.abc import Iterator
from contextlib import ExitStack

from bench.histories import Histories
from bench.measure import alternate, say
from bench.table import Limit, Row, Section, compare, duration
from bench.turn import TOKENS, Stage

SHORT, LONG = 2_000, 100_000
ROUNDS, OPERATIONS = 16, 4
_NOTES = (
    "first turn: all messages were just imported, nothing is indexed or compacted; what it leaves to the background is",
    "searched when the index is complete, and in CONTEXT.md when the compaction after it is",
    "prepare: as in the part turn; the CPU time of the whole process, after the background has ended",
)


def measure(histories: Histories) -> Section:
    """Compare a long history with a short one."""
    long = min(LONG, max(histories.sizes))
    with ExitStack() as stack:
        stages = {size: Stage(histories, size, "growth") for size in (SHORT, long)}
        rows: list[Row] = []
        for stage in stages.values():
            stack.callback(stage.session.close)
            rows += _first(stage)
        blocks = {str(size): stage.block() for size, stage in stages.items()}
        say(f"turns of {SHORT:,} and {long:,} messages: {ROUNDS} rounds")
        series = alternate(blocks, rounds=ROUNDS, operations=OPERATIONS)
    limit = Limit(1.5, "cpu")
    rows.append(compare(f"prepare, beside {SHORT:,} messages", series[str(long)], series[str(SHORT)], limit, long))
    return Section(f"A turn under {TOKENS:,} tokens as the history grows", tuple(rows), _NOTES)


def _first(stage: Stage) -> Iterator[Row]:
    say(f"first turn after an import of {stage.size:,} messages")
    start = time.perf_counter_ns()
    stage.prepare()
    yield Row("first turn after an import", stage.size, duration(time.perf_counter_ns() - start))
    stage.session.turns.inputs.history_search.index.wait()
    yield Row("… until its index is complete", stage.size, duration(time.perf_counter_ns() - start))
    stage.session.turns.compactions.wait()
    yield Row("… until all of it is compacted", stage.size, duration(time.perf_counter_ns() - start))
