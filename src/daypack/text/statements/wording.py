"""The wording of a statement: what it is compared by, and what makes two similar statements different ones.

    Before committing, always run tests.    ->  terms {commit, run, test}, holds before {commit}
    Never deploy to `prod` after 17:00.     ->  terms {deploy, prod}, negated, specifics {prod, 17:00}

Terms are stems without function words, in no order; how strong a rule is (always, must) is no term. Two statements with
the same terms are different if one is negated, has another number, path or name, or holds under another condition. A
word and its opposite are one term: "kept shut" is "not opened", and "open" beside "shut" is a negation.
"""

import re
from functools import cache, lru_cache
from typing import Literal, NamedTuple

from daypack.text.english import (
    FORCE_WORDS,
    INSTRUCTION_STOP_WORDS,
    NEGATING_PREFIXES,
    irregular_forms,
    opposites,
    root,
)
from daypack.text.literals import literals
from daypack.text.statements.roles import Roles, roles_of
from daypack.text.words import content_words

_COUNTS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_NUMBER_WORDS = {word: str(value) for value, word in enumerate(_COUNTS)} | {"twice": "2"}
_FILLER = frozenset(["a", "an", "the", "is", "are", "be", "to", "please", "that", "of", "it", "its", "this"])
_NOT = (
    r"(?:not|never|no|none|nothing|nobody|neither|cannot|forbidden|forbids?|prohibited|banned|avoid|refrain)\b"
    r"|\w+n['’]t\b"
)
_NEGATION = re.compile(
    rf"\b(?:{_NOT})|\b(?:without|instead of|rather than|stop \w+ing)\b|[不没別别勿无無]", re.IGNORECASE
)
# "Never delete without asking" and "do not use what you have not read" say when to do it: they deny nothing.
_EXCEPTION = re.compile(
    rf"\b(?:{_NOT})(?:(?!\b(?:and|or|nor)\b)[^,;:.])*,?\s(?:without\b|unless\b|until\b|except\b|before\b|{_NOT})",
    re.IGNORECASE,
)
_BOUND = re.compile(
    r"\b(?:(at most|up to|under|below|within|(?:less|fewer|shorter|smaller|lower) than|max(?:imum)?)|at least|over"
    r"|above|exceed(?:s|ing)?|(?:more|longer|later|larger|greater|higher) than|min(?:imum)?)\b"
    rf"(?=(?:\W+\w+)?\W+(?:\d|(?:{'|'.join(_NUMBER_WORDS)})\b))",
    re.IGNORECASE,
)
_CLAUSE = r"([^,;:.—()]*)"
_CONDITION = re.compile(
    rf"\b(?:if|when|whenever|while|during|(?<!at )once|before|after|unless|until|except|without)\b{_CLAUSE}",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(rf"\b(?:if|when|whenever|while|(?<!at )once)\b{_CLAUSE}", re.IGNORECASE)
_AS_LONG_AS = re.compile(r"\bas (?:long|soon) as\b", re.IGNORECASE)
_FIRST = re.compile(rf"\bafter\b{_CLAUSE}", re.IGNORECASE)
_SECOND = re.compile(rf"(?:\b(?:before|then|over|than|instead of)|, not)\b{_CLAUSE}", re.IGNORECASE)
_CLAUSE_END = re.compile(r"[:;,]\s|\s[-—–→]\s|[—–→]|\*\*|[()]|\sand\s")
_MARKUP = re.compile(r"[*_`~]+|<!--|-->|!?\[([^\]]*)\]\([^)]*\)")
_FILE = re.compile(r"\b([\w-]+)\.(md|json|jsonl|toml|py|rs|txt|ya?ml)\b")
_SHORT = re.compile(r"(['’]s\b)|\b\w+n['’]t\b")
_NAME = re.compile(r"(?<=[a-z0-9,;] )[A-Z][a-z]+\b")
_TAG = re.compile(r"(?<![\w&])[#@][A-Za-z][\w-]+")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,:]\d+)*")
_FEW_WORDS, _LONG_CLAUSE = 3, 3
_VERB_END = re.compile(r"(?<=\w{3})(?<![eo])at$")
_DOUBLED = re.compile(r"([bdglmnprt])\1$")
_STEM_CHARS = 6  # longer stems are compared by their beginning: respond, response


