"""Text that daypack itself adds to a window, and how it is recognised.

    <note id="1f3a9c02" name="memory 2025-05-08">     a block, fenced by a mark its text cannot contain
    …
    </note 1f3a9c02>

    [recalled from messages:12]                       the answer of a tool: all of it
    [swapped out: sha256-1f3a9c02…]                   the stub of a message in the window: all of it
    [the same text as in msg-12 above: …]
    Current time: 2025-05-08T10:00:00Z                the last line

Code that shows text with these marks imports them from here; code that stores messages strips them.
"""

import re
from typing import Literal, get_args

Fence = Literal["instructions", "note", "data", "past"]

RECALLED = "[recalled from "  # begins every recalled text, so that it is not stored as a new one
SWAPPED = "[swapped out: "
SAME = "[the same text as in msg-"
TIME = "Current time: "
_ANSWER = re.compile(
    rf"{re.escape(RECALLED)}(?:nowhere\] |[^\n]*\]\n)|{re.escape(SWAPPED)}sha256-[0-9a-f]+, [^\n]*\]\Z"
    rf"|{re.escape(SAME)}\d+ above: [\d,]+ characters\]\Z"
)
_OPEN = re.compile(rf'<(?P<fence>{"|".join(get_args(Fence))}) id="(?P<mark>[0-9a-f]{{8}})"[^<>\n]*>')
_CLOSE = re.compile(rf"</(?P<fence>{'|'.join(get_args(Fence))}) (?P<mark>[0-9a-f]{{8}})>")
_TIME_LINE = re.compile(rf"^{TIME}\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n{3,}")


def wrap(fence: Fence, mark: str, text: str, attributes: str = "") -> str:
    """Return a text between fences; `mark` must not occur in it."""
    return f'<{fence} id="{mark}"{attributes}>\n{text}\n</{fence} {mark}>'


def strip_injected(text: str) -> str:
    """Return a text without what daypack added to it; the same text if that is nothing.

    A block ends at the mark it began with; an opening mark without its end is part of the message.
    """
    if _ANSWER.match(text):
        return ""
    kept: list[str] = []
    at = 0
    closed = {(match["fence"], match["mark"]): match.end() for match in _CLOSE.finditer(text)} if "</" in text else {}
    opened = _OPEN.search(text) if closed else None
    while opened is not None:
        end = opened.end()
        if closed.get((opened["fence"], opened["mark"]), 0) > end:
            kept.append(text[at : opened.start()])
            at = end = text.index(f"</{opened['fence']} {opened['mark']}>", end) + len(opened["fence"]) + 12
        opened = _OPEN.search(text, end)
    rest = text[at:]
    if TIME in rest:
        rest = _TIME_LINE.sub("", rest)
    if not kept and len(rest) == len(text):
        return text
    return _BLANK_LINES.sub("\n\n", "".join([*kept, rest])).strip()
