"""Quote the relevant part of a long reply in one line. Pure functions."""

from demo.model import SEPARATOR
from demo.story import Form

# The text at which a broken reply departs from the format; without an entry it is the end.
_ERROR_AT: dict[Form, str] = {"fenced": "```", "unknown tier": '"archive"', "altered": '"round"'}
END = " (end)"


def quote(text: str, start: int, width: int, dots: str) -> str:
    """Return the text from a position on one line; dots replace omitted text before and after."""
    line = " ".join(text[start:].split())
    before = dots if text[:start].strip() else ""
    if len(before + line) <= width:
        return before + line
    return (before + line)[: width - len(dots)].rstrip() + dots


def quote_reply(raw: str, width: int, dots: str) -> tuple[str, str]:
    """Return the start of a reply's text and of its snapshot, together with a space in `width` columns."""
    text = raw.partition(SEPARATOR)[0]
    quoted = quote(text, 0, width // 3, dots)
    return quoted, quote(raw[len(text) :], 0, width - len(quoted) - 1, dots)


def quote_broken(raw: str, form: Form, width: int, dots: str) -> str:
    """Quote the place where a reply departs from the format; the end if something is missing."""
    marker = _ERROR_AT.get(form)
    if marker:
        return quote(raw, raw.index(marker, raw.index(SEPARATOR)), width, dots)
    start = max(0, len(raw) - width + len(END + dots))
    while 0 < start < len(raw) and raw[start - 1] not in " ,\n":  # move to the start of a word
        start += 1
    return quote(raw, start, width - len(END), dots) + END
