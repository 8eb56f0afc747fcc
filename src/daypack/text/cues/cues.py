"""Cues: what kind of sentence the words of a sentence suggest, from phrase tables in six languages."""

import re
from functools import lru_cache
from typing import NamedTuple, cast

from daypack.text.cues.phrases import ACKNOWLEDGEMENTS, ENGLISH, FRENCH, GERMAN, SPANISH, UNSPACED, Kind
from daypack.text.language import language_of

_WORD = re.compile(r"\w+(?:'\w+)*")
_UNSPACED_CHARS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_LINE = re.compile(r"^([a-z]+) (\d\.\d+):", re.MULTILINE)
_OPENERS = frozenset(
    ["and", "so", "but", "then", "also", "please", "ok", "okay", "yes", "well", "hmm", "oh", "now", "next"]
)
_QUESTIONS = ("?", "？", "吗", "嗎", "か。", "か")
_TABLES = {"en": ENGLISH, "de": GERMAN, "fr": FRENCH, "es": SPANISH}
# A question that asks for work, not for an answer.
_POLITE = re.compile(
    r"\b(?:can|could|would|will) (?:you|we) (?:please )?(?!tell|remind|recall|remember|confirm|explain|say|see|still)|"
    r"\bplease (?!tell|remind|confirm|say)|\bhelp\b|\b(?:peux|pouvez|pourrais|pourriez)\b|"
    r"\b(?:kannst|könntest|können|könnten)\b|\b(?:puedes?|podrías?)\b|能不能|可以帮|请|請|くれ|もらえ|いただけ",
    re.IGNORECASE,
)
_TELLING = re.compile(
    r"(?:(?:please|also|and|ok|okay),?\s+){0,2}(?:remember|note|keep in mind|don't forget|tell me|remind me)\b",
    re.IGNORECASE,
)
_ASKS_FOR_WORK = 0.8


class Cues(NamedTuple):
    """The kinds of sentence that the words suggest, each from 0 to 1."""

    decisions: float = 0.0
    facts: float = 0.0
    pending: float = 0.0
    errors: float = 0.0
    request: float = 0.0
    order: float = 0.0
    doubt: float = 0.0
    talk: float = 0.0
    chatter: float = 0.0
    done: float = 0.0
    denied: float = 0.0
    asks: bool = False


class _Phrase(NamedTuple):
    rest: list[str]  # the words after the first two
    kind: Kind
    weight: float
    first: bool


_Phrases = dict[str, list[_Phrase]]


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, "don't" as one word."""
    return _WORD.findall(text.lower().replace("’", "'"))


def is_acknowledgement(text: str) -> bool:
    """Return True if a message is nothing but "ok", "continue", "thanks" and the like."""
    words = words_of(text)
    return len(words) <= 6 and all(word in _acknowledgements() for word in words)


def commands(text: str, cues: Cues) -> bool:
    """Return True if a sentence asks for work: not for an answer, and not to follow a rule."""
    if cues.request - cues.chatter < _ASKS_FOR_WORK or cues.order >= _ASKS_FOR_WORK or cues.decisions >= 1.0:
        return False
    return _TELLING.match(text) is None and (not cues.asks or _POLITE.search(text) is not None)


def find_cues(text: str, language: str = "", words: list[str] | None = None) -> Cues:
    """Return the cues of a sentence; its language and words are computed unless they are given."""
    words = words_of(text) if words is None else words
    found: dict[Kind, float] = {}
    index = _index(language or language_of(words))
    opening = _opening(words)
    pair = ""
    for at in range(len(words) - 1, -1, -1):
        word = words[at]
        phrases = index.get(word)
        if phrases:
            _note(phrases, found, beginning=at <= opening)
        if pair:
            phrases = index.get(f"{word} {pair}")
            if phrases:
                rest = [
                    phrase
                    for phrase in phrases
                    if not phrase.rest or words[at + 2 : at + 2 + len(phrase.rest)] == phrase.rest
                ]
                _note(rest, found, beginning=at <= opening)
        pair = word
    if not text.isascii() and _UNSPACED_CHARS.search(text):
        _find_unspaced(text, found)
    return Cues(**found, asks=_asks(text))


def _asks(text: str) -> bool:
    end = text.rstrip("\"'”’)*_` ")
    # A question mark a few signs before the end, as in "…? :-)", is one too; one inside an address is not.
    return end.endswith(_QUESTIONS) or "? " in text[-14:]


def _note(phrases: list[_Phrase], found: dict[Kind, float], *, beginning: bool) -> None:
    for _, kind, weight, first in phrases:
        if (beginning or not first) and weight > found.get(kind, 0.0):
            found[kind] = weight


def _find_unspaced(text: str, found: dict[Kind, float]) -> None:
    for kind, weight, phrases in _unspaced():
        if weight > found.get(kind, 0.0) and any(phrase in text for phrase in phrases):
            found[kind] = weight


def _opening(words: list[str]) -> int:
    """Return up to where a sentence still begins: "so please use tabs" begins with "use"."""
    at = 0
    while at < len(words) and at < 3 and words[at] in _OPENERS:
        at += 1
    return at


def _read_table(table: str) -> list[tuple[Kind, float, list[str]]]:
    _, *parts = _LINE.split(table)
    kinds, weights, phrases = parts[::3], parts[1::3], parts[2::3]
    return [
        (cast("Kind", kind), float(weight), [" ".join(part.split()) for part in listed.split(",")])
        for kind, weight, listed in zip(kinds, weights, phrases, strict=True)
    ]


@lru_cache(maxsize=1)
def _acknowledgements() -> frozenset[str]:
    return frozenset(ACKNOWLEDGEMENTS.split())


@lru_cache(maxsize=len(_TABLES))
def _index(language: str) -> _Phrases:
    """Return the phrases of a language by their first word, or by their first two."""
    index: _Phrases = {}
    for kind, weight, phrases in _read_table(_TABLES[language]):
        for phrase in phrases:
            words = words_of(phrase)
            made = _Phrase(words[2:], kind, weight, phrase.startswith("^"))
            index.setdefault(" ".join(words[:2]), []).append(made)
    return index


@lru_cache(maxsize=1)
def _unspaced() -> list[tuple[Kind, float, list[str]]]:
    return _read_table(UNSPACED)
