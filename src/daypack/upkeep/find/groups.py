"""Groups results: a few of each session, the same once; and the short names of sessions."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from daypack.history.sessions import CHILD
from daypack.upkeep.find.ranking import Ranked

_LEAST_SAME = 24  # characters of a line; that shorter ones are equal says nothing
_LEAST_SHORT = 8  # characters of a short name


class Grouped(NamedTuple):
    """A result, how many further ones of its session are left out, and how many other sessions have it too."""

    ranked: Ranked
    more: int = 0
    same: int = 0


def group(ranked: Sequence[Ranked], limit: int, per_session: int) -> list[Grouped]:
    """Return the best results: at most so many of each session, a line of a session once, a message once.

    A message may be in several sessions: agents copy it where a session is resumed. The last result of a session counts
    those left out.
    """
    kept: list[Ranked] = []
    counts: dict[tuple[str, str], int] = {}
    shown: dict[tuple[str, str], int] = {}
    last: dict[tuple[str, str], int] = {}
    lines: set[tuple[tuple[str, str], str]] = set()
    copies: dict[str, set[tuple[str, str]]] = {}
    for result in ranked:
        key, line = result.candidate.session.key, _line_of(result)
        counts[key] = counts.get(key, 0) + 1
        if result.text in copies:
            copies[result.text].add(key)
        elif len(kept) < limit and shown.get(key, 0) < per_session and (key, line) not in lines:
            shown[key] = shown.get(key, 0) + 1
            last[key] = len(kept)
            kept.append(result)
            if len(line) >= _LEAST_SAME:
                lines.add((key, line))
                copies[result.text] = {key}
    more = {at: counts[key] - shown[key] for key, at in last.items()}
    return [Grouped(result, more.get(at, 0), len(copies.get(result.text, (0,))) - 1) for at, result in enumerate(kept)]


def _line_of(result: Ranked) -> str:
    return " ".join(result.text[result.passage.start : result.passage.stop].split())


class ShortNames:
    """The shortest starts of names that commands accept: those of no other session of the agent."""

    def __init__(self, sessions: Iterable[tuple[str, str]]) -> None:
        self._names: dict[str, list[str]] = {}
        for agent, name in sessions:
            self._names.setdefault(agent, []).append(name)

    def __call__(self, agent: str, name: str) -> str:
        """Return the start of a name; the whole name if that is hardly longer."""
        children = f"{name}{CHILD}"  # the start of both names means the parent
        others = [other for other in self._names.get(agent, ()) if other != name and not other.startswith(children)]
        for length in range(_LEAST_SHORT, len(name) * 3 // 4 + 1):
            start = name[:length]
            if name[length - 1].isalnum() and not any(other.startswith(start) for other in others):
                return start
        return name
