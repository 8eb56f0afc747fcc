"""Judge one sentence of the user: how sure is it that it directs the agent, and that this lasts?"""

import re
from typing import NamedTuple

from daypack.derived.rules import english as en
from daypack.derived.rules.features import ANYWHERE, AT_START, IN_CLAUSE, SCOPES
from daypack.derived.rules.headers import has_inline_header
from daypack.derived.rules.weights import BIAS, WEIGHTS

_NEVER, _SURE = -99.0, 9.0
_SHORT_WORDS = 12
_CLAUSE = re.compile(r"\s*(?:([,;:–—()])|\s-\s|\b(so|but|then|because|though|although|since)\b|\b(and|or|as)\b)\s*")
_QUESTION_END = re.compile(r"\?[\"'”’)*_` ]*\Z")
_PAIRS = [(name, *name.partition(", ")[::2]) for name in WEIGHTS if ", " in name]
# What ends with a thing at hand does not last, whatever else the sentence says.
_AT_HAND = frozenset({"one-off", "pronoun object", "demonstrative", "all the"})


class Reading(NamedTuple):
    """A sentence, read for the judgement."""

    words: str  # all of it, in lower case
    body: str  # without greetings and polite forms
    clauses: tuple[str, ...]  # where instructions can begin; the body first
    asks: bool  # a question in form


def judge(sentence: str) -> float:
    """Return how much speaks for a standing rule; 0 is as much for as against."""
    if has_inline_header(sentence.lower()):
        return _SURE
    found = find_features(sentence)
    return BIAS + sum(WEIGHTS.get(name, 0.0) for name in found) if found else _NEVER


def find_features(sentence: str) -> set[str]:
    """Return what speaks for or against a rule in a sentence; nothing for a question or a saying."""
    reading = _read(sentence)
    if reading is None or en.IDIOM.search(reading.words):
        return set()
    unscoped = en.SCOPE.sub("", reading.words)
    found = {name for name, pattern in AT_START.items() if pattern.match(reading.body)}
    found |= {name for name, pattern in IN_CLAUSE.items() if any(map(pattern.match, reading.clauses))}
    found |= {name for name, pattern in ANYWHERE.items() if pattern.search(unscoped)}
    found |= {name for name, pattern in SCOPES.items() if pattern.search(reading.words)}
    if _directs(reading.body):
        found.add("directs")
    directing = any(map(_directs, reading.clauses))
    if directing:
        found.add("directs clause")
    if reading.asks:
        found.add("asks")
    if len(reading.words.split()) <= _SHORT_WORDS:
        found.add("short")
    instead = [clause for clause in reading.clauses if en.INSTEAD.match(clause)]
    if instead and not any(map(en.ARTICLE.search, instead)):
        found.add("bare instead")
    lasting = directing and not found & _AT_HAND
    found |= {
        pair
        for pair, first, second in _PAIRS
        if first in found and (lasting if second == "directs" else second in found)
    }
    return found


def _read(sentence: str) -> Reading | None:
    words = sentence.lower().replace("’", "'").strip(" *_\t\"'“”")
    body = _without(en.OPENERS, words)
    asks = _QUESTION_END.search(words) is not None
    polite = en.POLITE.match(body)
    if polite:
        refused = "mind" in polite[0] and body.startswith("not ", polite.end())
        body = "don't " * refused + _without(en.OPENERS, body[polite.end() + 4 * refused :])
    elif asks:
        return None
    return Reading(words, body, _clauses(body), asks)


def _without(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.match(text)
    return text[found.end() :].lstrip(" ,:;-–—") if found else text


def _directs(clause: str) -> bool:
    """Return True if a clause begins with an instruction to the agent."""
    return en.DIRECTIVE.match(clause) is not None


def _clauses(body: str) -> tuple[str, ...]:
    """Return the clauses that an instruction can begin, first the whole; "and" continues what was begun before it."""
    found = [body]
    directing, at, joined = _directs(body), 0, False
    for cut in [*_CLAUSE.finditer(body), None]:
        clause = body[at : cut.start() if cut else len(body)]
        bare = _without(en.OPENERS, clause)
        unscoped = _without(en.OPENERS, _without(en.SCOPE_ADVERB, bare))
        if bare and (not joined or directing or bare != clause or unscoped != bare):
            found += [bare, unscoped]
            directing = directing or _directs(unscoped)
        if cut:
            at, joined = cut.end(), cut[3] is not None
    return tuple(dict.fromkeys(clause for clause in found if clause))
