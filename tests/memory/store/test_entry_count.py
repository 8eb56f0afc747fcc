"""The number of entries of a memory, read beside the store."""

from pathlib import Path

import pytest

from daypack.history.home import find_home
from daypack.memory.store.entry_count import find_counted
from daypack.memory.tools import Memories, open_memory


def test_entries_are_counted_while_the_store_is_in_use(memories: Memories, memory_id: str, home: str) -> None:
    store = find_home(home).store
    assert find_counted(store, "local", memory_id) == (memory_id, 0)
    for text in ("one", "two", "three"):
        memories.add_entry(memory_id, text)
    assert find_counted(store, "local", memory_id) == (memory_id, 3)


def test_a_memory_of_another_user_a_hidden_and_a_missing_one_are_unknown(
    memories: Memories, memory_id: str, home: str
) -> None:
    store = find_home(home).store
    assert find_counted(store, "eve", memory_id) is None
    assert find_counted(store, "local", "0" * 32) is None
    memories.delete_memory(memory_id)
    assert find_counted(store, "local", memory_id) is None


@pytest.mark.parametrize("name", ["a b", "100%", "a?b=c", "a#b", "%41"])
def test_any_path_is_read(tmp_path: Path, name: str) -> None:
    with open_memory(home=tmp_path / name) as memories:
        memory_id = memories.create_memory("x").memory_id
        memories.add_entry(memory_id, "one")
        assert find_counted(find_home(tmp_path / name).store, "local", memory_id) == (memory_id, 1)


def test_a_missing_or_broken_store_is_unknown_and_stays_as_it_is(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    assert find_counted(str(store), "local", "0" * 32) is None
    assert not store.exists()
    store.write_bytes(b"not a database" * 100)
    assert find_counted(str(store), "local", "0" * 32) is None
    store.write_bytes(b"")
    assert find_counted(str(store), "local", "0" * 32) is None
    assert store.read_bytes() == b""


def test_a_memory_is_found_by_its_title_or_the_start_of_its_id_unless_several_fit(
    memories: Memories, memory_id: str, home: str
) -> None:
    store = find_home(home).store
    other = memories.create_memory("mem0: ada").memory_id
    assert find_counted(store, "local", "mem0: ada") == (other, 0)
    assert find_counted(store, "local", other[:12]) == (other, 0)
    assert find_counted(store, "local", "mem0: *") is None
    memories.create_memory("mem0: ada")
    assert find_counted(store, "local", "mem0: ada") is None
