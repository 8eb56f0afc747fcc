"""The database of claude-mem, as its own store wrote it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from importers.stores.conftest import build, digest, memories, orphans, read_all


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return build(tmp_path / "claude-mem" / "claude-mem.db", "claude-mem.sql")


def test_observations_summaries_and_prompts_are_memories_of_their_project(database: Path) -> None:
    found = {memory.id: memory for memory in memories(read_all(database.parent))}
    assert set(found) == {"observation-1", "observation-2", "summary-1", "prompt-1"}
    assert {memory.owner.project for memory in found.values()} == {"daypack"}
    observed = found["observation-1"]
    assert observed.text.splitlines()[0] == "Staging port corrected"
    assert "- The staging port is 5433" in observed.text
    assert observed.tags == ("bugfix", "gotcha")
    assert "Next steps: Tell the team tomorrow" in found["summary-1"].text
    assert found["prompt-1"].kind == "prompt"


def test_what_is_only_in_the_write_ahead_log_is_read_and_nothing_is_written(database: Path) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("UPDATE observations SET title = 'Changed in the log' WHERE id = 1")
        before = digest(database)
        assert any(name.endswith("-wal") for name in before)
        texts = [memory.text for memory in memories(read_all(database))]
        assert digest(database) == before
    assert any(text.startswith("Changed in the log") for text in texts)


def test_an_observation_of_a_missing_session_is_an_orphan(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("DELETE FROM sdk_sessions")
    assert {orphan.id for orphan in orphans(read_all(database))} == {
        "observation-1",
        "observation-2",
        "summary-1",
        "prompt-1",
    }
