"""Letta: the tables of its server as its own models created them, agent files, and memory files of Letta Code."""

import json
from pathlib import Path

from importers.stores.conftest import build, memories, orphans, read_all


def test_blocks_and_passages_of_a_server_belong_to_their_agent(tmp_path: Path) -> None:
    build(tmp_path / "sqlite.db", "letta.sql")
    records = read_all(tmp_path)
    found = {memory.id: memory for memory in memories(records)}
    assert found["block-1"].statement == "human: Name: Ada. Lives in Berlin."
    assert {found[name].owner.agent for name in ("block-1", "block-2", "passage-0", "passage-1")} == {"helper"}
    assert found["passage-1"].text == "The staging port is 5433 now"
    assert [orphan.id for orphan in orphans(records)] == ["block-3"]


def test_an_agent_file_has_blocks_of_its_agents(tmp_path: Path) -> None:
    path = tmp_path / "helper.af"
    agents = [{"id": "agent-0", "name": "helper", "block_ids": ["block-0", "block-9"]}]
    blocks = [{"id": "block-0", "label": "human", "value": "Ada"}, {"id": "block-1", "label": "spare", "value": "x"}]
    path.write_text(json.dumps({"agents": agents, "blocks": blocks, "groups": [], "tools": []}))
    records = read_all(path)
    assert [(memory.id, memory.owner.agent) for memory in memories(records)] == [
        ("block-0", "helper"),
        ("block-1", ""),
    ]
    assert {orphan.id for orphan in orphans(records)} == {"block-1", "block-9"}


def test_an_agent_file_of_an_older_version_has_its_core_memory(tmp_path: Path) -> None:
    path = tmp_path / "old.af"
    core = [{"label": "human", "value": "Ada", "created_at": "2025-03-01T00:00:00"}]
    path.write_text(json.dumps({"agent_type": "memgpt_agent", "name": "old", "core_memory": core, "messages": []}))
    [memory] = memories(read_all(path))
    assert (memory.id, memory.text, memory.owner.agent) == ("core-human", "Ada", "old")


def test_memory_files_are_blocks_named_by_their_path(tmp_path: Path) -> None:
    folder = tmp_path / "agent-7" / "memory"
    (folder / "system").mkdir(parents=True)
    (folder / "system" / "human.md").write_text("---\ndescription: the user\nlimit: 5000\n---\nAda lives in Berlin.\n")
    (folder / "notes.md").write_text("Plain notes.\n")
    found = memories(read_all(folder))
    assert [(memory.id, memory.text, memory.owner.agent) for memory in found] == [
        ("notes.md", "Plain notes.", "agent-7"),
        ("system/human.md", "Ada lives in Berlin.", "agent-7"),
    ]
