"""The chunks of a chat completion, put together."""

from typing import Any

from daypack.turn.dialects.reply_fields import list_at, object_at, text_at, unusable
from daypack.turn.dialects.streams import Gathered, Piece, append_text, fail_on_error, in_place, is_json, item_at

_WORDS = ("content", "refusal")
_THOUGHTS = ("reasoning_content", "reasoning")


class OpenAIGathering:
    """A chat completion while it arrives."""

    says_end = True

    def __init__(self) -> None:
        self.complete = False
        self._value: Piece = {}
        self._message: Piece = {}
        self._calls: dict[int, Piece] = {}
        self._stop: Any = None

    def take(self, piece: Piece) -> str:
        """Take the next chunk; return the text for the user in it."""
        if error := object_at(piece, "error"):
            fail_on_error(piece, error)
        for name in ("id", "model", "usage"):
            if piece.get(name) is not None:
                self._value[name] = piece[name]
        text = ""
        for choice in list_at(piece, "choices"):
            if choice.get("index", 0) != 0:
                hint = "ask for one choice: leave out n"
                raise unusable("has several choices, and one is needed", "choices", hint)
            text += self._take_delta(object_at(choice, "delta"))
            if choice.get("finish_reason") is not None:
                self._stop, self.complete = choice["finish_reason"], True
        return text

    def _take_delta(self, delta: Piece) -> str:
        for name in _THOUGHTS:
            append_text(self._message, name, delta.get(name))
        if notes := list_at(delta, "annotations"):
            self._message.setdefault("annotations", []).extend(notes)
        for call in list_at(delta, "tool_calls"):
            self._take_call(call)
        append_text(self._message.setdefault("audio", {}), "transcript", object_at(delta, "audio").get("transcript"))
        return "".join(append_text(self._message, name, delta.get(name)) for name in _WORDS)

    def _take_call(self, delta: Piece) -> None:
        index = delta.get("index")
        if not isinstance(index, int):  # some servers send whole calls, without a number
            index = len(self._calls)
        call = item_at(self._calls, {"index": index}, "index")
        for name in ("id", "type"):
            if text_at(delta, name):
                call[name] = delta[name]
        for shape, words in (("function", "arguments"), ("custom", "input")):
            if isinstance(delta.get(shape), dict):
                inner = call.setdefault(shape, {})
                append_text(inner, "name", object_at(delta, shape).get("name"))
                append_text(inner, words, object_at(delta, shape).get(words))

    def gathered(self) -> Gathered | None:
        """Return the chat completion so far."""
        calls = in_place(self._calls)
        finished = calls if self.complete else [call for call in calls if _is_whole(call)]
        message = {name: value for name, value in self._message.items() if value}
        if not self.complete and not message and not calls:
            return None
        message = {"role": "assistant", "content": None, **message, **({"tool_calls": finished} if finished else {})}
        value = {**self._value, "choices": [{"message": message, "finish_reason": self._stop}]}
        unfinished = tuple(call for call in calls if call not in finished)
        return Gathered("openai", value, unfinished)


def _is_whole(call: Piece) -> bool:
    function = object_at(call, "function")
    return bool(text_at(call, "id") and text_at(function, "name")) and is_json(text_at(function, "arguments"))
