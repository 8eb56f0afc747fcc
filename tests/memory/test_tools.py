"""The nine tools as methods: what they take, return, keep and refuse."""

import inspect
import os
import re
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from campaigns import Campaign

from daypack.errors import AccessDenied, BadInput, EntryMissing, KeyConflict, MemoryMissing, TooLong
from daypack.memory.document.document import initial_document
from daypack.memory.tools import Memories, open_memory
from daypack.types.memory import PLACEHOLDER, About

NINE = {
    "create_memory": ["title", "memory_type", "description"],
    "get_memory": ["memory_id"],
    "add_entry": ["memory_id", "raw_entry", "summary", "about", "client_key"],
    "list_entries": ["memory_id", "limit", "before", "after"],
    "get_context": ["memory_id"],
    "put_context": ["memory_id", "content"],
    "await_consistency": ["memory_id", "token", "timeout_ms", "level"],
    "get_user": [],
    "search_memories": ["memory_id", "query", "top_k", "explain", "where"],
}


@pytest.mark.requirement("S2-T0", "S2-E3")
def test_the_tools_have_exactly_their_names_and_arguments() -> None:
    for name, arguments in NINE.items():
        assert list(inspect.signature(getattr(Memories, name)).parameters)[1:] == arguments


# Memories


@pytest.mark.requirement("S2-T1", "S2-T2", "S2-R7.1b", "G14")
def test_a_new_memory_holds_the_placeholder_and_nothing_else(memories: Memories) -> None:
    made = memories.create_memory("Launch", "task", "of the Q3 release")
    assert re.fullmatch("[0-9a-f]{32}", made.memory_id)
    known = memories.get_memory(made.memory_id)
    assert (known.title, known.memory_type, known.description) == ("Launch", "task", "of the Q3 release")
    assert (known.stats.entries, known.stats.documents) == (0, 1)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", known.created_at)
    assert made.token is not None
    assert known.token is None
    assert memories.get_context(made.memory_id).content == PLACEHOLDER
    assert memories.memories() == (known,)


@pytest.mark.requirement("X36")
def test_making_memories_can_be_switched_off(home: str) -> None:
    config = Path(home, "home", str(os.getuid()), "config.toml")
    config.parent.mkdir(parents=True)
    config.write_text("[memory]\ncreate_memory = false\n")
    with open_memory(home=home) as memories, pytest.raises(AccessDenied, match="create_memory is switched off"):
        memories.create_memory("Launch")
    config.write_text("[memory]\nentry_bytes = 10\n")
    with open_memory(home=home) as memories:
        memory = memories.create_memory("Launch")
        memories.add_entry(memory.memory_id, "x" * 10, "x")
        with pytest.raises(TooLong, match="11 bytes, at most 10"):
            memories.add_entry(memory.memory_id, "x" * 11, "x")


def test_memories_live_in_the_home_of_the_user(home: str) -> None:
    with open_memory(home=home, uid="zoe") as memories:
        memories.create_memory("Launch")
    assert Path(home, "home", "zoe", "memory", "store.sqlite").is_file()
    with open_memory(home=home, uid="sam") as memories:
        assert memories.memories() == ()


def test_opening_reads_and_makes_nothing(home: str) -> None:
    with open_memory(home=home) as memories:
        assert repr(memories) == "<daypack memories of local>"
    assert not Path(home).exists()


def test_a_deleted_memory_is_missing_until_it_is_restored(memories: Memories, memory_id: str) -> None:
    memories.add_entry(memory_id, "something to find", "found")
    assert memories.search_memories(memory_id, "something").count == 1
    memories.delete_memory(memory_id)
    for call in (memories.get_memory, memories.get_context, memories.list_entries, memories.delete_memory):
        with pytest.raises(MemoryMissing):
            call(memory_id)
    with pytest.raises(MemoryMissing):
        memories.search_memories(memory_id, "something")
    with pytest.raises(MemoryMissing):
        memories.await_consistency(memory_id)
    assert memories.memories() == ()
    assert [one.memory_id for one in memories.memories(deleted=True)] == [memory_id]
    assert memories.restore_memory(memory_id).stats.entries == 1
    assert memories.search_memories(memory_id, "something").count == 1


def test_no_byte_of_an_erased_memory_is_left_in_its_folder(memories: Memories, memory_id: str, home: str) -> None:
    other = memories.create_memory("Other").memory_id
    memories.add_entry(other, "kept", "kept")
    memories.add_entry(memory_id, "xyzzy in raw", "xyzzy in summary", about={"tags": ["xyzzy"], "author": "xyzzy"})
    memories.put_context(memory_id, "xyzzy in the document")
    assert memories.search_memories(memory_id, "xyzzy").count == 1
    memories.erase_memory(memory_id)
    files = [one for one in Path(home).rglob("*") if one.is_file()]
    assert [one for one in files if b"xyzzy" in one.read_bytes()] == []
    assert memory_id not in "".join(map(str, Path(home).rglob("*")))
    with pytest.raises(MemoryMissing):
        memories.restore_memory(memory_id)
    with pytest.raises(MemoryMissing):
        memories.erase_memory(memory_id)
    assert memories.search_memories(other, "kept").count == 1


