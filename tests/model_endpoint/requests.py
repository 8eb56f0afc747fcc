"""Requests that a provider refuses, each with words of the refusal, and requests that it accepts."""

import base64
from collections.abc import Mapping
from typing import Any

from model_endpoint import messages, responses
from model_endpoint.script import Call, Say

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n and no more").decode()
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
ASK = [{"role": "user", "content": "Read a.py."}]
REPLY = Say("I look at it.", calls=(Call("read_file", {"path": "a.py"}),), thinking="Which file?")


def chat_call(*ids: str) -> dict[str, Any]:
    calls = [{"id": given, "type": "function", "function": {"name": "f", "arguments": "{}"}} for given in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def chat_result(given: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": given, "content": "done"}


def picture(url: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url, "detail": "low"}}]}


def function(**fields: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", "parameters": SCHEMA, **fields}}


CHAT_REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"messages": []}, "too short"),
    ({"messages": [*ASK, {"role": "robot", "content": "x"}]}, r"messages\[1\]"),
    ({"messages": [{"role": "user", "content": "x", "seq": 4}]}, r"messages\[0\].seq: Extra"),
    ({"messages": [{"role": "user", "content": [{"type": "input_text", "text": "x"}]}]}, r"content\[0\]"),
    ({"messages": [{"role": "user"}]}, "content: Field required"),
    ({"messages": [{"role": "user", "content": "x", "name": "Ada L."}]}, "name: does not match"),
    ({"messages": [*ASK, {"role": "assistant", "content": None}]}, "got null"),
    ({"messages": [*ASK, chat_call("a", "b"), chat_result("a"), *ASK]}, "no response for: b"),
    ({"messages": [*ASK, chat_call("a")]}, "no response for: a"),
    ({"messages": [*ASK, chat_result("a")]}, "a is not waiting"),
    ({"messages": [*ASK, chat_call("a"), chat_result("a"), chat_result("a")]}, "a is not waiting"),
    ({"messages": [*ASK, chat_call("a"), *ASK, chat_result("a")]}, "no response for: a"),
    ({"messages": [*ASK, chat_call("a" * 41), chat_result("a" * 41)]}, "1 to 40"),
    ({"messages": [picture(f"data:image/png;base64,{PIXEL}x")]}, "not valid base64"),
    ({"messages": [picture(f"data:image/gif;base64,{PIXEL}")]}, "not that of image/gif"),
    ({"messages": [picture("file:///a.png")]}, "neither an address"),
    ({"messages": ASK, "tools": [function(parameters={"type": "objekt"})]}, "invalid JSON schema"),
    ({"messages": ASK, "tools": [function(parameters={"type": "string"})]}, "must be object"),
    ({"messages": ASK, "tools": [function(name="a b")]}, "'a b' is not"),
    ({"messages": ASK, "tools": [function(), function()]}, "two tools named f"),
    ({"messages": ASK, "tools": [function(strict=True)]}, "strict schema"),
    ({"messages": ASK, "tools": [{"name": "f", "input_schema": SCHEMA}]}, r"tools\[0\]"),
    ({"messages": ASK, "tool_choice": "auto"}, "only allowed when tools"),
    ({"messages": ASK, "stream_options": {"include_usage": True}}, "only allowed when stream"),
    ({"messages": ASK, "system": "x"}, "system: Extra"),
    ({"messages": ASK, "temperature": "warm"}, "temperature"),
]


def use(*ids: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": i, "name": "f", "input": {}} for i in ids]}


def results(*ids: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": i, "content": "x"} for i in ids]}


def thinking(signature: str) -> dict[str, Any]:
    thought = {"type": "thinking", "thinking": "hm", "signature": signature}
    return {"role": "assistant", "content": [thought, {"type": "text", "text": "Yes."}]}


def source(**fields: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "image", "source": fields}]}


TOOLS = {"tools": [{"name": "f", "input_schema": SCHEMA}]}
MARK = {"cache_control": {"type": "ephemeral"}}
ANTHROPIC_REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"messages": []}, "at least one"),
    ({"messages": [{"role": "assistant", "content": "x"}]}, "first message"),
    ({"messages": ASK * 2}, "must alternate"),
    ({"messages": [{"role": "tool", "content": "x"}]}, r"messages\[0\]"),
    ({"messages": [{"role": "system", "content": "x"}, *ASK]}, "top-level `system`"),
    ({"messages": [{"role": "user", "content": " "}]}, "non-whitespace"),
    ({"messages": [{"role": "user", "content": []}]}, "non-empty"),
    ({"messages": [{"role": "user", "content": "x", "name": "Ada"}]}, "name: Extra"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, "content"),
    ({"messages": [*ASK, use("a")], **TOOLS}, "without `tool_result`.*: a"),
    ({"messages": [*ASK, use("a", "b"), results("a")], **TOOLS}, "without `tool_result`.*: b"),
    ({"messages": [*ASK, use("a"), *ASK], **TOOLS}, "without `tool_result`"),
    ({"messages": [results("a")], **TOOLS}, "unexpected `tool_use_id`.*: a"),
    ({"messages": [*ASK, use("a"), results("a", "a")], **TOOLS}, "single result"),
    ({"messages": [*ASK, use("a", "a"), results("a")], **TOOLS}, "must be unique"),
    ({"messages": [*ASK, use("a"), results("a")]}, "must define tools"),
    (
        {
            "messages": [
                *ASK,
                use("a"),
                {"role": "user", "content": [{"type": "text", "text": "x"}, *results("a")["content"]]},
            ],
            **TOOLS,
        },
        "must come first",
    ),
    ({"messages": [*ASK, thinking("forged"), *ASK]}, "Invalid `signature`"),
    ({"messages": [*ASK, {"role": "assistant", "content": "Well, "}]}, "trailing whitespace"),
    ({"messages": [source(type="base64", media_type="image/png", data="!")]}, "not valid base64"),
    ({"messages": [source(type="base64", media_type="image/gif", data=PIXEL)]}, "not that of image/gif"),
    ({"messages": [source(type="url", url="http://example.org/a.png")]}, "HTTPS"),
    ({"messages": ASK, "system": ""} | {"system": [{"type": "text", "text": ""}]}, "system.0"),
    ({"messages": ASK, "system": [{"type": "text", "text": "x", **MARK}] * 5}, "maximum of 4"),
    ({"messages": ASK, "tools": [{"name": "f", "parameters": SCHEMA}]}, r"tools\[0\]"),
    ({"messages": ASK, "tools": [{"name": "f", "input_schema": {"type": "object", "required": "x"}}]}, "invalid JSON"),
    ({"messages": ASK, "tool_choice": {"type": "tool", "name": "g"}, **TOOLS}, "no tool g"),
    ({"messages": ASK, "max_tokens": 0}, "max_tokens"),
    ({"messages": ASK, "stop": "x"}, "stop: Extra"),
]


