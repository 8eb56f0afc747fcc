"""Short texts for the codes in events and turns: why an epoch began, why a cache broke, why something was lost."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from daypack.turn.evidence.observed.cache import CacheBreak

EPOCHS = {
    "first": "first turn",
    "refresh": "refresh requested",
    "overflow": "the window was full",
    "compaction": "compacted, or a compaction undone",
    "budget_changed": "the budget changed",
    "tokenizer_changed": "the tokenizer changed",
    "redaction_changed": "the redaction setting changed",
    "memory_bound": "a memory was bound or unbound",
    "erased": "something it showed was erased",
    "renderer_changed": "the renderer version changed",
    "withdrawn": "an item of its prefix was withdrawn",
    "damaged": "its record or a message is damaged",
}
TRIGGERS = {
    "manual": "requested",
    "token_pressure": "the window was filling up",
    "provider_context_editing": "the provider's window was exceeded",
}
PROGRAMS = {
    "claude-code": "Claude Code",
    "codex": "Codex",
    "copilot": "Copilot",
    "qwen": "Qwen Code",
    "gemini": "Gemini CLI",
}
CAUSES = {
    "compaction": "compacted",
    "model": "model changed",
    "tools": "tools changed",
    "system": "system prompt changed",
    "messages": "earlier messages changed",
    "parameters": "parameters changed",
    "expired": "expired",
    "unknown": "cause unknown",
}
LOSSES = {
    "ungrounded": "not supported by the history",
    "meta": "comment about the summary itself",
    "placeholder": "echo of the prompt",
    "over_limit": "over the size limit",
    "unfinished": "cut off",
    "unreadable": "unreadable",
    "refused": "declined by the model",
    "repeated": "duplicate",
    "superseded": "superseded",
    "displaced": "dropped to make room",
    "unread": "not read",
    "outdated": "changed since",
    "done": "done since",
    "resolved": "resolved since",
    "unremarkable": "no decision, fact, open work or error",
    "narration": "an agent's talk about its steps",
    "question": "question",
    "fragment": "heading or fragment",
    "not_prose": "code, log or table",
    "injected": "written by another program",
    "tool_output": "tool output, in refs and swap",
}
DROPPED_BLOCKS = {
    "threshold_decay": "importance below the threshold",
    "threshold_confidence": "confidence below the threshold",
    "expired_by_round": "expired",
    "over_max_items": "the tier is full",
    "redundant": "duplicate",
    "invalid_block": "invalid block",
}


def program_name(program: str) -> str:
    """Return the name of a program as people write it."""
    return PROGRAMS.get(program, program)


def cause_words(found: "CacheBreak") -> str:
    """Return the cause of a cache break in a few words: tools changed: +count_lines."""
    cause = found.causes[0]
    if cause == "compaction":
        return found.detail
    return CAUSES[cause] if cause in ("model", "system", "unknown") else f"{CAUSES[cause]}: {found.detail}"


def break_words(found: "CacheBreak") -> str:
    """Return everything that is known about a cache break."""
    words = cause_words(found)
    if found.causes[0] in ("model", "unknown") and found.detail:
        words += f": {found.detail}"
    others = [CAUSES[name] for name in found.causes[1:]]
    return f"{words} (also {', '.join(others)})" if others else words
