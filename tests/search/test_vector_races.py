"""Vectors shared by processes and threads: killed, forked, at the same time."""

import fcntl
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from campaigns import Campaign
from faults import Faults, calls_of, injected
from search.vector_rows import make_rows, open_vectors


def in_child(work: Callable[[], object]) -> int:
    """Do `work` in a forked process and return its id."""
    child = os.fork()
    if child:
        return child
    try:
        work()
    except BaseException:  # nothing of the test may go on in the child
        os._exit(1)
    os._exit(0)


def wait(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_kill_at_any_call_leaves_whole_ids(tmp_path: Path, campaign: Campaign) -> None:
    rows = make_rows(40)
    ids = [1 + place // 3 for place in range(40)]
    open_vectors(tmp_path / "counting").add(ids[:9], rows[:9])
    calls = calls_of(lambda: open_vectors(tmp_path / "counting").add(ids, rows))
    assert len(calls) > 5
    for at in campaign.calls("kills", calls):
        folder = tmp_path / str(at)
        open_vectors(folder).add(ids[:9], rows[:9])

        def add(folder: Path = folder, at: int = at) -> None:
            with injected(Faults(at, "kill")):
                open_vectors(folder).add(ids, rows)

        assert wait(in_child(add)) == -signal.SIGKILL
        vectors = open_vectors(folder)
        newest = vectors.newest
        assert newest in range(3, 15)
        assert sorted(vectors.search(rows[0], 99).ids) == list(range(1, newest + 1))
        assert vectors.add(ids, rows) == 14
        found = open_vectors(folder).search(rows[30], 99)
        assert (found.ids[0], sorted(found.ids)) == (ids[30], list(range(1, 15)))


def test_processes_that_add_the_same_ids_add_each_once(tmp_path: Path) -> None:
    rows = make_rows(300)

    def add() -> None:
        vectors = open_vectors(tmp_path)
        for begin in range(0, 300, 7):
            ids = range(begin + 1, min(begin + 7, 300) + 1)
            vectors.add(ids, rows[begin : begin + 7])
            vectors.search(rows[0], 1)

    children = [in_child(add) for _ in range(4)]
    assert [wait(child) for child in children] == [0, 0, 0, 0]
    vectors = open_vectors(tmp_path)
    assert os.path.getsize(vectors.path) == 64 + 300 * 448
    assert [vectors.search(row, 1).ids for row in rows[:9]] == [[known] for known in range(1, 10)]


def test_who_adds_waits_for_another_process(tmp_path: Path) -> None:
    vectors, rows = open_vectors(tmp_path), make_rows(2)
    vectors.add([1], rows[:1])
    with open(vectors.path, "rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        thread = threading.Thread(target=vectors.add, args=([2], rows[1:]))
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
        assert open_vectors(tmp_path).search(rows[0], 2).ids == [1]
    thread.join()
    assert vectors.newest == 2


def test_a_child_goes_on_with_what_its_parent_had_open(tmp_path: Path) -> None:
    vectors, rows = open_vectors(tmp_path), make_rows(5_000)
    vectors.add(range(1, 4_501), rows[:4_500])
    assert vectors.search(rows[0], 1).ids == [1]
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with vectors._threads:  # pyright: ignore[reportPrivateUsage]
            entered.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait()

    def work() -> None:
        vectors.add(range(4_501, 4_601), rows[4_500:4_600])
        assert vectors.search(rows[4_599], 1).ids == [4_600]

    try:
        code = wait(in_child(work))
    finally:
        leave.set()
        thread.join()
    assert code == 0
    assert vectors.search(rows[4_599], 1).ids == [4_600]
    assert vectors.add([4_601], rows[4_600:4_601]) == 4_601


def test_threads_search_while_one_adds(tmp_path: Path) -> None:
    vectors, rows = open_vectors(tmp_path), make_rows(6_000)
    vectors.add(range(1, 3_001), rows[:3_000])
    done = threading.Event()

    def search(seed: int) -> int:
        random = np.random.default_rng(seed)
        searches = 0
        while not done.is_set() or searches < 5:
            known = int(random.integers(1, vectors.newest + 1))
            assert vectors.search(rows[known - 1], 1).ids == [known]
            searches += 1
        return searches

    with ThreadPoolExecutor(4) as pool:
        searches = [pool.submit(search, seed) for seed in range(3)]
        try:
            for begin in range(3_000, 6_000, 50):
                vectors.add(range(begin + 1, begin + 51), rows[begin : begin + 50])
        finally:
            done.set()
        assert all(search.result() for search in searches)
    assert vectors.newest == 6_000
