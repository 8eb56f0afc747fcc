"""A damaged record is reported and skipped by every door; it blocks nothing and is never returned."""

import json
import sqlite3
import warnings
from contextlib import closing
from pathlib import Path

import pytest
from memory.damage import change, store_path
from memory_server import run_daypack, start_server

from daypack.errors import Damaged, DamageWarning, MemoryMissing
from daypack.memory.store.port import Profile
from daypack.memory.tools import Memories
from daypack.serve.toolset import Toolset
from daypack.types.memory import Added

FIELDS = {
    "memory": "UPDATE entries SET memory = 2 WHERE memory = 1 AND seq = 2",
    "seq": "UPDATE entries SET seq = 9 WHERE memory = 1 AND seq = 2",
    "text": "UPDATE entries SET text = 3 WHERE memory = 1 AND seq = 2",
    "no text": "UPDATE entries SET text = 77 WHERE memory = 1 AND seq = 2",
    "id": "UPDATE entries SET stem = x'00112233445566778899aabb' WHERE memory = 1 AND seq = 2",
    "created": "UPDATE entries SET created = created + 1 WHERE memory = 1 AND seq = 2",
    "moment": "UPDATE entries SET moment = moment + 1 WHERE memory = 1 AND seq = 2",
    "session": "UPDATE entries SET session = 'other' WHERE memory = 1 AND seq = 2",
    "role": "UPDATE entries SET role = 'system' WHERE memory = 1 AND seq = 2",
    "author": "UPDATE entries SET author = 'Eve' WHERE memory = 1 AND seq = 2",
    "at": "UPDATE entries SET at = '2001-01-01' WHERE memory = 1 AND seq = 2",
    "source": "UPDATE entries SET source = 'messages:9' WHERE memory = 1 AND seq = 2",
    "tags": "UPDATE entries SET tags = 'plan' WHERE memory = 1 AND seq = 2",
    "client key": "UPDATE entries SET client_key = 'other' WHERE memory = 1 AND seq = 2",
    "raw": "UPDATE texts SET raw = x'6f74686572' WHERE number = 2",
    "no utf-8": "UPDATE texts SET raw = x'ff' WHERE number = 2",
    "summary": "UPDATE texts SET summary = 'other' WHERE number = 2",
    "summary that is no text": "UPDATE texts SET summary = CAST(x'ff41' AS TEXT) WHERE number = 2",
    "a type": "UPDATE entries SET author = 7 WHERE memory = 1 AND seq = 2",
}


@pytest.fixture
def filled(memories: Memories, memory_id: str) -> list[Added]:
    """Three entries with every field, and another memory."""
    memories.create_memory("Other")
    return [
        memories.add_entry(
            memory_id,
            f"The harbour of Nantes has {seq} cranes.",
            f"cranes: {seq}",
            about={"session": "s", "role": "user", "author": "Ada", "at": "2026-01-01", "tags": ["a", "b"]},
            client_key=f"k{seq}",
        )
        for seq in (1, 2, 3)
    ]


@pytest.mark.parametrize("field", FIELDS)
def test_a_changed_field_is_reported_and_the_others_are_read(
    memories: Memories, memory_id: str, filled: list[Added], field: str
) -> None:
    change(memories, FIELDS[field])
    page = memories.list_entries(memory_id)
    assert [entry.entry_id for entry in page.entries] == [filled[2].entry_id, filled[0].entry_id]
    elsewhere = memories.list_entries(memories.memories()[1].memory_id)
    assert elsewhere.entries == ()
    assert [record.kind for record in (*page.damaged, *elsewhere.damaged)] == ["entry"]


