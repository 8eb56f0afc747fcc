"""Explanations: why an item is in a turn or not."""

import pytest
from turn.scenes import converse, item, stage

from daypack.errors import NotFound
from daypack.session import Session
from daypack.turn.evidence.explain import MEANINGS, find_omission
from daypack.turn.items import Excerpt
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
    assert turn.explain("pin:system.md") == "included: pin:system.md, 7 tokens in the prefix; pinned, authority system"
    assert "pinned" in turn.explain("context/pinned/system.md")
    assert turn.explain("messages:25").startswith("included: messages:25, in the tail; ")
    assert turn.explain("msg-25") == turn.explain("messages:25") == turn.explain("25")
    assert turn.explain("item:a") == "omitted: item:a; not_visible_to_target: this target may not see it"
    quoted = next(one for one in turn.inserted if isinstance(one, Excerpt))
    assert "score" in turn.explain(quoted.id)
    assert turn.explain(f"messages:{quoted.range}") == turn.explain(quoted.id)
    unquoted = next(n for n in range(1, turn.parts.epoch.start) if f"excerpt:{n}" not in turn.explain())
    assert "budget_limit" in turn.explain(f"messages:{unquoted}")
    assert "Who pays?" in turn.explain(turn.missing[0].id)


def test_all_of_it_is_a_line_each(home: str) -> None:
    turn = furnished(home).prepare(budget=900)
    lines = turn.explain().split("\n")
    assert lines[0] == f"{turn.tokens:,} of 900 tokens; new epoch (first); expected cache hit: 0 tokens"
    inside = len(turn.inserted) + 1  # the messages are one
    states = ["state", *["included"] * inside, *["omitted"] * len(turn.omitted), "missing"]
    assert [line.split()[0] for line in lines[2:]] == states


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
    assert set(MEANINGS) == set(OMISSION_REASONS)


def test_reasons_of_a_newer_version_are_replayed_and_printed_as_recorded(home: str) -> None:
    session = furnished(home)
    turn = session.prepare(items=[item(item_id="a", content="x", visibility=["tool"])])
    event = next(event for event in session.events() if event.id == turn.event_id)
    omitted = [{**omission, "reason": "quarantined"} for omission in event.data["omitted"]]
    opening = {**event.data["opening"], "reason": "model_changed"}
    newer = session.append_event(event.type, {**event.data, "omitted": omitted, "opening": opening})
    replayed = session.replay(newer.id)
    assert replayed.messages() == turn.messages()
    assert replayed.explain("item:a") == "omitted: item:a; quarantined"
    session.append("assistant", "It melts.")
    following = session.prepare()
    assert following.record.epoch == newer.id


def test_a_message_is_found_in_the_range_it_was_left_out_with(home: str) -> None:
    turn = furnished(home).prepare(budget=900)
    assert find_omission(turn.omitted, "messages:2") is find_omission(turn.omitted, "msg-2") is not None
    assert find_omission(turn.omitted, "messages:25") is None


def test_an_omission_names_the_numbers_it_rests_on(home: str) -> None:
    session = furnished(home)
    turn = session.prepare(budget=900, items=[item(item_id="big", content="walrus " * 2000)])
    omission = find_omission(turn.omitted, "item:big")
    assert omission is not None
    assert omission.shortage is not None
    assert omission.shortage.needed == omission.tokens
    free, limit = omission.shortage.free, omission.shortage.limit
    assert f"needs {omission.tokens:,} tokens, {free:,} of {limit:,} were free" in turn.explain("item:big")


def test_the_columns_of_the_table_are_aligned(home: str) -> None:
    turn = furnished(home).prepare(budget=900)
    header, *rows = turn.explain().split("\n")[2:]
    at = header.index("item")
    assert all(row[at - 2 : at] == "  " and row[at] != " " for row in rows)


def test_a_line_break_in_a_question_makes_no_second_row(home: str) -> None:
    session = furnished(home)
    session.add_question("Who?\nincluded  prefix  7  pin:forged")
    turn = session.prepare()
    assert not any("forged" in line and line.startswith("included") for line in turn.explain().splitlines())
