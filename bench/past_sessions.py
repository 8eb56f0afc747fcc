"""A home with the sessions of two years: real conversations, and many more made of their sentences.

LoCoMo's dialogues, BEAM's chats and recorded agent sessions are written as they are, each once. The other sessions are
stretches of them, without the messages that answer a question: about a third of the lines left out, other numbers,
other names of people. All of it is the same in every run.
"""

import os
import random
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from glob import glob
from typing import Any, NamedTuple

import msgspec

from bench import data
from bench.corpora import Talk, read_corpora
from bench.measure import say
from bench.transcripts import messages_of
from daypack.errors import DaypackError
from daypack.files.jsonl import seal
from daypack.history.draft import draft_from
from daypack.history.layout import Home
from daypack.history.searchable import searchable
from daypack.importers.formats import read_file
from daypack.text.english import STOP_WORDS
from daypack.types.history import Message

_BEGIN = datetime(2024, 11, 1, tzinfo=UTC)
_DAYS = 730
_STRETCH = (8, 40)
_KEPT_LINES = 0.7
_RECORDED_MESSAGES = 150  # of a mixture
REWORDED = "reworded"  # kind of the questions made of agent sessions
_NAMES = [
    "Avery",
    "Blake",
    "Casey",
    "Dana",
    "Ellis",
    "Frankie",
    "Gray",
    "Harper",
    "Indigo",
    "Jules",
    "Kendall",
    "Lane",
    "Morgan",
    "Noel",
    "Oakley",
    "Parker",
]
_LINE = re.compile(r"[^\n.!?]*[\n.!?]+\s*|[^\n.!?]+$")
_AGENTS = ("claude-code", "codex", "copilot", "qwen", "default")


class Needle(NamedTuple):
    """A question, and the messages that answer it: agent, session and number."""

    query: str
    gold: frozenset[tuple[str, str, int]]
    texts: tuple[str, ...]
    kind: str


class PastSessions(NamedTuple):
    """What was written, and what can be asked."""

    sessions: int
    messages: int
    text_bytes: int
    needles: tuple[Needle, ...]


class _Donor(NamedTuple):
    """A real conversation to copy from."""

    agent: str
    messages: list[Message]
    people: tuple[str, ...] = ()


def write_sessions(home: Home, sessions: int, messages: int) -> PastSessions | None:
    """Write a home of so many sessions and messages; None without the data they are made from."""
    folder, transcripts = data.find("locomo"), data.find_transcripts()
    if folder is None or transcripts is None:
        return None
    talks = tuple(read_corpora(os.path.dirname(folder)))
    recorded = list(_read_transcripts(transcripts))
    writer = _Writer(home)
    needles = [needle for talk in talks for needle in _write_talk(writer, talk)]
    needles += [needle for donor in recorded for needle in _write_transcript(writer, donor)]
    donors = [*map(_without_answers, recorded), *map(_donor_of, talks)]
    chance = random.Random(7)
    while writer.sessions < sessions:
        room = (messages - writer.messages) // (sessions - writer.sessions)
        writer.write(_mix(donors, max(1, room), chance))
    return PastSessions(writer.sessions, writer.messages, writer.text_bytes, tuple(needles))


def write_recorded(home: Home, messages: int) -> None:
    """Write a home of so many messages of recorded agent sessions only, and mixtures of them."""
    recorded = list(_read_transcripts(data.find_transcripts() or ""))
    writer, chance = _Writer(home), random.Random(7)
    for donor in recorded:
        writer.write(donor)
    while writer.messages < messages:
        writer.write(_mix(recorded, _RECORDED_MESSAGES, chance))


