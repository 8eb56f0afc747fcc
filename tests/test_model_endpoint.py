"""The scripted model: what real clients receive from it, and what it refuses."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest
from anthropic.types import RawMessageStreamEvent
from model_endpoint import TOO_LONG, Call, Fail, ModelEndpoint, Say, chat, messages, responses
from model_endpoint.requests import ACCEPTED, ASK, NEEDED, REFUSED, REPLY, SCHEMA
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

READ = Call("read_file", {"path": "a.py"}, "call_1_1")


class Api:
    """How a client calls one API: its request with and without tools, and what is read off its reply."""

    def __init__(self, name: str, endpoint: ModelEndpoint) -> None:
        self.name = name
        self.endpoint = endpoint

    def request(self, **more: Any) -> dict[str, Any]:
        if self.name == "chat":
            tool = {"type": "function", "function": {"name": "read_file", "parameters": SCHEMA}}
            return {"model": "m", "messages": ASK, "tools": [tool], **more}
        if self.name == "responses":
            tool = {"type": "function", "name": "read_file", "parameters": SCHEMA, "strict": False}
            return {"model": "m", "input": ASK, "tools": [tool], "include": ["reasoning.encrypted_content"], **more}
        tool = {"name": "read_file", "input_schema": SCHEMA}
        return {"model": "m", "messages": ASK, "max_tokens": 100, "tools": [tool], **more}

    def create(self, *, retries: int = 0) -> Callable[..., Any]:
        if self.name == "messages":
            return anthropic.Anthropic(base_url=self.endpoint.url, api_key="k", max_retries=retries).messages.create
        client = openai.OpenAI(base_url=self.endpoint.openai_url, api_key="k", max_retries=retries)
        return client.chat.completions.create if self.name == "chat" else client.responses.create

    async def create_async(self, **request: Any) -> Any:
        if self.name == "messages":
            async with anthropic.AsyncAnthropic(base_url=self.endpoint.url, api_key="k") as client:
                return await self._whole(await client.messages.create(**request))
        async with openai.AsyncOpenAI(base_url=self.endpoint.openai_url, api_key="k") as client:
            create: Any = client.chat.completions.create if self.name == "chat" else client.responses.create
            return await self._whole(await create(**request))

    async def _whole(self, reply: Any) -> Any:
        return [event async for event in reply] if hasattr(reply, "__aiter__") else reply

    def read(self, reply: Any) -> tuple[str, list[tuple[str, str, Any]], int]:
        """Return text, calls and output tokens of a whole reply."""
        if self.name == "chat":
            calls = reply.choices[0].message.tool_calls or ()
            found = [(call.id, call.function.name, json.loads(call.function.arguments)) for call in calls]
            return reply.choices[0].message.content or "", found, reply.usage.completion_tokens
        if self.name == "responses":
            calls = [item for item in reply.output if item.type == "function_call"]
            found = [(call.call_id, call.name, json.loads(call.arguments)) for call in calls]
            return reply.output_text, found, reply.usage.output_tokens
        text = "".join(block.text for block in reply.content if block.type == "text")
        found = [(block.id, block.name, block.input) for block in reply.content if block.type == "tool_use"]
        return text, found, reply.usage.output_tokens

    def join(self, events: list[Any]) -> tuple[str, str]:
        """Return text and arguments of a stream."""
        text = arguments = ""
        for event in events:
            if self.name == "chat":
                delta = event.choices[0].delta if event.choices else None
                text += (delta and delta.content) or ""
                arguments += "".join(call.function.arguments for call in (delta and delta.tool_calls) or ())
            elif event.type == "content_block_delta":
                text += getattr(event.delta, "text", "")
                arguments += getattr(event.delta, "partial_json", "")
            elif event.type == "response.output_text.delta":
                text += event.delta
            elif event.type == "response.function_call_arguments.delta":
                arguments += event.delta
        return text, arguments


@pytest.fixture(params=["chat", "responses", "messages"])
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def test_a_client_receives_text_calls_and_usage(name: str) -> None:
    with ModelEndpoint(REPLY, REPLY) as endpoint:
        api = Api(name, endpoint)
        expected = ("I look at it.", [("call_1_1", "read_file", {"path": "a.py"})], 7)
        assert api.read(api.create()(**api.request())) == expected
        text, calls, _ = api.read(asyncio.run(api.create_async(**api.request())))
        assert (text, calls[0][0]) == ("I look at it.", "call_2_1")


def test_a_client_receives_the_same_as_a_stream(name: str) -> None:
    with ModelEndpoint(REPLY, REPLY) as endpoint:
        api = Api(name, endpoint)
        expected = ("I look at it.", '{"path": "a.py"}')
        assert api.join(list(api.create()(**api.request(stream=True)))) == expected
        assert api.join(asyncio.run(api.create_async(**api.request(stream=True)))) == expected


@pytest.mark.parametrize("say", [REPLY, Say("Cut", stop="length"), Say(calls=(READ,)), Say(split=("a", " ", "b\n"))])
def test_every_event_of_a_stream_is_of_the_published_type(say: Say) -> None:
    options = {"include_usage": True}
    taken: list[tuple[Any, Any, dict[str, Any]]] = [
        (chat, ChatCompletionChunk, {"model": "m", "messages": ASK, "stream_options": options}),
        (responses, ResponseStreamEvent, {"model": "m", "input": ASK}),
        (messages, RawMessageStreamEvent, {"model": "m", "messages": ASK}),
    ]
    for api, published, body in taken:
        adapter: TypeAdapter[Any] = TypeAdapter(published)
        events = [sent.data for sent in api.events(say, body, 1) if sent.event != "ping"]
        for event in events:
            adapter.validate_python(event)
        assert len(events) > 3


def test_clients_have_helpers_that_put_a_stream_together() -> None:
    with ModelEndpoint(REPLY, REPLY, REPLY) as endpoint:
        client = openai.OpenAI(base_url=endpoint.openai_url, api_key="k")
        chat_api, responses_api, messages_api = (Api(name, endpoint) for name in ("chat", "responses", "messages"))
        with client.chat.completions.stream(**chat_api.request()) as stream:
            stream.until_done()
            assert stream.get_final_completion().choices[0].message.content == "I look at it."
        with client.responses.stream(**responses_api.request()) as stream:
            assert stream.get_final_response().output_text == "I look at it."
        with anthropic.Anthropic(base_url=endpoint.url, api_key="k").messages.stream(
            **messages_api.request()
        ) as stream:
            assert messages_api.read(stream.get_final_message())[1] == [("call_3_1", "read_file", {"path": "a.py"})]


def errors_of(name: str) -> Any:
    return anthropic if name == "messages" else openai


def test_rate_limits_and_server_errors_are_retried_by_the_client(name: str) -> None:
    with ModelEndpoint(Fail(429), Fail(500), "At last.", Fail(429), Fail(500)) as endpoint:
        api = Api(name, endpoint)
        assert api.read(api.create(retries=2)(**api.request()))[0] == "At last."
        with pytest.raises(errors_of(name).RateLimitError):
            api.create()(**api.request())
        with pytest.raises(errors_of(name).InternalServerError):
            api.create()(**api.request())


def test_a_request_longer_than_the_window_is_refused_as_the_provider_does(name: str) -> None:
    with ModelEndpoint(TOO_LONG, "Short.", window=200) as endpoint:
        api = Api(name, endpoint)
        with pytest.raises(errors_of(name).BadRequestError, match=r"too long|context window"):
            api.create()(**api.request())
        ask = [{"role": "user", "content": "long " * 400}]
        with pytest.raises(errors_of(name).BadRequestError, match=r"too long|context (window|length)"):
            api.create()(**api.request(**{"input" if name == "responses" else "messages": ask}))
        assert api.read(api.create()(**api.request()))[0] == "Short."


def test_a_stream_that_is_cut_or_fails_raises_after_what_came(name: str) -> None:
    cut = Say("one two three", cut_after=2)
    with ModelEndpoint(cut, Say("one two three", fail_after=1), cut) as endpoint:
        api = Api(name, endpoint)
        for pieces in (2, 1):
            came: list[Any] = []
            with pytest.raises((errors_of(name).APIError, httpx2.HTTPError)):  # Anthropic's client does not wrap it
                came.extend(_collect(api.create()(**api.request(stream=True)), came))
            assert api.join(came)[0].split() == ["one", "two"][:pieces]
        with pytest.raises(errors_of(name).APIConnectionError):
            api.create()(**api.request())


def _collect(stream: Iterator[Any], came: list[Any]) -> list[Any]:
    for event in stream:
        came.append(event)
        # Responses send errors as an event, which the client does not raise by itself.
        if getattr(event, "type", "") == "error":
            raise openai.APIError(event.message, request=None, body=None)  # pyright: ignore[reportArgumentType]
    return []


def test_a_paused_stream_has_sent_what_came_before_the_pause(name: str) -> None:
    with ModelEndpoint(Say("one two three", pause_after=1)) as endpoint:
        api = Api(name, endpoint)
        came: list[Any] = []
        stream = api.create()(**api.request(stream=True))
        while not api.join(came)[0]:
            came.append(next(stream))
        assert api.join(came)[0] == "one "
        endpoint.resume()
        assert api.join(came + list(stream))[0] == "one two three"


def test_what_a_provider_refuses_gets_a_400_and_names_the_problem() -> None:
    with ModelEndpoint() as endpoint:
        create = {name: Api(name, endpoint).create() for name in ("chat", "messages", "responses")}
        for name, body, words in REFUSED:
            with pytest.raises(errors_of(name).BadRequestError, match=words):
                create[name](**NEEDED[name], extra_body=body)
        assert len(endpoint.refused) == len(REFUSED)
        endpoint.refused.clear()


def test_a_refused_request_fails_the_test_that_sent_it() -> None:
    endpoint = ModelEndpoint("Hi.")
    endpoint.__enter__()
    with pytest.raises(openai.BadRequestError):
        Api("chat", endpoint).create()(model="m", messages=[])
    assert len(endpoint.left) == 1
    with pytest.raises(AssertionError, match="requests that a provider would refuse"):
        endpoint.__exit__(None, None, None)


def test_requests_without_a_key_or_a_script_are_refused() -> None:
    with ModelEndpoint() as endpoint:
        with pytest.raises(openai.BadRequestError, match="no more replies"):
            Api("chat", endpoint).create()(model="m", messages=ASK)
        for path in (chat.PATH, responses.PATH, messages.PATH):
            assert httpx.post(f"{endpoint.url}{path}", json={"model": "m"}).status_code == 401
        with pytest.raises(openai.NotFoundError):
            openai.OpenAI(base_url=endpoint.url, api_key="k").embeddings.create(model="m", input="x")
        endpoint.refused.clear()


@pytest.mark.parametrize(("name", "body"), ACCEPTED)
def test_a_valid_request_is_answered(name: str, body: dict[str, Any]) -> None:
    with ModelEndpoint("Yes.") as endpoint:
        api = Api(name, endpoint)
        assert api.read(api.create()(**{**NEEDED[name], **body}))[0] == "Yes."


def test_replies_can_depend_on_the_request() -> None:
    with ModelEndpoint(answer=lambda request: request.body["messages"][-1]["content"].upper()) as endpoint:
        api = Api("chat", endpoint)
        assert api.read(api.create()(**api.request()))[0] == "READ A.PY."


def test_a_lenient_endpoint_answers_fields_and_roles_that_are_not_published() -> None:
    news = {"role": "system", "content": "News."}
    body = {"model": "m", "max_tokens": 9, "messages": [*ASK, news], "cache_hint": {"ttl": "1h"}, "stream": True}
    with ModelEndpoint("Yes.", strict=False) as endpoint:
        create = Api("messages", endpoint).create()
        text, _ = Api("messages", endpoint).join(list(create(**NEEDED["messages"], stream=True, extra_body=body)))
        assert text == "Yes."
        assert endpoint.bodies == [body]
        assert httpx.post(f"{endpoint.url}{messages.PATH}", json=body).status_code == 401
        endpoint.refused.clear()


def test_clients_can_look_for_the_server_list_models_and_count_tokens() -> None:
    with ModelEndpoint() as endpoint:
        assert httpx.head(endpoint.url).status_code == 200
        assert openai.OpenAI(base_url=endpoint.openai_url, api_key="k").models.list().data == []
        client = anthropic.Anthropic(base_url=endpoint.url, api_key="k")
        assert client.messages.count_tokens(model="m", messages=[{"role": "user", "content": "four" * 10}]).input_tokens
        assert endpoint.requests == []


def test_a_call_of_a_namespace_is_sent_with_it() -> None:
    with ModelEndpoint(Say(calls=(Call("add_entry", {}, namespace="mcp__notes"),))) as endpoint:
        (call,) = Api("responses", endpoint).create()(**NEEDED["responses"]).output
        assert (call.namespace, call.name) == ("mcp__notes", "add_entry")
