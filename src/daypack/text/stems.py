"""Stems: words of a sentence without what inflection adds, and its negations, so that two sentences can be compared."""

import re
from functools import lru_cache

from daypack.text.sentences import content_words

_NEGATION = re.compile(
    r"\b(?:not|never|no|none|nothing|without|cannot|nor|neither|nicht|kein\w*|nie|ohne)\b|n['’]t\b|[不没別别勿无無]",
    re.IGNORECASE,
)
_NOT = ("n't", "n’t")
NO_NEGATION = re.compile(
    r"(?:don['’]t|do not|never) forget|not only|why (?:not|don['’]t)|no (?:problem|worries|doubt)|^\W*no[,.!]|别忘",
    re.IGNORECASE,
)


def count_negations(text: str) -> int:
    """Return how often a text says no."""
    return len(_NEGATION.findall(NO_NEGATION.sub("", text)))


def stems_of(text: str) -> set[str]:
    """Return the words by which a sentence is found; its negations are compared apart."""
    found = {stem_of(word) for word in content_words(text)}
    found.discard("")
    return found


@lru_cache(maxsize=1 << 15)
def stem_of(word: str) -> str:
    """Cut what inflection adds to an English word: fails, failed and failing are one; nothing of a negation is left."""
    if word.endswith(_NOT) or _NEGATION.fullmatch(word):
        return ""
    if len(word) < 5 or not word.isascii() or not word.isalpha():
        doubled = len(word) == 4 and word.isascii() and word.isalpha() and word[-1] == word[-2]  # call, as called
        return word[:-1] if doubled or (len(word) == 4 and word.endswith("s")) else word
    for ending in ("ing", "ied", "ies", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word
