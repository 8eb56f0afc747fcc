"""Whether a name can be seen: one of invisible characters looks like nothing, or like another name."""

import re
import unicodedata

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
