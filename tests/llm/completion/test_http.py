"""Completions over HTTP: each backend is asked in its own way, and what goes wrong is told."""

import socket
from collections.abc import Callable
from typing import Any

import pytest
from scripted_endpoint import LLAMA_CPP, NOT_FOUND, OLLAMA, VLLM, Endpoint, Reply, Seen, chat, in_turn, refuse

from daypack.errors import ModelFailed
from daypack.llm import client as transport
from daypack.llm.choice import Choice
from daypack.llm.client import Retry
from daypack.llm.completion.http import HttpCompleter
from daypack.llm.completion.port import Completion, Prompt

PROMPT = Prompt("Be brief.", "Say yes.", max_tokens=20)
GRAMMAR = 'root ::= "yes"'
SCHEMA = {"type": "object"}


def completer(
    endpoint: Endpoint, *, model: str = "m", window: int | None = None, seconds: int = 20, key: str = ""
) -> Any:
    chosen = Choice("openai", f"{endpoint.url}/v1", model, window, seconds)
    return HttpCompleter(chosen, key=key, retry=Retry(pause_seconds=0.001))


def refusing(field: str, reply: Reply, told: dict[str, Reply] | None = None) -> Callable[[Seen], Reply]:
    """Refuse every question that has a field, and answer the others."""
    answer = in_turn(chat("yes"), told=told or {})

    def choose(seen: Seen) -> Reply:
        return reply if seen.body and field in seen.json else answer(seen)

    return choose


def fails(answer: Callable[[Seen], Reply], match: str, prompt: Prompt = PROMPT, **chosen: Any) -> Endpoint:
    """Ask an endpoint a question that must fail; return the endpoint."""
    with Endpoint(answer) as endpoint, pytest.raises(ModelFailed, match=match):
        completer(endpoint, **chosen).complete(prompt)
    return endpoint


def test_a_question_is_asked_as_openai_defines_it_and_the_answer_read() -> None:
    with Endpoint(in_turn(chat("yes"))) as endpoint:
        answer = completer(endpoint).complete(PROMPT)
    assert answer == Completion("yes", "stop", "scripted", 12, 3)
    assert endpoint.asked == [
        {
            "model": "m",
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say yes."}],
            "stream": False,
            "max_tokens": 20,
            "temperature": 0,
            "seed": 7,
        }
    ]


@pytest.mark.parametrize(
    ("finish", "read"), [("stop", "stop"), ("length", "length"), ("content_filter", "other"), (None, "other")]
)
def test_why_an_answer_ended_is_told(finish: Any, read: str) -> None:
    with Endpoint(in_turn(chat("cut", finish))) as endpoint:
        assert completer(endpoint).complete(PROMPT).finish == read


def test_a_refusal_by_the_model_and_text_in_parts_are_read() -> None:
    refused = {"choices": [{"message": {"content": None, "refusal": "I cannot."}, "finish_reason": "stop"}]}
    parts = {"choices": [{"message": {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}}]}
    empty = {"choices": [{"message": {"content": None}, "finish_reason": "stop"}]}
    with Endpoint(in_turn(Reply(refused), Reply(parts), Reply(empty))) as endpoint:
        one = completer(endpoint)
        name = f"openai:{endpoint.url}/v1#m"
        assert one.complete(PROMPT) == Completion("I cannot.", "other", name)
        assert one.complete(PROMPT) == Completion("ab", "other", name)
        assert one.complete(PROMPT) == Completion("", "stop", name)


@pytest.mark.parametrize(
    ("told", "window"),
    [
        (LLAMA_CPP, 4096),
        ({"/v1/models": Reply({"data": [{"id": "a", "meta": {"n_ctx": 2048}}]})}, 2048),
        (VLLM, 32768),
        (OLLAMA, 8192),
        ({"/api/show": Reply({"model_info": {"x.context_length": 2048}})}, 2048),
        ({"/api/show": Reply({"parameters": 'stop "x"\nnum_ctx    16384'})}, 16384),
        ({"/v1/models": Reply({"data": [{"id": "a"}, {"id": "m", "context_length": 100_000}]})}, 100_000),
        ({"/props": Reply(b"<html>"), "/v1/models": Reply([1])}, 8192),
        ({}, 8192),
    ],
)
def test_the_window_is_what_the_server_says(told: dict[str, Reply], window: int) -> None:
    with Endpoint(in_turn(NOT_FOUND, told=told)) as endpoint:
        one = completer(endpoint)
        assert one.window_tokens == window
        before = len(endpoint.seen)
        assert one.window_tokens == window
        assert len(endpoint.seen) == before
        assert completer(endpoint, window=777).window_tokens == 777


