"""Replies that arrive in pieces: each dialect's events, put together to what the client returns without streaming.

A piece is a text, an event of a client library or a dict of its shape. `read_piece` makes it a plain dict, `gathering`
finds the dialect by the first one. What was gathered is read by the dialect's `read`, like any other reply.
"""

from collections.abc import Mapping
from typing import Any, NoReturn, Protocol, cast

import msgspec
from msgspec import Struct

from daypack.turn.dialects.reply_fields import plain_fields, text_at, unusable

# Events that a client library derives from others: they repeat what came, some of them all of it.
_DERIVED = ("content.", "refusal.", "logprobs.", "tool_calls.")
_DERIVED_NAMES = frozenset(("text", "thinking", "citation", "signature", "input_json", "compaction", "ping"))

Piece = dict[str, Any]


class Gathered(Struct, frozen=True):
    """What came of a reply: its value in the shape of the dialect, and the calls that were cut off."""

    dialect: str
    value: Piece
    unfinished: tuple[Piece, ...] = ()


class Gathering(Protocol):
    """A reply while it arrives."""

    complete: bool  # the provider said that the reply has ended
    says_end: bool  # it does; otherwise a reply ends where its source does

    def take(self, piece: Piece) -> str:
        """Take the next piece; return the text for the user in it."""
        ...

    def gathered(self) -> Gathered | None:
        """Return what has come so far; None if that is nothing."""
        ...


class TextGathering:
    """A reply that comes as plain text; it ends when its source does."""

    complete = False
    says_end = False

    def __init__(self) -> None:
        self._texts: list[str] = []

    def take(self, piece: Piece) -> str:
        """Take the next piece."""
        self._texts.append(piece["text"])
        return piece["text"]

    def gathered(self) -> Gathered:
        """Return what has come so far."""
        return Gathered("openai", {"role": "assistant", "content": "".join(self._texts)})


def read_piece(piece: object) -> Piece | None:
    """Return a piece of a stream as a dict of plain values; None if it says nothing new."""
    if isinstance(piece, str):
        return {"text": piece}
    if isinstance(piece, bytes):
        raise unusable("is bytes", "stream", "give the client's stream, or decode its lines")
    if not isinstance(piece, dict):
        kind = getattr(piece, "type", None)
        if kind == "chunk":  # of OpenAI's helper; its other events are derived from it
            piece = getattr(piece, "chunk", None)
        elif isinstance(kind, str) and (kind in _DERIVED_NAMES or kind.startswith(_DERIVED)):
            return None
    fields = plain_fields(cast(object, piece), "stream")
    return None if text_at(fields, "type") in _DERIVED_NAMES else fields


def gathering(piece: Piece) -> Gathering:
    """Return the gathering for a stream that begins with this piece."""
    kind = text_at(piece, "type")
    if piece.keys() == {"text"}:
        return TextGathering()
    if kind.startswith("response.") or kind == "error":
        from daypack.turn.dialects.streams.responses import ResponsesGathering  # noqa: PLC0415 — one dialect per stream

        return ResponsesGathering()
    if kind.startswith(("message_", "content_block_")):
        from daypack.turn.dialects.streams.anthropic import AnthropicGathering  # noqa: PLC0415

        return AnthropicGathering()
    if isinstance(piece.get("choices"), list):
        from daypack.turn.dialects.streams.openai import OpenAIGathering  # noqa: PLC0415

        return OpenAIGathering()
    shown = f"type {kind!r}" if kind else f"keys {', '.join(sorted(piece)[:5]) or 'none'}"
    hint = "give the stream of openai (chat or responses) or anthropic, or pieces of text"
    raise unusable(f"a piece cannot be read: {shown}", "stream", hint)


def fail_on_error(piece: Piece, failed: Mapping[str, Any]) -> NoReturn:
    """Raise the error with which a provider ends a stream."""
    said = text_at(failed, "message") or text_at(failed, "code") or text_at(piece, "type")
    raise unusable(
        f"ended with an error: {said}", "stream", "what came is stored as incomplete; prepare again to retry"
    )


def append_text(fields: Piece, key: str, more: object) -> str:
    """Add a text to the one under a key; return it."""
    if not isinstance(more, str) or not more:
        return ""
    fields[key] = text_at(fields, key) + more
    return more


def item_at(items: dict[int, Piece], piece: Mapping[str, Any], key: str) -> Piece:
    """Return the item that a piece belongs to, by the number under a key."""
    number = piece.get(key)
    return items.setdefault(number if isinstance(number, int) else 0, {})


def in_place(items: Mapping[int, Piece]) -> list[Piece]:
    """Return items in the order of their numbers."""
    return [items[number] for number in sorted(items)]


def is_json(text: str) -> bool:
    """Return True if a text is a whole JSON value."""
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True
