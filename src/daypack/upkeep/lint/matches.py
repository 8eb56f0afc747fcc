"""Find statements of prompt texts that say the same: in the same words, in other words, in a section, by reference.

Similarity is the share of common terms (Dice), weighted by rarity in this workspace; word order plays no part. A line
that summarizes a section is compared with all of its items together. Vectors, where a model is installed, confirm pairs
that share fewer words.
"""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from math import log
from typing import Literal, NamedTuple

from daypack.config import from_environment, from_file, settle
from daypack.errors import DaypackError
from daypack.history.layout import Home
from daypack.text.english import ASKING_WORDS, IMPERATIVES, LIGHT_VERBS, PRESENT
from daypack.text.statements.passages import Document, Part
from daypack.text.statements.wording import Wording, terms_of
from daypack.upkeep.lint.prompt_texts import BLOCK_TITLES

Class = Literal["exact", "near", "cross-reference"]
Similarity = Callable[[Sequence[str]], Sequence[Sequence[float]] | None]  # texts -> the cosine of each with each

_LIGHT = terms_of(" ".join(LIGHT_VERBS | (ASKING_WORDS - IMPERATIVES)))  # words that many others can replace
_GENERIC = terms_of(" ".join(IMPERATIVES | PRESENT | ASKING_WORDS))  # verbs and nouns of any instruction

_FEW_SHARED = 4  # terms; statements with fewer and much else are not compared
_NEAR = 0.6  # similarity of two statements from which they are one rule
_NEAR_CONTRAST = 0.7  # the same if each names something that the other does not
_NEAR_FEW = 0.8  # the same if few terms are shared, or both are in one file
_NEAR_SUBSTITUTED = 0.95  # the same if they differ in a single word: a synonym, or another thing
_MANY_TERMS = 6  # from this many shared terms on, a single word decides less
_NOT_NAMES = 0.3  # of the shared terms, by weight
_DOUBTFUL, _VECTORS = 0.3, 0.8  # similarity of terms that vectors may confirm, and their cosine
_SPREAD, _SPREAD_TERMS = 0.72, 5  # of a line's terms that a section has, and how many terms the line must have
_BLOCK, _BLOCK_NAMED = 0.55, 0.3  # of an injected block's terms that a section has, and if its title names the block
_ABOUT = 0.65  # of the statements of a section that repeats a block
_TITLE_SHARE = 0.33  # of a section's title that a reference to its file must have
_LONG_REFERENCE = 15  # terms: a longer statement says more than where to look
_FILE = re.compile(r"\b([A-Za-z]+\.md)\b")
# "by the narration rules": a reference without a file
_REFERENCE = re.compile(
    r"\b(?:by|per|see|follow|following|obey|apply|under|according to) (?:the |our |my )?((?:\w+ ){1,3})"
    r"(?:rules?|section|guidelines?|protocol|policy|conventions?)\b",
    re.IGNORECASE,
)


class Match(NamedTuple):
    """Two parts that say the same; `right` is a section if the words of `left` are spread over it."""

    kind: Class
    left: Part
    right: Part
    differs: str = ""  # why similar statements are different rules


class Rarity:
    """Weights of terms among the statements of some texts: rare ones weigh more, generic ones less."""

    def __init__(self, documents: Sequence[Document]) -> None:
        statements = [statement.wording.terms for document in documents for statement in document.statements]
        self._counts = Counter(term for terms in statements for term in terms)
        self._size = len(statements) + 1

    def weigh(self, terms: Iterable[str]) -> float:
        """Return the weight of some terms together."""
        weights = ((term, log(1 + self._size / (self._counts[term] + 0.5))) for term in terms)
        return sum(weight / 2 if term in _GENERIC else weight for term, weight in weights)

    def share(self, terms: frozenset[str], other: frozenset[str]) -> float:
        """Return the share of some terms that others contain."""
        whole = self.weigh(terms)
        return self.weigh(terms & other) / whole if whole else 0.0

    def similarity(self, terms: frozenset[str], other: frozenset[str]) -> float:
        """Return how much two statements have in common, from 0 to 1."""
        both = self.weigh(terms) + self.weigh(other)
        return 2 * self.weigh(terms & other) / both if both else 0.0


