"""What the model says in a conversation: replies by prompt, and the summary of a compaction."""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from model_endpoint import Request, Step

from coding_agents.wire import Part, read_parts

_SUMMARISE = (
    "Your task is to create a detailed summary",
    "CONTEXT CHECKPOINT COMPACTION",
    "Then, generate the updated <state_snapshot>",
    "Critically evaluate the <state_snapshot>",
    "You are a context summarization agent",
)
_TITLE = "You are a title generator"
# Texts in the place of a user that no user wrote.
_OF_THE_PROGRAM = re.compile(
    r"\s*<(system-reminder|qwen:|environment_context|local-command|command-name|task-notif|hook_context|session_context)"
)
# What daypack added to a message: it quotes prompts of other sessions, with any agent.
_NOTE = re.compile(r'<note id="(\w+)" name="daypack:.*?</note \1>', re.DOTALL)

Reply = Step | Callable[[Sequence[Part]], Step]
"""What the model says, or what it says after it has read a request."""


class Story:
    """Replies by prompt: a request gets the reply to its newest prompt that comes after those already in it.

    Prompts are found by their text, so that several conversations can be held at once, and no prompt may be part of
    another; what daypack quotes is no prompt. A request with none of them gets `other`.
    """

    def __init__(
        self, summary: str = "<summary>We looked at the project.</summary>", other: str = "Nothing to do."
    ) -> None:
        self.summary = summary
        self.other = other
        self._replies: dict[str, tuple[Reply, ...]] = {}

    def on(self, prompt: str, *replies: Reply) -> None:
        self._replies[prompt] = replies

    def answer(self, request: Request) -> Step:
        parts = read_parts(request.body)
        if is_summary_call(parts):
            return self.summary
        if is_title_call(parts):
            return "A title"
        said = [
            (index, _NOTE.sub("", part.text))
            for index, part in enumerate(parts)
            if part.role == "user" and not _OF_THE_PROGRAM.match(part.text)
        ]
        found = [
            (index, -text.index(prompt), prompt) for index, text in said for prompt in self._replies if prompt in text
        ]
        if not found:
            return self.other
        index, _, prompt = max(found)
        given = _runs_of_replies(parts[index:])
        replies = self._replies[prompt]
        reply = replies[given] if given < len(replies) else self.other
        return reply(parts) if callable(reply) else reply


def is_summary_call(parts: Iterable[Part]) -> bool:
    """Return whether a request asks for the summary of a compaction."""
    texts: list[str] = []
    for part in parts:
        texts = [] if part.role == "assistant" else [*texts, part.text]
    return any(marker in text for text in texts for marker in _SUMMARISE)


def is_title_call(parts: Sequence[Part]) -> bool:
    """Return whether a request asks for the title of a session: opencode makes one beside the first call."""
    return any(part.role == "system" and part.text.startswith(_TITLE) for part in parts)


def _runs_of_replies(parts: Iterable[Part]) -> int:
    return sum(1 for of_model, _ in groupby(parts, lambda part: part.role == "assistant") if of_model)
