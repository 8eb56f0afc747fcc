"""The one summary of an entry, for search: who did, stated or asked what, in at most 512 characters.

    Hi Sam, our Q3 launch date moved to 17 Aug 2025. Please update the tracker.
    ->  User stated the Q3 launch date moved to 17 Aug 2025 and asked Sam to update the tracker.

A summary adds only known names and a few verbs: every path, number, date or id in it occurs in the raw text. Sentences
that cannot be rewritten safely are quoted, and so is every language but English.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from daypack.memory.summary.speakers import Participants, find_voices, read_participants, strip_quotations
from daypack.text.extract import MAX_SENTENCE_CHARS, literal_density
from daypack.text.filler import is_filler, strip_lead_in
from daypack.text.language import is_english
from daypack.text.literals import literals, occurs
from daypack.text.reported_speech import Reported, Voices, report
from daypack.text.sentences import sentences
from daypack.text.trim import trim
from daypack.types.memory import SUMMARY_MAX_CHARS, About

ELLIPSIS = "…"
_SPOKEN = re.compile(r"\s*(?P<role>user|assistant|system)\s*:\s*(?P<rest>\S.*)\Z", re.IGNORECASE | re.DOTALL)
_QUOTED = (('"', '"'), ("“", "”"))
_MACHINES = frozenset({"tool", "system"})  # their output is not speech
_SPEAKER_CHARS = 60
_QUOTE = Reported("quote", "")
_WIDE = ("。", "！", "？", "；", "：")
_END = (".", "!", "?", "…", ":", ";", "。", "！", "？", "；", "：")
_FULL = (".", "!", "?", "…", "。", "！", "？")


class _Piece(NamedTuple):
    """A sentence of an entry: as written, as reported speech, and how much it is worth."""

    sentence: str
    reported: Reported
    worth: float


def summarise_entry(raw: str, about: About | None, document: str | None) -> str:
    """Return the summary of an entry, made without a model; it depends on the entry and the document only."""
    about = about or About()
    role, text = _split_role(raw, about)
    own = strip_quotations(text)
    spoken = _sentences_of(own or text)
    if not spoken:
        return _fit(" ".join(text.split()))
    known = read_participants(document) if document else Participants()
    speaker = known.speaker(about.author, role)
    if not own or role in _MACHINES or len(speaker) > _SPEAKER_CHARS or not is_english(own):
        return trim_summary(_join([sentence for sentence in spoken if not is_filler(sentence)] or spoken))
    spoken, listener = _without_lead_ins(spoken)
    if not speaker:
        return trim_summary(_join(spoken))
    return _report(raw, spoken, find_voices(speaker, role, listener, spoken, known))


def trim_summary(text: str) -> str:
    """Return a summary of at most 512 characters: filler is dropped first, sentences with names and numbers last.

    A summary that fits is unchanged; a shortened one ends with an ellipsis, which counts.
    """
    if len(text) <= SUMMARY_MAX_CHARS:
        return text
    spoken = _sentences_of(text)
    if not spoken:
        return _fit(" ".join(text.split()))
    worths = [_worth(sentence) for sentence in spoken]
    pieces = [_Piece(spoken[at], _QUOTE, worths[at]) for at in _best(spoken, worths)]
    return _shorten(pieces, "", cut=len(pieces) < len(spoken))


def _sentences_of(text: str) -> list[str]:
    return [" ".join(sentence.text.split()) for sentence in sentences(text)]


def _split_role(raw: str, about: About) -> tuple[str, str]:
    """Return the role and the words of an entry; a leading "User:" in the text gives the role if `about` has none."""
    role = (about.role or "").lower()
    spoken = _SPOKEN.match(raw) if ":" in raw[:16] else None
    if spoken is None:
        return role, raw
    text = spoken["rest"].rstrip()
    for opened, closed in _QUOTED:
        if text.startswith(opened) and text.endswith(closed) and text.count(opened) <= 2:
            text = text[1:-1]
    return role or spoken["role"].lower(), text


def _without_lead_ins(spoken: Sequence[str]) -> tuple[list[str], str]:
    """Return sentences without greetings and other lead-ins, and the name of the person addressed."""
    stripped: list[str] = []
    listener = ""
    for sentence in spoken:
        text, name = strip_lead_in(sentence)
        listener = listener or name
        if text and not is_filler(text):
            stripped.append(text)
    return stripped or list(spoken), listener


def _report(raw: str, spoken: Sequence[str], voices: Voices) -> str:
    long = sum(map(len, spoken)) > SUMMARY_MAX_CHARS
    worths = [_worth(sentence) for sentence in spoken] if long else [0.0] * len(spoken)
    chosen = _best(spoken, worths)
    pieces = [_Piece(spoken[at], report(spoken[at], voices), worths[at]) for at in chosen]
    summary = _assemble(pieces, voices.speaker)
    if len(summary) > SUMMARY_MAX_CHARS and not long:  # names are longer than the pronouns they replace
        pieces = [piece._replace(worth=_worth(piece.sentence)) for piece in pieces]
    if long or len(summary) > SUMMARY_MAX_CHARS:
        summary = _shorten(pieces, voices.speaker, cut=len(chosen) < len(spoken))
    names = f"{voices.speaker}\n{voices.listener}\n{voices.third}"
    # Only a cut can leave part of a literal, so only then word boundaries are checked.
    cut = summary.endswith(ELLIPSIS)
    if all(
        literal.text in names or (literal.text in raw and (not cut or occurs(literal.text, raw)))
        for literal in literals(summary)
    ):
        return summary
    return trim_summary(f"{voices.speaker} said: {_join(spoken)}")


def _best(spoken: Sequence[str], worths: Sequence[float]) -> list[int]:
    """Return the indexes of the sentences worth most, in text order; all of them if the text is short."""
    if sum(map(len, spoken)) <= 2 * SUMMARY_MAX_CHARS:
        return list(range(len(spoken)))
    room = 2 * SUMMARY_MAX_CHARS
    chosen: list[int] = []
    for at in sorted(range(len(spoken)), key=lambda index: (-worths[index], index)):
        chosen.append(at)
        room -= len(spoken[at])
        if room <= 0:
            break
    return sorted(chosen)


def _shorten(pieces: Sequence[_Piece], speaker: str, *, cut: bool) -> str:
    """Assemble pieces, dropping those worth least until the summary fits."""
    rest = list(pieces)
    while True:
        text = _assemble(rest, speaker)
        if len(text) <= SUMMARY_MAX_CHARS - (2 if cut else 0):
            return _with_ellipsis(text) if cut else text
        if len(rest) == 1:
            return _fit(text)
        cut = True
        # Of equal pieces the last is dropped: a text begins with its topic.
        rest.pop(min(range(len(rest) - 1, -1, -1), key=lambda at: rest[at].worth))


def _assemble(pieces: Sequence[_Piece], speaker: str) -> str:
    if not speaker:
        return _join([piece.sentence for piece in pieces])
    parts: list[str] = []
    former = ""
    for piece in pieces:
        kind, text = piece.reported
        if kind == "request":
            if (
                parts
                and former in ("deed", "claim")
                and "?" not in parts[-1]
                and len(parts[-1]) < SUMMARY_MAX_CHARS // 2
            ):
                parts[-1] = f"{parts[-1].rstrip('.!')} and {text}."
            else:
                parts.append(f"{speaker} {text}.")
        elif kind == "deed":
            parts.append(text)
        elif kind == "question":
            parts.append(f"{speaker} asked: {text}" if former != "question" else text)
        elif kind == "claim":
            that = " that" if text.startswith(speaker) else ""
            parts.append(f"{speaker} stated{that} {text}" if former != "claim" else _capital(text))
        else:
            parts.append(f"{speaker} said: {text}" if former != "quote" else text)
        former = kind
    return _join(parts)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _join(texts: Sequence[str]) -> str:
    """Join sentences with spaces; text without a final mark gets a semicolon."""
    joined = "".join(
        [text if text.endswith(_WIDE) else f"{text}{' ' if text.endswith(_END) else '; '}" for text in texts]
    )
    return joined[: -2 if texts and not texts[-1].endswith(_END) else None].rstrip()


def _worth(text: str) -> float:
    """Return how informative a sentence is, by its literals and names; filler is negative."""
    if is_filler(text):
        return -1.0
    return literal_density(text[:MAX_SENTENCE_CHARS]) + (0.0 if text.endswith(("?", "？")) else 0.05)


def _with_ellipsis(text: str) -> str:
    return f"{text} {ELLIPSIS}" if text.endswith(_FULL) else f"{text.rstrip(';:,')}{ELLIPSIS}"


def _fit(text: str) -> str:
    if len(text) <= SUMMARY_MAX_CHARS:
        return text
    return _with_ellipsis(trim(text, SUMMARY_MAX_CHARS - 2))
