"""The barrier says whether earlier writes hold, which failed, and never calls a timeout a success."""

import threading
import time
from collections.abc import Callable

import pytest

from daypack.errors import BadInput, DaypackError, MemoryMissing, StorageFailed, TooLong
from daypack.memory.search.index import IndexProgress
from daypack.memory.store.port import NewEntry
from daypack.memory.tools import Memories
from daypack.memory.writes.positions import Position


@pytest.mark.requirement("S2-T7", "G13")
def test_writes_are_durable_visible_and_searchable(memories: Memories, memory_id: str) -> None:
    added = memories.add_entry(memory_id, "The launch moved to 17 Aug 2025.", "moved")
    document = memories.put_context(memory_id, "# Launch on 17 Aug 2025")
    for token in (added.token, document.token, None):
        for level in ("durable", "visible", "searchable"):
            found = memories.await_consistency(token=token, level=level)
            assert (found.status, found.level, found.problem) == ("consistent", level, None)
            assert found.search_index == (level == "searchable")
    assert memories.await_consistency(memory_id).status == "consistent"


def test_the_token_of_a_barrier_can_be_waited_for(memories: Memories, memory_id: str) -> None:
    memories.add_entry(memory_id, "one", "one")
    token = memories.await_consistency(memory_id).token
    backend = memories.backend
    assert backend.positions.read_token("local", token, backend.store.store_id)[1:4] == (memory_id, 1, 1)
    assert memories.await_consistency(token=token, timeout_ms=0).status == "consistent"
    assert memories.await_consistency(token=memories.await_consistency().token).status == "consistent"


def test_without_a_token_it_covers_every_memory_the_user_has_written_to(memories: Memories) -> None:
    ids = [memories.create_memory(f"m{number}").memory_id for number in range(3)]
    for one in ids:
        memories.add_entry(one, "something to find", "found")
    assert memories.await_consistency().status == "consistent"
    assert memories.backend.writes.written("local") == {}
    for one in ids:
        assert memories.search_memories(one, "something").count == 1


@pytest.mark.requirement("G13")
@pytest.mark.parametrize("level", ["durable", "visible", "searchable"])
def test_failed_writes_are_told_once(memories: Memories, memory_id: str, level: str) -> None:
    with pytest.raises(TooLong):
        memories.put_context(memory_id, "x" * 5001)
    with pytest.raises(TooLong):
        memories.add_entry(memory_id, "raw", "x" * 513, client_key="k")
    with pytest.raises(MemoryMissing):
        memories.add_entry("0" * 32, "raw", "sum")
    memories.add_entry(memory_id, "good", "good")
    found = memories.await_consistency(level=level)  # type: ignore[arg-type]
    assert found.status == "failed"
    told = [(one.operation, one.memory_id, one.client_key) for one in found.failed_writes]
    assert told == [
        ("put_context", memory_id, None),
        ("add_entry", memory_id, "k"),
        ("add_entry", "0" * 32, None),
    ]
    assert "5,001 characters" in found.failed_writes[0].problem
    again = memories.await_consistency(level=level)  # type: ignore[arg-type]
    assert (again.status, again.failed_writes) == ("consistent", ())


