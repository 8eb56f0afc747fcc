"""One turn: a complete `prepare`, including evidence and pack, compared with loading everything and truncating."""

import asyncio
import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import cycle

from bench import peer, rivals
from bench.conversations import Conversation
from bench.histories import Histories
from bench.measure import Block, Series, Taken, alternate, repeat, repeat_after, run, say, settle
from bench.table import Limit, Row, Section, compare, duration
from daypack import Session
from daypack.turn.items import Excerpt
from daypack.turn.pack.additions import added_items
from daypack.turn.turn import Turn

TOKENS = 32_000
ROUNDS, OPERATIONS = 16, 4
SLOW_ROUNDS, COLD_ROUNDS = 5, 9
_BATCH = 1000
_RIVAL_MESSAGES = 100_000  # more would take minutes
_COLD = "import sys, daypack; daypack.open_session(sys.argv[2], home=sys.argv[1], durability='os').prepare(budget={})"
_NOTES = (
    "prepare: all stages, search of everything that left the window, the evidence event, pack.json and pack.md; before",
    "each call a question about something said long ago is appended (not measured)",
    f"beside at one length: {peer.NAME}.get_items, then the newest {TOKENS:,} tokens of them, and",
    f"{rivals.LANGGRAPH} with its approximate counter; neither searches nor records anything",
)


class Stage:
    """A session with a conversation that goes on, and its turns."""

    def __init__(self, histories: Histories, size: int, part: str = "turn") -> None:
        self.size = size
        self.name = f"{part}-{size}"
        self.talk = Conversation()
        self.turns: list[str] = []
        say(f"writing a conversation of {size:,} messages")
        self.session: Session = histories.open(self.name, durability="os", workspace="")
        for start in range(0, size, _BATCH):
            self.session.append_many(self.talk.take(min(_BATCH, size - start)))
        self.session.append_many([self.talk.question()])
        settle()

    def ask(self) -> None:
        """Append an answer to the question before, and a question."""
        self.session.append_many(self.talk.exchange())

    def prepare(self) -> Turn:
        """The whole turn."""
        turn = self.session.prepare(budget=TOKENS)
        self.turns.append(turn.event_id or "")
        return turn

    def settle(self) -> None:
        """Wait for what the first turn left to the background."""
        self.session.turns.inputs.history_search.index.wait()
        self.session.turns.compactions.wait()

    def replay(self) -> Callable[[], object]:
        """Return the call that makes one of the recorded turns again."""
        ids = cycle(self.turns)
        return lambda: self.session.replay(next(ids))

    def block(self) -> Block:
        """The block that asks and prepares."""
        return repeat_after(self.ask, self.prepare)


def measure(histories: Histories) -> Section:
    """Compare lengths, replay and rivals."""
    sizes = [size for size in histories.sizes if size >= 10_000]
    sizes = sizes if len(sizes) > 1 else list(histories.sizes)
    with ExitStack() as stack, asyncio.Runner() as runner:
        stages = {size: Stage(histories, size) for size in sizes}
        for stage in stages.values():
            stack.callback(stage.session.close)
        firsts = [_first(stage) for stage in stages.values()]
        rival = max((size for size in sizes if size <= _RIVAL_MESSAGES), default=sizes[0])
        blocks = {f"prepare {size}": stage.block() for size, stage in stages.items()}
        blocks["replay"] = repeat(stages[rival].replay())
        path = os.path.join(histories.folder, f"turn-{rival}")
        items = rivals.as_items(Conversation().take(rival))
        if store := peer.open_with(f"{path}-peer.db", items):
            stack.callback(store.close)
            blocks["peer"] = peer.packing(store, runner, rivals.newest_within(TOKENS))
        say(f"turns: {ROUNDS} rounds")
        series = alternate(blocks, rounds=ROUNDS, operations=OPERATIONS)
        slow = _slow(f"{path}-langgraph.db", stages[rival])
    rows = [*firsts, *_rows(series, sizes, rival), slow, _cold(histories, rival)]
    title = f"A turn under {TOKENS:,} tokens, p50 ({ROUNDS} rounds of {OPERATIONS} turns each)"
    return Section(title, tuple(rows), _NOTES)


def _first(stage: Stage) -> Row:
    """The first turn indexes the newest part; the rest is indexed, and compacted, before the others are measured."""
    say(f"first turn of {stage.size:,} messages")
    start = time.perf_counter_ns()
    stage.prepare()
    spent = time.perf_counter_ns() - start
    stage.settle()
    stage.ask()
    if not any(isinstance(item, Excerpt) for item in added_items(stage.prepare().parts.additions)):
        raise RuntimeError("the question found nothing")
    return Row("first turn", stage.size, duration(spent))


def _rows(series: dict[str, Series], sizes: list[int], rival: int) -> list[Row]:
    shortest = series[f"prepare {sizes[0]}"]
    rows = [Row("prepare", sizes[0], duration(shortest.middle("wall")))]
    rows += [
        compare(f"prepare, beside {sizes[0]:,} messages", series[f"prepare {size}"], shortest, Limit(2), size)
        for size in sizes[1:]
    ]
    ours = series[f"prepare {rival}"]
    rows.append(compare("replay, beside prepare", series["replay"], ours, Limit(2), rival))
    if "peer" in series:
        rows.append(compare(f"prepare, beside {peer.NAME}", ours, series["peer"], _limit(10, rival), rival))
    else:
        rows.append(Row(peer.NAME, ours="not installed"))
    return rows


def _slow(path: str, stage: Stage) -> Row:
    """Compare with a rival that takes seconds: few rounds, of which each has as many turns of ours as the others."""
    block = rivals.langgraph_packing(path, Conversation().take(stage.size), TOKENS)
    if block is None:
        return Row(rivals.LANGGRAPH, ours="not installed")
    several = stage.block()

    def ours(_: int) -> Taken:
        taken = several(OPERATIONS)
        return Taken(taken.walls, taken.cpu // OPERATIONS)

    say(f"turns beside {rivals.LANGGRAPH}: {SLOW_ROUNDS} rounds")
    series = alternate({"ours": ours, "rival": block}, rounds=SLOW_ROUNDS, operations=1)
    return compare("prepare, beside LangGraph", series["ours"], series["rival"], _limit(60, stage.size), stage.size)


def _limit(faster: float, size: int) -> Limit | None:
    """A rival's time grows with the history: what is asked for is asked for at one length."""
    return Limit(1 / faster) if size == _RIVAL_MESSAGES else None


def _cold(histories: Histories, size: int) -> Row:
    """A hook's turn: a process of its own."""
    say(f"a turn in a process of its own: {COLD_ROUNDS} rounds")
    python, code = sys.executable, _COLD.format(TOKENS)
    blocks = {
        "bare": run([python, "-c", "pass"]),
        "ours": run([python, "-c", code, histories.home, f"turn-{size}"]),
    }
    series = alternate(blocks, rounds=COLD_ROUNDS, operations=1)
    return compare("a whole process, beside bare Python", series["ours"], series["bare"], None, size)
