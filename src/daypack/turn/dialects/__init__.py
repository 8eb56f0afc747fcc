"""The dialects: render a neutral turn as a provider's request, and read a provider's reply.

Both directions are here and nowhere else. A dialect is a module with three functions: `render` gives the keyword
arguments of the client's call, `read` takes what the client returned, `validate` says what the provider would refuse.

What `read` keeps for `render` is in meta: the message's `dialect`, `id`, `model` and `stop`, what the provider said
about a text that is the whole content (`text`: id, phase, annotations, citations), a call's place among the parts
(`after`), the sealed form of a reasoning item. In other dialects it is left out.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol, cast

import msgspec

from daypack.errors import BadInput
from daypack.turn.dialects.given import Given
from daypack.turn.dialects.reply import Reply, Usage, read_usage
from daypack.turn.dialects.reply_fields import list_at, open_reply, text_at

__all__ = [
    "DIALECTS",
    "NAMES",
    "RENDERER",
    "Dialect",
    "Given",
    "Reply",
    "Usage",
    "dialect",
    "encode",
    "read_reply",
    "read_usage",
]

# Recorded with every turn. The bytes of a rendering are never changed under one version: replay compares digests.
RENDERER = "5"

NAMES = ("openai", "responses", "anthropic")

# What a block of a reply gives away about its API. A text block is everybody's.
_ANTHROPIC = ("thinking", "redacted_thinking", "tool_use", "server_tool_use")
_RESPONSES = ("output_text", "refusal")
_FIELDS = ("role", "content", "tool_calls", "name", "client_key", "meta", "ts")


class Dialect(Protocol):
    """One provider's API."""

    def render(self, given: Given) -> dict[str, Any]:
        """Return the keyword arguments of the client's call."""
        ...

    def read(self, reply: object) -> Reply:
        """Read what the client returned."""
        ...

    def validate(self, body: Mapping[str, Any]) -> list[str]:
        """Return what the provider would refuse; nothing when the body is acceptable."""
        ...


DIALECTS: dict[str, Dialect]


def dialect(name: str) -> Dialect:
    """Return the dialect of that name; it is imported when it is first asked for."""
    if name not in NAMES:
        hint = f"use one of {', '.join(NAMES)}"
        raise BadInput(f"{name!r} is no dialect", operation="find dialect", place="dialect", hint=hint)
    return cast(Dialect, import_module(f"daypack.turn.dialects.{name}"))


def __getattr__(name: str) -> Any:  # noqa: ANN401 — a module's attribute
    # Importing all dialects costs start-up time, so only a request for the whole table does it.
    if name == "DIALECTS":
        return {known: dialect(known) for known in NAMES}
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def encode(body: Mapping[str, Any]) -> bytes:
    """Return the bytes of a rendered body, for digests: JSON with the keys in the order they were built."""
    return msgspec.json.encode(body)


def read_reply(reply: object) -> Reply:
    """Read a reply of any dialect, recognised by its shape: a text, a message, or what a client returned."""
    if isinstance(reply, str):
        return dialect("openai").read(reply)
    value = open_reply(reply)
    if _is_neutral(value):
        return Reply({name: value[name] for name in _FIELDS if value.get(name) is not None})
    return dialect(_recognise(value)).read(value)


def _is_neutral(value: Mapping[str, Any]) -> bool:
    """True if a reply is already a message in daypack's own shape."""
    if value.get("role") != "assistant":
        return False
    blocks = list_at(value, "content")
    thinks = any(block.get("type") == "thinking" and isinstance(block.get("text"), str) for block in blocks)
    return (
        thinks
        or "meta" in value
        or "client_key" in value
        or any("name" in call for call in list_at(value, "tool_calls"))
    )


def _recognise(value: Mapping[str, Any]) -> str:
    if "output" in value:
        return "responses"
    if "choices" in value or "message" in value:
        return "openai"
    kinds = {text_at(block, "type") for block in list_at(value, "content")}
    if kinds & {*_RESPONSES}:
        return "responses"
    if "stop_reason" in value or kinds & {*_ANTHROPIC}:
        return "anthropic"
    return "openai"
