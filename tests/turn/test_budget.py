"""Limits: what a caller gives, what the file says, and what is left of a window for the pack."""

import os
from typing import Any

import pytest
from turn.windows import open_work, say, user

import daypack
from daypack.errors import BadConfig, BadInput, BudgetTooSmall, NoUserMessage
from daypack.session import Session
from daypack.turn.budget import Limits, limits_from, parse_budget_file
from daypack.turn.policy import DEFAULT_BUDGET_TOKENS


def write_budget(session: Session, text: str | bytes) -> str:
    path = session.history.layout.derived("budget")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.requirement("G10")
@pytest.mark.parametrize(
    ("window", "reserve"), [(1, 0), (4, 1), (2_000, 500), (16_000, 4_000), (16_384, 4_096), (1_000_000, 4_096)]
)
def test_a_quarter_of_the_window_at_most_4096_tokens_is_kept_for_the_answer(window: int, reserve: int) -> None:
    limits = Limits(window)
    assert limits.reserved_tokens == reserve
    assert limits.room.tokens == max(0, window - reserve - 7)


def test_what_has_no_limit_has_room_for_anything() -> None:
    room = Limits().room
    assert min(room) > 10**15
    assert Limits(bytes=100, items=7).room[1:] == (100, 7)
    assert Limits(bytes=100, items=7).room.tokens > 10**15


@pytest.mark.requirement("X44")
@pytest.mark.parametrize("budget", [0, {"tokens": 0}, {"bytes": 0}, {"tokens": 900, "items": 0}, Limits(0)])
def test_a_budget_of_nothing_that_a_caller_gives_fails(home: str, budget: Any) -> None:
    with open_work(home, [user("Hello.")]) as session, pytest.raises(BudgetTooSmall) as failure:
        session.prepare(budget=budget)
    assert failure.value.place == "budget"


@pytest.mark.requirement("X44")
def test_no_budget_means_what_the_file_says(home: str) -> None:
    with open_work(home, [user("Hello.")]) as session:
        assert session.prepare(dry_run=True).budget_tokens == DEFAULT_BUDGET_TOKENS
        write_budget(session, "777\n")
        assert session.prepare(dry_run=True).budget_tokens == 777
        assert session.prepare(budget=None, dry_run=True).budget_tokens == 777
        assert session.prepare(budget=555, dry_run=True).budget_tokens == 555


@pytest.mark.requirement("X32", "X44")
@pytest.mark.parametrize("text", ["0", "", " \n", "{}", '{"tokens": 0, "bytes": 0, "items": 0, "ms": 0}'])
def test_a_file_that_says_0_or_nothing_sets_no_limit(home: str, text: str) -> None:
    with open_work(home, [user("word " * 300), say("answer " * 300)] * 300 + [user("And now?")]) as session:
        write_budget(session, text)
        turn = session.prepare(dry_run=True)
    assert turn.record.limits == Limits()
    assert turn.budget_tokens is None
    assert len(turn.parts.messages) == 601
    assert turn.tokens > DEFAULT_BUDGET_TOKENS


@pytest.mark.requirement("X32", "S4-PK13")
def test_the_file_may_limit_tokens_bytes_items_and_time_and_targets_may_have_their_own(home: str) -> None:
    drafts = [user("Tell me more. " * 5), say("It is a long story. " * 5)] * 40 + [user("And now?")]
    with open_work(home, drafts) as session:
        write_budget(
            session,
            '{"tokens": 900, "bytes": 1500, "items": 9, "ms": 5000, "targets": {"ui": {"tokens": 400, "items": 0}}}',
        )
        model, ui = session.prepare(dry_run=True), session.prepare(target="ui", dry_run=True)
    assert model.record.limits == Limits(900, 1500, 9, 5000)
    assert model.record.used.fits(model.record.limits.room)
    assert ui.record.limits == Limits(400, 1500, None, 5000)
    assert ui.record.used.fits(ui.record.limits.room)
    assert len(model.parts.messages) > 1
    assert len(ui.parts.messages) > 1


def test_a_caller_may_limit_a_target_as_well() -> None:
    given = {"tokens": 900, "targets": {"ui": {"bytes": 50}}}
    assert limits_from(given, "ui") == Limits(900, 50)
    assert limits_from(given, "model") == Limits(900)
    assert limits_from({}, "model") == Limits()
    assert limits_from({"ms": 0}, "model") == Limits(ms=0)


