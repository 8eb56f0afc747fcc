"""Anthropic's messages API.

Roles alternate, so neighbours of one role become one message of several blocks; block for block, a turn's messages
without the volatile ones begin the next turn's. Thinking is sent back when it is signed and something of the same
message follows it. Blocks of tools the server runs itself go together with their results. A system message in the
middle becomes a note in the user's turn. A user's name is written before the text, other names are left out, and so are
citations. The assistant's messages lose white space at their end, which the API refuses in the last one.

Marks for the cache: on the last block of the prefix (the system prompt, or what is quoted after it), on the last block
before the volatile ones, and where the latter were before the newest reply, because the API looks back over twenty
blocks only.
"""

from typing import Any, cast

from daypack.turn.dialects.given import Given
from daypack.turn.dialects.parts import (
    NO_OUTPUT,
    NO_TEXT,
    Block,
    Shapes,
    comes_from,
    data_of,
    image_of,
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
from daypack.turn.dialects.rules.anthropic import (
    CACHEABLE,
    MAX_ID_CHARS,
    SERVER_RESULTS,
    THINKING,
    validate,
)
from daypack.turn.dialects.rules.server_items import problem_of
from daypack.turn.dialects.tool_calls import Calls, arguments_object, in_order, tool_name
from daypack.types.history import File, Image, Message, Other, Part, Text, Thinking, ToolCall

__all__ = ["SHAPES", "read", "render", "validate"]

_PDF = "application/pdf"


def render(given: Given) -> dict[str, Any]:
    """Return `system` and `messages` for `client.messages.create`; `system` only when there is a prefix."""
    messages: list[Block] = []
    calls = Calls(MAX_ID_CHARS)
    quoted = _text(words) if given.quoted and (words := quoted_text(given.quoted)) else None
    _add(messages, "user", [quoted] if quoted else [])
    for message in given.messages:
        role = message.role
        if role == "user":
            _add(messages, "user", _user(message))
        elif role == "tool":
            _add(messages, "user", [_result(message, calls)])
        elif role == "assistant":
            _add(messages, "assistant", _assistant(message, calls))
        elif not is_blank(text := spoken(message.content)):
            _add(messages, "user", [_text(f"[system note] {text}")])
    _mark_tail(messages)
    _add(messages, "user", list(map(_text, without_blanks(given.volatile))))
    if not (system := list(map(_text, without_blanks(given.prefix)))):
        _mark([quoted] if quoted else [])
        return {"messages": messages}
    _mark([quoted] if quoted else system)
    return {"system": system, "messages": messages}


def _add(messages: list[Block], role: str, blocks: list[Block]) -> None:
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"].extend(blocks)
    elif blocks:
        messages.append({"role": role, "content": blocks})


def _mark_tail(messages: list[Block]) -> None:
    reply = len(messages) - 1
    while reply > 0 and messages[reply]["role"] != "assistant":
        reply -= 1
    for end in (len(messages), reply):
        for message in reversed(messages[:end]):
            if _mark(message["content"]):
                break


def _mark(blocks: list[Block]) -> bool:
    """Mark the last block that may have a cache mark; return False if there is none."""
    for block in reversed(blocks):
        if block["type"] in CACHEABLE:
            block["cache_control"] = {"type": "ephemeral"}
            return True
    return False


def _user(message: Message) -> list[Block]:
    content, who = message.content, named(message)
    if isinstance(content, str):
        return [_text(who + (NO_TEXT if is_blank(content) else content))]
    blocks = SHAPES.blocks(message, content) or [_text(NO_TEXT)]
    if who and blocks[0]["type"] == "text":
        return [_text(who + blocks[0]["text"]), *blocks[1:]]
    return [_text(who.rstrip()), *blocks] if who else blocks


def _result(message: Message, calls: Calls) -> Block:
    content: Any = message.content
    if not isinstance(content, str):
        content = SHAPES.blocks(message, content)
    if not content or (isinstance(content, str) and content.isspace()):
        content = NO_OUTPUT
    block = {"type": "tool_result", "tool_use_id": calls.name_result(message), "content": content}
    if message.meta and message.meta.get("is_error") is True:
        block["is_error"] = True
    return block


def _assistant(message: Message, calls: Calls) -> list[Block]:
    if isinstance(message.content, str) and not message.tool_calls:
        return [] if is_blank(message.content) else [_text(message.content.rstrip())]
    ours = comes_from(message, "anthropic")
    served = _served(message, calls) if ours else {}
    blocks: list[Block] = []
    for part in in_order(message):
        if isinstance(part, ToolCall):
            name, given = tool_name(part.name), calls.name_call(part.id)
            block = {"type": "tool_use", "id": given, "name": name, "input": arguments_object(part.arguments)}
        elif isinstance(part, Thinking):
            block = _thinking(part) if ours else None
        elif isinstance(part, Other) and ours:
            block = _own_reply(part.value, served) or _words(part)
        else:
            block = _words(part)
        if block is not None:
            blocks.append(block)
    # Decided within the message: what was sent once must not change when another message follows.
    while blocks and blocks[-1]["type"] in THINKING:
        blocks.pop()
    if blocks and blocks[-1]["type"] == "text":
        blocks[-1] = _text(blocks[-1]["text"].rstrip())
    return blocks


def _words(part: Part) -> Block | None:
    known = recognise(part.value) if isinstance(part, Other) else part
    if isinstance(known, (Image, File)):
        return _text(mention(known))
    if not isinstance(known, Text) or is_blank(known.text):
        return None
    return _text(known.text)


def _thinking(part: Thinking) -> Block | None:
    origin = (part.meta or {}).get("dialect")
    if is_blank(part.signature or "") or origin not in (None, "anthropic"):
        return None
    return {"type": "thinking", "thinking": part.text, "signature": part.signature}


def _served(message: Message, calls: Calls) -> dict[str, bool]:
    """Return the server's tool uses that have their result in the same message, by id; none is sent yet."""
    used: set[str] = set()
    served: set[str] = set()
    for part in message.content if not isinstance(message.content, str) else ():
        if not isinstance(part, Other) or problem_of(part.value):
            continue
        if part.kind == "server_tool_use":
            used.add(part.value["id"])
        elif part.kind in SERVER_RESULTS and part.value["tool_use_id"] in used:
            served.add(part.value["tool_use_id"])
    return {use: False for use in sorted(served) if calls.claim(use)}


def _own_reply(value: Block, served: dict[str, bool]) -> Block | None:
    kind = text_at(value, "type")
    if kind == "redacted_thinking" and not is_blank(text_at(value, "data")):
        return {"type": kind, "data": value["data"]}
    if problem_of(value):
        return None
    if kind == "server_tool_use" and served.get(use := text_at(value, "id")) is False:
        served[use] = True
        return _unmarked(value)
    if kind in SERVER_RESULTS and served.get(use := text_at(value, "tool_use_id")) is True:
        del served[use]
        return _unmarked(value)
    return None


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _image(part: Image) -> Block | None:
    if _is_fetchable(part.source):
        return {"type": "image", "source": {"type": "url", "url": part.source}}
    if data := image_of(part.source):
        return {"type": "image", "source": {"type": "base64", "media_type": data[0], "data": data[1]}}
    return None


def _file(part: File) -> Block | None:
    source = part.source
    if _is_fetchable(source) and (part.media_type == _PDF or source.partition("?")[0].lower().endswith(".pdf")):
        return {"type": "document", "source": {"type": "url", "url": source}}
    if (data := data_of(source)) and data[0] == _PDF:
        return {"type": "document", "source": {"type": "base64", "media_type": _PDF, "data": data[1]}}
    return None


def _is_fetchable(source: str) -> bool:
    return source.startswith("https://") and is_web(source)


def _own(value: Block) -> Block | None:
    """Return a document with its title and context, or a picture or file that the provider has."""
    kind, source = text_at(value, "type"), _own_source(object_at(value, "source"))
    if source is None or kind not in ("image", "document") or (kind == "image" and source["type"] != "file"):
        return None
    block: Block = {"type": kind, "source": source}
    if kind == "document":
        block |= {name: value[name] for name in ("title", "context") if not is_blank(text_at(value, name))}
        if isinstance(enabled := object_at(value, "citations").get("enabled"), bool):
            block["citations"] = {"enabled": enabled}
    return block


def _own_source(source: Block) -> Block | None:
    kind, data, url = text_at(source, "type"), text_at(source, "data"), text_at(source, "url")
    if kind == "file" and not is_blank(given := text_at(source, "file_id")):
        return {"type": kind, "file_id": given}
    if kind == "url" and _is_fetchable(url):
        return {"type": kind, "url": url}
    if kind == "base64" and source.get("media_type") == _PDF and data_of(f"data:{_PDF};base64,{data}"):
        return {"type": kind, "media_type": _PDF, "data": data}
    if kind == "text" and source.get("media_type") == "text/plain" and not is_blank(data):
        return {"type": kind, "media_type": "text/plain", "data": data}
    return None


def _unmarked(value: Block) -> Block:
    return {name: item for name, item in value.items() if name not in ("cache_control", "meta")}


SHAPES = Shapes(dialect="anthropic", text=_text, image=_image, file=_file, own=_own)


def read(reply: object) -> Reply:
    """Read a message the API returned, a dict of its shape, or a text."""
    if isinstance(reply, str):
        return Draft().say(reply).finish()
    value = open_reply(reply)
    if value.get("role") != "assistant" or "content" not in value:
        raise unusable("is not an assistant's message", "reply", "give what messages.create returned")
    draft = Draft()
    content = value["content"]
    if isinstance(content, str):
        draft.say(content)
    for index, block in _joined(list_at(value, "content")):
        _read_block(block, index, draft)
    facts = {"id": value.get("id"), "model": value.get("model"), "stop": value.get("stop_reason")}
    return draft.finish("anthropic", facts, read_usage(object_at(value, "usage")))


def _joined(blocks: list[Block]) -> list[tuple[int, Block]]:
    """Return the blocks with their places; neighbouring texts are one text, which the API cuts where it cites."""
    joined: list[tuple[int, Block]] = []
    for index, block in enumerate(blocks):
        before = joined[-1][1] if joined else {}
        if block.get("type") == before.get("type") == "text":
            cited = [*list_at(before, "citations"), *list_at(block, "citations")]
            joined[-1] = index, {**before, "text": text_at(before, "text") + text_at(block, "text"), "citations": cited}
        else:
            joined.append((index, block))
    return joined


def _read_block(block: Block, index: int, draft: Draft) -> None:
    kind = text_at(block, "type")
    if kind == "text":
        cited = block.get("citations")
        draft.say(text_at(block, "text"), {"citations": cast(list[Any], cited)} if cited else None)
    elif kind == "thinking":
        draft.think(text_at(block, "thinking"), {"dialect": "anthropic"}, text_at(block, "signature") or None)
    elif kind == "tool_use":
        name, given = text_at(block, "name"), text_at(block, "id")
        if not name or not given:
            raise unusable("has a tool_use without id or name", f"content[{index}]", "is the stream read to its end?")
        draft.call(given, name, block.get("input") or {})
    else:
        draft.keep(block)
