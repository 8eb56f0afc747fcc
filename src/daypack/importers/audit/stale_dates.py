"""Finds plans and deadlines whose day has passed, and relative days of which no day is known.

A day is computed from the words and from when the memory was written; English, and the plain words for "tomorrow" and
"next week" of German, French, Spanish, Chinese and Japanese. A sentence that reports what was is not a plan.
"""

import re
from collections.abc import Sequence
from datetime import date, timedelta

from daypack.importers.audit.findings import Finding
from daypack.importers.stores.records import StoredMemory
from daypack.memory.document.patterns import DATE
from daypack.text.sentences import sentences

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "a few": 7, "ten": 10}
_UNITS = {"day": 1, "week": 7, "month": 31, "year": 366}
_SOON = re.compile(
    r"\b(?:(?P<tomorrow>(?:the )?day after tomorrow|tomorrow|tonight|later today|this evening)"
    rf"|next (?P<next>week|weekend|month|year|{'|'.join(_DAYS)})|this coming (?P<coming>week|weekend|{'|'.join(_DAYS)})"
    r"|in (?P<count>\d{1,3}|a few|an?|one|two|three|four|five|six|ten) (?P<unit>day|week|month|year)s?"
    r"(?! (?:of|at|from|after|before|or)\b|['’]))\b"
    r"|(?P<foreign>\bübermorgen\b|\bnächste Woche\b|\bdemain\b|\bla semaine prochaine\b|\bla próxima semana\b"
    r"|明天|明日|后天|下周|下週|来週|下个月|来月)",
    re.IGNORECASE,
)
_PLAN = re.compile(
    r"\b(?:will|['’]ll|going to|plans? (?:to|on|for)|planning|planned for|intends? to|wants? to|needs? to|has to|"
    r"have to|must|should|scheduled|due|deadline|expires?|upcoming|appointment|meeting|trip|flight|exam|"
    r"launch(?:es|ing)?|starts?|ends?|begins?|leaves?|arrives?|is (?:on|at)|are (?:on|at)|by|until|before"
    r"|\w+ing)\b|将|要|会|予定|する",
    re.IGNORECASE,
)
_FIRM = re.compile(  # for a date in figures: only words that make it a day to come
    r"\b(?:will|['’]ll|going to|plans? (?:to|on|for)|planning to|scheduled|due|deadline|expires?|upcoming|"
    r"must be (?:done|finished|ready|sent|paid))\b",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r"\b(?:was|were|had|did|said|asked|went|used to|whenever|every|each|usually|always|if|since|ago|last|"
    r"yesterday|never|not|n['’]t|finished|completed|done|would|postponed from|moved from|copyright|published|released|"
    r"born|founded|version|tradition\w*|annual\w*|typically)\b|n['’]t\b",
    re.IGNORECASE,
)
# What happened on a day: "found on May 6". A plan may read so too: "scheduled on May 6".
_HAPPENED = re.compile(
    r"\b(?:\w{3,}ed|found|met|held|began|got|made|sent|bought|took|wrote|built)\b[^.;,]{0,80}\b(?:on|in)\s+\Z",
    re.IGNORECASE,
)
_ARRANGED = re.compile(r"\b(?:re)?(?:scheduled|planned|booked|expected|needed|based|arranged|set)\b", re.IGNORECASE)
_RATE = ("a", "an", "one")  # "days in a year" is no time to come; "will be ready in a week" is
_QUESTION = ("?", "？")
_FIGURES = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_WORDS = re.compile(
    r"(?:(?P<d1>\d{1,2})(?:st|nd|rd|th)?(?: of)? )?(?P<month>[A-Za-z]{3,9})\.?"
    r"(?: (?P<d2>\d{1,2})(?:st|nd|rd|th)?(?!\d))?(?:,? (?P<year>\d{4}))?"
)
_LEEWAY = timedelta(days=1)


def find_stale(memories: Sequence[StoredMemory], today: date) -> list[Finding]:
    """Return the memories with a plan or deadline in the past, or with a relative day and no date."""
    found: list[Finding] = []
    for at, memory in enumerate(memories):
        if memory.kind == "prompt":
            continue
        written = _day(memory.written_at)
        for sentence in sentences(memory.text):
            if problem := _judge(sentence.text, written, today):
                found.append(Finding(kind="stale date", at=at, problem=problem))
                break
    return found


def _judge(text: str, written: date | None, today: date) -> str:
    soon = _SOON.search(text)
    if text.rstrip().endswith(_QUESTION) or _REPORTED.search(text):
        return ""
    is_rate = soon and (soon["count"] or "").lower() in _RATE
    if soon and (_FIRM if is_rate else _PLAN).search(text):
        if written is None:
            return f"{soon[0]!r} without a date: the store does not say when it was written"
        due = written + _distance(soon, written)
        return f"{soon[0]!r} was {due.isoformat()}" if due + _LEEWAY < today else ""
    stated = DATE.search(text)
    if stated is None or not _FIRM.search(text):
        return ""
    happened = _HAPPENED.search(text, 0, stated.start())
    if happened and not _ARRANGED.search(happened[0]):
        return ""
    due_day = _read_date(stated[0], written)
    if due_day is None or due_day + _LEEWAY >= today or (written is not None and due_day < written):
        return ""
    return f"planned for {due_day.isoformat()}, which has passed"


def _distance(soon: re.Match[str], written: date) -> timedelta:
    if word := soon["tomorrow"]:
        return timedelta(days=2 if "after" in word.lower() else 0 if word.lower() != "tomorrow" else 1)
    if word := soon["next"] or soon["coming"]:
        word = word.lower()
        if word in _DAYS:  # "next Friday" may be the one after: the later day is taken
            return timedelta(days=(_DAYS.index(word) - written.weekday()) % 7 + 7)
        return timedelta(days={"week": 13, "weekend": 14, "month": 61, "year": 730}[word])
    if soon["count"]:
        count = soon["count"].lower()
        return timedelta(days=(int(count) if count.isdigit() else _NUMBERS[count]) * _UNITS[soon["unit"].lower()])
    return timedelta(days=61 if "月" in soon[0] else 14)


def _read_date(text: str, written: date | None) -> date | None:
    """Return a date in figures or English words; one without a year is the first after it was written."""
    try:
        if figures := _FIGURES.search(text):
            return date(*map(int, figures.groups()))
        words = _WORDS.search(text)
        if words is None or words["month"][:3].lower() not in _MONTHS:
            return None
        month = _MONTHS.index(words["month"][:3].lower()) + 1
        day = int(words["d1"] or words["d2"] or 28)
        if words["year"]:
            return date(int(words["year"]), month, day)
        if written is None:
            return None
        return date(written.year + ((month, day) < (written.month, written.day)), month, day)
    except ValueError:
        return None


def _day(moment: str) -> date | None:
    try:
        return date.fromisoformat(moment[:10])
    except ValueError:
        return None
