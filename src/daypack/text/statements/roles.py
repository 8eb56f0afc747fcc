"""The roles of a statement's terms: what comes after which preposition, and who acts.

Two statements with the same terms are different if terms change places: "copy from prod to staging" and "from staging
to prod". A list ("date and initials") has no order, and a passive may begin with what an active sentence ends with.
"""

import re
from collections import Counter
from collections.abc import Callable, Set
from typing import NamedTuple

_DIRECTED = frozenset(
    ["from", "to", "into", "over", "under", "above", "below", "behind", "by", "against", "than", "not"]
)
_RELATIONS = _DIRECTED | {"for", "with", "in", "on", "at", "of", "before", "after", "through", "without"}
_DETERMINERS = frozenset(["the", "a", "an", "our", "your", "my", "this", "these", "those"])
_JOINED = _DETERMINERS | {"each", "every", "all", "any", "and", "or", "nor", ","}
_PASSIVE = re.compile(
    r"\b(?:is|are|was|were|be|been|being|gets?|got)\s+(?:(?:\w+ly\s+|not\s+)?\w+(?:ed|en|ne?|wn|t)\b|.*\bby\b)"
)
_PART = re.compile(r"[\w.-]*\w|[,;:.()]")


class Roles(NamedTuple):
    """What is compared of the order of a statement."""

    objects: dict[str, frozenset[str]]  # preposition -> the terms that follow it
    pairs: dict[tuple[str, str], str]  # preposition that occurs twice, and the term after it -> the term before it
    first: str  # the first term
    thing: bool  # it begins with a thing: "the client"
    leads: bool  # it begins with its first term, which may be a name
    passive: bool

    def swapped(self, other: "Roles", shared: Set[str], names: Set[str]) -> bool:
        """Return True if shared terms have changed places; `names` are the capitalised terms of both statements."""
        for relation in self.objects.keys() & other.objects.keys() & _DIRECTED:
            mine, theirs = self.objects[relation], other.objects[relation]
            if mine and theirs and not mine & theirs and mine | theirs <= shared:
                return True
        changed = [pair for pair in self.pairs if other.pairs.get(pair, self.pairs[pair]) != self.pairs[pair]]
        if {(pair[0], self.pairs[pair]) for pair in changed} & {(pair[0], other.pairs[pair]) for pair in changed}:
            return True
        if self.passive or other.passive or not {self.first, other.first} <= shared:
            return False
        return self.first != other.first and self.acts(names) and other.acts(names)

    def acts(self, names: Set[str]) -> bool:
        """Return True if it begins with a person or thing, not with what to do."""
        return self.thing or (self.leads and self.first in names)


def roles_of(text: str, term_of: Callable[[str], str]) -> Roles:
    """Return the roles of a text in small letters; `term_of` returns the term of a word, "" if it has none."""
    parts = _PART.findall(text)
    objects: dict[str, set[str]] = {}
    pairs: dict[tuple[str, str], str] = {}
    relation = first = last = before = ""
    for part in parts:
        term = "" if part in _RELATIONS or part in _JOINED else term_of(part)
        if part in _RELATIONS:
            relation, before = part, last
            objects.setdefault(relation, set())
        elif term:
            if relation:
                objects[relation].add(term)
                pairs.setdefault((relation, term), before)
            first, last = first or term, term
        elif part not in _JOINED:
            relation = ""
    often = Counter(part for part in parts if part in _RELATIONS)
    return Roles(
        {name: frozenset(terms) for name, terms in objects.items()},
        {pair: term for pair, term in pairs.items() if often[pair[0]] > 1 and term},
        first,
        bool(parts) and parts[0] in _DETERMINERS,
        bool(parts) and term_of(parts[0]) == first,
        _PASSIVE.search(text) is not None,
    )
