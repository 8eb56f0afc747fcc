"""The cost of one message in the dialect that needs most for it."""

import msgspec

from daypack.text.tokens import Counter, count_message
from daypack.turn.dialects.tool_calls import arguments_object
from daypack.turn.items import Cost
from daypack.types.authority import is_quoted
from daypack.types.history import File, Image, Message, Other, Part, Text, Thinking

# What a provider adds around a message and around a tool call, at most: role, separators, ids.
MESSAGE_TOKENS = 4
CALL_TOKENS = 8
# What a dialect adds, at most: "(no output)" for empty content, "[system note] " before an instruction, "[image: …]".
_PLACEHOLDER = Cost(7, 14)
_FENCE = Cost(56, 120)  # around a system message that is only quoted
_MENTION_BYTES = 10
_NAME_TOKENS = 3  # the ": " between name and content, and tokens that no longer merge
_MEDIA = (Image, File, Other)
_CALL_BYTES = 26  # a name that must be respelled, and an object around arguments that are not one


def message_cost(message: Message, counter: Counter, tokens: int | None = None, model: str | None = None) -> Cost:
    """Return what a message takes from a window; `tokens`: the count of its content, if known.

    `model` decides what images cost. A stored count does not know it, so a message with media is counted again, without
    what no provider is sent.
    """
    content, calls = message.content, message.tool_calls
    sent = message
    if not isinstance(content, str) and any(isinstance(part, _MEDIA) for part in content):
        from daypack.turn.dialects.unsent import as_sent  # noqa: PLC0415 — few messages have media

        sent, tokens = as_sent(message), None
    if tokens is None:
        tokens = count_message(counter, sent, model)
    size = size_of(sent)
    tokens += MESSAGE_TOKENS
    if message.role == "system" and is_quoted(message):
        tokens, size = tokens + _FENCE.tokens, size + _FENCE.bytes
    if message.role == "system" or not content or (isinstance(content, str) and content.isspace()):
        tokens, size = tokens + _PLACEHOLDER.tokens, size + _PLACEHOLDER.bytes
    if not isinstance(content, str):
        tokens, size = tokens + len(content) + _PLACEHOLDER.tokens, size + _MENTION_BYTES * (len(content) + 1)
    if message.name:
        tokens += _NAME_TOKENS
    for call in calls:
        escapes = _escapes(call.arguments)
        tokens, size = tokens + CALL_TOKENS + escapes, size + _CALL_BYTES + escapes
    return Cost(tokens, size, 1)


def _escapes(arguments: str) -> int:
    """Return how much longer arguments become where only an object is accepted and they are not one."""
    if arguments_object(arguments).get("arguments") != arguments:
        return 0
    return len(msgspec.json.encode(arguments)) - len(arguments.encode("utf-8", "replace"))


def size_of(message: Message) -> int:
    """Return the bytes of a message's content, calls and name."""
    content = message.content
    texts = [content] if isinstance(content, str) else list(map(_text_of, content))
    for call in message.tool_calls:
        texts += (call.name, call.arguments)
    if message.name:
        texts.append(f"{message.name}: ")
    return sum(map(_bytes, texts))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def _text_of(part: Part) -> str:
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Thinking):  # with the signature that its provider checks
        sealed = (part.meta or {}).get("encrypted_content")
        return part.text + (part.signature or "") + (sealed if isinstance(sealed, str) else "")
    return msgspec.json.encode(part.value).decode() if isinstance(part, Other) else part.source
