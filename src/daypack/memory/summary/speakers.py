"""The speaker and the listener of an entry, and the person that "he" or "she" refers to."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from daypack.text.english import FAMILY, FUNCTION_WORDS, LOWER_CASE
from daypack.text.extract import prose
from daypack.text.reported_speech import Voices

ROLES = {"user": "User", "assistant": "Assistant", "tool": "Tool", "system": "System"}
_PERSON = re.compile(
    r"\s*[-*•] +(?:\*\*)?(?P<name>[^\s(:,*–—](?:[^(:,*–—\n]{0,60}[^\s(:,*–—])?)(?:\*\*)?\s*"
    r"(?:\((?P<role>user|assistant)\)|[(:,–—]|\Z)"
)
_THIRD_PERSON = re.compile(r"\b(?:[Hh]e|[Ss]he|[Hh]im|[Hh]is|[Hh]er)\b")
_MENTIONED_PERSON = re.compile(
    r"\b(?:my|our|your|an?|the|this|that|another|two|three|some|one of) [a-z]|\b(?:some|any|every|no)(?:one|body)\b",
    re.IGNORECASE,
)
_LOWER = re.compile(r"[a-z]+")
_CAPITAL = re.compile(r"\b[A-Z][\w’'-]+")
_MAIL_HEADERS = re.compile(r"^(?:From|To|Subject|Sent|Cc|Date|Von|An|Betreff|De|Para|Objet): ", re.MULTILINE)
_QUOTED_LINES = re.compile(r"^[ \t]*>.*(?:\n|\Z)", re.MULTILINE)


class Participants(NamedTuple):
    """The people a document lists, and the names it gives the user and the assistant."""

    names: tuple[str, ...] = ()
    user: str = ""
    assistant: str = ""
    speakers: tuple[str, ...] = ()  # of the names: people who write entries themselves, not people others mention

    def speaker(self, author: str | None, role: str) -> str:
        """Return the author, else the name of the role, else the role; empty if none is known."""
        if author and not author.isspace():
            return " ".join(author.split())
        named = self.user if role == "user" else self.assistant if role == "assistant" else ""
        return named or ROLES.get(role, "")


def read_participants(document: str) -> Participants:
    """Return the people listed under the heading Participants of a document."""
    at = document.find("## Participants")
    if at < 0:
        return Participants()
    lines = document[at + 15 :].partition("\n#")[0].split("\n")
    people = [match for line in lines if (match := _PERSON.match(line))]
    roles = {match["role"]: match["name"] for match in people if match["role"]}
    return Participants(
        names=tuple(match["name"] for match in people),
        user=roles.get("user", ""),
        assistant=roles.get("assistant", ""),
        speakers=tuple(match["name"] for match in people if match.end() == len(match.string)),
    )


def find_voices(speaker: str, role: str, listener: str, sentences: Sequence[str], known: Participants) -> Voices:
    """Return the speaker, the listener and, if only one person can be meant, the referent of "he" or "she"."""
    others = [name for name in known.names if name != speaker and name not in ROLES.values()]
    several_speakers = speaker in known.speakers and any(name in known.speakers for name in others)
    if role == "user" and several_speakers:
        third = others if listener else []  # "you" may be any of them, or the assistant
    elif role == "user":
        listener, third = listener or known.assistant or ROLES["assistant"], others
    elif role == "assistant":
        listener, third = listener or known.user or ROLES["user"], others
    else:
        third = others if listener else []
        # In a conversation of two, "you" is the other person.
        listener = listener or (others[0] if len(others) == 1 and speaker in known.names else "")
    third = [name for name in third if name != listener]
    return Voices(speaker, listener, third[0] if len(third) == 1 and _refers_back(sentences) else "")


def _refers_back(sentences: Sequence[str]) -> bool:
    """Return True if "he" or "she" precedes any other person, so that it refers to a person mentioned earlier."""
    text = " ".join(sentences)
    pronoun = _THIRD_PERSON.search(text)
    if pronoun is None or _MENTIONED_PERSON.search(text, 0, pronoun.start()):
        return False
    if len({match[0].lower() for match in _THIRD_PERSON.findall(text)}) > 1:
        return False  # "he" and "she" are two people
    before = text[: pronoun.start()]
    capitalised = (word.lower() for word in _CAPITAL.findall(before))
    return FAMILY.isdisjoint(_LOWER.findall(before)) and all(
        word in LOWER_CASE or word in FUNCTION_WORDS or word.startswith(("i'", "i’")) for word in capitalised
    )


def strip_quotations(text: str) -> str:
    """Return the sender's own words: no quoted lines, no code; empty if the text is a forwarded mail."""
    if ": " in text and len(_MAIL_HEADERS.findall(text)) > 1:
        return ""
    if "```" in text:
        text = prose(text).strip()
    return _QUOTED_LINES.sub("", text).strip() if ">" in text else text
