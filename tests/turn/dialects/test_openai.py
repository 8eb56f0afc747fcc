from typing import Any

import pytest
from pydantic import ValidationError
from turn.dialects.library import calling, check_types, completion, given, result, user
from turn.histories import PIXEL

from daypack.errors import BadInput
from daypack.history.draft import draft_from
from daypack.turn.dialects import Usage
from daypack.turn.dialects.openai import read, render, validate


@pytest.mark.requirement("S3-O9.1", "S3-O9.2")
def test_the_prefix_is_the_system_prompt_and_the_tail_the_message_history() -> None:
    turn = given(user("Hello."), {"role": "assistant", "content": "Hi."}, prefix=("Be kind.", " ", "Be brief."))
    assert render(turn) == {
        "messages": [
            {"role": "system", "content": "Be kind.\n\nBe brief."},
            {"role": "user", "content": "Hello."},
            {"role": "assistant", "content": "Hi."},
        ]
    }


def test_volatile_texts_are_one_message_of_the_user_behind_all_others() -> None:
    body = render(given(user("Hello."), volatile=("It is noon.", "", "Rain.")))
    assert body["messages"] == [user("Hello."), {"role": "user", "content": "It is noon.\n\nRain."}]


def test_calls_and_their_results_keep_their_places() -> None:
    body = render(given(user(), calling("a", "b"), result("b", "two"), result("a", "one")))
    call = {"type": "function", "function": {"name": "read_file", "arguments": '{"path": "a"}'}}
    assert body["messages"][1:] == [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "a", **call}, {"id": "b", **call}]},
        {"role": "tool", "tool_call_id": "b", "content": "two"},
        {"role": "tool", "tool_call_id": "a", "content": "one"},
    ]


def test_arguments_that_are_no_json_are_sent_as_the_model_wrote_them() -> None:
    drafts = {"role": "assistant", "tool_calls": [{"id": "a", "name": "f", "arguments": "{broken"}]}
    call = render(given(user(), drafts, result("a")))["messages"][1]["tool_calls"][0]
    assert call["function"]["arguments"] == "{broken"


def test_blank_messages_leave_no_empty_content() -> None:
    drafts = [user(" "), {"role": "assistant", "content": "\n"}, {"role": "system", "content": ""}]
    body = render(given(*drafts, calling("a", content=" "), result("a", " ")))
    assert [one["content"] for one in body["messages"]] == ["(no text)", None, "(no output)"]


def test_thinking_is_not_sent() -> None:
    reply = {"role": "assistant", "content": [{"type": "thinking", "text": "hm", "signature": "s"}, "Yes."]}
    assert render(given(user(), reply))["messages"][1] == {"role": "assistant", "content": "Yes."}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ann", {"role": "user", "name": "ann", "content": "Hi."}),
        ("小明", {"role": "user", "content": "小明: Hi."}),
        ("two\nwords", {"role": "user", "content": "two words: Hi."}),
    ],
)
def test_a_name_has_its_field_or_stands_before_the_text(name: str, expected: dict[str, Any]) -> None:
    assert render(given({**user("Hi."), "name": name}))["messages"] == [expected]


def test_pictures_and_files_are_sent_by_address_or_bytes_and_else_mentioned() -> None:
    picture, pdf = f"data:image/png;base64,{PIXEL}", "data:application/pdf;base64,JVBERi0="
    sources = ["https://example.org/a.png", picture, "plans/a.png"]
    content: list[Any] = ["See:", *({"type": "image", "source": one} for one in sources)]
    content += [{"type": "file", "source": pdf}, {"type": "file", "source": "https://example.org/a.pdf"}]
    body = render(given({"role": "user", "name": "小明", "content": content}))
    assert body["messages"][0]["content"] == [
        {"type": "text", "text": "小明:"},
        {"type": "text", "text": "See:"},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "image_url", "image_url": {"url": picture}},
        {"type": "text", "text": "[image: plans/a.png]"},
        {"type": "file", "file": {"filename": "file.pdf", "file_data": pdf}},
        {"type": "text", "text": "[file: https://example.org/a.pdf]"},
    ]
    check_types("openai", body)


