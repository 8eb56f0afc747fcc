"""A look into a memory without opening it: the document and a search by words; nothing is written."""

import os
import sqlite3
from pathlib import Path

import pytest

import daypack
from daypack.history.home import find_home
from daypack.history.layout import Home
from daypack.memory.search.lookup import INDEXED, WORDS, MemoryLookup
from daypack.memory.search.open_lookup import open_lookup
from daypack.memory.store.port import NewEntry
from daypack.types.memory import About

ENTRIES = [
    ("The staging database listens on port 6543 behind pgbouncer.", "monday"),
    ("We renamed the OrderImporter to RowReader because it reads returns as well.", "tuesday"),
    ("Lunch was good.", "tuesday"),
    ("部署脚本在每次发布之前必须先备份数据库。", "wednesday"),
]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return find_home(tmp_path / "home")


@pytest.fixture
def memory_id(home: Home) -> str:
    with daypack.open_memory(home=home.root) as memories:
        memory_id = memories.create_memory("shop").memory_id
        for text, session in ENTRIES:
            memories.add_entry(memory_id, text, about=About(session=session))
        memories.search_memories(memory_id, "anything")  # brings the index up to date
    return memory_id


def look(home: Home, memory_id: str) -> MemoryLookup:
    return open_lookup(home, "local", memory_id)


@pytest.mark.parametrize(
    ("query", "found"),
    [("Which port has the staging database?", 0), ("who renamed OrderImporter", 1), ("发布之前备份数据库", 3)],
)
def test_entries_that_are_about_the_query_are_found(home: Home, memory_id: str, query: str, found: int) -> None:
    hits = look(home, memory_id).search(query, 3, without_session="")
    assert hits[0].entry.raw_entry == ENTRIES[found][0]
    assert hits[0].relevance >= 1


def test_nothing_is_found_for_what_no_entry_is_about(home: Home, memory_id: str) -> None:
    assert look(home, memory_id).search("How do I rotate the TLS certificates of Grafana?", 3, without_session="") == []


def test_entries_of_the_session_that_asks_are_left_out(home: Home, memory_id: str) -> None:
    hits = look(home, memory_id).search("Which port has the staging database?", 3, without_session="monday")
    assert all(hit.entry.session != "monday" for hit in hits)


def test_the_placeholder_of_a_new_memory_is_no_document(home: Home, memory_id: str) -> None:
    assert look(home, memory_id).document() is None
    with daypack.open_memory(home=home.root) as memories:
        memories.put_context(memory_id, "# Memory\n\n## Facts\n- Port 6543.\n")
    assert look(home, memory_id).document() == "# Memory\n\n## Facts\n- Port 6543.\n"


def test_a_memory_that_is_hidden_erased_or_unknown_has_nothing(home: Home, memory_id: str) -> None:
    with daypack.open_memory(home=home.root) as memories:
        memories.delete_memory(memory_id)
    for wanted in (memory_id, "0" * 32):
        memory = look(home, wanted)
        assert memory.document() is None
        assert memory.search("Which port has the staging database?", 3, without_session="") == []


def test_a_home_without_memories_is_not_touched(tmp_path: Path) -> None:
    home = find_home(tmp_path / "empty")
    memory = look(home, "0" * 32)
    assert memory.document() is None
    assert memory.search("anything at all", 3, without_session="") == []
    assert not os.path.exists(home.root)


def test_an_entry_that_was_erased_after_it_was_indexed_is_not_found(home: Home, memory_id: str) -> None:
    with daypack.open_memory(home=home.root) as memories:
        entry = memories.search_memories(memory_id, "port of the staging database").entries[0]
        memories.backend.store.erase_entry("local", memory_id, entry.entry_id)
    assert look(home, memory_id).search("port of the staging database", 3, without_session="") == []


def test_what_was_stored_since_the_last_search_is_found(home: Home, memory_id: str) -> None:
    with daypack.open_memory(home=home.root) as memories:
        memories.add_entry(memory_id, "The nightly export of invoices runs on the machine called heron.")
    hits = look(home, memory_id).search("On which machine does the export of invoices run?", 3, without_session="")
    assert [hit.entry.raw_entry for hit in hits[:1]] == [
        "The nightly export of invoices runs on the machine called heron."
    ]


def test_a_memory_that_was_never_searched_is_found(home: Home) -> None:
    with daypack.open_memory(home=home.root) as memories:
        memory_id = memories.create_memory("new").memory_id
        for text, session in ENTRIES:
            memories.add_entry(memory_id, text, about=About(session=session))
    hits = look(home, memory_id).search("Which port has the staging database?", 3, without_session="")
    assert hits[0].entry.raw_entry == ENTRIES[0][0]
    with daypack.open_memory(home=home.root) as memories:  # a search goes on with the same index
        assert memories.search_memories(memory_id, "who renamed OrderImporter").entries[0].raw_entry == ENTRIES[1][0]


def test_a_lookup_indexes_a_bounded_number_of_entries(home: Home, memory_id: str) -> None:
    with daypack.open_memory(home=home.root) as memories:
        memories.backend.store.add(
            "local", memory_id, [NewEntry(raw=f"Ticket {n} was closed.", summary="closed") for n in range(INDEXED)]
        )
        memories.add_entry(memory_id, "The nightly export of invoices runs on the machine called heron.")
    query = "On which machine does the nightly export of invoices run?"
    assert look(home, memory_id).search(query, 3, without_session="") == []
    assert look(home, memory_id).search(query, 3, without_session="")  # the next one goes on


def test_an_index_that_another_process_writes_to_is_searched_as_it_is(home: Home, memory_id: str) -> None:
    with daypack.open_memory(home=home.root) as memories:
        memories.add_entry(memory_id, "The nightly export of invoices runs on the machine called heron.")
    writer = sqlite3.connect(os.path.join(home.memory_indexes, memory_id, WORDS), isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    try:
        memory = look(home, memory_id)
        assert memory.search("Which port has the staging database?", 3, without_session="")
        assert memory.search("On which machine does the export of invoices run?", 3, without_session="") == []
    finally:
        writer.close()
