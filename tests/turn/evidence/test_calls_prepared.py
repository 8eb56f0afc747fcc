"""Turns as rows: the tokens of every part are those of the turn itself, and breaks of the cache have their cause."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from turn.compacting import BUDGET, fill, step, turn_after
from turn.scenes import FakeMemory, item, stage
from upkeep.erase.secrets import place

from daypack.history.draft import draft_event
from daypack.session import Session
from daypack.turn.evidence.calls.parts import PARTS, Part, part_of_item
from daypack.turn.evidence.calls.rows import CallRow, share_out
from daypack.turn.evidence.turn_list import newest_turns
from daypack.turn.items import AROUND_QUOTED
from daypack.types.memory import Remembered
from daypack.upkeep.erase.apply import apply
from daypack.upkeep.erase.plan import Request

WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
CLOCK = {"name": "clock", "input_schema": {"type": "object"}}


def rows_of(session: Session) -> Sequence[CallRow]:
    return session.turns.calls.read().rows


def replayed(session: Session, event: str) -> dict[Part, int]:
    """The tokens of a turn by part, counted on the turn as it is rebuilt from history."""
    turn = session.turns.replay(event)
    tokens: dict[Part, int] = dict.fromkeys(PARTS, 0)
    for shown in turn.inserted:
        tokens[part_of_item(shown)] += shown.tokens
    tokens["volatile"] = turn.tokens - turn.stable_tokens
    tokens["prefix"] += turn.record.tools.tokens if turn.record.tools else 0
    tokens["tail"] = turn.stable_tokens - turn.record.stable.prefix_tokens - tokens["recalled"]
    return tokens


def check_splits(session: Session) -> None:
    """Compare every row with its turn; the text around quoted items is a part of the prefix."""
    for row in rows_of(session):
        split, expected = dict(zip(PARTS, row.split, strict=True)), replayed(session, row.event)
        assert sum(row.split) == row.tokens
        assert 0 <= split.pop("prefix") - expected.pop("prefix") <= AROUND_QUOTED.tokens
        assert split == expected


def answer(session: Session, words: str = "Yes.", **usage: Any) -> None:
    session.accept({"role": "assistant", "content": words}, usage or None)


def ask(session: Session, words: str = "And now?", **options: Any) -> str:
    session.append("user", words)
    return session.prepare(budget=BUDGET, **options).event_id or ""


def test_rows_have_the_facts_of_the_listed_turns(home: str) -> None:
    session = stage(home)
    fill(session, 2)
    ask(session, target="reviewer")
    listed = list(newest_turns(session.history))[::-1]
    rows = rows_of(session)
    assert [(row.event, row.at, row.target, row.model, row.tokens, row.budget) for row in rows] == [
        (turn.event, turn.at, turn.target, turn.model, turn.tokens, turn.budget_tokens) for turn in listed
    ]
    assert [(row.omitted, row.missing, row.epoch, row.expected) for row in rows] == [
        (turn.omitted, turn.missing, turn.epoch, turn.expected_cached_tokens) for turn in listed
    ]
    assert {row.kind for row in rows} == {"prepared"}


def test_the_split_is_that_of_each_turn(home: str) -> None:
    session = stage(home)
    session.turns.memory = FakeMemory(
        "The lamp of the harbour is green.", [Remembered("e1", "The lamp is green.", 2.0)]
    )
    session.pin("rules", "Never paint a lamp red. " * 20)
    _, number = fill(session, 2)
    for at in range(3):
        turn_after(session, number + at)
    ask(session, "What about the harbour lamp of part 1?", tools=[WEATHER], items=[item(content="Mind the gap. " * 9)])
    check_splits(session)
    used = {part for row in rows_of(session) for part, tokens in zip(PARTS, row.split, strict=True) if tokens}
    assert used == {"prefix", "pins", "memory", "summary", "records", "tail", "recalled", "volatile"}


def test_excerpts_count_in_every_turn_of_their_epoch(home: str) -> None:
    session = stage(home)
    fill(session, 1)
    ask(session, "How many hours does the glacier lamp of part 1 burn?")
    answer(session)
    ask(session, "And who keeps the orchard lamp of part 2?")
    check_splits(session)
    recalled = [row.split[PARTS.index("recalled")] for row in rows_of(session)[-2:]]
    assert recalled[1] >= recalled[0] > 0


def test_turns_without_redaction_are_counted_as_they_were_sent(home: str) -> None:
    session = stage(home, redaction="off")
    session.append("user", f"The token of the harbour is ghp_{'a1B2' * 9}.")
    answer(session)
    fill(session, 1)
    ask(session, "Which token has the harbour?")
    check_splits(session)


# Compactions


def test_compactions_are_before_the_turns_that_they_made_room_for(home: str) -> None:
    session = stage(home)
    fill(session, 2)
    session.undo()
    calls = session.turns.calls.read()
    made = [event for event in session.events() if event.type == "context.compaction.completed"]
    assert [fold.event for fold in calls.folds] == [event.id for event in made]
    for fold, event in zip(calls.folds, made, strict=True):
        numbers = [int(row.event[3:]) for row in calls.rows]
        assert fold.before == sum(number < event.seq for number in numbers)
        assert (fold.before_tokens, fold.after_tokens) == (event.data["before_tokens"], event.data["after_tokens"])
        assert (fold.trigger, fold.own) == (event.data["trigger"], True)
    assert [fold.undone for fold in calls.folds] == [False, True]


# Breaks of the cache


def test_a_full_window_breaks_the_cache(home: str) -> None:
    session = stage(home)
    fill(session, 1)
    rows = rows_of(session)
    assert rows[0].cache_break is None, "there was nothing in a cache"
    broken = [at for at, row in enumerate(rows) if row.cache_break]
    assert broken == [at for at, row in enumerate(rows) if row.epoch == row.event and at]
    for at in broken:
        assert rows[at].cache_break == "the window was full"
        before = session.turns.replay(rows[at - 1].event).stable_tokens
        assert rows[at].lost == before - session.turns.replay(rows[at].event).expected_cached_tokens > 0


def test_changed_tools_break_the_cache_and_are_named(home: str) -> None:
    session = stage(home)
    for tools in ([], [WEATHER], [WEATHER, CLOCK], [CLOCK], [CLOCK]):
        ask(session, tools=tools)
        answer(session)
    changes = [row.cache_break for row in rows_of(session)]
    assert changes == [None, "tools changed: +weather", "tools changed: +clock", "tools changed: −weather", None]
    assert [bool(row.lost) for row in rows_of(session)] == [False, True, True, True, False]


def test_a_provider_that_lost_its_cache_is_reported_and_a_small_difference_is_not(home: str) -> None:
    session = stage(home)
    session.append("user", "Read this. " + "harbour lamp " * 1500)
    for missing in (0, 100, 1500):
        turn = session.prepare(budget=8000)
        cached = max(0, turn.expected_cached_tokens - missing)
        answer(session, input_tokens=turn.tokens, cached_tokens=cached, output_tokens=3)
        session.append("user", "Go on.")
    first, second, third = rows_of(session)
    assert (first.cache_break, second.cache_break) == (None, None)
    expected = third.expected or 0
    words = f"provider read {expected - 1500:,} of {expected:,} expected tokens from its cache"
    assert (third.cache_break, third.lost) == (words, 1500)
    assert (third.input, third.cached, third.output) == (third.tokens, expected - 1500, 3)


def test_a_refresh_that_changes_nothing_breaks_nothing(home: str) -> None:
    session = stage(home)
    ask(session)
    answer(session)
    session.refresh()
    ask(session)
    first, second = rows_of(session)
    assert (second.epoch, second.cache_break, second.expected) == (second.event, None, first.tokens)


# Replies and marks


def test_a_reply_is_found_with_and_without_its_usage(home: str) -> None:
    session = stage(home)
    ask(session)
    assert rows_of(session)[0].reply is None
    answer(session)
    assert rows_of(session)[0].reply == 2
    ask(session)
    answer(session, input_tokens=9, cached_tokens=0, output_tokens=1)
    assert [row.reply for row in rows_of(session)] == [2, 4]
    ask(session)
    assert [row.reply for row in rows_of(session)] == [2, 4, None]


def test_a_turn_prepared_again_without_an_answer_is_a_retry(home: str) -> None:
    session = stage(home)
    ask(session)
    session.prepare(budget=BUDGET)
    answer(session)
    ask(session)
    assert [row.mark for row in rows_of(session)] == [None, "retry", None]


def test_a_refused_turn_is_an_error_and_a_retry_once_it_was_answered(home: str) -> None:
    session = stage(home)
    event = ask(session)
    session.history.append_event(draft_event("provider.error", {"error": "APIConnectionError", "turn": event}))
    assert [row.mark for row in rows_of(session)] == ["error"]
    answer(session)
    ask(session)
    session.compact_on_overflow()
    assert [row.mark for row in rows_of(session)] == ["retry", "error"]


def test_a_reply_that_broke_off_is_incomplete(home: str) -> None:
    session = stage(home)
    ask(session)
    stream = session.stream(iter(["The lamp", " is"]))
    next(iter(stream))
    stream.close()
    assert [(row.reply, row.mark) for row in rows_of(session)] == [(2, "incomplete")]
    ask(session)
    assert [row.mark for row in rows_of(session)] == ["incomplete", None]


def test_a_turn_that_showed_what_was_erased_is_marked(home: str) -> None:
    session = stage(home)
    ask(session, "The word is xylophone-7731.")
    answer(session)
    assert [row.mark for row in rows_of(session)] == [None]
    path = Path(session.layout.derived("calls"))
    assert path.exists()
    apply(place(home), Request(literal="xylophone-7731", session="work"))
    assert not path.exists()
    ask(session)
    assert [row.mark for row in rows_of(session)] == ["erased", None]
    assert b"xylophone" not in path.read_bytes()


# What other programs write


def test_events_that_only_share_the_type_are_ignored(home: str) -> None:
    session = stage(home)
    ask(session)
    for kind in ("context.turn", "context.usage", "context.compaction.undone", "context.observed", "provider.error"):
        odd: list[dict[str, Any]] = [{}, {"turn": 7, "message": [1]}, {"stable": "x", "compaction": {}}]
        for data in odd:
            session.history.append_event(draft_event(kind, data))
    rows = rows_of(session)
    assert len(rows) == 1
    assert (rows[0].reply, rows[0].mark) == (None, None)


@pytest.mark.parametrize("lacking", ["opening", "added", "stable", "tokenizer", "tools"])
def test_a_turn_with_unusual_fields_still_sums_up(home: str, lacking: str) -> None:
    session = stage(home)
    fill(session, 1)
    ask(session, "How many hours does the glacier lamp burn?", tools=[WEATHER])
    path = Path(session.layout.events)
    lines = path.read_bytes().split(b"\n")
    turns = [at for at, line in enumerate(lines) if b'"context.turn"' in line]
    session.close()
    for at in turns:
        event = json.loads(lines[at])
        if lacking in event["data"]:
            event["data"][lacking] = {"tokens": 10**9, "prefix_tokens": -5, "items": [3], "reason": "new"}
        lines[at] = json.dumps({name: value for name, value in event.items() if name != "crc"}).encode()
    path.write_bytes(b"\n".join(lines))
    again = stage(home)
    for row in rows_of(again):
        assert sum(row.split) == row.tokens
        assert min(row.split) >= 0


def test_shares_sum_to_what_was_reported() -> None:
    for split, total in (((1, 2, 4), 10), ((0, 0, 0), 5), ((7, 0, 1), 0), ((3, 3, 3), 10)):
        whole = (*split, 0, 0, 0, 0, 0, 0)
        assert sum(share_out(whole, total)) == total
    assert share_out((1, 2, 4, 0, 0, 0, 0, 0, 0), 70)[:3] == (10, 20, 40)


def test_a_session_without_turns_has_no_calls(home: str) -> None:
    session = stage(home)
    assert not rows_of(session)
    step(session, 1)
    calls = session.turns.calls.read()
    assert (len(calls.rows), len(calls.folds), calls.own, calls.observed) == (0, 0, False, False)
