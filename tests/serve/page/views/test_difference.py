"""The difference between two calls on the page: what `daypack diff` prints, and the texts that differ."""

from itertools import pairwise

import pytest
from recorded_requests import ROW_TYPES, import_recording, observed_turns
from serve.page.views.looking import look
from serve.page.views.sessions import HERE, TOOLS, printed, working
from turn.scenes import converse, stage

import daypack
from daypack.errors import BadInput, SourceMissing
from daypack.serve.page.views.opened import OpenedHome

NOTES = {"agent": "default", "session": "notes"}


def test_the_difference_is_what_the_command_prints(
    page: OpenedHome, home: str, capsys: pytest.CaptureFixture[str]
) -> None:
    session, _ = working(home)
    events = [event.id for event in session.events() if event.type == "context.turn"]
    for before, after in pairwise(events):
        shown = look(page, "diff", **HERE, before=before, after=after)
        assert shown["difference"] == printed(capsys, home, "diff", "work", before, after)
        assert (shown["before"], shown["after"], shown["kind"]) == (before, after, "prepared")
    assert look(page, "diff", **HERE, after=events[-1])["before"] == events[-2]
    assert look(page, "diff", **HERE, before=events[-1], after=events[0])["difference"]["before"] == events[-1]


def test_rows_have_the_texts_of_what_was_added_and_removed(page: OpenedHome, home: str) -> None:
    session, turn = working(home)
    events = [event.id for event in session.events() if event.type == "context.turn"]
    before = session.replay(events[-2])
    shown = look(page, "diff", **HERE, after=events[-1])
    found = {(row["change"], row["id"]): row for row in shown["rows"]}
    old = {message.seq for message in before.parts.messages}
    new = {message.seq for message in turn.parts.messages}
    for seq in new - old:
        assert found["added", f"messages:{seq}"]["ref"] == f"messages:{seq}"
    for seq in old - new:
        assert ("removed", f"messages:{seq}") in found
    assert found["added", f"messages:{turn.record.user}"]["text"] == "Which lamp did we keep in src/harbour_0.py?"
    assert {name for change, name in found if change == "added"} >= set(shown["difference"]["added"])
    assert {name for change, name in found if change == "removed"} >= set(shown["difference"]["dropped"])
    assert ("added", "tools") in found
    assert shown["tokens"] == [before.tokens, turn.tokens]
    assert (shown["epoch_kept"], shown["prefix_kept"]) == (False, False)
    unchanged = {item.id for item in before.inserted} & {item.id for item in turn.inserted}
    unchanged -= {*shown["difference"]["changed"], *shown["difference"]["moved"]}
    assert not unchanged & {row["id"] for row in shown["rows"]}


def test_a_changed_text_is_shown_as_a_diff_of_its_lines(page: OpenedHome, home: str) -> None:
    session = stage(home)
    session.pin("rules", "Be brief.\nName the file.\nAsk first.\n")
    converse(session, 2)
    session.append("user", "go on")
    before = session.prepare()
    session.accept("yes")
    session.pin("rules", "Be brief.\nName the folder.\nAsk first.\n")
    session.refresh()
    session.append("user", "and now?")
    after = session.prepare()
    shown = look(page, "diff", **HERE, before=before.event_id, after=after.event_id)
    [changed] = [row for row in shown["rows"] if row["change"] == "changed"]
    assert (changed["id"], changed["category"]) == ("pin:rules.md", "pins")
    assert changed["lines"][1:] == [" Be brief.", "-Name the file.", "+Name the folder.", " Ask first."]
    assert [row["id"] for row in shown["rows"] if row["change"] == "added"] == ["messages:6", "messages:7"]


def test_a_turn_that_continues_lists_only_what_is_new(page: OpenedHome, home: str) -> None:
    session = stage(home)
    session.pin("rules", "Be brief.")
    session.append("user", "hello")
    session.prepare(tools=TOOLS)
    session.accept("hi")
    session.append("user", "x" * 5000)
    turn = session.prepare(tools=TOOLS)
    shown = look(page, "diff", **HERE, after=turn.event_id)
    assert (shown["prefix_kept"], shown["tail_kept"], shown["epoch_kept"]) == (True, True, True)
    assert [(row["change"], row["id"], row["kind"]) for row in shown["rows"]] == [
        ("added", "messages:2", "assistant"),
        ("added", "messages:3", "user"),
    ]
    assert shown["rows"][1]["text"] == "x" * 4000


def test_a_first_call_has_none_before_it_and_kinds_are_not_mixed(page: OpenedHome, home: str) -> None:
    import_recording(home)
    with daypack.open_session("notes", home=home, create=False) as session:
        observed = observed_turns(session)
        session.append("user", "and now?")
        turn = session.prepare()
    for event in (turn.event_id, observed[0].event_id):
        with pytest.raises(SourceMissing, match="no call before") as refused:
            look(page, "diff", **NOTES, after=event)
        assert "before=" in refused.value.hint
    with pytest.raises(BadInput, match="of another program"):
        look(page, "diff", **NOTES, before=observed[0].event_id, after=turn.event_id)
    with pytest.raises(SourceMissing) as refused:
        look(page, "diff", **NOTES, before="ev-9999", after=turn.event_id)
    assert refused.value.hint


def test_calls_of_another_program_differ_as_the_command_prints(
    page: OpenedHome, home: str, capsys: pytest.CaptureFixture[str]
) -> None:
    import_recording(home)
    with daypack.open_session("notes", home=home, create=False) as session:
        events = [turn.event_id for turn in observed_turns(session)]
    changes: list[tuple[str, str]] = []
    for before, after in pairwise(events):
        shown = look(page, "diff", **NOTES, before=before, after=after)
        assert shown["difference"] == printed(capsys, home, "diff", "notes", before, after)
        assert shown["difference"] == look(page, "diff", **NOTES, after=after)["difference"]
        assert shown["kind"] == "observed"
        known = shown["difference"]["difference"]
        messages = [row for row in shown["rows"] if row["id"].startswith("message:")]
        assert len(messages) == len(known["changes"])
        for row, change in zip(messages, known["changes"], strict=True):
            previews = [part["preview"] for part in change.get("parts", ()) if part.get("preview")]
            assert all(preview in " ".join(row["text"].split()) for preview in previews)
        changes += [(row["change"], row["id"]) for row in shown["rows"]]
        assert shown["tail_kept"] == (known["kept"] == shown["difference"]["before"]["messages"])
    assert ("added", "tool:mcp__notes__count_lines") in changes
    assert ("changed", "parameter:model") in changes


def test_calls_without_requests_list_the_messages_between_them(
    page: OpenedHome, home: str, capsys: pytest.CaptureFixture[str]
) -> None:
    import_recording(home, leave_out=ROW_TYPES)
    with daypack.open_session("notes", home=home, create=False) as session:
        replies = [message.id for message in session.messages() if (message.meta or {}).get("usage")]
    before, after = replies[1:3]
    shown = look(page, "diff", **NOTES, before=before, after=after)
    assert shown["difference"] == printed(capsys, home, "diff", "notes", before, after)
    between = [row["message"] for row in shown["difference"]["messages_between"]]
    assert [row["ref"] for row in shown["rows"]] == between
    assert between
    assert (shown["prefix_kept"], shown["tail_kept"], shown["epoch_kept"]) == (None, None, None)
