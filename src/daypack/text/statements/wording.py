"""The wording of a statement: what it is compared by, and what makes two similar statements different ones.

    Before committing, always run tests.    ->  terms {commit, run, test}, holds before {commit}
    Never deploy to `prod` after 17:00.     ->  terms {deploy, prod}, negated, specifics {prod, 17:00}

Terms are stems without function words, in no order; how strong a rule is (always, must) is no term. Two statements with
the same terms are different if one is negated, has another number, path or name, or holds under another condition.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from daypack.text.english import FORCE_WORDS, INSTRUCTION_STOP_WORDS, irregular_forms, root
from daypack.text.literals import literals
from daypack.text.words import content_words

_FILLER = frozenset(["a", "an", "the", "is", "are", "be", "to", "please", "that", "of", "it", "its", "this"])
_NOT = (
    r"(?:not|never|no|none|nothing|nobody|neither|cannot|forbidden|forbids?|prohibited|banned|avoid|refrain)\b"
    r"|\w+n['’]t\b"
)
_NEGATION = re.compile(rf"\b(?:{_NOT})|\b(?:without|instead of|rather than)\b|[不没別别勿无無]", re.IGNORECASE)
# "Never delete without asking" and "do not use what you have not read" say when to do it: they deny nothing.
_EXCEPTION = re.compile(
    rf"\b(?:{_NOT})(?:(?!\b(?:and|or|nor)\b)[^,;:.])*,?\s(?:without\b|unless\b|until\b|except\b|before\b|{_NOT})",
    re.IGNORECASE,
)
_AT_MOST = re.compile(
    r"\b(?:(?:not|never) exceed(?:ing)?|(?:not|no) (?:more|longer|later|larger|greater|higher) than|at most|up to|under"
    r"|below|within|less than|fewer than|maximum|max)\b",
    re.IGNORECASE,
)
_AT_LEAST = re.compile(
    r"\b(?:(?:not|no) (?:less|fewer|shorter|smaller|lower) than|at least|over|above|more than|exceed(?:s|ing)?|minimum"
    r"|min)\b",
    re.IGNORECASE,
)
_CLAUSE = r"([^,;:.—()]*)"
_CONDITION = re.compile(
    r"\b(?:if|when|whenever|while|during|once|as (?:soon|long) as|before|after|unless|until|except|without)\b"
    rf"{_CLAUSE}",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(rf"\b(?:if|when|whenever|while|once)\b{_CLAUSE}", re.IGNORECASE)
_BEFORE, _AFTER = (re.compile(rf"\b{word}\b{_CLAUSE}", re.IGNORECASE) for word in ("before", "after"))
_CLAUSE_END = re.compile(r"[:;,]\s|\s[-—–→]\s|[—–→]|\*\*|[()]|\sand\s")
_MARKUP = re.compile(r"[*_`~]+|<!--|-->|!?\[([^\]]*)\]\([^)]*\)")
_FILE = re.compile(r"\b([\w-]+)\.(md|json|jsonl|toml|py|rs|txt|ya?ml)\b")
_SHORT = re.compile(r"(['’]s\b)|\b\w+n['’]t\b")
_NAME = re.compile(r"(?<=[a-z0-9,;] )[A-Z][a-z]+\b")
_TAG = re.compile(r"(?<![\w&])[#@][A-Za-z][\w-]+")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,:]\d+)*")
_COUNTS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_NUMBER_WORDS = {word: str(value) for value, word in enumerate(_COUNTS)} | {"twice": "2"}
_FEW_WORDS, _LONG_CLAUSE = 3, 3
_STEM_CHARS = 6  # longer stems are compared by their beginning: respond, response


class Wording(NamedTuple):
    """The words of a statement in the forms that comparisons need."""

    words: tuple[str, ...]
    clauses: frozenset[tuple[str, ...]]
    terms: frozenset[str]
    negated: bool
    specifics: frozenset[str]
    condition: frozenset[str]
    before: frozenset[str]
    after: frozenset[str]
    bound: str

    def differs(self, other: "Wording") -> str:
        """Return what makes this another statement than a similar one, else ""."""
        if self.negated != other.negated:
            return "negation"
        mine, theirs = self.specifics - other.specifics, other.specifics - self.specifics
        if mine - other.terms and theirs - self.terms:
            return "number, path or name"
        if (self.bound and other.bound and self.bound != other.bound) or self.before & other.after:
            return "order"
        if other.before & self.after:
            return "order"
        for here, there in ((self, other), (other, self)):
            if len(here.condition & there.terms) * 2 < len(here.condition):
                return "condition"
        return ""

    def quotes(self, other: "Wording") -> bool:
        """Return True if one statement is a clause of the other, or both have a long clause in the same words."""
        shared = {clause for clause in self.clauses & other.clauses if terms_of(" ".join(clause))}
        if any(len(clause) > 1 or self.words[0] == other.words[0] for clause in shared & {self.words, other.words}):
            return True
        long = {clause for clause in self.clauses | other.clauses if len(terms_of(" ".join(clause))) > _LONG_CLAUSE}
        runs = {min(self.words, other.words, key=len), *long}
        return any(_has_run(self.words, run) and _has_run(other.words, run) for run in runs)


def _has_run(words: tuple[str, ...], run: tuple[str, ...]) -> bool:
    few = len(run) < _FEW_WORDS or len(terms_of(" ".join(run))) < 2
    return not few and any(words[at : at + len(run)] == run for at in range(len(words) - len(run) + 1))


@lru_cache(1 << 13)
def wording_of(text: str) -> Wording:
    """Return the wording of a sentence or of a longer text."""
    words = _words(text)
    flat = _AT_LEAST.sub(" ", _AT_MOST.sub(" ", text))
    excepted = _EXCEPTION.search(flat) is not None
    before, after = (terms_of(" ".join(found.findall(plain(flat)))) for found in (_BEFORE, _AFTER))
    return Wording(
        words=words,
        clauses=frozenset(found for clause in _CLAUSE_END.split(text) if (found := _words(clause))) | {words},
        terms=terms_of(flat),
        negated=not excepted and _NEGATION.search(_SUPPOSED.sub(" ", flat)) is not None,
        specifics=_specifics(text),
        condition=terms_of(" ".join(_CONDITION.findall(plain(flat)))),
        before=after if excepted else before,  # "never before" is "only after"
        after=before if excepted else after,
        bound="at most" if _AT_MOST.search(text) else "at least" if _AT_LEAST.search(text) else "",
    )


def plain(text: str) -> str:
    """Return text without Markdown and in small letters; a link is its words."""
    return _MARKUP.sub(lambda match: match[1] or "", text).lower()


def terms_of(text: str) -> frozenset[str]:
    """Return the stems of the words that carry the meaning."""
    left_out = INSTRUCTION_STOP_WORDS | FORCE_WORDS | _NUMBER_WORDS.keys()
    return frozenset(_term(word) for word in _split(text) if word not in left_out and len(word) > 1)


@lru_cache(20_000)
def _term(word: str) -> str:
    if word in ("uses", "used", "using"):  # too short for the rules of stems
        word = "use"
    forms = irregular_forms(word)
    if len(forms) == 1:
        forms = irregular_forms(root(word))
    word = min(forms) if len(forms) > 1 else word
    while (shorter := root(word)) != word:  # preferred, prefer
        word = shorter
    if len(word) > _STEM_CHARS - 1 and word.isascii():
        word = word.removesuffix("abl").removesuffix("at")  # playable, quotation
    word = word.removesuffix("e") if len(word) > 2 else word  # cite, cited
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
