"""A trial of a compaction model: it compacts a small conversation, and the output is checked as in production."""

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
    """The output of the model, with times and checks."""

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
    """Compact the sample conversation with a model; raise ModelFailed if it does not answer."""
    started = time.monotonic()
    window = completer.window_tokens  # loads the model, or asks the endpoint
    loaded = time.monotonic()
    recorder = _RecordingCompleter(completer)
    compacted = fill(Raw(MESSAGES, 1, len(MESSAGES)), recorder, _READER_TOKENS)
    seconds = time.monotonic() - loaded
    (answer,) = recorder.answers  # the conversation fits into one prompt
    faults = problems(f"{clean(answer.text)[0].strip()}\n")
    if answer.finish != "stop":
        faults.insert(0, f"stopped early: {answer.finish}")
    return Trial(
        model=answer.model,
        window_tokens=window,
        load_seconds=loaded - started,
        seconds=seconds,
        prompt_tokens=answer.prompt_tokens,
        completion_tokens=answer.completion_tokens,
        tokens_per_second=answer.completion_tokens / seconds if seconds else 0.0,
        constraint=answer.constraint,
        valid=not faults,
        problems=faults,
        kept=len(compacted.bullets),
        lost=len(compacted.losses),
        output=answer.text,
    )


class _RecordingCompleter:
    """Passes prompts on to a model and records its answers."""

    def __init__(self, completer: Completer) -> None:
        self._completer = completer
        self.answers: list[Completion] = []

    @property
    def name(self) -> str:
        """The same as of the model."""
        return self._completer.name

    @property
    def window_tokens(self) -> int:
        """The same as of the model."""
        return self._completer.window_tokens

    def complete(self, prompt: Prompt) -> Completion:
        """Ask the model and record its answer."""
        answer = self._completer.complete(prompt)
        self.answers.append(answer)
        return answer

    def close(self) -> None:
        """Close the model."""
        self._completer.close()
