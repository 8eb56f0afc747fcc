"""The graph of the MCP reference memory server, as the server wrote it."""

from pathlib import Path

from importers.stores.conftest import RECORDED, memories, orphans, read_all, unreadable


def test_every_observation_is_a_memory_of_its_entity() -> None:
    found = memories(read_all(RECORDED / "mcp-memory.jsonl"))
    assert [(memory.id, memory.text) for memory in found[:2]] == [
        ("Ada#1", "Lives in Berlin"),
        ("Ada#2", "Prefers tea over coffee"),
    ]
    assert found[0].statement == "Ada: Lives in Berlin"
    assert found[0].metadata == {"entity_type": "person"}
    assert ("lives_in", "Berlin") in found[0].links


def test_relations_to_missing_entities_and_empty_entities_are_orphans() -> None:
    found = orphans(read_all(RECORDED / "mcp-memory.jsonl"))
    assert [orphan.id for orphan in found] == ["Berlin", "Ada visited Lisbon"]
    assert "'Lisbon', which is no entity" in found[1].problem


def test_lines_that_cannot_be_read_are_named_and_the_others_read(tmp_path: Path) -> None:
    path = tmp_path / "memory.jsonl"
    nested = b"[" * 100_000
    path.write_bytes((RECORDED / "mcp-memory.jsonl").read_bytes() + b'\n{"type":"ent\n' + nested + b'\n{"type":"x"}\n')
    records = read_all(path)
    assert [record.place for record in unreadable(records)] == [f"{path}:{line}" for line in (6, 7, 8)]
    assert len(memories(records)) == 5