class Finder:
    """Finds what the texts of a prompt repeat."""

    def __init__(self, documents: Sequence[Document], similarity: Similarity | None = None) -> None:
        self._documents = {document.name: document for document in documents}
        self._rarity = Rarity(documents)
        self._share = self._rarity.share
        self._similarity = similarity

    def find(self) -> list[Match]:
        """Return all matches, similar statements that are different rules included."""
        largest_first = sorted(self._spread(), key=lambda match: -len(match.right.lines.numbers))
        smallest = {id(match.left): match for match in largest_first}
        blocks = [match for document in self._documents.values() for match in self._repeated_blocks(document)]
        return [*self._pairs(), *smallest.values(), *blocks, *self._references()]

    def _pairs(self) -> Iterator[Match]:
        found = [match for left, right in self._candidates() if (match := self._compare(left, right))]
        yield from (match for match in found if match.differs != "doubtful")
        doubtful = [match for match in found if match.differs == "doubtful"]
        texts = list(dict.fromkeys(part.text for match in doubtful for part in (match.left, match.right)))
        if texts and self._similarity and (cosines := self._similarity(texts)):
            for match in doubtful:
                if cosines[texts.index(match.left.text)][texts.index(match.right.text)] >= _VECTORS:
                    yield match._replace(differs="")

    def _candidates(self) -> Iterator[tuple[Part, Part]]:
        """Yield pairs of statements that share a term, of different texts or of different items of a file."""
        index: dict[str, list[tuple[Part, Part]]] = defaultdict(list)
        for document in self._documents.values():
            for item in document.items:
                for statement in () if item.is_lead or is_pointer(item) else item.parts:
                    for term in sorted(statement.wording.terms):
                        index[term].append((item, statement))
        seen: set[tuple[int, int]] = set()
        for statements in index.values():
            for (item, left), (other, right) in combinations(statements, 2):
                injected = left.source == right.source and self._documents[left.source].role == "injected"
                if item is not other and not injected and (id(left), id(right)) not in seen:
                    seen.add((id(left), id(right)))
                    yield left, right

    def _compare(self, left: Part, right: Part) -> Match | None:
        a, b = left.wording, right.wording
        shared, own = a.terms & b.terms, left.source == right.source
        refers = right.source.upper() in file_names(left.text) or left.source.upper() in file_names(right.text)
        few = len(shared) < _FEW_SHARED and 3 * len(shared) < min(len(a.terms), len(b.terms))
        if refers or few or (own and len(shared) <= 2):
            return None
        differs = a.differs(b)
        if a.words == b.words or (differs in ("", "negation") and a.quotes(b)):  # a clause has its own negation
            return Match("exact", left, right)
        if self._share(shared, shared - a.specifics - b.specifics) < _NOT_NAMES:
            return None  # two facts about the same person or thing
        specific = terms_of(" ".join(a.specifics ^ b.specifics)) if differs else frozenset[str]()
        likeness = self._rarity.similarity(a.against(b) - specific, b.against(a) - specific)
        if differs:  # is the rest the same?
            return Match("near", left, right, differs) if likeness >= _NEAR and len(shared) > 1 else None
        if likeness >= _enough(a, b, own=own):
            return Match("near", left, right)
        return Match("near", left, right, "doubtful") if likeness >= _DOUBTFUL and not own else None

    def _spread(self) -> Iterator[Match]:
        """Find lines whose terms are spread over a section, or over a block of daypack."""
        for document in self._documents.values():
            own = document.role == "injected"
            sections = [document.whole] if own else document.sections if document.role == "instruction" else []
            items = [item for other in self._files(document) for item in other.items]
            for section, item in [(section, item) for section in sections for item in items]:
                terms = item.wording.terms
                if len(terms) >= _SPREAD_TERMS and self._share(terms, section.wording.terms) >= _SPREAD:
                    shares = [self._share(terms, part.wording.terms) for part in section.parts]
                    memory = self._documents[item.source].role == "memory"
                    about = own or (sum(map(bool, shares)) > 1 and (memory or terms & terms_of(section.title)))
                    if about and max(shares, default=1.0) < _SPREAD:
                        yield Match("near", item, section)

    def _files(self, document: Document) -> list[Document]:
        return [other for other in self._documents.values() if other is not document and other.role != "injected"]

    def _repeated_blocks(self, block: Document) -> Iterator[Match]:
        """Find the section that repeats a block: it has most terms, the rarest, and nearly all lines are about them."""
        terms = frozenset[str]().union(*(statement.wording.terms for statement in block.statements))
        rarest = sorted(terms - _GENERIC, key=lambda term: (-self._rarity.weigh([term]), term))[:2]
        if block.role != "injected" or len(terms) <= _SPREAD_TERMS:
            return
        for document in self._files(block):
            found: dict[float, Part] = {}
            for section in document.sections:
                lines = [statement.wording.terms & terms for item in section.parts for statement in item.parts]
                about = sum(map(bool, lines)) >= max(2, _ABOUT * len(lines)) and section.wording.terms & set(rarest)
                named = terms_of(section.title) & terms_of(BLOCK_TITLES.get(block.name, ""))
                share = self._share(terms, section.wording.terms)
                if share >= (_BLOCK_NAMED if named else _BLOCK) and (named or about):
                    found.setdefault(share, section)
            if found:
                yield from (Match("near", statement, found[max(found)]) for statement in block.statements)

    def _references(self) -> Iterator[Match]:
        """Find lines that refer to a section of another text, as in "narrate as SOUL.md says"."""
        files = [document for document in self._documents.values() if document.role == "instruction"]
        for document, other in [(document, other) for document in files for other in files if document is not other]:
            for statement in document.statements:
                named, wording = file_names(statement.text), statement.wording
                terms, least = wording.terms, _TITLE_SHARE
                if not named and (match := _REFERENCE.search(statement.text)):
                    terms, least = terms_of(match[1]), 1.0
                elif other.name.upper() not in named or len(terms) >= _LONG_REFERENCE:
                    continue
                shares = [self._share(terms_of(section.title), terms) for section in other.sections]
                if max(shares, default=0.0) >= least:
                    yield Match("cross-reference", statement, other.sections[shares.index(max(shares))])


