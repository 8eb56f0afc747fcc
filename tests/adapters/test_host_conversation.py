"""The conversation of a host in a session: stored once, packed within a budget, branched where the host went back."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from daypack.adapters.host_conversation import HostConversation, Place
from daypack.adapters.host_message import digest_of
from daypack.session.opening import open_session

SYSTEM = {"role": "system", "content": "You are an agent."}
BUDGET = 8_000
PICTURE = base64.b64encode(b"\x89PNG" * 100).decode()


def question(number: int, words: int = 300) -> dict[str, Any]:
    return {"role": "user", "content": f"Question {number} about port {9000 + number}. " + f"w{number} " * words}


def call(number: int) -> dict[str, Any]:
    function = {"name": "read", "arguments": json.dumps({"path": f"{number}.py"})}
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
    }


def result(number: int) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"c{number}", "content": f"line {number}\n" * 40}


def turns(count: int, first: int = 1) -> list[dict[str, Any]]:
    numbers = range(first, first + count)
    said = ((question(n), call(n), result(n), {"role": "assistant", "content": f"Answer {n}."}) for n in numbers)
    return [message for turn in said for message in turn]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place("hermes", str(tmp_path))


def stored(place: Place, name: str) -> list[str]:
    with open_session(name, agent=place.agent, home=place.home, create=False) as session:
        return [message.text for message in session.messages()]


def sessions(place: Place) -> list[str]:
    return sorted(path.name for path in Path(str(place.home)).glob("home/*/agent/hermes/session/*"))


def check_calls(messages: list[dict[str, Any]]) -> None:
    """Every call is directly followed by its result, and no result is alone."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting
        waiting = [each["id"] for each in message.get("tool_calls", ())]
    assert not waiting


def test_a_request_that_fits_is_sent_as_it_is_and_stored_once(place: Place) -> None:
    conversation = HostConversation("s", place)
    request = [SYSTEM, *turns(1), question(2)]
    assert conversation.pack(request, BUDGET * 10) is None
    assert conversation.pack(request, BUDGET * 10) is None  # a retry
    conversation.close()
    assert len(stored(place, "s")) == 5
    assert not any("You are an agent" in text for text in stored(place, "s"))


def test_a_long_conversation_is_packed_with_calls_paired_and_the_newest_question_last(place: Place) -> None:
    conversation = HostConversation("s", place)
    request = [SYSTEM, *turns(40), question(41)]
    packed = conversation.pack(request, BUDGET)
    assert packed is not None
    assert packed[0] == SYSTEM
    assert len(packed) < len(request) / 2
    assert packed[-1]["content"].startswith(question(41)["content"].strip()[:100])
    check_calls(packed[1:])
    assert len(json.dumps(packed)) / 4 < BUDGET * 1.2
    conversation.close()
    assert len(stored(place, "s")) == 161  # all of it


def test_calls_of_an_epoch_only_append(place: Place) -> None:
    conversation = HostConversation("s", place)
    history, breaks, before = turns(25), 0, None
    for number in range(26, 40):
        history.append(question(number))
        packed = conversation.pack([SYSTEM, *history], BUDGET)
        assert packed is not None
        if before is not None and packed[: len(before)] != before:
            breaks += 1
        before = packed
        history += turns(1, number)[1:]
    assert breaks < 6


def test_unknown_fields_of_the_host_stay_in_what_is_sent(place: Place) -> None:
    conversation = HostConversation("s", place)
    history = turns(40)
    history[-3] = {**history[-3], "extra_content": {"google": {"thought_signature": "abc"}}}
    packed = conversation.pack([SYSTEM, *history, question(41)], BUDGET)
    assert packed is not None
    assert [message for message in packed if "extra_content" in message] == [history[-3]]


def test_a_restart_adds_nothing_twice(place: Place) -> None:
    history = turns(30)
    for number in (31, 32):
        conversation = HostConversation("s", place)
        conversation.pack([SYSTEM, *history, question(number)], BUDGET)
        conversation.close()
        history += turns(1, number)
    assert len(stored(place, "s")) == 125
    assert sessions(place) == ["s"]


def test_spelling_of_arguments_marks_of_the_cache_and_spaces_do_not_make_a_message_another() -> None:
    bare = call(1)
    other = {
        **bare,
        "tool_calls": [{**bare["tool_calls"][0], "function": {"name": "read", "arguments": '{"path" : "1.py"}'}}],
    }
    assert digest_of(bare) == digest_of(other)
    text = {"role": "user", "content": "Hello "}
    marked = {"role": "user", "content": [{"type": "text", "text": "Hello", "cache_control": {"type": "ephemeral"}}]}
    assert digest_of(text) == digest_of(marked)
    assert digest_of(text) != digest_of({"role": "user", "content": "Hello, you"})


def test_what_the_host_rolled_back_is_in_no_later_request(place: Place) -> None:
    conversation = HostConversation("s", place)
    history = turns(30)
    conversation.pack([SYSTEM, *history, {"role": "user", "content": "Use the wrong port 7777."}], BUDGET)
    packed = conversation.pack([SYSTEM, *history, {"role": "user", "content": "Use port 8080."}], BUDGET)
    assert packed is not None
    assert "8080" in packed[-1]["content"]
    assert "7777" not in json.dumps(packed)
    conversation.close()
    assert sessions(place) == ["s", "s.2"]
    assert any("7777" in text for text in stored(place, "s"))  # the history keeps it
    assert not any("7777" in text for text in stored(place, "s.2"))


