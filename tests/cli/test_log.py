"""The newest messages of a session on the terminal."""

import pytest
from cli.conftest import Command

import daypack
from daypack.session import Session
from daypack.types.history import INCOMPLETE


def test_an_incomplete_reply_is_marked_with_its_reason(command: Command, home: str) -> None:
    with daypack.open_session("talk", home=home) as session:
        session.append("user", "Which sea?")
        stream = session.stream(
            {"choices": [{"index": 0, "delta": {"content": word}}]} for word in ("The North ", "Sea.")
        )
        next(iter(stream))
        stream.close()
        session.append("assistant", "The Baltic.", name="desk", meta={INCOMPLETE: "Time\x1bout"})
    heads = [line for line in command("log", "talk").stdout.splitlines() if line.startswith("msg-")]
    assert [head.split("  ")[-1] for head in heads] == [
        "user",
        "assistant (incomplete: abandoned)",
        "assistant (desk) (incomplete: Time\\x1bout)",
    ]


@pytest.mark.parametrize("meta", [{"error": True}, {"is_error": True}, {"success": False}])
def test_a_result_names_its_call_and_its_meta_can_mark_an_error(
    command: Command, talk: Session, meta: dict[str, bool]
) -> None:
    talk.append("assistant", "", tool_calls=[{"id": "call-7", "name": "look", "arguments": "{}"}])
    talk.append("tool", "The hut.", tool_call_id="call-7", meta=meta)
    assert "tool (call-7)" in command("log", "talk").stdout
    assert "is the result of look (call-7): error" in command("log", "talk", "--events").stdout


def test_one_message_is_counted_in_the_singular(command: Command, talk: Session) -> None:
    assert len(talk.messages()) == 1
    assert "the session has 1 message [" in command("recall", "talk", "messages:9").stderr


def test_the_message_that_was_asked_for_is_marked_and_whole_and_those_around_it_are_cut(
    command: Command, home: str
) -> None:
    lines = "\n".join(f"line {number}" for number in range(30))
    with daypack.open_session("long", home=home, durability="os") as session:
        for _ in range(12):
            session.append("user", lines)
    shown = command("log", "long", "--around", "6").stdout.splitlines()
    heads = [line.split("  ")[0].strip() if line.startswith("  msg") else line for line in shown if "msg-" in line]
    assert [head[:7] for head in heads] == ["", "", "", "▶ msg-6", "", "", ""]
    assert shown.count("    line 29") == 1
    assert shown.count("    … 24 more lines") == 6
    assert len(command("log", "long", "--around", "6", "-n", "0").stdout.splitlines()) == 12 + 30 + 11 * 7
    assert len(command("log", "long").stdout.splitlines()) == 12 * 31
    rows = command("log", "long", "--around", "6", "--json").stdout.splitlines()
    assert len(rows) == 7
    assert not any("▶" in row for row in rows)
