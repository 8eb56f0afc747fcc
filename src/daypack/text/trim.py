"""Trimming: a text made short enough at the last boundary that fits, with nothing put in place of what is gone."""

import re
import unicodedata

from daypack.text.sentences import sentences

# A part that ends after less than this share of the room says too little: better a part of the next one.
_LEAST_SHARE = 0.5
_LEAST_CLAUSE_SHARE = 0.4
_CLAUSE_END = re.compile(r"[,;:](?=\s)|[、，；：]|\s[–—-](?=\s)|(?<=\S)\s(?=\()|(?<=[)\]”»])(?=\s)")
_LOOSE_ENDS = " \t\r\n\f\v,;:、，；：–—-([{“«"
_JOINER = "\u200d"
_AHEAD_CHARS = 200  # how far after the cut the end of a sentence is searched for


def trim(text: str, max_chars: int) -> str:
    """Return a text of at most `max_chars` characters that begins as `text` does.

    It ends with a sentence where one fits, else with a clause, a word, or between two characters. White space at both
    ends goes; nothing is added.
    """
    text = text.strip()
    if len(text) <= max_chars:
        return text
    if max_chars <= 0:
        return ""
    for cut in (_sentence_end(text, max_chars), _clause_end(text, max_chars), _word_end(text, max_chars)):
        kept = text[:cut].rstrip(_LOOSE_ENDS)
        if kept:
            return kept
    return text[: _character_end(text, max_chars)].rstrip()


def is_cut_within_a_word(kept: str, text: str) -> bool:
    """Return True if `trim` had to end in the middle of a word of `text`: the rest may be no literal any more."""
    rest = text.strip()[len(kept) :]
    return bool(rest) and rest[0].isalnum() and kept[-1:].isascii() and kept[-1:].isalnum()


def _sentence_end(text: str, max_chars: int) -> int:
    ends = [sentence.stop for sentence in sentences(text[: max_chars + _AHEAD_CHARS]) if sentence.stop <= max_chars]
    return ends[-1] if ends and ends[-1] >= max_chars * _LEAST_SHARE else 0


def _clause_end(text: str, max_chars: int) -> int:
    least = int(max_chars * _LEAST_CLAUSE_SHARE)
    cut = 0
    for match in _CLAUSE_END.finditer(text, least, max_chars + 1):
        end = match.start() if match[0].isspace() else match.end()
        if end <= max_chars and not _is_open(text, end):
            cut = end
    return cut


def _is_open(text: str, end: int) -> bool:
    """Return True if a bracket or a code span is open there."""
    head = text[:end]
    return head.count("(") > head.count(")") or head.count("[") > head.count("]") or head.count("`") % 2 == 1


def _word_end(text: str, max_chars: int) -> int:
    for at in range(max_chars, 0, -1):
        if text[at].isspace():
            return at
    return 0


def _character_end(text: str, max_chars: int) -> int:
    """Return a cut that parts no accent from its letter and no sign of a composed emoji from the others."""
    at = max_chars
    while at > 0 and (unicodedata.combining(text[at]) or _joins(text[at]) or text[at - 1] == _JOINER):
        at -= 1
    return at or max_chars


def _joins(char: str) -> bool:
    return char == _JOINER or "\ufe00" <= char <= "\ufe0f" or "\U0001f3fb" <= char <= "\U0001f3ff"
