"""What an observed turn consists of: every part with its source, its tokens and the message of history it is from."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

import msgspec
from msgspec import Struct

from daypack.text.tokens import Counter, count_message, counter_for
from daypack.turn.evidence.observed.links import Links, Piece, Source
from daypack.turn.evidence.observed.request import ObservedTurn, RebuiltMessage, SentBlock
from daypack.turn.evidence.observed.shapes import Shape
from daypack.types.history import Message, Other

_PREVIEW_CHARS = 120


class SentPart(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of a request: a block of a message or less, a tool, a block of the system prompt."""

    source: Source
    tokens: int | None  # None: the content is unknown
    message: int | None = None  # position in the request, from 1
    role: str = ""
    name: str = ""  # of a tool, a file, a hook, a reminder
    ref: str = ""  # messages:12, if history has it
    preview: str = ""


class PartText(NamedTuple):
    """A part of a request with its whole text; empty where the part has none, or it is unknown."""

    part: SentPart
    text: str = ""


class SourceTotal(Struct, frozen=True, kw_only=True):
    """The parts of one source together."""

    source: Source
    tokens: int | None
    parts: int
    names: tuple[str, ...]
    refs: tuple[int, ...]  # messages of history


def parts_of(turn: ObservedTurn, links: Links) -> list[SentPart]:
    """Return the parts of a request, in the order in which a provider reads them: tools, system prompt, messages."""
    return [found.part for found in texts_of(turn, links)]


def texts_of(turn: ObservedTurn, links: Links) -> list[PartText]:
    """Return the parts of a request with their texts, in the same order."""
    counter = counter_for(turn.record.model)
    positions = range(1, len(turn.messages) + 1)
    said = (found for position in positions for found in message_texts(turn, position, links, counter))
    return [*shape_texts(turn.shape, counter), *said]


def total_by_source(parts: Iterable[SentPart]) -> list[SourceTotal]:
    """Return the totals of a request by source, in the order of their first parts."""
    groups: dict[Source, list[SentPart]] = {}
    for part in parts:
        groups.setdefault(part.source, []).append(part)
    return [
        SourceTotal(
            source=source,
            tokens=None if any(part.tokens is None for part in found) else sum(part.tokens or 0 for part in found),
            parts=len(found),
            names=tuple(dict.fromkeys(part.name for part in found if part.name)),
            refs=tuple(sorted({int(part.ref.removeprefix("messages:")) for part in found if part.ref})),
        )
        for source, found in groups.items()
    ]


def shape_texts(shape: Shape | None, counter: Counter) -> Iterator[PartText]:
    """Yield the tools and the system prompt with their texts; None: they are unknown."""
    if shape is None:
        yield PartText(SentPart(source="tools", tokens=None))
        yield PartText(SentPart(source="system", tokens=None))
        return
    for tool in shape.tools:
        name, text = str(tool.get("name") or tool.get("type") or ""), msgspec.json.encode(tool).decode()
        yield PartText(SentPart(source="tools", tokens=counter.count(text), name=name), text)
    for block in shape.system:
        text = str(block.get("text", ""))
        part = SentPart(source="system", tokens=counter.count(text), role="system", preview=_preview(text))
        yield PartText(part, text)


def message_parts(turn: ObservedTurn, position: int, links: Links, counter: Counter) -> Iterator[SentPart]:
    """Yield the parts of one message of a request, from 1."""
    return (found.part for found in message_texts(turn, position, links, counter))


def message_texts(turn: ObservedTurn, position: int, links: Links, counter: Counter) -> Iterator[PartText]:
    """Yield the parts of one message of a request, from 1, with their texts."""
    message = turn.messages[position - 1]
    for part, text in rebuilt_texts(message, turn.record.model, links, counter):
        yield PartText(msgspec.structs.replace(part, message=position, role=message.role), text)


def rebuilt_texts(message: RebuiltMessage, model: str, links: Links, counter: Counter) -> Iterator[PartText]:
    """Yield the parts of a message with their texts, wherever in a request it is."""
    if not message.known:
        yield PartText(SentPart(source="unknown", tokens=None))
    for sent in message.blocks:
        yield from _block(message, sent, model, links, counter)


def _block(message: RebuiltMessage, sent: SentBlock, model: str, links: Links, counter: Counter) -> Iterator[PartText]:
    block, kind = sent.block, sent.block.get("type")
    if kind == "text" and isinstance(text := block.get("text"), str):
        yield from _text(message, text, sent.seq, links, counter)
        return
    source: Source = "unknown"
    name, seq, text = str(kind or ""), sent.seq, ""
    if kind in ("thinking", "redacted_thinking"):
        source, name, text = "thinking", "", str(block.get("thinking") or "")
    elif kind in ("tool_use", "server_tool_use"):
        source, name = "tool calls", str(block.get("name") or "")
        seq, text = seq or links.of_call(block.get("id")), msgspec.json.encode(block.get("input")).decode()
    elif isinstance(kind, str) and kind.endswith("tool_result"):
        call = block.get("tool_use_id")
        source, name, text = "tool results", links.tool_of(call), _result_text(block)
        seq = seq or links.of_result(call)
    elif kind in ("image", "document"):
        source, name = "images" if kind == "image" else "attachments", ""
    elif kind in ("tool_addition", "tool_removal"):
        tool = block.get("tool")
        source, name = "tools", str(cast(dict[str, Any], tool).get("name") if isinstance(tool, dict) else kind)
    part = SentPart(
        source=source,
        tokens=_count_block(counter, block, text, model),
        name=name,
        ref=f"messages:{seq}" if seq else "",
        preview=_preview(text),
    )
    yield PartText(part, text)


def _text(message: RebuiltMessage, text: str, seq: int | None, links: Links, counter: Counter) -> Iterator[PartText]:
    if seq is not None:
        source: Source = "summary" if links.is_summary(seq) else "assistant" if message.role == "assistant" else "user"
        pieces = [Piece(text, source, seq=seq)]
    else:
        pieces = links.split(message.role, text)
    for piece in pieces:
        part = SentPart(
            source=piece.source,
            tokens=counter.count(piece.text),
            name=piece.name,
            ref=f"messages:{piece.seq}" if piece.seq else "",
            preview=_preview(piece.text),
        )
        yield PartText(part, piece.text)


def _count_block(counter: Counter, block: dict[str, Any], text: str, model: str) -> int:
    """Return the tokens of a block; images in a result cost what they cost by themselves."""
    if block.get("type") in ("thinking", "redacted_thinking", "tool_use", "server_tool_use"):
        return counter.count(text) + (counter.count(str(block["name"])) if "name" in block else 0)
    content = block.get("content")
    inner = cast(list[object], content) if isinstance(content, list) else []
    media = [cast(dict[str, Any], part) for part in inner if isinstance(part, dict)]
    others = [part for part in (media or [block]) if part.get("type") != "text"]
    if isinstance(content, str):
        others = []
    return counter.count(text) + sum(_count_other(counter, part, model) for part in others)


def _count_other(counter: Counter, part: dict[str, Any], model: str) -> int:
    return count_message(counter, Message(role="user", content=(Other(part),)), model)


def _result_text(block: dict[str, Any]) -> str:
    content = block.get("content")
    if isinstance(content, str):
        return content
    parts = cast(list[object], content) if isinstance(content, list) else []
    texts = [cast(dict[str, Any], part).get("text") for part in parts if isinstance(part, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))


def _preview(text: str) -> str:
    return " ".join(text[: 4 * _PREVIEW_CHARS].split())[:_PREVIEW_CHARS]
