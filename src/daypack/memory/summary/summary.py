"""The one summary of an entry: who did, stated or asked what, for search, in at most 512 characters.

    Hi Sam, our Q3 launch date moved to 17 Aug 2025. Please update the tracker.
    ->  User stated the Q3 launch date moved to 17 Aug 2025 and asked Sam to update the tracker.

Nothing is added but names that are known and a few verbs: what is a path, a number, a date or an id in a summary stands
in the raw text. What cannot be put into other words safely is quoted, and so is every language but English.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from daypack.text.english import FAMILY, FUNCTION_WORDS, LOWER_CASE
from daypack.text.extract import MAX_SENTENCE_CHARS, literal_density, prose
from daypack.text.filler import is_filler, strip_lead_in
from daypack.text.language import is_english
from daypack.text.literals import literals, occurs
from daypack.text.reported_speech import Reported, Voices, report
from daypack.text.sentences import sentences
from daypack.text.trim import trim
from daypack.types.memory import SUMMARY_MAX_CHARS, About

ELLIPSIS = "…"
ROLES = {"user": "User", "assistant": "Assistant", "tool": "Tool", "system": "System"}
_SPOKEN = re.compile(r"\s*(?P<role>user|assistant|system)\s*:\s*(?P<rest>\S.*)\Z", re.IGNORECASE | re.DOTALL)
_QUOTED = (('"', '"'), ("“", "”"))
_MACHINES = frozenset({"tool", "system"})  # their output is not speech
_SPEAKER_CHARS = 60
_AS_SAID = Reported("quote", "")
_WIDE = ("。", "！", "？", "；", "：")
_END = (".", "!", "?", "…", ":", ";", "。", "！", "？", "；", "：")
_FULL = (".", "!", "?", "…", "。", "！", "？")
_PERSON = re.compile(
    r"\s*[-*•] +(?:\*\*)?(?P<name>[^\s(:,*–—](?:[^(:,*–—\n]{0,60}[^\s(:,*–—])?)(?:\*\*)?\s*"
    r"(?:\((?P<role>user|assistant)\)|[(:,–—]|\Z)"
)
_THIRD = re.compile(r"\b(?:[Hh]e|[Ss]he|[Hh]im|[Hh]is|[Hh]er)\b")
_SOMEBODY = re.compile(
    r"\b(?:my|our|your|an?|the|this|that|another|two|three|some|one of) [a-z]|\b(?:some|any|every|no)(?:one|body)\b",
    re.IGNORECASE,
)
_LOWER = re.compile(r"[a-z]+")
_CAPITAL = re.compile(r"\b[A-Z][\w’'-]+")
_HEADERS = re.compile(r"^(?:From|To|Subject|Sent|Cc|Date|Von|An|Betreff|De|Para|Objet): ", re.MULTILINE)
_CITED = re.compile(r"^[ \t]*>.*(?:\n|\Z)", re.MULTILINE)


class _Piece(NamedTuple):
    """A sentence of an entry: as it was said, as it is told, and how much it is worth."""

    said: str
    told: Reported
    worth: float


def summarise_entry(raw: str, about: About | None, document: str | None) -> str:
    """Return the summary of an entry, made without a model: the same for the same entry and document."""
    about = about or About()
    role, text = _own_words(raw, about)
    own = own_words_of(text)
    said = [" ".join(one.text.split()) for one in sentences(own or text)]
    if not said:
        return _fit(" ".join(text.split()))
    known = know_people(document) if document else Known()
    speaker = known.speaker(about.author, role)
    if not own or role in _MACHINES or len(speaker) > _SPEAKER_CHARS or not is_english(own):
        return trim_summary(_join([one for one in said if not is_filler(one)] or said))
    said, listener = _without_lead_ins(said)
    if not speaker:
        return trim_summary(_join(said))
    return _tell(raw, said, voices_of(speaker, role, listener, said, known))


def trim_summary(text: str) -> str:
    """Return a summary of at most 512 characters: filler goes first, what names, dates or counts things last.

    One that fits is left as it is; one that lost something ends with an ellipsis, which counts.
    """
    if len(text) <= SUMMARY_MAX_CHARS:
        return text
    said = [" ".join(one.text.split()) for one in sentences(text)]
    if not said:
        return _fit(" ".join(text.split()))
    worths = [_worth(one) for one in said]
    pieces = [_Piece(said[at], _AS_SAID, worths[at]) for at in _best(said, worths)]
    return _shorten(pieces, "", cut=len(pieces) < len(said))


def _own_words(raw: str, about: About) -> tuple[str, str]:
    """Return the role and the words of an entry; a role that stands before them in the text is believed."""
    role = (about.role or "").lower()
    spoken = _SPOKEN.match(raw) if ":" in raw[:16] else None
    if spoken is None:
        return role, raw
    text = spoken["rest"].rstrip()
    for opened, closed in _QUOTED:
        if text.startswith(opened) and text.endswith(closed) and text.count(opened) <= 2:
            text = text[1:-1]
    return role or spoken["role"].lower(), text


def own_words_of(text: str) -> str:
    """Return the own words of whoever sent a text: without cited lines and code; nothing when it is another's mail."""
    if ": " in text and len(_HEADERS.findall(text)) > 1:
        return ""
    if "```" in text:
        text = prose(text).strip()
    return _CITED.sub("", text).strip() if ">" in text else text


