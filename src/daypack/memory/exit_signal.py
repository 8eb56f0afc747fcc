"""The exit signal of a conversation, <END_SESSION>, alone or inside a message.

A message that only mentions it does not end anything: it is in code, directly between quotation marks, or in a quoted
line ("> …").
"""

import re

END_SESSION = "<END_SESSION>"
_QUOTES = {'"': '"', "'": "'", "“": "”", "„": "“", "‘": "’", "«": "»", "「": "」"}
_MENTION = re.compile(
    r"^[ \t]*(?P<fence>```+|~~~+).*?(?:^[ \t]*(?P=fence)|\Z)"  # a block of code
    r"|(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)"  # code in a line
    r"|^[ \t]*>[^\n]*"  # a quoted line
    + "".join(rf"|{opening}\s*{END_SESSION}\s*{closing}" for opening, closing in _QUOTES.items()),
    re.DOTALL | re.MULTILINE,
)
_SIGNAL = re.compile(rf"[ \t]*{END_SESSION}")


def read_signal(text: str) -> tuple[str, bool]:
    """Return a message without the exit signal, and True if it has one; the same text if it has none."""
    if END_SESSION not in text:
        return text, False
    mentions = [match.span() for match in _MENTION.finditer(text)]
    kept: list[str] = []
    at = 0
    for signal in _SIGNAL.finditer(text):
        if any(start < signal.end() <= stop for start, stop in mentions):
            continue
        kept.append(text[at : signal.start()])
        at = signal.end()
    return ("".join([*kept, text[at:]]).strip(), True) if at else (text, False)