class _Writer:
    """Writes logs as sessions do, without opening a session for each."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._chance = random.Random(11)
        self.sessions = self.messages = self.text_bytes = 0

    def write(self, donor: _Donor) -> tuple[str, str]:
        """Write a session; return its agent and its name."""
        name = f"{self.sessions:04}-{self._chance.randrange(1 << 32):08x}"
        layout = self._home.session(donor.agent, name)
        os.makedirs(layout.folder)
        moment = _BEGIN + timedelta(days=self._chance.random() * _DAYS)
        with open(layout.messages, "wb") as file:
            for seq, message in enumerate(donor.messages, 1):
                moment += timedelta(seconds=self._chance.randrange(5, 90))
                stamp = message.ts or f"{moment.isoformat(timespec='milliseconds')[:23]}Z"
                stored = msgspec.structs.replace(message, seq=seq, id=f"msg-{seq}", ts=stamp)
                file.write(seal(msgspec.json.encode(stored))[0])
                self.text_bytes += len(searchable(message).encode("utf-8", "replace"))
        with open(layout.cwd, "w", encoding="utf-8") as file:
            file.write(f"/home/dev/src/{_NAMES[self.sessions % len(_NAMES)].lower()}\n")
        self.sessions += 1
        self.messages += len(donor.messages)
        return donor.agent, name


def _write_talk(writer: _Writer, talk: Talk) -> Iterator[Needle]:
    """Write the sessions of a dialogue; yield its questions."""
    places: dict[str, tuple[str, str, int]] = {}
    texts = {said.id: said.text for said in talk.entries}
    groups: dict[str, list[Any]] = {}
    for said in talk.entries:
        groups.setdefault(said.session, []).append(said)
    for number, entries in enumerate(groups.values()):
        agent = _AGENTS[number % len(_AGENTS)]
        messages = [_said(said.text, said.author, said.role) for said in entries]
        agent, name = writer.write(_Donor(agent, messages))
        places |= {said.id: (agent, name, seq) for seq, said in enumerate(entries, 1)}
    for question in talk.questions:
        gold = frozenset(places[entry] for entry in question.gold)
        yield Needle(question.text, gold, tuple(texts[entry] for entry in question.gold), talk.corpus)


def _said(text: str, author: str, role: str) -> Message:
    if role == "person":
        return Message(role="user", content=f"{author}: {text}")
    return Message(role="assistant" if role == "assistant" else "user", content=text)


def _donor_of(talk: Talk) -> _Donor:
    """Return a dialogue without the messages that answer questions."""
    gold = {entry for question in talk.questions for entry in question.gold}
    people = tuple(sorted({said.author for said in talk.entries if said.role == "person"}))
    left = [_said(said.text, said.author, said.role) for said in talk.entries if said.id not in gold]
    return _Donor("default", left, people)


def _read_transcripts(folder: str) -> Iterator[_Donor]:
    for path in sorted(glob(os.path.join(folder, "**", "*.*"), recursive=True)):
        if not os.path.isfile(path):
            continue
        try:
            for transcript in read_file(None, path):
                drafts = [draft_from(message) for message in messages_of(transcript, children=True)]
                messages = [msgspec.structs.replace(draft, ts="") for draft in drafts if searchable(draft)]
                if messages:
                    yield _Donor(_AGENTS[len(messages) % len(_AGENTS)], messages)
        except DaypackError as error:
            say(f"find: {path} left out: {error.problem}")


_WORD = re.compile(r"[A-Za-z][A-Za-z'-]{3,}")
_ENDINGS = (("ing", "ed"), ("ed", "ing"), ("s", ""), ("e", "es"), ("y", "ies"))
_QUESTION_WORDS = (5, 9)


def _write_transcript(writer: _Writer, donor: _Donor) -> Iterator[Needle]:
    """Write a recorded session; yield questions made of its sentences: other forms and order, words left out."""
    agent, name = writer.write(donor)
    for seq, message in enumerate(donor.messages, 1):
        if query := _question_of(seq, message):
            yield Needle(query, frozenset({(agent, name, seq)}), (message.text,), REWORDED)


def _without_answers(donor: _Donor) -> _Donor:
    """Return a recorded session without the messages that answer a question."""
    left = [message for seq, message in enumerate(donor.messages, 1) if not _question_of(seq, message)]
    return donor._replace(messages=left) if left else donor


def _question_of(seq: int, message: Message) -> str:
    """Return the question that a message answers, "" for most."""
    return _reword(message.text) if message.role in ("user", "assistant") and seq % 8 == 0 else ""


def _reword(text: str) -> str:
    """Return the longest sentence of a text with every third word left out, the others in other forms, backwards."""
    sentence = max(_LINE.findall(text), key=lambda line: len(_WORD.findall(line)), default="")
    words = [word for word in dict.fromkeys(_WORD.findall(sentence.lower())) if word not in STOP_WORDS]
    kept = [_inflect(word) for number, word in enumerate(words) if number % 3 < 2]
    return " ".join(reversed(kept[: _QUESTION_WORDS[1]])) if len(kept) >= _QUESTION_WORDS[0] else ""


def _inflect(word: str) -> str:
    for ending, other in _ENDINGS:
        if word.endswith(ending) and len(word) > len(ending) + 3:
            return word[: -len(ending)] + other
    return f"{word}s"


def _mix(donors: Sequence[_Donor], count: int, chance: random.Random) -> _Donor:
    """Return a conversation of stretches of others."""
    digits = list("0123456789")
    chance.shuffle(digits)
    numbers = str.maketrans("0123456789", "".join(digits))
    messages: list[Message] = []
    agent = chance.choice(_AGENTS)
    while len(messages) < count:
        donor = chance.choice(donors)
        renamed = {person: chance.choice(_NAMES) for person in donor.people}
        start = chance.randrange(len(donor.messages))
        stretch = donor.messages[start : start + chance.randrange(*_STRETCH)]
        messages += [_vary(message, numbers, renamed, chance) for message in stretch]
    return _Donor(agent, messages[:count])


def _vary(message: Message, numbers: dict[int, int], renamed: dict[str, str], chance: random.Random) -> Message:
    lines = _LINE.findall(message.text)
    text = "".join(line for line in lines if len(lines) < 3 or chance.random() < _KEPT_LINES).translate(numbers)
    for person, other in renamed.items():
        text = text.replace(person, other)
    calls = tuple(
        msgspec.structs.replace(call, arguments=call.arguments.translate(numbers)) for call in message.tool_calls
    )
    return Message(role=message.role, content=text, tool_calls=calls, tool_call_id=message.tool_call_id)
