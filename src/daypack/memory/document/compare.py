"""Sameness: whether a line says what another said already, what it said before, or that it is done.

Words that are alike are not enough: a number or a "not" that differs makes another statement, and only a sentence that
says that something changed may take the place of what was there.
"""

import re
from typing import NamedTuple

from daypack.memory.document.findings import Finding
from daypack.memory.document.markdown import bullet_of
from daypack.memory.document.patterns import DATE
from daypack.memory.summary.summary import ROLES
from daypack.text.english import CHANGE_VERBS
from daypack.text.literals import literals
from daypack.text.reported_speech import OTHERS
from daypack.text.words import count_negations, stems_of

_BOX = re.compile(r"\[[ xX]\]\s+")
_SIGNS = re.compile(r"\*\*|__|`")
_OWNER = re.compile(r"\s*\([^()]{1,60}\)\s*\Z")
_MOVED = re.compile(
    r"\b(?:(?:has|have|had|was|were|is|are|been|just|will be)\s+)*"
    rf"(?P<cue>{'|'.join(CHANGE_VERBS)}|no longer|now)\b",
    re.IGNORECASE,
)
_VALUE = re.compile(r"\b(?:to|from|by|with|until|as|because|instead)\b", re.IGNORECASE)
_LIVES = re.compile(r"(?P<who>.{1,60}?) (?:lives? in|(?:has |have )?(?:just )?moved to) (?=[A-Z])")
_ONE_VALUE = re.compile(
    r"(?P<key>.{1,60}?['’]s (?:favou?rite(?: [a-z]+){1,2}|(?:full |first |last )?name|birthday|email|phone(?: number)?|"
    r"address)) (?:is|was) ",
    re.IGNORECASE,
)
_MIN_SHARE = 0.6
_FRAME = frozenset(stem for word in (*ROLES.values(), OTHERS, "said stated asked proposed") for stem in stems_of(word))


class Line(NamedTuple):
    """A line without its bullet and box, and what it is compared by."""

    text: str
    stems: frozenset[str]
    numbers: frozenset[str]
    denies: bool


def read_line(line: str) -> Line:
    """Return a line of a document as it is compared."""
    text = _SIGNS.sub("", _BOX.sub("", line[len(bullet_of(line)) :].lstrip())).strip()
    found = [one for one in literals(text) if one.kind != "quoted"]
    numbers = frozenset(one.text for one in found if any(sign.isdigit() for sign in one.text))
    return Line(text, frozenset(stems_of(text)), numbers, count_negations(text) > 0)


def repeats(finding: Finding, line: str) -> bool:
    """Whether a line says already what was found."""
    old = read_line(line)
    texts = [finding.text]
    if finding.alias and finding.speaker:
        texts.append(finding.text.replace(finding.speaker, finding.alias))
    for text in texts:
        new = read_line(text)
        if new.text == old.text:
            return True
        if new.stems and new.stems <= old.stems and new.numbers <= old.numbers and new.denies == old.denies:
            return True
    return False


def supersedes(finding: Finding, line: str) -> float:
    """Return how surely what was found takes the place of a line: 0 for another matter, 1 for the same one."""
    new, old = read_line(finding.text), read_line(line)
    if _same_value_slot(new, old):
        return 1.0
    if not finding.update:
        return 0.0
    lives, lived = _LIVES.match(new.text), _LIVES.match(old.text)
    if lives and lived:
        return float(lives["who"] == lived["who"])
    topic = _topic(new.text, finding.speaker)
    if not topic:
        return 0.0
    share = len(topic & old.stems) / len(topic)
    # One word in common is little where a line says much.
    if share < _MIN_SHARE or (len(topic) == 1 and len(old.stems - old.numbers) > 6):
        return 0.0
    return share


def completes(said: str, task: str) -> bool:
    """Whether a sentence about something that was done is about a task."""
    words = stems_of(said)
    wanted = stems_of(_OWNER.sub("", read_line(task).text)) - _FRAME
    if not wanted:
        return False
    share = len(wanted & words) / len(wanted)
    return share >= _MIN_SHARE or (share >= 0.5 and bool(words & {"don", "done", "finish", "complet"}))


def _same_value_slot(new: Line, old: Line) -> bool:
    """Whether both give the one value that something can have: a name, a birthday, what somebody likes best."""
    mine, other = _ONE_VALUE.match(new.text), _ONE_VALUE.match(old.text)
    if mine is None or other is None or mine["key"].casefold() != other["key"].casefold():
        return False
    return not new.numbers and not old.numbers and new.denies == old.denies


def _topic(text: str, speaker: str) -> frozenset[str]:
    """Return the words that name what changed: before the change, or, when only a person stands there, behind it."""
    found = _MOVED.search(text)
    if found is None:
        return frozenset()
    people = stems_of(speaker) | _FRAME
    before = _words(text[: found.start()]) - people
    if before or found["cue"].lower() == "now":
        return frozenset(before)
    value = _VALUE.search(text, found.end()) if found["cue"].lower() != "no longer" else None
    return frozenset(_words(text[found.end() : value.start() if value else None]) - people)


def _words(text: str) -> set[str]:
    return stems_of(DATE.sub(" ", text))
