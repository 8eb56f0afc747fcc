"""A turn can always be prepared, whatever was appended, accepted, imported or written into the log by hand."""

import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping
from subprocess import PIPE
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from turn.histories import PIXEL
from turn.odd_histories import Step, steps, take
from turn.provider_checks import check_requests
from turn.scenes import append_raw, release, stage
from turn.windows import check_left, tokens_of

import daypack
from daypack.errors import BadMessage, BudgetTooSmall
from daypack.session import Session
from daypack.turn.dialects.unsent import unsent_parts
from daypack.turn.pack.tail import LATE
from daypack.turn.turn import Turn
from daypack.types.history import Message, ToolCall

modest = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def omitted(turn: Turn) -> dict[str, tuple[str, str | None]]:
    return {omission.item: (omission.reason, omission.note) for omission in turn.omitted}


def written_by_hand(session: Session, line: Mapping[str, Any]) -> None:
    with open(session.layout.messages, "ab") as log:
        log.write(msgspec.json.encode(line) + b"\n")


@pytest.mark.requirement("S3-O5")
@modest
@given(taken=st.lists(steps, max_size=10), budget=st.sampled_from((None, 1_200, 2_500, 8_000, 60_000)))
def test_whatever_is_stored_can_be_prepared_and_sent_and_what_is_left_out_is_recorded(
    taken: list[Step], budget: int | None
) -> None:
    with tempfile.TemporaryDirectory() as home, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # lines by hand may be no messages
        with daypack.open_session("odd", home=home, durability="os", model="gpt-4o", workspace="") as session:
            for number, step in enumerate(taken):
                if take(session, step) and number % 3 == 2 and any(one.role == "user" for one in session.messages()):
                    try:
                        check_requests(session.prepare(budget=budget))
                    except BudgetTooSmall:
                        newest = [one for one in session.messages() if one.role == "user"][-1]
                        assert not isinstance(newest.content, str)  # pictures and files by their address are dear
                        assert len(unsent_parts(newest)) < len(newest.content)
            session.append("user", "And now?")
            turn = session.prepare(budget=budget)
            check_requests(turn)
            check_left(turn, [message.seq for message in session.messages()])
            assert session.replay(turn.event_id or "").request("openai") == turn.request("openai")
            for omission in turn.omitted:
                assert turn.explain(omission.item)


@pytest.mark.parametrize("role", ["user", "system", "tool"])
def test_calls_of_anybody_but_the_assistant_are_refused_and_left_out_of_older_logs(home: str, role: str) -> None:
    session = stage(home)
    session.append("user", "Hello.")
    with pytest.raises(BadMessage, match="has no tool calls"):
        session.append(role, "x", tool_calls=[{"id": "a", "name": "f"}])
    written_by_hand(session, {"role": role, "content": "Look.", "tool_calls": [{"id": "a", "name": "f"}]})
    with pytest.raises(BadMessage, match="no calls are waiting"):
        session.append("tool", "done", tool_call_id="a")
    append_raw(session, {"role": "tool", "content": "done", "tool_call_id": "a"})
    session.append("user", "And?")
    turn = session.prepare()
    check_requests(turn)
    assert omitted(turn)["messages:3"] == ("custom", "answers no call")
    if role == "tool":
        assert omitted(turn)["messages:2"] == ("custom", "answers no call")
    else:
        assert omitted(turn)["messages:2/tool_calls"] == ("custom", f"a {role} message makes no calls")
        assert f"shown without tool_calls (a {role} message makes no calls)" in turn.explain("messages:2")


def test_a_late_result_is_recorded_as_left_out(home: str) -> None:
    session = stage(home)
    session.append("user", "Run it.")
    session.append("assistant", "", tool_calls=[{"id": "a", "name": "f"}])
    session.append("user", "Never mind.")
    session.append("tool", "It took an hour.", tool_call_id="a")
    turn = session.prepare()
    check_requests(turn)
    assert omitted(turn)["messages:4"] == ("custom", LATE)
    assert LATE in turn.explain("messages:4")


