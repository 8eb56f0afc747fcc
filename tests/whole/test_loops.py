"""Whole conversations with the real clients: images, tools, errors, cut streams, and from provider to provider.

The model endpoint refuses what a provider would refuse, so that every request of a conversation is checked.
"""

import asyncio
import base64
import inspect
from typing import Any, cast

import anthropic
import httpx2
import openai
import pytest
from docs.example_runs import draw_image
from model_endpoint import TOO_LONG, Call, Fail, ModelEndpoint, Say, Step
from model_endpoint.requests import SCHEMA
from turn.clients import Client

import daypack
from daypack.session import Session
from daypack.types.history import Message

DIALECTS = ("openai", "responses", "anthropic")
TOOLS = [{"name": "read_file", "input_schema": SCHEMA}]
BOTH = (Call("read_file", {"path": "a.py"}), Call("read_file", {"path": "gone.py"}))
# What the provider, or the connection to it, may do to a call.
FAILURES = (openai.APIError, anthropic.APIError, httpx2.HTTPError)
SCRIPT: tuple[Step, ...] = (
    Say("I look at both.", calls=BOTH, thinking="Two files."),
    Say(calls=(Call("read_file", "{}"),)),
    "One is missing.",
    "A red boat.",
    Fail(429),
    Fail(500),
    "Then again.",
    Say("One two three four.", cut_after=2),
    "From the start.",
    TOO_LONG,
    "Short enough.",
)


def picture() -> list[dict[str, Any]]:
    url = "data:image/png;base64," + base64.b64encode(draw_image(64, 48)).decode()
    return [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": url}}]


class Loop:
    """An agent's loop as people write it; failed calls are repeated, also after a compaction."""

    def __init__(self, session: Session, *, is_async: bool, streamed: bool) -> None:
        self.session = session
        self.is_async = is_async
        self.streamed = streamed

    async def ask(self, client: Client, content: object) -> Message:
        self.session.append("user", content)
        while (message := await self.take_turn(client)).tool_calls:
            for call in message.tool_calls:
                text = "x = 1" if "a.py" in call.arguments else [{"type": "text", "text": "no such file"}]
                self.session.append("tool", text, tool_call_id=call.id)
        return message

    async def take_turn(self, client: Client) -> Message:
        for left in (2, 1, 0):
            turn = await asyncio.to_thread(self.session.prepare, budget=8_000, tools=TOOLS)
            try:
                return await self.call(client, turn)
            except FAILURES as error:
                if not left:
                    raise
                if "too long" in str(error) or "context" in str(error):
                    assert self.session.compact_on_overflow().changed
        raise AssertionError("unreachable")

    async def call(self, client: Client, turn: Any) -> Message:
        tools = turn.request(client.dialect)["tools"]
        source: Any = (client.stream if self.streamed else client.create)(turn, tools=tools)
        opened: Any = await source if inspect.isawaitable(source) else source
        accepted = cast(Any, self.session).accept(opened)  # pyright cannot choose between its overloads
        return await accepted if inspect.isawaitable(accepted) else accepted


async def converse(loop: Loop, clients: list[Client]) -> list[str]:
    """Ask the questions in turn, each to the next client."""
    asked = ("Which files?", picture(), "Are you there?", "Count.", "And now in short?")
    said: list[str] = []
    for index, content in enumerate(asked):
        message = await loop.ask(clients[index % len(clients)], content)
        said.append(message.text)
    for client in clients:
        if loop.is_async:
            await client.aclose()
    return said


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("dialects", [("openai",), ("responses",), ("anthropic",), DIALECTS], ids="-".join)
def test_a_conversation_survives_all_that_happens_to_it(
    home: str, dialects: tuple[str, ...], is_async: bool, streamed: bool
) -> None:
    with ModelEndpoint(*SCRIPT) as endpoint, daypack.open_session("work", home=home, workspace="") as session:
        clients = [Client(dialect, endpoint, is_async=is_async) for dialect in dialects]
        loop = Loop(session, is_async=is_async, streamed=streamed)
        said = asyncio.run(converse(loop, clients))
        assert endpoint.left == []
        assert said == ["One is missing.", "A red boat.", "Then again.", "From the start.", "Short enough."]
        turns = [event.id for event in session.events() if event.type == "context.turn"]
        assert len(turns) == len(endpoint.requests)
        assert all(session.replay(turn) for turn in turns)