def test_a_grammar_binds_llama_cpp_and_a_schema_the_others() -> None:
    both = Prompt("", "?", grammar=GRAMMAR, schema=SCHEMA)
    with Endpoint(in_turn(chat("yes"), told=LLAMA_CPP)) as endpoint:
        assert completer(endpoint).complete(both).constraint == "grammar"
        assert endpoint.asked[-1]["grammar"] == GRAMMAR
        assert "response_format" not in endpoint.asked[-1]
        assert completer(endpoint).complete(Prompt("", "?", schema=SCHEMA)).constraint == "schema"
        assert endpoint.asked[-1]["response_format"]["json_schema"]["schema"] == SCHEMA
    with Endpoint(in_turn(chat("yes"), told=VLLM)) as endpoint:
        assert completer(endpoint).complete(both).constraint == "schema"
        assert "grammar" not in endpoint.asked[-1]
        assert completer(endpoint).complete(Prompt("", "?", grammar=GRAMMAR)).constraint == ""


def test_ollama_is_asked_in_its_own_way_with_the_room_it_must_have() -> None:
    reply = {
        "model": "q",
        "message": {"content": "{}"},
        "done_reason": "length",
        "prompt_eval_count": 5,
        "eval_count": 6,
    }
    with Endpoint(in_turn(Reply(reply), told=OLLAMA)) as endpoint:
        answer = completer(endpoint).complete(Prompt("", "?", max_tokens=9, schema=SCHEMA, seed=3))
        assert answer == Completion("{}", "length", "q", 5, 6, "schema")
        assert endpoint.seen[-1].path == "/api/chat"
        asked = endpoint.asked[-1]
        assert asked["format"] == SCHEMA
        assert asked["think"] is False
        assert asked["options"] == {"temperature": 0, "seed": 3, "num_ctx": 8192, "num_predict": 9}
        completer(endpoint, window=2048).complete(PROMPT)
        assert endpoint.asked[-1]["options"]["num_ctx"] == 2048


@pytest.mark.parametrize(("field", "told"), [("grammar", LLAMA_CPP), ("response_format", {}), ("format", OLLAMA)])
def test_a_constraint_that_is_refused_is_left_out_from_then_on(field: str, told: dict[str, Reply]) -> None:
    prompt = Prompt(
        "", "?", grammar=GRAMMAR if field == "grammar" else None, schema=None if field == "grammar" else SCHEMA
    )
    plain = Reply({"message": {"content": "yes"}}) if told is OLLAMA else chat("yes")
    answers = in_turn(plain, told=told)
    with Endpoint(
        lambda seen: refuse(400, f"no {field}") if field.encode() in seen.body else answers(seen)
    ) as endpoint:
        one = completer(endpoint)
        assert one.complete(prompt).text == "yes"
        before = len(endpoint.asked)
        assert one.complete(prompt).constraint == ""
    assert any(field in asked for asked in endpoint.asked[:before])
    assert [field in asked for asked in endpoint.asked[before:]] == [False]


def test_a_model_that_takes_no_temperature_is_asked_without_and_keeps_its_schema() -> None:
    with Endpoint(refusing("temperature", refuse(400, "Unsupported value: 'temperature'"))) as endpoint:
        one = completer(endpoint)
        assert one.complete(Prompt("", "?", schema=SCHEMA, max_tokens=5)).constraint == "schema"
        assert one.complete(PROMPT).text == "yes"
    assert ["temperature" in asked for asked in endpoint.asked] == [True, False, False]
    assert endpoint.asked[-1]["max_completion_tokens"] == 20


