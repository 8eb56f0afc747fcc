"""The spellings of a text in files: as it is, in both Unicode normal forms, and escaped as JSON does, at any depth.

    p"é    p\"é    p\\\"é    p\"\u00e9    p\\\"\\u00E9    and with e and an accent as two characters

Base64, hexadecimal and percent-encoded spellings are only found, not replaced: they may begin in the middle of another
text, and what replaces them would have to be encoded in the same way.
"""

import re
import unicodedata
from base64 import b64encode
from collections.abc import Sequence
from urllib.parse import quote

_CONTROL = {"\n": "n", "\t": "t", "\r": "r", "\b": "b", "\f": "f"}
_DIGEST = r"sha256[:-][0-9a-f]{64}"
_HEX = re.compile(r"[0-9a-f]+\Z")
_LONG = 1000  # characters of a text in which only what JSON must escape is expected as an escape
_LEAST_ENCODED = 6  # characters of an encoded spelling that is no coincidence


class Spellings:
    """All spellings of some texts, longest text first."""

    def __init__(self, texts: Sequence[str]) -> None:
        forms = {unicodedata.normalize(form, text) for text in texts for form in ("NFC", "NFD")} | set(texts)
        ordered = sorted(forms, key=lambda text: (-len(text), text))
        pattern = "|".join("".join(map(_spell_plain if len(text) > _LONG else _spell, text)) for text in ordered)
        self._bytes = re.compile(pattern.encode())
        # Digits of a secret may occur in a digest by chance: those are not replaced.
        kept = f"({_DIGEST})|" if any(map(_HEX.match, ordered)) else "(?P<none>(?!))|"
        self._text = re.compile(f"{kept}(?:{pattern})")
        self._encoded = re.compile(b"|".join(_encodings(ordered)) or b"(?!)")

    def replace(self, text: str, marker: str) -> str:
        """Return a text with the marker in place of every spelling."""
        return self._text.sub(lambda match: match[1] or marker, text)

    def count(self, text: str) -> int:
        """Return how many times a text contains them."""
        return sum(not match[1] for match in self._text.finditer(text))

    def is_whole(self, text: str) -> bool:
        """Return True if a text is one of them and nothing else."""
        return self._text.fullmatch(text) is not None

    def found_in(self, data: bytes) -> bool:
        """Return True if bytes contain a spelling."""
        return self._bytes.search(data) is not None

    def encoded_in(self, data: bytes) -> bool:
        """Return True if bytes contain a text in base64, hexadecimal or percent-encoded."""
        return self._encoded.search(data) is not None


def _spell(character: str) -> str:
    """Return a pattern for one character, escaped any number of times or not at all."""
    units = character.encode("utf-16-be")
    escaped = "".join(r"\\+u" + _any_case(units[at : at + 2].hex()) for at in range(0, len(units), 2))
    if character == "\\":
        return rf"(?:\\+u{_any_case('005c')}|\\+)"
    if character in '"/':
        return rf"(?:\\*{character}|{escaped})"
    if character in _CONTROL:
        return rf"(?:{re.escape(character)}|\\+{_CONTROL[character]}|{escaped})"
    return f"(?:{re.escape(character)}|{escaped})"


def _spell_plain(character: str) -> str:
    """Return a pattern for one character of a long text: an alternative for each would take seconds to compile."""
    return character if character.isascii() and character.isalnum() else _spell(character)


def _any_case(digits: str) -> str:
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in digits)


def _encodings(texts: Sequence[str]) -> list[bytes]:
    patterns: set[bytes] = set()
    for text in texts:
        data = text.encode()
        for before in range(3):
            # Only the characters that depend on the text alone: those at the ends share bits with its neighbours.
            whole = b64encode(bytes(before) + data)
            inner = whole[(0, 2, 3)[before] : (len(data) + before) * 8 // 6]
            patterns |= {inner, inner.replace(b"+", b"-").replace(b"/", b"_")}
        patterns |= {data.hex().encode(), data.hex().upper().encode()}
        percent = quote(text, safe="").encode()
        patterns |= {percent} if percent != data else set()
    return sorted(re.escape(pattern) for pattern in patterns if len(pattern) >= _LEAST_ENCODED)
