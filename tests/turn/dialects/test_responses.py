from typing import Any

import pytest
from turn.dialects.library import called, calling, check_types, given, reasoned, response, result, said, user

from daypack.errors import BadInput
from daypack.history.draft import draft_from
from daypack.turn.dialects import Usage
from daypack.turn.dialects.responses import read, render, validate

CLICK: dict[str, Any] = {
    "type": "computer_call",
    "id": "cu_1",
    "call_id": "c",
    "status": "completed",
    "pending_safety_checks": [],
}
SEARCH: dict[str, Any] = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "x"},
}


@pytest.mark.requirement("S3-O9.1", "S3-O9.2")
def test_prefix_messages_and_volatile_texts_are_items_in_this_order() -> None:
    drafts = [user("Hi."), {"role": "assistant", "content": "Yes?"}, {"role": "system", "content": "Note."}]
    assert render(given(*drafts, prefix=("Be kind.", "Be brief."), volatile=("Noon.", "Rain."))) == {
        "input": [
            {"role": "system", "content": "Be kind.\n\nBe brief."},
            {"role": "user", "content": "Hi."},
            {"role": "assistant", "content": "Yes?"},
            {"role": "system", "content": "Note."},
            {"role": "user", "content": "Noon.\n\nRain."},
        ]
    }


def test_calls_and_results_are_items_of_their_own() -> None:
    picture = {"type": "image", "source": "https://example.org/a.png"}
    body = render(given(user(), calling("a", "b", content="Look."), result("a", ["See", picture]), result("b", "")))
    call = {"type": "function_call", "name": "read_file", "arguments": '{"path": "a"}'}
    shown = {"type": "input_image", "detail": "auto", "image_url": "https://example.org/a.png"}
    assert body["input"][1:] == [
        {"role": "assistant", "content": "Look."},
        {**call, "call_id": "a"},
        {**call, "call_id": "b"},
        {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "See"}, shown]},
        {"type": "function_call_output", "call_id": "b", "output": "(no output)"},
    ]
    check_types("responses", body)


def test_a_users_name_stands_before_the_text() -> None:
    picture = {"type": "image", "source": "https://example.org/a.png"}
    body = render(given({**user("Hi."), "name": "ann"}, {"role": "user", "name": "ann", "content": [picture]}))
    assert body["input"][0] == {"role": "user", "content": "ann: Hi."}
    assert body["input"][1]["content"][0] == {"type": "input_text", "text": "ann:"}


def test_files_are_sent_by_address_or_bytes_and_else_mentioned() -> None:
    pdf = "data:application/pdf;base64,JVBERi0="
    files = [{"type": "file", "source": one} for one in ("https://example.org/a.pdf", pdf, "a.pdf")]
    body = render(given({"role": "user", "content": files}))
    assert body["input"][0]["content"] == [
        {"type": "input_file", "file_url": "https://example.org/a.pdf"},
        {"type": "input_file", "filename": "file.pdf", "file_data": pdf},
        {"type": "input_text", "text": "[file: a.pdf]"},
    ]


