"""Finds memories that another, newer memory contradicts: another value of the same matter, or its negation.

Which values exclude each other is decided as in search (`memory/search/supersession.py`). A negation contradicts only
a statement about a lasting state in otherwise the same words: what did not happen once may have happened later.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from daypack.importers.audit.duplicates import Scope, in_order, scope_of
from daypack.importers.audit.findings import Finding
from daypack.importers.stores.records import StoredMemory
from daypack.memory.search.supersession import find_superseded
from daypack.text.statements.wording import Wording, wording_of
from daypack.text.words import count_negations
from daypack.types.memory import Entry

_NO_SUBJECT = re.compile(
    r"(?:lives?|works?|moved|relocated|switched|migrated|uses|prefers|is|has|no longer|now|started)\b", re.IGNORECASE
)
_STATE = re.compile(
    r"\b(?:likes?|loves?|enjoys?|prefers?|uses?|wants?|eats?|drinks?|owns?|has|have|needs?|allows?|supports?|works?|lives?|"
    r"trusts?|hates?|smokes?|requires?|speaks?|plays?|drives?|is|are|can|cannot|can['’]t|mag|trinkt|isst|aime|bebe|come)\b",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\b(?:was|were|did|didn['’]t|had|went|yesterday|today|tonight|tomorrow|last|ago|this|if|when|unless|until|except|"
    r"only|some|sometimes|usually|often|always|every|all|most|\w+ed)\b",
    re.IGNORECASE,
)
# "### Step 1: …" numbers a part of a text, and "Pull request opened: …" says what happened: neither states a value.
_NO_VALUE = re.compile(
    r"^[ \t>*#-]*(?:[^\W\d_]+[ \t]+\d{1,3}[ \t]*:|[^:\n]{0,60}\b(?:\w+ed|made|sent|built|found|done|written)[ \t]*:)",
    re.IGNORECASE | re.MULTILINE,
)
_MAX_CHARS = 200
_MAX_TERMS = 8
_FEW_TERMS = 2


def find_contradictions(memories: Sequence[StoredMemory], left_out: Iterable[int] = ()) -> list[Finding]:
    """Return the older one of each pair of memories that cannot both be true."""
    scopes: dict[Scope, list[int]] = defaultdict(list)
    skipped = set(left_out)
    for at in in_order(memories):
        if at not in skipped and memories[at].kind != "prompt":
            scopes[scope_of(memories[at])].append(at)
    found: dict[int, Finding] = {}
    for positions in scopes.values():
        if len(positions) > 1:
            for finding in (*_replaced(memories, positions), *_denied(memories, positions)):
                found.setdefault(finding.at, finding)
    return list(found.values())


def _replaced(memories: Sequence[StoredMemory], positions: Sequence[int]) -> Iterator[Finding]:
    stating = (at for at in positions if not _NO_VALUE.search(memories[at].text))
    entries = [_entry(memories[at], number, at) for number, at in enumerate(stating)]
    for older, newer in find_superseded(entries).items():
        at, other = int(older), int(newer)
        is_dated = memories[at].written_at != memories[other].written_at
        yield Finding(kind="contradiction", at=at, other=other, problem=_which(is_dated=is_dated, what="another value"))


def _entry(memory: StoredMemory, number: int, at: int) -> Entry:
    """Return a memory as an entry; one that begins with its verb is about the user."""
    text = memory.text
    if _NO_SUBJECT.match(text):
        text = f"User {text[0].lower()}{text[1:]}"
    return Entry(
        entry_id=str(at),
        memory_id="",
        seq=number,
        created_at=memory.written_at,
        raw_entry=text,
        summary="",
        at=memory.written_at or None,
        author="user",
    )


def _denied(memories: Sequence[StoredMemory], positions: Sequence[int]) -> Iterator[Finding]:
    stated: dict[frozenset[str], list[tuple[int, Wording, bool]]] = defaultdict(list)
    for at in positions:
        text = memories[at].text
        if len(text) > _MAX_CHARS or "?" in text or not _STATE.search(text) or _PAST.search(text):
            continue
        wording = wording_of(text)
        terms = wording.terms - {"user"}
        if not _FEW_TERMS <= len(terms) <= _MAX_TERMS or wording.condition:
            continue
        is_negated = count_negations(text) % 2 == 1
        for other, known, was_negated in stated[terms]:
            if (
                was_negated != is_negated
                and known.specifics == wording.specifics
                and known.differs(wording) == "negation"
            ):
                is_dated = memories[at].written_at != memories[other].written_at
                problem = _which(is_dated=is_dated, what="the opposite")
                yield Finding(kind="contradiction", at=other, other=at, problem=problem)
                break
        stated[terms].append((at, wording, is_negated))


def _which(*, is_dated: bool, what: str) -> str:
    return (
        f"a newer memory says {what}"
        if is_dated
        else f"another memory says {what}; the store does not say which is newer"
    )
