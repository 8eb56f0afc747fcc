"""A model's reply: the message to append, and its token usage."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from daypack.history.draft import arguments_text
from daypack.turn.dialects.reply_fields import object_at, open_reply, text_at

_NEUTRAL = {"text": "text", "thinking": "text", "image": "source", "file": "source"}


class Usage(Struct, frozen=True, omit_defaults=True):
    """Tokens of one call as the provider counted them; None where it said nothing.

    `input_tokens` are all that went in, also those that were read from its cache or written to it.
    """

    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    cache_written_tokens: int | None = None


class Reply(Struct, frozen=True):
    """A reply: `message` has the fields of an appended message."""

    message: dict[str, Any]
    usage: Usage | None = None


class Draft:
    """A reply while it is read: parts and calls in the order the model wrote them."""

    __slots__ = ("_calls", "_parts")

    def __init__(self) -> None:
        self._parts: list[dict[str, Any]] = []
        self._calls: list[dict[str, Any]] = []

    def say(self, text: str, meta: dict[str, Any] | None = None) -> "Draft":
        """Add words."""
        if text:
            self._parts.append({"type": "text", "text": text, **_about(meta)})
        return self

    def think(self, text: str, meta: dict[str, Any] | None, signature: str | None = None) -> None:
        """Add the model's thinking."""
        signed = {} if signature is None else {"signature": signature}
        self._parts.append({"type": "thinking", "text": text, **signed, **_about(meta)})

    def keep(self, value: dict[str, Any]) -> None:
        """Add a part daypack has no word for, whole."""
        self._parts.append({"type": "other", "value": value})

    def take(self, part: dict[str, Any]) -> None:
        """Add a part that may be one of daypack's own."""
        kind = text_at(part, "type")
        if kind == "other" and part.keys() == {"type", "value"}:
            self.keep(object_at(part, "value"))
        elif kind == "refusal":
            self.say(text_at(part, "refusal"), {"refusal": True})
        elif isinstance(part.get(_NEUTRAL.get(kind, "")), str):
            self._parts.append(part)
        else:
            self.keep(part)

    def call(self, call_id: str, name: str, arguments: object, meta: dict[str, Any] | None = None) -> None:
        """Add a call; its place among the parts is remembered."""
        given = {"id": call_id, "name": name, "arguments": arguments_text(arguments)}
        self._calls.append({**given, "meta": {**(meta or {}), "after": len(self._parts)}})

    def finish(
        self, dialect: str | None = None, facts: Mapping[str, Any] | None = None, usage: Usage | None = None
    ) -> Reply:
        """Return the reply; `facts` without a value are left out of the message's meta."""
        parts, calls = self._parts, self._calls
        usual = all(call["meta"]["after"] == len(parts) for call in calls)  # calls come last by default
        content, about = _plain_text(parts) if usual else (parts, {})
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if calls:
            message["tool_calls"] = [_without_place(call) if usual else call for call in calls]
        if dialect:
            told = {name: value for name, value in (facts or {}).items() if value is not None}
            about = {"dialect": dialect, **told, **about}
        return Reply(message={**message, **_about(about)}, usage=usage)


def read_usage(value: object) -> Usage | None:
    """Read a provider's usage, in any dialect's words or in daypack's own; None when it says nothing."""
    if value is None:
        return None
    given = open_reply(value)
    cached, written = _count(given, "cached_tokens"), _count(given, "cache_written_tokens")
    for details in (object_at(given, "prompt_tokens_details"), object_at(given, "input_tokens_details")):
        cached = _count(details, "cached_tokens") if cached is None else cached
        written = _count(details, "cache_write_tokens") if written is None else written
    read, created = _count(given, "cache_read_input_tokens"), _count(given, "cache_creation_input_tokens")
    total = _count(given, "prompt_tokens")
    if total is None and (total := _count(given, "input_tokens")) is not None:
        # Anthropic counts apart what was read from the cache and what was written to it.
        total += (read or 0) + (created or 0)
    output = _count(given, "completion_tokens")
    usage = Usage(
        input_tokens=total,
        cached_tokens=read if cached is None else cached,
        output_tokens=_count(given, "output_tokens") if output is None else output,
        cache_written_tokens=created if written is None else written,
    )
    return None if usage == Usage() else usage


def _count(value: Mapping[str, Any], key: str) -> int | None:
    found = value.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None


def _plain_text(parts: list[dict[str, Any]]) -> tuple[Any, dict[str, Any]]:
    """Return the content of a reply, and what its message's meta keeps: a reply of one text is a str in every dialect.

    The meta keeps what the provider said about that text, and reasoning that is only an id.
    """
    ids = [part["meta"] for part in parts if _is_only_an_id(part)]
    said = [part for part in parts if not _is_only_an_id(part)]
    if len(said) > 1 or any(part["type"] != "text" for part in said):
        return parts, {}
    about = {"text": said[0].get("meta") if said else None, "reasoning": ids}
    return said[0]["text"] if said else "", {name: value for name, value in about.items() if value}


def _is_only_an_id(part: dict[str, Any]) -> bool:
    meta: dict[str, Any] = part.get("meta") or {}
    return part["type"] == "thinking" and not part["text"] and meta.keys() == {"dialect", "id"}


def _about(meta: dict[str, Any] | None) -> dict[str, Any]:
    return {"meta": meta} if meta else {}


def _without_place(call: dict[str, Any]) -> dict[str, Any]:
    meta = {name: value for name, value in call["meta"].items() if name != "after"}
    return {**{name: value for name, value in call.items() if name != "meta"}, **_about(meta)}
