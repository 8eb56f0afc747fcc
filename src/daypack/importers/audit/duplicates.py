"""Finds memories that say what another one says: in the same words, or in nearly the same.

Only memories of one owner about one subject are compared. Likeness is the share of common terms; it never decides
alone: a negation, another number, path or name, an order or a condition makes two statements different.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from math import ceil
from typing import NamedTuple

from daypack.importers.audit.findings import Finding
from daypack.importers.stores.records import StoredMemory
from daypack.text.statements.wording import Wording, terms_of, wording_of
from daypack.text.words import count_negations

Scope = tuple[str, str]

_PUNCTUATION = re.compile(r"[\s\W_]+")
_ALIKE = 0.85  # Dice of the terms of two texts of which one says no more than the other
_ALIKE_CONTRAST = 0.95  # the same if each has a term that the other does not have: then only another spelling of it
_SPELLING = 0.8  # likeness of two spellings of a term
_FEW_TERMS = 3  # that both must have
_LEAST_OVERLAP = _ALIKE / (2 - _ALIKE)  # the same as _ALIKE, as a share of the union
_COMPARED_CHARS = 4_000  # a longer text is a document: only its exact copies are found
_MOST_CANDIDATES = 200  # of a text, with the most rare terms in common
_LIGHT = terms_of("user said mentioned really currently very also just has been")  # words that say nothing
_FOREIGN = (
    "nicht kein keine keinen keiner nie niemals ohne pas jamais sans aucun non no nunca sin ningún não nem нет не"
)
_FOREIGN_NEGATIONS = frozenset(_FOREIGN.split())
_WORD = re.compile(r"[^\W\d_]+")


class _Text(NamedTuple):
    at: int
    text: str
    wording: Wording
    negations: int
    foreign: frozenset[str]


def scope_of(memory: StoredMemory) -> Scope:
    """Return what a memory is compared within: whose it is, and what it is about."""
    return memory.owner.name, memory.subject


def normal_text(text: str) -> str:
    """Return a text without case, spacing and punctuation."""
    return _PUNCTUATION.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip()


def in_order(memories: Sequence[StoredMemory]) -> list[int]:
    """Return the positions of memories, oldest first; those without a time come last, as they are stored."""
    return sorted(range(len(memories)), key=lambda at: (not memories[at].created_at, memories[at].created_at, at))


def find_exact(memories: Sequence[StoredMemory]) -> list[Finding]:
    """Return every memory whose words an older one has."""
    first: dict[tuple[Scope, str], int] = {}
    found: list[Finding] = []
    for at in in_order(memories):
        words = normal_text(memories[at].text)
        original = first.setdefault((scope_of(memories[at]), words), at) if words else at
        if original != at:
            found.append(Finding(kind="exact duplicate", at=at, other=original, problem="the same words"))
    return found


def find_near(memories: Sequence[StoredMemory], left_out: Iterable[int] = ()) -> list[Finding]:
    """Return every memory that says, in nearly the same words, no more than another one does."""
    scopes: dict[Scope, list[_Text]] = defaultdict(list)
    skipped = set(left_out)
    for at in in_order(memories):
        text = memories[at].text
        if at in skipped or len(text) > _COMPARED_CHARS:
            continue
        wording = wording_of(text)
        if len(wording.terms) >= _FEW_TERMS:
            foreign = _FOREIGN_NEGATIONS.intersection(_WORD.findall(text.casefold()))
            scopes[scope_of(memories[at])].append(_Text(at, text, wording, count_negations(text), foreign))
    return [finding for texts in scopes.values() if len(texts) > 1 for finding in _find_in(texts)]


def _find_in(texts: Sequence[_Text]) -> list[Finding]:
    counts = Counter(term for text in texts for term in text.wording.terms - _LIGHT)
    index: dict[str, list[_Text]] = defaultdict(list)
    found: list[Finding] = []
    dropped: set[int] = set()
    for text in texts:
        rare = _rarest(text.wording.terms - _LIGHT, counts)
        shared = Counter(other.at for term in rare for other in index[term][-_MOST_CANDIDATES:])
        others = {other.at: other for term in rare for other in index[term][-_MOST_CANDIDATES:]}
        original = None
        for at, _ in shared.most_common(_MOST_CANDIDATES):
            if at not in dropped and says_the_same(text, others[at]):
                original = others[at]
                break
        if original is not None and len(text.wording.terms - _LIGHT) > len(original.wording.terms - _LIGHT):
            # The later one says more: it is kept, and stands for the other from here on.
            found.append(_near(original, text))
            dropped.add(original.at)
            original = None
        if original is None:
            for term in rare:
                index[term].append(text)
        else:
            found.append(_near(text, original))
    return found


def _near(text: _Text, original: _Text) -> Finding:
    return Finding(kind="near duplicate", at=text.at, other=original.at, problem="nearly the same words")


def _rarest(terms: frozenset[str], counts: Mapping[str, int]) -> list[str]:
    """Return so many of the rarest terms that two texts which are alike have one of them in common."""
    ordered = sorted(terms, key=lambda term: (counts[term], term))
    return ordered[: len(ordered) - ceil(_LEAST_OVERLAP * len(ordered)) + 1]


def says_the_same(left: _Text, right: _Text) -> bool:
    """Return True if two texts make the same statement."""
    a, b = left.wording, right.wording
    if left.negations % 2 != right.negations % 2 or left.foreign != right.foreign:
        return False
    if a.specifics - b.specifics - {*b.terms, *b.words} or b.specifics - a.specifics - {*a.terms, *a.words}:
        return False  # a name at the beginning of a sentence is a plain word there
    mine, theirs = a.terms - _LIGHT, b.terms - _LIGHT
    shared = mine & theirs
    if len(shared) < min(_FEW_TERMS, len(mine | theirs)):
        return False
    more, others = mine - theirs, theirs - mine
    if more and others and not all(any(_is_spelling(term, other) for other in others) for term in more):
        return False
    least = _ALIKE_CONTRAST if more and others else _ALIKE
    return 2 * len(shared) >= least * (len(mine) + len(theirs)) and not a.differs(b)


def _is_spelling(term: str, other: str) -> bool:
    return term[:1] == other[:1] and SequenceMatcher(None, term, other, autojunk=False).ratio() >= _SPELLING
