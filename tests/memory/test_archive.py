"""A memory leaves as lines and comes back the same, all of it or nothing, once."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from daypack.errors import BadInput, BadName, DaypackError, KeyConflict, MemoryMissing, QuotaExceeded, TooLong
from daypack.memory.tools import Memories
from daypack.types.memory import PLACEHOLDER, About, Entry, Memory

RAWS = ("plain", "a NUL \0 and a \u2028", "日本語 🧳", "x" * 9000)
HEADER = '{"daypack":"memory","format":1,"title":"By hand"}'


@pytest.fixture
def filled(memories: Memories) -> Memory:
    memory = memories.create_memory("Launch", "task", "what we know")
    for number, raw in enumerate(RAWS):
        about = About(session="s", role="user", author="Zoë", at="2025-08-17", tags=("a", "b"), source=f"m:{number}")
        memories.add_entry(memory.memory_id, raw, "sum" if number % 2 else None, about=about)
    memories.put_context(memory.memory_id, "# ünïcode\n")
    page = memories.list_entries(memory.memory_id)
    memories.erase_entry(memory.memory_id, page.entries[1].entry_id)
    return memories.get_memory(memory.memory_id)


def entries(memories: Memories, memory_id: str) -> tuple[Entry, ...]:
    return memories.list_entries(memory_id, 50).entries


def by_hand(*lines: dict[str, Any] | str) -> list[str]:
    return [HEADER, *(line if isinstance(line, str) else json.dumps(line) for line in lines)]


def test_lines_stand_alone_and_are_in_order(memories: Memories, filled: Memory) -> None:
    lines = [json.loads(line) for line in memories.export_memory(filled.memory_id)]
    assert [next(iter(line)) for line in lines] == ["daypack", "document", "document", "entry", "entry", "entry", "end"]
    assert lines[0]["title"] == "Launch"
    assert [line["entry"]["entry_id"][-1] for line in lines[3:-1]] == ["1", "2", "4"]
    assert lines[-1] == {"end": {"documents": 2, "entries": 3}}


def test_a_memory_comes_back_the_same(memories: Memories, filled: Memory) -> None:
    before, document = entries(memories, filled.memory_id), memories.get_context(filled.memory_id)
    lines = list(memories.export_memory(filled.memory_id))
    memories.erase_memory(filled.memory_id)
    back = memories.import_memory(lines)
    assert memories.get_memory(filled.memory_id) == filled
    assert back.token is not None
    assert entries(memories, filled.memory_id) == before
    assert memories.get_context(filled.memory_id) == document
    assert list(memories.export_memory(filled.memory_id)) == lines
    assert memories.await_consistency(token=back.token).status == "consistent"
    assert memories.search_memories(filled.memory_id, "plain").entries[0].raw_entry == "plain"


def test_importing_twice_stores_it_once(memories: Memories, filled: Memory) -> None:
    lines = list(memories.export_memory(filled.memory_id))
    used = memories.get_user().quotas.used
    assert memories.import_memory(lines).memory_id == filled.memory_id
    assert memories.get_user().quotas.used == used
    memories.add_entry(filled.memory_id, "later", "later")
    more = list(memories.export_memory(filled.memory_id))
    memories.erase_memory(filled.memory_id)
    memories.import_memory(lines)
    assert memories.import_memory(more).stats.entries == 4
    assert list(memories.export_memory(filled.memory_id)) == more


def test_with_a_title_it_becomes_a_memory_of_its_own(memories: Memories, filled: Memory) -> None:
    copy = memories.import_memory(memories.export_memory(filled.memory_id), title="Copy")
    assert copy.memory_id != filled.memory_id
    assert copy.title == "Copy"
    assert [one.raw_entry for one in entries(memories, copy.memory_id)] == [
        one.raw_entry for one in entries(memories, filled.memory_id)
    ]


def test_another_user_gets_a_copy_under_another_id(memories: Memories, filled: Memory) -> None:
    lines = list(memories.export_memory(filled.memory_id))
    other = memories.as_user("zoe")
    copy = other.import_memory(lines)
    assert copy.memory_id != filled.memory_id
    with pytest.raises(MemoryMissing):
        other.export_memory(filled.memory_id)
    with pytest.raises(MemoryMissing):
        memories.get_memory(copy.memory_id)


def test_what_is_added_while_one_exports_is_not_in_it(memories: Memories, filled: Memory) -> None:
    lines = memories.export_memory(filled.memory_id)
    seen = [next(lines)]
    memories.add_entry(filled.memory_id, "later", "later")
    memories.put_context(filled.memory_id, "later")
    seen += lines
    assert json.loads(seen[-1]) == {"end": {"documents": 2, "entries": 3}}
    assert memories.import_memory(seen, title="Copy").stats.entries == 3


def test_a_file_made_by_hand_needs_little(memories: Memories) -> None:
    lines = by_hand(
        {"entry": {"raw_entry": "Sam moved the launch to 17 Aug 2025."}}, "", {"entry": {"raw_entry": "two"}}
    )
    memory = memories.import_memory(lines)
    assert (memory.title, memory.memory_type, memory.stats.entries) == ("By hand", "chat", 2)
    assert memories.get_context(memory.memory_id).content == PLACEHOLDER
    assert [one.seq for one in entries(memories, memory.memory_id)] == [2, 1]
    assert all(one.summary for one in entries(memories, memory.memory_id))
    assert memories.import_memory(lines).memory_id != memory.memory_id


GOOD = {"entry": {"raw_entry": "good", "summary": "good"}}


@pytest.mark.parametrize(
    ("lines", "line", "kind"),
    [
        ([], 0, BadInput),
        (["{"], 1, BadInput),
        (["[]"], 1, BadInput),
        (["\ud800"], 1, BadInput),
        ([b"\xff\xfe"], 1, BadInput),
        (['{"daypack":"session","format":1,"title":"x"}'], 1, BadInput),
        (['{"daypack":"memory","format":2,"title":"x"}'], 1, BadInput),
        (['{"daypack":"memory","format":1,"title":"x","memory_id":"../etc"}'], 1, BadInput),
        (['{"daypack":"memory","format":1,"title":"x","memory_type":"a/b"}'], 1, BadName),
        (['{"daypack":"memory","format":1,"title":"x","created_at":"soon"}'], 1, BadInput),
        ([f'{{"daypack":"memory","format":1,"title":"{"x" * 51}"}}'], 1, TooLong),
        (['{"daypack":"memory","format":1,"title":"x","more":1}'], 1, BadInput),
        (by_hand(GOOD, "{}"), 3, BadInput),
        (by_hand(GOOD, {"entry": {}}), 3, BadInput),
        (by_hand(GOOD, {"entry": {"raw_entry": 1}}), 3, BadInput),
        (by_hand(GOOD, {"entry": {"raw_entry": "x", "summary": "x" * 513}}), 3, TooLong),
        (by_hand(GOOD, {"entry": {"raw_entry": "x" * 9001}}), 3, TooLong),
        (by_hand(GOOD, {"entry": {"raw_entry": "x", "tags": ["\n"]}}), 3, BadInput),
        (by_hand(GOOD, {"entry": {"raw_entry": "x", "entry_id": "x"}}), 3, BadInput),
        (by_hand(GOOD, {"entry": {"raw_entry": "x", "entry_id": "0" * 32}}), 3, BadInput),
        (by_hand(GOOD, {"entry": {"raw_entry": "x", "created_at": "now"}}), 3, BadInput),
        (by_hand(GOOD, {"entry": {"raw_entry": "x", "seq": 1}}), 3, BadInput),
        (by_hand(GOOD, {"document": {"content": "x" * 5001}}), 3, TooLong),
        (by_hand(GOOD, {"document": {"content": " "}}), 3, BadInput),
        (by_hand(GOOD, {"document": {"content": "x"}} | GOOD), 3, BadInput),
        (by_hand(GOOD, {"end": {"documents": 0, "entries": 2}}), 3, BadInput),
        (by_hand({"end": {"documents": 0, "entries": 0}}, GOOD), 3, BadInput),
        (by_hand(GOOD, "[" * 100_000), 3, BadInput),
    ],
)
def test_a_bad_line_is_refused_with_its_number_and_nothing_is_stored(
    memories: Memories, lines: list[Any], line: int, kind: type[DaypackError]
) -> None:
    with pytest.raises(kind) as caught:
        memories.import_memory(lines)
    assert caught.value.place == f"line {line}"
    assert memories.memories() == ()


def test_a_file_that_was_cut_is_refused(memories: Memories, filled: Memory) -> None:
    lines = list(memories.export_memory(filled.memory_id))
    for count in range(len(lines)):
        with pytest.raises(BadInput):
            memories.import_memory(lines[:count], title="Cut")
    with pytest.raises(BadInput, match="lines are missing"):
        memories.import_memory(lines[:4] + lines[5:], title="Cut")
    assert len(memories.memories()) == 1


def test_entries_that_differ_from_those_in_the_memory_are_refused(memories: Memories, filled: Memory) -> None:
    lines = list(memories.export_memory(filled.memory_id))

    def changed(change: Callable[[str], str]) -> list[str]:
        return [change(line.decode()) if b'"entry_id"' in line else line.decode() for line in lines]

    first = json.loads(lines[3])["entry"]["entry_id"]
    with pytest.raises(KeyConflict):
        memories.import_memory(changed(lambda line: line.replace(first[:8], "0" * 8)))
    assert list(memories.export_memory(filled.memory_id)) == lines


def test_an_import_that_passes_a_quota_stores_nothing(memories: Memories) -> None:
    memories.users.put("local", quotas={"entries": 2})
    with pytest.raises(QuotaExceeded):
        memories.import_memory(by_hand(GOOD, GOOD, GOOD))
    assert memories.memories() == ()
    assert memories.get_user().quotas.used.memories == 0
    assert memories.import_memory(by_hand(GOOD, GOOD)).stats.entries == 2


def test_a_time_no_clock_can_show_does_not_make_a_memory_unreadable(memories: Memories) -> None:
    for at in ("9999-12-31T23:59:59-10:00", "0001-01-01T00:00:00+10:00", "0999-01-01"):
        made = memories.import_memory(by_hand({"entry": {"raw_entry": "x", "created_at": at}}))
        assert entries(memories, made.memory_id)[0].created_at[:4] == at[:4]
        assert memories.import_memory(memories.export_memory(made.memory_id), "again").stats.entries == 1


def test_an_archive_from_the_future_does_not_date_what_is_added_later(memories: Memories) -> None:
    lines = by_hand(
        {"document": {"content": "x", "created_at": "2500-01-01"}},
        {"entry": {"raw_entry": "x", "created_at": "2500-01-01"}},
    )
    made = memories.import_memory(lines)
    assert memories.add_entry(made.memory_id, "now", "now").created_at < "2500"
    assert memories.put_context(made.memory_id, "now").created_at < "2500"


def test_what_is_no_line_is_refused(memories: Memories) -> None:
    with pytest.raises(BadInput, match="expected text or bytes, got int"):
        memories.import_memory([HEADER, 1])  # type: ignore[list-item]
