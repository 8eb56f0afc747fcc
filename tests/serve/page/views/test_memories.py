"""Memories on the page: only those of the user that looks, hidden ones too; search with the floor; erasure."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from serve.page.views.looking import OTHER, OWNER, READER, do, look
from turn.scenes import MARKER, SECRET

from daypack.errors import AccessDenied, BadInput, DaypackError, EntryMissing, MemoryMissing, NotFound
from daypack.memory.tools import Memories
from daypack.serve.observe.request_facts import RequestFacts, current
from daypack.serve.page.views.asked import Viewer
from daypack.serve.page.views.opened import OpenedHome

ABSENT = "0" * 32
ADA = Viewer(user="ada", owner=False, writes=True)


@pytest.fixture
def own(page: OpenedHome) -> Memories:
    assert page.memories is not None
    return page.memories


@pytest.fixture
def memory(own: Memories) -> str:
    """A memory with a few entries and two versions of its document."""
    name = own.create_memory("Launch", "project", "about the launch").memory_id
    for text in ("The launch is on the third of March.", "Tessa paints the boat red.", "The cellar is dry."):
        own.add_entry(name, text, about={"author": "Jo", "role": "user", "session": "work", "tags": ("boat",)})
    own.put_context(name, "# Launch\n- in March\n- with Tessa\n")
    own.put_context(name, "# Launch\n- in April\n- with Tessa\n")
    return name


def audit_lines(page: OpenedHome) -> list[dict[str, Any]]:
    files = sorted(Path(page.home.audit).glob("*.jsonl"))
    return [msgspec.json.decode(line) for file in files for line in file.read_bytes().splitlines()]


def test_memories_are_described(page: OpenedHome, own: Memories, memory: str) -> None:
    (row,) = look(page, "memories")["memories"]
    stats = own.get_memory(memory).stats
    assert (row["id"], row["title"], row["type"]) == (memory, "Launch", "project")
    assert (row["entries"], row["documents"], row["bytes"]) == (3, 3, stats.bytes)
    assert row["hidden_at"] is None
    shown = look(page, "memory", id=memory)
    assert shown["document"]["content"] == "# Launch\n- in April\n- with Tessa\n"
    assert [known["version"] for known in shown["versions"]] == [3, 2, 1]
    assert shown["versions"][0]["chars"] == len(shown["document"]["content"])


def test_entries_are_paged_newest_first(page: OpenedHome, own: Memories, memory: str) -> None:
    for number in range(60):
        own.add_entry(memory, f"Entry {number}.")
    first = look(page, "entries", id=memory)
    second = look(page, "entries", id=memory, before=first["next"])
    assert [row["seq"] for row in (*first["entries"], *second["entries"])] == list(range(63, 0, -1))
    assert second["next"] is None
    oldest = second["entries"][-1]
    assert (oldest["raw"], oldest["author"], oldest["role"]) == ("The launch is on the third of March.", "Jo", "user")
    assert (oldest["session"], oldest["tags"]) == ("work", ["boat"])


def test_versions_of_a_document_are_compared(page: OpenedHome, memory: str) -> None:
    newest = look(page, "document", id=memory)
    assert (newest["version"], newest["against"]) == (3, 2)
    assert [line for line in newest["lines"] if line[0] in "+-" and line[:3] not in ("+++", "---")] == [
        "-- in March",
        "+- in April",
    ]
    same = look(page, "document", id=memory, version=2, against=2)
    assert (same["version"], same["lines"]) == (2, [])
    first = look(page, "document", id=memory, version=1)
    assert first["against"] is None
    assert all(line.startswith("+") for line in first["lines"][3:])
    for wrong in ({"version": 9}, {"version": 1, "against": 9}):
        with pytest.raises(NotFound):
            look(page, "document", id=memory, **wrong)


def test_a_search_shows_parts_of_scores_and_the_floor(page: OpenedHome, memory: str) -> None:
    found = look(page, "memory-search", id=memory, q="Who paints the boat?")
    hit = found["hits"][0]
    assert hit["raw"] == "Tessa paints the boat red."
    assert hit["relevance"] >= found["floor"]
    assert abs(sum(hit["parts"].values()) - hit["score"]) < 1e-6
    assert (found["floor"], found["kept"]) == (1.0, 0.5)
    none = look(page, "memory-search", id=memory, q="Who repaired the boat engine in Lisbon with Marta and Ivo?")
    assert none["hits"] == []
    assert "nothing relevant" in none["notes"][0]
    assert none["below"]
    assert all(0 <= row["relevance"] < found["floor"] and row["raw"] for row in none["below"])
    shown = {row["id"] for row in found["hits"]}
    assert not shown & {row["id"] for row in found["below"]}


def test_secrets_are_redacted(page: OpenedHome, own: Memories) -> None:
    name = own.create_memory("Keys").memory_id
    own.add_entry(name, f"The harbour token is {SECRET}.", summary=f"token {SECRET}")
    own.put_context(name, f"- {SECRET}\n")
    views = ("memories", "memory", "entries", "document", "memory-search")
    whole = [msgspec.json.encode(look(page, view, id=name, q="harbour token")).decode() for view in views]
    assert not [view for view, text in zip(views, whole, strict=True) if SECRET in text]
    assert [view for view, text in zip(views, whole, strict=True) if MARKER in text] == [*views[1:]]


def test_a_hidden_memory_is_listed_and_restorable(page: OpenedHome, own: Memories, memory: str) -> None:
    do(page, "hide-memory", id=memory)
    assert own.memories() == ()
    (row,) = look(page, "memories")["memories"]
    assert row["hidden_at"] is not None
    hidden = look(page, "memory", id=memory)
    assert (hidden["title"], hidden["document"], hidden["versions"]) == ("Launch", None, [])
    with pytest.raises(MemoryMissing):
        look(page, "entries", id=memory)
    assert "Launch" in do(page, "restore-memory", id=memory)["done"]
    assert look(page, "memory", id=memory)["document"] is not None
    assert [line["action"] for line in audit_lines(page) if line["action"] in ("hide", "unhide")] == [
        *("hide", "hide", "unhide", "unhide")
    ]


def test_an_erased_entry_is_gone_from_store_and_search(page: OpenedHome, own: Memories, memory: str) -> None:
    (hit, *_) = look(page, "memory-search", id=memory, q="Who paints the boat?")["hits"]
    for wrong in ("", "Erase", "yes"):
        with pytest.raises(BadInput, match="type erase"):
            do(page, "erase-entry", id=memory, entry=hit["id"], confirm=wrong)
    do(page, "erase-entry", id=memory, entry=hit["id"], confirm="erase")
    assert "paints" not in msgspec.json.encode(look(page, "entries", id=memory)).decode()
    found = look(page, "memory-search", id=memory, q="Who paints the boat?")
    assert "paints" not in msgspec.json.encode((found["hits"], found["below"])).decode()
    assert b"paints the boat" not in Path(page.home.store).read_bytes()
    with pytest.raises(EntryMissing):
        do(page, "erase-entry", id=memory, entry=hit["id"], confirm="erase")
    assert own.get_memory(memory).stats.entries == 2


@pytest.mark.parametrize("hidden", [False, True])
def test_a_memory_is_erased_only_by_its_title(page: OpenedHome, own: Memories, memory: str, hidden: bool) -> None:
    if hidden:
        do(page, "hide-memory", id=memory)
    for wrong in ("", "launch", "erase"):
        with pytest.raises(BadInput, match="type the title of the memory to confirm: Launch"):
            do(page, "erase-memory", id=memory, confirm=wrong)
    do(page, "erase-memory", id=memory, confirm="Launch")
    assert look(page, "memories") == {"memories": []}
    with pytest.raises(MemoryMissing):
        do(page, "restore-memory", id=memory)


READING = ("memory", "entries", "document", "memory-search")
ACTING = ("hide-memory", "restore-memory", "erase-memory", "erase-entry")


def refusal(ask: Callable[[str], object], memory: str) -> tuple[type, str]:
    with pytest.raises(DaypackError) as refused:
        ask(memory)
    return type(refused.value), str(refused.value).replace(memory, "ID")


@pytest.mark.parametrize("name", [*READING, *ACTING])
def test_another_users_memory_is_refused_like_a_missing_one(
    page: OpenedHome, own: Memories, memory: str, name: str
) -> None:
    (entry, *_) = own.list_entries(memory).entries
    before = own.get_memory(memory), own.list_entries(memory)
    own.as_user("eve").create_memory("Launch")
    given = {"q": "boat", "version": 1, "entry": entry.entry_id}

    def ask(memory_id: str, confirm: str = "erase" if name == "erase-entry" else "Launch") -> object:
        if name in READING:
            return look(page, name, OTHER, id=memory_id, **given)
        return do(page, name, OTHER, id=memory_id, confirm=confirm, **given)

    assert refusal(ask, memory) == refusal(ask, ABSENT)
    assert refusal(ask, memory)[0] is MemoryMissing
    assert (own.get_memory(memory), own.list_entries(memory)) == before
    assert [row["title"] for row in look(page, "memories", OTHER)["memories"]] == ["Launch"]
    assert look(page, "memories", ADA) == {"memories": []}
    own.delete_memory(memory)
    assert refusal(ask, memory) == refusal(ask, ABSENT)


@pytest.mark.parametrize("name", ACTING)
def test_a_viewer_without_write_access_changes_nothing(page: OpenedHome, own: Memories, memory: str, name: str) -> None:
    (entry, *_) = own.list_entries(memory).entries
    confirm = "erase" if name == "erase-entry" else "Launch"
    with pytest.raises(AccessDenied):
        do(page, name, READER, id=memory, entry=entry.entry_id, confirm=confirm)
    assert own.get_memory(memory).stats.entries == 3
    assert look(page, "memory", READER, id=memory)["title"] == "Launch"


def test_reading_and_erasing_are_recorded_for_the_request(page: OpenedHome, memory: str) -> None:
    facts = RequestFacts("http", "page", "req-7")
    facts.token_id = "tok"
    reset = current.set(facts)
    try:
        look(page, "entries", id=memory)
        do(page, "hide-memory", id=memory)
    finally:
        current.reset(reset)
    lines = [line for line in audit_lines(page) if line.get("request") == "req-7"]
    assert [(line["action"], line["door"], line["memory"]) for line in lines] == [
        ("read", "http", memory),
        ("hide", "http", memory),
        ("hide", "http", memory),
    ]


def test_a_page_without_memories_has_none(home: str) -> None:
    page = OpenedHome(home, None, None)
    assert look(page, "memories", OWNER) == {"memories": []}
    with pytest.raises(MemoryMissing):
        look(page, "memory", OWNER, id=ABSENT)
