"""The events of an Anthropic message, put together."""

from typing import Any

import msgspec

from daypack.turn.dialects.reply_fields import object_at, text_at
from daypack.turn.dialects.streams import Gathered, Piece, append_text, fail_on_error, in_place, is_json, item_at

_JSON = "partial_json"  # the input of a call as the model writes it


class AnthropicGathering:
    """A message while it arrives."""

    says_end = True

    def __init__(self) -> None:
        self.complete = False
        self._message: Piece = {}
        self._blocks: dict[int, Piece] = {}
        self._open: set[int] = set()  # blocks that have not ended

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
            return _add(item_at(self._blocks, piece, "index"), object_at(piece, "delta"))
        elif kind == "content_block_stop":
            self._open.discard(_number(piece))
        return ""

    def _start(self, piece: Piece) -> str:
        block = dict(object_at(piece, "content_block"))
        self._blocks[_number(piece)] = block
        self._open.add(_number(piece))
        return text_at(block, "text") if block.get("type") == "text" else ""

    def gathered(self) -> Gathered | None:
        """Return the message so far."""
        numbered = {number: _closed(block) for number, block in self._blocks.items()}
        cut = {
            number
            for number, block in numbered.items()
            if not self.complete and number in self._open and "input" in block
        }
        unfinished = tuple(numbered[number] for number in sorted(cut))
        blocks = [
            block
            for block in in_place({number: block for number, block in numbered.items() if number not in cut})
            if not (block.get("type") == "text" and not block.get("text"))
        ]
        if not self.complete and not blocks and not unfinished:
            return None
        message = {name: value for name, value in self._message.items() if value is not None}
        return Gathered("anthropic", {**message, "role": "assistant", "content": blocks}, unfinished)


def _number(piece: Piece) -> int:
    number = piece.get("index")
    return number if isinstance(number, int) else 0


def _add(block: Piece, delta: Piece) -> str:
    """Add a delta to its block; return the text for the user in it."""
    kind = text_at(delta, "type")
    if kind == "citations_delta":
        block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]
        return ""
    for name, value in delta.items():
        if name == "signature":
            block[name] = value
        elif name != "type":
            append_text(block, name, value)
    return text_at(delta, "text") if kind == "text_delta" else ""


def _closed(block: Piece) -> Piece:
    """Return a block with the input of its call, if that arrived in pieces."""
    text = text_at(block, _JSON)
    if not text:
        return block
    fields: dict[str, Any] = {name: value for name, value in block.items() if name != _JSON}
    # A call of the caller's own tool keeps the text as the model wrote it; blocks of the provider are sent back whole.
    known = fields.get("type") == "tool_use" or not is_json(text)
    return {**fields, "input": text if known else msgspec.json.decode(text)}
