"""The exit signal of a conversation, <END_SESSION>, alone or inside a message.

A message that only mentions it does not end anything: it is in code, directly between quotation marks, or in a quoted
line ("> …").
"""

import re
from bisect import bisect_right
from collections.abc import Iterator

END_SESSION = "<END_SESSION>"
_QUOTES = {'"': '"', "'": "'", "“": "”", "„": "“", "‘": "’", "«": "»", "「": "」"}
_BLOCK = re.compile(
    r"^[ \t]*+(?P<fence>```++(?=[^`\n]*+$)|~~~++).*?(?:^[ \t]*+(?P=fence)|\Z)"  # a block of code
    r"|^[ \t]*+>[^\n]*+",  # a quoted line
    re.DOTALL | re.MULTILINE,
)
_QUOTED = re.compile("|".join(rf"{opening}\s*+{END_SESSION}\s*+{closing}" for opening, closing in _QUOTES.items()))
_GAP = re.compile(r"\n[ \t]*+\n\s*+")  # between paragraphs
_TICKS = re.compile(r"`++")
_SIGNAL = re.compile(rf"(?<![ \t])[ \t]*+{END_SESSION}")


def read_signal(text: str) -> tuple[str, bool]:
    """Return a message without the exit signal, and True if it has one; the same text if it has none."""
    if END_SESSION not in text:
        return text, False
    mentioned = bytearray(len(text))
    for start, stop in _mentions(text):
        mentioned[start:stop] = b"\1" * (stop - start)
    kept: list[str] = []
    at = 0
    for signal in _SIGNAL.finditer(text):
        if mentioned[signal.end() - 1]:
            continue
        kept.append(text[at : signal.start()])
        at = signal.end()
    return ("".join([*kept, text[at:]]).strip(), True) if at else (text, False)


def _mentions(text: str) -> Iterator[tuple[int, int]]:
    """Return the parts of a text that say nothing themselves: code and quotations."""
    for match in (*_BLOCK.finditer(text), *_QUOTED.finditer(text)):
        yield match.span()
    plain = _BLOCK.sub(lambda block: "\n" * len(block[0]), text)
    start = 0
    for gap in _GAP.finditer(plain):
        yield from _code_in_lines(plain, start, gap.start())
        start = gap.end()
    yield from _code_in_lines(plain, start, len(plain))


def _code_in_lines(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Return the code of one paragraph: from some backticks to the next ones that are as many."""
    runs = [run.span() for run in _TICKS.finditer(text, start, stop)]
    alike: dict[int, list[int]] = {}
    for number, (first, after) in enumerate(runs):
        alike.setdefault(after - first, []).append(number)
    opening = 0
    while opening < len(runs):
        first, after = runs[opening]
        candidates = alike[after - first]
        closing = bisect_right(candidates, opening)
        if closing < len(candidates):
            opening = candidates[closing]
            yield first, runs[opening][1]
        opening += 1
