"""The chunks of a chat completion, put together."""

from typing import Any, cast

from daypack.history.draft import arguments_text
from daypack.turn.dialects.reply_fields import list_at, object_at, text_at, unusable
from daypack.turn.dialects.streams import Gathered, Item, Items, Piece, fail_on_error, is_json

_THOUGHTS = ("reasoning_content", "reasoning")
_INNER = (("function", "arguments"), ("custom", "input"))


class OpenAIGathering:
    """A chat completion while it arrives."""

    says_end = True

    def __init__(self) -> None:
        self.complete = False
        self.part: object = "content"
        self._value: Piece = {}
        self._message = Item({})
        self._audio = Item({})
        self._written = False  # words came, not only sound
        self._calls = Items()
        self._stop: Any = None

    def take(self, piece: Piece) -> str:
        """Take the next chunk; return the text for the user in it."""
        if error := object_at(piece, "error"):
            fail_on_error(piece, error)
        for name in ("id", "model", "usage"):
            if piece.get(name):
                self._value[name] = piece[name]
        text = ""
        for choice in list_at(piece, "choices"):
            if choice.get("index"):
                hint = "ask for one choice: leave out n"
                raise unusable("has several choices, and one is needed", "choices", hint)
            text += self._take_delta(object_at(choice, "delta"))
            if choice.get("finish_reason"):  # some servers send an empty one with every chunk
                self._stop, self.complete = choice["finish_reason"], True
        return text

    def _take_delta(self, delta: Piece) -> str:
        for name in _THOUGHTS:
            self._message.add(name, delta.get(name))
        for note in list_at(delta, "annotations"):
            self._message.note("annotations", note)
        if delta.get("function_call"):  # refused when the reply is read
            self._message.fields["function_call"] = delta["function_call"]
        for call in list_at(delta, "tool_calls"):
            self._take_call(call)
        self._audio.add("transcript", spoken := object_at(delta, "audio").get("transcript"))
        said = self._message.add("content", self._content(delta))
        refused = self._message.add("refusal", delta.get("refusal"))
        if said or refused:
            self._written, self.part = True, "refusal" if refused else "content"
        elif isinstance(spoken, str) and not self._written:
            return spoken
        return said + refused

    def _content(self, delta: Piece) -> object:
        """Return the words of a delta; some servers send parts, thinking among them."""
        if not isinstance(delta.get("content"), list):
            return delta.get("content")
        parts = list_at(delta, "content")
        for part in parts:
            thought = part.get("thinking")
            texts = list_at(part, "thinking") if isinstance(thought, list) else [{"text": thought}]
            for text in texts:
                self._message.add("reasoning_content", text.get("text"))
        return "".join(text_at(part, "text") for part in parts if part.get("type") == "text")

    def _take_call(self, delta: Piece) -> None:
        number = delta.get("index")
        call = self._calls.find(number)
        if call is None or _is_another(call, delta):
            call = self._calls.start(number, {})
        for name in ("id", "type"):
            if text_at(delta, name):
                call.fields.setdefault(name, delta[name])
        for shape, words in _INNER:
            if more := object_at(delta, shape):
                inner = cast(Item, call.fields.setdefault(shape, Item({})))
                name = text_at(inner.fields, "name")
                if text_at(more, "name") not in ("", name):  # some servers repeat it
                    inner.fields["name"] = name + text_at(more, "name")
                inner.add(words, arguments_text(more.get(words)))

    def gathered(self) -> Gathered | None:
        """Return the chat completion so far."""
        calls = [_closed(call) for call in self._calls.all]
        finished = calls if self.complete else [call for call in calls if _is_whole(call)]
        message = {name: value for name, value in self._message.value().items() if value}
        if audio := self._audio.value():
            message["audio"] = audio
        if not self.complete and not message and not calls:
            return None
        message = {"role": "assistant", "content": None, **message, **({"tool_calls": finished} if finished else {})}
        value = {**self._value, "choices": [{"message": message, "finish_reason": self._stop}]}
        unfinished = tuple(call for call in calls if call not in finished)
        return Gathered("openai", value, unfinished)


def _is_another(call: Item, delta: Piece) -> bool:
    """Return True if a delta begins a call: some servers send whole calls, without numbers or all with the same one."""
    given, known = text_at(delta, "id"), text_at(call.fields, "id")
    for shape, words in _INNER:
        if not text_at(object_at(delta, shape), "name"):
            continue  # only the first piece of a call has a name, or all of them
        if given and known:
            return given != known
        before = _closed(call).get(shape)
        return before is None or is_json(text_at(before, words))
    return False


def _closed(call: Item) -> Piece:
    return {name: part.value() if isinstance(part, Item) else part for name, part in call.fields.items()}


def _is_whole(call: Piece) -> bool:
    function = object_at(call, "function")
    return bool(text_at(call, "id") and text_at(function, "name")) and is_json(text_at(function, "arguments"))
