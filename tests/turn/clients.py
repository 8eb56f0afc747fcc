"""Turns with the real clients against the scripted model: one interface for the three APIs, sync or awaited."""

from collections.abc import AsyncIterator
from typing import Any
from weakref import finalize

import anthropic
import openai
from model_endpoint import ModelEndpoint

from daypack.session import Session
from daypack.turn.dialects import DIALECTS, NAMES
from daypack.turn.turn import Turn

# Dialect and how it is streamed: `create(stream=True)`, or the library's own helper.
WAYS = [(dialect, helper) for dialect in ("openai", "responses", "anthropic") for helper in (False, True)]

_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
_NAMES = ("read_file", "list", "f")
TOOLS: dict[str, list[Any]] = {
    "openai": [{"type": "function", "function": {"name": name, "parameters": _SCHEMA}} for name in _NAMES],
    "responses": [{"type": "function", "name": name, "parameters": _SCHEMA, "strict": False} for name in _NAMES],
    "anthropic": [{"name": name, "input_schema": _SCHEMA} for name in _NAMES],
}


class Client:
    """The client of one dialect."""

    def __init__(self, dialect: str, endpoint: ModelEndpoint, *, is_async: bool = False) -> None:
        self.dialect = dialect
        self._made: Any
        if dialect == "anthropic":
            kind = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
            self._made = kind(base_url=endpoint.url, api_key="k", max_retries=0)
            self._calls: Any = self._made.messages
        else:
            other = openai.AsyncOpenAI if is_async else openai.OpenAI
            self._made = other(base_url=endpoint.openai_url, api_key="k", max_retries=0)
            self._calls = self._made.chat.completions if dialect == "openai" else self._made.responses
        if not is_async:
            finalize(endpoint, self._made.close)  # an open connection that is collected later warns in another test

    def request(self, turn: Turn, **more: Any) -> dict[str, Any]:
        limit = {"max_tokens": 100} if self.dialect == "anthropic" else {}
        return {"model": "m", **limit, "tools": TOOLS[self.dialect], **turn.request(self.dialect), **more}

    def create(self, turn: Turn, **more: Any) -> object:
        """Return the whole reply."""
        return self._calls.create(**self.request(turn, **more))

    def stream(self, turn: Turn, *, helper: bool = False, **more: Any) -> object:
        """Return what streams a reply: a stream, or with `helper` the manager that opens one."""
        if self.dialect == "openai":
            more = {"stream_options": {"include_usage": True}, **more}
        if helper:
            return self._calls.stream(**self.request(turn, **more))
        return self._calls.create(**self.request(turn, **more), stream=True)

    async def open(self, turn: Turn, *, helper: bool = False) -> AsyncIterator[object]:
        """Return an asynchronous stream."""
        source: Any = self.stream(turn, helper=helper)
        return source if hasattr(source, "__aenter__") else await source

    async def aclose(self) -> None:
        await self._made.close()


def ask(session: Session, text: str = "Go on.") -> Turn:
    session.append("user", text)
    return session.prepare(budget=8000)


def check_next(session: Session) -> None:
    """The next turn is valid in every dialect, and replays."""
    turn = ask(session, "And now?")
    for name in NAMES:
        assert DIALECTS[name].validate(turn.request(name)) == []
    assert turn.event_id is not None
    assert session.replay(turn.event_id).messages() == turn.messages()