def test_what_is_refused_in_every_form_fails_with_the_last_reason() -> None:
    endpoint = fails(in_turn(refuse(400, "no such thing"), refuse(400, "model m is unknown")), "model m is unknown")
    assert len(endpoint.asked) == 2


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"type": "exceed_context_size_error", "message": "3031 tokens"}},
        {"error": {"code": "context_length_exceeded", "message": "too many"}},
    ],
)
def test_a_prompt_that_is_too_long_is_not_tried_in_other_forms(body: dict[str, Any]) -> None:
    endpoint = fails(in_turn(Reply(body, 400)), r"too long.*window=TOKENS", Prompt("", "?", schema=SCHEMA))
    assert len(endpoint.asked) == 1


@pytest.mark.parametrize("model", ["Qwen/Qwen3-1.7B", "m"])
def test_thinking_is_switched_off(model: str) -> None:
    with Endpoint(in_turn(chat("yes"), told=LLAMA_CPP)) as endpoint:
        completer(endpoint, model=model).complete(PROMPT)
    asked = endpoint.asked[-1]
    assert asked["chat_template_kwargs"] == {"enable_thinking": False}
    assert asked["messages"][-1]["content"].endswith("/no_think") == (model != "m")


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_asked_again_a_bounded_number_of_times(status: int) -> None:
    with Endpoint(in_turn(refuse(status, "busy", **{"Retry-After": "0"}), chat("yes"))) as endpoint:
        assert completer(endpoint).complete(PROMPT).text == "yes"
    assert len(fails(in_turn(refuse(status, "busy")), f"HTTP {status}: busy").asked) == Retry().attempts


def test_a_wait_that_is_longer_than_the_deadline_is_not_begun() -> None:
    assert len(fails(in_turn(refuse(503, "busy", **{"Retry-After": "29"})), "HTTP 503", seconds=5).asked) == 1


@pytest.mark.parametrize("status", [401, 404, 500])
def test_other_failures_are_told_at_once(status: int) -> None:
    assert len(fails(in_turn(refuse(status, "no")), f"HTTP {status}: no").asked) == 1


def test_a_server_that_is_not_there_is_told_after_some_attempts() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and not listening
        chosen = Choice("openai", f"http://127.0.0.1:{taken.getsockname()[1]}/v1", "m")
        with pytest.raises(ModelFailed, match=r"refused.*is the server running"):
            HttpCompleter(chosen, retry=Retry(pause_seconds=0.001)).complete(PROMPT)


def test_an_answer_that_does_not_come_in_time_fails() -> None:
    fails(in_turn(chat("late")._replace(delay_seconds=3)), "no response in time", seconds=1)


def test_an_answer_that_is_cut_off_or_none_or_endless_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    fails(in_turn(chat("yes")._replace(cut_at=10)), "cut off")
    for body in (b"<html>hello</html>", b"[1]", b'{"choices":[]}', b'{"choices":[7]}', b"\xff"):
        fails(in_turn(Reply(body)), "the response is not a completion")
    monkeypatch.setattr(transport, "MAX_BODY_BYTES", 1000)
    fails(in_turn(chat("x" * 2000)), "more than 1,000 bytes")


def test_a_redirect_is_followed_on_the_same_host_only() -> None:
    answer = in_turn(chat("yes"))

    def moved(seen: Seen) -> Reply:
        if seen.path == "/v1/chat/completions":
            return Reply(b"", 307, {"Location": "/v9/chat/completions"})
        return answer(seen)

    with Endpoint(moved) as endpoint:
        assert completer(endpoint).complete(PROMPT).text == "yes"
    with Endpoint(in_turn(chat("stolen"))) as thief:
        away = Reply(b"", 307, {"Location": f"{thief.url}/v1/chat/completions"})
        fails(in_turn(away), "redirects to", key="k")
        assert thief.seen == []
    fails(in_turn(Reply(b"", 308, {"Location": "/v1/chat/completions"})), "redirects")


def test_the_key_is_sent_and_never_told() -> None:
    with Endpoint(in_turn(refuse(401, "Incorrect API key provided: sk-secret."))) as endpoint:
        one = completer(endpoint, key="sk-secret")
        with pytest.raises(ModelFailed) as caught:
            one.complete(PROMPT)
        assert endpoint.seen[-1].headers["authorization"] == "Bearer sk-secret"
    assert "sk-secret" not in f"{caught.value!r} {caught.value} {one!r}"
    assert "DAYPACK_API_KEY" in caught.value.hint
