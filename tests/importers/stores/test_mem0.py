"""Stores of mem0, as mem0 itself wrote them: Qdrant, Chroma, FAISS, history, exports."""

import pickle
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from importers.stores.conftest import RECORDED, build, digest, memories, orphans, read_all, unreadable

ADA = {"Lives in Hamburg", "The staging port is 5432", "The staging port is 5433 now", "Prefers tea over coffee"} | {
    "Prefers tea over coffee."
}
ALL = ADA | {"Will call the bank tomorrow"}


def test_memories_of_local_qdrant_have_their_owner_times_and_metadata(mem0_home: Path) -> None:
    before = digest(mem0_home)
    records = read_all(mem0_home)
    found = {memory.text: memory for memory in memories(records)}
    assert set(found) == ALL
    assert {text for text, memory in found.items() if memory.owner.user == "ada"} == ADA
    moved = found["Lives in Hamburg"]
    assert moved.created_at < moved.updated_at
    assert moved.metadata["topic"] == "x"
    assert len(records) == len(ALL)
    assert digest(mem0_home) == before


@pytest.mark.parametrize("kind", ["chroma", "faiss", "export", "history"])
def test_other_stores_of_mem0_give_the_same_memories(kind: str, tmp_path: Path, mem0_faiss: Path) -> None:
    places = {
        "chroma": lambda: build(tmp_path / "db" / "chroma.sqlite3", "mem0/chroma.sql").parent,
        "faiss": lambda: mem0_faiss,
        "export": lambda: RECORDED / "mem0" / "get_all.json",
        "history": lambda: build(tmp_path / "history.db", "mem0/history.sql"),
    }
    found = memories(read_all(places[kind]()))
    assert {memory.text for memory in found} == (ADA if kind == "export" else ALL)
    assert all(memory.id and memory.created_at for memory in found)
    assert {memory.owner.user for memory in found} <= ({""} if kind == "history" else {"ada", "bob"})


def test_an_older_docstore_of_faiss_is_read_without_unpickling(tmp_path: Path) -> None:
    (tmp_path / "mem0.faiss").write_bytes(b"IxFI")
    docstore = {"a1": {"data": "Lives in Berlin", "user_id": "ada"}}
    (tmp_path / "mem0.pkl").write_bytes(pickle.dumps((docstore, {0: "a1"})))
    [memory] = memories(read_all(tmp_path))
    assert (memory.id, memory.text, memory.owner.user) == ("a1", "Lives in Berlin", "ada")


def test_rows_that_only_history_or_only_the_vectors_have_are_orphans(mem0_home: Path) -> None:
    points = mem0_home / "qdrant" / "collection" / "mem0" / "storage.sqlite"
    with closing(sqlite3.connect(points)) as connection, connection:
        connection.execute("DELETE FROM points WHERE rowid = (SELECT min(rowid) FROM points)")
    with closing(sqlite3.connect(mem0_home / "history.db")) as connection, connection:
        connection.execute("DELETE FROM history WHERE new_memory = 'Prefers tea over coffee'")
        connection.execute("UPDATE history SET is_deleted = 1 WHERE new_memory = 'Will call the bank tomorrow'")
    problems = sorted(orphan.problem for orphan in orphans(read_all(mem0_home)))
    assert problems == [
        "deleted according to the history, but still in the vector store",
        "in the history, but not in the vector store",
        "in the vector store, but not in the history",
    ]


def test_a_pickle_with_code_is_never_run(mem0_home: Path, tmp_path: Path) -> None:
    proof = tmp_path / "proof"

    class Attack:
        def __reduce__(self) -> tuple[object, tuple[str, str]]:
            return open, (str(proof), "w")

    points = mem0_home / "qdrant" / "collection" / "mem0" / "storage.sqlite"
    with closing(sqlite3.connect(points)) as connection, connection:
        for name, value in (("a", Attack()), ("b", {"id": "b", "payload": {"data": "kept", "user_id": Attack()}})):
            connection.execute("INSERT INTO points VALUES (?, ?)", (name, pickle.dumps(value)))
        connection.execute("INSERT INTO points VALUES ('c', ?)", (b"cos\nsystem\n(S'touch x'\ntR.",))
        connection.execute("INSERT INTO points VALUES ('d', ?)", (b"\x80\x04]\x94(h\x00e.",))
        connection.execute("INSERT INTO points VALUES ('e', 'text')")
    records = read_all(mem0_home)
    assert not proof.exists()
    assert {memory.text for memory in memories(records)} == ALL | {"kept"}
    assert len(unreadable(records)) == 4
