"""OpenAI's chat completions, and the many servers that speak the same.

A message of daypack is a message here, one to one, so that a turn's list without its last, volatile message begins the
next turn's list. A user's or assistant's `name` is sent where its letters allow; a user's name with others is written
before the text. Thinking is never sent: no chat API takes it as input.
"""

from typing import Any

from daypack.turn.dialects.given import Given
from daypack.turn.dialects.parts import (
    NO_OUTPUT,
    NO_TEXT,
    Block,
    Shapes,
    data_of,
    detail_of,
    file_name,
    image_url,
    is_blank,
    named,
    quoted_text,
    spoken,
    without_blanks,
)
from daypack.turn.dialects.reply import Draft, Reply, read_usage
from daypack.turn.dialects.reply_fields import list_at, object_at, open_reply, text_at, unusable
from daypack.turn.dialects.rules.openai import MAX_ID_CHARS, NAME, validate
from daypack.turn.dialects.tool_calls import Calls, is_custom, tool_name, whole_text
from daypack.types.history import File, Image, Message, Text, ToolCall

__all__ = ["SHAPES", "read", "render", "validate"]

_SOUNDS = ("wav", "mp3")


def render(given: Given) -> dict[str, Any]:
    """Return `messages` for `client.chat.completions.create`."""
    messages: list[Block] = []
    if prefix := without_blanks(given.prefix):
        messages.append({"role": "system", "content": "\n\n".join(prefix)})
    if given.quoted and (quoted := quoted_text(given.quoted)):
        messages.append({"role": "user", "content": quoted})
    calls = Calls(MAX_ID_CHARS)
    for message in given.messages:
        role = message.role
        if role == "user":
            messages.append(_user(message))
        elif role == "tool":
            text = spoken(message.content)
            content = NO_OUTPUT if is_blank(text) else text
            messages.append({"role": "tool", "tool_call_id": calls.name_result(message), "content": content})
        elif role == "assistant":
            if rendered := _assistant(message, calls):
                messages.append(rendered)
        elif not is_blank(text := spoken(message.content)):
            messages.append({"role": "system", "content": text})
    if volatile := without_blanks(given.volatile):
        text = "\n\n".join(volatile)
        if given.attached:
            messages[-1]["content"] = SHAPES.attach(messages[-1]["content"], text)
        else:
            messages.append({"role": "user", "content": text})
    return {"messages": messages}


def _user(message: Message) -> Block:
    said: str | list[Block]
    if isinstance(message.content, str):
        said = message.content
    else:
        said = SHAPES.blocks(message, message.content)
        if all(block["type"] == "text" for block in said):
            said = "\n".join(block["text"] for block in said)  # a plain text is what every server takes
    if isinstance(said, str) and is_blank(said):
        said = NO_TEXT
    if message.name is None:
        return {"role": "user", "content": said}
    if NAME.fullmatch(message.name):
        return {"role": "user", "name": message.name, "content": said}
    who = named(message)
    return {"role": "user", "content": who + said if isinstance(said, str) else [_text(who.rstrip()), *said]}


def _assistant(message: Message, calls: Calls) -> Block | None:
    text = spoken(message.content)
    content: Any = None if is_blank(text) else text
    if content is None and not message.tool_calls:
        return None
    rendered: Block = {"role": "assistant"}
    if message.name is not None and NAME.fullmatch(message.name):
        rendered["name"] = message.name
    rendered["content"] = [{"type": "refusal", "refusal": text}] if _is_refusal(message) else content
    if message.tool_calls:
        rendered["tool_calls"] = [_call(call, calls) for call in message.tool_calls]
    return rendered


def _is_refusal(message: Message) -> bool:
    content = [whole_text(message)] if isinstance(message.content, str) else message.content
    texts = [part for part in content if isinstance(part, Text)]
    return len(texts) == 1 and bool(texts[0].meta) and bool(texts[0].meta.get("refusal"))


