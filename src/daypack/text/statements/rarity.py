"""How much terms weigh among the statements of some texts, and how much two statements have in common by weight."""

from collections import Counter
from collections.abc import Iterable
from math import log

from daypack.text.english import ASKING_WORDS, IMPERATIVES, LIGHT_VERBS, PRESENT
from daypack.text.statements.wording import terms_of

LIGHT = terms_of(" ".join(LIGHT_VERBS | (ASKING_WORDS - IMPERATIVES)))  # words that many others can replace
GENERIC = terms_of(" ".join(IMPERATIVES | PRESENT | ASKING_WORDS))  # verbs and nouns of any instruction


class Rarity:
    """Weights of terms: rare ones weigh more, generic ones less."""

    def __init__(self, statements: Iterable[frozenset[str]]) -> None:
        terms = list(statements)
        self._counts = Counter(term for statement in terms for term in statement)
        self._size = len(terms) + 1

    def weigh(self, terms: Iterable[str]) -> float:
        """Return the weight of some terms together."""
        weights = ((term, log(1 + self._size / (self._counts[term] + 0.5))) for term in terms)
        return sum(weight / 2 if term in GENERIC else weight for term, weight in weights)

    def share(self, terms: frozenset[str], other: frozenset[str]) -> float:
        """Return the share of some terms that others contain."""
        whole = self.weigh(terms)
        return self.weigh(terms & other) / whole if whole else 0.0

    def similarity(self, terms: frozenset[str], other: frozenset[str]) -> float:
        """Return how much two statements have in common, from 0 to 1."""
        both = self.weigh(terms) + self.weigh(other)
        return 2 * self.weigh(terms & other) / both if both else 0.0
