"""Memory stores of other systems at known places, imported into memories."""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from agents_home import AgentsHome
from importers.stores.conftest import build

from daypack.errors import StorageFailed
from daypack.history.layout import Home
from daypack.importers.all_places.ledger import Ledger
from daypack.importers.all_places.memory_stores import fill_memories
from daypack.importers.all_places.new_files import Done, NewFiles
from daypack.importers.all_places.scan import PlacesScanner
from daypack.importers.audit.keep import choose
from daypack.importers.stores import basic_memory
from daypack.importers.stores.records import StoredMemory
from daypack.importers.stores.systems import open_store
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


def test_the_notes_of_basic_memory_are_imported_together_and_again_when_one_changes(
    agents: AgentsHome, place: Home, memories: Memories
) -> None:
    for name in ("coffee", "tea"):
        note = agents.folder / "basic-memory" / "drinks" / f"{name}.md"
        note.parent.mkdir(parents=True, exist_ok=True)
        text = f"---\ntitle: {name}\npermalink: {name}\n---\n- [method] The {name} needs water of 90 degrees #brewing\n"
        note.write_text(text)
    assert sum(done.entries or 0 for done in take_in(place, "basic-memory")) == 2
    with note.open("a") as file:
        file.write("- [place] The leaves are in the left cupboard\n")
    os.utime(note, (4_000_000_000, 4_000_000_000))  # the time of each of its memories
    (done,) = take_in(place, "basic-memory")
    assert (done.entries, done.failure) == (1, None)
    ((title, texts),) = entries(memories).items()
    assert title == "basic-memory"
    assert texts == {
        "coffee: The coffee needs water of 90 degrees #brewing",
        "tea: The tea needs water of 90 degrees #brewing",
        "tea: The leaves are in the left cupboard",
    }


def write_note(folder: Path, name: str, *observations: str) -> Path:
    path = folder / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"- [fact] {observation}\n" for observation in observations)
    path.write_text(f"---\ntitle: Coffee\npermalink: {name}\n---\n{lines}")
    return path


def test_an_import_keeps_of_all_notes_together_what_an_audit_says(
    agents: AgentsHome, place: Home, memories: Memories
) -> None:
    folder = agents.folder / "basic-memory"
    write_note(folder, "a/one", "The water has 90 degrees", "The beans come from Kenya")
    write_note(folder, "b/c/d/e/two", "The water has 90 degrees", "The cup is blue")
    stored = [each for each in open_store(str(folder)).read() if isinstance(each, StoredMemory)]
    kept = choose(stored).memories
    assert len(kept) == 3
    assert sum(done.entries or 0 for done in take_in(place, "basic-memory")) == len(kept)
    assert take_in(place, "basic-memory") == []
    (texts,) = entries(memories).values()
    assert texts == {memory.statement for memory in kept}


def test_projects_of_basic_memory_are_found_where_its_settings_say(
    agents: AgentsHome, place: Home, memories: Memories, tmp_path: Path
) -> None:
    write_note(agents.folder / "basic-memory", "one", "The water has 90 degrees")
    write_note(tmp_path / "work", "two", "The meeting is in room 4")
    write_note(tmp_path / "older", "three", "The printer is on the left")
    settings = agents.folder / ".basic-memory" / "config.json"
    settings.parent.mkdir()
    projects = {"work": {"path": str(tmp_path / "work")}, "older": str(tmp_path / "older"), "cloud": {"path": "x"}}
    settings.write_text(json.dumps({"projects": projects}))
    take_in(place, "basic-memory")
    assert set(entries(memories)) == {"basic-memory", "basic-memory: work", "basic-memory: older"}


