"""Thinking switched off: a compaction wants the filled template, not the way to it."""

from daypack.llm.completion.port import Prompt

TEMPLATE_SWITCH = {"enable_thinking": False}


def can_think(model: str, template: str) -> bool:
    """Say whether a model thinks before it answers unless told otherwise: Qwen3, or a template with that switch."""
    return "qwen3" in model.lower() or "enable_thinking" in template


def messages_of(prompt: Prompt, *, thinks: bool) -> list[dict[str, str]]:
    """Return the messages of a prompt, with the word that stops a thinking model from thinking."""
    user = f"{prompt.user}\n/no_think" if thinks else prompt.user
    system = [{"role": "system", "content": prompt.system}] if prompt.system else []
    return [*system, {"role": "user", "content": user}]
