"""A turn reads its inputs once, and a plain one passes through few files and functions."""

import sys
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
from turn.scenes import FakeMemory, stage

import daypack
from daypack.session import Session

SOURCE = str(Path(daypack.__file__).parent)
Calls = Counter[tuple[str, str]]


@contextmanager
def traced() -> Generator[Calls]:
    """Count the calls of daypack's functions: (file, name) -> calls."""
    calls: Calls = Counter()

    def profile(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SOURCE):
            calls[code.co_filename.removeprefix(SOURCE), code.co_qualname] += 1

    sys.setprofile(profile)
    try:
        yield calls
    finally:
        sys.setprofile(None)


class CountingMemory(FakeMemory):
    documents = 0

    def document(self) -> str | None:
        self.documents += 1
        return super().document()


def fill(session: Session, number: int) -> None:
    session.append("user", f"Question {number}: " + "harbour lantern " * 80)
    session.append("assistant", f"Answer {number}: " + "tide and rope " * 200)


def named(calls: Calls, name: str) -> int:
    return sum(count for (_, function), count in calls.items() if function == name)


def overflowing(home: str) -> tuple[Session, CountingMemory, Callable[[], Calls]]:
    """A session that is prepared until its window overflows and is compacted; the answer traces that turn."""
    session, memory = stage(home), CountingMemory("The harbour opens at six.")
    session.memory = memory

    def run() -> Calls:
        for number in range(60):
            fill(session, number)
            session.append("user", f"And now, step {number}?")
            memory.documents, memory.queries = 0, []
            with traced() as calls:
                turn = session.prepare(budget=8000)
            if turn.new_epoch == "overflow":
                return calls
        pytest.fail("the window never overflowed")

    return session, memory, run


def test_a_turn_that_overflows_and_compacts_surveys_once_and_asks_memory_once(home: str) -> None:
    session, memory, run = overflowing(home)
    calls = run()
    assert len(session.compactions) == 1
    assert named(calls, "survey") == 1
    assert memory.documents == 1
    assert len(memory.queries) == 1
    assert named(calls, "HistorySearch.find") == 1
    assert named(calls, "fit") == 2  # before and after the compaction


def test_the_stages_run_in_their_order(home: str) -> None:
    session = stage(home)
    session.append("user", "What is in this folder?")
    with traced() as calls:
        session.prepare(budget=8000)
    stages = ["survey", "select", "fit", "assemble", "inject", "describe", "append_record"]
    assert [name for _, name in calls if name in stages] == stages


def test_a_plain_turn_passes_through_few_files_and_functions(home: str) -> None:
    session = stage(home)
    session.append("user", "What is in this folder?")
    session.prepare(budget=8000)
    session.accept("A README and the sources.")
    session.append("user", "And how many files?")
    with traced() as calls:
        session.prepare(budget=8000)
    assert len({file for file, _ in calls}) <= 40
    assert len(calls) <= 220
