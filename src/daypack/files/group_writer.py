"""Writes to a database that share transactions: one sync for all that wait at the same time."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from daypack.files.commit import Group, Task
from daypack.files.database import Answer, Database

if TYPE_CHECKING:
    from sqlite3 import Connection


class GroupWriter:
    """Writes to a database: those of threads that wait at the same time share one transaction and one sync."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._group = Group["Connection"](self._write_all, database.path)

    @property
    def waiting(self) -> int:
        """How many writes are queued and not started."""
        return self._group.waiting

    def write(self, operation: str, work: Callable[["Connection"], Answer]) -> Answer:
        """Run `work` in a transaction and return when it is committed; if it fails, only its own changes are undone."""

        def run(connection: "Connection") -> Answer:
            with self.database.refusing(operation):
                return work(connection)

        return self._group.do(run, operation)

    def _write_all(self, tasks: "Sequence[Task[Connection]]") -> None:
        def work(connection: "Connection") -> None:
            if len(tasks) == 1:
                tasks[0].answers.append(tasks[0].run(connection))
            else:
                for task in tasks:
                    self._attempt(task, connection)

        self.database.run(tasks[0].operation, work, writing=True)

    def _attempt(self, task: "Task[Connection]", connection: "Connection") -> None:
        """Run one of several tasks; if it fails, roll back its changes and no others."""
        connection.execute("SAVEPOINT task")
        task.attempt(connection)
        if task.error is not None:
            if not connection.in_transaction:
                raise task.error  # SQLite has rolled back everything
            connection.execute("ROLLBACK TO task")
        connection.execute("RELEASE task")
