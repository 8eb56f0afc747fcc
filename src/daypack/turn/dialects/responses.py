"""OpenAI's responses API.

A message becomes one or several items, so that a turn's input without its last, volatile item begins the next turn's
input. Items go without the ids the server gave them: those tie a message to a reasoning item that may not be there.
Reasoning is sent back when its encrypted content was returned and something of the same reply follows it; items of
tools that the server runs itself only together with all reasoning of their reply. A user's name is written before
the text, other names are left out.
"""

from typing import Any

from daypack.turn.dialects.given import Given
from daypack.turn.dialects.parts import (
    DETAILS,
    NO_OUTPUT,
    NO_TEXT,
    Block,
    Shapes,
    comes_from,
    data_of,
    detail_of,
    file_name,
    image_url,
    is_blank,
    is_web,
    mention,
    named,
    quoted_text,
    recognise,
    spoken,
    without_blanks,
)
from daypack.turn.dialects.reply import Draft, Reply, read_usage
from daypack.turn.dialects.reply_fields import list_at, object_at, open_reply, text_at, unusable
from daypack.turn.dialects.rules.responses import MAX_ID_CHARS, SERVER_ITEMS, validate
from daypack.turn.dialects.rules.server_items import problem_of
from daypack.turn.dialects.tool_calls import Calls, in_order, is_custom, tool_name, whole_text
from daypack.types.history import File, Image, Message, Other, Part, Text, Thinking, ToolCall

__all__ = ["SHAPES", "read", "render", "validate"]

_UNFINISHED = ("failed", "cancelled", "queued", "in_progress")
_PHASES = ("commentary", "final_answer")


def render(given: Given) -> dict[str, Any]:
    """Return `input` for `client.responses.create`."""
    items: list[Block] = []
    if prefix := without_blanks(given.prefix):
        items.append({"role": "system", "content": "\n\n".join(prefix)})
    if given.quoted and (quoted := quoted_text(given.quoted)):
        items.append({"role": "user", "content": quoted})
    sent = _Sent()
    for message in given.messages:
        role = message.role
        if role == "user":
            items.append({"role": "user", "content": _content(message, NO_TEXT)})
        elif role == "tool":
            items.append(sent.result(message))
        elif role == "assistant":
            items.extend(_assistant(message, sent))
        elif not is_blank(text := spoken(message.content)):
            items.append({"role": "system", "content": text})
    if volatile := without_blanks(given.volatile):
        text = "\n\n".join(volatile)
        if given.attached:
            place = "content" if "content" in items[-1] else "output"
            items[-1][place] = SHAPES.attach(items[-1][place], text)
        else:
            items.append({"role": "user", "content": text})
    return {"input": items}


class _Sent:
    """What the input contains so far: calls that wait for their result, and ids that may not be repeated."""

    __slots__ = ("_calls", "_custom", "items")

    def __init__(self) -> None:
        self._calls = Calls(MAX_ID_CHARS)
        self._custom: set[str] = set()
        self.items: set[str] = set()

    def call(self, call: ToolCall) -> Block:
        name, given = tool_name(call.name), self._calls.name_call(call.id)
        if is_custom(call):
            self._custom.add(given)
            return {"type": "custom_tool_call", "call_id": given, "name": name, "input": call.arguments}
        item = {"type": "function_call", "call_id": given, "name": name, "arguments": call.arguments}
        if call.meta and isinstance(space := call.meta.get("namespace"), str):
            item["namespace"] = space
        return item

    def result(self, message: Message) -> Block:
        given = self._calls.name_result(message)
        kind = "custom_tool_call_output" if given in self._custom else "function_call_output"
        return {"type": kind, "call_id": given, "output": _content(message, NO_OUTPUT)}


def _content(message: Message, empty: str) -> str | list[Block]:
    content, who = message.content, named(message)
    if not isinstance(content, str):
        blocks = SHAPES.blocks(message, content)
        if any(block["type"] != "input_text" for block in blocks):
            return [_text(who.rstrip()), *blocks] if who else blocks
        content = "\n".join(block["text"] for block in blocks)
    return who + (empty if is_blank(content) else content)


def _assistant(message: Message, sent: _Sent) -> list[Block]:
    if isinstance(message.content, str) and not message.tool_calls:
        item, _ = _message(whole_text(message))
        return [item] if item else []
    ours = comes_from(message, "responses")
    # An item of the server's tools is refused without the reasoning that led to it.
    whole = ours and all(_reasoning(part, sent) for part in message.content if isinstance(part, Thinking))
    items: list[Block] = []
    # A reply of this API goes back in its own order. In others, words after a call come before it: nothing they say is
    # about the output, which follows at once.
    called: list[Block] = items if ours else []
    waiting: list[Block] = []  # reasoning that must be followed by another item
    voice: object = None
    for part in in_order(message):
        if isinstance(part, Thinking):
            if ours and (thought := _reasoning(part, sent)):
                sent.items.add(thought["id"])
                waiting.append(thought)
            continue
        if isinstance(part, ToolCall):
            called += [*waiting, sent.call(part)]
            waiting, voice = [], None
            continue
        if isinstance(part, Other) and (kept := _server_item(part, sent) if whole else None):
            item, spoke = kept, None
        else:
            item, spoke = _message(part)
        if item is None:
            waiting = []  # the item it led to is left out, and it may not be sent alone
            continue
        if spoke is not None and spoke == voice and not waiting:
            items[-1]["content"] += "\n" + item["content"]
        else:
            items += [*waiting, item]
        waiting, voice = [], spoke
    return items if ours else [*items, *called]


