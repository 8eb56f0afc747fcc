"""Extracts what lasts from raw entries: participants, facts, dated events, decisions, open and completed tasks.

Input is raw text only, never a summary. Doubtful sentences are left out: the document must not fill with small talk,
and everything else can still be found by search.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from daypack.memory.document.markdown import Heading
from daypack.memory.document.patterns import (
    ADVICE,
    AGREED,
    ANSWERED_AT_ONCE,
    BARE_DONE,
    DANGLING,
    DANGLING_NOT_ENGLISH,
    DANGLING_OBJECT,
    DATE,
    DECIDED,
    DECISION_LABEL,
    DECISION_VERBS,
    DONE,
    FROM_NOW_ON,
    HYPOTHETICAL,
    INTRODUCED,
    LETS,
    NOT_A_NAME,
    NOT_DONE,
    ONLY_PARTLY,
    OWN_NAME,
    OWN_TASK,
    PERSONAL,
    PERSONAL_NOT_ENGLISH,
    RELATION,
    RELATIVE_DAY,
    REMEMBER,
    REMEMBERED,
    REMINDED,
    REQUESTED,
    RULE,
    SELF_INTRODUCTION,
    STATE,
    TASK_LABEL,
    TEMPORARY,
    UNDECIDED,
    UPDATE,
)
from daypack.memory.document.plain_statements import is_obligation, is_plain_statement, past_verb
from daypack.memory.summary.speakers import (
    ROLES,
    Participants,
    find_voices,
    read_participants,
    strip_quotations,
)
from daypack.text.cues.cues import Cues, find_cues, words_of
from daypack.text.extract import prose
from daypack.text.filler import is_filler, strip_lead_in
from daypack.text.injected import strip_blocks
from daypack.text.language import is_english, language_of
from daypack.text.literals import literals
from daypack.text.reported_speech import Reported, name_people, report
from daypack.text.sentences import sentences
from daypack.text.trim import trim
from daypack.types.memory import RawEntry

MAX_LINE_CHARS = 220
_MAX_SENTENCE_CHARS = 320  # a longer sentence is not one statement
_MAX_FINDINGS = 8  # of one entry: longer lists are usually quoted
_MAX_SPOKEN = 16  # sentences: longer texts are usually pasted, and only what is marked in them lasts
_NAME_CHARS = 60
_NAMING_WORDS = 6

_HEADING = re.compile(r"^[ \t]{0,3}#{1,6}[ \t].*$|^.*\S.*\n[ \t]{0,3}={3,}[ \t]*$", re.MULTILINE)
_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_QUOTING = ("**", '"', "“", "「")
# English that is too short to be detected: "Order number is 4".
_ENGLISH_STATE = re.compile(r"\b(?:is|are|was|were|has|says)\b")
_NOT_AN_AUTHOR = frozenset({"user", "assistant", "human", "ai", "bot"})


class Finding(NamedTuple):
    """A line for a document and its heading or, with `done`, a completed task."""

    heading: Heading
    text: str
    date: str = ""
    update: bool = False
    done: Literal["", "stated", "bare", "ticked"] = ""
    speaker: str = ""
    alias: str = ""  # the speaker's role, used before the name was known
    entry: int = 0
    plain: bool = False  # a statement without any other sign that it lasts; the first to go


def extract_findings(entries: Sequence[RawEntry], document: str) -> list[Finding]:
    """Return the findings of entries, in the order of the sentences they come from."""
    spoken = [speech for entry in entries if (speech := _read_speech(entry)) is not None]
    known = read_participants(document)
    # People introduced late are known from the start, so that reading the entries again finds the same. Two passes:
    # the first finds the user's own name, the second the people the user names.
    for _ in range(2):
        known = _with_people(known, [person for speech in spoken for person in _Reader(speech, known).people()])
    findings: list[Finding] = []
    for number, speech in enumerate(spoken):
        reader = _Reader(speech, known)
        findings += [person._replace(entry=number) for person in reader.people()]
        findings += [line._replace(entry=number) for line in _first_findings(list(reader.lines()))]
    return findings


def _first_findings(found: list[Finding]) -> list[Finding]:
    """Return at most as many findings as one entry may have; plain statements give way to the others."""
    certain = sum(not finding.plain for finding in found)
    kept: list[Finding] = []
    room = _MAX_FINDINGS - min(certain, _MAX_FINDINGS)
    for finding in found:
        room -= finding.plain
        if not finding.plain or room >= 0:
            kept.append(finding)
    return kept[:_MAX_FINDINGS]


class _Speech(NamedTuple):
    """The sentences of an entry, and the name of the person addressed, if the entry names one."""

    entry: RawEntry
    sentences: tuple[str, ...]
    listener: str
    english: bool


def _read_speech(entry: RawEntry) -> _Speech | None:
    if (entry.role or "").lower() in ("tool", "system"):
        return None
    own = strip_quotations(strip_blocks(entry.text))
    text = prose(own)
    spoken: list[str] = []
    listener = ""
    for sentence in sentences(prose(_HEADING.sub("", own)) if _HEADING.search(own) else text):
        words, name = strip_lead_in(" ".join(sentence.text.split()))
        listener = listener or name
        if words and len(words) <= _MAX_SENTENCE_CHARS and not words.startswith(_QUOTING) and not is_filler(words):
            spoken.append(words)
    return _Speech(entry, tuple(spoken), listener, is_english(text))


def _with_people(known: Participants, people: Sequence[Finding]) -> Participants:
    names, speakers = list(known.names), list(known.speakers)
    user = known.user
    for person in people:
        name, _, detail = person.text.partition(" (")
        if detail == "user)" and not user:
            user = name
        if name not in names:
            names.append(name)
        if not detail and name not in speakers:
            speakers.append(name)
    return known._replace(names=tuple(names), user=user, speakers=tuple(speakers))


class _Reader:
    """Reads the findings of one entry."""

    def __init__(self, speech: _Speech, known: Participants) -> None:
        self._speech = speech
        entry = speech.entry
        role = (entry.role or "").lower()
        speaker = known.speaker(entry.author, role)
        self._voices = find_voices(speaker, role, speech.listener, speech.sentences, known)
        self._names = frozenset(name.casefold() for name in known.names)
        self._alias = ROLES.get(role, "") if not entry.author and speaker != ROLES.get(role) else ""
        self._english = speech.english
        # Between people an imperative is often a figure of speech; to an assistant it is a request.
        self._commanding = speech.english and role == "user" and not speech.listener
        self._is_assistant = role == "assistant" and not entry.author
        self._day = entry.at[:10] if entry.at and _ISO_DAY.match(entry.at) else ""

    def people(self) -> Iterator[Finding]:
        """Yield the participants: the author, and people the author introduces (\"my sister Ana\")."""
        author = " ".join((self._speech.entry.author or "").split())
        if 0 < len(author) <= _NAME_CHARS and author.casefold() not in _NOT_AN_AUTHOR:
            yield Finding("Participants", author)
        if self._is_assistant:
            return
        for sentence in self._speech.sentences:
            called = OWN_NAME.search(sentence) or SELF_INTRODUCTION.match(sentence)
            if called and called["name"] not in NOT_A_NAME and not author:
                yield Finding("Participants", f"{called['name']} (user)")
            for met in RELATION.finditer(sentence):
                name, what = met["name"] or met["name2"], met["what"] or met["what2"]
                if name not in NOT_A_NAME and self._voices.speaker:
                    yield Finding("Participants", f"{name} ({self._voices.speaker}'s {what})")

    def lines(self) -> Iterator[Finding]:
        """Yield the findings of the sentences."""
        for sentence in self._speech.sentences:
            yield from self._read(sentence)

    def _read(self, sentence: str) -> Iterator[Finding]:
        bare = BARE_DONE.match(sentence)
        if bare and (bare.end() == len(sentence) or (sentence[bare.end()] == "," and not ONLY_PARTLY.search(sentence))):
            yield Finding("Open tasks", sentence, done="bare")
            return
        if sentence.rstrip().endswith((":", "：")):
            return  # it introduces a list: the items say what is to be done
        if self._is_assistant and not (AGREED.search(sentence) or DONE.search(sentence)):
            return  # an assistant explains and proposes; only agreements and completed tasks last
        labelled = None if self._is_assistant else self._labelled(sentence)
        if labelled:
            yield labelled
            return
        cues = find_cues(sentence)
        task = None if self._is_assistant else self._task(sentence, cues)
        if task:
            yield task
            return
        if cues.asks or cues.doubt >= 1.0 or cues.chatter >= 0.6:
            return
        if DONE.search(sentence) and not NOT_DONE.search(sentence):
            yield Finding("Open tasks", sentence, done="stated")
        statement = self._statement(sentence, cues)
        if statement:
            yield statement

    def _labelled(self, sentence: str) -> Finding | None:
        """Return what a speaker has labelled as a task or a decision: "TODO: …", "Decision: …"."""
        task, decision = TASK_LABEL.fullmatch(sentence), DECISION_LABEL.fullmatch(sentence)
        label = task or decision
        if label is None or (decision and sentence.endswith("?")):
            return None
        text = name_people(label["text"], self._voices) or label["text"]
        return self._line("Open tasks" if task else "Decisions", sentence, f"{text[:1].upper()}{text[1:]}")

    def _task(self, sentence: str, cues: Cues) -> Finding | None:
        """Return a task: what a sentence asks for, or what the speaker has to do."""
        own = OWN_TASK.fullmatch(sentence.rstrip(" .!"))
        asked = own or REQUESTED.fullmatch(sentence.rstrip(" .!?"))
        deed = asked["deed"] if asked else ""
        if (
            not deed
            and self._commanding
            and report(sentence, self._voices).kind == "request"
            and not LETS.match(sentence)
        ):
            deed = sentence.rstrip(" .!")
        if not deed and not self._english and cues.request >= 0.8 and literals(sentence) and not cues.asks:
            return None if _ENGLISH_STATE.search(sentence) else self._line("Open tasks", sentence, sentence)
        if not deed and self._english and not self._is_assistant and is_obligation(sentence) and not cues.doubt:
            named = name_people(sentence.rstrip(" .!"), self._voices)
            return self._line("Open tasks", sentence, named) if named and not cues.asks else None
        if " " not in deed or (cues.order >= 1.0 and not (self._commanding and REMINDED.match(sentence))):
            return None
        at_once = ANSWERED_AT_ONCE.match(deed) and not (own and own["still"])  # what is still to be done is open
        if at_once or RULE.match(deed) or ADVICE.search(deed):
            return None
        # A listener that no text can contain marks where the words of the request begin.
        named = report(f"Please {deed}", self._voices._replace(listener="\0"))
        if named.kind != "request" or DANGLING.match(deed.partition(" ")[2]):
            return None
        text = named.text.partition(" to ")[2].replace("\0", self._voices.listener)
        who = self._voices.listener if self._voices.listener != ROLES["assistant"] else ""
        if own or "remind me" in sentence.lower():
            who = self._voices.speaker
        text = trim(f"{text[:1].upper()}{text[1:]}", MAX_LINE_CHARS - len(who) - 3)
        alias = self._alias if own else ""
        return Finding("Open tasks", f"{text} ({who})" if who else text, speaker=who, alias=alias)

    def _statement(self, sentence: str, cues: Cues) -> Finding | None:
        reported = (
            report(sentence, self._voices) if self._english and self._voices.speaker else Reported("quote", sentence)
        )
        dangling = (DANGLING if self._english else DANGLING_NOT_ENGLISH).match(reported.text)
        if self._decides(sentence, cues, dangling=bool(dangling)) and not UNDECIDED.search(sentence):
            # Only people decide: an assistant's sentence is quoted.
            text = f"{self._voices.speaker}: {sentence}" if self._is_assistant else self._wording(reported)
            return self._line("Decisions", sentence, text)
        if self._is_assistant or dangling:
            return None
        ordered = RULE.match(sentence) and (reported.kind == "request" or not self._english)
        if (ordered or (FROM_NOW_ON.match(sentence) and reported.kind == "claim")) and cues.chatter == 0:
            return self._line("Decisions", sentence, self._wording(reported))
        if cues.talk >= 1.0 or (self._english and HYPOTHETICAL.search(sentence)):
            return None
        date = DATE.search(sentence)
        if date and reported.kind in ("claim", "deed", "quote"):
            return self._line("Timeline", sentence, self._wording(reported), date[0])
        if TEMPORARY.search(sentence):
            return None
        return self._fact(sentence, reported, cues)

    def _decides(self, sentence: str, cues: Cues, *, dangling: bool) -> bool:
        if self._is_assistant:
            return not dangling and AGREED.search(sentence) is not None
        decided = DECIDED.search(sentence)
        if decided and decided.start() == 0:  # "they decided", "it was agreed": only the object can be unclear
            return DANGLING_OBJECT.match(sentence, decided.end()) is None
        if dangling:
            return False
        if decided or (not self._english and cues.decisions >= 1.0):
            return True
        return self._english and past_verb(sentence) in DECISION_VERBS

    def _fact(self, sentence: str, reported: Reported, cues: Cues) -> Finding | None:
        """Return a fact that holds for longer than a day; an event on a known day belongs to the timeline."""
        if OWN_NAME.search(sentence) and sentence.count(" ") < _NAMING_WORDS:
            return None  # a name alone is listed under Participants
        if (PERSONAL if self._english else PERSONAL_NOT_ENGLISH).search(sentence):
            if reported.kind == "request" and not REMEMBER.match(sentence):
                return None
            if self._day and RELATIVE_DAY.search(sentence):
                return self._line("Timeline", sentence, self._wording(reported), self._day)
            return self._line("Facts", sentence, self._wording(reported))
        if not self._english and cues.facts >= 1.0:
            return self._line("Facts", sentence, self._wording(reported))
        if self._day and reported.kind == "deed" and RELATIVE_DAY.search(sentence):
            return self._line("Timeline", sentence, self._wording(reported), self._day)
        if reported.kind == "claim" and STATE.search(sentence) and _is_data(sentence):
            return self._line("Facts", sentence, self._wording(reported))
        return self._plain_fact(sentence, cues)

    def _plain_fact(self, sentence: str, cues: Cues) -> Finding | None:
        """Return a plain statement in the third person ("Maria is the new project manager"), or what to remember."""
        remembered = REMEMBERED.fullmatch(sentence)
        introduced = remembered or INTRODUCED.fullmatch(sentence)
        claim = introduced["claim"] if introduced else sentence
        if remembered and self._commanding and not DANGLING.match(claim):
            return self._line("Facts", sentence, self._wording(report(claim, self._voices)))
        if len(self._speech.sentences) > _MAX_SPOKEN or cues.doubt or cues.chatter or cues.talk or cues.errors:
            return None
        # A short statement may be too short to be recognised as English, as long as it is in no other language.
        english = self._english or language_of(words_of(claim)) == "en"
        named = english and is_plain_statement(claim, self._names) and name_people(claim, self._voices)
        return self._line("Facts", claim, f"{named[:1].upper()}{named[1:]}")._replace(plain=True) if named else None

    def _wording(self, reported: Reported) -> str:
        speaker = self._voices.speaker
        if reported.kind == "request":
            return f"{speaker} {reported.text}"
        if reported.kind == "quote" and speaker:
            return f"{speaker}: {reported.text}"
        return f"{reported.text[:1].upper()}{reported.text[1:]}"

    def _line(self, heading: Heading, sentence: str, text: str, date: str = "") -> Finding:
        line = trim(text, MAX_LINE_CHARS).rstrip(" .。")
        return Finding(
            heading, line, date, UPDATE.search(sentence) is not None, speaker=self._voices.speaker, alias=self._alias
        )


def _is_data(sentence: str) -> bool:
    """Return True if a sentence contains a path, an address, an id, a version or a number."""
    return any(literal.kind in ("path", "url", "id", "version", "number") for literal in literals(sentence))
