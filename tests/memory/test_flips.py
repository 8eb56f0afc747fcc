"""Bytes of a store, an index or vectors are flipped: results are right, damage is reported, no door breaks."""

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from warnings import catch_warnings, simplefilter

import pytest
from campaigns import Campaign
from memory.search.feeds import Knowing
from memory_server import start_server

from daypack.cli.main import run
from daypack.errors import DaypackError
from daypack.history.home import find_home
from daypack.memory.backend import Backend
from daypack.memory.search.index_cache import IndexCache
from daypack.memory.store.sqlite import SqliteStore
from daypack.memory.tools import Memories
from daypack.serve.toolset import Toolset
from daypack.upkeep.store_doctor.apply import apply_repair
from daypack.upkeep.store_doctor.report import examine_memories

WORDS = ["dog", "puppy", "car", "lorry", "bread", "loaf", "rain", "storm", "money", "price"]
TAKEN = {  # the arguments of tools
    "search_memories": ("memory_id", "query"),
    "add_entry": ("memory_id", "raw_entry"),
    "put_context": ("memory_id", "content"),
}


def opened(home: str) -> Memories:
    folder = find_home(home).memory
    store = SqliteStore(os.path.join(folder, "store.sqlite"))
    return Memories(Backend(store, IndexCache(os.path.join(folder, "index"), Knowing)))


def texts() -> dict[str, str]:
    """Return the summaries of all entries by their texts."""
    said = (f"The {word} number {number} " + "y" * (number * 7 % 300) for number, word in enumerate(WORDS * 6))
    return {text: f"about {number}" for number, text in enumerate(said)}


@pytest.fixture
def filled(home: str) -> str:
    with opened(home) as memories:
        for title in ("One", "Two"):
            memory = memories.create_memory(title).memory_id
            for number, (text, summary) in enumerate(texts().items()):
                about = {"author": "Ada", "tags": ["t"], "session": f"s{number // 9}"}
                memories.add_entry(memory, text, summary, about=about, client_key=f"k{number}")
            for version in range(3):
                memories.put_context(memory, f"# Document {version}\n\nThe puppy is fine.")
            memories.await_consistency(memory)
        memories.users.new_token("local", scope="read")
    return home


def doors(memories: Memories, memory: str) -> Iterator[Callable[[], list[tuple[str, str]]]]:
    """Yield every way to read or write; each returns pairs of a text and its summary."""

    def listed() -> list[tuple[str, str]]:
        page = memories.list_entries(memory, limit=50)
        assert all(entry.author == "Ada" and entry.tags == ("t",) for entry in page.entries)
        return [(entry.raw_entry, entry.summary) for entry in page.entries]

    def found(query: str, **where: str) -> list[tuple[str, str]]:
        result = memories.search_memories(memory, query, where=where or None)
        assert result.latest_context is None or result.latest_context.startswith("# ")
        return [(hit.raw_entry, hit.summary) for hit in result.entries]

    def document() -> list[tuple[str, str]]:
        content = memories.get_context(memory).content
        assert content.startswith(("# Document", "# New"))
        return []

    def nothing(work: Callable[[], object]) -> Callable[[], list[tuple[str, str]]]:
        def run() -> list[tuple[str, str]]:
            work()
            return []

        return run

    yield listed
    yield lambda: found("puppy in the rain")
    yield lambda: found("bread", author="Ada", session="s1")
    yield document
    yield nothing(lambda: memories.await_consistency(memory, timeout_ms=2_000))
    yield nothing(lambda: list(memories.export_memory(memory)))
    yield nothing(memories.list_memories)
    yield nothing(memories.get_user)
    yield nothing(memories.users.list)
    yield nothing(memories.users.tokens)
    yield nothing(lambda: memories.get_memory(memory))
    yield nothing(lambda: memories.add_entry(memory, "new", "new", about={"author": "Ada", "tags": ["t"]}))
    yield nothing(lambda: memories.put_context(memory, "# New"))
    yield listed


