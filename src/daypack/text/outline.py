"""The outline of a long text: the names in it, in the order they first occur, with the line numbers the text shows.

    430→func apply(repo_root string)      ->   430 repo_root
    app/models.py:12: class UserModel     ->   12 app/models.py UserModel

A reader who has only the outline knows what the text is about, how its names are spelled and where to look again.
"""

import re
from collections.abc import Iterable, Iterator

from daypack.text.literals import MAX_QUOTED_CHARS, literals

_NAMES = frozenset({"path", "url", "id", "version"})
_NUMBERED = re.compile(r"\s*(\d{1,6})(?=[→\t:|│])|\s*[^\s:]{1,200}:(\d{1,6})[:\s]")  # cat -n, grep -n
_NO_NAME = re.compile(r"\s|\\[nrt]")  # quoted code, and escapes
_MAX_READ = 200_000  # characters; what follows is found by search


def outline(text: str, max_chars: int) -> str:
    """Return the names of a text in at most so many characters; where they are too many, spread over the whole text."""
    lines = list(_new_names(text[:_MAX_READ].split("\n")))
    whole = sum(len(line) + 1 for line in lines)
    if whole <= max_chars:
        return " ".join(lines)
    kept: list[str] = []
    passed = used = 0
    for line in lines:
        passed += len(line) + 1
        if used + len(line) + 1 <= max_chars * passed // whole:
            used += len(line) + 1
            kept.append(line)
    return " ".join(kept)


def names_in(text: str) -> Iterator[str]:
    """Return the names of a text: paths, addresses, identifiers and versions, each time they occur."""
    for literal in literals(text[:_MAX_READ]):
        name = literal.text
        if literal.kind in _NAMES and 3 <= len(name) <= 2 * MAX_QUOTED_CHARS and not _NO_NAME.search(name):
            yield name


def _new_names(lines: Iterable[str]) -> Iterator[str]:
    """Return for each line the names that no line before it has, after its number."""
    seen: set[str] = set()
    for line in lines:
        new = [name for name in dict.fromkeys(names_in(line)) if name not in seen]
        if new:
            seen.update(new)
            number = _NUMBERED.match(line)
            found = number and (number[1] or number[2])
            yield " ".join([found, *new] if found and found not in new else new)
