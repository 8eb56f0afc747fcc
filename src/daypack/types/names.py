"""Names: on one line and visible; and those that people type, mistyped or shortened.

Names are those of folders, files, models, tools, people and sessions, titles and tags. In a prefix, a fence, a stub, a
pack or a terminal a line break in one of them would look like a line of daypack. A name of invisible characters looks
like nothing, or like another name.
"""

import re
import unicodedata
from collections.abc import Iterable

from daypack.errors import BadInput

MIN_ID_CHARS = 4  # of an id that consists of digits; fewer would often fit another
_MOST_LISTED = 5
_MOST = 3
_SIMILAR = 0.6  # ratio of difflib; below that a suggestion is a guess
_CLOSE = 0.1  # names so much less similar than the best are not suggested beside it
# What a terminal or a reader of text interprets, beside LF and TAB: C0, DEL, C1, line and paragraph separators,
# directions, deprecated and interlinear controls, tags, the byte order mark, lone surrogates. Joiners stay: some
# scripts and emoji need them.
CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
# Characters that look like nothing and that no name needs, beside controls and format characters: fillers, the braille
# blank, characters that a renderer ignores. Variation selectors are not among them: emoji and some Han names have them.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\ufff0-\uffff\U0001d159\U0001d173-\U0001d17a"
    "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]"
)
_KINDS = {
    "Cc": "a control character",
    "Cf": "an invisible character",
    "Cs": "a lone surrogate",
    "Zl": "a line separator",
    "Zp": "a line separator",
}
_MARKS = ("Mn", "Mc", "Me")  # they change the character before them
_SEEN = ("L", "N", "P", "S")  # categories that begin so have a shape of their own
_BREAKS = {"\n": "\\n", "\t": "\\t"}


def escape_controls(text: str) -> str:
    """Return a text with control characters escaped; line breaks and tabs stay."""
    return text if text.isascii() and text.isprintable() else CONTROLS.sub(lambda found: _escape(found[0]), text)


def one_line(text: str) -> str:
    """Return a text as one line, with control characters escaped."""
    if text.isascii() and text.isprintable():
        return text
    escaped = escape_controls(text)
    for character, shown in _BREAKS.items():
        escaped = escaped.replace(character, shown)
    return escaped


def _escape(character: str) -> str:
    code = ord(character)
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def invisible_in(name: str) -> str:
    """Return what of a name cannot be seen, as the rest of a sentence about it; "" if all of it can."""
    for character in name:
        if kind := _KINDS.get(unicodedata.category(character)):
            return f"has {kind}"
        if _BLANK.match(character):
            return f"has an invisible character (U+{ord(character):04X})"
    if name and unicodedata.category(name[0]) in _MARKS:
        return "begins with a mark that belongs to a character before it"
    return "" if is_visible(name) else "has no visible character"


def is_visible(text: str) -> bool:
    """Return True if at least one character of a text has a shape of its own."""
    return any(unicodedata.category(char)[0] in _SEEN and not _BLANK.match(char) for char in text)


def nearest(name: str, known: Iterable[str], *, similar: float = _SIMILAR) -> list[str]:
    """Return the known names that resemble a name, the most similar first; case and leading dashes do not count."""
    from difflib import SequenceMatcher  # noqa: PLC0415 — only after a mistake

    matcher = SequenceMatcher(b=_plain(name), autojunk=False)
    ratios: dict[str, float] = {}
    for other in known:
        matcher.set_seq1(_plain(other))
        if matcher.real_quick_ratio() >= similar and matcher.quick_ratio() >= similar:
            ratios[other] = matcher.ratio()
    least = max(similar, max(ratios.values(), default=0) - _CLOSE)
    found = [other for other, ratio in ratios.items() if ratio >= least]
    return sorted(found, key=lambda other: -ratios[other])[:_MOST]


def _plain(name: str) -> str:
    return name.lstrip("-").lower()


def did_you_mean(name: str, known: Iterable[str], *, similar: float = _SIMILAR) -> str:
    """Return "did you mean log?", or "" if no known name resembles the name."""
    found = nearest(name, known, similar=similar)
    return f"did you mean {' or '.join(found)}?" if found else ""


def complete(start: str, known: Iterable[str], *, what: str, min_chars: int = MIN_ID_CHARS) -> str | None:
    """Return the known name that is `start` or, alone, begins with it; None if there is none.

    Raises BadInput if several names begin with it; `what` says in the plural what they are.
    """
    names = list(known)
    if start in names:
        return start
    found = [name for name in names if name.startswith(start)] if len(start) >= min_chars else []
    if len(found) > 1:
        listed = ", ".join(found[:_MOST_LISTED]) + (" …" if len(found) > _MOST_LISTED else "")
        hint = f"use more characters: {listed}"
        raise BadInput(f"{len(found)} {what} begin with {start!r}", operation="find", place="name", hint=hint)
    return found[0] if found else None
