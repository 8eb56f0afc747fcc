"""Recognises plain statements in the third person: a subject that has a name, and what it is, has or regularly does.

    The boat of Ada is blue.                 a state
    Invoices go out on the first Monday.     a habit
    Leo can't eat gluten.                    an ability or a rule

Not plain: opinions, events, the moment, and statements about the conversation. There is no parser: the verb is found
by its form and by the words around it.
"""

import re
from itertools import pairwise
from typing import Literal, NamedTuple

from daypack.text.english import (
    ADVERBS,
    BECOMING,
    DEFINITE,
    DETERMINERS,
    EMOTIVE,
    FUNCTION_WORDS,
    IMPERATIVES,
    LOWER_CASE,
    MODALS,
    MOMENTARY,
    NUMBERS,
    OPINIONS,
    PREPOSITIONS,
    PRESENT,
    SHELL_NOUNS,
    SUPPOSING,
    TRANSIENT,
    irregular_forms,
    is_past,
)

_Kind = Literal["definite", "name", "bare"]

_MAX_WORDS = 26  # a longer sentence is an argument
_MAX_SUBJECT_WORDS = 9
_OPINION_WORDS = 4  # after the verb: "is a really great way"
_TOKEN = re.compile(r"[^\W_]+(?:[-'’./&:][^\W_]+)*+|[,;()–—]")
_POSSESSIVE = ("'s", "s'")
# The speaker, the listener, a reference to something outside the sentence, and marks of code.
_OUTSIDE = re.compile(
    r"\A\W|\b(?:I|me|we|us|you|your|yours|myself|ourselves|yourself|this|these|those|it['’]s|i['’]m|he|she|they|him|them)\b"
    r"|[`{}<>=→|\\*]|\.{3}|…|!\W*\Z",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"\b(?:if|unless|would|could|should|might|whether|wish|hope|hopefully)\b", re.IGNORECASE)
_BE = frozenset(["is", "are", "isn't", "aren't"])
_HAVE = frozenset(["has", "have"])
_QUANTIFIERS = frozenset(["every", "each", "all", "both", "no", "most"])  # of a rule, not of a task
_PLURAL = frozenset(["are", "aren't", "have", "do", "don't"])
_AUXILIARIES = (
    _BE | _HAVE | {"does", "doesn't", "don't", "do", "can", "can't", "cannot", "must", "mustn't", "will", "won't"}
)
_CLAUSE_WORDS = frozenset([";", "(", "–", "—", "that", "which", "who", "because", "when", "while", "where", "let's"])
# What may follow a noun without an article for it to be the subject: "Access to …", "Omar and …".
_AFTER_BARE = PREPOSITIONS | ADVERBS | {"and"}
# "s" at the end of a noun or an adverb.
_NOUN_ENDINGS = ("ss", "us", "is", "ings", "ness", "ways", "wards", "'s", "ments", "tions", "ers", "ors", "ists")
_GENERIC_ENDINGS = ("ing", "tion", "sion", "ness", "ment", "ity", "ism", "ship", "ance", "ence", "thing", "body")
_BARE_VERBS = PRESENT | IMPERATIVES | {"cover", "offer", "deliver", "order", "enter", "differ", "trigger", "alter"}
_GERUND = re.compile(r".*[aeiouy].*ing")  # not "bring" and "sing"


class _Clause(NamedTuple):
    """The words of a sentence in lower case and as written, and where its subject and its verb are."""

    words: list[str]
    written: list[str]
    kind: _Kind
    start: int
    verb: int

    @property
    def head(self) -> list[str]:
        """The subject up to its first preposition: "the boat" of "the boat of Ada"."""
        subject = self.words[self.start : self.verb]
        return subject[: next((at for at, word in enumerate(subject) if word in PREPOSITIONS), len(subject))]

    @property
    def predicate(self) -> list[str]:
        """The words after the verb and the adverbs that follow it."""
        at = self.verb + 1
        while at < len(self.words) and (self.words[at] in ADVERBS or self.words[at] == "not"):
            at += 1
        return self.words[at:]