@pytest.mark.parametrize(
    "budget",
    [-1, True, 1.5, "many", [1], {"token": 5}, {"tokens": "five"}, {"tokens": -1}, {"targets": {"moon": {}}}, 1 << 70],
)
def test_a_budget_that_is_none_is_refused_by_name(home: str, budget: Any) -> None:
    with open_work(home, [user("Hello.")]) as session, pytest.raises(BadInput) as failure:
        session.prepare(budget=budget)
    assert not isinstance(failure.value, BudgetTooSmall)
    assert (failure.value.operation, failure.value.place) == ("prepare", "budget")
    assert "tokens, bytes, items, ms" in failure.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "many",
        "-5",
        "1.5",
        "true",
        "null",
        "[1]",
        '"32000"',
        "32000 tokens",
        "{",
        '{"tokens": "five"}',
        '{"tokens": -5}',
        '{"token": 5}',
        '{"targets": {"moon": {"tokens": 5}}}',
        '{"targets": {"ui": 5}}',
        b"\xff\xfe",
        "[" * 100_000,
        "1" * 400,
        "NaN",
    ],
)
def test_a_file_that_cannot_be_understood_is_named(home: str, text: str | bytes) -> None:
    with open_work(home, [user("Hello.")]) as session:
        path = write_budget(session, text)
        with pytest.raises(BadConfig) as failure:
            session.prepare(dry_run=True)
        assert failure.value.place == path
        assert failure.value.operation == "read budget"
        assert "give a number of tokens" in failure.value.hint
        # Whoever says what they want needs no file.
        assert session.prepare(budget=500, dry_run=True).budget_tokens == 500


def test_the_text_of_the_file_is_read_the_same_by_itself() -> None:
    assert parse_budget_file(" 32000 ", "model", "place") == Limits(32_000)
    assert parse_budget_file('{"tokens": 10, "targets": {"model": {"tokens": 0}}}', "model", "place") == Limits()
    with pytest.raises(BadConfig, match="place"):
        parse_budget_file("?", "model", "place")


def test_a_session_without_a_question_has_nothing_to_answer(home: str) -> None:
    with open_work(home, [{"role": "system", "content": "Be kind."}, say("Hello?")]) as session:
        with pytest.raises(NoUserMessage):
            session.prepare()
        # Whoever looks on is shown what there is.
        assert [one.content for one in session.prepare(target="reviewer").parts.messages] == ["Be kind.", "Hello?"]


def test_a_budget_can_be_text_as_people_write_it(home: str) -> None:
    with daypack.open_session("talk", home=home) as session:
        session.append("user", "hello")
        assert session.prepare(budget="8k", dry_run=True).record.limits.tokens == 8000
        assert session.prepare(budget={"tokens": "1.5k", "items": 20}, dry_run=True).record.limits.tokens == 1500
        session.set_budget("32k")
        assert (session.path / "context" / "budget").read_text(encoding="utf-8") == "32000\n"
        (session.path / "context" / "budget").write_text("16k\n", encoding="utf-8")
        assert session.prepare(dry_run=True).record.limits.tokens == 16_000
        with pytest.raises(BadInput, match="'lots' is not a budget"):
            session.prepare(budget="lots")


@pytest.mark.parametrize(
    ("budget", "problem"),
    [
        ({"token": 5}, "there is no limit 'token'; did you mean tokens"),
        ({"tokens": True}, "tokens must be a whole number of 0 or more, got True"),
        ({"targets": {"uii": {}}}, "there is no target 'uii'; did you mean ui"),
        ({"targets": 5}, "targets must be an object"),
        ({"targets": {"ui": 5}}, "the limits of ui must be an object, got 5"),
        (8000.0, "the budget must be a whole number of 0 or more, got 8000.0"),
        (10**20, "the budget is larger than any window: 100000000000000000000"),
        ([1], r"the budget must be a whole number of 0 or more, got \[1\]"),
    ],
)
def test_a_wrong_limit_is_named(home: str, budget: Any, problem: str) -> None:
    with daypack.open_session("talk", home=home) as session:
        session.append("user", "hello")
        with pytest.raises(BadInput, match=problem):
            session.prepare(budget=budget)
