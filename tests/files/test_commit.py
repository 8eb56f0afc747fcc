"""Group commit: one works for all, and everybody gets an answer."""

import os
import threading
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

import daypack
from daypack.errors import BadMessage, StorageFailed
from daypack.files.commit import Group, Handle, Task


def together(count: int, run: Any) -> list[threading.Thread]:
    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert not any(thread.is_alive() for thread in threads)
    return threads


class TurnInputs:
    """A group whose work is slow and noted."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.handle = Handle(os.open(os.devnull, os.O_RDONLY), 0)
        self.group = Group[Handle](self.work)
        self.busy = threading.Lock()

    def work(self, tasks: Sequence[Task[Handle]]) -> None:
        assert self.busy.acquire(blocking=False), "two threads work at once"
        self.batches.append(len(tasks))
        for task in tasks:
            task.attempt(self.handle)
        time.sleep(0.005)
        self.busy.release()


def test_one_thread_works_for_all_that_wait() -> None:
    inputs, answers = TurnInputs(), dict[int, list[int]]()

    def ask(number: int) -> None:
        answers[number] = [inputs.group.do(lambda _: number * 100 + turn) for turn in range(20)]  # noqa: B023

    together(8, ask)
    assert answers == {number: [number * 100 + turn for turn in range(20)] for number in range(8)}
    assert sum(inputs.batches) == 160
    assert len(inputs.batches) < 100


def test_an_error_belongs_to_the_thread_that_asked_for_it() -> None:
    inputs, outcomes = TurnInputs(), list[str]()

    def ask(number: int) -> None:
        for _ in range(10):
            try:
                outcomes.append(f"{inputs.group.do(lambda _: 1 // (number % 2))}")
            except ZeroDivisionError:
                outcomes.append(f"error of {number % 2}")

    together(8, ask)
    assert sorted(outcomes) == ["1"] * 40 + ["error of 0"] * 40


def test_an_error_of_the_work_reaches_everybody_it_was_done_for() -> None:
    def fail(_: Sequence[Task[Handle]]) -> None:
        time.sleep(0.01)
        raise StorageFailed("no disk")

    group, told = Group[Handle](fail), list[int]()

    def ask(number: int) -> None:
        with pytest.raises(StorageFailed, match="no disk"):
            group.do(lambda _: number)
        told.append(number)

    together(6, ask)
    assert sorted(told) == list(range(6))


def test_a_worker_that_is_interrupted_leaves_nobody_waiting() -> None:
    interrupted = threading.Event()

    def work(tasks: Sequence[Task[Handle]]) -> None:
        time.sleep(0.02)
        if not interrupted.is_set():
            interrupted.set()
            raise KeyboardInterrupt
        for task in tasks:
            task.answers.append(7)

    group, outcomes = Group[Handle](work), list[str]()

    def ask(_: int) -> None:
        try:
            outcomes.append(str(group.do(lambda _: 7)))
        except KeyboardInterrupt:
            outcomes.append("interrupted")

    together(5, ask)
    assert sorted(outcomes) == ["7", "7", "7", "7", "interrupted"]


def test_threads_that_append_durably_share_syncs(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = daypack.open_session("work", home=home)
    real, syncs = os.fdatasync, list[int]()

    def slow(fd: int) -> None:
        syncs.append(fd)
        real(fd)
        time.sleep(0.002)

    monkeypatch.setattr(os, "fdatasync", slow)

    def write(writer: int) -> None:
        for number in range(25):
            assert (
                session.append("user", f"{writer} {number}", client_key=f"{writer} {number}").text
                == f"{writer} {number}"
            )
            with pytest.raises(BadMessage):
                session.append("user", "\ud800")

    together(8, write)
    assert len(syncs) < 200
    messages = list(session.messages())
    assert [message.seq for message in messages] == list(range(1, 201))
    assert len({message.text for message in messages}) == 200


class _InterruptedGate:
    """The lock of a waiting thread, which an interrupt leaves just after it was taken."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = 0

    def acquire(self) -> bool:
        self._lock.acquire()
        self._taken += 1
        if self._taken > 1:
            raise KeyboardInterrupt
        return True

    def release(self) -> None:
        self._lock.release()

    def locked(self) -> bool:
        return self._lock.locked()


def test_an_interrupt_of_the_thread_that_was_just_chosen_blocks_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, finish = threading.Event(), threading.Event()

    def work(tasks: Sequence[Task[Handle]]) -> None:
        begun.set()
        finish.wait(30)
        for task in tasks:
            task.answers.append("done")

    group = Group[Handle](work)
    leader = threading.Thread(target=lambda: group.do(lambda _: None))
    leader.start()
    begun.wait(30)
    locks = SimpleNamespace(Lock=_InterruptedGate, get_ident=threading.get_ident)
    monkeypatch.setattr("daypack.files.commit.threading", locks)

    def finish_when_another_waits() -> None:
        while not group.waiting:
            time.sleep(0.001)
        finish.set()

    threading.Thread(target=finish_when_another_waits).start()
    with pytest.raises(KeyboardInterrupt):
        group.do(lambda _: None)
    monkeypatch.undo()
    leader.join()
    answers: list[object] = []
    later = threading.Thread(target=lambda: answers.append(group.do(lambda _: None)), daemon=True)
    later.start()
    later.join(30)
    assert answers == ["done"]