def test_no_byte_of_an_erased_entry_is_left_and_search_goes_on(memories: Memories, memory_id: str, home: str) -> None:
    memories.add_entry(memory_id, "the first to find", "first")
    gone = memories.add_entry(memory_id, "xyzzy to find", "second")
    memories.add_entry(memory_id, "the third to find", "third")
    assert memories.search_memories(memory_id, "xyzzy").entries[0].seq == 2
    memories.erase_entry(memory_id, gone.entry_id)
    files = [one for one in Path(home).rglob("*") if one.is_file()]
    assert [one for one in files if b"xyzzy" in one.read_bytes()] == []
    assert {hit.seq for hit in memories.search_memories(memory_id, "to find").entries} == {1, 3}
    with pytest.raises(EntryMissing):
        memories.erase_entry(memory_id, gone.entry_id)


# Entries


@pytest.mark.requirement("S2-T3", "S2-R3.1")
def test_an_entry_is_stored_with_its_one_summary(memories: Memories, memory_id: str) -> None:
    about = About(session="s", role="user", author="Zoë", at="2025-08-17", tags=("plan",), source="messages:1")
    added = memories.add_entry(memory_id, "räw\0 text", "one summary", about=about)
    (entry,) = memories.list_entries(memory_id).entries
    assert (entry.raw_entry, entry.summary) == ("räw\0 text", "one summary")
    assert (entry.entry_id, entry.seq, entry.created_at) == (added.entry_id, 1, added.created_at)
    assert (entry.session, entry.role, entry.author, entry.at) == ("s", "user", "Zoë", "2025-08-17")
    assert (entry.tags, entry.source) == (("plan",), "messages:1")
    assert (added.memory_id, added.summary, added.replayed) == (memory_id, "one summary", False)


def test_a_summary_that_is_left_out_is_made(memories: Memories, memory_id: str) -> None:
    raw = "Hi Sam, our Q3 launch date moved to 17 Aug 2025. Please update the tracker."
    added = memories.add_entry(memory_id, raw, about={"author": "Jo", "role": "user"})
    assert "17 Aug 2025" in added.summary
    assert 0 < len(added.summary) <= 512
    assert len(memories.add_entry(memory_id, "word " * 1_500).summary) <= 512
    assert memories.add_entry(memory_id, " ").summary == " "


@pytest.mark.requirement("S2-R3.1", "X45", "T7")
@pytest.mark.parametrize("letter", ["x", "日"])
def test_a_summary_over_its_cap_is_refused_with_its_length_and_nothing_is_stored(
    memories: Memories, memory_id: str, letter: str
) -> None:
    for length in (511, 512):
        assert memories.add_entry(memory_id, "raw", letter * length).summary == letter * length
    with pytest.raises(TooLong, match="513 characters, at most 512"):
        memories.add_entry(memory_id, "raw", letter * 513)
    assert memories.list_entries(memory_id).count == 2


def test_the_same_client_key_is_one_entry(memories: Memories, memory_id: str) -> None:
    raw = "Sam moved the launch to 17 Aug 2025."
    first = memories.add_entry(memory_id, raw, client_key="k", about={"author": "Jo"})
    memories.put_context(memory_id, "# Memory\n\n## Participants\n- Jo\n- Sam\n")
    again = memories.add_entry(memory_id, raw, client_key="k", about={"author": "Jo"})
    assert again.replayed
    assert (again.entry_id, again.seq, again.created_at, again.summary, again.token) == (
        first.entry_id,
        first.seq,
        first.created_at,
        first.summary,
        first.token,
    )
    assert memories.add_entry(memory_id, raw, first.summary, client_key="k", about={"author": "Jo"}).replayed
    for other in ({"summary": "another"}, {"about": {"author": "Sam"}}, {"raw_entry": raw + "!"}):
        given: dict[str, Any] = {"raw_entry": raw, "about": {"author": "Jo"}, "client_key": "k"} | other
        with pytest.raises(KeyConflict):
            memories.add_entry(memory_id, **given)
    assert memories.list_entries(memory_id).count == 1


@pytest.mark.parametrize("raw", ["", None, 7, b"bytes", "\ud800"])
def test_what_is_no_entry_is_refused(memories: Memories, memory_id: str, raw: Any) -> None:
    with pytest.raises(BadInput):
        memories.add_entry(memory_id, raw, "sum")
    assert memories.get_memory(memory_id).stats.entries == 0