def flip(home: str, chance: random.Random) -> str:
    """Flip bits of a byte, or overwrite a stretch of bytes; return where."""
    files = sorted(path for path in Path(home).rglob("*") if path.is_file() and path.stat().st_size)
    stores = [path for path in files if path.name == "store.sqlite"]
    path = chance.choice(stores if chance.random() < 0.6 else files)
    data = bytearray(path.read_bytes())
    at = chance.randrange(min(len(data), 100)) if chance.random() < 0.1 else chance.randrange(len(data))
    size = chance.choice((1, 1, 1, 16, 600))
    for offset in range(at, min(at + size, len(data))):
        data[offset] ^= chance.randrange(1, 256)
    path.write_bytes(data)
    return f"{path.name} at {at}, {size} bytes"


def test_a_flipped_byte_gives_right_results_reports_or_errors(filled: str, tmp_path: Path, campaign: Campaign) -> None:
    known = set(texts().items()) | {("new", "new")}
    chance = random.Random(campaign.seed)
    refused = repaired = 0
    for number in range(campaign.size("faults", 400)):
        home = str(tmp_path / f"flip-{number}")
        shutil.copytree(filled, home)
        where = flip(home, chance)
        with opened(filled) as intact:
            memory = intact.memories()[chance.randrange(2)].memory_id
        memories = opened(home)
        for door in doors(memories, memory):
            try:
                with catch_warnings():
                    simplefilter("ignore")
                    assert set(door()) <= known, where
            except DaypackError:
                refused += 1
        memories.close()
        assert examine_memories(find_home(home)).report() is not None
        try:
            left = apply_repair(find_home(home))
            repaired += not left.findings
        except DaypackError:
            refused += 1
        else:
            with opened(home) as memories:
                for memory_id in [memory.memory_id for memory in memories.memories()] if not left.findings else []:
                    page = memories.list_entries(memory_id, limit=50)
                    assert {(entry.raw_entry, entry.summary) for entry in page.entries} <= known, where
                    assert page.damaged == (), where
        shutil.rmtree(home)
    assert refused
    assert repaired


def test_a_flipped_byte_breaks_no_command_no_tool_and_no_server(
    filled: str, tmp_path: Path, campaign: Campaign, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands and tools of MCP for every flip, a server over HTTP for some."""
    monkeypatch.setenv("DAYPACK_EMBEDDING_MODEL", "none")
    chance = random.Random(campaign.seed + 1)
    known = set(texts())
    with opened(filled) as intact:
        memory = intact.memories()[0].memory_id
    arguments = {"memory_id": memory, "query": "puppy in the rain", "raw_entry": "new", "content": "# New"}
    commands = (
        ("memory", "list"),
        ("memory", "show", memory),
        ("memory", "search", memory, "puppy", "--json"),
        ("memory", "context", memory),
        ("memory", "export", memory),
        ("user", "list"),
        ("token", "list"),
        ("doctor",),
        ("doctor", "--repair", "--json"),
        ("doctor", "--repair", "--apply"),
    )
    for number in range(campaign.size("faults", 100)):
        home = str(tmp_path / f"door-{number}")
        shutil.copytree(filled, home)
        where = flip(home, chance)
        if number % 8 == 0:
            with start_server(home, quiet=False) as server:
                for tool in ("list_entries", "search_memories", "get_context", "add_entry", "await_consistency"):
                    taken = TAKEN.get(tool, ("memory_id",))
                    answer = server.call(tool, **{name: arguments[name] for name in taken})
                    assert answer.json().get("error", {}).get("code") != "Internal", (where, tool, answer.text)
                    assert {entry["raw_entry"] for entry in answer.json().get("entries", ())} <= {*known, "new"}, where
        with opened(home) as memories:
            tools = Toolset()
            for tool in tools.names:
                taken = TAKEN.get(tool, () if tool == "get_user" else ("memory_id",))
                given = {"title": "Three"} if tool == "create_memory" else {name: arguments[name] for name in taken}
                answer = tools.answer(lambda memories=memories: memories, tool, given)
                assert "internal" not in answer.text, (where, tool, answer.text)
        for command in commands:
            assert run([*command, "--home", home]) in (0, 1, 2, 3), where
        assert "Traceback" not in capsys.readouterr().err
        shutil.rmtree(home)
