from typing import Any

import pytest
from turn.dialects.library import answer, calling, check_types, given, result, text, use, user
from turn.histories import PIXEL

from daypack.errors import BadInput
from daypack.turn.dialects import Usage
from daypack.turn.dialects.anthropic import read, render, validate

MARK: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}
SEARCH: dict[str, Any] = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
FOUND: dict[str, Any] = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
THOUGHT: dict[str, Any] = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}


def unmarked(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages without marks for the cache."""
    return [
        {**one, "content": [{key: block[key] for key in block if key != "cache_control"} for block in one["content"]]}
        for one in body["messages"]
    ]


@pytest.mark.requirement("S3-O9.1", "S3-O9.2")
def test_the_prefix_is_the_system_prompt_and_the_tail_the_message_history() -> None:
    drafts = [user("Hi."), {"role": "assistant", "content": "Yes?"}, user("Go.")]
    assert render(given(*drafts, prefix=("Be kind.", " ", "Be brief."), volatile=("Noon.", "", "Rain."))) == {
        "system": [text("Be kind."), text("Be brief.", **MARK)],
        "messages": [
            {"role": "user", "content": [text("Hi.", **MARK)]},
            {"role": "assistant", "content": [text("Yes?")]},
            {"role": "user", "content": [text("Go.", **MARK), text("Noon."), text("Rain.")]},
        ],
    }


def test_volatile_texts_follow_a_reply_as_a_message_of_the_user() -> None:
    body = render(given(user("Hi."), {"role": "assistant", "content": "Yes?"}, volatile=("Noon.",)))
    assert "system" not in body
    assert body["messages"][1:] == [
        {"role": "assistant", "content": [text("Yes?", **MARK)]},
        {"role": "user", "content": [text("Noon.")]},
    ]


def test_neighbours_of_one_role_become_one_message_with_results_first() -> None:
    note = {"role": "system", "content": "Be quick."}
    drafts = [user("A"), user("B"), calling("a", "b", content="Look."), result("b"), result("a"), note, user("C")]
    assert unmarked(render(given(*drafts))) == [
        {"role": "user", "content": [text("A"), text("B")]},
        {
            "role": "assistant",
            "content": [
                text("Look."),
                {"type": "tool_use", "id": "a", "name": "read_file", "input": {"path": "a"}},
                {"type": "tool_use", "id": "b", "name": "read_file", "input": {"path": "a"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "b", "content": "done"},
                {"type": "tool_result", "tool_use_id": "a", "content": "done"},
                text("[system note] Be quick."),
                text("C"),
            ],
        },
    ]


def test_the_newest_mark_of_a_turn_stands_again_in_the_next() -> None:
    drafts = [user("A"), calling("a"), result("a")]
    first = render(given(*drafts, volatile=("Noon.",)))
    assert first["messages"][-1]["content"][0]["cache_control"] == MARK["cache_control"]
    more = [calling(*"bcdefghijklmnopqrst"), *(result(one) for one in "bcdefghijklmnopqrst")]
    second = render(given(*drafts, *more))
    assert second["messages"][2] == {**first["messages"][-1], "content": first["messages"][-1]["content"][:1]}
    marks = [block for one in second["messages"] for block in one["content"] if "cache_control" in block]
    assert len(marks) == 2


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"x": 1}', {"x": 1}),
        ("", {}),
        ("free text", {"arguments": "free text"}),
        ("[1]", {"arguments": "[1]"}),
        ('{"cut": ', {"arguments": '{"cut": '}),
        ('{"a":' * 300 + "1" + "}" * 300, {"arguments": '{"a":' * 300 + "1" + "}" * 300}),
    ],
)
def test_arguments_are_always_an_object(arguments: str, expected: dict[str, Any]) -> None:
    reply = {"role": "assistant", "tool_calls": [{"id": "a", "name": "f", "arguments": arguments}]}
    assert render(given(user(), reply, result("a")))["messages"][1]["content"][0]["input"] == expected


def test_an_argument_of_many_short_lists_is_not_deep() -> None:
    wide = '{"a":[' + ",".join(["[1]"] * 200) + "]}"
    reply = {"role": "assistant", "tool_calls": [{"id": "a", "name": "f", "arguments": wide}]}
    assert len(render(given(user(), reply, result("a")))["messages"][1]["content"][0]["input"]["a"]) == 200


def test_blank_messages_leave_no_empty_block() -> None:
    drafts: list[dict[str, Any]] = [user(" "), {"role": "assistant", "content": "\n"}, {"role": "user", "content": []}]
    drafts += [calling("a", content=" "), result("a", " "), {"role": "system", "content": ""}]
    assert [[block["type"] for block in one["content"]] for one in unmarked(render(given(*drafts)))] == [
        ["text", "text"],
        ["tool_use"],
        ["tool_result"],
    ]
    assert unmarked(render(given(*drafts)))[0]["content"] == [text("(no text)"), text("(no text)")]


def test_a_blank_part_among_others_is_left_out() -> None:
    body = render(given({"role": "user", "content": [" ", "Hi."]}, calling("a"), result("a", ["", "done"])))
    assert unmarked(body)[0]["content"] == [text("Hi.")]
    assert body["messages"][2]["content"][0]["content"] == [text("done")]


def test_a_failed_tool_is_said_to_have_failed() -> None:
    body = render(given(user(), calling("a"), result("a", "no such file", meta={"is_error": True})))
    assert body["messages"][2]["content"][0]["is_error"] is True
    assert validate(body) == []


def test_pictures_and_documents_are_blocks_where_they_can_be() -> None:
    pdf = "data:application/pdf;base64,JVBERi0="
    images = [
        "https://x.org/a.png",
        "http://x.org/a.png",
        f"data:image/png;base64,{PIXEL}",
        "data:image/svg+xml,<svg/>",
    ]
    files = ["https://x.org/a.pdf?x=1", "https://x.org/a.doc", pdf]
    content = [{"type": "image", "source": one} for one in images] + [{"type": "file", "source": one} for one in files]
    expected = [
        {"type": "image", "source": {"type": "url", "url": "https://x.org/a.png"}},
        text("[image: http://x.org/a.png]"),
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
        text("[image: image/svg+xml]"),
        {"type": "document", "source": {"type": "url", "url": "https://x.org/a.pdf?x=1"}},
        text("[file: https://x.org/a.doc]"),
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}},
    ]
    body = render(given({"role": "user", "content": content}, calling("a"), result("a", content)))
    assert unmarked(body)[0]["content"] == expected
    assert unmarked(body)[2]["content"][0]["content"] == expected
    check_types("anthropic", body)


def test_an_own_picture_is_passed_on_without_its_mark() -> None:
    own = {"type": "image", "source": {"type": "file", "file_id": "file_1"}, **MARK}
    foreign = {"type": "input_image", "image_url": "https://x.org/a.png"}
    body = render(given({"role": "user", "content": [own, foreign, "Look."]}))
    assert body["messages"][0]["content"] == [
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
        {"type": "image", "source": {"type": "url", "url": "https://x.org/a.png"}},
        text("Look.", **MARK),
    ]


def test_a_users_name_stands_before_the_text() -> None:
    named = [{**user("Hi."), "name": "小明"}, {"role": "user", "name": "ann", "content": ["Hi.", "Ho."]}]
    picture = {"role": "user", "name": "ann", "content": [{"type": "image", "source": "https://x.org/a.png"}]}
    blocks = unmarked(render(given(*named, picture)))[0]["content"]
    assert blocks[:4] == [text("小明: Hi."), text("ann: Hi."), text("Ho."), text("ann:")]


@pytest.mark.parametrize(
    "content",
    [
        [text("Done.")],
        [THOUGHT, text("Let me see.\n\n"), use(x=1), use("toolu_2")],
        [{**THOUGHT, "thinking": ""}, {"type": "redacted_thinking", "data": "ZGF0YQ=="}, use()],
        # Text behind a call stays behind it.
        [use(x=1), text("Wait for it.")],
        [SEARCH, FOUND, text("Found.")],
    ],
)
def test_a_reply_comes_back_block_for_block(content: list[dict[str, Any]]) -> None:
    answers = [result(block["id"]) for block in content if block["type"] == "tool_use"]
    body = render(given(user(), read(answer(*content)).message, *answers))
    assert unmarked(body)[1] == {"role": "assistant", "content": content}
    assert validate(body) == []
    check_types("anthropic", body)


@pytest.mark.parametrize(
    "content",
    [
        [{**THOUGHT, "signature": ""}, text("Done.")],  # unsigned
        [text("Done."), THOUGHT],  # nothing follows it
        [SEARCH, text("Done.")],  # no result
        [FOUND, text("Done.")],  # no use
        [FOUND, SEARCH, text("Done.")],  # in the wrong order
    ],
)
def test_blocks_that_would_be_refused_are_kept_in_history_and_left_out(content: list[dict[str, Any]]) -> None:
    message = read(answer(*content)).message
    assert len(message["content"]) == len(content)
    assert unmarked(render(given(user(), message)))[1]["content"] == [text("Done.")]


def test_a_reply_appended_twice_sends_its_search_once() -> None:
    message = read(answer(SEARCH, FOUND, text("Found."))).message
    body = render(given(user(), message, user(), message))
    assert unmarked(body)[3]["content"] == [text("Found.")]
    assert validate(body) == []


def test_what_another_provider_signed_is_left_out() -> None:
    thought = {"type": "thinking", "text": "Hm.", "signature": "c2ln"}
    for part, message in (({"dialect": "openai"}, None), (None, {"dialect": "responses"})):
        reply = {"role": "assistant", "content": [{**thought, "meta": part}, "Yes."], "meta": message}
        assert unmarked(render(given(user(), reply)))[1]["content"] == [text("Yes.")]
    own = {"role": "assistant", "content": [thought, "Yes."]}
    assert unmarked(render(given(user(), own)))[1]["content"] == [THOUGHT, text("Yes.")]


def test_a_reply_that_stands_last_does_not_end_with_white_space() -> None:
    for content in ("Yes. \n", ["Yes. \n"]):
        body = render(given(user(), {"role": "assistant", "content": content}))
        assert unmarked(body)[1]["content"] == [text("Yes.")]


def test_only_blocks_that_may_be_marked_are() -> None:
    body = render(given(user(), read(answer(THOUGHT, text("Look."), SEARCH, FOUND)).message))
    assert body["messages"][1]["content"] == [THOUGHT, text("Look.", **MARK), SEARCH, FOUND]


def test_citations_stay_in_history() -> None:
    cited = {"type": "char_location", "cited_text": "x", "document_index": 0, "start_char_index": 0}
    cited = {**cited, "end_char_index": 1, "document_title": None}
    message = read(answer(text("Done.", citations=[cited]))).message
    assert message["meta"]["text"]["citations"][0]["cited_text"] == "x"
    assert unmarked(render(given(user(), message)))[1]["content"] == [text("Done.")]


def test_usage_counts_all_that_went_in() -> None:
    usage = {
        "input_tokens": 3,
        "cache_read_input_tokens": 64,
        "cache_creation_input_tokens": 33,
        "output_tokens": 7,
    }
    reply = read(answer(text("Hi."), usage=usage))
    assert reply.usage == Usage(100, 64, 7, 33)
    assert reply.message["meta"] == {"dialect": "anthropic", "id": "msg_1", "model": "m", "stop": "end_turn"}


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ({"role": "user", "content": "a"}, "not an assistant's message"),
        ({"role": "assistant"}, "not an assistant's message"),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "Overloaded"),
        ({"role": "assistant", "content": [{"type": "tool_use", "name": "f"}]}, "without id or name"),
    ],
)
def test_what_is_no_finished_message_is_refused(reply: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadInput, match=problem) as caught:
        read(reply)
    assert caught.value.hint
    assert caught.value.place
