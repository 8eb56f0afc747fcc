"""Differences between observed turns."""

from daypack.session import Session
from daypack.turn.evidence.observed.calls import Call, newest_calls
from daypack.turn.evidence.observed.diff import ObservedDifference, compare_observed
from daypack.turn.evidence.observed.links import Links
from daypack.turn.evidence.observed.request import open_observed


def compared(session: Session, before: int, after: int) -> ObservedDifference:
    calls = [entry for entry in newest_calls(session.history) if isinstance(entry, Call)][::-1]
    turns = [open_observed(session.history, calls[number].event) for number in (before, after)]
    return compare_observed(turns[0], turns[1], Links(session.history))


def test_the_next_call_of_a_turn_adds_a_reply_and_a_result(notes: Session) -> None:
    found = compared(notes, 0, 1)
    assert (found.kept, found.common) == (2, 2)
    assert [(change.change, change.position, change.role) for change in found.changes] == [
        ("added", 3, "assistant"),
        ("added", 4, "user"),
    ]
    assert {part.ref for change in found.changes for part in change.parts} == {"messages:2", "messages:3"}
    assert (found.parameters, found.system, found.tools_added) == ((), (), ())


def test_a_new_tool_is_named(notes: Session) -> None:
    found = compared(notes, 3, 4)
    assert found.tools_added == ("mcp__notes__count_lines",)
    assert (found.tools_removed, found.tools_changed) == ((), ())


def test_after_a_compaction_messages_are_removed_and_one_stays(notes: Session) -> None:
    found = compared(notes, 5, 6)
    assert found.kept == 0
    removed = [change for change in found.changes if change.change == "removed"]
    added = [change for change in found.changes if change.change == "added"]
    assert (len(removed), len(added)) == (14, 5)


def test_another_model_changes_parameters(notes: Session) -> None:
    found = compared(notes, 6, 7)
    names = {change.name: (change.before, change.after) for change in found.parameters}
    assert names["model"] == ("claude-opus-5-5", "claude-haiku-4-5-20251001")
    assert names["max_tokens"] == (128_000, 32_000)


def test_a_turn_does_not_differ_from_itself(notes: Session) -> None:
    found = compared(notes, 4, 4)
    assert (found.changes, found.kept, found.common) == ((), 12, 12)
