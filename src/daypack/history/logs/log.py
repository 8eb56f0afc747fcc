"""One append-only log: a reader without locks and a writer under the session's lock, over the same file."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Generic, cast

from daypack.errors import BadMessage, DaypackError, Overtaken
from daypack.files.commit import Answer, Group, Handle, Task
from daypack.files.lock import Lock
from daypack.files.offsets import Offsets
from daypack.history.logs.reader import Reader, Record
from daypack.history.logs.records import Records
from daypack.history.logs.writer import Batch, Weigh, Writer


class Log(Generic[Record]):
    """The records of one file, oldest first, numbered from 1."""

    def __init__(
        self, shape: type[Record], path: str, lock: Lock, sidecar: tuple[str, str], weigh: Weigh[Record]
    ) -> None:
        self.path = path
        self.lock = lock
        self.reader = Reader(path, Offsets(*sidecar), shape, lock)
        self.writer = Writer(path, lock, Offsets(*sidecar), shape, weigh)
        self._group = Group[Handle](self._write_all)

    def begin(self) -> Handle:
        """Prepare to write; the caller holds the lock."""
        handle = self.writer.begin()
        if self.reader.sidecar_is_wrong:
            handle = self.writer.rebuild()
            self.reader.close()
            self.reader.sidecar_is_wrong = False
        return handle

    def append(self, records: Sequence[Record], now: float, *, durable: bool) -> None:
        """Append records, all or none; if durable, return when they are on disk."""
        if self.writer.upstream is not None and not self.lock.held:
            self._group.do(_Plain(self, (records, now)))
        elif durable or self.writer.upstream is not None:
            self.write(lambda handle: self.writer.write(handle, records, now), durable=True)
        else:
            with self.lock:
                if self.reader.sidecar_is_wrong:
                    self.begin()
                self.writer.append(records, now)

    def write(self, run: Callable[[Handle], Answer], *, durable: bool) -> Answer:
        """Call `run` under the lock and return its answer; if durable, when what it wrote is on disk."""
        if self.writer.upstream is not None:
            run = partial(self.repeat, run)
        if durable and not self.lock.held:
            return self._group.do(run)
        with self.lock:
            handle = self.begin()
            start = handle.written
            answer = run(handle)
            end = handle.written
        if durable:
            self.writer.commit(handle, start, end)
        return answer

    def repeat(self, run: Callable[[Handle], Answer], handle: Handle) -> Answer:
        """Call `run`, again if other workers have appended to the session meanwhile: they may have the same client key.

        Within a block that holds the lock, what the block has read before is out of date too: the block is repeated.
        """
        while True:
            try:
                return run(handle)
            except Overtaken:
                if self.lock.nested or self.writer.upstream is None:
                    raise
                self.writer.upstream.refresh()
                self.writer.follow_path()
                handle = self.begin()

    def _write_all(self, tasks: Sequence[Task[Handle]]) -> None:
        with self.lock:
            handle = self.begin()
            start = handle.written
            if self.writer.upstream is not None and len(tasks) > 1:
                tasks = self._write_plain(tasks, handle)
                handle = self.begin() if tasks else handle
            for task in tasks:
                task.attempt(handle)
                if task.error:
                    handle = self.begin()  # a failed write may leave torn bytes
            end = handle.written
        self.writer.commit(handle, start, end)

    def _write_plain(self, tasks: Sequence[Task[Handle]], handle: Handle) -> list[Task[Handle]]:
        """Store the tasks that only append, as one; return those that are still to do."""
        plain = [task for task in tasks if isinstance(task.run, _Plain)]
        batches = [cast(_Plain[Record], task.run).batch for task in plain]
        if batches:
            try:
                self.repeat(lambda handle: self.writer.write_several(handle, batches), handle)
            except BadMessage:
                return list(tasks)  # one of them cannot be stored
            except DaypackError as error:
                for task in plain:
                    task.error = error
            else:
                for task in plain:
                    task.answers.append(None)
        return [task for task in tasks if not isinstance(task.run, _Plain)]

    def rebuild(self) -> int:
        """Rebuild the sidecar and return the number of lines; the next append repairs a torn tail."""
        if not self.reader.torn():
            with self.lock:
                self.writer.rebuild()
            self.reader.close()
        return self.reader.count()

    def tail(self, count: int) -> tuple[Record, ...]:
        """Return the last `count` records, oldest first."""
        return self.reader.tail(count)

    def records(self, start: int = 1, stop: int | None = None) -> Records[Record]:
        """Return the records numbered `start` to `stop`, both included."""
        return Records(self.reader, start, stop)

    def holding(self, words: Sequence[bytes], start: int = 1, stop: int | None = None) -> Iterable[Record]:
        """Return the records of a range whose lines contain one of some words; next to damage, also others."""
        return Records(self.reader, start, stop, words)

    def forget(self) -> None:
        """In a forked child: drop the files of the parent."""
        self.reader.forget()
        self.writer.forget()

    def close(self) -> None:
        """Close the files; the log can still be used and opens them again."""
        self.reader.close()
        self.writer.close()


class _Plain(Generic[Record]):
    """An append that needs nothing but its place at the end of the log."""

    def __init__(self, log: Log[Record], batch: Batch[Record]) -> None:
        self._log = log
        self.batch = batch

    def __call__(self, handle: Handle) -> None:
        """Do it alone."""
        self._log.repeat(lambda handle: self._log.writer.write(handle, *self.batch), handle)
