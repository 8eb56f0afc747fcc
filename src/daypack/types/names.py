"""Names that people type, mistyped or shortened: the nearest names that exist, and those that begin so."""

from collections.abc import Iterable

from daypack.errors import BadInput

MIN_ID_CHARS = 4  # of an id that consists of digits; fewer would often fit another
_MOST_LISTED = 5
_MOST = 3
_SIMILAR = 0.6  # ratio of difflib; below that a suggestion is a guess
_CLOSE = 0.1  # names so much less similar than the best are not suggested beside it


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
