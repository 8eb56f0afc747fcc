"""The window: how much of what an agent used next was in its request, for daypack and three simpler windows.

A call is a message of the assistant. It needed the literals of its text and arguments that were said before it: paths,
names, ids, numbers, quotations. They are found by rules of the benchmark, not by daypack's.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from statistics import mean
from typing import Any, NamedTuple, Protocol, cast

import orjson

from bench import data
from bench.histories import Histories, append_recorded
from bench.measure import say
from bench.table import Row, Section
from bench.transcripts import messages_of, weigh
from daypack.history.draft import draft_from
from daypack.importers.formats import FORMATS, find_files, is_of_format, read_transcripts
from daypack.importers.transcript import Transcript
from daypack.turn.budget import Limits

AHEAD = {16_000: 0.03, 32_000: 0.01, 64_000: 0.01, 128_000: 0.0}  # budget -> coverage above the best of the others
CACHE_BEHIND = 0.01  # of the window in blocks
QUICK_BUDGETS, QUICK_CALLS = (16_000, 32_000), 60
_FRESH_RESULTS = 3  # never cleared
_CLEAR_ABOVE = 0.75  # of the room
_CLEARED = "[cleared]"
_WORD = re.compile(r"[\w.@~+:/-]{3,200}")
_STRUCTURE = re.compile(r"\w[/_]\w|[A-Za-z]\.[A-Za-z]|^\d{3,}|[a-z][A-Z]|[A-Za-z].*\d|\d.*[A-Za-z]")
_QUOTED = re.compile(r"(?<!\w)(\"|'|`)([^\"'`\n]{4,80})\1(?!\w)")
_TITLE = "The window, literals that the next call of an agent needed (shares, not times)"
_NOTES = (
    "calls whose history exceeds the window; coverage: mean share of the literals a call needed that its request has;",
    "cacheable: share of the input tokens that the call before began with, whole messages; input: tokens of a call",
    "sliding: the newest messages that fit, and the newest of the user; blocks: the same, cut to half when it is full;",
    f"clearing: sliding, with all tool results but the newest {_FRESH_RESULTS} cleared above {_CLEAR_ABOVE:.0%} of it",
)


class _Said(NamedTuple):
    """A message as it is sent: its role, tokens and words."""

    role: str
    tokens: int
    words: str


class _Sent(NamedTuple):
    """One message of a request: what tells it from others, its tokens and words."""

    identity: bytes
    tokens: int
    words: str


@dataclass(frozen=True)
class _Lived:
    """A recorded session: its messages, and what each call needed."""

    name: str
    drafts: list[dict[str, Any]]
    said: list[_Said]
    needs: dict[int, list[str]]  # position of a message of the assistant -> literals

    def before(self, at: int) -> int:
        """Return the tokens of all messages before one."""
        return sum(message.tokens for message in self.said[:at])


class _Score:
    """The calls of one window under one budget."""

    def __init__(self) -> None:
        self.calls = self.tokens = self.cached = 0
        self._covered: list[float] = []

    def add(self, needed: Sequence[str], before: Sequence[_Sent], sent: Sequence[_Sent]) -> None:
        """Count a call."""
        pairs = zip(before, sent, strict=False)
        self.calls += 1
        self.tokens += sum(message.tokens for message in sent)
        self.cached += sum(new.tokens for _, new in takewhile(lambda pair: pair[0].identity == pair[1].identity, pairs))
        if needed:
            words = "\n".join(message.words for message in sent)
            self._covered.append(mean(word in words for word in needed))

    @property
    def coverage(self) -> float:
        """Mean share of what a call needed."""
        return mean(self._covered or [0.0])

    @property
    def cache(self) -> float:
        """Share of the tokens that a prompt cache could have read."""
        return self.cached / max(1, self.tokens)

    @property
    def input(self) -> float:
        """Tokens of a call."""
        return self.tokens / max(1, self.calls)

    def __str__(self) -> str:
        return f"{self.coverage:.3f} / {self.cache:.3f} / {self.input:,.0f}"


def measure(histories: Histories) -> Section:
    """Replay every transcript under every budget."""
    folder = data.find_transcripts()
    if folder is None:
        return Section(_TITLE, (Row("transcripts", ours="skipped"),), (data.NO_TRANSCRIPTS,))
    most_calls = QUICK_CALLS if histories.quick else None
    lives = [_read(transcript, most_calls) for transcript in _transcripts(folder)]
    rows: list[Row] = []
    for budget in QUICK_BUDGETS if histories.quick else AHEAD:
        long = [lived for lived in lives if lived.before(len(lived.said)) > budget]
        say(f"window: {len(long)} transcripts under {budget:,} tokens")
        scores = {name: _Score() for name in ("daypack", *_SIMPLER)}
        for number, lived in enumerate(long):
            _replay(histories, f"window-{budget}-{number}", lived, budget, scores)
        rows += _rows(budget, scores)
    return Section(_TITLE, tuple(rows), _NOTES)


def _rows(budget: int, scores: dict[str, _Score]) -> Iterator[Row]:
    ours, name = scores["daypack"], f"{budget // 1000}k"
    others = {other: scores[other] for other in _SIMPLER}
    if not ours.calls:
        yield Row(f"{name}: no transcript is longer", ours="skipped")
        return
    best = max(others, key=lambda other: others[other].coverage)
    least, behind = others[best].coverage + AHEAD[budget], others["blocks"].cache - CACHE_BEHIND
    yield Row(
        f"{name}, {ours.calls:,} calls: coverage, beside {best}",
        ours=f"{ours.coverage:.3f}",
        beside=f"{others[best].coverage:.3f}",
        target=f"≥ {least:.3f}",
        met=ours.coverage >= least,
    )
    yield Row(
        "  cacheable, beside blocks",
        ours=f"{ours.cache:.3f}",
        beside=f"{others['blocks'].cache:.3f}",
        target=f"≥ {behind:.3f}",
        met=ours.cache >= behind,
    )
    sliding = others["sliding"].input
    yield Row(
        "  input, beside sliding",
        ours=f"{ours.input:,.0f}",
        beside=f"{sliding:,.0f}",
        target=f"≤ {sliding:,.0f}",
        met=ours.input <= sliding,
    )
    for other, score in others.items():
        yield Row(f"  {other}: coverage / cacheable / input", beside=str(score))


# Recorded sessions


def _transcripts(folder: str) -> Iterator[Transcript]:
    """Yield the transcripts of all formats, without those of child agents in files of their own."""
    for kind in FORMATS:
        for path in find_files(kind, folder):
            if is_of_format(kind, path):
                found = read_transcripts(kind, path)
                yield from (one for one in found if one.origin.path.startswith(path))


def _read(transcript: Transcript, most_calls: int | None) -> _Lived:
    drafts: list[dict[str, Any]] = []
    said: list[_Said] = []
    needs: dict[int, list[str]] = {}
    words, asked = "", False
    for draft in messages_of(transcript):
        meta: dict[str, Any] = draft.get("meta") or {}
        if meta.get("foreign_summary"):
            continue  # another agent's summary names what it needs
        message = _said(draft)
        if message.role == "assistant" and asked:
            if most_calls is not None and len(needs) == most_calls:
                break
            needs[len(said)] = [literal for literal in literals(message.words) if literal in words]
        asked = asked or message.role == "user"
        drafts.append(draft)
        said.append(message)
        words += message.words + "\n"
    return _Lived(transcript.session, drafts, said, needs)


def _said(draft: dict[str, Any]) -> _Said:
    message = draft_from(draft)
    calls = [{"function": {"name": call.name, "arguments": call.arguments}} for call in message.tool_calls]
    shown = {"content": message.text, "tool_calls": calls}
    return _Said(message.role, weigh(shown), _words(shown))


def _words(message: dict[str, Any]) -> str:
    """Return what a message says: its text, and the values in its arguments, without the escapes of JSON."""
    calls = [call.get("function") or call.get("custom") for call in message.get("tool_calls", ())]
    called = [value for call in calls for value in call.values()]
    return "\n".join(_strings([message.get("content") or "", *map(_decoded, called)]))


def _decoded(arguments: str) -> object:
    try:
        return orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return arguments


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, dict | list):
        inner = cast(dict[str, object], value).values() if isinstance(value, dict) else cast(list[object], value)
        for part in inner:
            yield from _strings(part)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def literals(text: str) -> dict[str, None]:
    """Return the names in a text, by rules of the benchmark: paths, identifiers, numbers, quotations."""
    words = (word.strip(".:-+@") for word in _WORD.findall(text))
    found = dict.fromkeys(word for word in words if len(word) > 2 and _STRUCTURE.search(word))
    return found | dict.fromkeys(match[2].strip() for match in _QUOTED.finditer(text) if len(match[2].strip()) > 3)


# Windows


class _Window(Protocol):
    """Chooses what is sent for the call that wrote a message."""

    def send(self, at: int) -> list[_Sent]: ...


class _Sliding:
    """The newest messages that fit, calls with their results; the instructions and the newest user message always."""

    def __init__(self, said: list[_Said], room: int) -> None:
        self.said, self.room = said, room
        self.first = next((at for at, message in enumerate(said) if message.role == "user"), 0)

    def send(self, at: int) -> list[_Sent]:
        """Return the newest messages before one."""
        return self.sent(at, self.cut(at, self.room))

    def sent(self, at: int, start: int) -> list[_Sent]:
        """Return the messages from `start` on, behind the instructions and the user message they belong to."""
        user = self.user(at)
        chosen = [*range(self.first), *([user] if user < start else []), *range(start, at)]
        return [_Sent(b"%d %d" % (number, self.tokens(number, at)), *self.shown(number, at)) for number in chosen]

    def cut(self, at: int, room: int) -> int:
        """Return the first message of the tail: the earliest that is no result and still fits, or the newest step."""
        user = self.user(at)
        fixed = sum(self.tokens(number, at) for number in {*range(self.first), user})
        costs = (self.tokens(number, at) * (number != user) for number in reversed(range(self.first, at)))
        fitting = sum(1 for total in accumulate(costs) if fixed + total <= room)
        steps = [number for number in range(self.first, at) if self.said[number].role != "tool"]
        return next((number for number in steps if number >= at - fitting), steps[-1])

    def user(self, at: int) -> int:
        """Return the newest user message."""
        return max(number for number in range(at) if self.said[number].role == "user")

    def tokens(self, number: int, at: int) -> int:
        """Return what a message takes in the request for a call."""
        return self.shown(number, at)[0]

    def shown(self, number: int, at: int) -> tuple[int, str]:  # noqa: ARG002 — other windows ask for it
        """Return the tokens and words of a message in the request for a call."""
        return self.said[number].tokens, self.said[number].words


class _Blocks(_Sliding):
    """Messages are appended until the room is full; then the older ones leave until it is half full."""

    _start = 0

    def send(self, at: int) -> list[_Sent]:
        """Return the messages since the last cut."""
        sent = self.sent(at, max(self._start, self.first))
        if sum(message.tokens for message in sent) > self.room:
            self._start = self.cut(at, self.room // 2)
            sent = self.sent(at, self._start)
        return sent


class _Clearing(_Sliding):
    """Old results are replaced by a line as soon as the room fills; then the oldest messages leave."""

    _cleared = frozenset[int]()

    def send(self, at: int) -> list[_Sent]:
        """Return the newest messages, old results cleared."""
        full = sum(message.tokens for message in self.said[:at]) > _CLEAR_ABOVE * self.room
        results = [number for number in range(at) if self.said[number].role == "tool"]
        self._cleared = frozenset(results[:-_FRESH_RESULTS] if full else ())
        return super().send(at)

    def shown(self, number: int, at: int) -> tuple[int, str]:
        """Return the tokens and words of a message, or of the line in its place."""
        if number in self._cleared:
            return weigh({"content": _CLEARED}), _CLEARED
        return super().shown(number, at)


_SIMPLER = {"sliding": _Sliding, "blocks": _Blocks, "clearing": _Clearing}


def _replay(histories: Histories, name: str, lived: _Lived, budget: int, scores: dict[str, _Score]) -> None:
    """Send every call of a session through every window."""
    room = Limits(budget).room.tokens
    windows: dict[str, _Window] = {other: made(lived.said, room) for other, made in _SIMPLER.items()}
    before: dict[str, list[_Sent]] = {window: [] for window in scores}
    tokens = 0
    with histories.open(name, durability="os", workspace="") as session:
        for at, draft in enumerate(lived.drafts):
            if at in lived.needs:
                request = [_sent(message) for message in session.prepare(budget=budget).messages("openai")]
                sent = {"daypack": request} | {other: window.send(at) for other, window in windows.items()}
                if tokens > room:
                    for window, score in scores.items():
                        score.add(lived.needs[at], before[window], sent[window])
                before = sent
            append_recorded(session, [draft])
            tokens += lived.said[at].tokens


def _sent(message: dict[str, Any]) -> _Sent:
    return _Sent(orjson.dumps(message), weigh(message), _words(message))