def _enough(left: Wording, right: Wording, *, own: bool) -> float:
    """Return the similarity from which two statements are one rule; more than 1 if they never are."""
    shared = left.against(right) & right.terms
    if len(shared) == 1 and left.terms != right.terms and shared <= _GENERIC:
        return 2.0
    mine, theirs = left.against(right) - right.terms - _LIGHT, right.against(left) - left.terms - _LIGHT
    if len(mine) == len(theirs) == 1 and len(shared) < _MANY_TERMS:
        return _NEAR_SUBSTITUTED
    if len(shared) < 3 or own:
        return _NEAR_FEW
    return _NEAR_CONTRAST if mine and theirs else _NEAR


def file_names(text: str) -> set[str]:
    """Return the names of Markdown files in a text, in capitals."""
    return {name.upper() for name in _FILE.findall(text)}


def is_pointer(part: Part) -> bool:
    """Return True for a line of the identity that only says where something is."""
    return part.text.rstrip().endswith(".md below.")


def open_similarity(home: Home) -> Similarity | None:
    """Return the similarity by the best installed model, None if the settings want no model; it is loaded when used.

    Prompt texts are never sent to a server.
    """
    settings = settle([("environment", from_environment(os.environ)), (home.config, from_file(home.config))])
    return None if settings.embedding_model == "none" else lambda texts: _cosines(home.models, texts)


def _cosines(models: str, texts: Sequence[str]) -> Sequence[Sequence[float]] | None:
    from daypack.llm.embedders import default_embedding_model, open_embedder  # noqa: PLC0415 — only in doubt

    try:
        embedder = open_embedder(default_embedding_model(models), models=models)
        rows = embedder.encode(texts) if embedder else None
    except DaypackError:
        return None  # words alone decide
    return (rows @ rows.T).tolist() if rows is not None else None
