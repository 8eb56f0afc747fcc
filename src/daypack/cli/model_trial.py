"""A trial of a model: it compacts one small conversation, and what it made of it is judged as in earnest."""

import time

from msgspec import Struct

from daypack.derived.compaction.with_model import fill
from daypack.derived.raw_history import Raw
from daypack.derived.template import problems
from daypack.llm.completion.port import Completer, Completion, Prompt
from daypack.text.clean import clean
from daypack.types.history import Message

MESSAGES = (
    Message(seq=1, role="user", content="The nightly export fails since yesterday. Can you look at jobs/export.py?"),
    Message(
        seq=2, role="assistant", content="The client is made at import time: its credentials expire after 12 hours."
    ),
    Message(seq=3, role="user", content="Then make it inside run_export(). We keep boto3."),
    Message(seq=4, role="assistant", content="TimeoutError in test_large_upload after 30 seconds; I raised it to 120."),
    Message(seq=5, role="user", content="Good. An alert for late exports is still missing, do that next."),
)
_READER_TOKENS = 32_000


class Trial(Struct, frozen=True, kw_only=True):
    """What a model made of the conversation."""

    model: str
    window_tokens: int
    load_seconds: float
    seconds: float
    prompt_tokens: int
    completion_tokens: int
    tokens_per_second: float
    constraint: str
    valid: bool
    problems: list[str]
    kept: int
    lost: int
    output: str


def try_model(completer: Completer) -> Trial:
    """Let a model compact the conversation; ModelFailed when it does not answer."""
    begin = time.monotonic()
    window = completer.window_tokens  # loads it, or finds out what answers
    loaded = time.monotonic()
    watched = _Watched(completer)
    filled = fill(Raw(MESSAGES, 1, len(MESSAGES)), watched, _READER_TOKENS)
    seconds = time.monotonic() - loaded
    (answer,) = watched.answers  # so small a conversation is one question
    found = problems(f"{clean(answer.text)[0].strip()}\n")
    if answer.finish != "stop":
        found.insert(0, f"it stopped for {answer.finish}")
    return Trial(
        model=answer.model,
        window_tokens=window,
        load_seconds=loaded - begin,
        seconds=seconds,
        prompt_tokens=answer.prompt_tokens,
        completion_tokens=answer.completion_tokens,
        tokens_per_second=answer.completion_tokens / seconds if seconds else 0.0,
        constraint=answer.constraint,
        valid=not found,
        problems=found,
        kept=len(filled.bullets),
        lost=len(filled.losses),
        output=answer.text,
    )


class _Watched:
    """A model whose answers are kept."""

    def __init__(self, completer: Completer) -> None:
        self._completer = completer
        self.answers: list[Completion] = []

    @property
    def name(self) -> str:
        """As the model's."""
        return self._completer.name

    @property
    def window_tokens(self) -> int:
        """As the model's."""
        return self._completer.window_tokens

    def complete(self, prompt: Prompt) -> Completion:
        """Ask the model and keep its answer."""
        answer = self._completer.complete(prompt)
        self.answers.append(answer)
        return answer

    def close(self) -> None:
        """Close the model."""
        self._completer.close()
