"""Which parts of two texts say the same: in the same words, in other words, or by pointing at it.

A part is held against every part of the other texts that is at least about as large. What counts is how much of the
smaller one the larger one has, in words weighed by how rare they are among all texts; a section only counts whole when
most of its items are found again. So a line is found in a long section, and a long section does not swallow a line
that merely shares its vocabulary.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import log
from typing import Literal, NamedTuple

from daypack.upkeep.lint.passages import Document, Lines, Part, clauses_of
from daypack.upkeep.lint.vocabulary import is_common, is_concept, is_file, names_concept, terms_of, words_of

Class = Literal["exact", "near", "cross-reference"]

_CONCEPT_WEIGHT, _COMMON_WEIGHT = 1.5, 0.4
_LONGEST = 80  # lines of a section that can be about one thing
_COMMON_OFTEN = 0.04  # of all items that have a common word, at least
_CHANCE_SLACK = 0.08
_STANDS_SHARE = 0.8  # of a line that stands for a section without naming it
_CHILD_SHARE = 0.34  # of an item that must be found for its block or section to be found
_POINTER = re.compile(
    r"\b(?:see|refer|read|follow|per|according to|described in|defined in|as in|in|from|obey|apply|check)\b|→|->", re.I
)
_FILE = re.compile(r"\b([A-Z][A-Za-z]*)\.md\b")


class Match(NamedTuple):
    """A part that is found again in another text."""

    kind: Class
    small: Part
    large: Part
    share: float
    shared: frozenset[str]
    small_lines: Lines
    large_lines: Lines


class Weights:
    """How much a term says: rare ones more, and those that stand for a rule of behaviour."""

    def __init__(self, documents: Iterable[Document]) -> None:
        groups = [terms for document in documents for terms in _subjects(document)]
        self._groups = len(groups)
        self._found = Counter(term for terms in groups for term in terms)

    def of(self, term: str) -> float:
        """Return the weight of one term."""
        weight = log(1 + (self._groups + 1) / (self._found[term] + 0.5))
        return weight * (_CONCEPT_WEIGHT if is_concept(term) else _COMMON_WEIGHT if is_common(term) else 1.0)

    def total(self, terms: Iterable[str]) -> float:
        """Return the weight of some terms together."""
        return sum(map(self.of, terms))

    def rare(self, terms: Iterable[str]) -> int:
        """Return how many of the terms are in few places, or name a rule."""
        few = max(3.0, self._groups * 0.15)
        return sum(1 for term in terms if is_concept(term) or (self._found[term] <= few and not is_common(term)))


def _subjects(document: Document) -> Iterator[frozenset[str]]:
    """Yield the terms of each section, and of each block that stands outside of them."""
    yield from (section.terms for section in document.sections)
    yield from (block.terms for block in document.blocks if document.section_at(block.lines) is None)


def find_exact(documents: Sequence[Document]) -> list[Match]:
    """Find sentences, and what stands between their colons and dashes, that two texts have in the same words."""
    places: dict[tuple[str, ...], list[Part]] = defaultdict(list)
    for document in documents:
        for sentence in filter(_is_told, document.sentences):
            for words in set(clauses_of(sentence.text)):
                if len(words) > 1 and terms_of(" ".join(words)):
                    places[words].append(sentence)
    found: dict[tuple[int, int], Match] = {}
    for words, sentences in places.items():
        for at, one in enumerate(sentences):
            for other in sentences[at + 1 :]:
                if one.source != other.source and _says_enough(words, one, other):
                    found.setdefault((id(one), id(other)), _exact(one, other))
    for one, other in _inside(documents):
        found.setdefault((id(one), id(other)), _exact(one, other))
    return list(found.values())


def _says_enough(words: tuple[str, ...], one: Part, other: Part) -> bool:
    """A clause must be a whole sentence on one side, or long, to be more than a turn of phrase."""
    whole = words in (words_of(one.text), words_of(other.text))
    terms = set(terms_of(" ".join(words)))
    return len(terms) > 3 or (whole and (len(terms) > 1 or any(map(is_concept, terms))))


def _inside(documents: Sequence[Document]) -> Iterator[tuple[Part, Part]]:
    """Yield sentences of four words and more that stand, word for word, within a longer one."""
    grams: dict[tuple[str, ...], list[Part]] = defaultdict(list)
    spelled = {id(one): words_of(one.text) for document in documents for one in document.sentences}
    for document in documents:
        for sentence in document.sentences:
            words = spelled[id(sentence)]
            for at in range(len(words) - 3):
                grams[words[at : at + 4]].append(sentence)
    for document in documents:
        for sentence in document.sentences:
            words = spelled[id(sentence)]
            if len(words) < 4 or len(set(terms_of(sentence.text))) < 3:
                continue
            for other in {id(one): one for one in grams[words[:4]]}.values():
                longer = spelled[id(other)]
                if other.source != sentence.source and len(longer) > len(words) and _has(longer, words):
                    yield sentence, other


def _has(longer: tuple[str, ...], words: tuple[str, ...]) -> bool:
    return any(longer[at : at + len(words)] == words for at in range(len(longer) - len(words) + 1))


def _exact(one: Part, other: Part) -> Match:
    return Match("exact", one, other, 1.0, one.terms & other.terms, one.lines, other.lines)


class Finder:
    """Finds each part again in the other texts."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = {document.name: document for document in documents}
        self.weights = Weights(documents)
        self._parts = [part for document in documents for part in document.parts]
        self._heavy = {id(part): self.weights.total(part.terms) for part in self._parts}
        items = [item for document in documents for item in document.items]
        self._items = len(items)
        self._usual_terms = sum(len(item.terms) for item in items) / max(1, len(items))
        self._found_in = Counter(term for item in items for term in item.terms)
        self._told_by: dict[int, Counter[str]] = {}
        self._index: dict[str, list[Part]] = defaultdict(list)
        for part in self._parts:
            for term in part.terms:
                self._index[term].append(part)

    def find_near(self) -> list[Match]:
        """Find what is said again in other words; the largest part that is, and the tightest place it is in."""
        found: list[Match] = []
        for part in self._parts:
            found += self._again(part)
        return self._united(found)

    def _united(self, found: Sequence[Match]) -> list[Match]:
        """Make one match of those that overlap in both texts: of the blocks of a section, the section."""
        groups: list[list[Match]] = []
        for match in sorted(found, key=lambda one: -self.weights.total(one.shared)):
            joined = [group for group in groups if any(_overlap(match, other) for other in group)]
            groups = [group for group in groups if group not in joined]
            groups.append([one for group in joined for one in group] + [match])
        return [self._one_of(group) for group in groups]

    def _one_of(self, group: Sequence[Match]) -> Match:
        best = max(match.share for match in group)
        group = [match for match in group if match.share >= 0.8 * best]
        heaviest = max(group, key=lambda one: self.weights.total(one.shared))
        lines = {
            part.source: self._place(part.source, [_sides(match)[part.source] for match in group])
            for part in (heaviest.small, heaviest.large)
        }
        shared = frozenset[str]().union(*(match.shared for match in group))
        small, large = heaviest.small, heaviest.large
        return heaviest._replace(shared=shared, small_lines=lines[small.source], large_lines=lines[large.source])

    def _place(self, source: str, spans: Sequence[Lines]) -> Lines:
        """Return the lines that hold all of these: within a block as they are, else the section around them."""
        whole = Lines(min(one.first for one in spans), max(one.last for one in spans))
        document = self._documents[source]
        if whole in spans or document.block_at(whole):
            return whole
        section = document.section_at(whole)
        return section.lines if section else max(spans, key=lambda one: one.length)

    def find_pointers(self) -> list[Match]:
        """Find lines that name a section of another text: "narration: see SOUL.md"."""
        found: list[Match] = []
        for document in self._documents.values():
            if document.role == "injected":
                continue
            for sentence in document.sentences:
                found += self._pointed(sentence)
        return found

    def share(self, part: Part, other: Part) -> float:
        """Return how much of a part another has."""
        whole = self._heavy.get(id(part)) or self.weights.total(part.terms)
        return self.weights.total(part.terms & other.terms) / whole if whole else 0.0

    def _again(self, part: Part) -> Iterator[Match]:
        shares: dict[int, float] = defaultdict(float)
        places: dict[int, Part] = {}
        for term in part.terms:
            weight = self.weights.of(term)
            for other in self._index[term]:
                if other.source != part.source:
                    shares[id(other)] += weight
                    places[id(other)] = other
        whole = self._heavy[id(part)]
        candidates: dict[str, list[tuple[float, Part]]] = defaultdict(list)
        for key, shared in shares.items():
            other = places[key]
            if self._heavy[key] >= 0.8 * whole and self._is_near(part, other, shared / whole):
                candidates[other.source].append((shared / whole, other))
        for choices in candidates.values():
            best = max(share for share, _ in choices)
            good = [(self._heavy[id(other)], share, other) for share, other in choices if share >= 0.93 * best]
            _, share, other = min(good, key=lambda one: (one[0], one[2].lines.length))
            other = self._titled(part, other)
            kind: Class = "cross-reference" if self._stands_for(part, other) else "near"
            yield Match(kind, part, other, share, part.terms & other.terms, self._found_lines(part, other), other.lines)

    def _found_lines(self, part: Part, other: Part) -> Lines:
        """Return the lines of a part without the items at its ends that are not found again."""
        if part.kind not in ("section", "block"):
            return part.lines
        found = [at for at, one in enumerate(part.children) if self.share(one, other) >= _CHILD_SHARE]
        if not found:
            return part.lines
        title = 1 if part.kind == "block" and part.title else 0  # an item of its own, with few words
        first = part.lines.first if found[0] <= title else part.children[found[0]].lines.first
        last = part.lines.last if found[-1] == len(part.children) - 1 else part.children[found[-1]].lines.last
        return Lines(first, last)

    def _is_near(self, part: Part, other: Part, share: float) -> bool:
        shared = part.terms & other.terms
        if is_pointer(part):
            return share >= 0.35 and len(shared) > 1 and any(map(is_file, shared))
        if len(part.terms) <= 3:
            return share > 0.99 and _is_told(part) and _is_about(other, shared)
        rare = self.weights.rare(shared)
        if len(shared) < 3 or rare < 1 or (rare < 2 and len(shared) < 6):
            return False
        needed = _needed(part, other, shared)
        if share < needed or other.lines.length > _LONGEST:
            return False
        chance = self._chance(part, other)
        if self._stands_for(part, other):
            if not other.subjects & part.terms:
                return False
            needed = _STANDS_SHARE
        return (
            (share - chance) / (1 - chance) >= needed - _CHANCE_SLACK
            and self._holds_together(part, other)
            and self._is_passage(other, part)
        )

    def _chance(self, part: Part, other: Part) -> float:
        """Return the share of a part that a text of this length would have by chance, as far as the others tell."""
        # Counted in items of usual length; the first is the one that is looked for.
        count = sum(len(item.terms) for item in other.children) / self._usual_terms
        if other.kind not in ("section", "block") or count < 2:
            return 0.0
        if id(other) not in self._told_by:
            self._told_by[id(other)] = Counter(term for item in other.children for term in item.terms)
        told = self._told_by[id(other)]
        expected = 0.0
        for term in part.terms:
            elsewhere = max(0, self._found_in[term] - told[term] - 1) + 0.2
            often = min(0.9, max(elsewhere / max(1.0, self._items - count), _COMMON_OFTEN if is_common(term) else 0))
            expected += self.weights.of(term) * (1 - (1 - often) ** count)
        return min(0.9, expected / self._heavy[id(part)])

    def _is_passage(self, other: Part, part: Part) -> bool:
        """Whether a place is about one thing; a list of many things is only searched item by item."""
        if other.kind not in ("section", "block") or len(other.children) < 2:
            return True
        document = self._documents[other.source]
        found = sum(1 for child in other.children if len(child.terms & part.terms) > 1)
        if document.role in ("memory", "state"):
            return found >= 0.75 * len(other.children)
        if other.kind == "section" or other.title or other.lines.length <= 4:
            return True
        return 2 * found >= len(other.children) and document.section_at(other.lines) is not None

    def _holds_together(self, part: Part, other: Part) -> bool:
        """Whether most of a part is found again, and not one line of it alone."""
        if len(part.children) < 2 or part.kind == "sentence":
            return True
        loose = part.kind == "block" and len(part.children) > 2 and not part.title
        if loose and self._documents[part.source].section_at(part.lines) is None:
            return False  # a list under no heading: each item for itself
        counted = [child for child in part.children if len(child.terms) > 1]
        found = sum(1 for child in counted if self.share(child, other) >= _CHILD_SHARE)
        return found >= max(2, 0.6 * len(counted)) or (len(counted) < 2)

    def _titled(self, part: Part, other: Part) -> Part:
        """Return the section around a place if its heading names what the part is about."""
        section = self._documents[other.source].section_at(other.lines)
        if section is None or other.kind == "section" or len(part.children) < 2:
            return other
        most = 2 * other.lines.length >= section.lines.length
        named = section.subjects and section.subjects <= part.terms and not other.title
        return section if most or named else other

    def _stands_for(self, part: Part, other: Part) -> bool:
        """Whether one line of instructions stands for a whole section elsewhere."""
        roles = {self._documents[one.source].role for one in (part, other)}
        single = part.kind in ("item", "sentence") and part.lines.length <= 2
        return roles == {"instruction"} and single and other.kind == "section" and other.lines.length > 5

    def _pointed(self, sentence: Part) -> Iterator[Match]:
        files = {name.upper() for name in _FILE.findall(sentence.text)}
        terms = sentence.terms
        if not 1 < len(terms) <= 14:
            return
        for document in self._documents.values():
            if document.name == sentence.source:
                continue
            named = document.name.removesuffix(".md").upper() in files and bool(_POINTER.search(sentence.text))
            for section in document.sections:
                if section.subjects and self._names(sentence, section, named=named):
                    shared = terms & section.terms
                    share = self.share(sentence, section)
                    yield Match("cross-reference", sentence, section, share, shared, sentence.lines, section.lines)

    def _names(self, sentence: Part, section: Part, *, named: bool) -> bool:
        subjects = section.subjects
        if named:
            return 2 * len(subjects & sentence.terms) >= len(subjects)
        # Without the file's name: the heading's own words, and what else the line says is told there too.
        roles = {self._documents[one.source].role for one in (sentence, section)}
        rest = {term for term in sentence.terms - subjects if not is_common(term)}
        told = sum(1 for term in rest if term in section.terms)
        return (
            roles == {"instruction"}
            and len(sentence.terms) > 2
            and subjects <= sentence.terms
            and any(map(is_concept, subjects))
            and 3 < section.lines.length <= _LONGEST
            and 2 * told >= len(rest)
        )