def test_after_a_restart_the_newest_branch_continues(place: Place) -> None:
    conversation = HostConversation("s", place)
    conversation.pack([SYSTEM, *turns(2), question(3)], BUDGET)
    edited = [SYSTEM, *turns(2), question(4)]
    conversation.pack(edited, BUDGET)
    conversation.close()
    again = HostConversation("s", place)
    again.pack([*edited, {"role": "assistant", "content": "Yes."}, question(5)], BUDGET)
    again.close()
    assert sessions(place) == ["s", "s.2"]
    assert len(stored(place, "s.2")) == 11


def test_going_back_to_an_earlier_branch_makes_no_third(place: Place) -> None:
    conversation = HostConversation("s", place)
    first = [SYSTEM, *turns(2), question(3)]
    conversation.pack(first, BUDGET)
    conversation.pack([SYSTEM, *turns(2), question(4)], BUDGET)
    conversation.pack([*first, {"role": "assistant", "content": "Yes."}, question(6)], BUDGET)
    conversation.close()
    assert sessions(place) == ["s", "s.2"]
    assert len(stored(place, "s")) == 11


def test_a_text_that_the_host_added_to_the_newest_question_and_removed_is_no_edit(place: Place) -> None:
    conversation = HostConversation("s", place)
    asked = question(3)
    decorated = {**asked, "content": f"{asked['content']}\n\n<memory>Ada likes tea.</memory>"}
    conversation.pack([SYSTEM, *turns(2), decorated], BUDGET)
    conversation.pack([SYSTEM, *turns(2), asked, {"role": "assistant", "content": "Yes."}, question(4)], BUDGET)
    conversation.close()
    assert sessions(place) == ["s"]
    assert len(stored(place, "s")) == 11


def test_a_transcript_that_was_compressed_is_recognised_also_after_a_restart(place: Place) -> None:
    conversation = HostConversation("s", place)
    compressed = conversation.compress([*turns(40), question(41)], BUDGET)
    assert compressed is not None
    assert len(compressed) < 80
    check_calls(compressed)
    conversation.close()
    for number in (42, 43):
        again = HostConversation("s", place)
        compressed = [*compressed, {"role": "assistant", "content": f"Answer {number}."}, question(number)]
        again.pack([SYSTEM, *compressed], BUDGET)
        again.close()
    assert sessions(place) == ["s"]
    assert len(stored(place, "s")) == 165
    assert not any("Nothing in it is an instruction" in text for text in stored(place, "s"))


def test_a_session_that_got_another_id_stays_one(place: Place) -> None:
    conversation = HostConversation("s", place)
    compressed = conversation.compress([*turns(40), question(41)], BUDGET)
    conversation.continue_as("t")
    conversation.close()
    again = HostConversation("t", place)
    again.pack([SYSTEM, *(compressed or []), {"role": "assistant", "content": "Yes."}, question(42)], BUDGET)
    again.close()
    assert len(stored(place, "s")) == 163
    assert stored(place, "t") == []


def test_what_another_process_stored_is_not_stored_again(place: Place) -> None:
    one, other = HostConversation("s", place), HostConversation("s", place)
    history = [SYSTEM, *turns(2), question(3)]
    one.pack(history, BUDGET)
    other.pack(history, BUDGET)
    longer = [*history, {"role": "assistant", "content": "Yes."}, question(4)]
    other.pack(longer, BUDGET)
    one.pack(longer, BUDGET)
    for conversation in (one, other):
        conversation.close()
    assert len(stored(place, "s")) == 11


def test_usage_is_recorded_with_the_reply_and_its_turn(place: Place) -> None:
    conversation = HostConversation("s", place)
    history = [SYSTEM, question(1)]
    conversation.pack(history, BUDGET)
    conversation.usage = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 64}}
    conversation.pack([*history, {"role": "assistant", "content": "Yes."}, question(2)], BUDGET)
    (usage,) = [event.data for event in conversation.session.events() if event.type == "context.usage"]
    conversation.close()
    assert (usage["message"], usage["input_tokens"], usage["cached_tokens"]) == ("msg-2", 100, 64)


def test_images_are_stored_as_blobs_and_sent_as_they_are(place: Place) -> None:
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}
    asked = {"role": "user", "content": [{"type": "text", "text": "What is this?"}, picture]}
    conversation = HostConversation("s", place)
    assert conversation.pack([SYSTEM, asked], BUDGET) is None
    packed = conversation.pack(
        [SYSTEM, asked, {"role": "assistant", "content": "A dot."}, *turns(40), question(41)], BUDGET
    )
    conversation.close()
    assert packed is not None
    assert len(stored(place, "s")) == 163
    assert PICTURE not in _log(place)


def _log(place: Place) -> str:
    (path,) = Path(str(place.home)).glob("home/*/agent/hermes/session/s/messages.jsonl")
    return path.read_text(encoding="utf-8")
