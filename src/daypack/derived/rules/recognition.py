"""Recognise the standing rules in a message of the user, word for word."""

from typing import NamedTuple

from daypack.derived.rules.english import ASIDE
from daypack.derived.rules.judgement import judge
from daypack.derived.rules.languages import speaks_rule
from daypack.derived.rules.own_words import Passage, own_words
from daypack.text.cues.cues import commands, find_cues, words_of
from daypack.types.history import Message

# Scores of `judge`. Measured on the development transcripts and dialogues: below ALONE one sentence in ten that is a
# rule is missed, and at it one user message in fifty has a sentence that is none.
_ALONE = -0.5
_AMONG_WORK = 0.4  # beside a request, an instruction may be about the work that is requested
_MAX_CHARS = 1200  # a longer sentence is pasted


class Found(NamedTuple):
    """A rule in a message, as it was written."""

    text: str
    start: int  # in the user's own words


def find_rules(message: Message) -> list[str]:
    """Return the rules of a message, word for word, in order."""
    text, passages, blocks = own_words(message)
    found = [Found(text[start:stop].strip(), start) for start, stop in blocks]
    scores = [(passage, _score(passage)) for passage in passages]
    likely = [
        (passage, score)
        for passage, score in scores
        if score >= _ALONE and not passage.listed and len(passage.text) <= _MAX_CHARS
    ]
    if any(score < _AMONG_WORK for _, score in likely) and _asks_for_work(scores):
        likely = [
            (passage, score)
            for passage, score in likely
            if score >= _AMONG_WORK or ASIDE.search(passage.judged.lower())
        ]
    found += [Found(passage.text, passage.start) for passage, _ in likely]
    return [rule.text for rule in sorted(found, key=lambda rule: rule.start)]


def _asks_for_work(scores: list[tuple[Passage, float]]) -> bool:
    return any(score < _AMONG_WORK and commands(passage.judged, find_cues(passage.judged)) for passage, score in scores)


def _score(passage: Passage) -> float:
    foreign = speaks_rule(passage.judged, words_of(passage.judged))
    if foreign is None:
        return judge(passage.judged)
    return 2 * _AMONG_WORK if foreign else 2 * _ALONE
