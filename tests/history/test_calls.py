"""A tool result names the call it answers; what no turn would show is refused at the door."""

from typing import Any

import pytest

import daypack
from daypack.errors import BadMessage, KeyConflict
from daypack.session import Session

READ = {"id": "call_1", "name": "read_file", "arguments": "{}"}
LIST = {"id": "call_2", "name": "ls", "arguments": "{}"}
FIRST_STEP = "append the reply with its tool calls first, as session.accept(reply) does"


@pytest.fixture
def session(home: str) -> Session:
    session = daypack.open_session("work", home=home, durability="os")
    session.append("user", "What is in the folder?")
    return session


def refusal(session: Session, *arguments: Any, **fields: Any) -> str:
    before = session.tail(100)
    with pytest.raises(BadMessage) as caught:
        session.append(*arguments, **fields)
    assert session.tail(100) == before
    return str(caught.value)


def result(call_id: str | None, **fields: Any) -> dict[str, Any]:
    return {"role": "tool", "content": "x", "tool_call_id": call_id, **fields}


def test_a_result_without_an_id_is_refused_with_the_calls_that_wait(session: Session) -> None:
    session.append("assistant", "", tool_calls=[READ, LIST])
    assert refusal(session, "tool", "two files") == (
        "append: tool_call_id: a tool result needs the id of its call; calls waiting: call_1 (read_file), call_2 (ls) "
        "(hint: tool_call_id='call_1', on the command line --tool-call-id call_1)"
    )
    session.append("tool", "text", tool_call_id="call_1")
    assert "calls waiting: call_2 (ls) (hint: tool_call_id='call_2'" in refusal(session, "tool", "two files")


def test_a_result_of_an_unknown_call_is_refused_with_the_calls_that_wait(session: Session) -> None:
    session.append("assistant", "", tool_calls=[READ])
    text = refusal(session, "tool", "x", tool_call_id="call_9")
    assert text.startswith(
        "append: tool_call_id: no call 'call_9' waits for a result; calls waiting: call_1 (read_file)"
    )


def test_a_second_result_is_refused(session: Session) -> None:
    session.append("assistant", "", tool_calls=[READ, LIST])
    stored = session.append("tool", "text", tool_call_id="call_1")
    text = refusal(session, "tool", "text", tool_call_id="call_1")
    assert f"'call_1' has a result already: {stored.id}; calls waiting: call_2 (ls)" in text


@pytest.mark.parametrize("call_id", [None, "call_1"])
def test_a_result_without_any_call_is_refused(session: Session, call_id: str | None) -> None:
    assert refusal(session, "tool", "x", tool_call_id=call_id).endswith(f"; no calls are waiting (hint: {FIRST_STEP})")


def test_a_result_that_comes_after_the_next_question_is_kept(session: Session) -> None:
    session.append("assistant", "", tool_calls=[READ])
    session.append("user", "Never mind.")
    late = session.append("tool", "x", tool_call_id="call_1")
    assert session.tail(1) == (late,)
    assert "no call 'call_1' waits for a result" in refusal(session, "tool", "x", tool_call_id="call_1")
    session.append("assistant", "", tool_calls=[LIST])
    session.append_many([{"role": "assistant", "tool_calls": [READ]}, {"role": "user", "content": "Stop."}])
    session.append("assistant", "", tool_calls=[{**LIST, "id": "call_3"}])
    session.append("tool", "x", tool_call_id="call_2")  # of the batch before the last but one
    assert "calls waiting: call_3 (ls)" in refusal(session, "tool", "x", tool_call_id="call_9")
    assert session.prepare().request("anthropic")["messages"]


def test_a_result_that_is_sent_again_is_stored_once(session: Session) -> None:
    session.append("assistant", "", tool_calls=[READ])
    stored = session.append("tool", "text", tool_call_id="call_1", client_key="k1")
    assert session.append("tool", "text", tool_call_id="call_1", client_key="k1") == stored
    with pytest.raises(KeyConflict):
        session.append("tool", "another text", tool_call_id="call_1", client_key="k1")
    assert "has a result already" in refusal(session, "tool", "text", tool_call_id="call_1", client_key="k2")


