"""Would it fit: a dry run of the next call with another budget."""

import pytest
from recorded_requests import import_recording
from serve.page.views.looking import look
from serve.page.views.sessions import HERE, TOOLS, truth, working
from turn.scenes import stage

import daypack
from daypack.errors import BadInput
from daypack.serve.page.views.opened import OpenedHome


def test_a_pack_of_each_size_is_the_one_that_a_turn_would_have(page: OpenedHome, home: str) -> None:
    session, _ = working(home)
    session.append("user", "And the orchard?")
    for budget in (3000, 6000, 100_000):
        shown = look(page, "fit", **HERE, budget=budget)
        turn = session.prepare(budget=budget, tools=TOOLS, dry_run=True)
        assert shown["problem"] is None
        assert (shown["tokens"], shown["messages"]) == (turn.tokens, len(turn.parts.messages))
        assert shown["of_messages"] == len(session.messages())
        assert shown["budget_tokens"] == budget >= shown["tokens"]
        assert [row["item"] for row in shown["omitted"]] == [omission.item for omission in turn.omitted]
        assert {found["id"] for found in shown["items"]} >= {"tools", *(found.id for found in turn.inserted)}
        assert sum(shown["split"]) == shown["tokens"]
        assert min(shown["split"]) >= 0
        assert len(shown["split"]) == len(shown["parts"])


def test_more_room_holds_more_messages(page: OpenedHome, home: str) -> None:
    working(home)
    small, large = (look(page, "fit", **HERE, budget=budget) for budget in (4000, 200_000))
    assert small["messages"] < large["messages"] == large["of_messages"]
    assert small["omitted"]
    assert large["new_epoch"] == "the budget changed"


def test_a_budget_that_is_too_small_is_a_problem_and_no_error(page: OpenedHome, home: str) -> None:
    working(home)
    for budget in (0, 1, 40):
        shown = look(page, "fit", **HERE, budget=budget)
        assert shown["problem"]["message"]
        assert shown["problem"]["hint"]
        assert (shown["tokens"], shown["items"], shown["omitted"]) == (None, [], [])


def test_a_session_without_a_question_has_no_pack(page: OpenedHome, home: str) -> None:
    stage(home)
    shown = look(page, "fit", **HERE, budget=4000)
    assert "no user message" in shown["problem"]["message"]
    assert shown["of_messages"] == 0


@pytest.mark.parametrize("budget", ["many", "-5", "1e3", "", "2000001"])
def test_a_budget_that_is_no_number_or_too_large_is_refused(page: OpenedHome, home: str, budget: str) -> None:
    stage(home)
    with pytest.raises(BadInput, match="budget"):
        look(page, "fit", **HERE, budget=budget)


def test_an_imported_session_shows_what_daypack_would_pack(page: OpenedHome, home: str) -> None:
    import_recording(home)
    with daypack.open_session("notes", home=home, create=False) as session:
        before = truth(session)
        turn = session.prepare(budget=8000, dry_run=True)
    shown = look(page, "fit", agent="default", session="notes", budget=8000)
    assert (shown["tokens"], shown["messages"]) == (turn.tokens, len(turn.parts.messages))
    assert shown["new_epoch"] == "first turn"
    assert truth(session) == before


def test_no_byte_of_the_session_is_written(page: OpenedHome, home: str) -> None:
    session, _ = working(home)
    session.append("user", "And the orchard?")
    before = truth(session)
    for budget in range(200, 12_000, 900):
        look(page, "fit", **HERE, budget=budget)
    page.close()
    assert truth(session) == before
