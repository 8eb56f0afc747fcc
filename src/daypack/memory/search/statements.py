"""Reads what an entry states: which value something has, and which value was given up for another.

    "The staging port is 5433 now."        port, staging    number      5433
    "We moved to Lyon in May."             home of Sam      place       Lyon
    "We switched from MySQL to Postgres."  given up by Sam: MySQL, for Postgres

Only plain statements are read: no questions, conditions, plans or opinions.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from daypack.text.english import CHANGE_VERBS
from daypack.text.sentences import sentences
from daypack.text.words import count_negations, stems_of
from daypack.types.memory import Entry

MAX_CHARS = 600  # of an entry that is read: a longer one is no plain statement
MAX_STEMS = 5  # that name a matter


class Statement(NamedTuple):
    """The value of a matter: whose it is, the stems that name it, the kind of the value, and the value.

    `certain`: the matter has one value at a time, or the sentence says that the value is new.
    """

    owner: str
    matter: frozenset[str]
    kind: str
    value: str
    certain: bool


class Replacement(NamedTuple):
    """A value that a person gave up, and the one that took its place, if it is named."""

    owner: str
    old: frozenset[str]
    new: frozenset[str]


_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|today|tomorrow|\d{4}-\d\d-\d\d"
_KINDS = (
    ("date", rf"{_DAY}|\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}|{_MONTH} \d{{1,4}}"),
    ("clock", r"\d{1,2}:\d\d(?: ?[ap]m)?|\d{1,2} ?[ap]m|noon|midnight"),
    ("address", r"[\w.+-]+@[\w-]+\.[\w.]+|https?://\S+|[~.]{0,2}/[\w./-]+"),
    ("version", r"v?\d+\.\d+(?:\.\d+)*"),
)
_KIND_PATTERNS = [(kind, re.compile(rf"(?<![\w/.])(?:{pattern})(?!\w)", re.IGNORECASE)) for kind, pattern in _KINDS]
_NUMBER = re.compile(r"(?P<sign>[$€£¥#]?)\s?\d[\d,.]*\s?(?P<unit>%|[^\W\d_]*)")
_NAME = re.compile(r"(?:the )?[A-Z][\w.+#'’-]*(?: [A-Z][\w.+#'’-]*){0,3}")
# States that exclude each other, a line each.
_STATES = tuple(
    frozenset(line.split())
    for line in (
        "failing failed passing green red broken fixed",
        "open closed merged resolved reopened",
        "pending done finished complete completed blocked cancelled canceled unfinished",
        "enabled disabled",
        "up down running stopped offline online",
        "single engaged married divorced widowed",
    )
)
_ONE_AT_A_TIME = re.compile(
    r"\b(?:favou?rite|name|nickname|birthday|e-?mail|phone|address|password|employer|boss|manager|capital|owner|status|"
    r"deadline|default|home ?town)\b",
    re.IGNORECASE,
)
_ANY_WORD = re.compile(r"\b(?:favou?rite|status|password|nickname)\b", re.IGNORECASE)  # whose value is any word
_NOT_PLAIN = re.compile(
    r"\?|\b(?:if|would|could|might|maybe|perhaps|should|suppose|imagine|think|guess|probably|used to|except|unless|"
    r"when|whether|(?:plan|want|hope|need|going|like)(?:s|ed|ned|ning|ing)? to|every|each|some|another|also|too|"
    r"one of)\b",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"(?:(?:update|correction|note|fyi|ok(?:ay)?|btw|by the way|actually|so|and|but|now|currently|as of [\w ]{1,20}|"
    r"from now on|please (?:note|remember)(?: that)?|remember(?: that)?)\b\s*[:,–—-]?\s+)+",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"[\s,]*\b(?:now|instead|these days|from now on|at the moment|currently|already|any ?more)\W*\Z", re.IGNORECASE
)
# What follows explains a statement, or is another one.
_CLAUSES = re.compile(
    r"[,;] (?:and|but|so|because|since|which|while|though) |;| (?:because|since|so that|after) |\s[–—-]\s",
    re.IGNORECASE,
)
_CHANGED = "|".join((*CHANGE_VERBS, "set", "bumped", "pushed"))
_MARKED = re.compile(rf"\b(?:now|no longer|any ?more|instead|correction|update|actually|{_CHANGED})\b", re.IGNORECASE)
_OWNED = re.compile(
    r"(?P<first>(?:my|our)\b)|(?P<name>[A-Z][\w-]+(?: [A-Z][\w-]+)?)['’]s\b|(?:the|this)\b", re.IGNORECASE
)
_STATED = re.compile(
    r"(?P<subject>[^,;:=]{2,60}?)(?:"
    rf"\s(?:(?:is|are|was|were|has|have)(?: been)? )?(?:now |just )?(?:{_CHANGED})(?: from .{{1,30}}?)? to"
    r"|\s(?:is|are|runs on|listens on|equals)(?: now| currently)?(?: on| at| in| called| named| due)?|\s=|:)"
    r"\s+(?P<value>\S.{0,40})",
    re.IGNORECASE,
)
_SET = re.compile(
    rf"\S+(?: have| has|['’]ve)?(?: just| now)? (?:{_CHANGED}) (?P<subject>(?:the|our|my|his|her|their) .{{2,50}}?)"
    r"(?: from .{1,30}?)? to (?P<value>\S.{0,40})",
    re.IGNORECASE,
)
_WHO = (
    r"(?P<who>I|We|[A-Z][\w-]+(?: [A-Z][\w-]+)?)(?:['’](?:m|re|ve)| am| are| is| have| has)?"
    r"(?: just| recently| now| currently)?"
)
_WHERE = r"(?: now)? (?P<value>(?:the )?[A-Z][\w'’-]+(?:,? [A-Z][\w'’-]+){0,3})"
_PERSONAL = (
    (
        "home",
        re.compile(
            rf"{_WHO} (?:(?:lives?|living|based)(?: now)? in|(?:moved|relocated)(?: from .{{1,30}}?)? to){_WHERE}"
        ),
    ),
    ("employer", re.compile(rf"{_WHO} (?:(?:works?|working)(?: now)? (?:at|for)|started (?:working )?at){_WHERE}")),
)
_TEAM_MOVED = re.compile(r"We\b.{0,20}\bmoved\b")  # to another tool as often as to another town
_THING = r"[\w.+#-]+(?: [A-Z0-9][\w.+#-]*)?"
_REPLACED = re.compile(
    rf"{_WHO} (?:(?:switched|moved|migrated|changed)(?: over)? from (?P<old>{_THING}) to (?P<new>{_THING})"
    rf"|(?:use|uses|using|run|runs|prefer|prefers) (?P<chosen>{_THING}) instead of (?P<dropped>{_THING})"
    rf"|no longer (?:use|run|prefer|drive|eat|drink)s? (?P<given_up>{_THING}))"
)


def read_statements(entry: Entry) -> tuple[Statement | Replacement, ...]:
    """Return what an entry states; nothing if it is long."""
    if len(entry.raw_entry) > MAX_CHARS:
        return ()
    return _read_text(entry.raw_entry, (entry.author or entry.role or "").casefold())


@lru_cache(4_096)  # the same entries are found again and again
def _read_text(text: str, speaker: str) -> tuple[Statement | Replacement, ...]:
    found: list[Statement | Replacement] = []
    for sentence in sentences(text):
        whole = sentence.text
        for clause in _CLAUSES.split(whole):
            lead = _LEAD.match(clause)
            stated = _read_clause(clause[lead.end() if lead else 0 :].strip(" .!;,"), speaker, whole)
            # Checked last: few clauses are statements.
            if stated and not _NOT_PLAIN.search(whole):
                found.append(stated)
    return tuple(found)


def _read_clause(text: str, speaker: str, sentence: str) -> Statement | Replacement | None:
    if replaced := _REPLACED.match(text):
        old = replaced["old"] or replaced["dropped"] or replaced["given_up"]
        new = replaced["new"] or replaced["chosen"] or ""
        return Replacement(_person(replaced["who"], speaker), _stems(old), _stems(new))
    for matter, pattern in _PERSONAL:
        if (found := pattern.match(text)) and not _TEAM_MOVED.match(text):
            return Statement(_person(found["who"], speaker), frozenset({matter}), "place", found["value"], certain=True)
    found = _SET.fullmatch(text) or _STATED.fullmatch(text)
    if found is None or count_negations(text):
        return None
    subject, value = found["subject"], _TAIL.sub("", found["value"])
    owned = _OWNED.match(subject)
    owner = speaker if owned and owned["first"] else (owned["name"] or "").casefold() if owned else ""
    matter = _stems(subject[owned.end() if owned else 0 :])
    kind, value = ("word", value.casefold()) if _ANY_WORD.search(subject) else _read_value(value)
    if not kind or not 0 < len(matter) <= MAX_STEMS:
        return None
    certain = kind != "name" or bool(_ONE_AT_A_TIME.search(subject) or _MARKED.search(sentence))
    return Statement(owner, matter, kind, value, certain)


def _read_value(text: str) -> tuple[str, str]:
    """Return the kind of a value and the value; no kind if two values of it could both be true."""
    for kind, pattern in _KIND_PATTERNS:
        if found := pattern.search(text):
            return kind, found[0].casefold()
    for number, states in enumerate(_STATES):
        if text in states:
            return f"state {number}", text
    if found := _NUMBER.match(text):
        return f"number {found['sign']}{found['unit'].casefold()}", found[0].strip(" .,").casefold()
    return ("name", text.casefold()) if _NAME.fullmatch(text) else ("", "")


def _person(who: str, speaker: str) -> str:
    return speaker if who in ("I", "We") else who.casefold()


def _stems(text: str) -> frozenset[str]:
    return frozenset(stems_of(text))
