"""The tail: whatever a log holds, what is left of it is what a provider accepts, and it only grows."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from turn.histories import Drafts, messages_of, settled_histories, wild_histories
from turn.windows import HISTORIES, LOOP, TALK, answer, call, check_calls, say, user

from daypack.turn.pack.tail import LATE, UNANSWERED, Settled, settle
from daypack.types.history import Message
from daypack.types.kinds import is_known

modest = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def stored(drafts: Drafts) -> tuple[Message, ...]:
    """Messages as a log gives them out: numbered, with ids."""
    from msgspec.structs import replace

    return tuple(replace(one, seq=at, id=f"msg-{at}") for at, one in enumerate(messages_of(drafts), 1))


def settled(*drafts: Any) -> Settled:
    return settle(stored(list(drafts)))


def numbers(found: Settled) -> list[int]:
    return [message.seq for message in found.messages]


@modest
@given(drafts=wild_histories())
def test_calls_match_batches_are_atomic_thinking_stays_and_results_are_unique(drafts: Drafts) -> None:
    messages = stored(drafts)
    found = settle(messages)
    check_calls(found.messages)
    kept = {message.seq: message for message in found.messages if message.id}
    results = Counter(message.seq for message in found.messages if message.role == "tool" and message.id)
    assert set(results.values()) <= {1}
    for message in messages:
        if message.seq in kept:
            # Words, thinking and calls of a message are never taken apart.
            assert kept[message.seq].content == message.content
            assert kept[message.seq].tool_calls == message.tool_calls
    assert [one for one in found.messages if one.role == "user"] == [one for one in messages if one.role == "user"]
    told = Counter([one.seq for one in found.dropped] + list(kept))
    assert told == Counter(message.seq for message in messages)
    assert all(is_known("omission_reason", one.reason) and one.note for one in found.dropped)


@modest
@given(drafts=wild_histories(), cut=st.integers(0, 30))
def test_what_is_settled_once_stays_as_more_messages_come(drafts: Drafts, cut: int) -> None:
    messages = stored(drafts)
    before, after = settle(messages[:cut]), settle(messages)
    assert after.messages[: len(before.messages)] == before.messages


@modest
@given(drafts=settled_histories())
def test_a_valid_history_is_kept_but_for_replies_that_say_nothing(drafts: Drafts) -> None:
    found = settle(stored(drafts))
    assert {one.note for one in found.dropped} <= {"empty message"}
    assert found.waiting == ()


def test_results_are_kept_in_the_order_they_came_in() -> None:
    found = settled(user("go"), call("a", "b"), answer("b"), answer("a"), say("done"))
    assert numbers(found) == [1, 2, 3, 4, 5]


def test_a_result_that_nobody_asked_for_is_left_out() -> None:
    found = settled(answer("x"), user("go"), answer("y"), call("a"), answer("a"), answer("z"), say("done"))
    assert numbers(found) == [2, 4, 5, 7]
    assert [(one.seq, one.note) for one in found.dropped] == [
        (1, "answers no call"),
        (3, "answers no call"),
        (6, "answers no call"),
    ]


def test_a_second_result_is_a_duplicate() -> None:
    found = settled(user("go"), call("a", "b"), answer("a", "1"), answer("a", "2"), answer("b"), answer("a", "3"))
    assert numbers(found) == [1, 2, 3, 5]
    assert [(one.seq, one.reason) for one in found.dropped] == [(4, "duplicate"), (6, "duplicate")]


def test_a_result_without_an_id_answers_the_next_call() -> None:
    found = settled(user("go"), call("a", "b"), answer(None, "first"), answer(None, "second"), answer(None, "third"))
    assert [message.tool_call_id for message in found.messages] == [None, None, "a", "b"]
    assert [one.seq for one in found.dropped] == [5]


def test_two_calls_under_one_id_get_a_result_each() -> None:
    found = settled(user("go"), call("a", "a"), answer("a", "1"), answer("a", "2"), answer("a", "3"), say("done"))
    assert numbers(found) == [1, 2, 3, 4, 6]
    assert [one.reason for one in found.dropped] == ["duplicate"]


def test_a_call_that_was_interrupted_gets_a_result_that_says_so() -> None:
    found = settled(user("go"), call("a", "b", "c"), answer("b", "here"), user("stop"), answer("a", "late"))
    assert [(message.tool_call_id, message.content) for message in found.messages if message.role == "tool"] == [
        ("b", "here"),
        ("a", UNANSWERED),
        ("c", UNANSWERED),
    ]
    assert [(one.seq, one.note) for one in found.dropped] == [(5, LATE)]
    assert found.waiting == ()


def test_a_batch_that_still_waits_is_left_out_until_it_is_answered() -> None:
    open_batch = [user("go"), call("a", "b"), answer("b", "here")]
    found = settled(*open_batch)
    assert numbers(found) == [1]
    assert (found.waiting, found.open) == (("a",), 2)
    assert [(one.seq, one.note) for one in found.dropped] == [(2, "results pending"), (3, "results pending")]
    answered = settled(*open_batch, answer("a", "there"))
    assert numbers(answered) == [1, 2, 3, 4]
    assert (answered.waiting, answered.open) == ((), None)


def test_a_reply_that_says_nothing_is_left_out_and_a_user_who_says_nothing_is_not() -> None:
    found = settled(user(""), say(""), say([]), call("a"), answer("a", ""))
    assert numbers(found) == [1, 4, 5]
    assert [one.note for one in found.dropped] == ["empty message", "empty message"]


@pytest.mark.parametrize("drafts", HISTORIES.values(), ids=HISTORIES)
def test_settling_again_changes_nothing(drafts: Drafts) -> None:
    once = settle(stored(drafts)).messages
    assert settle(once).messages == once
    assert settle(once).dropped == ()


def test_an_empty_history_has_an_empty_tail() -> None:
    assert settle(()) == Settled((), ())


def test_the_fixed_histories_have_what_the_tests_rely_on() -> None:
    assert {one.note for one in settle(stored(TALK)).dropped} == {
        "answers no call",
        "second result of the same call",
        "empty message",
    }
    assert settle(stored(LOOP)).waiting == ("y",)


def broken(*calls: str) -> dict[str, Any]:
    """A reply that broke off."""
    return {**(call(*calls) if calls else say("One, tw")), "meta": {"incomplete": "abandoned"}}


@pytest.mark.parametrize(
    ("after", "kept"),
    [
        ([], [1]),
        ([say("one, two")], [1, 3]),
        ([broken()], [1]),
        ([broken(), say("one, two")], [1, 4]),
        ([user("Why?")], [1, 2, 3]),
        ([user("Why?"), say("So.")], [1, 2, 3, 4]),
    ],
)
def test_a_reply_that_broke_off_is_kept_only_if_somebody_answers_it(after: list[Any], kept: list[int]) -> None:
    assert numbers(settled(user("go"), broken(), *after)) == kept


def test_a_call_of_a_reply_that_broke_off_is_kept_with_its_result() -> None:
    assert numbers(settled(user("go"), broken("a"), answer("a"))) == [1, 2, 3]
    assert numbers(settled(user("go"), broken("a"), call("a"), answer("a"))) == [1, 3, 4]
