"""A default memory: who may leave memory_id out, and what they are told who may not."""

from pathlib import Path

import pytest
from memory_server import start_server

import daypack
from daypack.errors import BadConfig, BadInput, MemoryMissing
from daypack.memory.port import MemoryTools


@pytest.fixture(autouse=True)
def _words_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYPACK_EMBEDDING_MODEL", "none")
    monkeypatch.delenv("DAYPACK_MEMORY", raising=False)


@pytest.fixture
def launch(home: str) -> str:
    with daypack.open_memory(home=home) as memories:
        memories.create_memory("other")
        return memories.create_memory("launch").memory_id


def use_all(memories: MemoryTools, memory_id: str) -> None:
    assert memories.get_memory().memory_id == memory_id
    added = memories.add_entry(raw_entry="The launch is on 17 Aug 2025.")
    assert added.memory_id == memory_id
    assert memories.list_entries(limit=1).entries[0].entry_id == added.entry_id
    assert memories.put_context(content="# Launch").memory_id == memory_id
    assert memories.get_context().content == "# Launch"
    assert memories.await_consistency().status == "consistent"
    assert memories.search_memories(query="when is the launch").entries[0].entry_id == added.entry_id


@pytest.mark.parametrize("form", ["id", "start", "title"])
def test_all_tools_use_the_default_memory(home: str, launch: str, form: str) -> None:
    name = {"id": launch, "start": launch[:8], "title": "launch"}[form]
    with daypack.open_memory(home=home, memory=name) as memories:
        use_all(memories, launch)
        other = memories.find_memory("other")
        assert memories.get_memory(other).title == "other"
        assert memories.get_memory(name).memory_id == launch


def test_the_environment_goes_before_the_settings_and_an_argument_before_both(
    home: str, launch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Path(home) / "home" / "7" / "config.toml"
    with daypack.open_memory(home=home, uid="7") as memories:
        ids = {name: memories.create_memory(name).memory_id for name in ("set", "named", "given")}
    config.write_text('[memory]\ndefault = "set"\n')

    def default(**options: str) -> str:
        with daypack.open_memory(home=home, uid="7", **options) as memories:
            return memories.get_memory().memory_id

    assert default() == ids["set"]
    monkeypatch.setenv("DAYPACK_MEMORY", "named")
    assert default() == ids["named"]
    assert default(memory="given") == ids["given"]
    monkeypatch.delenv("DAYPACK_MEMORY")
    config.write_text("[memory]\ndefault = 5\n")
    with pytest.raises(BadConfig, match="default"):
        default()


def test_without_a_default_the_error_says_how_to_set_one(home: str, launch: str) -> None:
    with daypack.open_memory(home=home) as memories:
        with pytest.raises(BadInput, match="memory_id is missing") as caught:
            memories.add_entry(raw_entry="x")
        for way in ("--memory", "DAYPACK_MEMORY", "[memory] table of config.toml", "open_memory(memory="):
            assert way in caught.value.hint
    with daypack.open_memory(home=home, memory="nowhere") as memories, pytest.raises(MemoryMissing, match="nowhere"):
        memories.get_context()


def test_another_user_has_no_part_in_it(home: str, launch: str) -> None:
    with (
        daypack.open_memory(home=home, memory="launch") as memories,
        pytest.raises(BadInput, match="memory_id is missing"),
    ):
        memories.as_user("eve").get_context()
    with daypack.open_memory(home=home, user="eve", memory=launch) as hers, pytest.raises(MemoryMissing):
        hers.get_context()


def test_a_client_may_have_a_default_and_a_server_too(home: str, launch: str) -> None:
    with start_server(home, "--memory", "launch") as server:
        with daypack.open_memory(url=server.url) as memories:
            use_all(memories, launch)
        with daypack.open_memory(url=server.url, memory="other") as memories:
            assert memories.get_memory().title == "other"
    with start_server(home) as server:
        with daypack.open_memory(url=server.url) as memories, pytest.raises(BadInput, match="memory_id is missing"):
            memories.get_memory()
        with daypack.open_memory(url=server.url, memory="launch") as memories:
            assert memories.get_memory().memory_id == launch


def test_memories_are_listed_in_pages(home: str) -> None:
    with daypack.open_memory(home=home) as memories:
        made = [memories.create_memory(f"m{at}").memory_id for at in range(5)]
        memories.as_user("eve").create_memory("hers")
        first = memories.list_memories(2)
        assert ([one.memory_id for one in first.memories], first.count, first.next_after) == (made[:2], 2, made[1])
        rest = memories.list_memories(50, after=made[1])
        assert ([one.memory_id for one in rest.memories], rest.next_after) == (made[2:], None)
        assert memories.list_memories(500).applied_limit == 100
        assert [one.memory_id for one in memories.memories()] == made
        with pytest.raises(BadInput, match="limit is 0"):
            memories.list_memories(0)
        with pytest.raises(MemoryMissing):
            memories.list_memories(after=memories.as_user("eve").memories()[0].memory_id)
