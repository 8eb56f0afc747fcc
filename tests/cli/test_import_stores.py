"""`daypack import PATH` of a memory store: what is one, what is a transcript, and what is printed."""

import json
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Command

CHAT = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
AGENT_FILE = {
    "agents": [{"id": "a", "messages": CHAT, "block_ids": ["b"]}],
    "blocks": [{"id": "b", "value": "Ada", "label": "x"}],
}
TEXTS = ["Prefers tea over coffee", "prefers tea over coffee!", "Plays the violin on Sundays"]


@pytest.fixture
def command(bare_command: Command) -> Command:
    return bare_command


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """An export of mem0 with a duplicate."""
    path = tmp_path / "memories.json"
    memories = [{"id": f"m{n}", "memory": text, "user_id": "ada", "role": "user"} for n, text in enumerate(TEXTS)]
    path.write_text(json.dumps({"results": memories}))
    return path


def write(path: Path, value: object) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return str(path)


def test_each_owner_is_a_line_and_what_was_left_out_is_said(command: Command, store: Path) -> None:
    done = command("import", str(store))
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{store} (mem0) → mem0: ada: 2 memories, 2 new entries\n"
    assert f"1 of 3 memories left out; why: daypack audit {store}" in done.stderr
    assert "2 memories, 0 new entries" in command("import", "mem0", str(store)).stdout


def test_stores_and_transcripts_are_imported_together(command: Command, store: Path, tmp_path: Path) -> None:
    chat = write(tmp_path / "talk.json", CHAT)
    answer = json.loads(command("import", str(store), chat, "--json").stdout)
    assert [report["path"] for report in answer["files"]] == [chat]
    assert [report["path"] for report in answer["stores"]] == [str(store)]


@pytest.mark.parametrize(
    "chat",
    [
        [{**CHAT[0], "memory": "a note", "id": "1"}, CHAT[1]],
        {"messages": CHAT, "memory": {"id": "x"}, "agents": [], "name": "x"},
        {"messages": [{"role": "user", "content": '{"core_memory": [], "agents": [], "blocks": []}'}]},
        [{"id": "1", "role": "user", "content": "the memory", "data": "x"}],
    ],
)
def test_a_transcript_that_speaks_of_memory_is_a_transcript(command: Command, tmp_path: Path, chat: Any) -> None:
    done = command("import", write(tmp_path / "talk.json", chat))
    assert done.returncode == 0, done.stderr
    assert "(openai) → talk" in done.stdout


@pytest.mark.parametrize(
    ("name", "content", "system"),
    [
        ("x.json", [{"id": "1", "memory": "Ada sails", "role": "user"}], "mem0"),
        ("x.json", {"results": [{"id": "1", "memory": "Ada sails", "role": "assistant"}]}, "mem0"),
        ("x.json", {"name": "a", "core_memory": [{"label": "human", "value": "Ada"}], "messages": CHAT}, "letta"),
        ("x.af", AGENT_FILE, "letta"),
        ("x.jsonl", {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["Sails"]}, "mcp-memory"),
    ],
)
def test_a_store_that_has_roles_or_messages_is_a_store(
    command: Command, tmp_path: Path, name: str, content: Any, system: str
) -> None:
    done = command("import", write(tmp_path / name, content))
    assert done.returncode == 0, done.stderr
    assert f"({system}) → " in done.stdout
    assert ": 1 memory, 1 new entry\n" in done.stdout


def test_a_folder_with_transcripts_is_one_of_transcripts(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    write(folder / "talk.json", CHAT)
    (folder / "note.md").write_text("---\npermalink: note\n---\n- [fact] The cake is green\n")
    assert "(openai)" in command("import", str(folder)).stdout
    done = command("import", "basic-memory", str(folder))
    assert "(basic-memory) → basic-memory: project: 1 memory, 1 new entry" in done.stdout


def test_a_folder_with_neither_is_refused(command: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = command("import", str(tmp_path / "empty"))
    assert done.returncode == 2
    assert "no transcript and no known memory store in this folder" in done.stderr


def test_options_of_transcripts_are_refused_for_a_store(command: Command, store: Path) -> None:
    for option in (("--session", "x"), ("--trust-system",)):
        done = command("import", str(store), *option)
        assert done.returncode == 2
        assert f"{option[0]} is for transcripts" in done.stderr


def test_a_hidden_memory_is_not_filled_and_how_to_show_it_is_said(command: Command, store: Path) -> None:
    command("import", str(store))
    [memory] = json.loads(command("memory", "list", "--json").stdout)
    assert command("memory", "erase", memory["memory_id"], "--hide", "--yes").returncode == 0
    done = command("import", str(store))
    assert "no memory to import" in done.stdout
    assert f"daypack memory erase {memory['memory_id']} --restore" in done.stderr


def test_what_cannot_be_read_is_named_and_the_rest_is_imported(command: Command, tmp_path: Path) -> None:
    entity = {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["Sails"]}
    (tmp_path / "memory.jsonl").write_text(json.dumps(entity) + "\n{broken\n")
    done = command("import", str(tmp_path / "memory.jsonl"))
    assert "1 memory, 1 new entry" in done.stdout
    assert "memory.jsonl:2: not a JSON object" in done.stdout
