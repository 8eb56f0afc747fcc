"""The events of a response, put together."""

from daypack.turn.dialects.reply_fields import list_at, object_at, text_at
from daypack.turn.dialects.streams import Gathered, Item, Items, Piece, fail_on_error

_ENDS = ("response.completed", "response.incomplete")
_CALLS = ("function_call", "custom_tool_call")
_SHOWN = ("message", "reasoning")  # items that can be used as far as they came
# Deltas: the item they belong to, the list there, the type of the part in it, and its words.
_PARTS = {
    "response.output_text.delta": ("message", "content", "output_text", "text"),
    "response.refusal.delta": ("message", "content", "refusal", "refusal"),
    "response.reasoning_text.delta": ("reasoning", "content", "reasoning_text", "text"),
    "response.reasoning_summary_text.delta": ("reasoning", "summary", "summary_text", "text"),
}
_NOTE = "response.output_text.annotation.added"
_FIELDS = {"response.function_call_arguments.delta": "arguments", "response.custom_tool_call_input.delta": "input"}


class ResponsesGathering:
    """A response while it arrives."""

    says_end = True

    def __init__(self) -> None:
        self.complete = False
        self.part: object = None
        self._response: Piece = {}
        self._items = Items()
        self._parts: dict[int, dict[tuple[str, int], Item]] = {}  # by item (its id()), list and number

    def take(self, piece: Piece) -> str:
        """Take the next event; return the text for the user in it."""
        kind = text_at(piece, "type")
        if kind == "error":
            fail_on_error(piece, object_at(piece, "error") or piece)
        if response := object_at(piece, "response"):
            self._response = response
        if kind == "response.failed":
            fail_on_error(piece, object_at(self._response, "error"))
        if kind in _ENDS:
            self.complete = True
        elif kind in ("response.output_item.added", "response.output_item.done"):
            self._take_item(piece, done=kind.endswith(".done"))
        elif kind in _FIELDS:
            self._items.at(piece.get("output_index")).add(_FIELDS[kind], piece.get("delta"))
        elif kind in _PARTS:
            return self._take_delta(piece, kind)
        elif kind == _NOTE and (note := object_at(piece, "annotation")):
            self._part(piece, "response.output_text.delta").note("annotations", note)
        return ""

    def _take_item(self, piece: Piece, *, done: bool) -> None:
        number, fields = piece.get("output_index"), object_at(piece, "item")
        item = self._items.find(number)
        # Some servers repeat a number, or have none: the id says which item it is.
        if item is None or item.fields.get("id", fields.get("id")) != fields.get("id"):
            item = self._items.start(number, {})
        if done:
            item.replace(fields)
        else:
            item.fields.update(fields)

    def _take_delta(self, piece: Piece, kind: str) -> str:
        part = self._part(piece, kind)
        text = part.add(_PARTS[kind][3], piece.get("delta"))
        if _PARTS[kind][0] != "message":
            return ""
        if text:
            # The texts of an item are one text; a refusal is a part of its own.
            self.part = id(part) if kind == "response.refusal.delta" else piece.get("output_index")
        return text

    def _part(self, piece: Piece, kind: str) -> Item:
        owner, where, name, _ = _PARTS[kind]
        item = self._items.at(piece.get("output_index"))
        item.fields.setdefault("type", owner)
        number = piece.get("summary_index" if where == "summary" else "content_index")
        parts = self._parts.setdefault(id(item), {})
        return parts.setdefault((where, number if isinstance(number, int) else 0), Item({"type": name}))

    def gathered(self) -> Gathered | None:
        """Return the response so far."""
        if self.complete and list_at(self._response, "output"):
            return Gathered("responses", self._response)
        items: list[Piece] = []
        unfinished: list[Piece] = []
        for item in self._items.all:
            value = self._value(item)
            kind = text_at(value, "type")
            if not self.complete and not item.done and kind not in _SHOWN:
                if kind in (*_CALLS, ""):
                    unfinished.append(value)
            elif _says_something(value):
                items.append(value)
        if not self.complete and not items and not unfinished:
            return None
        facts = {name: self._response[name] for name in ("id", "model", "usage") if self._response.get(name)}
        ended = {name: self._response.get(name) for name in ("status", "incomplete_details")} if self.complete else {}
        return Gathered("responses", {**facts, **ended, "output": items}, tuple(unfinished))

    def _value(self, item: Item) -> Piece:
        """Return an item; one that is not done with the parts that came."""
        value = item.value()
        parts = {} if item.done else self._parts.get(id(item), {})
        for name in ("content", "summary"):
            if rebuilt := [parts[key].value() for key in sorted(parts) if key[0] == name]:
                value[name] = rebuilt
        return value


def _says_something(item: Piece) -> bool:
    if text_at(item, "type") not in _SHOWN:
        return True
    return bool(item.get("content") or item.get("summary") or item.get("encrypted_content"))