# Pages


@pytest.mark.requirement("S2-T4", "G15")
def test_entries_are_listed_newest_first_with_cursors_in_both_directions(memories: Memories, memory_id: str) -> None:
    added = [memories.add_entry(memory_id, f"entry {number}", "s") for number in range(60)]
    first = memories.list_entries(memory_id)
    assert (first.count, first.applied_limit, len(first.entries)) == (25, 25, 25)
    assert [entry.seq for entry in first.entries] == list(range(60, 35, -1))
    assert (first.next_before, first.next_after) == (added[35].entry_id, None)
    second = memories.list_entries(memory_id, 25, before=first.next_before)
    assert [entry.seq for entry in second.entries] == list(range(35, 10, -1))
    assert (second.next_before, second.next_after) == (added[10].entry_id, added[34].entry_id)
    last = memories.list_entries(memory_id, before=second.next_before)
    assert [entry.seq for entry in last.entries] == list(range(10, 0, -1))
    assert last.next_before is None
    forth = memories.list_entries(memory_id, "10", after=last.next_after)
    assert [entry.seq for entry in forth.entries] == list(range(20, 10, -1))
    assert memories.list_entries(memory_id, 50).count == 50
    over = memories.list_entries(memory_id, 1_000)
    assert (over.count, over.applied_limit) == (50, 50)
    assert memories.list_entries(memory_id, after=added[-1].entry_id).entries == ()


@pytest.mark.requirement("G15")
def test_a_cursor_may_be_a_time(memories: Memories) -> None:
    lines = ['{"daypack":"memory","format":1,"title":"t"}']
    lines += [f'{{"entry":{{"raw_entry":"{day}","created_at":"2025-08-{day}"}}}}' for day in range(10, 20)]
    memory_id = memories.import_memory(lines).memory_id
    before = memories.list_entries(memory_id, 2, before="2025-08-15")
    assert [entry.raw_entry for entry in before.entries] == ["14", "13"]
    after = memories.list_entries(memory_id, 2, after="2025-08-15T00:00:00+00:00")
    assert [entry.raw_entry for entry in after.entries] == ["17", "16"]


@pytest.mark.requirement("G15")
def test_cursors_and_limits_that_cannot_be_used_are_refused(memories: Memories, memory_id: str) -> None:
    entry = memories.add_entry(memory_id, "one", "one").entry_id
    with pytest.raises(BadInput, match="both given"):
        memories.list_entries(memory_id, before=entry, after=entry)
    for limit in (0, -1, "x", 1.5, None):
        with pytest.raises(BadInput, match="limit"):
            memories.list_entries(memory_id, limit)  # type: ignore[arg-type]
    for cursor in ("", "yesterday", "\ud800", 7):
        with pytest.raises(BadInput):
            memories.list_entries(memory_id, before=cursor)  # type: ignore[arg-type]
    with pytest.raises(EntryMissing):
        memories.list_entries(memory_id, after="0" * 32)
    with pytest.raises(MemoryMissing):
        memories.list_entries("0" * 32)


# Documents


@pytest.mark.requirement("S2-T5", "S2-T6")
def test_the_document_that_was_put_last_is_current(memories: Memories, memory_id: str) -> None:
    put = memories.put_context(memory_id, "# Facts\n- ünïcode 🧳\n")
    read = memories.get_context(memory_id)
    assert (read.content, read.version, read.created_at) == ("# Facts\n- ünïcode 🧳\n", 2, put.created_at)
    assert put.token is not None
    assert read.token is None
    memories.put_context(memory_id, "another")
    assert memories.get_context(memory_id).content == "another"
    assert memories.get_memory(memory_id).stats.documents == 3


@pytest.mark.requirement("S2-R2.1", "X4", "X45", "T7")
@pytest.mark.parametrize("letter", ["x", "日"])
def test_a_document_over_its_cap_is_refused_with_its_length_and_the_former_one_stays(
    memories: Memories, memory_id: str, letter: str
) -> None:
    for length in (4999, 5000):
        memories.put_context(memory_id, letter * length)
        assert memories.get_context(memory_id).content == letter * length
    with pytest.raises(TooLong, match="5,001 characters, at most 5,000"):
        memories.put_context(memory_id, letter * 5001)
    assert memories.get_context(memory_id).content == letter * 5000


@pytest.mark.requirement("X2")
def test_an_empty_object_writes_the_initial_document(memories: Memories, memory_id: str) -> None:
    empty: list[object] = [{}, "{}", " { } \n"]
    refused: list[object] = [{"a": 1}, [], None, 7, "", " \n", b"x"]
    for content in empty:
        assert memories.put_context(memory_id, content).content == initial_document()
    for content in refused:
        with pytest.raises(BadInput):
            memories.put_context(memory_id, content)
    assert memories.put_context(memory_id, '{"a": 1}').content == '{"a": 1}'


