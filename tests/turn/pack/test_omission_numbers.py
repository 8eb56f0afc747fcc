"""An omission for want of room states the numbers it rests on, and they are true; a child's result is never lost."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from turn.scenes import SECRET, stage

import daypack
from daypack.errors import BudgetTooSmall
from daypack.session import Session
from daypack.turn.evidence.explain import explain_item
from daypack.turn.items import Cost
from daypack.turn.turn import Turn

RESULT = "# Verdict\nThe build is broken in module seven.\n" + "A line about the review of one module.\n" * 3000


def opened(home: str, budget: int = 32_000) -> Session:
    session = stage(home)
    session.append("user", "What did the child find?")
    session.set_budget(budget)
    return session


def check_numbers(turn: Turn) -> int:
    """Check every stated shortage of a turn; return how many there are."""
    stated = 0
    envelope = {omission.item_ref: omission for omission in turn.envelope.selections[0].omitted_item_refs}
    for omission in turn.omitted:
        text = str(explain_item(turn, omission.item))
        assert "does not fit into the budget" not in text
        if not (shortage := omission.shortage):
            continue
        stated += 1
        assert omission.reason in ("budget_limit", "too_large")
        assert shortage.needed > shortage.free, omission
        assert shortage.free <= shortage.limit, omission
        tools = turn.record.tools
        room = turn.record.limits.room_beside(Cost(tools.tokens) if tools else Cost())
        whole = getattr(room, shortage.unit)
        assert shortage.limit <= whole
        assert (shortage.needed > whole) is (omission.reason == "too_large"), omission
        assert omission.reason != "too_large" or shortage.limit == whole, omission
        if shortage.unit == "tokens":
            assert shortage.needed == omission.tokens
        assert str(shortage) in text
        assert envelope[omission.item].shortage == shortage
    return stated


@pytest.mark.requirement("S4-DD6", "S4-PK8")
def test_a_result_too_large_for_the_window_enters_as_a_line_that_says_how_to_read_it(home: str) -> None:
    session = opened(home)
    session.put_child("rev", handoff="Review it.", result=RESULT)
    turn = session.prepare()
    (line,) = [item for item in turn.parts.epoch.prefix if item.kind == "child_result"]
    assert "The build is broken in module seven." in line.text
    assert "recall child:rev" in line.text
    assert "context/child/rev/result.md" in line.text
    assert line.text in turn.quoted
    assert session.recall("child:rev").text.startswith("# Verdict")
    (item,) = [item for item in turn.items if item.kind == "child_result"]
    assert item.source == "context/child/rev/result.md"
    (omission,) = [omission for omission in turn.omitted if omission.item == "child_result:rev"]
    assert omission.note == "shown: a line with how it begins"
    assert check_numbers(turn) == 1
    pack = json.loads((session.path / "context" / "pack.json").read_text())
    (recorded,) = pack["omitted"]
    assert recorded["shortage"] == msgspec.to_builtins(omission.shortage)
    assert session.replay(turn.event_id or "").request("openai") == turn.request("openai")


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.requirement("S4-DD6", "S3-O5")
def test_every_turn_of_an_epoch_states_the_reason_and_the_numbers_of_its_first(home: str, *, reopened: bool) -> None:
    session = opened(home)
    session.put_child("rev", handoff="Review it.", result=RESULT)
    first = session.prepare()
    session.append("assistant", "It is broken.")
    session.append("user", "Where?")
    if reopened:
        session.close()
        session = stage(home)
    second = session.prepare()
    assert not second.new_epoch
    of_result = [omission for turn in (first, second) for omission in turn.omitted if "child_result:" in omission.item]
    assert of_result[0].shortage is not None
    assert of_result == [of_result[0]] * 2
    assert second.explain("child_result:rev") == first.explain("child_result:rev")
    assert check_numbers(second) == 1


@pytest.mark.requirement("S4-DD6")
def test_the_newest_result_is_not_absent_either_whatever_the_epoch_holds(home: str) -> None:
    session = opened(home)
    session.put_child("one", result="Short and fine.")
    session.prepare()
    for name in ("two", "three", "four"):
        session.append("assistant", "I wait.")
        session.append("user", f"And {name}?")
        session.put_child(name, handoff="Look.", result=f"# {name}\nThe answer of {name} is number 17.\n{RESULT}")
        turn = session.prepare()
        assert f"The answer of {name} is number 17." in turn.system + json.dumps(turn.request("openai"))
        check_numbers(turn)
        again = session.prepare()
        assert f"The answer of {name} is number 17." in again.system + json.dumps(again.request("openai"))


def test_the_line_of_a_result_shows_no_secret(home: str) -> None:
    session = opened(home)
    session.put_child("rev", result=f"The key is {SECRET} and it works.\n{RESULT}")
    turn = session.prepare()
    assert "The key is" in turn.quoted
    assert SECRET not in turn.quoted
    assert SECRET[:12] not in turn.quoted


@pytest.mark.requirement("S3-O5")
def test_a_reason_is_not_the_budget_when_the_budget_is_almost_empty(home: str) -> None:
    session = opened(home)
    session.put_child("rev", result=RESULT)
    turn = session.prepare()
    assert turn.tokens < 2_000
    text = turn.explain("child_result:rev")
    assert "whole budget" not in text
    assert "needs 27" in text
    assert "were free" in text


def test_messages_before_the_tail_are_explained_by_where_it_starts(home: str) -> None:
    session = opened(home, 2_000)
    session.append_many(
        {"role": role, "content": f"{role} {number} " * 40} for number in range(60) for role in ("assistant", "user")
    )
    turn = session.prepare()
    (omission,) = [one for one in turn.omitted if one.item.startswith("messages:") and one.reason == "budget_limit"]
    text = turn.explain(omission.item)
    assert f"before the tail, which starts at message {turn.parts.epoch.start}" in text


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_every_stated_number_is_true_in_random_windows(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    home = str(tmp_path_factory.mktemp("window"))
    sizes = st.integers(1, 3_000)
    with daypack.open_session("work", home=home, workspace="", durability="os") as session:
        session.append("user", "Go on. " * data.draw(st.integers(1, 60)))
        for number in range(data.draw(st.integers(0, 4))):
            session.put_child(f"c{number}", result=f"Result {number}. " * data.draw(sizes))
        for number in range(data.draw(st.integers(0, 3))):
            session.pin(f"p{number}", f"Rule {number}. " * data.draw(sizes))
        items = [
            {"item_id": f"i{number}", "context_kind": "manual_note", "content": f"Note {number}. " * data.draw(sizes)}
            for number in range(data.draw(st.integers(0, 4)))
        ]
        limits: dict[str, int] = {"tokens": data.draw(st.integers(600, 20_000))}
        if data.draw(st.booleans()):
            limits["bytes"] = data.draw(st.integers(2_000, 60_000))
        if data.draw(st.booleans()):
            limits["items"] = data.draw(st.integers(3, 12))
        for _ in range(2):
            try:
                turn = session.prepare(budget=limits, items=items)
            except BudgetTooSmall:
                return
            check_numbers(turn)
            session.append("assistant", "Done. " * data.draw(st.integers(1, 300)))
            session.append("user", "More?")


def test_the_sources_of_a_pack_are_inside_the_session_or_named_by_a_scheme(home: str, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Be brief.")
    (tmp_path / "MEMORY.md").write_text("- The boat is blue.")
    session = daypack.open_session("work", home=home, workspace=str(tmp_path))
    session.append("user", "Hi")
    session.pin("note", "Pinned.")
    session.switch("voice", on=True)
    session.switch("protocol", on=True)
    session.put_child("rev", result="Fine.")
    session.add_rule("Never use the word delve.")
    for item in session.prepare(budget=8000).items:
        assert not item.source.startswith("/")
        assert ".." not in item.source
        inside = (session.path / item.source).exists()
        assert inside or ":" in item.source.partition("/")[0] or item.source == "rules", item.source
