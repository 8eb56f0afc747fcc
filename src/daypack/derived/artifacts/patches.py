"""Patches: which files a patch body names, in the envelope of `apply_patch` and as a unified diff."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from daypack.derived.artifacts.tool_arguments import Verb

BEGIN = "*** Begin Patch"
_MARK = re.compile(r"^\*\*\* (Add File|Update File|Delete File|Move to|Rename to): ?(.+)$", re.MULTILINE)
_SIDES = re.compile(r"^--- ([^\t\n\r]+)[^\n]*\n\+\+\+ ([^\t\n\r]+)", re.MULTILINE)
_GIT = re.compile(r"^(rename from|rename to|copy to) (.+)$", re.MULTILINE)
_VERBS: dict[str, Verb] = {"Add File": "created", "Update File": "written", "Delete File": "deleted"}
_MOVES = ("Move to", "Rename to")


class Touch(NamedTuple):
    """Something done to one file, as far as the call alone tells."""

    verb: Verb
    path: str
    content: str | None = None  # the whole text after it
    edits: tuple[tuple[str, str, bool], ...] | None = None  # old, new, everywhere
    start: int = 0
    stop: int = 0


def read_patch(text: str) -> list[Touch]:
    """Return what a patch does, in its order."""
    if _MARK.search(text):
        return list(_read_envelope(text))
    return list(_read_diff(text))


def _read_envelope(text: str) -> Iterator[Touch]:
    marks = list(_MARK.finditer(text))
    for at, mark in enumerate(marks):
        follower = marks[at + 1] if at + 1 < len(marks) else None
        path = mark[2].strip()
        if mark[1] in _MOVES:
            yield Touch("created", path)
        elif mark[1] == "Update File" and follower and follower[1] in _MOVES:
            yield Touch("deleted", path)
        else:
            stop = follower.start() if follower else len(text)
            content = _added(text[mark.end() : stop]) if mark[1] == "Add File" else None
            yield Touch(_VERBS[mark[1]], path, content)


def _added(body: str) -> str | None:
    """Return the text of a new file; None when the body has anything but added lines."""
    lines = [line for line in body.strip("\r\n").split("\n") if not line.startswith("*** ")]
    if not all(line.startswith("+") for line in lines):
        return None
    return "".join(f"{line[1:]}\n" for line in lines)


def _read_diff(text: str) -> Iterator[Touch]:
    """Read a unified diff: `/dev/null` on one side tells a new or a deleted file."""
    for before, after in _SIDES.findall(text):
        old, new = _unprefixed(before), _unprefixed(after)
        if new == "/dev/null":
            yield Touch("deleted", old)
        else:
            yield Touch("created" if old == "/dev/null" else "written", new)
    for side, name in _GIT.findall(text):
        yield Touch("deleted" if side == "rename from" else "created", name.strip())


def _unprefixed(name: str) -> str:
    path = name.strip()
    return path[2:] if path.startswith(("a/", "b/")) else path
