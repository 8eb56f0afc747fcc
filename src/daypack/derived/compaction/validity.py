"""Validity: whether a sentence of a session with tools still holds at the end of it, and what kind of sentence it is.

An agent describes code while it changes it. What it says in the middle of its work is history when it reports at the
end; what it reports holds until the thing it names is taken out again. What the user describes as the present state
holds until that is edited.
"""

import re

from daypack.derived.compaction.candidates import Candidate, is_spaced
from daypack.derived.compaction.task import is_specification
from daypack.derived.compaction.timeline import Timeline
from daypack.derived.compaction.worth import is_intention
from daypack.derived.readings import is_status
from daypack.text.cues.cues import words_of
from daypack.text.language import language_of
from daypack.text.literals import literals
from daypack.types.compaction import LossReason, Section

_CAUSE = re.compile(r"\b(?:root cause|turns out|turned out|caused by|culprit|deprecated)\b", re.IGNORECASE)
_PRESENT = re.compile(
    r"\b(?:currently|at the moment|right now|today|no way to|there (?:is|are|was|were) (?:no|also|"
    r"already)|there's no|has no|"
    r"have no|hardcodes?|previously|before:|used to|still|only works|doesn't|does not|don't|isn't|aren't|"
    r"cannot|can't)\b",
    re.IGNORECASE,
)
# "It is returning nil instead of …", "they must have stripped …": a description, no choice.
_DEFECT = re.compile(
    r"\b(?:is|are|was|were|it's|that's|they're|keeps?)\s+(?:\w+\s+)?\w+ing\b.*\b(?:instead of|rather than)\b|"
    r"\bmust (?:have|be|be \w+ing)\b|\bshould have\b|\bpreviously\b|\bbut (?:it )?should\b",
    re.IGNORECASE,
)
_CHOICE = re.compile(
    r"\b(?:we|i)(?:'ll|'ve|'d| will| have| would)? (?:use|keep|go(?:ing)? with|went with|chose|choose|"
    r"decided|prefer|stick|"
    r"avoid|switch(?:ed)? to|opted|rejected|dropped|ruled)\b|\b(?:instead of|rather than|in favou?r of|"
    r"ruled out|rejected|"
    r"decided|opted for|settled on|chosen|over the alternative|not needed (?:because|since)|no need (?:for|to))\b|"
    r"^(?:decision|approach|chosen approach|trade-?off|rationale)\b",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(r"\b(?:if|would|could|should|might|may)\b", re.IGNORECASE)
# "Let's use the search to locate the file": the step at hand.
_STEP = re.compile(
    r"^(?:let'?s|let us|i'll|i will|we'll|we will|now|first|next)\b.*\bto (?:locate|find|open|search|look|"
    r"see|check|run|read|"
    r"list|view|verify|examine|explore|inspect|understand)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"^[\"“'(\[{<]|^//|^#!|^\$ ")
_OPEN_WORK = re.compile(
    r"^(?:todo|fixme|next(?: steps?| up)?|follow[- ]?ups?|open (?:question|issue)s?|action items?|"
    r"not (?:yet )?(?:done|implemented|covered|tested))\b|"
    r"^(?:remaining|left|later|pending|still open|outstanding)\s*[:,—–-]|"
    r"\b(?:we|i|you|someone) (?:still |also |will |then )?(?:need|have|has|ought) to\b|\bstill (?:needs?|"
    r"has|have) to\b|"
    r"\bstill (?:to (?:do|be)|missing|open|fails?|failing|broken|pending|unresolved)\b|"
    r"\b(?:is|are|was|were) (?:still )?not (?:yet )?(?:done|implemented|started|tested|finished|written|"
    r"covered|deployed|"
    r"merged|wired|handled|fixed|resolved|pushed|committed)\b|\bnot yet \w+ed\b|\b(?:remains?|left) to (?:be )?\w+|"
    r"\bdon'?t forget\b|\bremember to\b|\bnext steps?\b|\bwaiting (?:for|on)\b|\bblocked (?:on|by)\b|"
    r"\bneeds? (?:a )?follow[- ]?ups?\b|\bin a follow[- ]?up\b|\bto be (?:done|decided)\b",
    re.IGNORECASE,
)
_LASTING = re.compile(
    r"^(?:todo|fixme)\b|\b(?:later|tomorrow|next (?:week|time|month|release)|afterwards|after that|follow[- ]?ups?|"
    r"don'?t forget|remember to|remind me|still (?:need|have) to|still needs?|to be done)\b",
    re.IGNORECASE,
)
# What was so before the work, or would be so without it.
_FORMER = re.compile(
    r"^\W*(?:before|previously|old|originally|earlier|formerly|without)\b|\bthe old (?:code|version|behaviou?r|one)\b|"
    r"\b(?:is|are) (?:now )?(?:starting|building|compiling|installing|loading|downloading)\b|"
    r"\bpreviously\b|\b(?:was|were) (?:\w+ )?\w+ing\b|\bused to\b|\bwould (?:have|be|stop|fail|use|return|never)\b",
    re.IGNORECASE,
)
# What could be done, and what the reader should do.
_ADVICE = re.compile(
    r"\b(?:should|could|would|might|if (?:you|needed|desired|wanted|necessary|comprehensive|this)|option \d|"
    r"whenever you|let me know|feel free|i(?:'d| would) (?:suggest|recommend))\b|"
    r"^\W*(?:give|try|run|use|check|clean|consider|make sure|see|note|look|keep|ensure|add|delete|remove|"
    r"set|call|when|if)\b",
    re.IGNORECASE,
)
_OPINION = re.compile(
    r"\b(?:i (?:think|like|would|expect(?:ed)?|feel|guess|mean|want|hoped?|just|see|saw|noticed)|i(?:'m|’m| am) "
    r"(?:expecting|closing|seeing|getting|trying|wondering)|technically|seems?|confusing|weird|"
    r"look(?:s|ing)? (?:ok|good|like)|doesn't seem|sound)\b|^(?:like|so|but|and|ok|yes|no|yeah|yep|nope|that|this)\b",
    re.IGNORECASE,
)
_TRIVIAL = re.compile(
    r"^\W*(?:added|removed|updated|fixed) (?:\S+ ){0,6}?(?:imports?|doc comments?|comments?)\b|"
    r"\bimport(?:s|ed)?\b.{0,20}$|"
    r"^`[^`]+` (?:is|are) (?:still |already )?(?:used|imported|available|defined|fine|correct)\b",
    re.IGNORECASE,
)
_POINTING = re.compile(
    r"^\W*(?:it|this|that|these|those|they|both|which|here|wait|hmm|actually|neither)\b"
    r"(?! (?:commits|files|tests|functions))",
    re.IGNORECASE,
)
_DEED = re.compile(
    r"^(?:[^—:]{1,80}(?:—|:| -)\s*)?\W*(?:(?:also|then|i|we)\s+){0,2}(?:added|removed|updated|fixed|"
    r"changed|created|deleted|"
    r"renamed|replaced|moved|extracted|implemented|committed|pushed|merged|made|wrote|restored|populated)\b|"
    r"\b(?:has|have) been \w+ed\b|\b(?:i|we)(?:'ve| have) \w+ed\b",
    re.IGNORECASE,
)
_NOW = re.compile(r"\bnow\b", re.IGNORECASE)
# An item of a list whose subject is in the heading above it.
_SUBJECTLESS = re.compile(
    r"^(?:returns?|uses?|lives?|supports?|takes?|accepts?|contains?|skips?|logs?|checks?|reads?|writes?|"
    r"provides?|calls?|"
    r"handles?|requires?|includes?|runs?|gets?|sets?|passes|parses|prints?|shows?|works|means|expects?|"
    r"defaults?|same|only|"
    r"just|also|no)\b",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"\b(?:is|isn't|are|aren't|was|wasn't|were|has|have|had|can|cannot|can't|do|does|don't|doesn't|did|"
    r"didn't|will|won't|now|"
    r"\w{2,}ed|means|made|wrote|ran|built|kept|set|put|goes|comes|gets|gives|takes|makes|keeps|needs|"
    r"works|fails|\w{3,}es|"
    r"(?:return|use|call|read|support|contain|expect|run|accept|require|define|check|provide|follow|point|"
    r"depend|flow|list|"
    r"sync|allow|start|stop|show|print|log|skip|live|listen|belong|fall|delegate|default|handle|store|hold|own)s)\b",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|my|me|we|our|us)\b", re.IGNORECASE)
_NEXT_STEP = re.compile(
    r"^(?:the )?next (?:step|up)\b|^(?:now |then |next,? |first,? )?(?:i|we) (?:still )?(?:need|have) to\b",
    re.IGNORECASE,
)
# Open work until it is done, and no fact then.
_UNDONE = re.compile(
    r"\bnot \w+(?:ed|en|ne) yet\b|\bnot yet \w+(?:ed|en|ne)\b|\bstill (?:needs?|has|have) to\b|\bstill needs? \w+ing\b",
    re.IGNORECASE,
)
_NEXT_STEP_NAMED = re.compile(r"\b(?:the )?next steps? (?:is|are|will be)\b", re.IGNORECASE)
_UNCERTAIN = re.compile(
    r"\b(?:potentially|maybe|perhaps|possibly|could|might|optional(?:ly)?|if desired)\b", re.IGNORECASE
)
_REPORT_BONUS = 1.15
_OLDER_REPORT = 0.8


def problem_of(line: Candidate, section: Section, timeline: Timeline) -> LossReason | None:
    """Return why a sentence does not belong into a section, or does not hold any more; None if it does both."""
    if timeline.moved(line.text):
        return "outdated"
    if section == "decisions":
        return _problem_of_decision(line, timeline)
    if section == "pending":
        return _problem_of_open_work(line, timeline)
    if line.utterance.chatting or not timeline.has_work:
        return None
    if is_status(line.text):
        if _POINTING.match(line.text):
            return "unremarkable"
        spec = line.utterance.voice == "user" and is_specification(line.utterance.text)
        return "unremarkable" if spec else "outdated" if timeline.edited_after(line.utterance.seq) else None
    return (
        _problem_of_users_word(line, timeline)
        if line.utterance.voice == "user"
        else _problem_of_finding(line, timeline)
    )


def _problem_of_finding(line: Candidate, timeline: Timeline) -> LossReason | None:
    """Judge what an agent says about the things it works on."""
    utterance, text, seq = line.utterance, line.text.replace("*", ""), line.utterance.seq
    if _ADVICE.search(text) or _TRIVIAL.search(text) or _POINTING.match(text) or _UNDONE.search(text):
        return "unremarkable"
    if _SUBJECTLESS.match(text) or not _VERB.search(text) or line.text[:1].islower():
        return "fragment"
    if _CAUSE.search(text) and line.density:
        passed = timeline.edited_after(seq) or timeline.reported_after(seq)
        return "outdated" if utterance.midway and passed else None
    if _FORMER.search(text):
        return "outdated"
    if utterance.midway:
        if timeline.edited_after(seq) or timeline.reported_after(seq):
            return "outdated"
        return None if not timeline.has_edits or _DEED.search(text) else "outdated"
    if not timeline.follows_edits(seq):  # an answer, not a report of work: it holds until the next edit
        return "outdated" if timeline.edited_after(seq) and not (_DEED.search(text) or _NOW.search(text)) else None
    return "outdated" if timeline.removed_after(text, seq) else None


def timeliness(line: Candidate, timeline: Timeline) -> float:
    """Return how much a fact counts by its time: the newest report comes first, older ones fade."""
    if not line.utterance.working:
        return 1.0
    later = timeline.reported_after(line.utterance.seq)
    if line.utterance.reporting and not later:
        return _REPORT_BONUS
    return max(0.4, _OLDER_REPORT**later)


def is_outdated(text: str, timeline: Timeline) -> bool:
    """Return True if a fact read in an earlier range does not hold after this one."""
    if is_status(text) and timeline.has_edits:
        return True
    if _CAUSE.search(text):
        return False
    if timeline.removed_after(text, 0) or timeline.moved(text):
        return True
    if _DEED.search(text.replace("*", "")) or _NOW.search(text):
        return False
    if timeline.touched_after(text, 0):
        return True
    # It names nothing that an edit could be compared with, and no person.
    return timeline.has_edits and not literals(text) and not _FIRST_PERSON.search(text)


def is_passed(text: str, timeline: Timeline) -> bool:
    """Return True if open work read in an earlier range was the next step of an agent that has gone on since."""
    return bool(_NEXT_STEP.match(text)) and (timeline.has_edits or bool(timeline.reports))


def _problem_of_decision(line: Candidate, timeline: Timeline) -> LossReason | None:
    if _QUOTED.match(line.text):
        return "fragment"
    if line.utterance.voice == "user":
        return "unremarkable" if timeline.has_work and _OPINION.search(line.text) and not line.density else None
    if not line.utterance.working:
        return "unremarkable" if timeline.has_work and _SUPPOSED.search(line.text) else None
    if line.text[:1].islower():
        return "fragment"
    if _STEP.match(line.text):
        return "narration"
    described = _DEFECT.search(line.text) or _FORMER.search(line.text) or _SUPPOSED.search(line.text)
    return None if _CHOICE.search(line.text) and not described else "unremarkable"


def _is_english(text: str) -> bool:
    """Return True if the patterns here can judge a text."""
    return is_spaced(text) and language_of(words_of(text)) == "en"


def _problem_of_open_work(line: Candidate, timeline: Timeline) -> LossReason | None:
    utterance = line.utterance
    if line.box or not _is_english(line.text):
        return None
    if utterance.voice == "user":
        if is_specification(utterance.text):
            return "unremarkable"  # it is the task
        if not timeline.reported_after(utterance.seq) or _LASTING.search(line.text):
            return None if _OPEN_WORK.search(line.text) else "unremarkable"
        return "done"
    if not utterance.working or is_intention(line):
        return None
    if _UNCERTAIN.search(line.text):
        return "unremarkable"
    if utterance.midway and timeline.reported_after(utterance.seq):
        return "done"
    named = _NEXT_STEP_NAMED.search(line.text) and not timeline.edited_after(utterance.seq)
    if utterance.midway and utterance.acting and not (line.context.pending or named or _LASTING.search(line.text)):
        return "narration"  # the step at hand
    if not line.context.pending and not _OPEN_WORK.search(line.text):
        return "unremarkable"
    return None


def _problem_of_users_word(line: Candidate, timeline: Timeline) -> LossReason | None:
    """Judge what a user says about the present state: it holds until that is edited."""
    seq = line.utterance.seq
    if _QUOTED.match(line.text):
        return "fragment"
    if _OPINION.search(line.text):
        return "unremarkable"
    if _SUBJECTLESS.match(line.text):
        return "fragment"
    if is_specification(line.utterance.text) and not _CAUSE.search(line.text):
        # It says what is to be done, and why; that is the task.
        return "outdated" if timeline.edited_after(seq) else None
    touched = timeline.touched_after(line.text, seq)
    changed = touched or (bool(_PRESENT.search(line.text)) and timeline.reported_after(seq) > 0)
    return "outdated" if changed and timeline.edited_after(seq) else None
