"""What the three providers say of a turn's requests, by the checks of the scripted endpoint."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from model_endpoint import chat, responses
from model_endpoint import messages as anthropic_messages

from daypack.turn.dialects import NAMES, dialect
from daypack.turn.turn import Turn

SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}
PROVIDERS: dict[str, tuple[Callable[[Mapping[str, Any]], Iterable[str]], dict[str, Any]]] = {
    "openai": (chat.check, {"model": "m", "tools": [{"type": "function", "function": {"name": "f"}}]}),
    "responses": (responses.check, {"model": "m"}),
    "anthropic": (
        anthropic_messages.check,
        {"model": "m", "max_tokens": 9, "tools": [{"name": "f", "input_schema": SCHEMA}]},
    ),
}
# Only the provider can tell whether it signed or sealed what a caller appends.
SEALS = ("Invalid `signature`", "could not be verified")


def check_requests(turn: Turn) -> None:
    """Fail unless every provider takes the request of a turn."""
    for name in NAMES:
        body = msgspec.json.decode(msgspec.json.encode(turn.request(name)))
        assert dialect(name).validate(body) == []
        check, rest = PROVIDERS[name]
        refused = [problem for problem in check({**rest, **body}) if not any(seal in problem for seal in SEALS)]
        assert refused == []
