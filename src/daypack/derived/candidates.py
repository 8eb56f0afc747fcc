"""Candidates: the sentences of a conversation with what speaks for each, and the choice of the best that differ."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from daypack.derived.cues import Cues, find_cues, language_of, words_of
from daypack.derived.utterances import Utterance
from daypack.text.extract import MAX_SENTENCE_CHARS, literal_density, overlap
from daypack.text.literals import literals
from daypack.text.sentences import content_words, sentences
from daypack.text.trim import is_cut_within_a_word, trim

_MARKER_SIGNS = r"(?:[-*+•‣▪·]|\(?\d{1,3}[.)]|[A-Za-z][.)])\s+"
_BOX_SIGNS = r"\[([ xX✓])\]\s+"
_MARKER = re.compile(_MARKER_SIGNS)
_BOX = re.compile(_BOX_SIGNS)
# Words that only say that an answer begins; "no" is not among them.
_BEFORE = re.compile(
    rf"(?:{_MARKER_SIGNS}|{_BOX_SIGNS}|#{{1,6}}\s+|"
    r"(?:good|great|ok|okay|perfect|right|sure|certainly|absolutely|hmm+|well|ah|oh|hey|wow|yeah|yes|nice|awesome|"
    r"excellent|alright|thanks|hi|hello)(?:\s?[,.!:;]+\s+|\s+[–—-]\s+)(?=\S)){1,4}",
    re.IGNORECASE,
)
_POOL = 8  # so many times what is asked for is looked at
_REPEATING = 0.5  # what a sentence loses when all its words were said by a better one
_LEAST_WORDS = 3
_LEAST_LABELLED = 5  # "Depends on: task 1" is a label
_LEAST_CHARS = 12
_LEAST_CHARS_UNSPACED = 6
LANGUAGE_CHARS = 400  # of a message: enough to tell its language by
_LABEL = re.compile(r"\*\*[^*\n]{1,80}\*\*:?|`[^`\n]{1,80}`:?")


class Context(NamedTuple):
    """What the line before a list says about its items."""

    decisions: float = 0.0
    facts: float = 0.0
    pending: float = 0.0
    doubt: float = 0.0


class Spot(NamedTuple):
    """Where a sentence was said: in which utterance, and how near the end, from 0 to 1."""

    said: Utterance
    place: float


class Candidate:
    """One sentence somebody said."""

    def __init__(self, text: str, cues: Cues, spot: Spot, context: Context, box: str) -> None:
        self.text = text
        self.cues = cues
        self.said = spot.said
        self.place = spot.place
        self.context = context
        self.box = box  # of a checkbox: " " open, "x" done, nothing when there is none

    @cached_property
    def density(self) -> float:
        """How much of it is literal."""
        return literal_density(self.text)

    @cached_property
    def words(self) -> frozenset[str]:
        """What it speaks of."""
        return frozenset(content_words(self.text))

    @cached_property
    def literals(self) -> frozenset[str]:
        """What in it must not be mixed up with anything else."""
        return frozenset(one.text for one in literals(self.text))


class Ranked(NamedTuple):
    """A candidate and what it is worth for a section."""

    candidate: Candidate
    value: float


def candidates(utterances: Sequence[Utterance]) -> Iterator[Candidate]:
    """Return the sentences of a conversation that could stand for themselves, oldest first."""
    last = max(1, len(utterances) - 1)
    for at, said in enumerate(utterances):
        yield from _of_one(Spot(said, at / last))


def tidy(text: str) -> str:
    """Return a sentence on one line, without list marker, heading sign and interjection."""
    line = " ".join(text.split())
    if found := _BEFORE.match(line):
        line = line[found.end() :]
    return _without_loose_emphasis(line)


def shorten(text: str, max_chars: int) -> str:
    """Return the first sentence of a line within a number of characters; nothing when only a part of a word fits."""
    found = sentences(text)
    if not found:
        return ""
    line = found[0].text
    kept = trim(line, max_chars)
    return "" if is_cut_within_a_word(kept, line) else _without_loose_emphasis(kept)


def choose(ranked: Iterable[Ranked], count: int) -> list[Ranked]:
    """Return the best, best first; what repeats another gives way, what differs in a literal or a "not" does not."""
    pool = sorted(ranked, key=lambda one: -one.value)[: count * _POOL]
    nearest = [0.0] * len(pool)  # how much of each is in what was chosen
    chosen: list[Ranked] = []
    while pool and len(chosen) < count:
        best = max(range(len(pool)), key=lambda at: (pool[at].value - _REPEATING * max(0.0, nearest[at] - 0.25), -at))
        one = pool.pop(best)
        nearest.pop(best)
        if any(is_same(one.candidate, other.candidate) for other in chosen):
            continue
        chosen.append(one)
        words = one.candidate.words
        nearest = [max(near, overlap(words, other.candidate.words)) for near, other in zip(nearest, pool, strict=True)]
    return sorted(chosen, key=lambda one: -one.value)


def is_same(first: Candidate, second: Candidate) -> bool:
    """Whether two sentences say the same: the same words, and no literal and no "not" that only one has."""
    if first.text.casefold() == second.text.casefold():
        return True
    if bool(first.cues.denied) != bool(second.cues.denied) or first.literals != second.literals:
        return False
    both = len(first.words & second.words)
    return both > 0 and both >= 0.75 * len(first.words | second.words)


def _of_one(spot: Spot) -> Iterator[Candidate]:
    said, context = spot.said, Context()
    language = language_of(words_of(said.text[:LANGUAGE_CHARS]))
    for sentence in sentences(said.text):
        marker, box = _list_marks(said.text, sentence.start)
        text = tidy(sentence.text[: 4 * MAX_SENTENCE_CHARS])
        if marker == "#" or text.rstrip("*_").endswith((":", "：")):
            context = _context(text)
            continue
        if not marker:
            context = Context()
        words = words_of(text)
        if says_something(text, words):
            yield Candidate(text, find_cues(text, language, words), spot, context, box)


def _list_marks(text: str, start: int) -> tuple[str, str]:
    """Return what makes a sentence's line a heading or an item of a list, and the mark in its checkbox."""
    line = text[text.rfind("\n", 0, start) + 1 : start].lstrip()
    found = _MARKER.match(line)
    if not found:
        return line[:1] if line.startswith("#") else "", ""
    box = _BOX.match(line, found.end())
    return found[0], box[1] if box else ""