def test_a_picture_of_this_api_is_passed_on_whole() -> None:
    own = {"type": "input_image", "file_id": "file-1", "detail": "low"}
    body = render(given({"role": "user", "content": [own, {"type": "input_image"}]}))
    assert body["input"][0]["content"] == [own]


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ([said("Done.")], [{"role": "assistant", "content": "Done."}]),
        ([reasoned(), said("Done.")], [reasoned(), {"role": "assistant", "content": "Done."}]),
        ([reasoned(), called()], [reasoned(), called()]),
        # The order of the reply is kept, also where calls stand between other items.
        (
            [reasoned(1), called("a"), reasoned(2), said("And:"), called("b")],
            [reasoned(1), called("a"), reasoned(2), {"role": "assistant", "content": "And:"}, called("b")],
        ),
        (
            [said("One.", phase="commentary"), said("Two.", id="msg_2", phase="final_answer")],
            [
                {"role": "assistant", "content": "One.", "phase": "commentary"},
                {"role": "assistant", "content": "Two.", "phase": "final_answer"},
            ],
        ),
        ([called(namespace="crm")], [called(namespace="crm")]),
        ([reasoned(), SEARCH, said("Found.")], [reasoned(), SEARCH, {"role": "assistant", "content": "Found."}]),
    ],
)
def test_a_reply_comes_back_item_for_item(output: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    answers = [result(item["call_id"]) for item in output if item["type"] == "function_call"]
    body = render(given(user(), read(response(*output)).message, *answers))
    assert body["input"][1 : len(expected) + 1] == expected
    assert validate(body) == []
    check_types("responses", body)


def test_a_custom_call_has_a_custom_output() -> None:
    custom = {"type": "custom_tool_call", "call_id": "call_1", "name": "shell", "input": "ls -l"}
    body = render(given(user(), read(response({**custom, "id": "ctc_1"})).message, result("call_1", "a b")))
    assert body["input"][1:] == [
        custom,
        {"type": "custom_tool_call_output", "call_id": "call_1", "output": "a b"},
    ]
    check_types("responses", body)


@pytest.mark.parametrize(
    "output",
    [
        [reasoned(sealed=None), said("Done.")],  # nothing to send back
        [said("Done."), reasoned()],  # nothing follows it
        [reasoned(sealed=None), SEARCH, said("Done.")],  # a search is refused without its reasoning
        [CLICK, said("Done.")],  # nobody answers it
    ],
)
def test_items_that_would_be_refused_are_kept_in_history_and_left_out(output: list[dict[str, Any]]) -> None:
    message = read(response(*output)).message
    assert len(message["content"]) == len(output)
    assert render(given(user(), message))["input"][1:] == [{"role": "assistant", "content": "Done."}]


def test_a_reply_appended_twice_sends_its_reasoning_once() -> None:
    message = read(response(reasoned(), SEARCH, said("Done."))).message
    body = render(given(user(), message, user(), message))
    assert [item.get("type", item.get("role")) for item in body["input"]] == [
        "user",
        "reasoning",
        "web_search_call",
        "assistant",
        "user",
        "assistant",
    ]
    assert validate(body) == []


def test_reasoning_that_comes_again_is_sent_once() -> None:
    message = read(response(reasoned(), said("Done."))).message
    doubled = {**message, "content": [message["content"][0], *message["content"]]}
    for drafts in ([message, user(), message], [doubled]):
        body = render(given(user(), *drafts))
        assert [item for item in body["input"] if item.get("type") == "reasoning"] == [reasoned()]
        assert validate(body) == []


def test_reasoning_goes_with_the_item_it_led_to() -> None:
    message = read(response(reasoned(1), CLICK, reasoned(2), said("Done."))).message
    assert render(given(user(), message))["input"][1:] == [reasoned(2), {"role": "assistant", "content": "Done."}]


def test_reasoning_between_two_texts_keeps_them_apart() -> None:
    message = read(response(reasoned(1), said("One."), reasoned(2), said("Two."))).message
    one, two = ({"role": "assistant", "content": text} for text in ("One.", "Two."))
    assert render(given(user(), message))["input"][1:] == [reasoned(1), one, reasoned(2), two]


def test_reasoning_of_another_dialect_is_left_out() -> None:
    reply = {"role": "assistant", "content": [{"type": "thinking", "text": "hm", "signature": "s"}, "Yes."]}
    assert render(given(user(), reply))["input"][1:] == [{"role": "assistant", "content": "Yes."}]


def test_texts_of_one_message_are_one_item() -> None:
    reply = {"role": "assistant", "content": ["One.", " ", "Two.", {"type": "image", "source": "a.png"}]}
    assert render(given(user(), reply))["input"][1:] == [{"role": "assistant", "content": "One.\nTwo.\n[image: a.png]"}]


def test_a_refusal_and_annotations_are_kept() -> None:
    note = {"type": "url_citation", "url": "https://x.org", "title": "X", "start_index": 0, "end_index": 1}
    content = [{"type": "output_text", "text": "Done.", "annotations": [note]}, {"type": "refusal", "refusal": "No."}]
    message = read(response(said("", content=content))).message
    assert message["content"][0]["meta"] == {"id": "msg_1", "annotations": [note]}
    assert message["content"][1]["meta"] == {"id": "msg_1", "refusal": True}
    assert draft_from(message).text == "Done.\nNo."


def test_usage_and_the_reason_it_stopped_are_read() -> None:
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 8},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 107,
    }
    cut = response(said("Do"), usage=usage, status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    reply = read(cut)
    assert reply.usage == Usage(100, 64, 7, 8)
    facts = {"dialect": "responses", "id": "resp_1", "model": "m", "stop": "max_output_tokens"}
    assert reply.message["meta"] == {**facts, "text": {"id": "msg_1"}}


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ({"output": "text"}, "no output"),
        ({"output": [], "status": "in_progress"}, "not finished"),
        ({"output": [], "status": "failed", "error": {"code": "server_error", "message": "Oops."}}, "Oops."),
        ({"output": [{"type": "function_call", "call_id": "a"}]}, "without a name"),
    ],
)
def test_what_is_no_finished_response_is_refused(reply: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadInput, match=problem) as caught:
        read(reply)
    assert caught.value.hint
    assert caught.value.place
