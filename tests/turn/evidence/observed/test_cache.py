"""Cache breaks: when there is one, and what is named as its cause."""

from typing import Any

import pytest

from daypack.turn.evidence.observed.cache import Change, Side, find_break, ttl_of, ttl_of_usage
from daypack.turn.evidence.observed.record import CacheMark

START = "2026-11-18T10:00:00.000Z"
SOON = "2026-11-18T10:01:00.000Z"
LATER = "2026-11-18T10:06:00.000Z"


def side(at: str = START, **facts: Any) -> Side:
    known: dict[str, Any] = {"model": "opus", "input_tokens": 10_000, "cached_tokens": 0, "count": 8}
    return Side(at=at, **{**known, **facts})


def test_a_call_that_reads_what_the_last_one_sent_has_no_break() -> None:
    after = side(SOON, input_tokens=10_400, cached_tokens=10_000)
    assert find_break(side(), after, Change(kept=8)) is None


def test_a_provider_rounds_what_it_keeps() -> None:
    after = side(SOON, input_tokens=10_400, cached_tokens=9_728)
    assert find_break(side(), after, Change(kept=8)) is None


@pytest.mark.parametrize(
    ("after", "change", "causes", "detail"),
    [
        (side(SOON, model="haiku"), Change(kept=8), ("model",), "opus → haiku"),
        (side(SOON), Change(kept=8, tools="+search"), ("tools",), "+search"),
        (side(SOON), Change(kept=8, system=True), ("system",), "the system prompt changed"),
        (side(SOON), Change(kept=3), ("messages",), "message 4 of 8 changed"),
        (
            side(SOON),
            Change(kept=0, compaction="auto", system=True),
            ("compaction", "system", "messages"),
            "compacted (auto)",
        ),
        (side(SOON), Change(compaction=""), ("compaction",), "compacted"),
        (side(SOON), Change(kept=8), ("unknown",), "nothing that is recorded explains it"),
        (side(LATER), Change(kept=8), ("expired",), "6 min since the last call, kept for 5 min"),
        (side(LATER), Change(), ("expired",), "6 min since the last call, kept for 5 min"),
        (side(LATER), Change(kept=8, tools="−search"), ("tools",), "−search"),
    ],
)
def test_the_cause_of_a_break_is_named(after: Side, change: Change, causes: tuple[str, ...], detail: str) -> None:
    found = find_break(side(), after, change)
    assert found is not None
    assert (found.causes, found.detail, found.lost_tokens) == (causes, detail, 10_000)


def test_parameters_count_unless_they_do_not_touch_the_cache() -> None:
    before = side(params={"model": "opus", "max_tokens": 1, "thinking": {"type": "adaptive"}})
    limits = side(SOON, params={"model": "opus", "max_tokens": 2, "thinking": {"type": "adaptive"}})
    found = find_break(before, limits, Change(kept=8))
    assert found is not None
    assert found.causes == ("unknown",)
    thinking = side(SOON, params={"model": "opus", "max_tokens": 1, "thinking": {"type": "disabled"}})
    found = find_break(before, thinking, Change(kept=8))
    assert found is not None
    assert found.detail == "thinking changed"


def test_a_cache_that_lasts_an_hour_does_not_expire_after_minutes() -> None:
    found = find_break(side(ttl_seconds=3600), side(LATER), Change(kept=8))
    assert found is not None
    assert found.causes == ("unknown",)


def test_without_a_report_only_what_changed_is_told() -> None:
    silent = side(SOON, cached_tokens=None)
    assert find_break(side(), silent, Change(kept=8)) is None
    found = find_break(side(), silent, Change(kept=2))
    assert found is not None
    assert (found.causes, found.lost_tokens) == (("messages",), None)


def test_a_shorter_request_loses_at_most_what_it_sends() -> None:
    found = find_break(side(), side(SOON, input_tokens=2_000), Change(compaction="manual"))
    assert found is not None
    assert found.lost_tokens == 2_000


def test_the_time_that_a_cache_lasts_is_read_from_marks_and_from_usage() -> None:
    assert ttl_of([CacheMark(("system", 0), {"type": "ephemeral"})]) == 300
    assert ttl_of([CacheMark(("system", 0), {"type": "ephemeral", "ttl": "1h"})]) == 3600
    assert ttl_of_usage({"cache_creation": {"ephemeral_1h_input_tokens": 7}}) == 3600
    assert ttl_of_usage({"cache_creation": None}) == 300


def test_a_time_that_cannot_be_read_is_no_reason() -> None:
    found = find_break(side("once"), side("later"), Change(kept=8))
    assert found is not None
    assert found.causes == ("unknown",)