def test_the_second_of_two_results_that_two_processes_stored_is_recorded_as_left_out(home: str) -> None:
    session = stage(home)
    session.append("user", "Run it.")
    session.append("assistant", "", tool_calls=[{"id": "a", "name": "f"}])
    session.append("tool", "from one process", tool_call_id="a")
    # The other process looked for its call before the first had stored its result.
    append_raw(session, {"role": "tool", "content": "from the other", "tool_call_id": "a"})
    turn = session.prepare()
    check_requests(turn)
    assert omitted(turn) == {"messages:4": ("duplicate", "second result of the same call")}
    session.accept("Done.")
    session.append("user", "Thanks.")
    release(session)
    check_requests(session.prepare())


@pytest.mark.parametrize("content", ["", " \n", [], [{"type": "text", "text": ""}]])
def test_a_user_message_without_words_is_sent_as_such(home: str, content: object) -> None:
    session = stage(home)
    session.append("user", content)
    session.append("assistant", " \n")
    turn = session.prepare()
    check_requests(turn)
    assert turn.request("openai")["messages"][-1]["content"].startswith("(no text)")
    assert omitted(turn) == {"messages:2": ("custom", "empty message")}


def test_an_image_that_is_not_what_it_says_is_mentioned_and_recorded(home: str) -> None:
    session = stage(home)
    session.append("user", [{"type": "image", "source": f"data:image/gif;base64,{PIXEL}"}, "What is it?"])
    turn = session.prepare()
    check_requests(turn)
    assert "[image: image/gif]" in turn.request("openai")["messages"][-1]["content"]
    note = "no provider takes the bytes of this image, which is mentioned"
    assert omitted(turn) == {"messages:1/content[0]": ("unsupported_media", note)}


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image", "source": f"data:image/gif;base64,{PIXEL}"},
        {"type": "file", "source": "data:"},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "ogg"}},
        {"type": "document", "source": {"type": "content", "content": []}},
        {"type": "hologram", "data": "x" * 20_000},
    ],
)
def test_parts_that_are_not_sent_take_nothing_from_the_budget(home: str, part: dict[str, Any]) -> None:
    session = stage(home)
    session.append("user", ["What is it?", *[part] * 4])
    turn = session.prepare(budget=1_200)
    check_requests(turn)
    assert "What is it?" in turn.request("openai")["messages"][-1]["content"]
    assert turn.record.used.tokens < 200


def test_an_address_that_one_provider_gets_as_text_is_counted(home: str) -> None:
    session = stage(home)
    address = "http://example.org/" + "ab9-" * 4_000
    session.append("user", [{"type": "image", "source": address}])
    turn = session.prepare()
    assert address in str(turn.request("anthropic"))
    assert tokens_of("anthropic", turn.request("anthropic"), turn.token_method) <= turn.record.used.tokens


@pytest.mark.parametrize("source", [f"data:image/PNG;base64,{PIXEL}", f"data:image/png;name=a;base64,{PIXEL}"])
def test_an_image_in_an_unusual_spelling_is_sent_in_the_usual_one(home: str, source: str) -> None:
    session = stage(home)
    session.append("user", [{"type": "image", "source": source}])
    turn = session.prepare()
    check_requests(turn)
    url = turn.request("responses")["input"][-1]["content"][0]["image_url"]
    assert url == f"data:image/png;base64,{PIXEL}"
    assert omitted(turn) == {}


@pytest.mark.parametrize(
    ("part", "what"),
    [
        ({"type": "hologram", "data": 7}, "a part of type 'hologram'"),
        ({"type": "web_search_call", "id": "ws_1"}, "a part of type 'web_search_call' without a valid 'status'"),
        ({"type": "server_tool_use", "id": "s", "name": "x", "input": {}}, "without a valid 'name'"),
    ],
)
def test_a_part_that_no_provider_takes_is_left_out_and_recorded(home: str, part: dict[str, Any], what: str) -> None:
    session = stage(home)
    session.append("user", "Search.")
    session.append("assistant", [part, {"type": "text", "text": "I found it."}])
    session.append("user", "Thanks.")
    turn = session.prepare()
    check_requests(turn)
    reason, note = omitted(turn)["messages:2/content[0]"]
    assert reason == "unsupported_media"
    assert note
    assert what in note


