"""The relevance floor: what it costs the questions of a conversation, and what it spares those of another."""

import os
from collections.abc import Callable, Iterator, Sequence
from statistics import mean
from typing import Any, NamedTuple
from unittest.mock import patch

from bench import data
from bench.corpora import Talk, foreign_questions, read_corpora
from bench.histories import Histories
from bench.measure import say
from bench.retrieval import ThroughPython, home_with
from bench.table import Row, Section
from daypack.errors import DaypackError
from daypack.llm.embedders import open_embedder

VECTORS = ("none", "static")  # MiniLM takes ten minutes to embed the corpora: `make eval` measures it
MODELS = os.path.join(".venv", "models")
LOST, SPARED = 0.01, 0.5
_DEPTH = 10
_FLOOR = "daypack.memory.search.index.relevant"
_TITLE = "Relevance floor, recall@10 with it and without it (shares, not times)"
_NOTES = (
    "the dialogues of LoCoMo and the chats of BEAM in the data folder, each in a memory of its own; it is also asked",
    "questions of the other conversations of its corpus. beside: the same search without the floor",
)


class _Asked(NamedTuple):
    """The recall of a question with and without the floor, and whether the answer was nothing."""

    recall: float
    before: float
    empty: bool


def measure(_: Histories) -> Section:
    """Ask every question in its own memory, and some in those of other conversations."""
    folder = data.find()
    talks = list(read_corpora(folder)) if folder else []
    if not talks:
        return Section(_TITLE, (Row("LoCoMo, BEAM", ours="skipped"),), (data.ABSENT,))
    rows: list[Row] = []
    for vectors in VECTORS:
        try:
            open_embedder(vectors, models=MODELS)
        except DaypackError as error:
            rows.append(Row(vectors, ours=f"skipped: {error.problem}"))
            continue
        for corpus in dict.fromkeys(talk.corpus for talk in talks):
            rows += _rows(f"{corpus}, {vectors}", *_ask([talk for talk in talks if talk.corpus == corpus], vectors))
    return Section(_TITLE, tuple(rows), _NOTES)


def _rows(name: str, own: Sequence[_Asked], foreign: Sequence[_Asked]) -> Iterator[Row]:
    recall, before = mean(one.recall for one in own), mean(one.before for one in own)
    least = before - LOST
    yield Row(
        f"{name}: recall@10, {len(own):,} questions",
        ours=f"{recall:.3f}",
        beside=f"{before:.3f}",
        target=f"≥ {least:.3f}",
        met=recall >= least,
    )
    yield Row("  answered with nothing", ours=f"{mean(one.empty for one in own):.3f}")
    spared = mean(one.empty for one in foreign)
    yield Row(
        f"  of another conversation ({len(foreign):,}), answered with nothing",
        ours=f"{spared:.3f}",
        beside="0",
        target=f"≥ {SPARED}",
        met=spared >= SPARED,
    )


def _ask(talks: Sequence[Talk], vectors: str) -> tuple[list[_Asked], list[_Asked]]:
    own: list[_Asked] = []
    foreign: list[_Asked] = []
    with home_with(vectors, MODELS) as home:
        door = ThroughPython(home)
        for talk in talks:
            say(f"floor: {talk.corpus} {talk.name}, {vectors}")
            door.fill(talk)
            for question in talk.questions:
                found = door.ask(question.text)[:_DEPTH]
                with patch(_FLOOR, _keep_all):
                    before = door.ask(question.text)[:_DEPTH]
                gold = set(question.gold)
                recalls = [len(gold.intersection(names)) / len(gold) for names in (found, before)]
                own.append(_Asked(recalls[0], recalls[1], not found))
            foreign += [_Asked(0.0, 0.0, not door.ask(one.text)) for one in foreign_questions(talk, talks)]
    return own, foreign


_keep_all: Callable[[Sequence[Any]], list[Any]] = list
