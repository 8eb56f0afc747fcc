"""Memory stores of other systems at known places, imported into memories."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from agents_home import AgentsHome
from importers.stores.conftest import build

from daypack.history.layout import Home
from daypack.importers.all_places.ledger import Ledger
from daypack.importers.all_places.new_files import Done, NewFiles
from daypack.importers.all_places.scan import PlacesScanner
from daypack.memory.tools import Memories, open_memory


@pytest.fixture
def store(agents: AgentsHome, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of mem0, with a vector store and its history."""
    monkeypatch.delenv("MEM0_DIR", raising=False)
    folder = agents.folder / ".mem0"
    build(folder / "history.db", "mem0/history.sql")
    build(folder / "qdrant" / "collection" / "mem0" / "storage.sqlite", "mem0/points.sql")
    return folder


@pytest.fixture
def memories(place: Home) -> Iterator[Memories]:
    with open_memory(home=place.root, uid=place.uid) as opened:
        yield opened


def take_in(place: Home, name: str = "mem0") -> list[Done]:
    done: list[Done] = []
    found = PlacesScanner([name], os.environ).scan()
    NewFiles(place, found, Ledger(place)).take_in(done.append)
    return done


def entries(memories: Memories) -> dict[str, set[str]]:
    return {
        memory.title: {entry.raw_entry for entry in memories.list_entries(memory.memory_id, 50).entries}
        for memory in memories.memories()
    }


def write_history(store: Path, statement: str) -> None:
    with closing(sqlite3.connect(store / "history.db")) as connection, connection:
        connection.execute(statement)


def test_each_user_of_a_store_gets_a_memory(store: Path, place: Home, memories: Memories) -> None:
    (done,) = take_in(place)
    assert done.failure is None
    found = entries(memories)
    assert set(found) == {"mem0: ada", "mem0: bob"}
    assert "Lives in Hamburg" in found["mem0: ada"]
    assert found["mem0: bob"] == {"Will call the bank tomorrow"}
    assert done.entries == sum(map(len, found.values()))


def test_importing_again_adds_nothing_and_a_change_of_the_store_is_noticed(
    store: Path, place: Home, memories: Memories
) -> None:
    take_in(place)
    before = entries(memories)
    assert take_in(place) == []
    write_history(store, "CREATE TABLE other (x)")
    (done,) = take_in(place)
    assert (done.entries, done.failure) == (0, None)
    assert entries(memories) == before


def test_an_erased_memory_does_not_come_back(store: Path, place: Home, memories: Memories) -> None:
    take_in(place)
    (bob,) = [memory for memory in memories.memories() if memory.title == "mem0: bob"]
    memories.delete_memory(bob.memory_id)
    write_history(store, "CREATE TABLE other (x)")
    (done,) = take_in(place)
    assert done.is_left_out
    assert set(entries(memories)) == {"mem0: ada"}


def test_a_store_that_is_damaged_is_a_failure_and_is_not_changed(store: Path, place: Home) -> None:
    (store / "history.db").write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    (done,) = take_in(place)
    assert done.failure
    assert (store / "history.db").read_bytes()[16:20] == b"xxxx"


@pytest.mark.parametrize(
    ("name", "file", "script"),
    [("letta", ".letta/sqlite.db", "letta.sql"), ("claude-mem", ".claude-mem/claude-mem.db", "claude-mem.sql")],
)
def test_databases_of_other_systems_are_imported_once(
    agents: AgentsHome, place: Home, memories: Memories, name: str, file: str, script: str
) -> None:
    path = build(agents.folder / file, script)
    (done,) = take_in(place, name)
    assert done.failure is None
    found = entries(memories)
    assert done.entries == sum(map(len, found.values())) > 0
    os.utime(path)
    (again,) = take_in(place, name)
    assert again.entries == 0
    assert entries(memories) == found


def test_a_note_of_basic_memory_is_imported_alone_and_again_when_it_changes(
    agents: AgentsHome, place: Home, memories: Memories
) -> None:
    for name in ("coffee", "tea"):
        note = agents.folder / "basic-memory" / "drinks" / f"{name}.md"
        note.parent.mkdir(parents=True, exist_ok=True)
        text = f"---\ntitle: {name}\npermalink: {name}\n---\n- [method] The {name} needs water of 90 degrees #brewing\n"
        note.write_text(text)
    assert [done.entries for done in take_in(place, "basic-memory")] == [1, 1]
    with note.open("a") as file:
        file.write("- [place] The leaves are in the left cupboard\n")
    (done,) = take_in(place, "basic-memory")
    assert (done.entries, done.failure) == (1, None)
    ((title, texts),) = entries(memories).items()
    assert title == "basic-memory"
    assert len(texts) == 3