Bound = Literal["at most", "at least"] | None


class Wording(NamedTuple):
    """The words of a statement in the forms that comparisons need."""

    words: tuple[str, ...]
    clauses: frozenset[tuple[str, ...]]
    terms: frozenset[str]
    negated: bool
    specifics: frozenset[str]
    condition: frozenset[str]
    second: frozenset[str]  # terms of what comes later, or is liked less
    denied: frozenset[str]  # terms that stand for their opposites
    supposed: bool  # True if a condition is negated
    bound: Bound
    roles: Roles

    def differs(self, other: "Wording") -> str:
        """Return what makes this another statement than a similar one, else ""."""
        # What is not "off" is on, whether it says so or not.
        opposed = (self.denied ^ other.denied) & (self.terms & other.terms | {"on"})
        opposed |= (self.terms - self.against(other)) | (other.terms - other.against(self))
        stated = opposed - self.condition - other.condition
        if self.negated ^ other.negated ^ len(stated) % 2:
            return "negation"
        mine, theirs = self.specifics - other.specifics, other.specifics - self.specifics
        if mine - other.terms and theirs - self.terms:
            return "number, path or name"
        crossed = self.second & other.terms - other.second and other.second & self.terms - self.second
        crossed = crossed or self.roles.swapped(other.roles, self.terms & other.terms, self.specifics | other.specifics)
        if crossed or (self.bound and other.bound and self.bound != other.bound):
            return "order"
        if self.supposed ^ other.supposed ^ len(opposed - stated) % 2:
            return "condition"
        for here, there in ((self, other), (other, self)):
            if len(here.condition & there.terms) * 2 < len(here.condition):
                return "condition"
        return ""

    def against(self, other: "Wording") -> frozenset[str]:
        """Return the terms, with those of the other statement for what it denies by a prefix: locked for unlocked."""
        prefixed = {(prefix + term)[:_STEM_CHARS]: term for prefix in NEGATING_PREFIXES for term in other.terms}
        return frozenset(term if term in other.terms else prefixed.get(term, term) for term in self.terms)

    def quotes(self, other: "Wording") -> bool:
        """Return True if one statement is a clause of the other, or both have a long clause in the same words."""
        shared = {clause for clause in self.clauses & other.clauses if terms_of(" ".join(clause))}
        if any(len(clause) > 1 or self.words[0] == other.words[0] for clause in shared & {self.words, other.words}):
            return True
        long = {clause for clause in self.clauses | other.clauses if len(terms_of(" ".join(clause))) > _LONG_CLAUSE}
        runs = {min(self.words, other.words, key=len), *long}
        return any(_has_run(self.words, run) and _has_run(other.words, run) for run in runs)


def _has_run(words: tuple[str, ...], run: tuple[str, ...]) -> bool:
    """Return True if some words contain others in their order; after a negation they say the opposite."""
    if len(run) < _FEW_WORDS or len(terms_of(" ".join(run))) < 2:
        return False
    starts = [at for at in range(len(words) - len(run) + 1) if words[at : at + len(run)] == run]
    return any(not _NEGATION.search(" ".join(words[max(0, at - 2) : at])) for at in starts)


