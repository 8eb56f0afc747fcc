"""The events of an Anthropic message, put together."""

from typing import Any

import msgspec

from daypack.turn.dialects.reply_fields import object_at, text_at
from daypack.turn.dialects.streams import Gathered, Item, Items, Piece, fail_on_error, is_json

_JSON = "partial_json"  # the input of a call as the model writes it
# The block of a delta whose beginning did not come.
_TYPES = {"text_delta": "text", "citations_delta": "text", "thinking_delta": "thinking", "signature_delta": "thinking"}


class AnthropicGathering:
    """A message while it arrives."""

    says_end = True

    def __init__(self) -> None:
        self.complete = False
        self.part: Any = 0  # neighbouring texts are one
        self._message: Piece = {}
        self._blocks = Items()

    def take(self, piece: Piece) -> str:
        """Take the next event; return the text for the user in it."""
        kind = text_at(piece, "type")
        if kind == "error":
            fail_on_error(piece, object_at(piece, "error"))
        elif kind == "message_start":
            self._message = dict(object_at(piece, "message"))
        elif kind == "message_delta":
            self._message.update(object_at(piece, "delta"))
            # Cumulative counts; what is not repeated stays as it was at the start.
            counts = {name: count for name, count in object_at(piece, "usage").items() if count is not None}
            self._message["usage"] = {**object_at(self._message, "usage"), **counts}
            self.complete = self.complete or bool(text_at(self._message, "stop_reason"))
        elif kind == "message_stop":
            self.complete = True
        elif kind == "content_block_start":
            return self._start(piece)
        elif kind == "content_block_delta":
            return self._add(piece)
        elif kind == "content_block_stop" and (block := self._blocks.find(piece.get("index"))):
            block.done = True
        return ""

    def _start(self, piece: Piece) -> str:
        block = dict(object_at(piece, "content_block"))
        self._blocks.start(piece.get("index"), block)
        if block.get("type") != "text":
            self.part += 1
            return ""
        return text_at(block, "text")

    def _add(self, piece: Piece) -> str:
        """Add a delta to its block; return the text for the user in it."""
        delta = object_at(piece, "delta")
        kind = text_at(delta, "type")
        block = self._blocks.at(piece.get("index"))
        block.fields.setdefault("type", _TYPES.get(kind, "tool_use"))
        if kind == "citations_delta":
            block.note("citations", delta.get("citation"))
            return ""
        for name, value in delta.items():
            if name == "signature":
                block.fields[name] = value
            elif name != "type":
                block.add(name, value)
        return text_at(delta, "text") if kind == "text_delta" else ""

    def gathered(self) -> Gathered | None:
        """Return the message so far."""
        blocks: list[Piece] = []
        unfinished: list[Piece] = []
        for item in self._blocks.all:
            block = _closed(item)
            if not self.complete and not item.done and "input" in block:
                unfinished.append(block)
            elif block.get("type") != "text" or block.get("text"):
                blocks.append(block)
        if not self.complete and not blocks and not unfinished:
            return None
        message = {name: value for name, value in self._message.items() if value is not None}
        return Gathered("anthropic", {**message, "role": "assistant", "content": blocks}, tuple(unfinished))


def _closed(item: Item) -> Piece:
    """Return a block with the input of its call, if that arrived in pieces."""
    block = item.value()
    text = text_at(block, _JSON)
    if not text:
        return block
    fields: dict[str, Any] = {name: value for name, value in block.items() if name != _JSON}
    # A call of the caller's own tool keeps the text as the model wrote it; blocks of the provider are sent back whole.
    known = fields.get("type") == "tool_use" or not is_json(text)
    return {**fields, "input": text if known else msgspec.json.decode(text)}
