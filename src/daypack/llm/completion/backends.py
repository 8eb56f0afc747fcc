"""Recognises the server at an address: llama.cpp, Ollama, vLLM or another, its window and its chat template."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, cast

DEFAULT_WINDOW_TOKENS = 8192

Kind = Literal["llama.cpp", "ollama", "vllm", "other"]
# Sends (method, path below the server's root, JSON body) and returns a JSON object, or None for a refusal.
Query = Callable[[str, str, dict[str, Any] | None], dict[str, Any] | None]


class Backend(NamedTuple):
    """A server as it describes itself."""

    kind: Kind
    window_tokens: int
    template: str = ""  # chat template, if the server shows it


def recognise(query: Query, prefix: str, model: str) -> Backend:
    """Find out which server answers; `prefix` is the path of the OpenAI-compatible part, such as /v1."""
    props = query("GET", "/props", None) or {}
    if window := _number(props, "default_generation_settings", "n_ctx"):
        return Backend("llama.cpp", window, str(props.get("chat_template", "")))
    entry = _model_entry(query("GET", f"{prefix}/models", None) or {}, model)
    if window := _number(entry, "max_model_len"):
        return Backend("vllm", window)
    if window := _number(entry, "meta", "n_ctx") or _number(entry, "meta", "n_ctx_train"):
        return Backend("llama.cpp", window)
    if description := query("POST", "/api/show", {"model": model}):
        return _read_ollama(description)
    return Backend("other", _number(entry, "context_length") or DEFAULT_WINDOW_TOKENS)


def _read_ollama(description: dict[str, Any]) -> Backend:
    """Read a description by Ollama. Requests set num_ctx themselves, so the window is ours to choose."""
    info = _record(description.get("model_info"))
    most = next((value for key, value in info.items() if key.endswith(".context_length")), None)
    window = min(most, DEFAULT_WINDOW_TOKENS) if isinstance(most, int) and most > 0 else DEFAULT_WINDOW_TOKENS
    for line in str(description.get("parameters", "")).splitlines():
        name, _, value = line.partition(" ")
        if name == "num_ctx" and value.strip().isdigit() and int(value) > 0:
            window = int(value)
    return Backend("ollama", window, str(description.get("template", "")))


def _model_entry(listing: dict[str, Any], model: str) -> dict[str, Any]:
    """Return the model's entry of a list of models; if none has its name, the only entry."""
    data = listing.get("data")
    entries = [_record(entry) for entry in cast("list[Any]", data)] if isinstance(data, list) else []
    named = [entry for entry in entries if entry.get("id") == model]
    if named:
        return named[0]
    return entries[0] if len(entries) == 1 else {}


def _number(value: object, *path: str) -> int:
    for name in path:
        value = _record(value).get(name)
    return value if isinstance(value, int) and value > 0 else 0


def _record(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
