"""Words of a text by which two texts are compared: content words, stems and negations."""

import re
from functools import lru_cache

from daypack.text.english import STOP_WORDS, stem

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+|_[^\W_]+)*+")
_WIDE = re.compile(r"[\u2e80-\u2fdf\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_WIDE_RUNS = re.compile(rf"{_WIDE.pattern[:-1]}]+|[^{_WIDE.pattern[1:]}+")
_NEGATION = re.compile(
    r"\b(?:not|never|no|none|nothing|without|cannot|nor|neither|nicht|kein\w*|nie|ohne)\b|n['’]t\b|[不没別别勿无無]",
    re.IGNORECASE,
)
# Phrases with a negation in them that deny nothing.
NO_NEGATION = re.compile(
    r"(?:don['’]t|do not|never) forget|not only|why (?:not|don['’]t)|no (?:problem|worries|doubt)|^\W*no[,.!]|别忘",
    re.IGNORECASE,
)


def content_words(text: str) -> list[str]:
    """Return the words that carry meaning, folded to one case; Chinese, Japanese and Korean as pairs of characters."""
    if text.isascii():
        return [word for word in _WORD.findall(text.lower()) if word not in STOP_WORDS]
    words: list[str] = []
    for word in _WORD.findall(text.casefold()):
        if _WIDE.search(word):
            words += _pairs(word)
        elif word not in STOP_WORDS:
            words.append(word)
    return words


def stems_of(text: str) -> set[str]:
    """Return the stems of a text's content words, without negations: `count_negations` compares those."""
    return {stem(word) for word in content_words(text) if not is_negation(word)}


@lru_cache(maxsize=1 << 15)
def is_negation(word: str) -> bool:
    """Return True for "not", "don't" and the like."""
    return word.endswith(("n't", "n’t")) or _NEGATION.fullmatch(word) is not None


def count_negations(text: str) -> int:
    """Return how many negations a text contains; "don't forget" is none."""
    return len(_NEGATION.findall(NO_NEGATION.sub("", text)))


@lru_cache(maxsize=1 << 12)
def _pairs(word: str) -> tuple[str, ...]:
    """Return a word of a script without spaces as pairs of characters; other letters in it as words."""
    parts: list[str] = []
    for run in _WIDE_RUNS.findall(word):
        if len(run) == 1 or not _WIDE.match(run):
            parts.append(run)
        else:
            parts += [run[at : at + 2] for at in range(len(run) - 1)]
    return tuple(parts)
