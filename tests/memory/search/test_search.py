"""Searching a memory: entries by rank, the latest and the best document, filters, notes."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from daypack.errors import BadInput, MemoryMissing, ModelMissing, TooLong
from daypack.memory.tools import Memories, open_memory
from daypack.types.memory import NOTHING_RELEVANT

SAID = (
    ("Caroline went hiking in the Alps.", {"author": "Caroline", "role": "user", "at": "2025-08-01", "session": "a"}),
    ("Sam bought a red bicycle.", {"author": "Sam", "role": "assistant", "at": "2025-08-02", "tags": ["plan"]}),
    ("The launch moved to 17 August.", {"author": "Sam", "role": "user", "at": "2025-08-03", "tags": ["plan", "q3"]}),
)


@pytest.fixture
def filled(memories: Memories, memory_id: str) -> str:
    for raw, about in SAID:
        memories.add_entry(memory_id, raw, "sum", about=about)
    return memory_id


@pytest.mark.requirement("S2-T9", "X37")
def test_entries_come_by_rank_with_the_latest_and_the_best_document(memories: Memories, filled: str) -> None:
    memories.put_context(filled, "# Facts\n- Caroline hikes in the Alps")
    bicycles = memories.put_context(filled, "# Facts\n- Sam rides a red bicycle")
    latest = memories.put_context(filled, "# Decisions\n- The launch is on 17 August")
    found = memories.search_memories(filled, "who bought a red bicycle?")
    assert found.memory_id == filled
    assert found.entries[0].raw_entry == "Sam bought a red bicycle."
    assert [hit.score for hit in found.entries] == sorted((hit.score for hit in found.entries), reverse=True)
    assert found.count == len(found.entries)
    assert (found.latest_context, found.context_timestamp) == (latest.content, latest.created_at)
    assert (found.best_context, found.best_context_timestamp) == (bicycles.content, bicycles.created_at)
    assert found.best_context_score is not None
    with pytest.raises(BadInput, match="memory_id is missing"):
        memories.search_memories(query="bicycle")


def test_a_placeholder_is_no_document(memories: Memories, filled: str) -> None:
    found = memories.search_memories(filled, "default context created with the memory, instructions for AI agent")
    assert (found.latest_context, found.context_timestamp, found.best_context) == (None, None, None)
    assert found.best_context_score is None
    memories.put_context(filled, "# Facts\n- the agent has instructions")
    found = memories.search_memories(filled, "default context created with the memory, instructions for AI agent")
    assert found.best_context == found.latest_context == "# Facts\n- the agent has instructions"


def test_scores_are_explained_when_asked_for(memories: Memories, filled: str) -> None:
    assert all(hit.score_parts is None for hit in memories.search_memories(filled, "bicycle").entries)
    hit = memories.search_memories(filled, "bicycle", explain=True).entries[0]
    assert hit.score_parts
    assert sum(hit.score_parts.values()) == pytest.approx(hit.score)


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ({}, {1, 2, 3}),
        ({"role": "user"}, {1, 3}),
        ({"author": "Sam"}, {2, 3}),
        ({"session": "a"}, {1}),
        ({"tags": ["plan"]}, {2, 3}),
        ({"tags": ["plan", "q3"]}, {3}),
        ({"since": "2025-08-02"}, {2, 3}),
        ({"until": "2025-08-02"}, {1, 2}),
        ({"since": "2025-08-02", "role": "user"}, {3}),
        ({"role": "nobody"}, set[int]()),
    ],
)
def test_only_entries_that_fit_are_returned(
    memories: Memories, filled: str, where: dict[str, Any], wanted: set[int]
) -> None:
    found = memories.search_memories(filled, "Caroline hiking, a red bicycle, the launch", where=where)
    assert {hit.seq for hit in found.entries} == wanted


def test_as_many_are_returned_as_asked_for(memories: Memories, memory_id: str) -> None:
    for number in range(30):
        memories.add_entry(memory_id, f"bicycle number {number}", "sum")
    assert memories.search_memories(memory_id, "bicycle").count == 10
    assert memories.search_memories(memory_id, "bicycle", "3").count == 3
    assert memories.search_memories(memory_id, "bicycle", 100).count == 30


@pytest.mark.parametrize("query", ["", " \n", None, 7, "\ud800"])
def test_a_query_that_asks_nothing_is_refused(memories: Memories, filled: str, query: str) -> None:
    with pytest.raises(BadInput):
        memories.search_memories(filled, query)


@pytest.mark.parametrize("top_k", [0, 101, "x", None, 2.5, True])
def test_a_number_out_of_range_is_refused(memories: Memories, filled: str, top_k: int) -> None:
    with pytest.raises(BadInput, match="top_k"):
        memories.search_memories(filled, "bicycle", top_k)


def test_what_cannot_be_searched_is_refused(memories: Memories, filled: str) -> None:
    with pytest.raises(TooLong, match="query has 10,001 characters"):
        memories.search_memories(filled, "x" * 10_001)
    with pytest.raises(BadInput, match="where has no speaker"):
        memories.search_memories(filled, "x", where={"speaker": "Sam"})
    with pytest.raises(MemoryMissing):
        memories.as_user("zoe").search_memories(filled, "bicycle")


def test_a_query_of_any_characters_is_answered(memories: Memories, filled: str) -> None:
    for query in ('"', "a AND (", "bicycle*", "'; DROP TABLE", "\0", "NEAR(a b)", "-", "日本語", "🧳", "x" * 10_000):
        memories.search_memories(filled, query)


def test_an_index_that_was_deleted_comes_back_with_the_same_answers(memories: Memories, filled: str, home: str) -> None:
    before = memories.search_memories(filled, "red bicycle launch", explain=True)
    (folder,) = Path(home).rglob(f"index/{filled}")
    memories.close()
    shutil.rmtree(folder)
    assert memories.search_memories(filled, "red bicycle launch", explain=True) == before
    shutil.rmtree(folder)  # while it is open
    assert memories.search_memories(filled, "red bicycle launch", explain=True) == before


def test_an_embedding_model_that_is_missing_is_noted_and_words_still_work(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(choice: str, *, models: str) -> None:
        assert (choice, Path(models)) == ("minilm", Path(home, "home", str(os.getuid()), "model"))
        raise ModelMissing("its files are not here", place="minilm", hint="`daypack model pull minilm` fetches them")

    monkeypatch.setenv("DAYPACK_EMBEDDING_MODEL", "minilm")
    monkeypatch.setattr("daypack.llm.embedders.open_embedder", missing)
    with open_memory(home=home) as memories:
        memory = memories.create_memory("Launch")
        memories.add_entry(memory.memory_id, "something to find", "found")
        found = memories.search_memories(memory.memory_id, "something")
        assert found.count == 1
        assert any("daypack model pull minilm" in note for note in found.notes)
        assert memories.await_consistency().status == "consistent"


@pytest.mark.requirement("S2-T9")
def test_a_search_without_a_relevant_entry_returns_none_and_says_so(memories: Memories, filled: str) -> None:
    memories.put_context(filled, "# Facts\n- Sam rides a red bicycle")
    found = memories.search_memories(filled, "Which museum in Lisbon does Ingrid recommend?", top_k=50)
    assert (found.entries, found.count, found.best_context) == ((), 0, None)
    assert found.notes == (NOTHING_RELEVANT,)
    assert found.latest_context == "# Facts\n- Sam rides a red bicycle"
    hit, *_ = memories.search_memories(filled, "Who bought a bicycle?").entries
    assert hit.relevance >= 1


def test_whether_there_is_an_answer_does_not_depend_on_how_many_entries_are_wanted(
    memories: Memories, filled: str
) -> None:
    for query in ("the launch in August", "Lisbon, Ingrid, a launch of museums and hotels"):
        answers = [memories.search_memories(filled, query, top_k=count).entries for count in (1, 3, 100)]
        assert answers[0] == answers[1][:1] == answers[2][:1]
