"""Fixtures for the tests of memories."""

from collections.abc import Iterator

import pytest

from daypack.memory.tools import Memories, open_memory


@pytest.fixture
def memories(home: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memories]:
    """The memories of the local user, searched by words alone."""
    monkeypatch.setenv("DAYPACK_EMBEDDING_MODEL", "none")
    with open_memory(home=home) as memories:
        yield memories


@pytest.fixture
def memory_id(memories: Memories) -> str:
    """A new memory."""
    return memories.create_memory("Launch").memory_id
