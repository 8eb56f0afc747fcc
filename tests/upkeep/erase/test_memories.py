"""Erasing from memories: the store, its free pages and its search indexes no longer hold the text."""

import os
import sqlite3
from collections.abc import Iterator
from hashlib import sha256

import pytest
from upkeep.erase.secrets import SECRET, holding, leaky, place

import daypack
from daypack.memory.store import sqlite as store_module
from daypack.session import Session
from daypack.upkeep.erase.apply import apply
from daypack.upkeep.erase.plan import Request, plan

WORK = Request(literal=SECRET, session="work")


@pytest.fixture
def session(home: str) -> Iterator[Session]:
    with leaky(home) as session:
        yield session


def bound(session: Session, home: str) -> tuple[daypack.Memories, str]:
    memories = daypack.open_memory(home=home)
    memory = memories.create_memory("Port").memory_id
    session.bind_memory(memory)
    session.capture()
    memories.put_context(memory, f"# Port\n\n- The word is {SECRET}\n")
    memories.put_context(memory, "# Port\n\n- The harbour is deep.\n")
    memories.add_entry(memory, f"Tagged {SECRET}", summary=f"On {SECRET}", client_key=f"key {SECRET}")
    memories.search_memories(memory, "password of the port")
    return memories, memory


@pytest.mark.requirement("S4-R2")
def test_the_bound_memory_is_rewritten_with_its_index(session: Session, home: str) -> None:
    memories, memory = bound(session, home)
    before = memories.list_entries(memory, limit=50)
    store = place(home).memory
    assert holding(store)
    applied = apply(place(home), WORK)
    assert holding(home) == []
    [found] = applied.memories
    assert (found.documents, found.fields) == (1, 1)
    after = memories.list_entries(memory, limit=50)
    assert [entry.entry_id for entry in after.entries] == [entry.entry_id for entry in before.entries]
    assert after.entries[0].raw_entry == f"Tagged {applied.marker}"
    assert after.entries[0].summary == f"On {applied.marker}"
    assert memories.get_context(memory).content == "# Port\n\n- The harbour is deep.\n"
    assert memories.search_memories(memory, "password of the port").entries
    usage = sum(len(entry.raw_entry.encode()) for entry in after.entries)
    assert memories.get_memory(memory).stats.bytes >= usage
    memories.close()
    with sqlite3.connect(os.path.join(place(home).memory, "store.sqlite")) as file:
        keys = {str(key) for (key,) in file.execute("SELECT key FROM keys")}
    texts = {message.seq: message.text for message in session.messages() if message.role in ("user", "assistant")}
    assert any(sha256(texts[5].encode()).hexdigest()[:12] in key for key in keys)
    session.capture()
    assert len(memories.list_entries(memory, limit=50).entries) == len(after.entries)
    memories.close()
    session.close()
    assert holding(home) == []


def test_a_named_memory_is_rewritten_alone(session: Session, home: str) -> None:
    memories, memory = bound(session, home)
    other = memories.create_memory("Other").memory_id
    memories.add_entry(other, f"Also {SECRET}")
    planned = plan(place(home), Request(literal=SECRET, memory="Other"))
    assert [found.memory_id for found in planned.memories] == [other]
    assert [found for found in planned.elsewhere if memory in found.path]
    apply(place(home), Request(literal=SECRET, memory="Other"))
    assert SECRET not in memories.list_entries(other).entries[0].raw_entry
    assert SECRET in memories.list_entries(memory).entries[0].raw_entry


def test_an_entry_is_erased_with_its_copies_in_the_documents(session: Session, home: str) -> None:
    memories, memory = bound(session, home)
    said = "The lighthouse keeper is called Ada Lovelace."
    entry = memories.add_entry(memory, said).entry_id
    memories.put_context(memory, f"# Port\n\n- {said}\n- It is deep.\n")
    applied = apply(place(home), Request(entry=entry))
    assert holding(home, said) == []
    assert memories.list_entries(memory).entries[0].raw_entry == applied.marker
    assert memories.get_context(memory).content == f"# Port\n\n- {applied.marker}\n- It is deep.\n"
    assert SECRET in memories.list_entries(memory).entries[1].raw_entry


def test_a_kill_before_the_store_is_compacted_is_completed_at_the_next_opening(session: Session, home: str) -> None:
    memories, memory = bound(session, home)
    memories.close()
    child = os.fork()
    if child == 0:
        store_module.clean = lambda _: os._exit(9)  # type: ignore[assignment]
        apply(place(home), WORK)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    memories = daypack.open_memory(home=home)
    assert memories.list_entries(memory).entries[0].raw_entry.startswith("Tagged [erased:")
    memories.close()
    assert holding(home) == []
    with sqlite3.connect(os.path.join(place(home).memory, "store.sqlite")) as file:
        assert file.execute("SELECT unclean FROM store").fetchone() == (0,)
