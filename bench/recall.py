"""Recall: the share of a question's evidence that its pack contains, on conversations of several months."""

import shutil
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from statistics import mean
from typing import Any, NamedTuple

import orjson

from bench import data
from bench.histories import Histories
from bench.measure import say
from bench.table import Row, Section, duration
from daypack import Session
from daypack.text.tokens import count_message, counter_named
from daypack.turn.turn import Turn
from daypack.types.history import Message

TARGETS = {2_000: 0.75, 4_000: 0.82}
_FILE = ("locomo", "locomo_dev5.json")
_MESSAGE_TOKENS = 4
_TITLE = "Recall in small packs, mean share of the turns a question needs (shares, not times)"
_NOTES = (
    "five dialogues of LoCoMo (snap-research/LoCoMo, CC BY-NC 4.0, read by path, no part of this project), each one",
    "history; every question is asked at its end, as if it were the only one; the pack is a dry run, and a turn counts",
    "when its words stand in what would be sent to OpenAI's chat API",
    "beside: the newest messages alone, in as many tokens as our pack took",
)


class _Told(NamedTuple):
    """One dialogue: its messages, and by the name of each turn what it says."""

    messages: list[dict[str, Any]]
    turns: dict[str, str]
    questions: list[dict[str, Any]]


class _Asked(NamedTuple):
    """What came of one question."""

    ours: float
    newest: float
    tokens: int
    spent: int


def measure(histories: Histories) -> Section:
    """Ask every question under every budget."""
    path = data.find(*_FILE)
    if path is None:
        return Section(_TITLE, (Row("LoCoMo", ours="skipped"),), (data.ABSENT,))
    with open(path, "rb") as file:
        dialogues = [_read(one) for one in orjson.loads(file.read())]
    answers: dict[int, list[_Asked]] = {budget: [] for budget in TARGETS}
    for number, told in enumerate(dialogues, 1):
        say(f"recall: dialogue {number} of {len(dialogues)}, {len(told.questions)} questions")
        with histories.open(f"recall-{number}", durability="os", workspace="") as session:
            session.append_many(told.messages)
            session.prepare(budget=max(TARGETS), dry_run=True)  # builds the search index
        for question in told.questions:
            with _copy(histories, session) as asked:
                for budget, answer in _ask(asked, told, question):
                    answers[budget].append(answer)
    rows = [row for budget, least in TARGETS.items() for row in _rows(budget, least, answers[budget])]
    return Section(_TITLE, tuple(rows), _NOTES)


def _rows(budget: int, least: float, asked: list[_Asked]) -> Iterator[Row]:
    ours, newest = mean(one.ours for one in asked), mean(one.newest for one in asked)
    name = f"{len(asked):,} questions, packs of {budget:,} tokens"
    yield Row(name, None, f"{ours:.3f}", f"{newest:.3f}", target=f"≥ {least}", met=ours >= least)
    yield Row("  tokens in the pack, mean", ours=f"{mean(one.tokens for one in asked):,.0f}")
    yield Row("  time of a prepare, mean", ours=duration(mean(one.spent for one in asked)))


def _read(dialogue: dict[str, Any]) -> _Told:
    talk = dialogue["conversation"]
    messages: list[dict[str, Any]] = []
    turns: dict[str, str] = {}
    number = 1
    while f"session_{number}_date_time" in talk:
        when = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for turn in talk.get(f"session_{number}", ()):
            caption = turn.get("blip_caption")
            turns[turn["dia_id"]] = turn["text"] + (f" [photo: {caption}]" if caption else "")
            messages.append(
                {
                    "role": "user" if turn["speaker"] == talk["speaker_a"] else "assistant",
                    "content": turns[turn["dia_id"]],
                    "name": turn["speaker"].replace(" ", "_"),
                    "ts": when.isoformat(),
                }
            )
        number += 1
    questions = [one for one in dialogue["qa"] if any(name in turns for name in one.get("evidence", ()))]
    return _Told(messages, turns, questions)


@contextmanager
def _copy(histories: Histories, session: Session) -> Generator[Session]:
    """Give a session of its own to a question: the ones asked before are not part of the dialogue."""
    folder = session.path.with_name("recall")
    shutil.copytree(session.path, folder)
    try:
        with histories.open(folder.name, durability="os", workspace="") as copy:
            yield copy
    finally:
        shutil.rmtree(folder)


def _ask(session: Session, told: _Told, question: dict[str, Any]) -> Iterator[tuple[int, _Asked]]:
    gold = {told.turns[name] for name in question["evidence"] if name in told.turns}
    session.append("user", question["question"])
    for budget in TARGETS:
        start = time.perf_counter_ns()
        turn = session.prepare(budget=budget, dry_run=True)
        spent = time.perf_counter_ns() - start
        sent = _sent(turn)
        found = sum(words in sent for words in gold) / len(gold)
        newest = {message.text for message in _newest(session, turn.tokens)}
        yield budget, _Asked(found, len(gold & newest) / len(gold), turn.tokens, spent)


def _sent(turn: Turn) -> str:
    return "\n".join(str(message["content"]) for message in turn.messages("openai"))


def _newest(session: Session, tokens: int) -> Iterator[Message]:
    """Yield the newest messages, as many as fit."""
    counter = counter_named("o200k_base")
    for message in reversed(session.tail(session.newest_within(tokens))):
        tokens -= count_message(counter, message) + _MESSAGE_TOKENS
        if tokens >= 0:
            yield message
