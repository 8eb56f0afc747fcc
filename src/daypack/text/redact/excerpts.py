"""Excerpts of texts with secrets: the whole text is redacted before a part of it is cut out."""

import re

from daypack.text.redact.redact import Redacted, redact

_MARKER = re.compile(r"\[redacted:[a-z0-9-]{1,40}\]")


def redact_excerpt(text: str, start: int, stop: int) -> Redacted:
    """Return a part of a text without secrets, and the kinds of those in the whole text.

    Half a secret would not be recognised, so the text is redacted first; positions within a secret move to its marker.
    """
    shown, kinds = redact(text)
    if kinds:
        start, stop = _moved(start, text, shown), _moved(stop, text, shown)
    return Redacted(shown[start:stop], kinds)


def _moved(at: int, text: str, redacted: str) -> int:
    """Return the position in the redacted text of a position in the text; within a secret, the start of its marker."""
    before = done = 0  # positions in text and redacted text up to which both were compared
    for marker in _MARKER.finditer(redacted):
        kept = redacted[done : marker.start()]
        if at <= before + len(kept):
            return done + at - before
        after = _MARKER.search(redacted, marker.end())
        following = redacted[marker.end() : after.start() if after else None]
        before, done = before + len(kept), marker.start()
        secret = text.find(following, before) if after else len(text) - len(following)
        if at < secret or secret < before:
            return done
        before, done = secret, marker.end()
    return done + at - before