@pytest.mark.requirement("G13")
def test_a_write_the_disk_refuses_is_told_too(
    memories: Memories, memory_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = memories.backend.store

    def refuse(*_: object) -> None:
        raise StorageFailed("No space left on device", operation="add_entry")

    with monkeypatch.context() as patch:
        patch.setattr(store, "add", refuse)
        with pytest.raises(StorageFailed):
            memories.add_entry(memory_id, "raw", "sum")
    (failed,) = memories.await_consistency().failed_writes
    assert failed.problem == "StorageFailed: No space left on device"


def test_a_write_that_was_repeated_and_holds_is_no_failure(memories: Memories, memory_id: str) -> None:
    with pytest.raises(TooLong):
        memories.add_entry(memory_id, "raw", "x" * 513, client_key="k")
    with pytest.raises(TooLong):
        memories.add_entry(memory_id, "raw", "x" * 513, client_key="other")
    memories.add_entry(memory_id, "raw", "short", client_key="k")
    assert [one.client_key for one in memories.await_consistency().failed_writes] == ["other"]


def test_failures_are_kept_for_their_user_and_no_more_than_some(memories: Memories, memory_id: str) -> None:
    for _ in range(memories.backend.limits.failures + 5):
        with pytest.raises(DaypackError):
            memories.add_entry(memory_id, "")
    assert memories.as_user("zoe").await_consistency().status == "consistent"
    more, *failed = memories.await_consistency().failed_writes
    assert len(failed) == memories.backend.limits.failures
    assert more.problem == "5 earlier failed writes"


def test_a_barrier_that_is_refused_forgets_nothing(memories: Memories, memory_id: str) -> None:
    with pytest.raises(DaypackError):
        memories.add_entry(memory_id, "")
    with pytest.raises(BadInput):
        memories.await_consistency(token="nonsense")
    assert len(memories.await_consistency().failed_writes) == 1


@pytest.mark.requirement("G13")
def test_a_write_the_store_does_not_hold_is_a_timeout(memories: Memories, memory_id: str) -> None:
    store_id = memories.backend.store.store_id
    for position in (Position(store_id, memory_id, 5, 0), Position(store_id, memory_id, 0, 9)):
        found = memories.await_consistency(
            token=memories.backend.positions.write_token("local", position), timeout_ms=30, level="durable"
        )
        assert (found.status, found.search_index) == ("timeout", False)
        assert found.problem


def test_a_write_that_comes_in_time_is_waited_for(memories: Memories, memory_id: str) -> None:
    position = Position(memories.backend.store.store_id, memory_id, 1, 0)
    token = memories.backend.positions.write_token("local", position)
    found: list[str] = []
    waiting = threading.Thread(target=lambda: found.append(memories.await_consistency(token=token).status))
    waiting.start()
    time.sleep(0.05)
    assert found == []
    memories.backend.store.add("local", memory_id, (NewEntry(raw="late", summary="late"),))
    waiting.join()
    assert found == ["consistent"]


def test_an_entry_that_was_erased_since_is_not_waited_for(memories: Memories, memory_id: str) -> None:
    memories.add_entry(memory_id, "one", "one")
    added = memories.add_entry(memory_id, "two", "two")
    memories.erase_entry(memory_id, added.entry_id)
    assert memories.await_consistency(token=added.token, timeout_ms=2_000).status == "consistent"
    assert memories.await_consistency(memory_id, timeout_ms=2_000).status == "consistent"
    memories.erase_memory(memory_id)
    assert memories.await_consistency().status == "consistent"


class SlowIndex:
    """An index that has got as far as it is told."""

    reached = IndexProgress(0, 0)

    def __init__(self, *_: object) -> None:
        self.notes = ()

    damaged = ()

    def covers(self, entries: int, documents: int) -> bool:
        return False

    def catch_up(self, **_: object) -> IndexProgress:
        return self.reached

    def close(self) -> None:
        pass


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Callable[[IndexProgress], None]:
    monkeypatch.setattr("daypack.memory.search.index.Index", SlowIndex)
    return lambda reached: monkeypatch.setattr(SlowIndex, "reached", reached)


class Vectors:
    """An embedding model that is there."""

    name = "here"

    def close(self) -> None:
        pass


@pytest.mark.requirement("G13")
def test_an_index_that_is_behind_is_a_timeout_that_says_so(
    memories: Memories, memory_id: str, slow: Callable[[IndexProgress], None]
) -> None:
    memories.add_entry(memory_id, "one", "one")
    slow(IndexProgress(0, 1))
    found = memories.await_consistency(memory_id, timeout_ms=30)
    assert (found.status, found.search_index) == ("timeout", False)
    assert found.problem == "the search index is not up to date: entries (0 of 1)"
    assert memories.await_consistency(memory_id, timeout_ms=30, level="visible").status == "consistent"
    slow(IndexProgress(1, 0))
    assert memories.await_consistency(memory_id, timeout_ms=0).status == "timeout"
    slow(IndexProgress(1, 1))
    assert memories.await_consistency(memory_id, timeout_ms=0).status == "consistent"


def test_with_an_embedding_model_vectors_are_waited_for(
    memories: Memories, memory_id: str, slow: Callable[[IndexProgress], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memories.backend.indexes, "_open_embedder", Vectors)
    memories.add_entry(memory_id, "one", "one")
    slow(IndexProgress(1, 1, 0))
    found = memories.await_consistency(memory_id, timeout_ms=30)
    assert (found.status, found.problem) == ("timeout", "the search index is not up to date: vectors (0 of 1)")
    slow(IndexProgress(1, 1, 0, "the embedding model does not answer"))
    found = memories.await_consistency(memory_id, timeout_ms=60_000)
    assert (found.status, found.problem) == ("failed", "the embedding model does not answer")
    assert (found.search_index, found.failed_writes) == (False, ())
    slow(IndexProgress(1, 1, 1, "of another memory"))
    assert memories.await_consistency(memory_id).status == "consistent"


@pytest.mark.parametrize("token", ["", "x", "A" * 47, "é", "\ud800", 7, "A" * 10_000, " "])
def test_a_token_that_is_none_is_refused(memories: Memories, token: str) -> None:
    with pytest.raises(BadInput, match="not a consistency token"):
        memories.await_consistency(token=token)


def test_a_token_that_was_changed_in_any_character_is_refused(memories: Memories, memory_id: str) -> None:
    token = memories.add_entry(memory_id, "one", "one").token
    for place in range(len(token)):
        other = "A" if token[place] != "A" else "B"
        with pytest.raises(BadInput):
            memories.await_consistency(token=token[:place] + other + token[place + 1 :])


def test_a_token_of_another_store_memory_or_user_is_refused(memories: Memories, memory_id: str) -> None:
    token = memories.add_entry(memory_id, "one", "one").token
    other = memories.create_memory("Other").memory_id
    elsewhere = memories.backend.positions.write_token("local", Position("00" * 8, memory_id, 1, 0))
    with pytest.raises(BadInput, match="a different store"):
        memories.await_consistency(token=elsewhere)
    with pytest.raises(BadInput, match="a different memory"):
        memories.await_consistency(other, token)
    with pytest.raises(BadInput, match="not a consistency token of this user"):
        memories.as_user("zoe").await_consistency(token=token)
    with pytest.raises(MemoryMissing):
        memories.await_consistency("f" * 32)


@pytest.mark.parametrize("timeout", [-1, 1.5, None, "soon", True, 10**9])
def test_a_time_that_cannot_be_waited_is_refused(memories: Memories, timeout: int) -> None:
    with pytest.raises(BadInput, match="timeout_ms"):
        memories.await_consistency(timeout_ms=timeout)
    with pytest.raises(BadInput, match="level"):
        memories.await_consistency(level="soon")  # type: ignore[arg-type]
