"""What lasts of raw entries: who takes part, facts, dated events, decisions, open tasks and what became of them.

Read from raw text only: the type of an entry that is read here has no summary. In doubt a sentence is left out: a
document that keeps small talk is worth less than one that has to be searched beside.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from daypack.memory.document.markdown import Heading
from daypack.memory.document.patterns import (
    ADVICE,
    AGREED,
    ANSWERED,
    ASKED,
    BARE_DONE,
    BUSY,
    CALLED,
    DANGLING,
    DANGLING_ABROAD,
    DATE,
    DECIDED,
    DONE,
    HELLO,
    LETS,
    MET,
    NO_NAME,
    NOT_DONE,
    ONLY_PARTLY,
    OWN_DEED,
    PERSONAL,
    PERSONAL_ABROAD,
    RECORD,
    RELATIVE,
    RULE,
    STATE,
    UNDECIDED,
    UNREAL,
    UPDATE,
)
from daypack.memory.document.raw import RawEntry
from daypack.memory.summary.summary import ROLES, Known, know_people, own_words_of, voices_of
from daypack.text.cues import Cues, find_cues
from daypack.text.extract import prose
from daypack.text.filler import is_filler, strip_lead_in
from daypack.text.injected import strip_injected
from daypack.text.language import is_english
from daypack.text.literals import literals
from daypack.text.reported_speech import Reported, report
from daypack.text.sentences import sentences
from daypack.text.trim import trim

MAX_LINE_CHARS = 220
_MAX_SENTENCE_CHARS = 320  # what is longer is no statement of one thing
_MAX_FINDINGS = 8  # of one entry: who says more is quoting something
_NAME_CHARS = 60
_NAMING_WORDS = 6

_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_QUOTING = ("**", '"', "“", "「")
_ENGLISH_STATE = re.compile(
    r"\b(?:is|are|was|were|has|says)\b"
)  # too short to be known as English: "Order number is 4"
_NOBODY = frozenset({"user", "assistant", "human", "ai", "bot"})


class Finding(NamedTuple):
    """A line for a document: where it belongs and what it says; or, when `done`, what was done."""

    heading: Heading
    text: str
    date: str = ""
    update: bool = False
    done: Literal["", "said", "bare", "ticked"] = ""
    speaker: str = ""
    alias: str = ""  # what the speaker was called before his name was known
    entry: int = 0


def learn(entries: Sequence[RawEntry], document: str) -> list[Finding]:
    """Return what lasts of entries, in the order in which it was said."""
    heard = [one for entry in entries if (one := _hear(entry)) is not None]
    known = know_people(document)
    # Who is introduced at the end is known from the beginning: so a second reading finds the same.
    for _ in ("the user's own name", "those whom the user names"):
        known = _introduced(known, [person for one in heard for person in _Reader(one, known).people()])
    found: list[Finding] = []
    for number, one in enumerate(heard):
        reader = _Reader(one, known)
        found += [person._replace(entry=number) for person in reader.people()]
        found += [line._replace(entry=number) for line in islice(reader.lines(), _MAX_FINDINGS)]
    return found


class _Heard(NamedTuple):
    """What was said in an entry, sentence by sentence, and to whom, when it says so."""

    entry: RawEntry
    said: tuple[str, ...]
    listener: str
    english: bool


def _hear(entry: RawEntry) -> _Heard | None:
    if (entry.role or "").lower() in ("tool", "system"):
        return None
    text = prose(own_words_of(strip_injected(entry.text)))
    said: list[str] = []
    listener = ""
    for one in sentences(text):
        words, name = strip_lead_in(" ".join(one.text.split()))
        listener = listener or name
        if words and len(words) <= _MAX_SENTENCE_CHARS and not words.startswith(_QUOTING) and not is_filler(words):
            said.append(words)
    return _Heard(entry, tuple(said), listener, is_english(text))


def _introduced(known: Known, people: Sequence[Finding]) -> Known:
    names, talking = list(known.names), list(known.talking)
    user = known.user
    for one in people:
        name, _, detail = one.text.partition(" (")
        if detail == "user)" and not user:
            user = name
        if name not in names:
            names.append(name)
        if not detail and name not in talking:
            talking.append(name)
    return known._replace(names=tuple(names), user=user, talking=tuple(talking))


class _Reader:
    """One entry, sentence by sentence."""

    def __init__(self, heard: _Heard, known: Known) -> None:
        self._heard = heard
        entry = heard.entry
        role = (entry.role or "").lower()
        speaker = known.speaker(entry.author, role)
        self._voices = voices_of(speaker, role, heard.listener, heard.said, known)
        self._alias = ROLES.get(role, "") if not entry.author and speaker != ROLES.get(role) else ""
        self._english = heard.english
        # In a talk among people an imperative is a figure of speech; who talks to an assistant gives orders.
        self._commanding = heard.english and role == "user" and not heard.listener
        self._machine = role == "assistant" and not entry.author
        self._day = entry.at[:10] if entry.at and _ISO_DAY.match(entry.at) else ""

    def people(self) -> Iterator[Finding]:
        """Yield who takes part: the author, and whom he names as himself or as his own."""
        author = " ".join((self._heard.entry.author or "").split())
        if 0 < len(author) <= _NAME_CHARS and author.casefold() not in _NOBODY:
            yield Finding("Participants", author)
        if self._machine:
            return
        for said in self._heard.said:
            called = CALLED.search(said) or HELLO.match(said)
            if called and called["name"] not in NO_NAME and not author:
                yield Finding("Participants", f"{called['name']} (user)")
            for met in MET.finditer(said):
                name, what = met["name"] or met["name2"], met["what"] or met["what2"]
                if name not in NO_NAME and self._voices.speaker:
                    yield Finding("Participants", f"{name} ({self._voices.speaker}'s {what})")

    def lines(self) -> Iterator[Finding]:
        """Yield what the sentences leave, at most one line each."""
        for said in self._heard.said:
            yield from self._read(said)

    def _read(self, said: str) -> Iterator[Finding]:
        bare = BARE_DONE.match(said)
        if bare and (bare.end() == len(said) or (said[bare.end()] == "," and not ONLY_PARTLY.search(said))):
            yield Finding("Open tasks", said, done="bare")
            return
        if self._machine and not (AGREED.search(said) or DONE.search(said)):
            return  # an assistant explains and proposes; what lasts of it others say, or that it is settled or done
        cues = find_cues(said)
        task = None if self._machine else self._task(said, cues)
        if task:
            yield task
            return
        if cues.asks or cues.doubt >= 1.0 or cues.chatter >= 0.6 or said.rstrip().endswith((":", "：")):
            return
        if DONE.search(said) and not NOT_DONE.search(said):
            yield Finding("Open tasks", said, done="said")
        kept = self._kept(said, cues)
        if kept:
            yield kept

    def _task(self, said: str, cues: Cues) -> Finding | None:
        """Return what somebody is asked to do, or says he has to do."""
        own = OWN_DEED.fullmatch(said.rstrip(" .!"))
        asked = own or ASKED.fullmatch(said.rstrip(" .!?"))
        deed = asked["deed"] if asked else ""
        if not deed and self._commanding and report(said, self._voices).kind == "request" and not LETS.match(said):
            deed = said.rstrip(" .!")
        if not deed and not self._english and cues.request >= 0.8 and literals(said) and not cues.asks:
            return None if _ENGLISH_STATE.search(said) else self._line("Open tasks", said, said)
        if " " not in deed or cues.order >= 1.0:
            return None
        if ANSWERED.match(deed) or RULE.match(deed) or ADVICE.search(deed):
            return None
        # A listener that no text can contain shows where the words of the request begin.
        named = report(f"Please {deed}", self._voices._replace(listener="\0"))
        if named.kind != "request" or DANGLING.match(deed.partition(" ")[2]):
            return None
        text = named.text.partition(" to ")[2].replace("\0", self._voices.listener)
        who = self._voices.listener if self._voices.listener != ROLES["assistant"] else ""
        if own or "remind me" in said.lower():
            who = self._voices.speaker
        text = trim(f"{text[:1].upper()}{text[1:]}", MAX_LINE_CHARS - len(who) - 3)
        alias = self._alias if own else ""
        return Finding("Open tasks", f"{text} ({who})" if who else text, speaker=who, alias=alias)

    def _kept(self, said: str, cues: Cues) -> Finding | None:
        told = report(said, self._voices) if self._english and self._voices.speaker else Reported("quote", said)
        dangling = (DANGLING if self._english else DANGLING_ABROAD).match(told.text)
        decided = (AGREED if self._machine else DECIDED).search(said) or (not self._english and cues.decisions >= 1.0)
        if decided and not dangling and not UNDECIDED.search(said):
            # That something is settled is for people to say; of an assistant it is what it says.
            text = f"{self._voices.speaker}: {said}" if self._machine else self._told(told)
            return self._line("Decisions", said, text)
        if self._machine or dangling:
            return None
        if RULE.match(said) and (told.kind == "request" or not self._english) and cues.chatter == 0:
            return self._line("Decisions", said, self._told(told))
        if cues.talk >= 1.0 or (self._english and UNREAL.search(said)):
            return None
        date = DATE.search(said)
        if date and told.kind in ("claim", "deed", "quote"):
            return self._line("Timeline", said, self._told(told), date[0])
        if BUSY.search(said):
            return None
        return self._fact(said, told, cues)

    def _fact(self, said: str, told: Reported, cues: Cues) -> Finding | None:
        """Return what holds for longer than a day; what happened on a day that is known goes to the timeline."""
        if CALLED.search(said) and said.count(" ") < _NAMING_WORDS:
            return None  # a name alone stands under Participants
        if (PERSONAL if self._english else PERSONAL_ABROAD).search(said):
            if told.kind == "request" and not RECORD.match(said):
                return None
            if self._day and RELATIVE.search(said):
                return self._line("Timeline", said, self._told(told), self._day)
            return self._line("Facts", said, self._told(told))
        if not self._english and cues.facts >= 1.0:
            return self._line("Facts", said, self._told(told))
        if self._day and told.kind == "deed" and RELATIVE.search(said):
            return self._line("Timeline", said, self._told(told), self._day)
        if told.kind == "claim" and STATE.search(said) and _is_data(said):
            return self._line("Facts", said, self._told(told))
        return None

    def _told(self, told: Reported) -> str:
        speaker = self._voices.speaker
        if told.kind == "request":
            return f"{speaker} {told.text}"
        if told.kind == "quote" and speaker:
            return f"{speaker}: {told.text}"
        return f"{told.text[:1].upper()}{told.text[1:]}"

    def _line(self, heading: Heading, said: str, text: str, date: str = "") -> Finding:
        line = trim(text, MAX_LINE_CHARS).rstrip(" .。")
        return Finding(
            heading, line, date, UPDATE.search(said) is not None, speaker=self._voices.speaker, alias=self._alias
        )


def _is_data(said: str) -> bool:
    """Whether a sentence names something exactly: a path, an address, an id, a version or a number."""
    return any(one.kind in ("path", "url", "id", "version", "number") for one in literals(said))
