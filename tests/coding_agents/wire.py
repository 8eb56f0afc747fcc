"""Requests of coding agents: their messages and tools, read alike from all APIs.

These are Anthropic's messages, OpenAI's responses and chat completions, and Google's generateContent.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, cast

Role = Literal["system", "user", "assistant", "tool"]
_ROLES: Mapping[str, Role] = {"developer": "system", "function": "tool"}


class Part(NamedTuple):
    """A text, a tool call (`tool` is its name, `text` its arguments) or the output of one."""

    role: Role
    text: str
    tool: str = ""

    @property
    def is_call(self) -> bool:
        return self.role == "assistant" and bool(self.tool)


def read_parts(body: Mapping[str, Any]) -> list[Part]:
    """Return everything that a request says, in order; the system prompt comes first."""
    system = body.get("system", body.get("instructions", body.get("systemInstruction", {}).get("parts")))
    parts = [Part("system", text) for text in read_texts(system)]
    for content in body.get("contents", ()):
        parts += _google_content(content)
    for message in body.get("messages", body.get("input", ())):
        parts += _message(message)
    return parts


def offered_tools(body: Mapping[str, Any]) -> list[str]:
    """Return the names of the tools that the model may call at once: none that it would have to search for."""
    names: list[str] = []
    for tool in body.get("tools", ()):
        if tool.get("defer_loading"):
            continue
        if "functionDeclarations" in tool:
            names += [function["name"] for function in tool["functionDeclarations"]]
            continue
        name = tool.get("name") or tool.get("function", tool).get("name") or tool["type"]
        inner = [each["name"] for each in tool.get("tools", ()) if not each.get("defer_loading")]
        names += [f"{name}.{each}" for each in inner] or [name]
    return names


def _google_content(content: Mapping[str, Any]) -> Iterator[Part]:
    role: Role = "assistant" if content.get("role") == "model" else "user"
    for part in content["parts"]:
        if call := part.get("functionCall"):
            yield Part("assistant", sorted_arguments(call.get("args", {})), call["name"])
        elif answer := part.get("functionResponse"):
            response = answer["response"]
            yield Part("tool", str(response.get("output", response.get("error", response))))
        elif (text := part.get("text")) and not part.get("thought"):
            yield Part(role, text)


def _message(message: Mapping[str, Any]) -> Iterator[Part]:
    kind = message.get("type", "message")
    if kind in ("function_call", "custom_tool_call"):
        yield Part("assistant", sorted_arguments(message.get("arguments", message.get("input"))), message["name"])
    elif kind in ("function_call_output", "custom_tool_call_output"):
        yield Part("tool", _joined(message["output"]))
    elif kind == "message":
        role = message["role"]
        yield from _content(_ROLES.get(role, role), message.get("content"))
        for call in message.get("tool_calls") or ():
            yield Part("assistant", sorted_arguments(call["function"]["arguments"]), call["function"]["name"])


def _content(role: Role, content: object) -> Iterator[Part]:
    if role == "tool":
        yield Part("tool", _joined(content))
        return
    for block in cast(list[dict[str, Any]], content) if isinstance(content, list) else []:
        if block.get("type") == "tool_use":
            yield Part("assistant", sorted_arguments(block["input"]), block["name"])
        elif block.get("type") == "tool_result":
            yield Part("tool", _joined(block.get("content")))
        elif text := block.get("text"):
            yield Part(role, text)
    if isinstance(content, str) and content:
        yield Part(role, content)


def read_texts(content: object) -> list[str]:
    """Return the texts of a content, which is a text or a list of blocks."""
    if isinstance(content, str):
        return [content] if content else []
    blocks = cast(list[dict[str, Any]], content) if isinstance(content, list) else []
    return [block["text"] for block in blocks if block.get("text")]


def _joined(content: object) -> str:
    return "\n".join(read_texts(content))


def sorted_arguments(arguments: object) -> str:
    """Return the arguments of a call as JSON with sorted keys, or as they are when they are no JSON."""
    try:
        value: object = json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return str(arguments)
    return json.dumps(value, sort_keys=True)
