"""Extraction: which sentences of a text are worth keeping, from the text alone.

A sentence scores for its literals, its position, and how many of the frequent words of the text it has.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from daypack.text.literals import literals
from daypack.text.sentences import sentences
from daypack.text.trim import trim
from daypack.text.words import content_words

MAX_SENTENCE_CHARS = 600  # beyond it is a list, a log or a paragraph without full stops
_FENCE = re.compile(r"\s{0,12}(?:```|~~~)")
_QUOTE = re.compile(r"\s{0,3}(?:> ?)+")
# Lines that are data: tables, diffs, tags, JSON, numbered listings, log lines, tracebacks.
_DATA_LINE = re.compile(
    r"\s*(?:\||\+\+\+ |--- |@@ |diff --git |index [0-9a-f]{7}|<[/!?a-zA-Z]|[{}\[\]]+\s*,?\s*$|[{\[][\"'{\[\s]"
    r"|\"[^\"\n]{1,60}\"\s*:"
    r"|\d{1,6}[:→|\t]|\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[\d\d:|\[?(?:INFO|DEBUG|WARN|WARNING|ERROR|TRACE)\]?[:\s]"
    r"|File \"[^\"\n]{1,200}\", line \d|at [\w.$<>]{1,120} ?\(|\$ |>>> |#!|//|/\*|\*/|[-=*_#]{3,}\s*$|!\[)"
)
_CODE_LINE = re.compile(
    r"\s*(?:def|class|import|from|return|const|let|var|function|async|await|public|private|static|export|package|use|"
    r"fn|func|struct|type|if|for|while|else|elif|try|except|end|do|select|insert|create)\b[^.!?]{0,200}[({:;=\[]\s*$"
)
_CODE_END = re.compile(r"(?:[;{}]|=>|->|\\|[(\[],?)\s*$")
_SIGNS = re.compile(r"[{}()\[\];=<>|\\$&^%~+]")
_DATA_WORD = re.compile(r"[A-Za-z0-9+/=_\-]{90,}")
_BULLET = re.compile(r"\s*(?:[-*+•‣▪·]|\d{1,3}[.)]|[a-z][.)])\s")
_MAYBE_LITERAL = re.compile(r"[0-9/_`\"“#@$€£]|[a-z][A-Z]|[A-Z]{2}|\w\.\w")
_NAME = re.compile(r"(?<=[a-z,;:] )[A-Z][a-zà-ÿ]+")
_MAX_SIGN_SHARE = 0.12


class Scored(NamedTuple):
    """A sentence, its position in the prose of its text, and its score, from 0 to 1."""

    text: str
    start: int
    stop: int
    score: float


def prose(text: str) -> str:
    """Return a text without what is not prose: code, diffs, tables, logs, JSON, encoded data.

    The rest is unchanged; a removed part ends a sentence.
    """
    kept: list[str] = []
    fenced = indented = False
    before = ""
    for line in text.splitlines():
        if _FENCE.match(line):
            # A fence that opens and closes on one line fences nothing below it.
            fenced = not fenced and line.count("```") < 2
            kept.append("")
            continue
        if fenced:
            continue
        indented = _is_indented(line, before) or (indented and line.startswith(("    ", "\t")))
        if indented or not line.strip() or is_data(line):
            kept.append("")
        elif line.lstrip().startswith(">"):
            kept += ["", _QUOTE.sub("", line, count=1), ""]
        else:
            kept.append(line)
        before = line
    return "\n".join(kept)


def is_data(line: str) -> bool:
    """Return True if a line is code, a log, a table or the like rather than words."""
    if _DATA_LINE.match(line) or _CODE_END.search(line) or _CODE_LINE.match(line):
        return not _BULLET.match(line) or _CODE_END.search(line) is not None
    return (len(line) > 90 and _DATA_WORD.search(line) is not None) or (
        len(line) > 20 and len(_SIGNS.findall(line)) > len(line) * _MAX_SIGN_SHARE
    )


def literal_density(text: str) -> float:
    """Return how much of a sentence has to be copied letter by letter, from 0 to 1."""
    found = 0.0
    if _MAYBE_LITERAL.search(text):
        found = float(len({literal.text for literal in literals(text)}))
    # Names of people and places count half: most capital letters inside a sentence are theirs.
    found += 0.5 * len(set(_NAME.findall(text)))
    return found / (found + 1.5 + len(text) / 250)


def score(text: str) -> list[Scored]:
    """Return the sentences of a text's prose in their order, each with its score."""
    body = prose(text)
    found = [sentence for sentence in sentences(body) if sentence.text.strip()]
    words = [content_words(sentence.text[:MAX_SENTENCE_CHARS]) for sentence in found]
    counts = Counter(word for each in words for word in set(each))
    last = len(found) - 1
    scored: list[Scored] = []
    for at, (sentence, own) in enumerate(zip(found, words, strict=True)):
        place = 1.0 if at == 0 else 0.6 if at == last else 1.0 / (1.0 + at / 4)
        value = (
            0.4 * centrality(own, counts) + 0.35 * literal_density(sentence.text[:MAX_SENTENCE_CHARS]) + 0.25 * place
        )
        scored.append(Scored(sentence.text, sentence.start, sentence.stop, round(value * _shape(sentence.text), 6)))
    return scored


def centrality(words: Sequence[str], counts: Counter[str]) -> float:
    """Return how much of what a text speaks of again and again is named by these words, from 0 to 1."""
    if not words:
        return 0.0
    shared = [counts[word] - 1 for word in dict.fromkeys(words)]
    return sum(count / (count + 2) for count in shared) / len(shared)


def overlap(first: frozenset[str], second: frozenset[str]) -> float:
    """Return how many of the words of two sentences are in both, as a share of the shorter one's."""
    if not first or not second:
        return 0.0
    return len(first & second) / min(len(first), len(second))


def summarise(text: str, max_chars: int) -> str:
    """Return the sentences of a text that say most, in their order, within `max_chars` characters."""
    scored = score(text)
    if not scored:
        return trim(" ".join(text.split()), max_chars)
    room = max_chars
    taken: list[tuple[int, str]] = []
    seen: list[frozenset[str]] = []
    for at in sorted(range(len(scored)), key=lambda number: (-scored[number].score, number)):
        line = " ".join(scored[at].text.split())
        words = frozenset(content_words(line))
        if len(line) > room or any(overlap(words, other) > 0.8 for other in seen):
            continue
        taken.append((at, line))
        seen.append(words)
        room -= len(line) + 1
    if not taken:
        best = max(scored, key=lambda sentence: sentence.score)
        return trim(" ".join(best.text.split()), max_chars)
    return " ".join(line for _, line in sorted(taken))


def _shape(text: str) -> float:
    """Return how much a sentence loses by being no sentence: a scrap, a lead-in, a question, a paragraph."""
    length = len(text)
    value = 1.0 if 30 <= length <= 300 else 0.7 if 12 <= length <= MAX_SENTENCE_CHARS else 0.4
    if text.rstrip().endswith((":", "：")):
        value *= 0.4
    elif text.rstrip().endswith(("?", "？")):
        value *= 0.8
    return value


def _is_indented(line: str, before: str) -> bool:
    """Return True if a line begins an indented code block; list items are indented too, and are none."""
    return line.startswith(("    ", "\t")) and not before.strip() and _BULLET.match(line) is None
