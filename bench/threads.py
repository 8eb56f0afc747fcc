"""Group commit: threads that append durably through one session share their syncs."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from bench.histories import TEXTS, Histories
from bench.measure import alternate, ratio, say, whole
from bench.table import Row, Section, times
from daypack import Session

THREADS, ROUNDS, OPERATIONS = 8, 25, 160
_LEAST = 2.0


def measure(histories: Histories) -> Section:
    """Compare how many messages a second eight threads and one thread get onto the disk."""
    say(f"threads: {ROUNDS} rounds")
    with histories.open("threads") as session, ThreadPoolExecutor(THREADS) as pool:
        blocks = {"one": whole(_appending(session, pool, 1)), "many": whole(_appending(session, pool, THREADS))}
        series = alternate(blocks, rounds=ROUNDS, operations=OPERATIONS)
    one, many = series["one"], series["many"]
    gain = ratio(one.wall, many.wall)
    row = Row(
        f"{THREADS} threads beside one, messages a second",
        ours=f"{1e9 / many.middle('wall'):,.0f}/s",
        beside=f"{1e9 / one.middle('wall'):,.0f}/s",
        wall=gain,
        quiet=one.quiet() / many.quiet(),
        cpu=ratio(one.cpu, many.cpu),
        target=f"wall ≥ {times(_LEAST)} ×",
        met=gain.value >= _LEAST,
    )
    title = f"Durable appends through one Session ({ROUNDS} rounds of {OPERATIONS} appends each)"
    return Section(title, (row,), ("more is better here: messages a second, and messages for a second of CPU time",))


def _appending(session: Session, pool: ThreadPoolExecutor, threads: int) -> Callable[[int], None]:
    def append(count: int) -> None:
        for number in range(count):
            session.append("user", TEXTS[number % len(TEXTS)])

    def share(operations: int) -> None:
        for _ in pool.map(append, [operations // threads] * threads):
            pass

    return share
