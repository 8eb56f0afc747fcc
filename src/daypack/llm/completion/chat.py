"""Chat messages for a prompt, with thinking switched off, and the completions that servers return for them."""

from typing import Any, cast

from daypack.llm.completion.port import Completion, Constraint, Finish, Prompt

# A compaction wants the filled template, not the reasoning that leads to it.
THINKING_OFF = {"enable_thinking": False}
_FINISH: dict[object, Finish] = {"stop": "stop", "length": "length"}


def can_think(model: str, template: str) -> bool:
    """Return True if a model thinks before it answers by default: Qwen3, or a template with that switch."""
    return "qwen3" in model.lower() or "enable_thinking" in template


def chat_messages(prompt: Prompt, *, thinks: bool) -> list[dict[str, str]]:
    """Return the messages of a prompt, with the word that stops a thinking model from thinking."""
    user = f"{prompt.user}\n/no_think" if thinks else prompt.user
    system = [{"role": "system", "content": prompt.system}] if prompt.system else []
    return [*system, {"role": "user", "content": user}]


def read_chat(answer: dict[str, Any], name: str, constraint: Constraint) -> Completion | None:
    """Read a chat completion of OpenAI, llama.cpp or vLLM; None if it is anything else."""
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
    """Read a response of Ollama's own chat API; None if it is anything else."""
    if not isinstance(answer.get("message"), dict):
        return None
    finish = _FINISH.get(answer.get("done_reason"), "other")
    tokens = (_count(answer.get("prompt_eval_count")), _count(answer.get("eval_count")))
    text = _text(_record(answer["message"]).get("content"))
    return Completion(text, finish, _model(answer, name), *tokens, constraint)


def _text(content: object) -> str:
    if isinstance(content, list):
        texts = (_record(part).get("text") for part in cast("list[Any]", content))
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _record(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _model(answer: dict[str, Any], name: str) -> str:
    model = answer.get("model")
    return model if isinstance(model, str) and model else name


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
