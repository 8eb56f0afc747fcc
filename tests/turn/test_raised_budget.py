"""A budget that is raised after a compaction: what it took out of the window returns, all of it or what fits."""

import pytest
from turn.scenes import stage

from daypack.session import Session


def talk(session: Session, tasks: int) -> None:
    for number in range(tasks):
        session.append("user", f"Question {number}: " + "harbour lantern " * 60)
        session.append("assistant", f"Answer {number}: " + "tide and rope " * 80)
    session.append("user", "And now?")


@pytest.mark.requirement("G8")
def test_a_raised_budget_that_holds_everything_sends_every_message_and_no_records_of_them(home: str) -> None:
    session = stage(home)
    talk(session, 80)
    small = session.prepare(budget=10_000)
    assert session.compactions
    assert small.parts.epoch.start > 1
    large = session.prepare(budget=128_000)
    assert [message.seq for message in large.parts.messages] == list(range(1, 162))
    assert large.parts.epoch.prefix == ()
    assert {omission.reason for omission in large.omitted} == {"duplicate"}
    session.append("assistant", "Now it is done.")
    session.append("user", "Thanks. What is next?")
    following = session.prepare(budget=128_000)
    assert not following.new_epoch
    assert following.omitted == ()
    for turn in (small, large, following):
        session.replay(str(turn.event_id))


def test_a_raised_budget_that_does_not_hold_everything_shows_as_much_as_one_that_was_never_smaller(home: str) -> None:
    session = stage(home)
    talk(session, 200)
    fresh = session.prepare(budget=32_000, dry_run=True)
    session.prepare(budget=10_000)
    raised = session.prepare(budget=32_000)
    assert raised.parts.epoch.compaction
    assert raised.tokens > 0.8 * fresh.tokens
    again = session.prepare(budget=10_000)
    assert again.tokens < 10_000
    assert session.prepare(budget=32_000).request() == raised.request()


def test_a_compaction_on_request_holds_until_the_budget_is_raised(home: str) -> None:
    session = stage(home)
    talk(session, 40)
    session.prepare(budget=32_000)
    assert session.compact().changed
    session.append("assistant", "Now it is done.")
    session.append("user", "What is next?")
    held = session.prepare(budget=32_000)
    assert held.parts.epoch.start > 1
    assert session.prepare(budget=40_000).parts.epoch.start == 1


def test_records_are_left_out_only_if_every_message_is_in_the_window(home: str) -> None:
    session = stage(home)
    for number in range(14):
        session.append("user", f"Question {number}: " + "please check the service and report its port. " * 5)
        calls = [{"id": f"c{number}{name}", "name": "look", "arguments": "{}"} for name in "abc"]
        session.append("assistant", "I look. " * 20, tool_calls=calls)  # unanswered: each gets a line in the window
        session.prepare(budget=2000)
    session.append("user", "And now?")
    assert session.compactions
    for budget in range(2600, 5000, 40):
        turn = session.prepare(budget=budget, dry_run=True)
        reasons = {omission.reason for omission in turn.omitted}
        assert not {"duplicate", "budget_limit"} <= reasons, budget
