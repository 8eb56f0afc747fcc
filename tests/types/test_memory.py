import json
from typing import Any

import msgspec
import pytest

from daypack.types.memory import (
    Consistency,
    ContextDocument,
    Entry,
    EntryPage,
    FailedWrite,
    Hit,
    Memory,
    Quotas,
    SearchResult,
    Stats,
    Usage,
    User,
)

NOW = "2026-11-15T21:10:20.123Z"
MEMORY: dict[str, Any] = {"memory_id": "m-1", "title": "support", "memory_type": "chat", "created_at": NOW}
ENTRY: dict[str, Any] = {
    "entry_id": "e-1",
    "memory_id": "m-1",
    "seq": 1,
    "created_at": NOW,
    "raw_entry": "Hi Sam, our Q3 launch date moved to 17 Aug 2025. Please update the tracker.",
    "summary": "User stated the Q3 launch date is rescheduled to 17 Aug 2025 and asked Sam to update the project "
    "tracker.",
}
DOCUMENT: dict[str, Any] = {"document_id": "c-1", "memory_id": "m-1", "version": 2, "created_at": NOW, "content": "x"}


def written(value: msgspec.Struct) -> dict[str, Any]:
    return json.loads(msgspec.json.encode(value))


def test_a_memory_tells_its_title_its_type_and_its_stats():
    whole = {**MEMORY, "description": "Calls.", "stats": {"entries": 2, "documents": 1, "bytes": 300}}
    memory = msgspec.convert(whole, type=Memory)
    assert written(memory) == {**whole, "deleted_at": None, "token": None}
    assert (memory.title, memory.memory_type, memory.stats) == ("support", "chat", Stats(2, 1, 300))


def test_the_stats_of_a_new_memory_are_written_as_zeros():
    assert written(msgspec.convert(MEMORY, type=Memory))["stats"] == {"entries": 0, "documents": 0, "bytes": 0}


@pytest.mark.parametrize(
    ("type_", "document", "field", "fits", "too_long"),
    [
        (Memory, MEMORY, "title", "é" * 50, "é" * 51),
        (Memory, MEMORY, "description", "é" * 500, "é" * 501),
        (Entry, ENTRY, "summary", "忆" * 512, "忆" * 513),
        (ContextDocument, DOCUMENT, "content", "😀" * 5000, "😀" * 5001),
    ],
)
def test_a_text_may_have_as_many_characters_as_its_cap_and_not_one_more(
    type_: type[msgspec.Struct], document: dict[str, Any], field: str, fits: str, too_long: str
):
    assert written(msgspec.convert({**document, field: fits}, type=type_))[field] == fits
    with pytest.raises(msgspec.ValidationError, match=field):
        msgspec.convert({**document, field: too_long}, type=type_)


def test_a_title_is_never_empty():
    with pytest.raises(msgspec.ValidationError, match="title"):
        msgspec.convert({**MEMORY, "title": ""}, type=Memory)


def test_an_entry_is_a_raw_message_and_one_summary_and_says_no_more_than_it_knows():
    assert written(msgspec.convert(ENTRY, type=Entry)) == ENTRY
    whole = {**ENTRY, "role": "user", "tags": ["launch"], "source": "messages:12"}
    assert written(msgspec.convert(whole, type=Entry)) == whole


def test_a_context_document_is_the_text_one_write_left_with_its_own_id_and_time():
    assert written(msgspec.convert(DOCUMENT, type=ContextDocument)) == {**DOCUMENT, "token": None, "damaged": []}


def test_an_entry_cannot_be_changed():
    entry = msgspec.convert(ENTRY, type=Entry)
    with pytest.raises(AttributeError):
        entry.raw_entry = "Something else."  # pyright: ignore[reportAttributeAccessIssue]


def test_a_hit_is_the_entry_itself_with_a_score():
    hit = msgspec.convert({**ENTRY, "score": 0.75, "score_parts": {"lexical": 0.75}}, type=Hit)
    assert written(hit) == {**ENTRY, "score": 0.75, "score_parts": {"lexical": 0.75}}
    assert isinstance(hit, Entry)
    with pytest.raises(msgspec.ValidationError, match="`score`"):
        msgspec.convert(ENTRY, type=Hit)


def test_a_search_result_has_ranked_entries_the_latest_and_the_best_context():
    document = {
        "memory_id": "m-1",
        "entries": [{**ENTRY, "score": 0.9}, {**ENTRY, "entry_id": "e-2", "score": 0.4}],
        "count": 2,
        "latest_context": "The launch is on 17 Aug 2025.",
        "context_timestamp": NOW,
        "best_context": "The launch is being discussed.",
        "best_context_timestamp": NOW,
        "best_context_score": 0.6,
        "notes": [],
        "damaged": [],
    }
    result = msgspec.convert(document, type=SearchResult)
    assert written(result) == document
    assert [hit.score for hit in result.entries] == [0.9, 0.4]


def test_a_search_in_a_new_memory_is_empty_but_counted():
    result = written(SearchResult(memory_id="m-1", entries=(), count=0))
    assert (result["entries"], result["count"], result["best_context"]) == ([], 0, None)


def test_a_page_of_entries_says_its_limit_and_how_to_go_on():
    page = {"memory_id": "m-1", "entries": [ENTRY], "count": 1, "applied_limit": 25}
    page |= {"next_before": "e-1", "next_after": "e-1", "damaged": []}
    assert written(msgspec.convert(page, type=EntryPage)) == page


@pytest.mark.parametrize("limit", [0, 51])
def test_a_page_of_no_entries_or_of_more_than_fifty_is_refused(limit: int):
    with pytest.raises(msgspec.ValidationError, match="applied_limit"):
        msgspec.convert({"memory_id": "m-1", "entries": [], "count": 0, "applied_limit": limit}, type=EntryPage)


def test_a_barrier_names_the_writes_that_failed_and_says_whether_the_index_holds_the_others():
    lost = FailedWrite(operation="add_entry", problem="disk full", memory_id="m-1")
    failed = Consistency(status="failed", level="durable", token="t", failed_writes=(lost,), search_index=False)
    assert written(failed) == {
        "status": "failed",
        "level": "durable",
        "token": "t",
        "search_index": False,
        "failed_writes": [{"operation": "add_entry", "problem": "disk full", "memory_id": "m-1"}],
        "problem": None,
        "damaged": [],
    }


def test_a_user_has_a_name_an_email_and_quotas_with_what_is_used():
    quotas = Quotas(memories=10, used=Usage(memories=1, entries=2, bytes=300))
    user = User(user_id="ada", name="Ada", email="ada@example.org", quotas=quotas)
    assert written(user) == {
        "user_id": "ada",
        "name": "Ada",
        "email": "ada@example.org",
        "quotas": {
            "memories": 10,
            "entries": None,
            "bytes": None,
            "used": {"memories": 1, "entries": 2, "bytes": 300},
        },
    }
    assert msgspec.json.decode(msgspec.json.encode(user), type=User) == user