def _needed(part: Part, other: Part, shared: frozenset[str]) -> float:
    """Return the share of a part that must be found: of few words nearly all, of many in other words about half."""
    if len(part.terms) >= 10 and len(shared) >= 6:
        return 0.5 if other.kind != "section" else 0.48
    concepts = frozenset(filter(is_concept, shared))
    if len(part.terms) >= 5 and len(concepts) > 1 and names_concept(part.text, concepts):
        return 0.5
    if len(part.terms) >= 7:
        return 0.62
    return 0.7 if any(map(is_concept, shared)) else 0.8


def _is_about(other: Part, shared: frozenset[str]) -> bool:
    """Whether a line is about these few terms and little else: "Be concise." and "Keep replies brief."."""
    if len(other.children) > 1 or not any(map(is_concept, shared)):
        return False
    more = [term for term in other.terms - shared if not is_common(term)]
    if len(shared) > 2:
        return len(more) <= 6
    return not more or (len(shared) == len(more) == 1 and names_concept(other.text, shared))


def is_pointer(part: Part) -> bool:
    """Whether a line only says which file holds something; it explains nothing and is no copy."""
    return part.lines.length == 1 and part.text.rstrip().endswith(".md below.")


def _is_told(part: Part) -> bool:
    """Whether a line says something, and is not the title of what follows."""
    line = part.parent.text if part.kind == "sentence" and part.parent else part.text
    return not line.rstrip("* ").endswith(":") and not re.fullmatch(r"\*\*.+\*\*", line.strip())


def _sides(match: Match) -> dict[str, Lines]:
    return {match.small.source: match.small_lines, match.large.source: match.large_lines}


def _overlap(match: Match, other: Match) -> bool:
    one, two = _sides(match), _sides(other)
    return one.keys() == two.keys() and all(one[source].overlap(two[source]) for source in one)
