"""What an observed turn contained: by source, with the messages of history it is from."""

import pytest

from daypack.errors import NotFound
from daypack.session import Session
from daypack.turn.evidence.observed.calls import Call, newest_calls
from daypack.turn.evidence.observed.explain import ObservedExplanation, explain_observed, parts_named, why_missing
from daypack.turn.evidence.observed.request import open_observed


def calls_of(session: Session) -> list[Call]:
    return [entry for entry in newest_calls(session.history) if isinstance(entry, Call)][::-1]


def explained(session: Session, number: int) -> ObservedExplanation:
    call = calls_of(session)[number]
    return explain_observed(session.history, call, open_observed(session.history, call.event))


def test_every_part_has_a_source_and_nothing_is_unknown(notes: Session) -> None:
    for number in range(9):
        found = explained(notes, number)
        assert "unknown" not in {part.source for part in found.parts}
        assert found.tokens == sum(part.tokens or 0 for part in found.parts)


def test_what_the_program_put_in_is_told_from_what_was_said(notes: Session) -> None:
    totals = {total.source: total for total in explained(notes, 2).sources}
    assert list(totals) == [
        "tools",
        "system",
        "instructions",
        "user",
        "hooks",
        "reminders",
        "thinking",
        "assistant",
        "tool calls",
        "tool results",
    ]
    assert totals["instructions"].names == ("CLAUDE.md",)
    assert totals["hooks"].names == ("SessionStart", "UserPromptSubmit")
    assert totals["reminders"].names == ("environment", "model", "date")
    assert totals["user"].refs == (1, 5)
    assert totals["tool calls"].names == totals["tool results"].names == ("mcp__notes__read_notes",)
    assert totals["tool results"].refs == (3,)


def test_the_summary_of_a_compaction_is_a_source_of_its_own(notes: Session) -> None:
    (total,) = [total for total in explained(notes, 6).sources if total.source == "summary"]
    assert notes.messages(total.refs[0])[0].text.startswith("This session is being continued")


def test_tokens_by_source_are_shares_of_what_was_reported(notes: Session) -> None:
    found = explained(notes, 8)
    scaled = [found.scaled(part.tokens) or 0 for part in found.parts]
    assert found.call.input_tokens is not None
    assert abs(sum(scaled) - found.call.input_tokens) < len(scaled)


def test_an_image_in_a_result_costs_what_an_image_costs(notes: Session) -> None:
    parts = parts_named(explained(notes, 3), "mcp__notes__picture")
    result = next(part for part in parts if part.source == "tool results")
    assert result.tokens is not None
    assert result.tokens < 500, "not its base64"


@pytest.mark.parametrize("item", ["messages:5", "msg-5", "5"])
def test_a_message_of_history_is_found_in_the_call(notes: Session, item: str) -> None:
    (part,) = parts_named(explained(notes, 2), item)
    assert (part.source, part.message, part.preview) == ("user", 6, "now read them again, with the picture")


@pytest.mark.parametrize("item", ["hooks", "SessionStart", "CLAUDE.md", "mcp__notes__picture", "system"])
def test_parts_are_found_by_source_and_by_name(notes: Session, item: str) -> None:
    assert parts_named(explained(notes, 2), item)


def test_why_a_message_is_not_in_a_call(notes: Session) -> None:
    calls = calls_of(notes)
    assert "left the window with the compaction" in why_missing(notes.history, calls[6], "messages:3")
    assert "came after this call" in why_missing(notes.history, calls[0], "msg-5")
    assert why_missing(notes.history, calls[0], "messages:9999") == ""
    with pytest.raises(NotFound, match="'nothing' is not in this call"):
        parts_named(explained(notes, 0), "nothing")
