"""Answers that an index keeps are those of the file that is there."""

import os
from typing import Any

import pytest

from daypack.memory.store.port import StoreFeed
from daypack.memory.tools import Memories, open_memory


def found(memories: Memories, memory: str) -> list[tuple[str, float]]:
    return [(hit.entry_id, hit.score) for hit in memories.search_memories(memory, "blue crane").entries]


def test_a_new_index_with_the_number_of_an_erased_file_is_another_one(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system gives the number of a deleted file to the next one as soon as nothing has it open."""
    monkeypatch.setenv("DAYPACK_EMBEDDING_MODEL", "none")
    stat = os.stat

    def numbered(path: Any, *args: Any, **options: Any) -> Any:
        status = stat(path, *args, **options)
        return os.stat_result((status[0], 7, *status[2:])) if str(path).endswith("words.sqlite") else status

    monkeypatch.setattr(os, "stat", numbered)
    with open_memory(home=home) as memories, open_memory(home=home) as others:
        memory = memories.create_memory("Launch").memory_id
        texts = [
            "a blue crane",
            "a crane",
            "a blue ship",
            "the crane is blue on the reef",
            "blue",
            "a crane and a ship",
        ]
        added = [memories.add_entry(memory, text) for text in texts]
        before = found(memories, memory)
        with memories.backend.indexes.use(StoreFeed(memories.backend.store, "local", memory)) as index:
            index.close()  # as a fork does
        others.backend.store.erase_entry("local", memory, added[3].entry_id)
        others.backend.indexes.erase(memory)
        fresh = found(others, memory)
        assert fresh != [hit for hit in before if hit[0] != added[3].entry_id]
        assert found(memories, memory) == fresh