@pytest.mark.parametrize("kind", [[], {}, None, 5, ""])
def test_a_part_whose_type_is_no_text_is_refused_and_does_not_lock_a_session(home: str, kind: object) -> None:
    session = stage(home)
    part = {"type": "other", "value": {"type": kind}}
    for append in (
        lambda: session.append("user", [part]),
        lambda: session.append_many([{"role": "user", "content": [part]}]),
    ):
        with pytest.raises(BadMessage, match="needs a type"):
            append()
    written_by_hand(session, {"role": "user", "content": [part]})
    session.append("user", "Still there?")
    turn = session.prepare()
    check_requests(turn)
    assert omitted(turn)["messages:1/content[0]"][0] == "unsupported_media"


def test_words_after_a_call_come_before_it_where_its_output_must_follow_at_once(home: str) -> None:
    session = stage(home)
    session.append("user", "Read it.")
    use: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    content: list[Any] = [use, {"type": "text", "text": "One moment."}]
    session.accept({"type": "message", "role": "assistant", "content": content, "stop_reason": "tool_use"})
    session.append("tool", "done", tool_call_id="toolu_1")
    turn = session.prepare()
    check_requests(turn)
    kinds = [item.get("type", item.get("role")) for item in turn.request("responses")["input"]]
    at = kinds.index("function_call")
    assert kinds[at - 1 : at + 2] == ["assistant", "function_call", "function_call_output"]


def test_calls_without_ids_and_names_in_an_older_log_get_such_as_providers_take(home: str) -> None:
    session = stage(home)
    session.append("user", "Go.")
    session.history.append(
        [Message(role="assistant", tool_calls=(ToolCall(id="", name=""), ToolCall(id="", name="x y")))]
    )
    append_raw(session, {"role": "tool", "content": "one"}, {"role": "tool", "content": "two"})
    turn = session.prepare()
    check_requests(turn)
    results = [message for message in turn.parts.messages if message.role == "tool"]
    assert [message.content for message in results] == ["one", "two"]
    assert omitted(turn) == {}


@pytest.mark.parametrize("damaged", [[1], [2], [3], [1, 2], [2, 3], [1, 2, 3, 4, 5]])
def test_a_damaged_line_is_recorded_wherever_it_is(home: str, damaged: list[int]) -> None:
    session = stage(home)
    for role in ("system", "assistant", "user", *["assistant", "user"] * 5):
        session.append(role, "Hello.")
    path = session.layout.messages
    release(session)
    with open(path, "rb") as log:
        lines = log.read().splitlines(keepends=True)
    for seq in damaged:
        lines[seq - 1] = b"?" * (len(lines[seq - 1]) - 1) + b"\n"
    with open(path, "wb") as log:
        log.writelines(lines)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = daypack.open_session("work", home=home, durability="os", workspace="")
        for _ in range(2):
            turn = session.prepare()
            check_requests(turn)
            check_left(turn, range(1, 14))
            session.append("user", "And now?")
            assert {item for item, (_, note) in omitted(turn).items() if note == "damaged line"} == {
                f"messages:{seq}" for seq in damaged
            }
            assert {missing.id for missing in turn.missing} == {f"messages:{seq}" for seq in damaged}


_ANSWERING = """
import sys, daypack
from daypack.errors import BadMessage
session = daypack.open_session("work", home=sys.argv[1], durability="os", workspace="")
print("ready", flush=True)
sys.stdin.readline()
for number in range(20):
    try:
        session.append("tool", f"from {sys.argv[2]}", tool_call_id=f"c{number}")
    except BadMessage as error:
        assert "has a result already" in str(error), error
"""


def test_results_that_two_processes_store_for_the_same_calls_are_sent_once(home: str) -> None:
    session = stage(home)
    session.append("user", "Run them.")
    session.append("assistant", "", tool_calls=[{"id": f"c{number}", "name": "f"} for number in range(20)])
    run = [sys.executable, "-c", _ANSWERING, home]
    processes = [subprocess.Popen([*run, name], stdin=PIPE, stdout=PIPE) for name in ("one", "another")]
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
    for process in processes:
        assert process.stdin
        process.stdin.write(b"\n")
        process.stdin.flush()
    assert [process.communicate() and process.returncode for process in processes] == [0, 0]
    turn = session.prepare()
    check_requests(turn)
    check_left(turn)
    assert len([message for message in turn.parts.messages if message.role == "tool"]) == 20
    assert {reason for reason, _ in omitted(turn).values()} <= {"duplicate"}
    assert len(session.messages()) == 22 + len(omitted(turn))
