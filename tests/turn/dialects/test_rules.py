"""Each rule, with a body that breaks it and nothing else."""

from typing import Any

import pytest

from daypack.turn.dialects import NAMES, dialect

Cases = dict[str, tuple[dict[str, Any], str]]

U: dict[str, Any] = {"role": "user", "content": "Hi."}


def chat(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [U, *messages]}


def items(*listed: dict[str, Any]) -> dict[str, Any]:
    return {"input": [U, *listed]}


def turn(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"messages": [U, *messages], **fields}


def told(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def asked(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def chat_call(call_id: Any = "a", **fields: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}, **fields}


def chat_calls(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def chat_result(call_id: str = "a") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "ok"}


CHAT_CASES: Cases = {
    "no messages": ({"messages": []}, "messages: must be"),
    "not a list": ({"messages": "Hi."}, "messages: must be"),
    "unknown role": (chat({"role": "robot", "content": "x"}), "messages[1].role"),
    "no content": (chat({"role": "user"}), "messages[1].content: must be"),
    "empty list": (chat({"role": "user", "content": []}), "messages[1].content: must be"),
    "reply without content or calls": (chat({"role": "assistant", "content": None}), "messages[1].content: must be"),
    "bad name": (chat({**U, "name": "two words"}), "messages[1].name"),
    "picture in a reply": (
        chat({"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": "https://x"}}]}),
        "messages[1].content[0].type",
    ),
    "picture in a result": (
        chat(chat_calls(chat_call()), {**chat_result(), "content": [{"type": "image_url"}]}),
        "messages[2].content[0].type",
    ),
    "part without its body": (chat({"role": "user", "content": [{"type": "text"}]}), "messages[1].content[0].text"),
    "picture without address": (
        chat({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}),
        "messages[1].content[0].image_url.url",
    ),
    "no calls in tool_calls": (chat(chat_calls()), "messages[1].tool_calls: must be"),
    "long id": (chat(chat_calls(chat_call("a" * 41)), chat_result("a" * 41)), "messages[1].tool_calls[0].id"),
    "unknown kind of call": (
        chat(chat_calls(chat_call(type="magic")), chat_result()),
        "messages[1].tool_calls[0].type",
    ),
    "call without function": (
        chat(chat_calls(chat_call(function=None)), chat_result()),
        "messages[1].tool_calls[0].function: is missing",
    ),
    "bad tool name": (
        chat(chat_calls(chat_call(function={"name": "a.b", "arguments": ""})), chat_result()),
        "messages[1].tool_calls[0].function.name",
    ),
    "arguments as object": (
        chat(chat_calls(chat_call(function={"name": "f", "arguments": {}})), chat_result()),
        "messages[1].tool_calls[0].function.arguments",
    ),
    "call without result": (chat(chat_calls(chat_call())), "messages[1].tool_calls[0]: no tool message answers a"),
    "result too late": (
        chat(chat_calls(chat_call("a"), chat_call("b")), chat_result("b"), U),
        "messages[1].tool_calls[0]: no tool message answers a",
    ),
    "result without call": (chat(chat_result()), "messages[1]: a tool message must answer"),
    "result of another batch": (
        chat(chat_calls(chat_call("a")), chat_result("a"), U, chat_result("a")),
        "messages[4]: a tool message must answer",
    ),
    "result twice": (chat(chat_calls(chat_call()), chat_result(), chat_result()), "messages[3]: a has been answered"),
    "id twice in a batch": (
        chat(chat_calls(chat_call(), chat_call()), chat_result()),
        "messages[1].tool_calls[1].id: a is used twice",
    ),
}


def call(call_id: Any = "a", **fields: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}", **fields}


