"""Names in messages that left the window: weighted by age and use, bounded, without those that are shown elsewhere."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from turn.compacting import BUDGET, fill
from turn.scenes import SECRET, stage

from daypack.derived.names import MAX_NAMES, choose_names, everything_in, list_names, rank_names
from daypack.turn.items import Item
from daypack.turn.turn import Turn
from daypack.types.history import Message, ToolCall

WEIGHTS = st.dictionaries(st.from_regex(r"[a-z]{2,6}_[a-z]{2,6}", fullmatch=True), st.floats(0.01, 9), max_size=30)


def said(seq: int, text: str, role: Any = "user", **fields: Any) -> Message:
    return Message(seq=seq, id=f"msg-{seq}", role=role, content=text, **fields)


def names_item(turn: Turn) -> Item | None:
    return next((item for item in turn.parts.epoch.prefix if item.id == "names"), None)


def test_recent_and_frequent_names_weigh_more() -> None:
    messages = [said(1, "old_name"), said(80, "new_name"), said(81, "often_used"), said(82, "often_used")]
    weights = rank_names(messages, 82, {}, 0)
    assert sorted(weights, key=lambda name: -weights[name]) == ["often_used", "new_name", "old_name"]


def test_a_name_that_somebody_wrote_weighs_more_than_one_in_an_output() -> None:
    output = said(2, "in_output", "tool", tool_call_id="c")
    weights = rank_names([said(2, "by_user"), output], 2, {}, 0)
    assert weights["by_user"] > weights["in_output"]


def test_names_of_earlier_compactions_fade_and_come_back_when_they_are_used() -> None:
    faded = rank_names([], 50, {"run_all": 2.0, "load_all": 2.0}, 10)
    assert faded == {"run_all": 1.0, "load_all": 1.0}
    used = rank_names([said(50, "run_all")], 50, {"run_all": 2.0, "load_all": 2.0}, 10)
    assert used["run_all"] > 2 > used["load_all"]


def test_arguments_count_without_their_keys() -> None:
    call = ToolCall(id="c", name="edit_file", arguments='{"file_path": "src/app.py", "lines": ["run_all"]}')
    text = everything_in(said(1, "Now.", "assistant", tool_calls=(call,)))
    assert set(rank_names([said(1, "Now.", "assistant", tool_calls=(call,))], 1, {}, 0)) == {"src/app.py", "run_all"}
    assert "file_path" not in text


@pytest.mark.parametrize("arguments", ["no json at all: run_all", "[" * 5000, '"run_all"', "null"])
def test_any_arguments_can_be_read(arguments: str) -> None:
    call = ToolCall(id="c", name="shell", arguments=arguments)
    assert ("run_all" in everything_in(said(1, "", "assistant", tool_calls=(call,)))) == ("run_all" in arguments)


def test_names_that_the_window_still_shows_are_not_chosen() -> None:
    assert choose_names({"run_all": 1.0, "load_all": 1.0}, "then load_all()") == {"run_all": 1.0}


def test_at_most_so_many_names_are_kept_the_heaviest() -> None:
    weights = {f"name_{number}": float(number) for number in range(1, 2 * MAX_NAMES)}
    chosen = choose_names(weights, "")
    assert len(chosen) == MAX_NAMES
    assert min(chosen.values()) == MAX_NAMES


@given(WEIGHTS, st.text(max_size=40), st.integers(0, 200))
def test_a_list_has_the_heaviest_unknown_names_that_fit(weights: dict[str, float], known: str, most: int) -> None:
    listed = list_names(weights, known, most).split()
    assert len(" ".join(listed)) <= most
    assert set(listed) <= set(weights)
    assert not any(name in known for name in listed)
    unknown = sorted((name for name in weights if name not in known), key=lambda name: (-weights[name], name))
    assert listed == unknown[: len(listed)]


def test_what_left_the_window_is_named_in_the_prefix_and_is_the_same_after_a_replay(home: str) -> None:
    session = stage(home)
    session.append("user", "Look at src/harbour/lamp_keeper.py and its find_lighthouse().")
    session.append("assistant", "I will.")
    turn, _ = fill(session, 1)
    listed = names_item(turn)
    assert listed
    known = "\n".join(item.text for item in turn.parts.epoch.prefix if item is not listed)
    for name in ("src/harbour/lamp_keeper.py", "find_lighthouse"):
        assert (name in listed.text) != (name in known)
    assert session.compactions[-1].names
    assert session.replay(turn.event_id or "").messages() == turn.messages()
    assert turn.tokens <= BUDGET


def test_a_secret_is_no_name(home: str) -> None:
    session = stage(home)
    session.append("user", f"The key of lamp_keeper is {SECRET}.")
    session.append("assistant", "I will keep it.")
    fill(session, 1)
    assert "lamp_keeper" in session.compactions[-1].names
    assert not any("ghp_" in name for name in session.compactions[-1].names)


def test_a_compaction_that_is_undone_takes_its_names_back(home: str) -> None:
    session = stage(home)
    session.append("user", "Look at find_lighthouse().")
    session.append("assistant", "I will.")
    _, number = fill(session, 1)
    first = session.compactions[-1].names
    fill(session, 1, number)
    session.undo()
    assert session.compactions[-1].names == first