def call_item(given: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": given, "name": "f", "arguments": "{}"}


def output(given: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": given, "output": "x"}


def reasoning(sealed: str) -> dict[str, Any]:
    return {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": sealed}


RESPONSES_REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"input": []}, "input"),
    ({"input": [{"role": "tool", "content": "x"}]}, "input"),
    ({"input": [{"role": "user", "content": "x", "seq": 1}]}, "seq: Extra"),
    ({"input": [{"role": "user", "content": [{"type": "output_text", "text": "x"}]}]}, "input"),
    ({"input": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}, "input"),
    ({"input": [*ASK, call_item("a")]}, "No tool output found for function call a"),
    ({"input": [*ASK, call_item("a"), *ASK, output("a")]}, "No tool output found for function call a"),
    ({"input": [*ASK, output("a")]}, "No tool call found.*a"),
    ({"input": [*ASK, call_item("a"), output("a"), output("a")]}, "No tool call found.*a"),
    ({"input": [*ASK, call_item("a"), call_item("a"), output("a")]}, "Duplicate"),
    (
        {
            "input": [
                *ASK,
                reasoning(
                    responses.whole(REPLY, {"model": "m", "include": ["reasoning.encrypted_content"]}, 1)["output"][0][
                        "encrypted_content"
                    ]
                ),
            ]
        },
        "required following item",
    ),
    ({"input": [*ASK, reasoning("forged"), {"role": "assistant", "content": "x"}]}, "could not be verified"),
    ({"input": ASK, "previous_response_id": "resp_0"}, "not found"),
    ({"input": ASK, "messages": ASK}, "messages: Extra"),
    ({"input": ASK, "tools": [function()]}, r"tools\[0\]"),
    (
        {"input": ASK, "tools": [{"type": "function", "name": "f", "parameters": SCHEMA, "strict": True}]},
        "strict schema",
    ),
    (
        {"input": [{"role": "user", "content": [{"type": "input_image", "detail": "auto", "image_url": "a.png"}]}]},
        "neither an address",
    ),
]
NEEDED: dict[str, dict[str, Any]] = {
    "chat": {"model": "m", "messages": ASK},
    "messages": {"model": "m", "messages": ASK, "max_tokens": 9},
    "responses": {"model": "m", "input": ASK},
}
REFUSED = [
    *(("chat", body, words) for body, words in CHAT_REFUSED),
    *(("messages", body, words) for body, words in ANTHROPIC_REFUSED),
    *(("responses", body, words) for body, words in RESPONSES_REFUSED),
]
ACCEPTED: list[tuple[str, Mapping[str, Any]]] = [
    (
        "chat",
        {
            "messages": [
                {"role": "system", "content": "s"},
                *ASK,
                chat_call("a", "b"),
                chat_result("b"),
                chat_result("a"),
            ]
        },
    ),
    ("chat", {"messages": [picture(f"data:image/png;base64,{PIXEL}")], "tools": [function()], "tool_choice": "auto"}),
    ("chat", {"messages": [*ASK, {"role": "assistant", "content": "", "refusal": "No."}, *ASK]}),
    ("messages", {"messages": [*ASK, use("a", "b"), results("b", "a")], "system": "s", **TOOLS}),
    ("messages", {"messages": [source(type="base64", media_type="image/png", data=PIXEL)]}),
    (
        "messages",
        {
            "messages": [
                *ASK,
                thinking(messages.whole(Say(thinking="hm"), {"model": "m"}, 1)["content"][0]["signature"]),
                *ASK,
            ]
        },
    ),
    ("responses", {"input": "Hello", "instructions": "s"}),
    (
        "responses",
        {
            "input": [
                *ASK,
                call_item("a"),
                call_item("b"),
                output("b"),
                output("a"),
                {"role": "assistant", "content": "x"},
            ]
        },
    ),
]