def _without_lead_ins(said: Sequence[str]) -> tuple[list[str], str]:
    """Return sentences without what stands before the news, and the name of whom they are said to."""
    kept: list[str] = []
    listener = ""
    for one in said:
        text, name = strip_lead_in(one)
        listener = listener or name
        if text and not is_filler(text):
            kept.append(text)
    return kept or list(said), listener


class Known(NamedTuple):
    """Who takes part, as a document tells; whom it names as the user or the assistant."""

    names: tuple[str, ...] = ()
    user: str = ""
    assistant: str = ""
    talking: tuple[str, ...] = ()  # of the names, those of people who speak themselves, not of whom others tell

    def speaker(self, author: str | None, role: str) -> str:
        """Return who speaks: the author, else the name of the role, else the role; empty: nobody knows."""
        if author and not author.isspace():
            return " ".join(author.split())
        named = self.user if role == "user" else self.assistant if role == "assistant" else ""
        return named or ROLES.get(role, "")


def know_people(document: str) -> Known:
    """Return who stands under the heading Participants of a document."""
    at = document.find("## Participants")
    if at < 0:
        return Known()
    found = [match for line in document[at + 15 :].partition("\n#")[0].split("\n") if (match := _PERSON.match(line))]
    roles = {match["role"]: match["name"] for match in found if match["role"]}
    talking = tuple(match["name"] for match in found if match.end() == len(match.string))
    return Known(tuple(match["name"] for match in found), roles.get("user", ""), roles.get("assistant", ""), talking)


def voices_of(speaker: str, role: str, listener: str, said: Sequence[str], known: Known) -> Voices:
    """Return who speaks to whom, and whom "he" or "she" can only mean, as far as it is known who takes part."""
    others = [one for one in known.names if one != speaker and one not in ROLES.values()]
    among = speaker in known.talking and any(one in known.talking for one in others)
    if role == "user" and among:
        third = others if listener else []  # several people talk: "you" is any of them, or the assistant
    elif role == "user":
        listener, third = listener or known.assistant or ROLES["assistant"], others
    elif role == "assistant":
        listener, third = listener or known.user or ROLES["user"], others
    else:
        third = others if listener else []
        # Of two who talk the other one is meant.
        listener = listener or (others[0] if len(others) == 1 and speaker in known.names else "")
    third = [one for one in third if one != listener]
    return Voices(speaker, listener, third[0] if len(third) == 1 and _is_nobody_before(said) else "")


def _is_nobody_before(said: Sequence[str]) -> bool:
    """Whether the first "he" or "she" comes before anybody is named, so that it can only be somebody known before."""
    text = " ".join(said)
    found = _THIRD.search(text)
    if found is None or _SOMEBODY.search(text, 0, found.start()):
        return False
    if len({one[0].lower() for one in _THIRD.findall(text)}) > 1:
        return False  # "he" and "she" are two
    before = text[: found.start()]
    names = (one.lower() for one in _CAPITAL.findall(before))
    return FAMILY.isdisjoint(_LOWER.findall(before)) and all(
        one in LOWER_CASE or one in FUNCTION_WORDS or one.startswith(("i'", "i’")) for one in names
    )


