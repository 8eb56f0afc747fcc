"""Lines that fit a terminal: texts cut to columns, ages and counts in few characters."""

import unicodedata
from datetime import datetime

from daypack.types.names import one_line

AGE_COLUMNS = 6  # 59 min
_ELLIPSIS = "…"
_UNITS = ((60, 60, "s"), (60, 60, "min"), (48, 24, "h"), (60, 30, "d"), (24, 12, "mo"))  # shown below, divisor, name


def fit(text: str, width: int) -> str:
    """Return data as one escaped line of at most `width` columns; a cut line ends with an ellipsis."""
    line = one_line(text)
    if len(line) * 2 <= width or columns(line) <= width:
        return line
    if line.isascii():
        return line[: width - len(_ELLIPSIS)].rstrip() + _ELLIPSIS if width > 0 else ""
    used, kept = len(_ELLIPSIS), ""
    for character in line:
        used += columns(character)
        if used > width:
            break
        kept += character
    return kept.rstrip() + _ELLIPSIS if width > 0 else ""


def columns(text: str) -> int:
    """Return how many columns of a terminal a text takes: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def age(moment: str, now: float) -> str:
    """Return how long ago a moment was, in one unit: 40 s, 3 h, 2 d; "" if it is no time."""
    try:
        amount = now - datetime.fromisoformat(moment).timestamp()
    except ValueError:
        return ""
    amount = max(0.0, amount)
    for below, divisor, unit in _UNITS:
        if amount < below:
            return f"{int(amount)} {unit}"
        amount /= divisor
    return f"{int(amount)} y"


def short_count(number: int) -> str:
    """Return a number in at most five characters: 999, 1.2k, 128k, 1.5M."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            tenths = number * 10 // size
            return f"{tenths / 10:.1f}".removesuffix(".0") + unit if tenths < 100 else f"{number // size}{unit}"
    return str(number)
