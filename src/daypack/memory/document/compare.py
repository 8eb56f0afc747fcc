"""Compares the lines of a document with a finding: repeated, superseded, or a completed task.

Similar words are not enough: a different number or negation makes a different statement, and only a sentence that
reports a change may replace a line.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from daypack.memory.document.findings import Finding
from daypack.memory.document.markdown import bullet_of
from daypack.memory.document.patterns import DATE
from daypack.memory.summary.speakers import ROLES
from daypack.text.english import CHANGE_VERBS
from daypack.text.literals import literals
from daypack.text.reported_speech import OTHERS
from daypack.text.words import count_negations, stems_of

_BOX = re.compile(r"\[[ xX]\]\s+")
_EMPHASIS = re.compile(r"\*\*|__|`")
_OWNER = re.compile(r"\s*\([^()]{1,60}\)\s*\Z")
_CHANGED = re.compile(
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
_REPORTING_STEMS = frozenset(
    stem for word in (*ROLES.values(), OTHERS, "said stated asked proposed") for stem in stems_of(word)
)


class Line(NamedTuple):
    """A line without its bullet and checkbox, and the features it is compared by."""

    text: str
    stems: frozenset[str]
    numbers: frozenset[str]
    negated: bool


@lru_cache(maxsize=512)  # a document has at most some hundred lines, each compared with every finding
def read_line(line: str) -> Line:
    """Return the text and features of a line."""
    text = _EMPHASIS.sub("", _BOX.sub("", line[len(bullet_of(line)) :].lstrip())).strip()
    unquoted = [literal.text for literal in literals(text) if literal.kind != "quoted"]
    numbers = frozenset(literal for literal in unquoted if any(char.isdigit() for char in literal))
    return Line(text, frozenset(stems_of(text)), numbers, count_negations(text) > 0)


def repeats(finding: Finding, line: str) -> bool:
    """Return True if a line already says what a finding says."""
    old = read_line(line)
    texts = [finding.text]
    if finding.alias and finding.speaker:
        texts.append(finding.text.replace(finding.speaker, finding.alias))
    for text in texts:
        new = read_line(text)
        if new.text == old.text:
            return True
        if new.stems and new.stems <= old.stems and new.numbers <= old.numbers and new.negated == old.negated:
            return True
    return False


def supersedes(finding: Finding, line: str) -> float:
    """Return how surely a finding replaces a line: from 0 (different topic) to 1 (same topic)."""
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
    # One common word is weak evidence if the line is long.
    if share < _MIN_SHARE or (len(topic) == 1 and len(old.stems - old.numbers) > 6):
        return 0.0
    return share


def completes(sentence: str, task: str) -> bool:
    """Return True if a sentence that reports something done is about this task."""
    words = stems_of(sentence)
    wanted = stems_of(_OWNER.sub("", read_line(task).text)) - _REPORTING_STEMS
    if not wanted:
        return False
    share = len(wanted & words) / len(wanted)
    return share >= _MIN_SHARE or (share >= 0.5 and bool(words & {"don", "done", "finish", "complet"}))


def _same_value_slot(new: Line, old: Line) -> bool:
    """Return True if both state the value of the same single-valued attribute: a name, a birthday, a favourite."""
    ours, theirs = _ONE_VALUE.match(new.text), _ONE_VALUE.match(old.text)
    if ours is None or theirs is None or ours["key"].casefold() != theirs["key"].casefold():
        return False
    return not new.numbers and not old.numbers and new.negated == old.negated


def _topic(text: str, speaker: str) -> frozenset[str]:
    """Return the stems that name what changed: before the verb or, if only a person is there, after it."""
    match = _CHANGED.search(text)
    if match is None:
        return frozenset()
    people = stems_of(speaker) | _REPORTING_STEMS
    before = _words(text[: match.start()]) - people
    if before or match["cue"].lower() == "now":
        return frozenset(before)
    value = _VALUE.search(text, match.end()) if match["cue"].lower() != "no longer" else None
    return frozenset(_words(text[match.end() : value.start() if value else None]) - people)


def _words(text: str) -> set[str]:
    return stems_of(DATE.sub(" ", text))