def test_every_door_skips_a_damaged_entry_and_says_so(
    memories: Memories, memory_id: str, filled: list[Added], home: str
) -> None:
    bad = filled[1].entry_id
    change(memories, FIELDS["author"])
    assert [record.id for record in memories.list_entries(memory_id).damaged] == [bad]
    barrier = memories.await_consistency(memory_id)
    assert (barrier.status, barrier.search_index) == ("consistent", True)
    found = memories.search_memories(memory_id, "cranes in the harbour of Nantes")
    assert {hit.entry_id for hit in found.entries} == {filled[0].entry_id, filled[2].entry_id}
    assert [record.id for record in found.damaged] == [bad]
    assert "daypack doctor --repair" in found.damaged[0].advice
    with pytest.warns(DamageWarning, match=bad):
        lines = list(memories.export_memory(memory_id))
    end = json.loads(lines[-1])["end"]
    assert (end["entries"], end["damaged"][0]["id"]) == (2, bad)
    assert memories.import_memory(lines, title="Copy").stats.entries == 2
    assert memories.add_entry(memory_id, "The fourth.").seq == 4
    tools = Toolset()
    for tool in ("list_entries", "search_memories", "await_consistency"):
        query = {"query": "cranes"} if tool == "search_memories" else {}
        answer = tools.answer(lambda: memories, tool, {"memory_id": memory_id, **query})
        assert not answer.failed
        if tool != "await_consistency":
            assert [record["id"] for record in json.loads(answer.text)["damaged"]] == [bad]
    for command in (("show",), ("search", "cranes"), ("export",)):
        done = run_daypack(home, "memory", command[0], memory_id, *command[1:])
        assert done.returncode == 0, done.stderr
        assert bad in done.stderr
        assert "Eve" not in done.stdout


def test_a_server_reports_damage_over_http(memories: Memories, memory_id: str, filled: list[Added], home: str) -> None:
    change(memories, FIELDS["raw"])
    with start_server(home) as server:
        page = server.call("list_entries", memory_id=memory_id).json()
        found = server.call("search_memories", memory_id=memory_id, query="cranes").json()
    assert [record["id"] for record in page["damaged"]] == [filled[1].entry_id]
    assert [record["id"] for record in found["damaged"]] == [filled[1].entry_id]
    assert len(page["entries"]) == len(found["entries"]) == 2


def test_the_next_process_still_knows_what_its_index_lacks(
    memories: Memories, memory_id: str, filled: list[Added], home: str
) -> None:
    change(memories, FIELDS["raw"])
    memories.search_memories(memory_id, "cranes")
    done = run_daypack(home, "memory", "search", memory_id, "cranes", "--json")
    assert [record["id"] for record in json.loads(done.stdout)["damaged"]] == [filled[1].entry_id]


def test_an_entry_that_is_restored_can_be_found_again(memories: Memories, memory_id: str, filled: list[Added]) -> None:
    memories.close()
    path = Path(store_path(memories))
    whole = path.read_bytes()
    change(memories, FIELDS["raw"])
    assert len(memories.search_memories(memory_id, "cranes").entries) == 2
    memories.close()
    path.write_bytes(whole)
    found = memories.search_memories(memory_id, "cranes")
    assert (len(found.entries), found.damaged) == (3, ())


def test_pages_go_on_past_damaged_entries(memories: Memories, memory_id: str) -> None:
    ids = [memories.add_entry(memory_id, f"number {seq}").entry_id for seq in range(1, 31)]
    change(memories, "UPDATE entries SET author = 'Eve' WHERE seq BETWEEN 5 AND 24")
    seen: list[str] = []
    page = memories.list_entries(memory_id, limit=4)
    while True:
        seen += [entry.entry_id for entry in page.entries]
        if page.next_before is None:
            break
        page = memories.list_entries(memory_id, limit=4, before=page.next_before)
    assert seen == [*reversed(ids[24:]), *reversed(ids[:4])]
    page = memories.list_entries(memory_id, limit=5, after=ids[0])
    assert [entry.entry_id for entry in page.entries] == [ids[25], ids[24], ids[3], ids[2], ids[1]]
    assert len(page.damaged) == 20


def test_the_newest_intact_document_is_returned(memories: Memories, memory_id: str) -> None:
    memories.put_context(memory_id, "# Harbour\n\n- Two cranes.\n")
    newest = memories.put_context(memory_id, "# Harbour\n\n- Three cranes.\n")
    change(memories, "UPDATE documents SET content = '# Eve' WHERE version = 3")
    document = memories.get_context(memory_id)
    assert (document.version, [record.id for record in document.damaged]) == (2, [newest.document_id])
    assert "Two cranes" in document.content
    found = memories.search_memories(memory_id, "cranes")
    assert found.latest_context == document.content
    assert [record.id for record in found.damaged] == [newest.document_id]
    assert memories.put_context(memory_id, "# New").version == 4


