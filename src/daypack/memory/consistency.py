"""What `await_consistency` does: wait until earlier writes hold, and report those that failed."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, cast, get_args

from daypack.errors import BadInput
from daypack.memory.backend import Backend
from daypack.memory.consistency_token import Position, read_token, write_token
from daypack.memory.limits import check_number
from daypack.memory.store.port import Newest, StoreFeed
from daypack.types.memory import Consistency, Level

if TYPE_CHECKING:
    from daypack.memory.search.index import Reached

_OPERATION = "await_consistency"
_POLL_SECONDS = 0.02


class _Outcome(NamedTuple):
    """What came of waiting for one memory."""

    position: Position
    problem: str | None = None
    late: bool = False


class Barrier:
    """One barrier of one user, with its deadline."""

    def __init__(self, backend: Backend, user: str, timeout_ms: int, level: str) -> None:
        if level not in get_args(Level):
            raise BadInput(f"level is {level!r}", operation=_OPERATION, hint=f"one of {', '.join(get_args(Level))}")
        wait = check_number(timeout_ms, backend.limits.wait_ms, "timeout_ms", _OPERATION, least=0)
        self._deadline = time.monotonic() + wait / 1000
        self._backend = backend
        self._store = backend.store
        self._user = user
        self._level: Level = cast(Level, level)

    def wait(self, memory_id: str | None, token: str | None) -> Consistency:
        """Wait for the write of a token, for a memory, or for whatever this user has written."""
        asked, writes = self._asked(memory_id, token), self._backend.writes
        written = {} if asked else self._still(writes.done(self._user))
        positions = [asked] if asked else [Position(self._store.store_id, one) for one in written]
        outcomes = [self._wait_for(position) for position in positions]
        problems = [one.problem for one in outcomes if one.problem]
        reached = outcomes[0].position if len(outcomes) == 1 else Position(self._store.store_id)
        late = any(one.late for one in outcomes)
        if self._level == "searchable" and not asked and not problems:
            writes.settle(self._user, written)
        failed = writes.take_failed(self._user)
        return Consistency(
            status="timeout" if late else "failed" if failed or problems else "consistent",
            level=self._level,
            token=write_token(reached),
            search_index=self._level == "searchable" and not problems,
            failed_writes=failed,
            problem="; ".join(problems) or None,
        )

    def _asked(self, memory_id: str | None, token: str | None) -> Position | None:
        """Return the position to wait for; only a memory of this user can be waited for."""
        position = None if token is None else read_token(token, self._store.store_id)
        if position and memory_id is not None and position.memory_id not in ("", memory_id):
            raise BadInput("token is of another memory", operation=_OPERATION, hint="give one of them")
        if memory_id is not None and not (position and position.memory_id):
            position = Position(self._store.store_id, memory_id)
        return position if position and position.memory_id else None

    def _still(self, written: dict[str, int]) -> dict[str, int]:
        """Return the memories that are there; one may have been deleted since it was written to."""
        there = {one.memory_id for one in self._store.memories(self._user)} if written else set[str]()
        return {memory_id: count for memory_id, count in written.items() if memory_id in there}

    def _wait_for(self, position: Position) -> _Outcome:
        newest = self._until_stored(position)
        if newest is None:
            return _Outcome(position, "the write is not in the store", late=True)
        wanted = newest
        if position.entries or position.documents:  # one write; its entry may have been erased since
            wanted = Newest(min(position.entries, newest.entries), position.documents, newest.given)
        reached = position._replace(entries=newest.given, documents=newest.documents)
        if self._level != "searchable":
            return _Outcome(reached)
        problem, late = self._until_searchable(position.memory_id, wanted)
        return _Outcome(reached, problem, late)

    def _until_stored(self, position: Position) -> Newest | None:
        while True:
            newest = self._store.newest(self._user, position.memory_id)
            if newest.given >= position.entries and newest.documents >= position.documents:
                return newest
            if not self._pause():
                return None

    def _until_searchable(self, memory_id: str, wanted: Newest) -> tuple[str | None, bool]:
        """Return why the index is behind, None when it is not, and whether time ran out."""
        indexes = self._backend.indexes
        with indexes.use(StoreFeed(self._store, self._user, memory_id)) as index:
            if index.finds(wanted.entries, wanted.documents):
                return None, False
            while True:
                reached = index.catch_up(deadline=self._deadline)
                behind = list(_behind(reached, wanted, vectors=indexes.has_vectors))
                if not behind:
                    return None, False
                if reached.problem:
                    return reached.problem, False
                if not self._pause():
                    return f"the search index is behind with {', '.join(behind)}", True

    def _pause(self) -> bool:
        left = self._deadline - time.monotonic()
        if left > 0:
            time.sleep(min(_POLL_SECONDS, left))
        return left > 0


def _behind(reached: "Reached", wanted: Newest, *, vectors: bool) -> Iterator[str]:
    if reached.entries < wanted.entries:
        yield f"entries ({reached.entries:,} of {wanted.entries:,})"
    if reached.documents < wanted.documents:
        yield f"documents ({reached.documents:,} of {wanted.documents:,})"
    if vectors and reached.vectors < wanted.entries:
        yield f"vectors ({reached.vectors:,} of {wanted.entries:,})"
