"""Find lines in a memory that belong to one session: dated entries, compaction summaries, thinking, open work.

    ## Session 41308070          everything under it
    - 2026-02-14: fixed the build
    <thinking>I should …</thinking>

Only a date at the start of a line or heading counts: a date in a fact ("the lease ends on 2027-01-31") does not.
"""

import re
from typing import Literal

from daypack.text.english import MODALS, is_past
from daypack.text.statements.passages import Document, Span

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DAY = (
    r"(?:\d{4}-\d\d?-\d\d?|\d{4}/\d\d?/\d\d?|\d\d?\.\d\d?\.\d{4}"
    rf"|\d\d?\s+{_MONTH}(?:\s+\d{{4}})?|{_MONTH}\s+\d\d?(?!\d))"
)
_LEAD = r"^[\s>]*(?:[-*+•]|\d{1,3}[.)])?\s*[\[(*_`]*"
_DATED = re.compile(rf"{_LEAD}{_DAY}[T\d:.\sZ]*[\])*_`]*\s*(?:[:—–-]|$|[a-z])", re.IGNORECASE)
_HEADED = re.compile(
    rf"\b(?:session|compaction|conversation|chat|daily|standup|progress|changelog|work)\b.*\b"
    rf"(?:\d{{4,}}|history|log|logs|notes|summary|summaries|recap|update|updates)\b|^{_DAY}\b|\b{_DAY}$"
    r"|^(?:recent |last |past |current |previous )?sessions?\s*(?:$|[#\d:(—–-])"
    r"|^(?:today|yesterday|this week|recent(?: work| activity)?)\b"
    r"|^(?:current |active )?(?:task|todo|to-do|in progress|next steps?|pending)s?\b",
    re.IGNORECASE,
)
_THINKING = r"\s*(?:think|thinking|thought|thoughts|reasoning|reflection|scratchpad)\s*>"
_TAG = re.compile(rf"</?{_THINKING}", re.IGNORECASE)
# A tag that is never closed reaches to the next blank line or heading.
_THOUGHT = re.compile(rf"<{_THINKING}(?:.*?</{_THINKING}|.*?(?=\n\s*\n|\n#|\s*\Z))", re.IGNORECASE | re.DOTALL)
# Actions. Decisions and preferences may be facts, so their verbs are excluded.
_DID = (
    r"(?:(?!need|decided|agreed|preferred|used|named|based|owned|hired)[a-z]{2,}ed|read|ran|made|wrote|found|sent"
    r"|went|did|took|got|saw|told|said|tried|began|gave|met|looked|spent|broke)"
)
_NARRATED = re.compile(
    rf"{_LEAD}(?:"
    r"the (?:user|human|operator|customer|assistant)(?: \w+)? (?:asked|wanted|requested|said|mentioned|reported"
    r"|confirmed|tried|then)\b|the conversation\b"
    rf"|(?:(?:so|then|now|next|first|finally|earlier),? )?(?:i|we)(?:'ve|’ve)? "
    rf"(?:(?:then|also|just|already|have|had) )*{_DID}\b"
    r"|(?:i should|i'll|let me|okay,|ok,)(?= )"
    r"|(?:fixed|added|removed|refactored|implemented|debugged|tested|merged|finished|completed|investigated|migrated"
    r"|updated|created|wrote|discussed|ordered) (?:the|an?|two|three|some|all|it)\b"
    r")",
    re.IGNORECASE,
)
# "On Tuesday we started": about a single day, if its first verb is in the past.
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_ON_A_DAY = re.compile(
    rf"{_LEAD}(?:(?:on |last |this )?{_WEEKDAY}\b|in the (?:morning|afternoon|evening)\b|earlier\b|later\b)"
    r"|\b(?:last (?:night|week)|this (?:morning|afternoon|evening|week)|(?:days?|hours?|weeks?) ago)\b",
    re.IGNORECASE,
)
_NOT_PAST = MODALS | frozenset(["is", "are", "be", "has", "have", "been", "to"])
_STATE = re.compile(
    rf"{_LEAD}(?:\[[ x~]\]|todo\b|to do:|pending\b|next(?: steps?)?:|in progress\b|blocked\b|wip\b|working on\b|status:"
    r"|currently\b|right now\b|at the moment\b|today\b|yesterday\b|this morning\b|this session\b|last session\b)",
    re.IGNORECASE,
)
_STATE_WITHIN = re.compile(
    r"\b(?:currently|right now|at the moment|in this session|this session|in progress|still pending|just now"
    r"|so far today|today (?:i|we)|tomorrow)\b"
    # Test results are only valid for a day.
    r"|\b(?:tests?|checks?|builds?|suite)\b[^.;]{0,40}\b(?:pass|passes|passed|fail|fails|failed|green|red)\b"
    r"|\b\d+ (?:passed|failed|failures?)\b",
    re.IGNORECASE,
)

SessionReason = Literal["dated", "headed", "thinking", "narrative", "state"]


class SessionEntry(Span, frozen=True):
    """Lines that belong to a session, and the reason for that judgement."""

    reason: SessionReason


def find_session_entries(document: Document) -> tuple[SessionEntry, ...]:
    """Return the lines of a text that belong to single sessions."""
    text = "\n".join(document.rows)
    ends = [(text.count("\n", 0, match.start()), text.count("\n", 0, match.end())) for match in _THOUGHT.finditer(text)]
    found = [SessionEntry(document.name, first + 1, last + 1, "thinking") for first, last in ends]
    for section in document.sections:
        if _HEADED.search(section.title.strip("*_` :")):
            day = re.search(_DAY, section.title, re.IGNORECASE)
            found += [SessionEntry(document.name, *section.lines, "dated" if day else "headed")]
    spans = [entry.lines for entry in found]
    found = [e for e in found if not any(e.lines != span and e.lines.within(span) for span in spans)]
    taken = {number for lines in spans for number in lines.numbers}
    for item in document.items:
        rows = [number for number in item.lines.numbers if number not in taken]
        if rows and (reason := session_reason("\n".join(map(document.row, rows)))):
            found += [SessionEntry(document.name, rows[0], rows[-1], reason)]
    return tuple(sorted(found, key=lambda entry: entry.first))


def session_reason(text: str) -> SessionReason | None:
    """Return why a line belongs to a session, None if it does not."""
    if _TAG.search(text):
        return "thinking"
    if _DATED.match(text):
        return "dated"
    if _STATE.match(text) or _STATE_WITHIN.search(text):
        return "state"
    return "narrative" if _NARRATED.match(text) or (_ON_A_DAY.search(text) and _is_past(text)) else None


def _is_past(text: str) -> bool:
    """Return True if the first verb of a sentence that shows its tense is in the past."""
    words = re.findall(r"[a-z']+", text.lower())
    return next((word not in _NOT_PAST for word in words if word in _NOT_PAST or is_past(word)), False)