def _tell(raw: str, said: Sequence[str], voices: Voices) -> str:
    long = sum(map(len, said)) > SUMMARY_MAX_CHARS
    worths = [_worth(one) for one in said] if long else [0.0] * len(said)
    kept = _best(said, worths)
    pieces = [_Piece(said[at], report(said[at], voices), worths[at]) for at in kept]
    summary = _assemble(pieces, voices.speaker)
    if len(summary) > SUMMARY_MAX_CHARS and not long:  # names are longer than the pronouns they stand for
        pieces = [one._replace(worth=_worth(one.said)) for one in pieces]
    if long or len(summary) > SUMMARY_MAX_CHARS:
        summary = _shorten(pieces, voices.speaker, cut=len(kept) < len(said))
    names = f"{voices.speaker}\n{voices.listener}\n{voices.third}"
    # Only a cut can leave a part of a literal; without one it is enough that it stands there.
    cut = summary.endswith(ELLIPSIS)
    if all(one.text in names or (one.text in raw and (not cut or occurs(one.text, raw))) for one in literals(summary)):
        return summary
    return trim_summary(f"{voices.speaker} said: {_join(said)}")


def _best(said: Sequence[str], worths: Sequence[float]) -> list[int]:
    """Return which sentences may get into a summary, in their order: of very many only those that are worth most."""
    if sum(map(len, said)) <= 2 * SUMMARY_MAX_CHARS:
        return list(range(len(said)))
    room = 2 * SUMMARY_MAX_CHARS
    kept: list[int] = []
    for at in sorted(range(len(said)), key=lambda one: (-worths[one], one)):
        kept.append(at)
        room -= len(said[at])
        if room <= 0:
            break
    return sorted(kept)


def _shorten(pieces: Sequence[_Piece], speaker: str, *, cut: bool) -> str:
    """Put pieces together, without those that are worth least where they do not fit."""
    kept = list(pieces)
    while True:
        text = _assemble(kept, speaker)
        if len(text) <= SUMMARY_MAX_CHARS - (2 if cut else 0):
            return _with_ellipsis(text) if cut else text
        if len(kept) == 1:
            return _fit(text)
        cut = True
        # Of equals the last goes: what a text is about stands at its beginning.
        kept.pop(min(range(len(kept) - 1, -1, -1), key=lambda at: kept[at].worth))


def _assemble(pieces: Sequence[_Piece], speaker: str) -> str:
    if not speaker:
        return _join([one.said for one in pieces])
    told: list[str] = []
    former = ""
    for one in pieces:
        kind, text = one.told
        if kind == "request":
            if told and former in ("deed", "claim") and "?" not in told[-1] and len(told[-1]) < SUMMARY_MAX_CHARS // 2:
                told[-1] = f"{told[-1].rstrip('.!')} and {text}."
            else:
                told.append(f"{speaker} {text}.")
        elif kind == "deed":
            told.append(text)
        elif kind == "question":
            told.append(f"{speaker} asked: {text}" if former != "question" else text)
        elif kind == "claim":
            that = " that" if text.startswith(speaker) else ""
            told.append(f"{speaker} stated{that} {text}" if former != "claim" else _capital(text))
        else:
            told.append(f"{speaker} said: {text}" if former != "quote" else text)
        former = kind
    return _join(told)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _join(texts: Sequence[str]) -> str:
    """Put sentences in a row; what does not end as a sentence is set off by a semicolon."""
    joined = "".join([one if one.endswith(_WIDE) else f"{one} " if one.endswith(_END) else f"{one}; " for one in texts])
    return joined[: -2 if texts and not texts[-1].endswith(_END) else None].rstrip()


def _worth(text: str) -> float:
    """Return how much a sentence tells: its literals and names; next to nothing for filler."""
    if is_filler(text):
        return -1.0
    return literal_density(text[:MAX_SENTENCE_CHARS]) + (0.0 if text.endswith(("?", "？")) else 0.05)


def _with_ellipsis(text: str) -> str:
    return f"{text} {ELLIPSIS}" if text.endswith(_FULL) else f"{text.rstrip(';:,')}{ELLIPSIS}"


def _fit(text: str) -> str:
    if len(text) <= SUMMARY_MAX_CHARS:
        return text
    return _with_ellipsis(trim(text, SUMMARY_MAX_CHARS - 2))
