"""The texts of files as far as calls and results tell them: for digests, and for the lines that were read."""

import re

from daypack.derived.artifacts.patches import Touch
from daypack.types.digest import digest_bytes

_MOST_LINES = 2000  # a result with more was cut, or may have been
_MOST_LINE_CHARS = 2000
_ARROW = "→"
_NUMBERED = re.compile(r"^ {0,12}(\d{1,9})(?:→|\t|: ?|\| ?)", re.MULTILINE)
_REMINDER = "\n\n<system-reminder>"
_REDACTED = "[redacted:"


class FileTexts:
    """The known text of each file, updated call by call."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def apply(self, touch: Touch) -> None:
        """Apply a change to the known text."""
        if touch.verb in ("listed", "read"):
            return
        text = self._texts.pop(touch.path, None)
        if touch.verb == "deleted":
            return
        if touch.content is not None:
            text = touch.content
        elif touch.edits is not None and text is not None:
            text = _edited(text, touch.edits)
        else:
            text = None
        if text is not None:
            self._texts[touch.path] = text

    def read(self, path: str, result: str) -> None:
        """Record the text of a numbered listing if it is the whole file."""
        text = whole_text(result)
        if text is not None:
            self._texts[path] = text

    def record(self, path: str, text: str) -> None:
        """Record the text of a file."""
        self._texts[path] = text

    def digests(self) -> dict[str, str]:
        """Return the digests of all texts that are known."""
        found: dict[str, str] = {}
        for path, text in self._texts.items():
            # Without its secrets a text is not the file's.
            if _REDACTED not in text:
                found[path] = digest_bytes(text.encode("utf-8", "replace"))
        return found


def whole_text(result: str) -> str | None:
    """Return the text of a file that a result lists from line 1 to its end with numbers and arrows."""
    if _ARROW not in result[:16]:
        return None
    lines = result.partition(_REMINDER)[0].split("\n")
    if len(lines) >= _MOST_LINES:
        return None
    texts: list[str] = []
    for line in lines:
        _, arrow, text = line.partition(_ARROW)
        if not arrow or len(text) >= _MOST_LINE_CHARS:
            return None
        texts.append(text)
    first, last = lines[0].partition(_ARROW)[0].strip(), lines[-1].partition(_ARROW)[0].strip()
    return "\n".join(texts) if (first, last) == ("1", str(len(lines))) else None


def lines_shown(result: str) -> tuple[int, int] | None:
    """Return the first and the last number of a numbered listing."""
    first = _NUMBERED.search(result, 0, 700)
    if not first:
        return None
    numbers = _NUMBERED.findall(result[-3000:])
    start, stop = int(first[1]), int(numbers[-1]) if numbers else 0
    return (start, stop) if 0 < start <= stop else None


def _edited(text: str, edits: tuple[tuple[str, str, bool], ...]) -> str | None:
    for old, new, everywhere in edits:
        if not old or old not in text:
            return None
        text = text.replace(old, new) if everywhere else text.replace(old, new, 1)
    return text
