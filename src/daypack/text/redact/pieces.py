"""Long texts in pieces, cut where no secret can lie across the cut: a search costs the memory of one piece at a time.

Only key blocks have line breaks in them, and at most 40,000 characters after their label. Spaces are also between a
name and the value assigned to it, which are close to each other. No other secret has a space or line break.
"""

import re
from collections.abc import Iterator

PIECE_CHARS = 1 << 20

_BLOCK = "-----BEGIN "
_BLOCK_CHARS = 41_000
_GAP = re.compile("[ \n]")
# What rules look for in the characters before a name or URL, also in the line before: at most 24 of them.
_LOOKED_BACK_AT = re.compile(r"secret|login|sql\+|mongodb\+", re.IGNORECASE | re.ASCII)
_LOOK_BACK = 24
# What rules begin with that read across spaces: the value is within 100 characters.
_NAMED = re.compile("pass|pwd|secret|token|key|authorization|://", re.IGNORECASE | re.ASCII)
_BEFORE, _AFTER = 128, 64
_MOST_TRIES = 10_000  # a text without places to cut must not cost much more than its search


def pieces(text: str) -> Iterator[tuple[int, str]]:
    """Yield the pieces of a text with their starts; a text without a place to cut is one piece."""
    start, size = 0, len(text)
    while size - start > PIECE_CHARS:
        stop = _next_cut(text, start + PIECE_CHARS)
        if stop >= size:
            break
        yield start, text[start:stop]
        start = stop
    yield start, text[start:] if start else text


def _next_cut(text: str, position: int) -> int:
    """Return the first place to cut after a position; the end of the text if there is none."""
    for _ in range(_MOST_TRIES):
        gap = _GAP.search(text, position)
        if gap is None:
            break
        cut = gap.end()
        block = text.rfind(_BLOCK, max(0, cut - _BLOCK_CHARS), cut)
        if block >= 0:
            position = block + _BLOCK_CHARS
        elif gap[0] == "\n":
            if not _LOOKED_BACK_AT.search(text, cut - _LOOK_BACK, cut):
                return cut
            position = cut
        else:
            named = _NAMED.search(text, cut - _BEFORE, cut + _AFTER)
            if not named:
                return cut
            far = named.end() + _BEFORE
            line = text.find("\n", cut, far)
            position = far if line < 0 else line
    return len(text)
