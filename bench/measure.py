"""Timing: candidates alternate in small blocks, so that other load affects all of them equally."""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median, quantiles
from typing import Literal, NamedTuple

Clock = Literal["wall", "cpu"]


class Taken(NamedTuple):
    """The times of one block, in nanoseconds."""

    walls: Sequence[int]  # of each operation
    cpu: int  # of the whole process over all operations


Block = Callable[[int], Taken]  # does a number of operations


class Series(NamedTuple):
    """What one contender took, in nanoseconds for one operation."""

    wall: list[float]  # the p50 of each round
    cpu: list[float]  # the mean of each round
    every: list[int]  # wall time of every operation of every round

    def middle(self, clock: Clock) -> float:
        """The median over all rounds."""
        return median(getattr(self, clock))

    def quiet(self) -> float:
        """The wall time below which the fastest tenth stays: nothing else got in their way."""
        return quantiles(self.every, n=10, method="inclusive")[0]


class Ratio(NamedTuple):
    """How two contenders compare: the median of the ratios of their rounds, and where the middle half of them lies."""

    value: float
    low: float
    high: float


def repeat(call: Callable[[], object]) -> Block:
    """Time a call again and again: each one on the wall clock, all together in CPU time."""

    def block(operations: int) -> Taken:
        walls: list[int] = []
        clock = time.perf_counter_ns
        cpu = time.process_time_ns()
        for _ in range(operations):
            start = clock()
            call()
            walls.append(clock() - start)
        return Taken(walls, time.process_time_ns() - cpu)

    return block


def repeat_after(before: Callable[[], object], call: Callable[[], object]) -> Block:
    """Time a call again and again, each time after another one that does not count."""

    def block(operations: int) -> Taken:
        walls: list[int] = []
        cpu = 0
        for _ in range(operations):
            before()
            spent = time.process_time_ns()
            start = time.perf_counter_ns()
            call()
            walls.append(time.perf_counter_ns() - start)
            cpu += time.process_time_ns() - spent
        return Taken(walls, cpu)

    return block


def whole(loop: Callable[[int], object]) -> Block:
    """Time a loop as a whole, without a clock inside it."""

    def block(operations: int) -> Taken:
        cpu, start = time.process_time_ns(), time.perf_counter_ns()
        loop(operations)
        wall = time.perf_counter_ns() - start
        return Taken([wall // operations], time.process_time_ns() - cpu)

    return block


def run(command: Sequence[str], given: bytes = b"", before: Callable[[], object] | None = None) -> Block:
    """Time a process from its start to its end; its CPU time is all that it and its own children used.

    It reads `given` as its standard input; `before` each run something may be done that does not count.
    """

    def block(operations: int) -> Taken:
        walls: list[int] = []
        cpu = 0
        for _ in range(operations):
            if before:
                before()
            used, start = _children(), time.perf_counter_ns()
            subprocess.run(command, check=True, input=given, stdout=subprocess.DEVNULL)
            walls.append(time.perf_counter_ns() - start)
            cpu += _children() - used
        return Taken(walls, cpu)

    return block


def _children() -> int:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return int((usage.ru_utime + usage.ru_stime) * 1e9)


def alternate(blocks: Mapping[str, Block], *, rounds: int, operations: int) -> dict[str, Series]:
    """Let the contenders take turns, forwards and backwards by turns, after one round that does not count."""
    series = {name: Series([], [], []) for name in blocks}
    names = list(blocks)
    for name in names:
        blocks[name](operations)
    for _ in range(rounds):
        for name in names:
            taken = blocks[name](operations)
            series[name].wall.append(median(taken.walls))
            series[name].cpu.append(taken.cpu / operations)
            series[name].every.extend(taken.walls)
        names.reverse()
    return series


def ratio(ours: Iterable[float], theirs: Iterable[float]) -> Ratio:
    """Compare two series round by round."""
    ratios = [one / max(other, 1e-9) for one, other in zip(ours, theirs, strict=True)]
    low, _, high = quantiles(ratios, n=4, method="inclusive")
    return Ratio(median(ratios), low, high)


def say(text: str) -> None:
    """Tell what is going on, beside the table."""
    print(text, file=sys.stderr, flush=True)


def settle() -> None:
    """Let what was written so far reach the disk, so that nobody's sync pays for it."""
    os.sync()
