"""Finds memories that begin with a pronoun for something that is named nowhere: "He moved to Lyon".

Only English is judged: in other languages a pronoun is left out, or also an article, too often to be certain.
"""

import re
from collections.abc import Sequence

from daypack.importers.audit.findings import Finding
from daypack.importers.stores.records import StoredMemory
from daypack.text.language import is_english
from daypack.text.sentences import sentences

_PERSON = re.compile(
    r"(?P<word>He|She|They|His|Her|Their|Him|Them)(?:['’](?:s|re|ve|d|ll))?\s(?!(?:say|who)\b)", re.IGNORECASE
)
_THING = re.compile(
    r"(?P<word>It|This|That|These|Those)(?:['’]s|['’]ll)?\s(?:(?:is|was|were|are|will|has|had|have|can|should|must|"
    r"does|did|also|only|now|still|broke|fails?|failed|works?|worked|runs?|uses?|used|needs?|needed|happens?|happened|"
    r"causes?|caused|means?|meant|makes?|made|took|takes?|went|got|looks?|sounds?|seems?|felt|fixed|helped)\b|not\b)",
    re.IGNORECASE,
)
# "It is important to …", "It is raining", "It takes two days to …", "It looks like you …": nothing is missing.
_EMPTY_IT = re.compile(
    r"It (?:takes?|took) [^.]{1,40} to\b"
    r"|It(?: also| now| still)? (?:(?:sounds?|looks?|seems?|felt|feels?|appears?) (?:like|as|that)|makes? sense)\b"
    r"|(?:It|That|This)(?:['’]s| is| was| will be| has been| can be| seems| takes?| took)\s(?:(?:very|quite|often|not|"
    r"always|also|only|now|still|really|so|more|too) )*"
    r"(?:\w+(?:ed|ble|ful|al|ant|ent|ary|y|ive|ous|ing|st|er|cult|ood|ight)? (?:to|that|for|if|when)\b|raining|snowing|"
    r"late|early|clear|likely|possible|important|best|better|worth|time|said|known|up to|about|an? |the |\d|my"
    r"|our|your)",
    re.IGNORECASE,
)
_FIRST_CHARS = 200
_BULLET = re.compile(r"\s*(?:[-*+•]\s+)?")


def find_dangling(memories: Sequence[StoredMemory]) -> list[Finding]:
    """Return the memories whose first sentence begins with a pronoun that nothing in the memory explains."""
    found: list[Finding] = []
    for at, memory in enumerate(memories):
        if memory.subject or memory.kind in ("prompt", "document", "entry", "summary"):
            continue  # its heading or its neighbours say who is meant
        text = memory.text[_BULLET.match(memory.text).end() :]  # pyright: ignore — it matches everywhere
        match = _PERSON.match(text) or _THING.match(text)
        if match and is_english(text[:_FIRST_CHARS]) and _is_missing(text, match["word"]):
            found.append(Finding(kind="dangling pronoun", at=at, problem=f"begins with {match['word']!r}"))
    return found


def _is_missing(text: str, word: str) -> bool:
    first = next((sentence.text for sentence in sentences(text)), text)
    if word.lower() in ("it", "this", "that", "these", "those"):
        return _EMPTY_IT.match(first) is None
    # "His name is Ben" and "She is called Eve" say who is meant.
    return re.search(r"\b(?:name is|name['’]s|named|called)\b", first) is None
