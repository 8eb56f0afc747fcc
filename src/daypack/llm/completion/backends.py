"""What answers at an address: llama.cpp, Ollama, vLLM or another, how large its window is, whether it can think."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, cast

DEFAULT_WINDOW_TOKENS = 8192

Kind = Literal["llama.cpp", "ollama", "vllm", "other"]
# Asks (method, path below the server's root, JSON body) and returns a JSON object, or None for a refusal.
Ask = Callable[[str, str, dict[str, Any] | None], dict[str, Any] | None]


class Backend(NamedTuple):
    """A server as it told of itself."""

    kind: Kind
    window_tokens: int
    template: str = ""  # of a chat, where it is told


def recognise(ask: Ask, prefix: str, model: str) -> Backend:
    """Find out what answers; `prefix` is the path of the OpenAI-compatible part, such as /v1."""
    props = ask("GET", "/props", None) or {}
    if window := _number(props, "default_generation_settings", "n_ctx"):
        return Backend("llama.cpp", window, str(props.get("chat_template", "")))
    found = _entry(ask("GET", f"{prefix}/models", None) or {}, model)
    if window := _number(found, "max_model_len"):
        return Backend("vllm", window)
    if window := _number(found, "meta", "n_ctx") or _number(found, "meta", "n_ctx_train"):
        return Backend("llama.cpp", window)
    if shown := ask("POST", "/api/show", {"model": model}):
        return _ollama(shown)
    return Backend("other", _number(found, "context_length") or DEFAULT_WINDOW_TOKENS)


def _ollama(shown: dict[str, Any]) -> Backend:
    """Read a description by Ollama: it can do more than it does, so what is asked for later is said there."""
    told = _record(shown.get("model_info"))
    most = next((value for key, value in told.items() if key.endswith(".context_length")), None)
    window = min(most, DEFAULT_WINDOW_TOKENS) if isinstance(most, int) and most > 0 else DEFAULT_WINDOW_TOKENS
    for line in str(shown.get("parameters", "")).splitlines():
        name, _, value = line.partition(" ")
        if name == "num_ctx" and value.strip().isdigit() and int(value) > 0:
            window = int(value)
    return Backend("ollama", window, str(shown.get("template", "")))


def _entry(listed: dict[str, Any], model: str) -> dict[str, Any]:
    """Return the entry of a list of models that has the name, or the only one."""
    data = listed.get("data")
    entries = [_record(one) for one in cast("list[Any]", data)] if isinstance(data, list) else []
    named = [one for one in entries if one.get("id") == model]
    if named:
        return named[0]
    return entries[0] if len(entries) == 1 else {}


def _number(value: object, *path: str) -> int:
    for name in path:
        value = _record(value).get(name)
    return value if isinstance(value, int) and value > 0 else 0


def _record(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
