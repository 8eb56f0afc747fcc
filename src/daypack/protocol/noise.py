"""Noise around a snapshot: what some models write between the separator and the JSON, or after it.

<<<CONTEXT>>>
**Context** (JSON):
{"version":2.3,…}
---

Noise is no text of a reply if a snapshot follows it within `MAX_NOISE` characters. Any other object is no reason to
take words away from the user: replies quote the separator.
"""

import re
from typing import Any, cast

MAX_NOISE = 80  # characters that are not white space
NEARBY = re.compile(rf"(?:\s*+\S){{0,{MAX_NOISE}}}+\s*+")
_KEYS = "version|runtime|memory|capabilities|active_task"
_COMMENTS = r"(?:\s++|//[^\n]*+|/\*.{0,200}?\*/)*+"
# An object of which one of the first keys is one of a snapshot, or that ends before its first key does.
_SNAPSHOT = re.compile(
    rf"""\{{{_COMMENTS}(?:["'“][^{{}}]{{0,300}}?["'“](?:{_KEYS})["'”]\s*+:|["'“]++(?:{_KEYS})|(?:{_KEYS})["'”]*+\s*+:"""
    rf"""|(?:["'“]\w*+["'”]?\s*+)?\Z)""",
    re.DOTALL,
)
_KEY = re.compile(rf"""["'“]?\b({_KEYS})["'”]?\s*+:""")
_STRING = re.compile(r'"[^"\n]*+"')
_WORDS = re.compile(r"\b[^\W\d_]{2,}+[ \t]++[^\W\d_]{2,}")
# Closing fences, lines and words such as "END JSON" or <<<END_CONTEXT>>>: marks, and the names of what was closed.
_CLOSING = re.compile(r"(?:[\s`~*_=#|<>/\\\-–—]|(?i:end|of|context|json|snapshot|block|eof)(?![^\W_]))*+\Z")


def is_snapshot(value: object) -> bool:
    """Return True if a JSON value has the memory or the runtime of a snapshot, itself or one level below."""
    if not isinstance(value, dict):
        return False
    fields = cast(dict[str, Any], value)
    return _has_state(fields) or any(_has_state(inner) for inner in fields.values())


def _has_state(value: object) -> bool:
    fields = cast(dict[str, Any], value) if isinstance(value, dict) else {}
    return isinstance(fields.get("memory"), dict) or isinstance(fields.get("runtime"), dict)


def torn_snapshot(reply: str, at: int) -> bool:
    """Return True if an object that is no JSON, or not closed, begins like a snapshot."""
    return _SNAPSHOT.match(reply, at) is not None


def is_example(part: str, *, closed: bool) -> bool:
    """Return True if the beginning of a snapshot is quoted in a sentence or a program: `{"version": …} comes first`.

    `part` is followed by words, or it is not `closed`. A snapshot has two of its keys, or no sentence in it.
    """
    if len({found[1] for found in _KEY.finditer(part)}) > 1:
        return False
    return closed or _WORDS.search(_STRING.sub("", part)) is not None


def closes_only(reply: str, at: int) -> bool:
    """Return True if nothing from `at` on is more than a closing mark: a fence, a line, the name of the section."""
    return len(reply) - at <= 2 * MAX_NOISE and _CLOSING.match(reply, at) is not None