def output(call_id: Any = "a", **fields: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": "ok", **fields}


REASONING: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
SAID: dict[str, Any] = {"role": "assistant", "content": "Yes."}

RESPONSES_CASES: Cases = {
    "no input": ({"input": []}, "input: must be"),
    "blank input": ({"input": " "}, "input: must be"),
    "unknown item": (items({"type": "computer_call", "id": "x"}), "input[1].type"),
    "neither type nor role": (items({"content": "x"}), "input[1].type"),
    "unknown role": (items({"role": "tool", "content": "x"}), "input[1].role"),
    "empty content": (items({"role": "user", "content": []}), "input[1].content: must be"),
    "output part from the user": (
        items({"role": "user", "content": [{"type": "output_text", "text": "x"}]}),
        "input[1].content[0].type",
    ),
    "input part from the assistant": (
        items({"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}),
        "input[1].content[0].type",
    ),
    "picture of nothing": (items({"role": "user", "content": [{"type": "input_image"}]}), "input[1].content[0]: needs"),
    "long call_id": (items(call("a" * 65), output("a" * 65)), "input[1].call_id"),
    "bad tool name": (items(call(name="a b"), output()), "input[1].name"),
    "arguments as object": (items(call(arguments={}), output()), "input[1].arguments"),
    "output of wrong parts": (items(call(), output(output=[{"type": "text", "text": "x"}])), "input[2].output[0].type"),
    "call without output": (items(call()), "input[1]: no tool output found for a"),
    "output without call": (items(output()), "input[1]: no tool call found for a"),
    "output before call": (items(output(), call()), "input[1]: no tool call found for a"),
    "output of another kind": (
        items(call(), output(type="custom_tool_call_output")),
        "input[2]: no tool call found for a",
    ),
    "output twice": (items(call(), output(), output()), "input[3]: a second output for a"),
    "call_id twice": (items(call(), output(), call(), output()), "input[3].call_id: a is used twice"),
    "reasoning without id": (items({**REASONING, "id": None}, SAID), "input[1]: reasoning needs"),
    "reasoning last": (items(REASONING), "input[1]: reasoning without"),
    "reasoning before the user": (items(REASONING, U), "input[1]: reasoning without"),
    "item id twice": (items(REASONING, SAID, REASONING, SAID), "input[3].id: rs_1 is used twice"),
    "server item without id": (items({"type": "web_search_call"}), "input[1].id"),
}


def text(words: str = "Yes.", **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **fields}


def use(use_id: Any = "a", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": use_id, "name": "f", "input": {}, **fields}


def got(use_id: str = "a", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": use_id, "content": "ok", **fields}


THOUGHT: dict[str, Any] = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
MARK: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}
SEARCH: dict[str, Any] = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
FOUND: dict[str, Any] = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
PNG: dict[str, Any] = {"type": "base64", "media_type": "image/png", "data": "AAAA"}

ANTHROPIC_CASES: Cases = {
    "no messages": ({"messages": []}, "messages: must be"),
    "unknown role": (turn({"role": "tool", "content": "x"}), "messages[1].role"),
    "blank content": (turn({"role": "assistant", "content": " "}), "messages[1].content: must be"),
    "no blocks": (turn({"role": "assistant", "content": []}), "messages[1].content: must be"),
    "blank system": (turn(system=""), "system: must be"),
    "blank system block": (turn(system=[text(" ")]), "system[0]"),
    "assistant first": ({"messages": [told(text()), U]}, "messages[0]: the first"),
    "twice the same role": (turn(U), "messages[1]: roles must alternate"),
    "unknown block": (turn(told(text(), {"type": "hologram"})), "messages[1].content[1].type"),
    "picture from the assistant": (turn(told({"type": "image", "source": PNG})), "messages[1].content[0].type"),
    "thinking from the user": ({"messages": [asked(THOUGHT, text())]}, "messages[0].content[0].type"),
    "blank text block": (turn(told(text(), text("\n"), text())), "messages[1].content[1]: text blocks"),
    "source of nothing": ({"messages": [asked({"type": "image", "source": {}})]}, "messages[0].content[0].source"),
    "source by http": (
        {"messages": [asked({"type": "image", "source": {"type": "url", "url": "http://x"}})]},
        "messages[0].content[0].source.url",
    ),
    "unknown picture type": (
        {"messages": [asked({"type": "image", "source": {**PNG, "media_type": "image/tiff"}})]},
        "messages[0].content[0].source.media_type",
    ),
    "unsigned thinking": (turn(told({**THOUGHT, "signature": ""}, text())), "messages[1].content[0]: a thinking"),
    "redacted without data": (
        turn(told({"type": "redacted_thinking"}, text())),
        "messages[1].content[0]: a redacted",
    ),
    "thinking last": (turn(told(text(), THOUGHT)), "messages[1]: the last block"),
    "white space at the end": (turn(told(text("Yes. "))), "messages[1]: the last assistant message"),
    "bad id": (turn(told(use("a:b")), asked(got("a:b"))), "messages[1].content[0].id"),
    "bad tool name": (turn(told(use(name="a.b")), asked(got())), "messages[1].content[0].name"),
    "input as text": (turn(told(use(input="{}")), asked(got())), "messages[1].content[0].input"),
    "result of wrong kind": (
        turn(told(use()), asked(got(content=[{"type": "tool_use"}]))),
        "messages[2].content[0].content[0].type",
    ),
    "blank text in a result": (
        turn(told(use()), asked(got(content=[text("")]))),
        "messages[2].content[0].content[0]: text blocks",
    ),
    "result that is a number": (turn(told(use()), asked(got(content=7))), "messages[2].content[0].content: must be"),
    "use without result": (turn(told(use()), U), "messages[1].content[0]: no tool_result for a"),
    "use at the end": (turn(told(use())), "messages[1].content[0]: no tool_result for a"),
    "result without use": ({"messages": [asked(got())]}, "messages[0].content[0]: no tool_use a"),
    "result twice": (turn(told(use()), asked(got(), got())), "messages[2].content[1]: no tool_use a"),
    "result too late": (
        turn(told(use("a"), use("b")), asked(got("a")), told(text()), asked(got("b"))),
        "messages[1].content[1]: no tool_result for b",
    ),
    "result behind text": (turn(told(use()), asked(text(), got())), "messages[2].content[1]: tool results must come"),
    "id used again": (
        turn(told(use()), asked(got()), told(use()), asked(got())),
        "messages[3].content[0].id: tool_use ids must be unique",
    ),
    "server result without use": (turn(told(FOUND, text())), "messages[1].content[0]: no server_tool_use s1"),
    "server use twice": (
        turn(told(SEARCH, FOUND, SEARCH, FOUND, text())),
        "messages[1].content[2].id: tool_use ids must be unique",
    ),
    "five marks": (
        turn(told(*[text(**MARK)] * 3), asked(text(**MARK)), system=[text(**MARK)]),
        "cache_control: 5 blocks",
    ),
    "five marks, some inside a result": (
        turn(told(*[text(**MARK)] * 2, use(**MARK)), asked(got(content=[text(**MARK)], **MARK))),
        "cache_control: 5 blocks",
    ),
    "marked thinking": (turn(told({**THOUGHT, **MARK}, text())), "messages[1].content[0]: cache_control"),
    "no thinking before tools": (
        turn(told(text(), use()), asked(got()), thinking={"type": "enabled", "budget_tokens": 1024}),
        "messages[1].content[0]: with thinking enabled",
    ),
}

CASES = {"openai": CHAT_CASES, "responses": RESPONSES_CASES, "anthropic": ANTHROPIC_CASES}
LISTED = [(name, label) for name, cases in CASES.items() for label in cases]
# One wrong thing can break two rules: a result too late is also one without its use.
ALSO = {
    ("responses", "long call_id"): 2,
    ("responses", "output before call"): 2,
    ("responses", "output of another kind"): 2,
    ("anthropic", "result too late"): 2,
}


@pytest.mark.parametrize(("name", "label"), LISTED)
def test_what_a_provider_refuses_is_found_at_its_place(name: str, label: str) -> None:
    body, problem = CASES[name][label]
    found = dialect(name).validate(body)
    assert found
    assert any(one.startswith(problem) for one in found)
    assert len(found) == ALSO.get((name, label), 1), found


GOOD = {
    "openai": [
        chat(
            {"role": "developer", "content": [{"type": "text", "text": "x"}]},
            chat_calls(chat_call("a"), chat_call("b")),
            chat_result("b"),
            chat_result("a"),
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
            chat_calls(chat_call("a")),  # an id may come again in another batch
            chat_result("a"),
        )
    ],
    "responses": [
        {"input": "Hi."},
        items(REASONING, SAID, call(), output()),
        items(REASONING, {**REASONING, "id": "rs_2"}, call(), output(output=[{"type": "input_text", "text": "x"}])),
        items({"role": "assistant", "content": [{"type": "output_text", "text": "x"}]}),
    ],
    "anthropic": [
        turn(system="Be kind."),
        turn(told(THOUGHT, text(), use()), asked(got(content=[text()]), text()), thinking={"type": "enabled"}),
        turn(told(text("Yes. ")), U),  # only at the very end is white space refused
        turn(told(SEARCH, FOUND, text())),
        turn(told(use()), asked({"type": "tool_result", "tool_use_id": "a"})),
    ],
}


@pytest.mark.parametrize("name", NAMES)
def test_what_a_provider_takes_is_not_complained_about(name: str) -> None:
    assert [dialect(name).validate(body) for body in GOOD[name]] == [[]] * len(GOOD[name])
