"""Explanations: why an item is in a turn or not."""

import pytest
from turn.scenes import converse, item, stage

from daypack.errors import NotFound
from daypack.session import Session
from daypack.turn.evidence.explain import find_omission
from daypack.types.kinds import OMISSION_REASONS


def furnished(home: str) -> Session:
    session = stage(home)
    session.pin("system", "You are a pilot.")
    session.add_question("Who pays?")
    converse(session, 12)
    session.append("user", "What of the glacier 1?")
    return session


def test_every_item_message_and_missing_thing_is_explained(home: str) -> None:
    session = furnished(home)
    turn = session.prepare(budget=900, items=[item(item_id="a", content="x", visibility=["tool"])])
    assert turn.explain("pin:system.md").startswith("in   pin:system.md: frozen prefix")
    assert "it is pinned" in turn.explain("context/pinned/system.md")
    assert "in the tail" in turn.explain("messages:25")
    assert turn.explain("msg-25") == turn.explain("messages:25") == turn.explain("25")
    assert turn.explain("item:a") == "out  item:a: not_visible_to_target (it may not be shown to this target)"
    quoted = next(one for one in turn.parts.volatile if one.span)
    assert "score" in turn.explain(quoted.id)
    assert turn.explain(f"messages:{quoted.range}") == turn.explain(quoted.id)
    unquoted = next(n for n in range(1, turn.parts.epoch.start) if f"past:{n}" not in turn.explain())
    assert "budget_limit" in turn.explain(f"messages:{unquoted}")
    assert "Who pays?" in turn.explain(turn.missing[0].id)


def test_all_of_it_is_a_line_each(home: str) -> None:
    turn = furnished(home).prepare(budget=900)
    lines = turn.explain().split("\n")
    assert lines[0].startswith(f"{turn.tokens:,} tokens of 900 for model; an epoch begins (first)")
    parts = (*turn.parts.epoch.prefix, *turn.parts.volatile)
    inside = len(parts) + 1  # the tail is one
    assert [line[:5] for line in lines[1:]] == ["in   "] * inside + ["out  "] * len(turn.omitted) + ["gone "]


def test_what_a_turn_did_not_know_is_not_explained(home: str) -> None:
    turn = furnished(home).prepare()
    for name in ("messages:99", "99", "pin:other.md", "", "messages:x"):
        with pytest.raises(NotFound, match="not available"):
            turn.explain(name)


def test_a_replayed_turn_explains_itself_in_the_same_words(home: str) -> None:
    session = furnished(home)
    turn = session.prepare(budget=900)
    assert session.replay(turn.event_id or "").explain() == turn.explain()


def test_every_reason_has_a_meaning_in_words() -> None:
    from daypack.turn.evidence import explain as explanation

    assert set(explanation._MEANING) == set(OMISSION_REASONS)  # pyright: ignore[reportPrivateUsage]


def test_a_message_is_found_in_the_range_it_was_left_out_with(home: str) -> None:
    turn = furnished(home).prepare(budget=900)
    assert find_omission(turn.omitted, "messages:2") is find_omission(turn.omitted, "msg-2") is not None
    assert find_omission(turn.omitted, "messages:25") is None