def test_entries_can_be_added_and_searched_when_no_document_is_intact(memories: Memories, memory_id: str) -> None:
    change(memories, "UPDATE documents SET content = 'Eve'")
    memories.add_entry(memory_id, "The crane is blue.")
    assert memories.search_memories(memory_id, "crane").latest_context is None
    with pytest.raises(Damaged, match="document 1 is damaged"):
        memories.get_context(memory_id)


@pytest.mark.parametrize("field", ["title = 'Eve'", "type = 'x'", "description = 'x'", "created = 1", "owner = 2"])
def test_a_damaged_memory_is_listed_as_such_and_not_read(memories: Memories, memory_id: str, field: str) -> None:
    other = memories.create_memory("Other").memory_id
    memories.users.get("eve")
    change(memories, f"UPDATE memories SET {field} WHERE number = 1")
    page = memories.list_memories()
    assert [memory.memory_id for memory in page.memories] == [other]
    holder, other_user = memories, memories.as_user("eve")
    if field.startswith("owner"):
        holder, other_user = other_user, holder
    assert [record.id for record in holder.list_memories().damaged] == [memory_id]
    assert other_user.list_memories().damaged == ()
    with pytest.raises(Damaged, match="memory is damaged"):
        holder.list_entries(memory_id)
    with pytest.raises(MemoryMissing):
        other_user.list_entries(memory_id)


def test_a_token_with_a_changed_scope_is_refused(memories: Memories) -> None:
    memories.users.get("ada")
    secret = memories.users.new_token("ada", scope="read").secret
    change(memories, "UPDATE tokens SET scope = 'write'")
    with pytest.raises(Damaged, match="token is damaged"):
        memories.users.check_token(secret)
    assert memories.users.tokens() == ()
    assert [record.kind for record in memories.backend.store.accounts.damaged()] == ["token"]


def test_changed_quotas_admit_no_write(memories: Memories, memory_id: str) -> None:
    memories.backend.store.accounts.put("local", Profile(quotas={"entries": 1}))
    memories.add_entry(memory_id, "one")
    change(memories, "UPDATE users SET max_entries = 99")
    with pytest.raises(Damaged, match="user is damaged"):
        memories.add_entry(memory_id, "two")
    assert len(memories.list_entries(memory_id).entries) == 1


def test_an_intact_memory_warns_of_nothing(memories: Memories, memory_id: str, filled: list[Added]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert b"damaged" not in b"".join(memories.export_memory(memory_id))
    assert filled[0].seq == 1
    assert memories.await_consistency(memory_id).damaged == ()


@pytest.mark.parametrize("table", ["entries", "tags"])
def test_a_filtered_search_goes_past_a_destroyed_page(memories: Memories, memory_id: str, table: str) -> None:
    for seq in range(1, 151):
        tags, text = ["even" if seq % 2 == 0 else "odd", "x" * 20], f"The harbour of Nantes has {seq} cranes."
        memories.add_entry(memory_id, text, about={"author": "Ada", "tags": tags, "session": "s" * 60})
    before = memories.search_memories(memory_id, "cranes of Nantes", top_k=50, where={"tags": ["even"]})
    assert before.count == 50
    memories.close()
    destroy_page(store_path(memories), table)
    found = memories.search_memories(
        memory_id, "cranes of Nantes", top_k=50, where={"tags": ["even"], "author": "Ada", "since": "2020-01-01"}
    )
    assert found.count > 20
    assert all(hit.tags[0] == "even" for hit in found.entries)
    assert bool(found.damaged) is (table == "entries")


def destroy_page(path: str, table: str) -> None:
    """Overwrite a page in the middle of a table."""
    with closing(sqlite3.connect(path)) as file:
        query = "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' LIMIT 1 OFFSET 1"
        (page,) = file.execute(query, (table,)).fetchone()
    data = bytearray(Path(path).read_bytes())
    data[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    Path(path).write_bytes(data)