def test_results_that_are_appended_together_answer_the_calls_of_the_log(session: Session) -> None:
    session.append("assistant", "", tool_calls=[READ, LIST])
    with pytest.raises(BadMessage, match=r"messages\[1\]\.tool_call_id: no call 'call_3' waits"):
        session.append_many([result("call_2"), result("call_3")])
    assert session.tail(1)[0].role == "assistant"
    session.append_many([result("call_2"), result("call_1")])
    assert [message.tool_call_id for message in session.tail(2)] == ["call_2", "call_1"]


def test_results_can_answer_calls_of_the_same_list(session: Session) -> None:
    reply = {"role": "assistant", "tool_calls": [READ, LIST]}
    with pytest.raises(BadMessage, match=r"messages\[2\]\.tool_call_id: 'call_1' has a result already: earlier in"):
        session.append_many([reply, result("call_1"), result("call_1")])
    with pytest.raises(
        BadMessage, match=r"messages\[1\]\.tool_call_id: no call 'call_9' waits for a result; calls wai"
    ):
        session.append_many([reply, result("call_9")])
    session.append_many([reply, result("call_2"), result("call_1")])
    with pytest.raises(BadMessage, match="no calls are waiting"):
        session.append_many([result("call_1")])


def test_a_transcript_keeps_results_that_turns_leave_out(session: Session) -> None:
    """Its start may be missing, or a question may have come between a call and its result."""
    late = [{"role": "assistant", "tool_calls": [READ]}, {"role": "user", "content": "Stop."}, result("call_1")]
    assert len(session.append_many([result("call_0"), result(None), *late])) == 5
    assert [
        message["content"] for message in session.prepare().request("openai")["messages"] if message["role"] == "tool"
    ] == ["(no result was recorded)"]


def test_results_without_ids_answer_the_calls_of_a_transcript_in_their_order(session: Session) -> None:
    session.append_many([{"role": "assistant", "tool_calls": [READ, LIST]}, result(None), result("call_2")])
    messages = session.prepare().request("openai")["messages"]
    assert [message["tool_call_id"] for message in messages if message["role"] == "tool"] == ["call_1", "call_2"]


def test_a_result_after_lines_written_by_hand_finds_its_call(session: Session) -> None:
    line = '{"role":"assistant","tool_calls":[{"id":"call_7","name":"ls"}]}\n{"role":"tool","content":"x"}\n'
    more = '{"role":"assistant","tool_calls":[{"id":"call_8","name":"ls"},{"id":"call_9","name":"ls"}]}\n'
    for text in (line, more):
        with open(session.history.layout.messages, "a", encoding="utf-8") as log:
            log.write(text)
    assert "calls waiting: call_8 (ls), call_9 (ls)" in refusal(session, "tool", "x")
    assert session.append("tool", "x", tool_call_id="call_9").tool_call_id == "call_9"


def test_a_result_reads_only_its_batch(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    session.append_many([{"role": "user", "content": f"line {number}"} for number in range(500)])
    calls = [{"id": f"c{number}", "name": "ls"} for number in range(200)]
    session.append("assistant", "", tool_calls=calls)
    session.append_many([result(f"c{number}") for number in range(150)])
    ranges: list[tuple[int, int]] = []
    reader = session.history.messages.reader
    read = reader.read

    def reading(start: int, stop: int) -> Any:
        ranges.append((start, stop))
        return read(start, stop)

    monkeypatch.setattr(reader, "read", reading)
    session.append("tool", "x", tool_call_id="c199")
    assert ranges == [(501, 502), (502, 652)]
    ranges.clear()
    session.append("user", "Thanks.")
    assert ranges == []
    session.append_many([{"role": "user", "content": "More."} for _ in range(4_096)])
    with pytest.raises(BadMessage):
        session.append("tool", "x", tool_call_id="c198")
    assert ranges == []


def test_many_waiting_calls_are_counted(session: Session) -> None:
    session.append("assistant", "", tool_calls=[{"id": f"c{number}", "name": "ls"} for number in range(20)])
    assert "c7 (ls) and 12 more (hint:" in refusal(session, "tool", "x")


def test_a_result_is_kept_however_much_was_said_while_the_tool_ran(session: Session) -> None:
    session.append("assistant", "", tool_calls=[READ])
    session.append_many([{"role": "user", "content": f"Still there? {number}"} for number in range(200)])
    assert session.append("tool", "x", tool_call_id="call_1").tool_call_id == "call_1"
    assert "no call 'call_1' waits" in refusal(session, "tool", "x", tool_call_id="call_1")