def _call(call: ToolCall, calls: Calls) -> Block:
    name, given = tool_name(call.name), calls.name_call(call.id)
    if is_custom(call):
        return {"id": given, "type": "custom", "custom": {"name": name, "input": call.arguments}}
    return {"id": given, "type": "function", "function": {"name": name, "arguments": call.arguments}}


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _image(part: Image) -> Block | None:
    if url := image_url(part.source):
        detail = detail_of(part)
        return {"type": "image_url", "image_url": {"url": url, **({"detail": detail} if detail else {})}}
    return None


def _file(part: File) -> Block | None:
    if data_of(part.source):
        return {"type": "file", "file": {"filename": file_name(part), "file_data": part.source}}
    return None


def _own(value: Block) -> Block | None:
    """Return a part that has no other form: a sound, or a file that the provider has."""
    kind, sound = text_at(value, "type"), object_at(value, "input_audio")
    if kind == "input_audio" and text_at(sound, "data") and text_at(sound, "format") in _SOUNDS:
        return {"type": kind, kind: {name: sound[name] for name in ("data", "format")}}
    if kind == "file" and not is_blank(given := text_at(object_at(value, "file"), "file_id")):
        return {"type": kind, kind: {"file_id": given}}
    return None


SHAPES = Shapes(dialect="openai", text=_text, image=_image, file=_file, own=_own)


def read(reply: object) -> Reply:
    """Read a chat completion, one of its choices, its message, or a text."""
    if isinstance(reply, str):
        return Draft().say(reply).finish()
    value = open_reply(reply)
    message, stop = value, None
    if "choices" in value:
        choices = list_at(value, "choices")
        if len(choices) != 1:
            hint = "give the chosen message: reply.choices[n].message"
            raise unusable(f"has {len(choices)} choices, and one is needed", "choices", hint)
        stop = choices[0].get("finish_reason")
        message = object_at(choices[0], "message")
    elif "message" in value:  # a choice by itself
        stop, message = value.get("finish_reason"), object_at(value, "message")
    if message.get("role", "assistant") != "assistant" or not ("content" in message or "tool_calls" in message):
        raise unusable("is not an assistant's message", "message", "give what chat.completions.create returned")
    draft = Draft()
    _read_words(message, draft)
    for index, call in enumerate(list_at(message, "tool_calls")):
        _read_call(call, index, draft)
    if message.get("function_call"):
        raise unusable("uses function_call, which tool_calls replaced", "function_call", "describe functions as tools")
    facts = {"id": value.get("id"), "model": value.get("model"), "stop": stop}
    # A bare message of words could be anybody's.
    known = message is not value or message.get("tool_calls")
    return draft.finish("openai" if known else None, facts, read_usage(object_at(value, "usage")))


def _read_words(message: Block, draft: Draft) -> None:
    # Not OpenAI's own: what most other servers of this API call the model's thinking.
    if thought := text_at(message, "reasoning_content") or text_at(message, "reasoning"):
        draft.think(thought, {"dialect": "openai"})
    content = message.get("content")
    notes = message.get("annotations")
    if isinstance(content, str):
        draft.say(content, {"annotations": notes} if notes else None)
    elif isinstance(content, list):
        for part in list_at(message, "content"):
            draft.take(part)
    elif content is not None:
        raise unusable("has content that is neither text nor a list of parts", "content", "give the message as it came")
    if refusal := text_at(message, "refusal"):
        draft.say(refusal, {"refusal": True})
    if not content and (spoken_text := text_at(object_at(message, "audio"), "transcript")):
        draft.say(spoken_text)


def _read_call(call: Block, index: int, draft: Draft) -> None:
    function = object_at(call, "function") or object_at(call, "custom") or call
    arguments = function.get("arguments", function.get("input", ""))
    name, given = text_at(function, "name"), text_at(call, "id") or f"call_{index}"
    if not name:
        raise unusable("has a call without a name", f"tool_calls[{index}]", "is the stream read to its end?")
    draft.call(given, name, arguments, {"type": "custom"} if call.get("type") == "custom" else None)
