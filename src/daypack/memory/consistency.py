"""The barrier of `await_consistency`: waits until earlier writes are stored and searchable; reports failed writes."""

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, cast, get_args

from daypack.errors import BadInput
from daypack.memory.backend import Backend
from daypack.memory.limits import check_number
from daypack.memory.store.port import MAX_DAMAGED, Newest, StoreFeed
from daypack.memory.writes.positions import Position, other_store
from daypack.memory.writes.recent_writes import Writer
from daypack.types.memory import Consistency, DamagedRecord, Level

if TYPE_CHECKING:
    from daypack.memory.search.index import IndexProgress

Pause = Callable[[float], None]

_OPERATION = "await_consistency"
_POLL_SECONDS = 0.02
_MAX_POLL_SECONDS = 0.25  # a wait that lasts looks less often
_FIRST_REPLICA_SECONDS = 0.002  # a replica usually lags by a few milliseconds
_SLICE_SECONDS = 0.25  # of indexing, between which a server lets others work


class _Outcome(NamedTuple):
    """The result of waiting for one memory."""

    position: Position
    problem: str | None = None
    late: bool = False
    damaged: tuple[DamagedRecord, ...] = ()


class Barrier:
    """One call of await_consistency, with its deadline.

    `pause` is called between two looks at the store and between two slices of indexing. It may raise, which ends the
    wait; failed writes are then reported by a later barrier.
    """

    def __init__(
        self, backend: Backend, writer: Writer, timeout_ms: int, level: str, pause: Pause = time.sleep
    ) -> None:
        if level not in get_args(Level):
            hint = f"level must be one of {', '.join(get_args(Level))}"
            raise BadInput(f"level is {level!r}", operation=_OPERATION, hint=hint)
        wait_ms = check_number(timeout_ms, backend.limits.wait_ms, "timeout_ms", _OPERATION, least=0)
        self._deadline = time.monotonic() + wait_ms / 1000
        self._backend = backend
        self._store = backend.primary
        self._writer = writer
        self._user = writer.user
        self._sleep = pause
        self._poll_seconds = _POLL_SECONDS
        self._level: Level = cast(Level, level)

    def wait(self, memory_id: str | None, token: str | None) -> Consistency:
        """Wait for the write of a token, for a memory, or for everything this user has written."""
        requested, writes = self._requested(memory_id, token), self._backend.writes
        store_id = self._store.store_id
        written = {} if requested else self._not_deleted(writes.written(self._user))
        positions = [requested] if requested else [Position(store_id, written_id) for written_id in written]
        outcomes = [self._wait_for(position) for position in positions]
        problems = [outcome.problem for outcome in outcomes if outcome.problem]
        reached = outcomes[0].position if len(outcomes) == 1 else Position(store_id)
        late = any(outcome.late for outcome in outcomes)
        log, behind = self._until_replayed(requested)
        if token is not None and self._store.store_id != store_id:  # it was restored since the token was read
            raise other_store(_OPERATION)
        problems += [behind] if behind else []
        late = late or bool(behind)
        if self._level == "searchable" and not requested and not problems:
            writes.forget_indexed(self._user, written)
        failed = writes.take_failed(self._writer)
        return Consistency(
            status="timeout" if late else "failed" if failed or problems else "consistent",
            level=self._level,
            token=self._backend.positions.write_token(
                self._user, reached._replace(store_id=self._store.store_id, log=log)
            ),
            search_index=self._level == "searchable" and not problems,
            failed_writes=failed,
            problem="; ".join(problems) or None,
            damaged=tuple(record for outcome in outcomes for record in outcome.damaged)[:MAX_DAMAGED],
        )

    def _requested(self, memory_id: str | None, token: str | None) -> Position | None:
        """Return the position to wait for; None for everything the user has written."""
        position = None if token is None else self._backend.read_token(self._user, token, _OPERATION)
        if position and memory_id is not None and position.memory_id not in ("", memory_id):
            hint = "send only one of memory_id and token"
            raise BadInput("token belongs to a different memory", operation=_OPERATION, hint=hint)
        if memory_id is not None and not (position and position.memory_id):
            position = Position(self._store.store_id, memory_id)
        return position if position and position.memory_id else None

    def _not_deleted(self, written: dict[str, int]) -> dict[str, int]:
        existing = {memory.memory_id for memory in self._store.memories(self._user)} if written else set[str]()
        return {memory_id: count for memory_id, count in written.items() if memory_id in existing}

    def _wait_for(self, position: Position) -> _Outcome:
        newest = self._until_stored(position)
        if newest is None:
            return _Outcome(position, "the write is not in the store", late=True)
        wanted = newest
        if position.entries or position.documents:  # a single write; its entry may have been erased since
            wanted = Newest(min(position.entries, newest.entries), position.documents, newest.assigned)
        reached = position._replace(entries=newest.assigned, documents=newest.documents)
        if self._level != "searchable":
            return _Outcome(reached)
        problem, late, damaged = self._until_searchable(position.memory_id, wanted)
        return _Outcome(reached, problem, late, damaged)

    def _until_stored(self, position: Position) -> Newest | None:
        while True:
            newest = self._store.newest(self._user, position.memory_id)
            if newest.assigned >= position.entries and newest.documents >= position.documents:
                return newest
            if not self._pause():
                return None

    def _until_searchable(self, memory_id: str, wanted: Newest) -> tuple[str | None, bool, tuple[DamagedRecord, ...]]:
        """Return why the index is not up to date (None if it is), True if the deadline has passed, and its damage."""
        indexes = self._backend.indexes
        with indexes.use(StoreFeed(self._store, self._user, memory_id)) as index:
            if index.covers(wanted.entries, wanted.documents):
                return None, False, index.damaged
            while True:
                before = time.monotonic()
                progress = index.catch_up(deadline=min(self._deadline, before + _SLICE_SECONDS))
                missing = list(missing_from(progress, wanted, vectors=indexes.has_vectors))
                if not missing:
                    return None, False, index.damaged
                if progress.problem:
                    return progress.problem, False, index.damaged
                sliced = time.monotonic() - before >= _SLICE_SECONDS  # more to index, nothing to wait for
                if not self._pause(0 if sliced else None):
                    problem = f"the search index is not up to date: {', '.join(missing)}"
                    return problem, True, index.damaged

    def _until_replayed(self, requested: Position | None) -> tuple[int, str]:
        """Return the position that the replica has to reach, and why it has not: empty if it has, or there is none.

        Whatever the outcome, reads of this user through this process do not go to a replica that has not reached it.
        """
        server = self._backend.server
        if server is None:
            return 0, ""
        reads, now = server.copy and server.copy.reads, server.database.wal_position()
        log = (requested.log if requested else 0) or (reads.wanted(self._user) if reads else 0)
        # What was indexed is newer than the write. A position beyond the log is from before a failover or a restore.
        log = now if self._level == "searchable" else min(log or now, now)
        if reads is None:
            return log, ""
        reads.require(self._user, log)
        if self._level == "durable":
            return log, ""
        seconds = _FIRST_REPLICA_SECONDS
        while True:
            problem = reads.replica.lag(log)
            if not problem or not self._pause(seconds):
                return log, problem
            seconds = min(2 * seconds, _MAX_POLL_SECONDS)

    def _pause(self, seconds: float | None = None) -> bool:
        """Let others work; return False if the deadline has passed. Without seconds, wait longer each time."""
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            return False
        if seconds is None:
            seconds = self._poll_seconds
            self._poll_seconds = min(2 * seconds, _MAX_POLL_SECONDS)
        self._sleep(min(seconds, remaining))
        return True


def missing_from(progress: "IndexProgress", wanted: Newest, *, vectors: bool) -> Iterator[str]:
    """Yield what an index lacks, with how far it has come."""
    if progress.entries < wanted.entries:
        yield f"entries ({progress.entries:,} of {wanted.entries:,})"
    if progress.documents < wanted.documents:
        yield f"documents ({progress.documents:,} of {wanted.documents:,})"
    if vectors and progress.vectors < wanted.entries:
        yield f"vectors ({progress.vectors:,} of {wanted.entries:,})"