def is_plain_statement(sentence: str, names: frozenset[str] = frozenset()) -> bool:
    """Return True if an English sentence states something lasting about a subject in the third person.

    `names` are the people already known, in lower case.
    """
    if _OUTSIDE.search(sentence) or _CONDITION.search(sentence):
        return False
    clause = _read_clause(sentence, names)
    return clause is not None and _lasts(clause) and _says_something(clause)


def past_verb(sentence: str) -> str:
    """Return the past form or participle that a named subject is followed by: "approved"; empty if there is none."""
    clause = _read_clause(sentence, frozenset())
    if clause is None:
        return ""
    verb = clause.words[clause.verb]
    if verb in _HAVE | _BE | {"was", "were"}:
        verb = clause.predicate[0] if clause.predicate else ""
    return verb if is_past(verb) or len(irregular_forms(verb)) > 1 else ""


def is_obligation(sentence: str) -> bool:
    """Return True if a named subject still has something to do or to have done: "The fence needs to be painted"."""
    clause = None if _CONDITION.search(sentence) else _read_clause(sentence, frozenset())
    if clause is None or clause.words[clause.start] in _QUANTIFIERS or (clause.kind == "bare" and _is_plural(clause)):
        return False
    following = clause.words[clause.verb : clause.verb + 3]
    return following[0] in ("has", "have", "needs", "need") and following[1:2] == ["to"] and following[2:3] != ["say"]


def _read_clause(sentence: str, names: frozenset[str]) -> _Clause | None:
    written = _TOKEN.findall(sentence)
    words = [word.lower().replace("’", "'") for word in written]
    subject = _find_subject(words, written, names) if 2 < len(words) <= _MAX_WORDS else None
    if subject is None:
        return None
    kind, start = subject
    verb = _find_verb(words, written, start)
    if verb is None or (kind == "bare" and verb != start + 1 and words[start + 1] not in _AFTER_BARE):
        return None
    return _Clause(words, written, kind, start, verb)


def _find_subject(words: list[str], written: list[str], names: frozenset[str]) -> tuple[_Kind, int] | None:
    """Return the kind of the subject and where it begins; None for pronouns, "a" and "an", and orders."""
    start = 0
    if words[0] in PREPOSITIONS:  # "On Mondays the shop opens at ten"
        fronted = [at for at, word in enumerate(words[:7]) if at > 1 and (word in DEFINITE or words[at - 1] == ",")]
        if not fronted:
            return None
        start = fronted[0]
    if start + 1 >= len(words):
        return None
    first = words[start]
    owner = first.removesuffix("'s")
    if first in DEFINITE:
        return "definite", start
    if owner in LOWER_CASE | FUNCTION_WORDS | ADVERBS | OPINIONS | _BARE_VERBS or is_past(owner):
        return None
    if not first[0].isalpha() or first.endswith("ly") or words[start + 1] == ",":
        return None
    if first.endswith(_POSSESSIVE):
        return "definite", start
    capitals = written[start][0].isupper() and written[start + 1][0].isupper()
    named = first in names or capitals or not written[start][1:].islower()
    return ("name" if named else "bare"), start


def _find_verb(words: list[str], written: list[str], start: int) -> int | None:
    """Return where the verb of the subject that begins at `start` is; None if there is none to be seen."""
    doubtful: int | None = None
    for at in range(start + 1, min(start + 1 + _MAX_SUBJECT_WORDS, len(words))):
        word, before = words[at], words[at - 1]
        if word in _AUXILIARIES and written[at][0].islower():
            return at
        if word in _CLAUSE_WORDS or (word in MODALS and written[at][0].islower()):
            return doubtful
        if before in DETERMINERS or before in PREPOSITIONS or not written[at][0].islower():
            continue
        if is_past(word):
            return at
        if _is_known_verb(word) or (_may_be_verb(word) and _opens_complement(words, written, at + 1)):
            return at
        if _may_be_verb(word):
            doubtful = doubtful or at
        elif (before.endswith("s") or "and" in words[start:at]) and _is_plain_form(word):
            return at
    return doubtful