def _context(text: str) -> Context:
    cues = find_cues(text)
    # "I need to know:" is a request, "next steps:" is not.
    pending = cues.pending >= (0.7 if cues.request < 0.8 else 1.0)
    decided = max(cues.decisions, cues.order) >= 1.0
    return Context(float(decided), float(cues.facts >= 1.0), float(pending), float(cues.doubt >= 1.0))


def says_something(text: str, words: Sequence[str]) -> bool:
    """Whether a text is long enough for a sentence, and more than a label."""
    if text.isascii():
        if len(text) < _LEAST_CHARS or len(words) < _LEAST_WORDS:
            return False
    elif len(text) < _LEAST_CHARS_UNSPACED:
        return False
    # Half of a code span is half of a sentence.
    if text.count("`") % 2 or (":" in text and text.isascii() and len(words) < _LEAST_LABELLED):
        return False
    return len("".join(words)) * 2 > len(text) and _LABEL.fullmatch(text) is None


def _without_loose_emphasis(line: str) -> str:
    """Take off emphasis marks and quotation marks at an end whose partners are not there."""
    for mark in ("**", "__", "`", "*", '"'):
        if mark in line and line.count(mark) % 2:
            if line.startswith(mark):
                line = line[len(mark) :].lstrip()
            elif line.endswith(mark):
                line = line[: -len(mark)].rstrip()
    return line
