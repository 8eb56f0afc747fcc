"""The barrier of `await_consistency`: waits until earlier writes are stored and searchable, and reports failed writes.

A consistency token names a write: opaque text, the base64url of

    1 · store id (8 bytes) · memory id (16) · entry seq (u32) · document version (u32) · CRC-32 of these

The checksum detects damage. It is no protection: the memory must belong to the user who presents the token.
"""

import time
from collections.abc import Iterator
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple, cast, get_args
from zlib import crc32

from daypack.errors import BadInput
from daypack.memory.backend import Backend
from daypack.memory.limits import check_number
from daypack.memory.store.port import Newest, StoreFeed
from daypack.types.memory import Consistency, Level

if TYPE_CHECKING:
    from daypack.memory.search.index import IndexProgress

_OPERATION = "await_consistency"
_POLL_SECONDS = 0.02
_TOKEN = Struct(">B8s16sII")
_TOKEN_BYTES = _TOKEN.size + 4
_TOKEN_VERSION = 1
_NO_MEMORY = "0" * 32


class Position(NamedTuple):
    """The numbers of a write: it is complete when its memory has reached them. An empty memory id means the store."""

    store_id: str
    memory_id: str = ""
    entries: int = 0
    documents: int = 0


def write_token(position: Position) -> str:
    """Return the token of a position."""
    from base64 import urlsafe_b64encode  # noqa: PLC0415 — 1 ms that reading does not need

    store, memory = bytes.fromhex(position.store_id), bytes.fromhex(position.memory_id or _NO_MEMORY)
    body = _TOKEN.pack(_TOKEN_VERSION, store, memory, position.entries, position.documents)
    return urlsafe_b64encode(body + crc32(body).to_bytes(4, "big")).decode().rstrip("=")


def read_token(token: object, store_id: str) -> Position:
    """Return the position of a token of this store."""
    body = _token_body(token)
    if body is None:
        hint = "send a token exactly as a write returned it, or leave it out"
        raise BadInput("token is not a consistency token", operation=_OPERATION, hint=hint)
    _, store, memory, entries, documents = _TOKEN.unpack(body)
    if store.hex() != store_id:
        hint = "leave token out to wait for all writes"
        raise BadInput("token belongs to a different store", operation=_OPERATION, hint=hint)
    return Position(store_id, memory.hex() if any(memory) else "", entries, documents)


def _token_body(token: object) -> bytes | None:
    from base64 import urlsafe_b64decode  # noqa: PLC0415

    if not isinstance(token, str) or not token.isascii() or len(token) > 2 * _TOKEN_BYTES:
        return None
    try:
        data = urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except ValueError:
        return None
    body, checksum = data[: _TOKEN.size], data[_TOKEN.size :]
    intact = len(data) == _TOKEN_BYTES and crc32(body).to_bytes(4, "big") == checksum and body[0] == _TOKEN_VERSION
    return body if intact else None


class _Outcome(NamedTuple):
    """The result of waiting for one memory."""

    position: Position
    problem: str | None = None
    late: bool = False


class Barrier:
    """One call of await_consistency by one user, with its deadline."""

    def __init__(self, backend: Backend, user: str, timeout_ms: int, level: str) -> None:
        if level not in get_args(Level):
            hint = f"level must be one of {', '.join(get_args(Level))}"
            raise BadInput(f"level is {level!r}", operation=_OPERATION, hint=hint)
        wait_ms = check_number(timeout_ms, backend.limits.wait_ms, "timeout_ms", _OPERATION, least=0)
        self._deadline = time.monotonic() + wait_ms / 1000
        self._backend = backend
        self._store = backend.store
        self._user = user
        self._level: Level = cast(Level, level)

    def wait(self, memory_id: str | None, token: str | None) -> Consistency:
        """Wait for the write of a token, for a memory, or for everything this user has written."""
        requested, writes = self._requested(memory_id, token), self._backend.writes
        written = {} if requested else self._not_deleted(writes.written(self._user))
        positions = [requested] if requested else [Position(self._store.store_id, written_id) for written_id in written]
        outcomes = [self._wait_for(position) for position in positions]
        problems = [outcome.problem for outcome in outcomes if outcome.problem]
        reached = outcomes[0].position if len(outcomes) == 1 else Position(self._store.store_id)
        late = any(outcome.late for outcome in outcomes)
        if self._level == "searchable" and not requested and not problems:
            writes.forget_indexed(self._user, written)
        failed = writes.take_failed(self._user)
        return Consistency(
            status="timeout" if late else "failed" if failed or problems else "consistent",
            level=self._level,
            token=write_token(reached),
            search_index=self._level == "searchable" and not problems,
            failed_writes=failed,
            problem="; ".join(problems) or None,
        )

    def _requested(self, memory_id: str | None, token: str | None) -> Position | None:
        """Return the position to wait for; None for everything the user has written."""
        position = None if token is None else read_token(token, self._store.store_id)
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
        problem, late = self._until_searchable(position.memory_id, wanted)
        return _Outcome(reached, problem, late)

    def _until_stored(self, position: Position) -> Newest | None:
        while True:
            newest = self._store.newest(self._user, position.memory_id)
            if newest.assigned >= position.entries and newest.documents >= position.documents:
                return newest
            if not self._pause():
                return None

    def _until_searchable(self, memory_id: str, wanted: Newest) -> tuple[str | None, bool]:
        """Return why the index is not up to date (None if it is), and True if the deadline has passed."""
        indexes = self._backend.indexes
        with indexes.use(StoreFeed(self._store, self._user, memory_id)) as index:
            if index.covers(wanted.entries, wanted.documents):
                return None, False
            while True:
                progress = index.catch_up(deadline=self._deadline)
                missing = list(_missing(progress, wanted, vectors=indexes.has_vectors))
                if not missing:
                    return None, False
                if progress.problem:
                    return progress.problem, False
                if not self._pause():
                    return f"the search index is not up to date: {', '.join(missing)}", True

    def _pause(self) -> bool:
        remaining = self._deadline - time.monotonic()
        if remaining > 0:
            time.sleep(min(_POLL_SECONDS, remaining))
        return remaining > 0


def _missing(progress: "IndexProgress", wanted: Newest, *, vectors: bool) -> Iterator[str]:
    if progress.entries < wanted.entries:
        yield f"entries ({progress.entries:,} of {wanted.entries:,})"
    if progress.documents < wanted.documents:
        yield f"documents ({progress.documents:,} of {wanted.documents:,})"
    if vectors and progress.vectors < wanted.entries:
        yield f"vectors ({progress.vectors:,} of {wanted.entries:,})"
