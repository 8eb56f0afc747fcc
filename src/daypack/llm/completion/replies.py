"""Reading what servers answer: completions of two shapes, and refusals."""

from typing import Any, cast

import msgspec

from daypack.llm.completion.port import Completion, Constraint, Finish

_FINISH: dict[object, Finish] = {"stop": "stop", "length": "length"}
_TOO_LONG = ("exceed_context_size_error", "context_length_exceeded", "maximum context length")


def read_object(body: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a body, None when it is none."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def read_chat(answer: dict[str, Any], name: str, constraint: Constraint) -> Completion | None:
    """Read a chat completion as OpenAI, llama.cpp and vLLM give it; None when it is none."""
    choices = answer.get("choices")
    first = _record(cast("list[Any]", choices)[0]) if isinstance(choices, list) and choices else {}
    if not isinstance(first.get("message"), dict):
        return None
    message, usage = _record(first["message"]), _record(answer.get("usage"))
    text, finish = _text(message.get("content")), _FINISH.get(first.get("finish_reason"), "other")
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        text, finish = refusal, "other"
    tokens = (_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")))
    return Completion(text, finish, _model(answer, name), *tokens, constraint)


def read_ollama(answer: dict[str, Any], name: str, constraint: Constraint) -> Completion | None:
    """Read an answer of Ollama's own chat; None when it is none."""
    if not isinstance(answer.get("message"), dict):
        return None
    finish = _FINISH.get(answer.get("done_reason"), "other")
    tokens = (_count(answer.get("prompt_eval_count")), _count(answer.get("eval_count")))
    text = _text(_record(answer["message"]).get("content"))
    return Completion(text, finish, _model(answer, name), *tokens, constraint)


def read_refusal(body: bytes, secret: str) -> tuple[str, bool]:
    """Return what a refusal says, without the key it may repeat, and whether it is that the prompt is too long."""
    answer = read_object(body) or {}
    told = answer.get("error") or answer.get("message") or answer.get("detail")
    error = _record(told).get("message", told)
    text = error if isinstance(error, str) else body[:200].decode("utf-8", "replace")
    too_long = any(sign in body.decode("utf-8", "replace") for sign in _TOO_LONG)
    if secret:
        text = text.replace(secret, "…")
    return " ".join(text.split())[:300], too_long


def _text(content: object) -> str:
    if isinstance(content, list):
        texts = (_record(part).get("text") for part in cast("list[Any]", content))
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _record(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _model(answer: dict[str, Any], name: str) -> str:
    told = answer.get("model")
    return told if isinstance(told, str) and told else name


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