# Sharing


def test_the_memories_of_users_are_apart(memories: Memories, memory_id: str) -> None:
    other = memories.as_user("zoe")
    assert other.memories() == ()
    with pytest.raises(MemoryMissing) as theirs:
        other.get_memory(memory_id)
    memories.erase_memory(memory_id)
    with pytest.raises(MemoryMissing) as gone:
        other.get_memory(memory_id)
    assert str(theirs.value) == str(gone.value)
    mine = other.create_memory("Mine")
    assert [one.memory_id for one in other.memories()] == [mine.memory_id]
    assert memories.memories() == ()


def test_threads_share_one_object(memories: Memories, memory_id: str) -> None:
    problems: list[object] = []

    def work(writer: int) -> None:
        try:
            for number in range(10):
                added = memories.add_entry(memory_id, f"writer{writer} number{number}", "sum")
                assert memories.await_consistency(token=added.token).status == "consistent"
                assert memories.search_memories(memory_id, f"writer{writer} number{number}").count > 0
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert memories.get_memory(memory_id).stats.entries == 40


def test_two_processes_add_entries_and_all_are_found_after_the_barrier(
    memories: Memories, memory_id: str, home: str, campaign: Campaign
) -> None:
    each = campaign.size("concurrent writes", 500)
    code = (
        "import sys\n"
        "from daypack.memory.tools import open_memory\n"
        "memories = open_memory(home=sys.argv[1])\n"
        "for number in range(int(sys.argv[4])):\n"
        "    memories.add_entry(sys.argv[2], f'{sys.argv[3]}n{number} was said', 'sum')\n"
        "assert memories.await_consistency(timeout_ms=60_000).status == 'consistent'\n"
    )
    command = [sys.executable, "-c", code, home, memory_id]
    children = [subprocess.Popen([*command, f"w{writer}", str(each)]) for writer in range(2)]
    assert [child.wait(timeout=300) for child in children] == [0, 0]
    assert memories.get_memory(memory_id).stats.entries == 2 * each
    assert memories.await_consistency(memory_id).status == "consistent"
    for name in ("w0n0", f"w0n{each - 1}", "w1n0", f"w1n{each // 2}", f"w1n{each - 1}"):
        assert memories.search_memories(memory_id, name).entries[0].raw_entry.startswith(name + " ")


def test_a_closed_object_opens_again(memories: Memories, memory_id: str) -> None:
    memories.close()
    memories.add_entry(memory_id, "one", "one")
    memories.close()
    assert memories.search_memories(memory_id, "one").count == 1


@pytest.mark.requirement("X7")
def test_characters_bind_a_summary_and_tokens_are_only_told(memories: Memories) -> None:
    memory_id = memories.create_memory("Launch").memory_id
    long = "Sam booked table 7, room 12 and hall B3 for 4,200 euros. " * 8
    assert len(long) < 512
    added = memories.add_entry(memory_id, "Booked.", long)
    assert added.summary == long
    assert "tokens; aim for about 80" in added.notes[0]
    assert memories.add_entry(memory_id, "Booked.", "Sam booked a table.").notes == ()
    assert memories.add_entry(memory_id, "说" * 100, "说" * 79).notes == ()


def test_numbers_and_times_about_an_entry_are_kept_as_text(memories: Memories) -> None:
    memory_id = memories.create_memory("Launch").memory_id
    at = datetime(2025, 8, 17, tzinfo=UTC)
    memories.add_entry(memory_id, "Launched.", about={"session": 3, "at": at})
    (entry,) = memories.list_entries(memory_id).entries
    assert (entry.session, entry.at) == ("3", "2025-08-17T00:00:00+00:00")
    assert memories.search_memories(memory_id, "launched", where={"session": 3, "since": at}).count == 1
    with pytest.raises(BadInput, match="role"):
        memories.add_entry(memory_id, "Launched.", about={"role": True})


def test_a_memory_that_does_not_exist_is_missed_by_the_tool_that_was_called(home: str) -> None:
    with open_memory(home=home) as memories:
        memory = memories.create_memory("pets")
        with pytest.raises(MemoryMissing, match=r"^add_entry: pets: there is no such memory"):
            memories.add_entry("pets", "The cat is called Ada.")
        with pytest.raises(MemoryMissing, match=r"^add_entry: memory_id: .* pass memory\.memory_id"):
            memories.add_entry(memory, "The cat is called Ada.")  # type: ignore[arg-type]
        assert memories.list_entries(memory.memory_id).count == 0