def test_a_picture_in_a_result_or_a_reply_is_mentioned() -> None:
    shown: list[Any] = ["There.", {"type": "image", "source": "https://example.org/a.png"}]
    body = render(given(user(), calling("a", content=shown), result("a", shown)))
    said = "There.\n[image: https://example.org/a.png]"
    assert [one["content"] for one in body["messages"][1:]] == [said, said]


def test_a_part_of_this_api_is_passed_on_whole_and_one_of_another_is_translated() -> None:
    own = {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}}
    foreign = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    body = render(given({"role": "user", "content": [own, foreign, {"type": "hologram"}]}))
    translated = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    assert body["messages"][0]["content"] == [own, translated]


def test_the_type_check_of_these_tests_can_fail() -> None:
    part = {"type": "image_url", "image_url": {"address": "x"}}
    for broken in ({"role": "user", "content": [part]}, {"role": "user", "content": "x", "extra": 1}):
        with pytest.raises((ValidationError, AssertionError)):
            check_types("openai", {"messages": [broken]})


@pytest.mark.parametrize(
    "message",
    [
        {"content": "Done."},
        {
            "content": "Let me see.",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}},
                {"id": "b", "type": "custom", "custom": {"name": "g", "input": "free text"}},
            ],
        },
        {"content": None, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}]},
    ],
)
def test_a_reply_comes_back_as_it_was(message: dict[str, Any]) -> None:
    reply = read(completion(message))
    answers = [result(call["id"]) for call in message.get("tool_calls", ())]
    body = render(given(user(), reply.message, *answers))
    assert body["messages"][1] == {"role": "assistant", **message}
    assert validate(body) == []
    assert reply.message["meta"] == {"dialect": "openai", "id": "chatcmpl-1", "model": "m", "stop": "stop"}


def test_a_refusal_is_words_and_goes_back_as_a_refusal() -> None:
    reply = read(completion({"content": None, "refusal": "I cannot."}))
    assert draft_from(reply.message).text == "I cannot."
    body = render(given(user(), reply.message))
    assert body["messages"][1]["content"] == [{"type": "refusal", "refusal": "I cannot."}]
    check_types("openai", body)


def test_what_other_servers_call_reasoning_is_thinking() -> None:
    parts = draft_from(read(completion({"content": "Yes.", "reasoning_content": "Hm."})).message).content
    assert [(type(one).__name__, getattr(one, "text", "")) for one in parts] == [("Thinking", "Hm."), ("Text", "Yes.")]


def test_usage_is_read_with_the_reply() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 7,
        "total_tokens": 107,
        "prompt_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 5},
    }
    assert read(completion({"content": "Hi."}, usage=usage)).usage == Usage(100, 64, 7, 5)
    assert read(completion({"content": "Hi."})).usage is None


def test_a_choice_and_a_message_can_be_given_too() -> None:
    whole = completion({"content": "Hi."})
    for part in (whole.choices[0], whole.choices[0].message, {"role": "assistant", "content": "Hi."}, "Hi."):
        assert read(part).message["content"] == "Hi."


def test_a_call_without_an_id_gets_one_and_arguments_become_text() -> None:
    call = {"function": {"name": "f", "arguments": {"x": 1}}}
    message = read({"message": {"role": "assistant", "content": "", "tool_calls": [call]}}).message
    assert message["tool_calls"] == [{"id": "call_0", "name": "f", "arguments": '{"x":1}'}]


NO_REPLIES: list[tuple[dict[str, Any], str]] = [
    ({"choices": []}, "0 choices"),
    ({"choices": [{"message": {"content": "a"}}, {"message": {"content": "b"}}]}, "2 choices"),
    ({"role": "user", "content": "a"}, "not an assistant's message"),
    ({"message": {"role": "assistant"}}, "not an assistant's message"),
    ({"role": "assistant", "content": None, "function_call": {"name": "f"}}, "function_call"),
    ({"role": "assistant", "content": "", "tool_calls": [{"id": "a", "function": {}}]}, "without a name"),
]


@pytest.mark.parametrize(("reply", "problem"), NO_REPLIES)
def test_what_is_no_finished_reply_is_refused(reply: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadInput, match=problem) as caught:
        read(reply)
    assert caught.value.hint
    assert caught.value.place
