"""Differences between two turns."""

from turn.scenes import converse, item, stage

from daypack.turn.evidence.diff import compare, ranges


def test_two_turns_are_compared(home: str) -> None:
    session = stage(home)
    session.pin("system", "You are a pilot.")
    converse(session, 12)
    session.append("user", "What of the glacier 1?")
    one = session.prepare(items=[item(item_id="a", content="x"), item(item_id="b", content="y")])
    session.accept("Blue.")
    session.append("user", "And the violin?")
    two = session.prepare(items=[item(item_id="b", content="z"), item(item_id="c", content="x")])
    found = compare(one, two)
    assert found.added == ("item:c",)
    assert found.dropped == ("item:a",)
    assert found.changed == ("item:b",)
    assert found.messages_added == "26-27"
    assert found.messages_dropped is None
    assert found.tokens == (one.tokens, two.tokens)
    assert found.prefix_kept
    assert found.tail_kept
    assert found.epoch_kept
    session.refresh()
    session.pin("system", "You are a captain.")
    three = session.prepare()
    assert not compare(two, three).prefix_kept
    assert not compare(two, three).epoch_kept


def test_numbers_are_spelled_as_ranges() -> None:
    assert ranges([]) is None
    assert ranges([3]) == "3"
    assert ranges([3, 4, 5, 7, 9, 10]) == "3-5, 7, 9-10"
