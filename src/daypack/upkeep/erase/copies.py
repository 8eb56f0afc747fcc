"""Finds copies of a long text word by word: its lines and sentences are too many for one pattern.

    'line 7 of "the log"'      {"text":"line 7 of \\"the log\\"\nline 8"}      the same five words

What separates words is ignored: quotes, escapes of JSON at any depth, and the breaks of lines.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from daypack.upkeep.erase.spellings import Spellings

_PATTERN_CHARS = 4000  # of all texts: more make a pattern that takes minutes
_LEAST_CHARS = 12  # of the words of a text: fewer occur by chance
_LONG = 32  # words; of longer texts, these are looked up first
_WORD = re.compile(r"\\+[nrtbf]|(?:[\w\u0300-\u036f]|\\+u[0-9a-fA-F]{4})+")
_ESCAPE = re.compile(r"\\+u([0-9a-fA-F]{4})")
_PART = re.compile(r"\w+")


class _Word(NamedTuple):
    text: str
    start: int
    stop: int


class Copies:
    """Copies of texts, found by the order of their words; the same questions as of `Spellings`."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._short: set[tuple[str, ...]] = set()
        self._long: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        lengths: dict[str, set[int]] = {}
        for words in {tuple(word.text for word in _words(text)) for text in texts}:
            if sum(map(len, words)) < _LEAST_CHARS:
                continue
            if len(words) > _LONG:
                self._long.setdefault(words[:_LONG], []).append(words)
            else:
                self._short.add(words)
            lengths.setdefault(words[0], set()).add(min(len(words), _LONG + 1))
        for found in self._long.values():
            found.sort(key=len, reverse=True)
        self._lengths = {word: sorted(found, reverse=True) for word, found in lengths.items()}

    def replace(self, text: str, marker: str) -> str:
        """Return a text with the marker in place of every copy."""
        parts: list[str] = []
        end = 0
        for start, stop in self._spans(_words(text)):
            parts += (text[end:start], marker)
            end = stop
        return "".join((*parts, text[end:]))

    def count(self, text: str) -> int:
        """Return how many copies a text contains."""
        return sum(1 for _ in self._spans(_words(text)))

    def is_whole(self, text: str) -> bool:
        """Return True if a text is a copy and nothing else."""
        words = _words(text)
        return bool(words) and self._match(words, [word.text for word in words], 0) == len(words)

    def found_in(self, data: bytes) -> bool:
        """Return True if bytes contain a copy."""
        return any(True for _ in self._spans(_words(data.decode("utf-8", "surrogateescape"))))

    def encoded_in(self, data: bytes) -> bool:  # noqa: ARG002 — as `Spellings`
        """Return False: an encoded text has no words."""
        return False

    def _spans(self, words: Sequence[_Word]) -> Iterator[tuple[int, int]]:
        texts = [word.text for word in words]
        at = 0
        while at < len(words):
            length = self._match(words, texts, at)
            if length:
                yield words[at].start, words[at + length - 1].stop
            at += length or 1

    def _match(self, words: Sequence[_Word], texts: list[str], at: int) -> int:
        """Return how many words the longest copy has that begins here."""
        for length in self._lengths.get(texts[at], ()):
            if length <= _LONG:
                if tuple(texts[at : at + length]) in self._short:
                    return length
                continue
            for found in self._long.get(tuple(texts[at : at + _LONG]), ()):
                if len(found) <= len(words) - at and tuple(texts[at : at + len(found)]) == found:
                    return len(found)
        return 0


def spellings_of(texts: Sequence[str]) -> Spellings | Copies:
    """Return what finds copies of these texts."""
    return Spellings(texts) if sum(map(len, texts)) <= _PATTERN_CHARS else Copies(texts)


def _words(text: str) -> list[_Word]:
    found: list[_Word] = []
    for match in _WORD.finditer(text):
        word = match[0]
        if word[0] == "\\" and word[-1] in "nrtbf" and _ESCAPE.search(word) is None:
            continue
        if not word.isascii() or "\\" in word:
            word = _decoded(word)
            found += [_Word(part, match.start(), match.end()) for part in _PART.findall(word)]
        else:
            found.append(_Word(word, match.start(), match.end()))
    return found


def _decoded(word: str) -> str:
    units = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), word)
    whole = units.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return unicodedata.normalize("NFC", whole)