def _is_plain_form(word: str) -> bool:
    if word in _BARE_VERBS:
        return True
    return len(irregular_forms(word)) > 1 and not is_past(word) and not word.endswith("s") and not _GERUND.match(word)


def _is_known_verb(word: str) -> bool:
    return word.endswith("s") and any(_is_plain_form(form) for form in (word[:-1], word[:-2], f"{word[:-3]}y"))


def _may_be_verb(word: str) -> bool:
    return len(word) > 3 and word.endswith("s") and not word.endswith(_NOUN_ENDINGS)


def _opens_complement(words: list[str], written: list[str], at: int) -> bool:
    """Return True if the word at `at` begins an object or a phrase, so that the word before it may be a verb."""
    if at >= len(words):
        return False
    word = words[at]
    return (
        word in DETERMINERS
        or word in PREPOSITIONS
        or word in NUMBERS
        or word in ADVERBS
        or word[0].isdigit()
        or written[at][0].isupper()
    )


def _lasts(clause: _Clause) -> bool:
    """Return True for a state, a habit or a rule: not an event, and not the moment."""
    verb, predicate = clause.words[clause.verb], clause.predicate
    if not MOMENTARY.isdisjoint(clause.words) or verb in SUPPOSING:
        return False
    if not predicate:  # "The old policy no longer applies"
        return clause.words[clause.verb - 1] in ("longer", "never", "always")
    first = predicate[0]
    if is_past(verb):
        return verb in BECOMING or (verb == "used" and first == "to") or _has_amount(predicate)
    if verb in _BE:
        transient = first in TRANSIENT and len(predicate) == 1
        return not transient and not (first.endswith("ing") and len(first) > 5) and first not in ("that", "like")
    if verb in _HAVE and first == "to":  # a rule; what one person has to do is a task
        return clause.words[clause.start] in _QUANTIFIERS
    if verb in _HAVE:
        return not (is_past(first) or len(irregular_forms(first)) > 1 or first in ("been", "done", "got"))
    return True


def _says_something(clause: _Clause) -> bool:
    """Return True if the subject is named and the predicate is more than an opinion of it."""
    head, predicate = clause.head, clause.predicate[:_OPINION_WORDS]
    shell = bool(head) and head[-1] in SHELL_NOUNS and head[0] not in _QUANTIFIERS  # "Every pull request needs …"
    if not head or shell or not {"best", "worst", "only", "same", "other"}.isdisjoint(head):
        return False
    described = predicate[: next((at for at, word in enumerate(predicate) if word in PREPOSITIONS), len(predicate))]
    if not EMOTIVE.isdisjoint(clause.words) or not OPINIONS.isdisjoint(described):
        return False
    if clause.kind != "bare" or "the" in clause.words[clause.start : clause.verb]:
        return True
    # "Lars doesn't": the verb tells a name from a plural. "Music", "Training" and the like name nothing in particular.
    plural = _is_plural(clause)
    capital = clause.written[clause.start][0].isupper()
    named = capital and not plural and not head[0].endswith(_GENERIC_ENDINGS)
    return named or _has_name_or_number(clause)


def _is_plural(clause: _Clause) -> bool:
    verb = clause.words[clause.verb]
    singular = verb not in _PLURAL and (verb.endswith("s") or verb in _AUXILIARIES)
    return clause.head[-1:] != [] and clause.head[0].endswith("s") and not singular


def _has_amount(predicate: list[str]) -> bool:
    """Return True for a change with its amount: "grew by 12 percent", "fell to 80"."""
    return any(
        word in ("by", "to", "from") and (after[0].isdigit() or after in NUMBERS) for word, after in pairwise(predicate)
    )


def _has_name_or_number(clause: _Clause) -> bool:
    others = clause.written[clause.start + 1 :]
    return any(word[0].isupper() or word[0].isdigit() or word.lower() in NUMBERS for word in others)
