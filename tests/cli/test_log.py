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