def _message(part: Part) -> tuple[Block | None, object]:
    """Return a part as a message item, and whose voice it is in: texts of one voice are one message."""
    known = recognise(part.value) if isinstance(part, Other) else part
    if isinstance(known, (Image, File)):
        known = Text(mention(known))
    if not isinstance(known, Text) or is_blank(known.text):
        return None, None
    meta = known.meta or {}
    item: Block = {"role": "assistant", "content": known.text}
    if (phase := meta.get("phase")) in _PHASES:
        item["phase"] = phase
    return item, (meta.get("id"), phase)


def _reasoning(part: Thinking, sent: _Sent) -> Block | None:
    meta = part.meta or {}
    sealed, given = meta.get("encrypted_content"), meta.get("id")
    if meta.get("dialect") != "responses" or not isinstance(sealed, str) or not isinstance(given, str):
        return None
    if not sealed or not given or given in sent.items:  # the same reply appended twice
        return None
    summary = [{"type": "summary_text", "text": text_at(text, "text")} for text in list_at(meta, "summary")]
    return {"type": "reasoning", "id": given, "summary": summary, "encrypted_content": sealed}


def _server_item(part: Other, sent: _Sent) -> Block | None:
    given = part.value.get("id")
    if part.kind not in SERVER_ITEMS or problem_of(part.value):
        return None
    if given is not None:  # only a compaction may have none
        if not isinstance(given, str) or not given or given in sent.items:
            return None
        sent.items.add(given)
    return {name: field for name, field in part.value.items() if name != "meta"}  # daypack's own word


def _text(text: str) -> Block:
    return {"type": "input_text", "text": text}


def _image(part: Image) -> Block | None:
    if url := image_url(part.source):
        return {"type": "input_image", "detail": detail_of(part) or "auto", "image_url": url}
    return None


def _file(part: File) -> Block | None:
    if is_web(part.source):
        return {"type": "input_file", "file_url": part.source}
    if data_of(part.source):
        return {"type": "input_file", "filename": file_name(part), "file_data": part.source}
    return None


def _own(value: Block) -> Block | None:
    """Return a picture or file that the provider has; those in other places are read as what they are."""
    kind, given = text_at(value, "type"), text_at(value, "file_id")
    if kind not in ("input_image", "input_file") or is_blank(given):
        return None
    if kind == "input_image":
        detail = value.get("detail")
        return {"type": kind, "detail": detail if detail in DETAILS else "auto", "file_id": given}
    return {"type": kind, "file_id": given}


SHAPES = Shapes(dialect="responses", text=_text, image=_image, file=_file, own=_own)


def read(reply: object) -> Reply:
    """Read a response, one of its message items, or a text."""
    if isinstance(reply, str):
        return Draft().say(reply).finish()
    value = open_reply(reply)
    if "output" not in value and value.get("role") == "assistant":
        value = {"output": [value]}
    if not isinstance(value.get("output"), list):
        raise unusable("has no output", "output", "give what responses.create returned")
    if (status := value.get("status")) in _UNFINISHED:
        raise unusable(f"is not finished: {status}", "status", "wait for it, or retrieve it again")
    draft = Draft()
    for index, item in enumerate(list_at(value, "output")):
        _read_item(item, index, draft)
    stop = object_at(value, "incomplete_details").get("reason") or status
    facts = {"id": value.get("id"), "model": value.get("model"), "stop": stop}
    return draft.finish("responses", facts, read_usage(object_at(value, "usage")))


def _read_item(item: Block, index: int, draft: Draft) -> None:
    kind = text_at(item, "type") or "message"
    if kind == "message":
        _read_message(item, draft)
    elif kind == "reasoning":
        summary, content = list_at(item, "summary"), list_at(item, "content")
        thoughts = [text_at(text, "text") for text in summary or content]
        facts = {"id": item.get("id"), "summary": summary, "encrypted_content": item.get("encrypted_content")}
        draft.think("\n\n".join(thoughts), {"dialect": "responses", **{k: v for k, v in facts.items() if v}})
    elif kind in ("function_call", "custom_tool_call"):
        name, given = text_at(item, "name"), text_at(item, "call_id")
        if not name or not given:
            raise unusable("has a call without a name or call_id", f"output[{index}]", "is the response complete?")
        facts = {"namespace": item.get("namespace"), "type": "custom" if kind == "custom_tool_call" else None}
        arguments = item.get("input" if kind == "custom_tool_call" else "arguments", "")
        draft.call(given, name, arguments, {key: fact for key, fact in facts.items() if fact})
    else:
        draft.keep(item)


def _read_message(item: Block, draft: Draft) -> None:
    facts = {key: item.get(key) for key in ("id", "phase") if item.get(key)}
    content = item.get("content")
    if isinstance(content, str):
        draft.say(content, facts)
        return
    parts = list_at(item, "content")
    # One text, as the library's own `output_text` puts it together.
    texts = [part for part in parts if part.get("type") == "output_text"]
    notes = [note for text in texts for note in list_at(text, "annotations")]
    draft.say("".join(text_at(text, "text") for text in texts), {**facts, **({"annotations": notes} if notes else {})})
    for part in parts:
        if part.get("type") == "refusal":
            draft.say(text_at(part, "refusal"), {**facts, "refusal": True})
        elif part.get("type") != "output_text":
            draft.keep(part)