@lru_cache(1 << 13)
def wording_of(text: str) -> Wording:
    """Return the wording of a sentence or of a longer text."""
    words = _words(text)
    flat = _AS_LONG_AS.sub("while", _BOUND.sub(" ", text))
    excepted = _EXCEPTION.search(flat) is not None
    terms = terms_of(flat)
    supposed = " ".join(_SUPPOSED.findall(flat))
    negation = None if excepted else _NEGATION.search(_SUPPOSED.sub(" ", flat))
    bound = _BOUND.search(text)
    # "Never more than five" is "at most five".
    reversed_bound = bound is not None and negation is not None and _NEGATION.search(text, 0, bound.start()) is not None
    first, second = (terms_of(" ".join(found.findall(plain(flat)))) for found in (_FIRST, _SECOND))
    if first and not excepted:
        second |= terms - first
    elif excepted and second:  # "never before" is "only after"
        second = terms - second
    return Wording(
        words=words,
        clauses=frozenset(found for clause in _CLAUSE_END.split(text) if (found := _words(clause))) | {words},
        terms=terms,
        negated=negation is not None and not reversed_bound,
        specifics=_specifics(text),
        condition=terms_of(" ".join(_CONDITION.findall(plain(flat)))),
        second=second,
        denied=frozenset(_term(word) for word in _split(flat) if _opposites().get(_stem(word), ("", False))[1]),
        supposed=_NEGATION.search(supposed) is not None,
        bound=None if bound is None else "at most" if (bound[1] is not None) ^ reversed_bound else "at least",
        roles=roles_of(plain(flat), lambda word: next(iter(terms_of(word)), "")),
    )


def plain(text: str) -> str:
    """Return text without Markdown and in small letters; a link is its words."""
    return _MARKUP.sub(lambda match: match[1] or "", text).lower()


def terms_of(text: str) -> frozenset[str]:
    """Return the stems of the words that carry the meaning."""
    left_out = INSTRUCTION_STOP_WORDS | FORCE_WORDS | _NUMBER_WORDS.keys()
    return frozenset(_term(word) for word in _split(text) if word not in left_out and len(word) > 1)


def _term(word: str) -> str:
    stem = _stem(word)
    return _opposites().get(stem, (stem, False))[0]


@cache
def _opposites() -> dict[str, tuple[str, bool]]:
    return {_stem(word): (_stem(stands_for), denies) for word, (stands_for, denies) in opposites().items()}


@lru_cache(20_000)
def _stem(word: str) -> str:
    if word in ("uses", "used", "using"):  # too short for the rules of stems
        word = "use"
    forms = irregular_forms(word)
    if len(forms) == 1:
        forms = irregular_forms(root(word))
    word = min(forms) if len(forms) > 1 else word
    while (shorter := _VERB_END.sub("", root(word))) != word:  # preferred, prefer; citation, cit
        word = shorter
    word = _DOUBLED.sub(r"\1", word.removesuffix("e") if len(word) > 2 else word)  # cite, cited; label, labelled
    return word[:_STEM_CHARS] if word.isalpha() else word


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in _split(text) if word not in _FILLER)


def _split(text: str) -> list[str]:
    # A file is one word: MEMORY.md is neither memory nor md.
    text = _SHORT.sub(lambda match: "" if match[1] else "not", _FILE.sub(r"\1x\2", plain(text)))
    return re.findall(r"[0-9a-z]+", text) if text.isascii() else content_words(text)


def _specifics(text: str) -> frozenset[str]:
    """Return the numbers, paths, identifiers and capitalised names of a text."""
    flat = " ".join(_MARKUP.sub(lambda match: match[1] or "", text).split())
    found = {_term(name.lower()) for name in _NAME.findall(flat)}
    found |= {literal.text.lower() for literal in literals(text) if literal.kind in ("path", "url", "version")}
    found |= {" ".join(_words(literal.text)) for literal in literals(text) if literal.kind == "id"}
    found |= {tag.lower() for tag in _TAG.findall(flat)}
    found |= {number.replace(",", "") for number in _NUMBER.findall(flat)}
    return frozenset(found | {_NUMBER_WORDS[word] for word in flat.lower().split() if word in _NUMBER_WORDS})
