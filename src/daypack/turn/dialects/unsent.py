"""Parts of a message that no provider takes: every rendering leaves them out, or only mentions them."""

from collections.abc import Sequence

from msgspec.structs import replace

from daypack.turn.dialects import anthropic, openai, responses
from daypack.turn.dialects.parts import mention, recognise
from daypack.turn.dialects.rules.anthropic import SERVER_RESULTS
from daypack.turn.dialects.rules.responses import SERVER_ITEMS
from daypack.turn.dialects.rules.server_items import problem_of
from daypack.types.history import File, Image, Message, Other, Part, Text, Thinking

# What assistants' messages may have beside words, each for the provider that made it.
_OF_REPLIES = ("redacted_thinking", "server_tool_use", *SERVER_RESULTS, *SERVER_ITEMS)
_SHAPES = (openai.SHAPES, responses.SHAPES, anthropic.SHAPES)
_MAX_TYPE_CHARS = 40
_SHORT_MENTION = 64  # in characters: never more tokens than a picture


def unsent_parts(message: Message) -> list[tuple[int, str]]:
    """Return the index of each part that no rendering of a message has, and what it is.

    A picture or file by its name is not among them: a mention of the name is all that a window can have of it.
    """
    if isinstance(message.content, str):
        return []
    parts = enumerate(message.content)
    return [(index, _describe(part)) for index, part in parts if not _is_sent(message, part)]


def as_sent(message: Message) -> Message:
    """Return a message with the parts that some rendering has, and with mentions of the others: what it costs."""
    if isinstance(message.content, str):
        return message
    return replace(message, content=tuple(form for part in message.content for form in _forms(message, part)))


def _forms(message: Message, part: Part) -> Sequence[Part]:
    known = recognise(part.value) if isinstance(part, Other) else part
    words = mention(known) if isinstance(known, (Image, File)) else ""
    if message.role in ("user", "tool"):
        takers = [shapes for shapes in _SHAPES if shapes.takes(message, part)]
        if takers:
            # Another provider may get only the mention, and an address can have more tokens than a picture.
            return (part, Text(words)) if len(words) > _SHORT_MENTION and len(takers) < len(_SHAPES) else (part,)
    if words:
        return (Text(words),)
    return (part,) if _is_sent(message, part) else ()


def _is_sent(message: Message, part: Part) -> bool:
    known = recognise(part.value) if isinstance(part, Other) else part
    if isinstance(known, Thinking):
        return message.role == "assistant"
    if isinstance(known, (Image, File)):
        if message.role not in ("user", "tool") or not known.source.startswith("data:"):
            return True
    elif known is not None:
        return True
    if message.role in ("user", "tool"):
        return any(shapes.takes(message, part) for shapes in _SHAPES)
    return isinstance(part, Other) and part.kind in _OF_REPLIES and not problem_of(part.value)


def _describe(part: Part) -> str:
    if isinstance(part, Other):
        missing = problem_of(part.value) if part.kind in _OF_REPLIES else ""
        return f"a part of type {part.kind[:_MAX_TYPE_CHARS]!r}" + (f" without a valid {missing!r}" if missing else "")
    if isinstance(part, Thinking):
        return "thinking from anybody but the model"
    kind = "image" if isinstance(part, Image) else "file"
    return f"the bytes of this {kind}, which is mentioned"
