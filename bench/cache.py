"""Prompt cache: real agent sessions replayed call by call, and the tokens a provider could have reused."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

import orjson

from bench import data
from bench.histories import Histories, append_recorded
from bench.measure import say
from bench.table import Row, Section
from bench.transcripts import CALL_TOKENS, MESSAGE_TOKENS, messages_of, weigh
from daypack import Session
from daypack.importers.formats import find_files, read_transcripts
from daypack.importers.transcript import Transcript
from daypack.text.tokens import count_message, counter_named
from daypack.turn.budget import Limits
from daypack.types.history import Message

TOKENS = 64_000
_LEAST = 0.85
_FORMATS = ("claude-code", "codex", "swe-agent")
_LONG_CALLS = 50
_TITLE = "Prompt cache, share of all input tokens that stood in the call before (shares, not times)"
_NOTES = (
    f"transcripts of {', '.join(_FORMATS)} (MIT, Apache-2.0, MIT; read by path, no part of this project); before every",
    f"message of the assistant a turn under {TOKENS:,} tokens is rendered for OpenAI's chat API, and its messages are",
    "compared with those of the turn before, whole messages only, from the first on until one differs",
    "beside: a window that drops its oldest messages whenever it is full, under the same limit",
)


class _Call(NamedTuple):
    """The input of one call: tokens in all, and those that the call before began with too."""

    tokens: int
    cached: int


@dataclass
class _Run:
    """The result of one transcript."""

    name: str
    messages: int = 0
    calls: list[_Call] = field(default_factory=list[_Call])
    sliding: list[_Call] = field(default_factory=list[_Call])
    expected: int = 0
    broken: int = 0  # turns of an epoch that do not begin with all that the turn before sent
    epochs: Counter[str] = field(default_factory=Counter[str])

    def add(self, other: "_Run") -> None:
        """Take another one in."""
        self.messages += other.messages
        self.calls += other.calls
        self.sliding += other.sliding
        self.expected += other.expected
        self.broken += other.broken
        self.epochs += other.epochs


def measure(histories: Histories) -> Section:
    """Live through every transcript there is."""
    folder = data.find("transcripts")
    if folder is None:
        return Section(_TITLE, (Row("transcripts", ours="skipped"),), (data.ABSENT,))
    runs = [_live(histories, transcript) for transcript in _transcripts(folder)]
    runs = [run for run in runs if run.calls]
    every, short = _Run("all of them"), _Run("")
    for run in runs:
        every.add(run)
        if len(run.calls) < _LONG_CALLS:
            short.add(run)
    short.name = f"{sum(len(run.calls) < _LONG_CALLS for run in runs)} shorter ones"
    shown = [run for run in runs if len(run.calls) >= _LONG_CALLS]
    rows = [_row(run) for run in (*shown, short)]
    met = _share(every.calls) >= _LEAST
    last = _row(every, target=f"≥ {_LEAST}", met=met)
    claim = every.expected / max(1, sum(call.cached for call in every.calls))
    began = ", ".join(f"{count} {reason}" for reason, count in every.epochs.most_common())
    notes = (
        *_NOTES,
        f"epochs began: {began}; inside one, turns that do not begin with all of the turn before: {every.broken}",
        f"expected_cached_tokens: {claim:.3f} of what was found (it counts thinking, which the chat API does not take,",
        "and each message as in the API where it is dearest)",
    )
    return Section(_TITLE, (*rows, last), notes)


def _row(run: _Run, *, target: str = "", met: bool | None = None) -> Row:
    began = f"{sum(run.epochs.values())} epochs"
    name = f"{run.name}, {len(run.calls)} calls, {began}"
    return Row(name, run.messages, f"{_share(run.calls):.3f}", f"{_share(run.sliding):.3f}", target=target, met=met)


def _share(calls: list[_Call]) -> float:
    return sum(call.cached for call in calls) / max(1, sum(call.tokens for call in calls))


def _transcripts(folder: str) -> Iterator[Transcript]:
    for kind in _FORMATS:
        for path in find_files(kind, f"{folder}/{kind}"):
            yield from read_transcripts(kind, path)


def _live(histories: Histories, transcript: Transcript) -> _Run:
    """Append the messages one by one; every one of the assistant is what a call answered."""
    say(f"calls of {transcript.session}")
    run = _Run(f"{transcript.origin.format} {transcript.session[:8]}")
    before: list[bytes] = []
    window = _Window()
    weights: dict[bytes, int] = {}
    with histories.open(f"cache-{transcript.session}"[:120], durability="os", workspace="") as session:
        for draft in messages_of(transcript):
            if draft["role"] == "assistant" and window.asked:
                before = _call(session, run, before, weights)
                run.sliding.append(window.call())
            window.take(append_recorded(session, [draft])[0])
            run.messages += 1
    return run


def _call(session: Session, run: _Run, before: list[bytes], weights: dict[bytes, int]) -> list[bytes]:
    """Prepare a turn and compare what it sends with what the one before sent."""
    turn = session.prepare(budget=TOKENS)
    if turn.new_epoch:
        run.epochs[turn.new_epoch] += 1
    sent: list[bytes] = []
    for message in turn.messages("openai"):
        sent.append(orjson.dumps(message))
        weights.setdefault(sent[-1], weigh(message))
    same = next((at for at, (one, other) in enumerate(zip(sent, before, strict=False)) if one != other), len(before))
    cached = sum(weights[one] for one in sent[: min(same, len(sent))])
    run.calls.append(_Call(sum(weights[one] for one in sent), cached))
    run.expected += turn.expected_cached_tokens
    # All but the last message, which may be of one turn only.
    run.broken += not turn.new_epoch and same < len(before) - 1
    return sent


class _Window:
    """The newest messages under the limit, and the instructions before them."""

    def __init__(self) -> None:
        self.asked = False
        self._counter = counter_named("o200k_base")
        self._costs: list[int] = []
        self._fixed = 0
        self._sent = (0, 0)  # where the window of the call before began and ended

    def take(self, message: Message) -> None:
        """Append a message."""
        cost = count_message(self._counter, message) + MESSAGE_TOKENS + CALL_TOKENS * len(message.tool_calls)
        if message.role == "system" and not self.asked:
            self._fixed += cost
        else:
            self._costs.append(cost)
        self.asked = self.asked or message.role == "user"

    def call(self) -> _Call:
        """Send what fits."""
        room = Limits(TOKENS).room.tokens - self._fixed
        sums = accumulate(reversed(self._costs))
        start = len(self._costs) - sum(1 for total in sums if total <= room)
        same = self._costs[start : self._sent[1]] if start == self._sent[0] else []
        cached = sum(same) + self._fixed if self._sent[1] else 0
        self._sent = (start, len(self._costs))
        return _Call(self._fixed + sum(self._costs[start:]), cached)
