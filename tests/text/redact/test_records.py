"""Records lose their secrets in every field with words; what identifies them stays."""

from typing import Any, NamedTuple

import pytest

from daypack.text.redact.records import redact_any, redact_record
from daypack.types.memory import MAX_CHARS, TITLE_MAX_CHARS, Entry, Hit, Memory, MemoryPage, SearchResult

SECRET = "ghp_" + "0aB1" * 9
NOW = "2026-11-17T10:00:00Z"
HIT = Hit(
    entry_id="e" + "1" * 16,
    memory_id="m" + "2" * 16,
    seq=1,
    created_at=NOW,
    raw_entry=f"the key is {SECRET}",
    summary=SECRET,
    session=SECRET,
    role=SECRET,
    author=SECRET,
    at=SECRET,
    tags=("plain", SECRET),
    source=SECRET,
    score=0.5,
    score_parts={"words": 0.5},
)


@pytest.mark.requirement("G18")
def test_no_field_with_words_keeps_a_secret() -> None:
    found = SearchResult(memory_id=HIT.memory_id, entries=(HIT,), count=1, latest_context=SECRET, notes=(SECRET,))
    shown = redact_record(found)
    assert SECRET not in repr(shown)
    (hit,) = shown.entries
    assert hit.tags == ("plain", "[redacted:github-token]")
    assert (hit.entry_id, hit.memory_id, hit.created_at, hit.score_parts) == (
        HIT.entry_id,
        HIT.memory_id,
        NOW,
        {"words": 0.5},
    )


def test_a_record_without_secrets_is_the_same_object() -> None:
    plain = Entry(entry_id="e1", memory_id="m1", seq=1, created_at=NOW, raw_entry="hello", summary="hello", tags=("a",))
    assert redact_record(plain) is plain
    assert redact_any([{"a": "b"}, "c"]) == [{"a": "b"}, "c"]


def test_a_text_that_grew_by_its_marker_is_cut_to_its_limit() -> None:
    memory = Memory(
        memory_id="m1", title="password=aB3!xY9z " * 2 + "password=aB3!xY9", memory_type="chat", created_at=NOW
    )
    (shown,) = redact_record(MemoryPage(memories=(memory,), count=1, applied_limit=1), MAX_CHARS).memories
    assert "aB3!" not in shown.title
    assert len(shown.title) == TITLE_MAX_CHARS


def test_a_value_of_any_type_is_redacted() -> None:
    assert redact_any({"pins": [SECRET, 3, None]}) == {"pins": ["[redacted:github-token]", 3, None]}
    assert redact_any((SECRET, 3)) == ("[redacted:github-token]", 3)
    assert redact_any(3) == 3


class Pair(NamedTuple):
    name: str
    value: Any


@pytest.mark.requirement("G18")
@pytest.mark.parametrize("value", [(SECRET,), Pair(SECRET, ({"a": SECRET},)), ({SECRET: 1},), HIT, (HIT,)])
def test_tuples_and_records_inside_other_values_are_redacted(value: Any) -> None:
    for around in ({"a": value}, [value], ({"a": [value]},)):
        assert SECRET not in repr(redact_any(around))
    shown = redact_any({"pair": Pair(SECRET, 3), "hit": HIT, "password": ("aB3xY9zQ7w",)})
    assert shown["pair"] == Pair("[redacted:github-token]", 3)
    assert isinstance(shown["pair"], Pair)
    assert (shown["hit"].entry_id, shown["hit"].created_at) == (HIT.entry_id, NOW)
    assert shown["password"] == ("[redacted:password]",)


@pytest.mark.requirement("G18")
def test_the_names_of_members_keep_no_secret_and_no_member_is_lost() -> None:
    value = {"a": [{SECRET: 1, f"{SECRET} ": 2, "[redacted:github-token]": 3}]}
    shown = redact_any(value)
    assert SECRET not in repr(shown)
    assert sorted(shown["a"][0].values()) == [1, 2, 3]
    plain = {"a": [{"b": 1}]}
    assert redact_any(plain) is plain
