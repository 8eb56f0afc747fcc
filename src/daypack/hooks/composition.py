"""Composes the text of a hook from sections of lines, in the order of their worth, until the host's limit is reached.

<note id="1f3a9c02" name="daypack: …">
…
</note 1f3a9c02>

Everything is fenced: what is quoted is no instruction, and what daypack added is never captured as new.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from daypack.hooks.call import HookCall
from daypack.hooks.hosts import HOSTS
from daypack.text.estimate import estimate_tokens
from daypack.text.injected import Fence, mark_for, name_attribute, wrap

SEPARATOR = "\n\n"


class Room:
    """What a host takes at an event: so many characters or bytes, and at most so many tokens.

    `used` is a text that is already in it.
    """

    def __init__(self, call: HookCall, max_tokens: int, used: str = "") -> None:
        self._host = HOSTS[call.host]
        self._event = call.event
        self._max_tokens = max_tokens
        self._used = used + SEPARATOR if used else ""

    def fits(self, text: str) -> bool:
        """Return True if the host shows a text whole after what is there, and it costs no more than it may."""
        whole = self._used + text
        return self._host.fits(self._event, whole) and estimate_tokens(whole) <= self._max_tokens


class Section(NamedTuple):
    """Lines under a heading; without lines there is no heading.

    The lines of the section with the smallest `worth` are taken first, and of a section the first ones. `more` is shown
    after a section of which lines are missing, and gets their number.
    """

    heading: str
    lines: Sequence[str]
    worth: int = 0
    more: str = ""


class Fenced(NamedTuple):
    """How a text is shown: the fence, its name, and the sentences before the rest."""

    fence: Fence
    name: str
    opening: str = ""

    def show(self, parts: Iterable[str]) -> str:
        """Return the parts of a text, fenced."""
        text = SEPARATOR.join(part for part in (self.opening, *parts) if part)
        return wrap(self.fence, mark_for(text), text, name_attribute(self.name))


def compose(sections: Sequence[Section], shown: Fenced, room: Room) -> str:
    """Return the fenced text with as many lines as fit; "" if none does."""
    taken = [0] * len(sections)
    text = ""
    for number in sorted(range(len(sections)), key=lambda at: sections[at].worth):
        low, high = 0, len(sections[number].lines)
        while low < high:  # the most lines that fit, by halves
            taken[number] = (low + high + 1) // 2
            longer = shown.show(map(_part, sections, taken))
            if room.fits(longer):
                low, text = taken[number], longer
            else:
                high = taken[number] - 1
        taken[number] = low
    return text


def _part(section: Section, count: int) -> str:
    if not count:
        return ""
    missing = len(section.lines) - count
    more = section.more.replace("{}", f"{missing:,}") if missing else ""
    return "\n".join(filter(None, (section.heading, *section.lines[:count], more)))


def bullets(texts: Iterable[str]) -> list[str]:
    """Return texts as the lines of a list; further lines of a text are indented."""
    stripped = (text.strip() for text in texts)
    return ["- " + "\n  ".join(text.splitlines()) for text in stripped if text]
