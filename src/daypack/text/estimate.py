"""An upper estimate of the tokens of a text, without a vocabulary: for hooks, which have no time to load one.

Counts what vocabularies split a text into: words by their length, digits in threes, signs, indentation, and characters
of other scripts by what they cost there. It does not know which words a vocabulary has. A text with many of the common
English words is English, of which vocabularies have most; words of other languages and of code cost more the longer
they are.

The weights were set with 1,400 texts of 2,400 characters: 100 languages, code in ten, JSON, logs, digests, base64. As
o200k_base counts, the worst shortfall is 12 % (Kabyle, Welsh, key maps); 99 % of the texts have none above 3 %. Mean
overshoot:

    English +23 %   Python +27 %   JSON +21 %   German +48 %   Russian +64 %   Chinese +25 %   Hindi +79 %   base64 +5 %

Runs of a sign and signs after a space, of which Markdown has many, count more since then: Python another 3 %.
"""

import re

_COMMON_WORDS = (
    "the of and to is it that this with for from are was be been by not or if you your we they their there which when "
    "what where who will would can could should has have had does but than then these those into only each how"
)
_COMMON = frozenset(_COMMON_WORDS.split())
_ENGLISH_SHARE = 4  # a text in which one word in so many is common is English

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_CAPITALS = re.compile(r"[A-Z]{2,}")
_DIGITS = re.compile(r"[0-9]{1,3}")
_SIGNS = re.compile(r"([!-/:-@\[-`{-~])\1{0,7}")  # of the same sign, a line costs little
_WHOLE_SIGNS = re.compile(
    r"([!-/:-@\[-`{-~])\1+|(?:^|(?<=\s))[!-/:-@\[-`{-~]", re.MULTILINE
)  # never part of a word's token
_SPACES = re.compile(r"\n[ \t]*|[ \t]{2,}|\t|[\x00-\x08\x0b-\x1f\x7f]")

# In hundredths of a token.
_LONGEST = 64  # a longer run of letters is counted as several
_UNKNOWN_WORD = [110 + 16 * max(0, size - 3) + 28 * max(0, size - 5) for size in range(_LONGEST + 1)]
_ENGLISH_WORD = [106 + 4 * max(0, size - 3) + 4 * max(0, size - 5) for size in range(_LONGEST + 1)]
_COMMON_WORD, _CAPITAL, _DIGIT_GROUP, _SIGN, _WHOLE_SIGN, _SPACE = 105, 20, 155, 66, 34, 95
_SCRIPTS = {
    "\u00a1-\u024f\u1e00-\u1eff": 90,  # Latin with accents: they break words
    "\u0370-\u045f\u0530-\u05ff\u0e00-\u0eff\u10a0-\u10ff": 50,  # Greek, Cyrillic, Armenian, Hebrew, Thai, Georgian
    "\u0600-\u0dff": 72,  # Arabic, Indic
    "\u3000-\u30ff\uff00-\uffef\u2010-\u2027": 65,  # kana, punctuation
    "\u4e00-\u9fff": 115,  # Han
    "\uac00-\ud7a3": 85,  # Hangul
}
_OTHER = 240  # emoji, and scripts that are spelled byte by byte
_PATTERNS: list[tuple[re.Pattern[str], int]] = []  # compiled for the first text that is not ASCII


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has, rather too many; 0 only for an empty text."""
    words = _WORD.findall(text)
    sizes = [min(len(word), _LONGEST) for word in words if word not in _COMMON]
    common = len(words) - len(sizes)
    english = min(1.0, _ENGLISH_SHARE * common / len(words)) if words else 0.0
    unknown = sum([_UNKNOWN_WORD[size] for size in sizes])
    known = sum([_ENGLISH_WORD[size] for size in sizes])
    hundredths = _COMMON_WORD * common + english * known + (1 - english) * unknown
    hundredths += _UNKNOWN_WORD[1] * sum([len(word) - _LONGEST for word in words if len(word) > _LONGEST])
    hundredths += _CAPITAL * sum(map(len, _CAPITALS.findall(text)))
    hundredths += _DIGIT_GROUP * len(_DIGITS.findall(text))
    hundredths += _SIGN * len(_SIGNS.findall(text)) + _WHOLE_SIGN * len(_WHOLE_SIGNS.findall(text))
    hundredths += _SPACE * len(_SPACES.findall(text))
    if not text.isascii():
        hundredths += sum(weight * len(pattern.findall(text)) for pattern, weight in _patterns())
    return max(1, int(-(-hundredths // 100))) if text else 0


def _patterns() -> list[tuple[re.Pattern[str], int]]:
    if not _PATTERNS:
        _PATTERNS.extend((re.compile(f"[{characters}]"), weight) for characters, weight in _SCRIPTS.items())
        _PATTERNS.append((re.compile(f"[^\x00-\x7f{''.join(_SCRIPTS)}]"), _OTHER))
    return _PATTERNS
