"""Replies that arrive in pieces: each dialect's events, put together to what the client returns without streaming.

A piece is a text, an event of a client library or a dict of its shape. `read_piece` makes it a plain dict, `gathering`
finds the dialect by the first one. What was gathered is read by the dialect's `read`, like any other reply.
"""

from collections.abc import Mapping
from typing import Any, NoReturn, Protocol, cast

import msgspec
from msgspec import Struct

from daypack.turn.dialects.reply_fields import object_at, plain_fields, text_at, unusable

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
    part: object  # of the message: which one the newest text is in, because the texts of two parts are two lines

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
    part: object = None

    def __init__(self) -> None:
        self._texts: list[str] = []

    def take(self, piece: Piece) -> str:
        """Take the next piece."""
        self._texts.append(text := text_at(piece, "text"))
        return text

    def gathered(self) -> Gathered:
        """Return what has come so far."""
        return Gathered("openai", {"role": "assistant", "content": joined(self._texts)})


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
    if is_text(piece):
        return TextGathering()
    if kind.startswith("response.") or kind == "error":
        from daypack.turn.dialects.streams.responses import ResponsesGathering  # noqa: PLC0415 — one dialect per stream

        return ResponsesGathering()
    if kind.startswith(("message_", "content_block_")):
        from daypack.turn.dialects.streams.anthropic import AnthropicGathering  # noqa: PLC0415

        return AnthropicGathering()
    chat = text_at(piece, "object") == "chat.completion.chunk" or isinstance(piece.get("choices"), list)
    if chat or object_at(piece, "error"):
        from daypack.turn.dialects.streams.openai import OpenAIGathering  # noqa: PLC0415

        return OpenAIGathering()
    shown = f"type {kind!r}" if kind else f"keys {', '.join(sorted(piece)[:5]) or 'none'}"
    hint = "give the stream of openai (chat or responses) or anthropic, or pieces of text"
    raise unusable(f"has a piece that cannot be read: {shown}", "stream", hint)


def is_text(piece: Piece) -> bool:
    """Return True for a piece that is a text and nothing else."""
    return piece.keys() == {"text"} and isinstance(piece["text"], str)


def fail_on_error(piece: Piece, failed: Mapping[str, Any]) -> NoReturn:
    """Raise the error with which a provider ends a stream."""
    said = text_at(failed, "message") or text_at(failed, "code") or text_at(piece, "type")
    raise unusable(
        f"ended with an error: {said}", "stream", "what came is stored as incomplete; prepare again to retry"
    )


def joined(pieces: list[str]) -> str:
    """Return one text; a character that two pieces have one half of each is whole again."""
    text = "".join(pieces)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


class Item:
    """A part of a reply while it arrives: its fields, and texts that grow."""

    def __init__(self, fields: Piece) -> None:
        self.fields = fields
        self.done = False  # it has ended
        self._texts: dict[str, list[str]] = {}  # joined at the end: adding to a text copies it
        self._lists: dict[str, list[object]] = {}

    def add(self, name: str, more: object) -> str:
        """Add to the text under a name; return what was added."""
        if not isinstance(more, str) or not more:
            return ""
        self._texts.setdefault(name, []).append(more)
        return more

    def note(self, name: str, value: object) -> None:
        """Add a value to the list under a name."""
        self._lists.setdefault(name, []).append(value)

    def replace(self, fields: Piece) -> None:
        """Take the fields of a part that has ended, in place of what came before."""
        self.fields = {**self.fields, **fields}
        self._texts = {name: pieces for name, pieces in self._texts.items() if name not in fields}
        self._lists = {name: values for name, values in self._lists.items() if name not in fields}
        self.done = True

    def value(self) -> Piece:
        """Return the fields as they are now."""
        texts = {name: joined([text_at(self.fields, name), *pieces]) for name, pieces in self._texts.items()}
        lists = {name: [*(self.fields.get(name) or ()), *values] for name, values in self._lists.items()}
        return {**self.fields, **texts, **lists}


class Items:
    """The parts of a reply in the order they came. Pieces name them by number; servers repeat numbers or omit them."""

    def __init__(self) -> None:
        self.all: list[Item] = []
        self._numbered: dict[int, Item] = {}

    def start(self, number: object, fields: Piece) -> Item:
        """Begin a part; later pieces with its number belong to it."""
        self.all.append(item := Item(fields))
        if isinstance(number, int):
            self._numbered[number] = item
        return item

    def find(self, number: object) -> Item | None:
        """Return the part with a number; without one, the newest."""
        if isinstance(number, int):
            return self._numbered.get(number)
        return self.all[-1] if self.all else None

    def at(self, number: object) -> Item:
        """Return the part with a number; it begins here if its beginning did not come."""
        return self.find(number) or self.start(number, {})


def is_json(text: str) -> bool:
    """Return True if a text is a whole JSON value."""
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True
