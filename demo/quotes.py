"""A few characters of a long reply: those that matter, in one line. Pure functions."""

from demo.model import SEPARATOR
from demo.story import Form

# Where a broken reply shows what is wrong with it; without an entry: at its end.
_SIGNS: dict[Form, str] = {"fenced": "```", "unknown tier": '"archive"', "altered": '"round"'}
END = " (end)"


def quote(text: str, start: int, width: int, dots: str) -> str:
    """Return the words from a place on, in one line; dots stand for what is left out before and behind."""
    line = " ".join(text[start:].split())
    before = dots if text[:start].strip() else ""
    if len(before + line) <= width:
        return before + line
    return (before + line)[: width - len(dots)].rstrip() + dots


def quote_reply(raw: str, width: int, dots: str) -> tuple[str, str]:
    """Return the beginning of a reply's words, and that of its snapshot; both in so many columns, a space between."""
    words = raw.partition(SEPARATOR)[0]
    said = quote(words, 0, width // 3, dots)
    return said, quote(raw[len(words) :], 0, width - len(said) - 1, dots)


def quote_broken(raw: str, form: Form, width: int, dots: str) -> str:
    """Return where a reply departs from the rules; where something is missing, that is its end."""
    sign = _SIGNS.get(form)
    if sign:
        return quote(raw, raw.index(sign, raw.index(SEPARATOR)), width, dots)
    start = max(0, len(raw) - width + len(END + dots))
    while 0 < start < len(raw) and raw[start - 1] not in " ,\n":  # at the beginning of a word
        start += 1
    return quote(raw, start, width - len(END), dots) + END
