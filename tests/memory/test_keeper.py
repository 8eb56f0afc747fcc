"""The keeper: in which order it calls the tools, and that nothing is lost on the way."""

from typing import cast

import pytest
from memory.recording_tools import NOW, RecordingTools, failure, once

from daypack.errors import BadInput, ServerFailed, StorageFailed, TooLong, WriteFailed
from daypack.memory.document.document import initial_document
from daypack.memory.keeper import END_SESSION, Keeper, Policy
from daypack.memory.tools import Memories
from daypack.text.injected import RECALLED, wrap
from daypack.types.digest import digest_text
from daypack.types.memory import (
    DOCUMENT_MAX_CHARS,
    ENTRY_MAX_BYTES,
    PLACEHOLDER,
    SUMMARY_MAX_CHARS,
    Consistency,
    ContextDocument,
    Entry,
)

FLUSH = ["await_consistency", "put_context"]
START = ["get_context", "list_entries"]


def talk(keeper: Keeper, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        keeper.observe("user" if number % 2 == 0 else "assistant", f"The id of thing {number} is TH-{number}.")


@pytest.mark.requirement("T6", "S2-R7.1", "S2-R7.1c", "S2-R7.2", "S2-S1", "S2-S2", "X3", "S2-X1")
def test_a_new_memory_is_read_then_written_then_its_entries_are_listed() -> None:
    tools = RecordingTools()
    document = Keeper(tools, "m", persona="I am a helpful agent.").start()
    assert tools.calls == ["get_context", "put_context", "list_entries"]
    assert tools.limits == [10]
    assert document == tools.documents[-1] == initial_document("I am a helpful agent.")


@pytest.mark.requirement("T6", "S2-R7.1", "S2-R7.1c", "S2-R7.2", "S2-S1", "S2-S3")
def test_a_document_that_is_there_is_kept_and_what_it_misses_is_merged() -> None:
    entry = Entry(
        entry_id="e",
        memory_id="m",
        seq=1,
        created_at=NOW,
        role="user",
        raw_entry="I'm allergic to nuts.",
        summary="Port 9999.",
    )
    tools = RecordingTools("My own text.\n", (entry,))
    keeper = Keeper(tools, "m", persona="ignored")
    assert keeper.start() == "My own text.\n\n## Facts\n- User is allergic to nuts\n"
    assert keeper.start() == keeper.document
    assert tools.calls == START
    assert tools.documents == ["My own text.\n"]


@pytest.mark.requirement("S2-R7.1a", "X1", "T6")
@pytest.mark.parametrize(
    ("document", "new"),
    [
        (PLACEHOLDER, True),
        ("NEW MEMORY – init context", True),
        (f'{{"text": "{PLACEHOLDER}"}}', True),
        (PLACEHOLDER + ".", False),
        (PLACEHOLDER.lower(), False),
    ],
)
def test_only_the_placeholder_is_overwritten(document: str, new: bool) -> None:
    tools = RecordingTools(document)
    Keeper(tools, "m").start()
    assert ("put_context" in tools.calls) == new


@pytest.mark.requirement("T6", "S2-R5", "S2-R5.2", "S2-R5.4", "S2-R5.5", "X5", "X6", "S2-S4", "S2-S5", "S2-E2", "S2-E3")
def test_the_sixth_entry_brings_the_barrier_and_then_the_document() -> None:
    tools = RecordingTools("text")
    keeper = Keeper(tools, "m")
    talk(keeper, 5)
    assert tools.calls == [*START, *["add_entry"] * 5]
    talk(keeper, 1, 5)
    assert tools.calls == [*START, *["add_entry"] * 6, *FLUSH]
    assert "TH-4" in tools.documents[-1]
    talk(keeper, 6, 6)
    assert tools.calls == [*START, *(["add_entry"] * 6 + FLUSH) * 2]


@pytest.mark.requirement("X5")
def test_the_cadence_can_be_set_and_only_entries_that_were_stored_count() -> None:
    tools = RecordingTools("text")
    tools.fails = lambda raw: StorageFailed("full") if "TH-1 " in f"{raw[:-1]} " else None
    keeper = Keeper(tools, "m", flush_every=3)
    talk(keeper, 3)
    assert "await_consistency" not in tools.calls
    talk(keeper, 1, 3)
    assert tools.calls[-5:] == ["add_entry", "await_consistency", "add_entry", *FLUSH]  # the failed one is tried again
    with pytest.raises(BadInput, match="flush_every is 0"):
        Keeper(tools, "m", flush_every=0)


@pytest.mark.requirement("T6", "S2-R5.6", "S2-S6", "S2-S7")
@pytest.mark.parametrize("text", [END_SESSION, f"  {END_SESSION}\n"])
def test_the_end_of_the_session_repeats_barrier_and_document_once(text: str) -> None:
    assert END_SESSION == "<END_SESSION>"
    tools = RecordingTools("text")
    keeper = Keeper(tools, "m")
    talk(keeper, 1)
    assert keeper.observe("user", text) is None
    assert tools.calls == [*START, "add_entry", *FLUSH]
    keeper.finish()
    keeper.observe("user", text)
    assert tools.calls == [*START, "add_entry", *FLUSH]
    with pytest.raises(BadInput, match="finished"):
        keeper.observe("user", "more")


@pytest.mark.requirement("S2-S7")
def test_what_remains_is_added_before_the_last_barrier() -> None:
    tools = RecordingTools("text")
    tools.fails = once("TH-0")
    with Keeper(tools, "m") as keeper:
        talk(keeper, 2)
        assert [one.raw_entry for one in keeper.remaining] == ["The id of thing 0 is TH-0."]
        assert keeper.failed == ()
    assert tools.calls == [*START, "add_entry", "add_entry", "add_entry", *FLUSH]
    assert [entry.raw_entry[-5:-1] for entry in tools.entries] == ["TH-1", "TH-0"]
    assert "TH-0" in tools.documents[-1]
    assert keeper.remaining == ()


def test_leaving_the_keeper_finishes_it_and_the_first_error_is_the_one_told() -> None:
    tools = RecordingTools("text")
    tools.put_fails = lambda number: ServerFailed("gone")
    keeper = Keeper(tools, "m")
    with pytest.raises(ValueError, match="mine") as caught, keeper:
        raise ValueError("mine")
    assert tools.calls[-2:] == FLUSH
    assert "gone" in caught.value.__notes__[0]


@pytest.mark.requirement("S2-S7")
def test_what_cannot_be_stored_is_told_and_kept() -> None:
    tools = RecordingTools("text")
    tools.fails = lambda raw: StorageFailed("disk full") if "TH-1" in raw else None
    keeper = Keeper(tools, "m", flush_every=2)
    talk(keeper, 3)
    assert [(one.raw_entry, one.attempts) for one in keeper.failed] == [("The id of thing 1 is TH-1.", 2)]
    assert "TH-1" not in keeper.document
    with pytest.raises(WriteFailed, match="entries not stored: 1; the first one: disk full"):
        keeper.finish()
    assert tools.calls[-1] == "put_context"
    assert "TH-1" in keeper.failed[0].raw_entry
    assert any("disk full" in note for note in keeper.notes)


def test_what_is_refused_is_not_tried_again() -> None:
    tools = RecordingTools("text")
    tools.fails = lambda raw: TooLong("9001 bytes")
    keeper = Keeper(tools, "m")
    assert keeper.observe("user", "hello there") is None
    assert keeper.failed[0].refused
    with pytest.raises(WriteFailed, match="9001"):
        keeper.finish()
    assert tools.calls.count("add_entry") == 1


def test_a_write_that_the_barrier_reports_is_made_again_under_its_key_before_the_document() -> None:
    tools = RecordingTools("text")
    keeper = Keeper(tools, "m", flush_every=2)
    keeper.observe("user", "The port is 8080.", client_key="k1")
    tools.keys.clear()
    tools.entries.clear()  # acknowledged, and then lost
    tools.answers = [failure("k1")]
    keeper.observe("user", "The host is a.example.", client_key="k2")
    assert tools.calls == [*START, "add_entry", "add_entry", "await_consistency", "add_entry", *FLUSH]
    assert [entry.raw_entry for entry in tools.entries] == ["The host is a.example.", "The port is 8080."]
    assert set(tools.keys) == {"k1", "k2"}
    assert any("disk full" in note for note in keeper.notes)


def test_a_timeout_of_the_barrier_is_told() -> None:
    tools = RecordingTools("text")
    tools.answers = [
        Consistency(status="timeout", level="visible", token="", search_index=False, problem="3 entries to index")
    ]
    keeper = Keeper(tools, "m", flush_every=1)
    talk(keeper, 1)
    assert keeper.notes == ["await_consistency: timeout: 3 entries to index"]
    assert tools.calls[-1] == "put_context"


def test_a_document_that_cannot_be_written_is_written_with_the_next_entry() -> None:
    tools = RecordingTools("text")
    tools.put_fails = lambda number: ServerFailed("gone") if number == 1 else None
    keeper = Keeper(tools, "m", flush_every=2)
    talk(keeper, 2)
    assert tools.documents == ["text"]
    assert "gone" in keeper.notes[0]
    talk(keeper, 1, 2)
    assert "TH-2" in tools.documents[-1]


@pytest.mark.requirement("S2-E1", "X9", "S2-R5.2", "S2-S4")
@pytest.mark.parametrize(
    ("role", "text", "under_all", "under_decide"),
    [
        ("user", "The port is 8080.", True, True),
        ("assistant", "Noted: 8080.", True, True),
        ("user", "Thanks!", True, False),
        ("assistant", "ok", True, False),
        ("tool", "exit code 0", False, False),
        ("user", "   ", False, False),
    ],
)
def test_a_policy_decides_what_is_stored(role: str, text: str, under_all: bool, under_decide: bool) -> None:
    policies: tuple[tuple[Policy, bool], ...] = (("all", under_all), ("decide", under_decide))
    for policy, stored in policies:
        tools = RecordingTools("text")
        added = Keeper(tools, "m", policy=policy).observe(role, text)
        assert (added is not None) == stored
        assert ("add_entry" in tools.calls) == stored
    tools = RecordingTools("text")
    Keeper(tools, "m", policy=lambda role, text: role == "tool").observe(role, text)
    assert ("add_entry" in tools.calls) == (role == "tool")


@pytest.mark.requirement("S2-R5.1", "S2-R3.2", "S2-R3.1", "X45")
def test_an_entry_goes_in_with_what_is_known_and_a_summary_that_fits() -> None:
    tools = RecordingTools("## Participants\n- Ana (user)\n")
    keeper = Keeper(tools, "m")
    keeper.observe("user", "I moved it.", at="2025-05-08", session="s", source="messages:12", client_key="k")
    keeper.observe("assistant", "The limit of it is 30 seconds. " * 200, author="Bot")
    first, second = tools.entries
    assert (first.raw_entry, first.summary) == ("I moved it.", "Ana moved it.")
    assert (first.role, first.at, first.session, first.source) == ("user", "2025-05-08", "s", "messages:12")
    assert second.author == "Bot"
    assert len(second.summary) <= SUMMARY_MAX_CHARS
    assert set(tools.keys) > {"k"}


@pytest.mark.requirement("S2-R1", "S2-R4", "X10")
def test_the_document_grows_from_what_was_said_and_not_from_summaries() -> None:
    entry = Entry(
        entry_id="e", memory_id="m", seq=1, created_at=NOW, role="user", raw_entry="Hello.", summary="The id is ZZ-9."
    )
    tools = RecordingTools(entries=(entry,))
    keeper = Keeper(tools, "m")
    keeper.start()
    keeper.observe("user", "The port of it is 8080.")
    keeper.finish()
    assert "ZZ-9" not in tools.documents[-1]
    assert "8080" in tools.documents[-1]


@pytest.mark.requirement("X45", "S2-R6.1", "S2-R6.1a")
def test_a_document_is_trimmed_before_it_is_sent() -> None:
    facts = "\n".join(f"- fact {number} {'x' * 60}" for number in range(70))
    tools = RecordingTools(f"## Decisions\n- We decided on tabs\n\n## Facts\n{facts}\n```mermaid\npie\n a: 3\n```\n")
    assert len(tools.documents[0]) > DOCUMENT_MAX_CHARS
    Keeper(tools, "m").finish()
    assert len(tools.documents[-1]) <= DOCUMENT_MAX_CHARS
    assert "- We decided on tabs" in tools.documents[-1]
    assert "mermaid" not in tools.documents[-1]


def test_what_daypack_put_into_the_window_is_not_stored() -> None:
    block, clock = wrap("note", "1f3a9c02", "The port is 9999.", ' name="memory"'), "Current time: 2025-05-08T10:00:00Z"
    tools = RecordingTools("text")
    keeper = Keeper(tools, "m")
    keeper.was_shown = {digest_text("The port is 9999."), digest_text(clock)}.__contains__
    keeper.observe("user", f"What is the port?\n\n{block}\n\n{clock}")
    assert keeper.observe("user", block) is None
    assert [entry.raw_entry for entry in tools.entries] == ["What is the port?"]
    assert "9999" not in keeper.document


def test_words_that_only_look_like_those_of_daypack_are_stored() -> None:
    tools = RecordingTools("text")
    keeper = Keeper(tools, "m")
    texts = [
        f"{RECALLED}messages:3]\nThe port is 9999.",
        wrap("note", "1f3a9c02", "The port is 9999.", ' name="memory"'),
        "When?\n\nCurrent time: 2025-05-08T10:00:00Z",
    ]
    for text in texts:
        keeper.observe("user", text)
    assert [entry.raw_entry for entry in tools.entries] == texts


def test_a_message_longer_than_an_entry_becomes_several() -> None:
    tools = RecordingTools("text")
    text = "Wörter in langer Reihe, immer weiter. " * 800
    Keeper(tools, "m").observe("user", text, client_key="k")
    assert "".join(entry.raw_entry for entry in tools.entries).strip() == text.strip()
    assert all(len(entry.raw_entry.encode()) <= ENTRY_MAX_BYTES for entry in tools.entries)
    assert list(tools.keys) == [f"k#{number}" for number in range(1, len(tools.entries) + 1)]


def test_done_ticks_what_was_asked_for_in_the_message_before() -> None:
    keeper = Keeper(RecordingTools("text"), "m")
    keeper.observe("user", "Please update the tracker.")
    assert "- [ ] Update the tracker" in keeper.document
    keeper.observe("assistant", "Done!")
    assert "- [x] Update the tracker" in keeper.document


def test_another_keeper_in_between_is_noticed_and_its_entries_are_read_again() -> None:
    tools = RecordingTools("text")
    keeper = Keeper(tools, "m", flush_every=2)
    talk(keeper, 1)
    other = Keeper(tools, "m", flush_every=1)
    other.observe("user", "The host is a.example and it is fine.")
    talk(keeper, 1, 2)
    assert "TH-2" in tools.documents[-1]
    assert "a.example" in tools.documents[-1]
    assert any("another keeper" in note for note in keeper.notes)


@pytest.mark.requirement("S2-TS", "S2-P1")
def test_prompts_are_those_of_the_memory_type_and_of_the_tool() -> None:
    tools = RecordingTools("text")
    keeper = Keeper(tools, "m")
    keeper.prompts_folder = ""
    prompt = keeper.prompts("put_context")
    assert prompt.startswith("# The context document of a task")
    assert "### TOOL: put_context" in prompt
    assert "### TOOL: add_entry" not in prompt


@pytest.mark.requirement("T6", "S2-R5.5", "S2-S2", "S2-S5", "S2-S7", "S2-R7.1b")
def test_the_whole_session_with_real_memories(memories: Memories, memory_id: str) -> None:
    assert memories.get_context(memory_id).content == PLACEHOLDER
    with Keeper(memories, memory_id) as keeper:
        keeper.observe("user", "Hi, my name is Ana.")
        talk(keeper, 5)
        assert memories.get_context(memory_id).version == 3
        keeper.observe("user", "We decided to go with Postgres 16.", at="2025-05-08T10:00:00Z")
    document: ContextDocument = memories.get_context(memory_id)
    assert document.version == 4
    assert "- Ana (user)" in document.content
    assert "- Ana and others decided to go with Postgres 16" in document.content
    entries = memories.list_entries(memory_id).entries
    assert len(entries) == 7
    assert entries[0].summary == "Ana and others decided to go with Postgres 16."
    assert keeper.notes == []
    with Keeper(memories, memory_id) as again:
        assert again.document == document.content
    assert memories.search_memories(memory_id, "Postgres").entries[0].entry_id == entries[0].entry_id


def test_what_a_quota_refused_is_tried_again(memories: Memories) -> None:
    memory_id = memories.create_memory("t").memory_id
    memories.users.put("local", quotas={"entries": 0})
    keeper = Keeper(memories, memory_id)
    keeper.observe("user", "The port is 8080.")
    assert [one.refused for one in keeper.remaining] == [False]
    memories.users.put("local", quotas={"entries": None})
    keeper.finish()
    assert memories.get_memory(memory_id).stats.entries == 1


def test_a_message_told_again_with_another_summary_is_the_entry_it_was(memories: Memories) -> None:
    memory_id = memories.create_memory("t").memory_id
    memories.add_entry(memory_id, "He left.", "User stated he left.", about={"role": "user"}, client_key="k")
    keeper = Keeper(memories, memory_id)
    again = keeper.observe("user", "He left.", client_key="k")
    other = keeper.observe("user", "She stayed.", client_key="k")
    assert again is not None
    assert (again.replayed, other) == (True, None)
    assert [one.refused for one in keeper.remaining] == [True]


def test_of_two_keepers_the_slower_one_loses_nothing_of_the_other(memories: Memories) -> None:
    memory_id = memories.create_memory("t").memory_id
    slow, fast = Keeper(memories, memory_id), Keeper(memories, memory_id)
    slow.observe("user", "The budget is $48,000.")
    fast.observe("user", "I'm allergic to nuts.")
    for number in range(60):
        fast.observe("user", f"Nothing new about {number}.")
    fast.finish()
    slow.finish()
    document = memories.get_context(memory_id).content
    assert "allergic to nuts" in document
    assert "$48,000" in document


def test_a_policy_that_is_none_is_refused() -> None:
    with pytest.raises(BadInput, match="everything"):
        Keeper(RecordingTools(), "m", policy=cast(Policy, "everything"))
