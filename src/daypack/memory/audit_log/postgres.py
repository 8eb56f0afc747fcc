"""The audit log of a PostgreSQL store, `PostgresAuditLog(database)`: the same sealed lines in the table `audit`.

Numbers have no gaps, so that a removed line is noticed: every transaction that appends takes them from the one row of
`audit_end` and holds its lock until it has committed. An identity column would leave a gap after each rollback, and a
gap would no longer mean that a line is gone. The lock makes servers append one after the other; the threads of each
server append together, so a transaction carries as many lines as there are calls at a time. Lines about reads do not
wait for the disk of the database (a crash of it may lose those of the last moments, with their numbers), all others do.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence

from daypack.errors import Damaged, DaypackError, WriteFailed
from daypack.files.atomic import sync_folder
from daypack.files.commit import Group, Task
from daypack.memory.audit_log.port import Cut, Due, Log, cut_deed, cut_refused, render, write_new
from daypack.memory.audit_log.reading import Line, Wrong, verify_lines
from daypack.memory.audit_log.record import actor
from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope, Transaction

_APPEND, _READ, _CUT = Scope(), Scope(role="daypack_operator", reading=True), Scope(role="daypack_eraser")
_OPERATION = "audit-log"
_PAGE = 5_000  # lines read at a time
_PAUSE_SECONDS = 5.0  # after a failure, lines wait so long without trying: each try may take all the patience
_TAKE_NUMBERS = "UPDATE audit_end SET last = last + %s RETURNING last"
_INSERT = "INSERT INTO audit(seq, line) SELECT * FROM unnest(%s::bigint[], %s::bytea[])"


class PostgresAuditLog(Log):
    """The audit log of a database. Lines are appended by daypack_app, which cannot read them."""

    def __init__(self, database: Database) -> None:
        super().__init__(database.place)
        self._database = database
        self._group = Group["_Lines"](self._write, self.place)
        self._paused_until = 0.0

    def check(self) -> None:
        """Raise if lines wait, or if the database does not answer or cannot be written."""
        self.require()
        found = self._database.check(_OPERATION, "SELECT pg_is_in_recovery()")
        if found and found[0]:
            hint = "give the address of the primary"
            problem = "the database is a replica, the audit log cannot be written there"
            raise WriteFailed(problem, operation=_OPERATION, place=self.place, hint=hint)

    def close(self) -> None:
        """The connections are those of the store."""

    # Reading

    def exists(self) -> bool:
        """Return True if a line was ever written."""
        return self._last() > 0

    def lines(self) -> Iterator[Line]:
        """Yield every line, in order; those that are added meanwhile are not."""
        return self._until(self._last())

    def verify(self) -> list[Wrong]:
        """Return damaged lines and missing numbers, at the end too."""
        last = self._last()  # it is committed together with its line
        wrong, size = verify_lines(self._until(last))
        query = "SELECT coalesce(max(seq), 0) FROM audit WHERE seq <= %s"
        found = self._database.run(_OPERATION, lambda transaction: transaction.row(query, (last,)), _READ)
        if found and found[0] < last:
            wrong.append(Wrong(0, size, f"the lines {found[0] + 1:,} to {last:,} at the end are missing"))
        return wrong

    def _last(self) -> int:
        query = "SELECT last FROM audit_end"
        found = self._database.run(_OPERATION, lambda transaction: transaction.row(query), _READ)
        return found[0] if found else 0

    def _until(self, last: int) -> Iterator[Line]:
        query = "SELECT seq, line FROM audit WHERE seq > %s AND seq <= %s ORDER BY seq LIMIT %s"
        after = number = offset = 0
        while True:
            values = after, last, _PAGE
            rows = self._database.run(_OPERATION, lambda transaction, v=values: transaction.rows(query, v), _READ)
            for seq, data in rows:
                after, number = seq, number + 1
                yield Line.read(number, offset, bytes(data))
                offset += len(data) + 1
            if len(rows) < _PAGE:
                return

    # Cutting

    def cut(self, plan: Callable[[], Cut], archive: str) -> Cut:
        """Copy the lines of a plan to a new file, then remove them in one transaction with the line about it.

        If that fails, the file stays: it cannot be known whether its lines are elsewhere too.
        """
        cut = plan()  # lines never change, so the plan holds
        try:
            write_new(archive, (line.data + b"\n" for line in self._until(cut.last)))
            sync_folder(os.path.dirname(os.path.abspath(archive)))
        except OSError as error:
            raise cut_refused(archive, error) from error
        due = cut_deed(cut), actor.get(), time.time()
        self._database.resolve("audit cut", lambda transaction: self._remove(transaction, cut, due), _CUT)
        return cut

    def _remove(self, transaction: Transaction, cut: Cut, due: Due) -> None:
        seq = _take_numbers(transaction, 1)
        rest = transaction.row("SELECT count(*) FROM audit WHERE seq BETWEEN %s AND %s", (cut.first, cut.last))
        if transaction.attempt and rest == (0,):  # an earlier attempt was committed
            _take_numbers(transaction, -1)
            return
        if rest != (cut.lines,):
            hint = "run `daypack audit-log verify`"
            raise Damaged("lines are gone since the plan was made", operation="audit cut", place=self.place, hint=hint)
        transaction.execute("DELETE FROM audit WHERE seq BETWEEN %s AND %s", (cut.first, cut.last))
        transaction.execute(_INSERT, ([seq], [render(seq, due)[:-1]]))

    # Appending

    def _append(self, dues: Sequence[Due], *, durable: bool) -> None:
        """Append the lines together with those of other threads that wait at the same time."""
        try:
            self._group.do(lambda lines: lines.add(dues, durable=durable), _OPERATION)
        except DaypackError as error:
            raise WriteFailed(error.problem, operation=_OPERATION, place=self.place, hint=error.hint) from error

    def _write(self, tasks: "Sequence[Task[_Lines]]") -> None:
        lines = _Lines()
        waiting, lost = self._waiting()
        lines.add(waiting, durable=bool(waiting))
        for task in tasks:
            task.attempt(lines)
        if time.monotonic() < self._paused_until and not lines.required:
            raise WriteFailed("the database did not answer a moment ago", hint="try again later")
        try:
            if lines.dues:
                self._database.resolve(_OPERATION, lines.append, _APPEND)
        except DaypackError:
            self._paused_until = time.monotonic() + _PAUSE_SECONDS
            raise
        self._paused_until = 0.0
        self._written(waiting, lost)


class _Lines:
    """Lines that are appended together."""

    def __init__(self) -> None:
        self.dues: list[Due] = []
        self.required = False  # a caller asks whether lines can be written at all
        self._durable = False
        self._tried: tuple[int, bytes] | None = None  # the first line of an attempt that may have been committed

    def add(self, dues: Sequence[Due], *, durable: bool) -> None:
        """Append these too."""
        self.dues += dues
        self.required = self.required or (durable and not dues)
        self._durable = self._durable or durable

    def append(self, transaction: Transaction) -> None:
        """Number and insert them, unless an earlier attempt was committed."""
        if not self._durable:
            transaction.execute("SET LOCAL synchronous_commit = off")
        count = len(self.dues)
        first = _take_numbers(transaction, count) - count + 1
        if transaction.attempt and self._is_there(transaction):
            _take_numbers(transaction, -count)
            return
        lines = [render(seq, due)[:-1] for seq, due in enumerate(self.dues, first)]
        self._tried = first, lines[0]
        transaction.execute(_INSERT, (list(range(first, first + count)), lines))

    def _is_there(self, transaction: Transaction) -> bool:
        if self._tried is None:
            return False
        seq, line = self._tried
        transaction.execute("SELECT set_config('role', 'daypack_operator', true)")
        found = transaction.row("SELECT line FROM audit WHERE seq = %s", (seq,))
        transaction.execute("SELECT set_config('role', 'daypack_app', true)")
        return found is not None and bytes(found[0]) == line


def _take_numbers(transaction: Transaction, count: int) -> int:
    """Return the last of so many new numbers; other transactions get none before this one has ended."""
    found = transaction.row(_TAKE_NUMBERS, (count,))
    if found is None:
        hint = "restore it from a backup, or insert the number of the last line of audit"
        raise Damaged("the table audit_end is empty", operation=_OPERATION, place="audit_end", hint=hint)
    return found[0]
