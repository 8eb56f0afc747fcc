"""The events of a response, put together."""

from daypack.turn.dialects.reply_fields import list_at, object_at, text_at
from daypack.turn.dialects.streams import Gathered, Piece, append_text, fail_on_error, in_place, item_at

_ENDS = ("response.completed", "response.incomplete")
_CALLS = ("function_call", "custom_tool_call")
# Deltas: the list they belong to in an item, the type of the part there, and its words.
_PARTS = {
    "response.output_text.delta": ("content", "output_text", "text"),
    "response.refusal.delta": ("content", "refusal", "refusal"),
    "response.reasoning_text.delta": ("content", "reasoning_text", "text"),
    "response.reasoning_summary_text.delta": ("summary", "summary_text", "text"),
}
_SPOKEN = ("response.output_text.delta", "response.refusal.delta")
_FIELDS = {"response.function_call_arguments.delta": "arguments", "response.custom_tool_call_input.delta": "input"}


class ResponsesGathering:
    """A response while it arrives."""

    says_end = True

    def __init__(self) -> None:
        self.complete = False
        self._response: Piece = {}
        self._items: dict[int, Piece] = {}
        self._parts: dict[int, dict[tuple[str, int], Piece]] = {}  # of items that are not done, by list and number
        self._done: set[int] = set()

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
            append_text(item_at(self._items, piece, "output_index"), _FIELDS[kind], piece.get("delta"))
        elif kind in _PARTS:
            text = append_text(self._part(piece, kind), _PARTS[kind][2], piece.get("delta"))
            return text if kind in _SPOKEN else ""
        return ""

    def _take_item(self, piece: Piece, *, done: bool) -> None:
        item_at(self._items, piece, "output_index").update(object_at(piece, "item"))
        if done:
            number = piece.get("output_index")
            self._done.add(number if isinstance(number, int) else 0)

    def _part(self, piece: Piece, kind: str) -> Piece:
        number, where = piece.get("output_index"), _PARTS[kind]
        at = piece.get("summary_index" if where[0] == "summary" else "content_index")
        parts = self._parts.setdefault(number if isinstance(number, int) else 0, {})
        return parts.setdefault((where[0], at if isinstance(at, int) else 0), {"type": where[1]})

    def gathered(self) -> Gathered | None:
        """Return the response so far."""
        if self.complete and list_at(self._response, "output"):
            return Gathered("responses", self._response)
        for number, parts in self._parts.items():
            if number not in self._done:
                item = self._items.setdefault(number, {"type": "message", "role": "assistant"})
                for name in ("content", "summary"):
                    if rebuilt := [parts[key] for key in sorted(parts) if key[0] == name]:
                        item[name] = rebuilt
        whole = {
            number: item
            for number, item in self._items.items()
            if self.complete or number in self._done or text_at(item, "type") in ("message", "reasoning")
        }
        items = [item for item in in_place(whole) if _says_something(item)]
        cut = [self._items[number] for number in sorted(self._items) if number not in whole]
        unfinished = tuple(item for item in cut if text_at(item, "type") in _CALLS)
        if not self.complete and not items and not unfinished:
            return None
        facts = {name: self._response[name] for name in ("id", "model", "usage") if self._response.get(name)}
        ended = {name: self._response.get(name) for name in ("status", "incomplete_details")} if self.complete else {}
        return Gathered("responses", {**facts, **ended, "output": items}, unfinished)


def _says_something(item: Piece) -> bool:
    if text_at(item, "type") not in ("message", "reasoning"):
        return True
    return bool(item.get("content") or item.get("summary") or item.get("encrypted_content"))
