"""A name on one line: whatever its owner put into it, it writes no line of its own and controls no terminal.

Names are those of folders, files, models, tools, people and sessions, titles and tags. In a prefix, a fence, a stub, a
pack or a terminal a line break in one of them would look like a line of daypack.
"""

import re

# What a terminal or a reader of text interprets, beside LF and TAB: C0, DEL, C1, line and paragraph separators,
# directions, deprecated and interlinear controls, tags, the byte order mark, lone surrogates. Joiners stay: some
# scripts and emoji need them.
CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
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
