"""Ranks candidates by their texts: how close together the words are, who said it, when.

The weights were chosen on one half of the questions of `python -m bench find` (LoCoMo, BEAM, reworded sentences of
agents, among 300,000 messages) and confirmed on the other half. No result of a tool answers one of these questions, so
they say nothing about how such results should rank; their weight is a guess. A part for the session's other messages
helped LoCoMo a little and harmed reworded sentences; one for a message's own words did not help where it was tried.
"""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from daypack.files import jsonl
from daypack.history.layout import Home
from daypack.history.logs.lines import UNREADABLE, examine
from daypack.history.logs.reader import decoder_of
from daypack.types.history import Message
from daypack.upkeep.find.candidates import Candidate, Candidates
from daypack.upkeep.find.passages import EXAMINED_CHARS, Passage, TermPlaces
from daypack.upkeep.find.readable import readable
from daypack.upkeep.find.relevance import Relevance

CLOSE = 0.35  # weight of the best passage, against 1 for all words of a message and its neighbours
PAIRS = 0.25  # weight of words side by side, in a query of few words: a name, a path, a command
FEW_WORDS = 3  # in a longer question, words side by side made results worse
ROLES: Mapping[str, float] = {"user": 0.12, "assistant": 0.09, "tool": 0.0, "system": -0.15}
RECENT = 0.03  # of a message of today; half of it after a month
_HALF_DAYS, _DAY_SECONDS = 30, 86_400
_LONG_CHARS = 1_500  # of a text where words far apart have nothing to do with each other
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Ranked(NamedTuple):
    """A candidate with its text, its best passage, and its score, which is the sum of the parts."""

    candidate: Candidate
    message: Message
    text: str
    passage: Passage
    score: float
    parts: dict[str, float]
    relevance: Relevance


def rank(home: Home, found: Candidates, roles: Collection[str] | None, now: float) -> list[Ranked]:
    """Return the candidates with a word of the query, best first."""
    if found.judge is None:
        return []
    places = TermPlaces(found.terms, found.worths, found.parts)
    whole = sum(found.worths) or 1.0
    pairs = PAIRS if len(found.terms) <= FEW_WORDS else 0.0
    ranked: list[Ranked] = []
    for candidate, message in _read_messages(home, found.found):
        if roles is not None and message.role not in roles:
            continue
        text = readable(message)
        passage = places.examine(text)
        parts = {
            "words": candidate.total / whole,
            "close": CLOSE * passage.close / whole,
            "pairs": pairs * passage.pairs / whole,
            "role": ROLES[message.role],
            "recent": RECENT * 0.5 ** (max(0, int(now - candidate.stored.moment) // _DAY_SECONDS) / _HALF_DAYS),
        }
        own = candidate.mask | passage.mask
        if not own:
            continue  # what is beside a match is shown with it
        near = candidate.near
        if _LONG_CHARS < len(text) <= EXAMINED_CHARS:
            own, near = passage.near, near | own
        relevance = found.judge.rate(own, near)
        ranked.append(Ranked(candidate, message, text, passage, sum(parts.values()), parts, relevance))
    ranked.sort(key=_order)
    return ranked


def _order(ranked: Ranked) -> tuple[float, int, str, str, int]:
    session = ranked.candidate.session
    return -ranked.score, -ranked.candidate.stored.moment, session.agent, session.name, ranked.candidate.stored.seq


def _read_messages(home: Home, candidates: Sequence[Candidate]) -> Iterable[tuple[Candidate, Message]]:
    """Read the messages of candidates; those that were changed meanwhile are left out."""
    by_session: dict[tuple[str, str], list[Candidate]] = {}
    for candidate in candidates:
        by_session.setdefault(candidate.session.key, []).append(candidate)
    for (agent, name), members in by_session.items():
        try:
            fd = os.open(home.session(agent, name).messages, _OPEN)
        except OSError:
            continue
        try:
            for candidate in members:
                if message := _read(fd, candidate):
                    yield candidate, message
        finally:
            os.close(fd)


def _read(fd: int, candidate: Candidate) -> Message | None:
    stored = candidate.stored
    line = jsonl.read_at(fd, stored.start, stored.length)[:-1]
    record = line if jsonl.check(line) == "sealed" else examine(line).record
    try:
        return decoder_of(Message).decode(record) if record else None
    except UNREADABLE:
        return None
