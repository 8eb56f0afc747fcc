"""Threads that write at the same time share a commit, and each gets its own answer or its own error."""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from daypack.errors import StorageFailed
from daypack.files.database import Database, Format
from daypack.files.group_writer import GroupWriter

FORMAT = Format("store", 0x61626364, 1, "CREATE TABLE kept(value INT UNIQUE)", "restore it", kept=True)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(str(tmp_path / "store.db"), FORMAT)
    yield database
    database.close()


def inserting(value: int) -> Callable[[sqlite3.Connection], int]:
    def work(file: sqlite3.Connection) -> int:
        file.execute("INSERT INTO kept VALUES (?)", (value,))
        return value

    return work


def values(database: Database) -> list[int]:
    query = "SELECT value FROM kept ORDER BY value"
    return database.run("read", lambda file: [row[0] for row in file.execute(query)])


class Crowd:
    """Threads that queue up while a first writer is at work, and what came of each."""

    def __init__(self, writer: GroupWriter, works: list[Callable[[sqlite3.Connection], Any]]) -> None:
        self.outcomes: dict[int, Any] = {}
        self._writer = writer
        self._works = works

    def run(self, first: Callable[[sqlite3.Connection], Any]) -> None:
        waiting = threading.Event()
        entered = threading.Event()

        def hold(file: sqlite3.Connection) -> Any:
            entered.set()
            waiting.wait(10)
            return first(file)

        threads = [threading.Thread(target=self._write, args=(-1, hold))]
        threads[0].start()
        assert entered.wait(10)
        threads += [threading.Thread(target=self._write, args=one) for one in enumerate(self._works)]
        for thread in threads[1:]:
            thread.start()
        while self._writer.waiting < len(self._works):
            pass
        waiting.set()
        for thread in threads:
            thread.join()

    def _write(self, number: int, work: Callable[[sqlite3.Connection], Any]) -> None:
        try:
            self.outcomes[number] = self._writer.write("put", work)
        except BaseException as error:
            self.outcomes[number] = error


def commits(database: Database) -> list[str]:
    seen: list[str] = []
    database.open("watch").set_trace_callback(lambda text: seen.append(text) if text == "COMMIT" else None)
    return seen


def test_those_who_wait_are_written_in_one_commit(database: Database) -> None:
    seen = commits(database)
    crowd = Crowd(GroupWriter(database), [inserting(value) for value in range(8)])
    crowd.run(inserting(100))
    assert crowd.outcomes == {number: number for number in range(8)} | {-1: 100}
    assert len(seen) == 2
    assert values(database) == [*range(8), 100]


def test_one_that_fails_leaves_nothing_and_touches_no_other(database: Database) -> None:
    def failing(file: sqlite3.Connection) -> None:
        file.execute("INSERT INTO kept VALUES (50)")
        raise KeyError("mine")

    crowd = Crowd(GroupWriter(database), [inserting(1), failing, inserting(1), inserting(2)])
    crowd.run(inserting(100))
    ones = [crowd.outcomes[0], crowd.outcomes[2]]
    assert isinstance(crowd.outcomes[1], KeyError)
    assert [type(one) for one in ones if one != 1] == [StorageFailed]
    assert crowd.outcomes[3] == 2
    assert values(database) == [1, 2, 100]


def test_a_commit_that_fails_fails_for_all_of_it(database: Database) -> None:
    def breaking(file: sqlite3.Connection) -> None:
        file.execute("INSERT INTO kept VALUES (3)")
        file.execute("ROLLBACK")
        raise KeyError("mine")

    crowd = Crowd(GroupWriter(database), [inserting(1), breaking, inserting(2)])
    crowd.run(inserting(100))
    assert all(isinstance(crowd.outcomes[number], KeyError) for number in range(3))
    assert values(database) == [100]


def test_an_interrupted_writer_tells_those_it_wrote_for(database: Database) -> None:
    def interrupted(_: sqlite3.Connection) -> None:
        raise KeyboardInterrupt

    crowd = Crowd(GroupWriter(database), [inserting(1), interrupted, inserting(2)])
    crowd.run(inserting(100))
    assert sorted(type(crowd.outcomes[number]).__name__ for number in range(3)) == [
        "KeyboardInterrupt",
        "LeaderInterrupted",
        "LeaderInterrupted",
    ]
    assert values(database) == [100]


def test_a_write_from_within_a_write_is_refused(database: Database) -> None:
    writer = GroupWriter(database)

    def nest(file: sqlite3.Connection) -> None:
        file.execute("INSERT INTO kept VALUES (1)")
        writer.write("put", inserting(2))

    with pytest.raises(StorageFailed, match="already writing"):
        writer.write("put", nest)
    assert values(database) == []
    assert writer.write("put", inserting(3)) == 3


def test_a_child_forked_while_others_wait_writes_what_is_its_own(database: Database) -> None:
    writer = GroupWriter(database)
    statuses: list[int] = []

    def fork(_: sqlite3.Connection) -> None:
        while not writer.waiting:
            pass
        child = os.fork()
        if child == 0:
            os._exit(0 if _write_apart(database.path, writer) else 1)
        statuses.append(os.waitpid(child, 0)[1])

    crowd = Crowd(writer, [inserting(1)])
    crowd.run(fork)
    assert statuses == [0]
    assert crowd.outcomes[0] == 1
    assert values(database) == [1]


def _write_apart(path: str, writer: GroupWriter) -> bool:
    """In the child: its parent is in the middle of a transaction, so it writes to another file."""
    other = Database(path + ".child", FORMAT)
    writer.database = other
    return writer.write("put", inserting(7)) == 7 and values(other) == [7]
