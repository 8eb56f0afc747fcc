"""The tokens that FTS5's tokenizer `porter ascii` makes of a text, for databases without it.

Equal to the last byte, oddities included, because the same words must find the same entries in every database:
letters and digits of ASCII and all other characters are parts of a token, and the Porter stemmer works on UTF-8.

    tokens("paintings of 東京")  ->  ["paint", "of", "東京"]
"""

import re
from functools import lru_cache

MAX_STEMMED_BYTES = 64  # a longer token is not stemmed, nor is one below three bytes
MAX_BYTES = 1 << 15  # the rest of a longer token is dropped
_CACHED = 1 << 16

_TOKEN = re.compile(rb"[0-9a-z\x80-\xff]+")
_VOWELS = b"aeiou"
_SHAPES = bytes(ord("v") if code in _VOWELS else ord("y") if code == ord("y") else ord("c") for code in range(256))

# Rules of a step: the first ending that a word has, and that is not the whole word, is the one that is replaced.
_Rules = tuple[tuple[bytes, bytes], ...]


def _rules(text: str) -> dict[int, _Rules]:
    """Return rules by the last letter but one of their ending."""
    rules: dict[int, _Rules] = {}
    for rule in text.split():
        ending, _, replacement = rule.encode().partition(b">")
        rules[ending[-2]] = (*rules.get(ending[-2], ()), (ending, replacement))
    return rules


_STEP_2 = _rules("""
    ational>ate tional>tion enci>ence anci>ance izer>ize logi>log bli>ble alli>al entli>ent eli>e ousli>ous ization>ize
    ation>ate ator>ate alism>al iveness>ive fulness>ful ousness>ous aliti>al iviti>ive biliti>ble
""")
_STEP_3 = _rules("ical>ic ness> icate>ic iciti>ic ful> ative> alize>al")
_STEP_4 = _rules("al ance ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize")


def tokens(folded: str) -> list[str]:
    """Return the tokens of a text that `words.fold` made, in its order, with repetitions."""
    return [_stem(word) for word in _TOKEN.findall(folded.encode().lower())]


def stem_token(word: str) -> str:
    """Return the token that a term of a query becomes; the term is one token, as all of `words.query_terms` are."""
    return _stem(word.encode().lower())


@lru_cache(_CACHED)
def _stem(word: bytes) -> str:
    """Return a token. Where a character was cut in half, its bytes are spelled with backslashes, which no token has."""
    stem = _porter(word) if 3 <= len(word) <= MAX_STEMMED_BYTES else word[:MAX_BYTES]
    return stem.decode("utf-8", "backslashreplace")


def _porter(word: bytes) -> bytes:
    word = _drop_tense(_drop_plural(word))
    if word[-1:] == b"y" and _has_vowel(word[:-1]):
        word = word[:-1] + b"i"
    word = _replace(_replace(word, _STEP_2), _STEP_3)
    word = _drop_ending(word)
    if word[-1:] == b"e":
        stem = word[:-1]
        measure = _measure(stem)
        if measure > 1 or (measure == 1 and not _is_short(stem)):
            word = stem
    return word[:-1] if word[-2:] == b"ll" and _measure(word[:-1]) > 1 else word


def _drop_plural(word: bytes) -> bytes:
    if word[-1:] != b"s" or word[-2:] == b"ss":
        return word
    size = len(word)
    if (size > 4 and word[-4:] == b"sses") or (size > 3 and word[-3:] == b"ies"):
        return word[:-2]
    return word[:-1]


def _drop_tense(word: bytes) -> bytes:
    """Drop "ed" and "ing", and make an infinitive of what is left."""
    if word[-3:] == b"eed" and len(word) > 3:
        return word[:-1] if _measure(word[:-3]) else word
    ending = 2 if word[-2:] == b"ed" else 3 if word[-3:] == b"ing" else 0
    stem = word[:-ending]
    if not ending or not _has_vowel(stem):
        return word
    if stem[-2:] in (b"at", b"bl", b"iz"):
        return stem + b"e"
    if stem[-1:] == stem[-2:-1] and stem[-1] not in b"aeioulsz":
        return stem[:-1]
    return stem + b"e" if _measure(stem) == 1 and _is_short(stem) else stem


def _replace(word: bytes, step: dict[int, _Rules]) -> bytes:
    if len(word) > 3:
        for ending, replacement in step.get(word[-2], ()):
            if word.endswith(ending) and len(word) > len(ending):
                stem = word[: -len(ending)]
                return stem + replacement if _measure(stem) else word
    return word


def _drop_ending(word: bytes) -> bytes:
    if len(word) > 2:
        for ending, _ in _STEP_4.get(word[-2], ()):
            if word.endswith(ending) and len(word) > len(ending):
                stem = word[: -len(ending)]
                return stem if _measure(stem) > 1 and (ending != b"ion" or stem[-1] in b"st") else word
    return word


def _shape(word: bytes) -> bytes:
    """Return "v" for each vowel and "c" for each consonant; a "y" after a consonant is a vowel."""
    shape = word.translate(_SHAPES)
    while (at := shape.find(b"y")) >= 0:
        shape = shape[:at] + (b"v" if shape[at - 1 : at] == b"c" else b"c") + shape[at + 1 :]
    return shape


def _measure(stem: bytes) -> int:
    """Return how often a consonant follows a vowel."""
    return _shape(stem).count(b"vc")


def _has_vowel(stem: bytes) -> bool:
    """Return True if there is a vowel; any "y" counts, except the first letter."""
    return b"v" in stem.translate(_SHAPES) or b"y" in stem[1:]


def _is_short(stem: bytes) -> bool:
    """Return True if it ends as "hop" does: consonant, vowel, consonant other than w, x and y."""
    return _shape(stem).endswith(b"cvc") and stem[-1] not in b"wxy"