def test_a_note_that_cannot_be_read_is_a_failure_and_the_others_are_imported(
    agents: AgentsHome, place: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = agents.folder / "basic-memory"
    write_note(folder, "one", "The water has 90 degrees")
    bad = write_note(folder, "two", "The beans come from Kenya")
    with monkeypatch.context() as patched:
        patched.setattr(basic_memory, "read_bytes", partial(_refuse, str(bad)))
        done = take_in(place, "basic-memory")
    assert [each.found.file.path for each in done if each.failure] == [str(bad)]
    assert sum(each.entries or 0 for each in done) == 1
    (again,) = take_in(place, "basic-memory")
    assert (again.entries, again.failure) == (1, None)


def _refuse(refused: str, path: str) -> bytes:
    if path == refused:
        raise StorageFailed("Permission denied", operation="read store", place=path)
    return Path(path).read_bytes()


def test_the_memory_server_of_mcp_is_found_by_the_settings_of_its_clients_and_beside_its_package(
    agents: AgentsHome, place: Home, memories: Memories, tmp_path: Path
) -> None:
    def graph(path: Path, fact: str) -> str:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"type": "entity", "name": "Ada", "entityType": "person", "observations": [fact]}))
        return str(path)

    server = {"memory": {"command": "npx", "env": {"MEMORY_FILE_PATH": graph(tmp_path / "claude.jsonl", "Is tall")}}}
    (agents.folder / ".claude.json").write_text(json.dumps({"projects": {"/src/app": {"mcpServers": server}}}))
    codex = agents.folder / ".codex" / "config.toml"
    codex.parent.mkdir(exist_ok=True)
    path = graph(tmp_path / "codex.jsonl", "Likes boats")
    codex.write_text(f'[mcp_servers.memory.env]\nMEMORY_FILE_PATH = "{path}"\n')
    package = agents.folder / ".npm/_npx/5a/node_modules/@modelcontextprotocol/server-memory/dist"
    graph(package / "memory.jsonl", "Has a dog")
    assert [done.entries for done in take_in(place, "mcp-memory")] == [1, 1, 1]
    found = {text for texts in entries(memories).values() for text in texts}
    assert found == {"Ada: Is tall", "Ada: Likes boats", "Ada: Has a dog"}


def test_agents_and_projects_get_a_memory_each(tmp_path: Path, place: Home, memories: Memories) -> None:
    blocks = [{"id": f"block-{n}", "label": "human", "value": f"Agent {n} helps Ada with boats"} for n in (1, 2)]
    agents = [
        {"id": f"agent-{n}", "name": name, "block_ids": [f"block-{n}"]} for n, name in ((1, "skipper"), (2, "cook"))
    ]
    path = tmp_path / "two.af"
    path.write_text(json.dumps({"agents": agents, "blocks": blocks}))
    fill_memories(place, open_store(str(path)))
    assert entries(memories) == {
        "Letta: skipper": {"human: Agent 1 helps Ada with boats"},
        "Letta: cook": {"human: Agent 2 helps Ada with boats"},
    }


def test_stores_that_name_no_owner_are_kept_apart(tmp_path: Path, place: Home, memories: Memories) -> None:
    for name in ("work", "home"):
        graph = {"type": "entity", "name": "Ada", "entityType": "person", "observations": [f"Is at {name} on Mondays"]}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(graph) + "\n")
        fill_memories(place, open_store(str(tmp_path / f"{name}.jsonl")))
    assert entries(memories) == {
        "MCP reference memory: work.jsonl": {"Ada: Is at work on Mondays"},
        "MCP reference memory: home.jsonl": {"Ada: Is at home on Mondays"},
    }


@pytest.mark.parametrize("gap", ["\n\n", "\n", " ", ""])
def test_a_long_text_is_split_and_nothing_of_it_is_lost(
    tmp_path: Path, place: Home, memories: Memories, gap: str
) -> None:
    words = gap.join(f"Paragraph {number} über die Werft.".replace(" ", gap and " ") for number in range(2_000))
    path = tmp_path / "one.af"
    blocks = [{"id": "block-1", "label": "yard", "value": words}]
    path.write_text(json.dumps({"agents": [{"id": "a", "name": "cook", "block_ids": ["block-1"]}], "blocks": blocks}))
    first, again = fill_memories(place, open_store(str(path))), fill_memories(place, open_store(str(path)))
    assert (first.refused, [filled.memories for filled in first.filled]) == ((), [1])
    assert (again.entries, again.refused, again.filled[0].memories) == (0, (), 1)
    page = memories.list_entries(first.filled[0].memory_id, 50).entries
    texts = [entry.raw_entry for entry in reversed(page)]
    assert len(texts) == first.entries > 1
    assert all(text.startswith("yard: ") and len(text.encode()) <= 9_000 for text in texts)
    assert "".join("".join(text.removeprefix("yard: ") for text in texts).split()) == "".join(words.split())
    if gap:
        assert all(text.endswith(".") for text in texts)


def test_tags_and_times_that_cannot_be_stored_keep_no_memory_out(
    tmp_path: Path, place: Home, memories: Memories
) -> None:
    path = tmp_path / "memories.json"
    item = {"id": "1", "memory": "Ada sails", "user_id": "ada", "agent_id": "x\n" * 300, "created_at": "last spring"}
    path.write_text(json.dumps([item | {"categories": ["a" * 100, " ", "b\nc", *map(str, range(50))]}]))
    brought = fill_memories(place, open_store(str(path)))
    assert (brought.refused, brought.entries) == ((), 1)
