"""Find parts of two texts that state the same: in the same words, in other words, or by reference.

A part is compared with every part of the other texts of at least about the same size. The measure is the share of the
smaller part's terms that the larger part contains, weighted by rarity; a section only matches as a whole if most of
its items match. So a line is found in a long section, and a long section does not match a line that merely shares its
vocabulary.
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
_MAX_LINES = 80  # longer sections have several subjects
_COMMON_FREQUENCY = 0.04  # the least share of items that contain a common word
_CHANCE_SLACK = 0.08
_SUMMARY_SHARE = 0.8  # of the terms of a line that summarizes a section without naming it
_CHILD_SHARE = 0.34  # of an item's terms that must match for it to count as found
_POINTER = re.compile(
    r"\b(?:see|refer|read|follow|per|according to|described in|defined in|as in|in|from|obey|apply|check)\b|→|->", re.I
)
_FILE = re.compile(r"\b([A-Z][A-Za-z]*)\.md\b")


class Match(NamedTuple):
    """A part that another text repeats."""

    kind: Class
    small: Part
    large: Part
    share: float
    shared: frozenset[str]
    small_lines: Lines
    large_lines: Lines


class Weights:
    """Weights of terms: rare terms and terms that name a rule of behaviour weigh more."""

    def __init__(self, documents: Iterable[Document]) -> None:
        groups = [terms for document in documents for terms in _subjects(document)]
        self._groups = len(groups)
        self._counts = Counter(term for terms in groups for term in terms)

    def of(self, term: str) -> float:
        """Return the weight of one term."""
        weight = log(1 + (self._groups + 1) / (self._counts[term] + 0.5))
        return weight * (_CONCEPT_WEIGHT if is_concept(term) else _COMMON_WEIGHT if is_common(term) else 1.0)

    def total(self, terms: Iterable[str]) -> float:
        """Return the weight of some terms together."""
        return sum(map(self.of, terms))

    def rare(self, terms: Iterable[str]) -> int:
        """Return the number of terms that occur in few places or name a rule."""
        few = max(3.0, self._groups * 0.15)
        return sum(1 for term in terms if is_concept(term) or (self._counts[term] <= few and not is_common(term)))


def _subjects(document: Document) -> Iterator[frozenset[str]]:
    """Yield the terms of each section, and of each block outside of sections."""
    yield from (section.terms for section in document.sections)
    yield from (block.terms for block in document.blocks if document.section_at(block.lines) is None)


def find_exact(documents: Sequence[Document]) -> list[Match]:
    """Find sentences and clauses that occur in two texts in the same words."""
    places: dict[tuple[str, ...], list[Part]] = defaultdict(list)
    for document in documents:
        for sentence in filter(_is_statement, document.sentences):
            for words in set(clauses_of(sentence.text)):
                if len(words) > 1 and terms_of(" ".join(words)):
                    places[words].append(sentence)
    found: dict[tuple[int, int], Match] = {}
    for words, sentences in places.items():
        for at, sentence in enumerate(sentences):
            for other in sentences[at + 1 :]:
                if sentence.source != other.source and _is_specific(words, sentence, other):
                    found.setdefault((id(sentence), id(other)), _exact(sentence, other))
    for sentence, other in _contained_sentences(documents):
        found.setdefault((id(sentence), id(other)), _exact(sentence, other))
    return list(found.values())


def _is_specific(words: tuple[str, ...], sentence: Part, other: Part) -> bool:
    """Return True if a shared clause is long, or a whole sentence on one side; shorter clauses are idioms."""
    whole = words in (words_of(sentence.text), words_of(other.text))
    terms = set(terms_of(" ".join(words)))
    return len(terms) > 3 or (whole and (len(terms) > 1 or any(map(is_concept, terms))))


def _contained_sentences(documents: Sequence[Document]) -> Iterator[tuple[Part, Part]]:
    """Yield sentences of four words or more that occur verbatim within a longer sentence."""
    grams: dict[tuple[str, ...], list[Part]] = defaultdict(list)
    words_by_id = {id(sentence): words_of(sentence.text) for document in documents for sentence in document.sentences}
    for document in documents:
        for sentence in document.sentences:
            words = words_by_id[id(sentence)]
            for at in range(len(words) - 3):
                grams[words[at : at + 4]].append(sentence)
    for document in documents:
        for sentence in document.sentences:
            words = words_by_id[id(sentence)]
            if len(words) < 4 or len(set(terms_of(sentence.text))) < 3:
                continue
            for other in {id(candidate): candidate for candidate in grams[words[:4]]}.values():
                longer = words_by_id[id(other)]
                if other.source != sentence.source and len(longer) > len(words) and _contains(longer, words):
                    yield sentence, other


def _contains(longer: tuple[str, ...], words: tuple[str, ...]) -> bool:
    return any(longer[at : at + len(words)] == words for at in range(len(longer) - len(words) + 1))


def _exact(part: Part, other: Part) -> Match:
    return Match("exact", part, other, 1.0, part.terms & other.terms, part.lines, other.lines)


class Finder:
    """Finds the parts of each text that other texts repeat."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = {document.name: document for document in documents}
        self.weights = Weights(documents)
        self._parts = [part for document in documents for part in document.parts]
        self._total_weight = {id(part): self.weights.total(part.terms) for part in self._parts}
        items = [item for document in documents for item in document.items]
        self._items = len(items)
        self._usual_terms = sum(len(item.terms) for item in items) / max(1, len(items))
        self._found_in = Counter(term for item in items for term in item.terms)
        self._term_counts: dict[int, Counter[str]] = {}
        self._index: dict[str, list[Part]] = defaultdict(list)
        for part in self._parts:
            for term in part.terms:
                self._index[term].append(part)

    def find_near(self) -> list[Match]:
        """Find paraphrases: the largest part that is repeated, and the smallest place that contains it."""
        found: list[Match] = []
        for part in self._parts:
            found += self._matches_of(part)
        return self._merged(found)

    def _merged(self, found: Sequence[Match]) -> list[Match]:
        """Merge matches that overlap in both texts, for example those of the blocks of a section."""
        groups: list[list[Match]] = []
        for match in sorted(found, key=lambda match: -self.weights.total(match.shared)):
            joined = [group for group in groups if any(_overlap(match, other) for other in group)]
            groups = [group for group in groups if group not in joined]
            groups.append([match for group in joined for match in group] + [match])
        return [self._merge(group) for group in groups]

    def _merge(self, group: Sequence[Match]) -> Match:
        best = max(match.share for match in group)
        group = [match for match in group if match.share >= 0.8 * best]
        heaviest = max(group, key=lambda match: self.weights.total(match.shared))
        lines = {
            part.source: self._place(part.source, [_sides(match)[part.source] for match in group])
            for part in (heaviest.small, heaviest.large)
        }
        shared = frozenset[str]().union(*(match.shared for match in group))
        small, large = heaviest.small, heaviest.large
        return heaviest._replace(shared=shared, small_lines=lines[small.source], large_lines=lines[large.source])

    def _place(self, source: str, spans: Sequence[Lines]) -> Lines:
        """Return lines that cover all spans: the spans themselves within a block, else the enclosing section."""
        whole = Lines(min(span.first for span in spans), max(span.last for span in spans))
        document = self._documents[source]
        if whole in spans or document.block_at(whole):
            return whole
        section = document.section_at(whole)
        return section.lines if section else max(spans, key=lambda span: span.length)

    def find_pointers(self) -> list[Match]:
        """Find lines that refer to a section of another text, as in "narration: see SOUL.md"."""
        found: list[Match] = []
        for document in self._documents.values():
            if document.role == "injected":
                continue
            for sentence in document.sentences:
                found += self._sections_referred_to(sentence)
        return found

    def share(self, part: Part, other: Part) -> float:
        """Return the weighted share of a part's terms that another part contains."""
        whole = self._total_weight.get(id(part)) or self.weights.total(part.terms)
        return self.weights.total(part.terms & other.terms) / whole if whole else 0.0

    def _matches_of(self, part: Part) -> Iterator[Match]:
        shares: dict[int, float] = defaultdict(float)
        places: dict[int, Part] = {}
        for term in part.terms:
            weight = self.weights.of(term)
            for other in self._index[term]:
                if other.source != part.source:
                    shares[id(other)] += weight
                    places[id(other)] = other
        whole = self._total_weight[id(part)]
        candidates: dict[str, list[tuple[float, Part]]] = defaultdict(list)
        for key, shared in shares.items():
            other = places[key]
            if self._total_weight[key] >= 0.8 * whole and self._is_near(part, other, shared / whole):
                candidates[other.source].append((shared / whole, other))
        for choices in candidates.values():
            best = max(share for share, _ in choices)
            good = [(self._total_weight[id(other)], share, other) for share, other in choices if share >= 0.93 * best]
            _, share, other = min(good, key=lambda choice: (choice[0], choice[2].lines.length))
            other = self._titled(part, other)
            kind: Class = "cross-reference" if self._summarizes(part, other) else "near"
            yield Match(kind, part, other, share, part.terms & other.terms, self._found_lines(part, other), other.lines)

    def _found_lines(self, part: Part, other: Part) -> Lines:
        """Return the lines of a part without unmatched items at its ends."""
        if part.kind not in ("section", "block"):
            return part.lines
        found = [at for at, child in enumerate(part.children) if self.share(child, other) >= _CHILD_SHARE]
        if not found:
            return part.lines
        title = 1 if part.kind == "block" and part.title else 0  # the title is an item with few terms
        first = part.lines.first if found[0] <= title else part.children[found[0]].lines.first
        last = part.lines.last if found[-1] == len(part.children) - 1 else part.children[found[-1]].lines.last
        return Lines(first, last)

    def _is_near(self, part: Part, other: Part, share: float) -> bool:
        shared = part.terms & other.terms
        if is_pointer(part):
            return share >= 0.35 and len(shared) > 1 and any(map(is_file, shared))
        if len(part.terms) <= 3:
            return share > 0.99 and _is_statement(part) and _is_about(other, shared)
        rare = self.weights.rare(shared)
        if len(shared) < 3 or rare < 1 or (rare < 2 and len(shared) < 6):
            return False
        needed = _needed(part, other, shared)
        if share < needed or other.lines.length > _MAX_LINES:
            return False
        chance = self._chance(part, other)
        if self._summarizes(part, other):
            if not other.subjects & part.terms:
                return False
            needed = _SUMMARY_SHARE
        return (
            (share - chance) / (1 - chance) >= needed - _CHANCE_SLACK
            and self._holds_together(part, other)
            and self._is_passage(other, part)
        )

    def _chance(self, part: Part, other: Part) -> float:
        """Return the share of a part that a text of this length would contain by chance, estimated from the others."""
        # In items of average length.
        count = sum(len(item.terms) for item in other.children) / self._usual_terms
        if other.kind not in ("section", "block") or count < 2:
            return 0.0
        if id(other) not in self._term_counts:
            self._term_counts[id(other)] = Counter(term for item in other.children for term in item.terms)
        counts = self._term_counts[id(other)]
        expected = 0.0
        for term in part.terms:
            elsewhere = max(0, self._found_in[term] - counts[term] - 1) + 0.2
            frequency = min(
                0.9, max(elsewhere / max(1.0, self._items - count), _COMMON_FREQUENCY if is_common(term) else 0)
            )
            expected += self.weights.of(term) * (1 - (1 - frequency) ** count)
        return min(0.9, expected / self._total_weight[id(part)])

    def _is_passage(self, other: Part, part: Part) -> bool:
        """Return True if a place has one subject; a list of many subjects is only searched item by item."""
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
        """Return True if most items of a part match, not just one line."""
        if len(part.children) < 2 or part.kind == "sentence":
            return True
        loose = part.kind == "block" and len(part.children) > 2 and not part.title
        if loose and self._documents[part.source].section_at(part.lines) is None:
            return False  # a list without a heading: items are compared separately
        counted = [child for child in part.children if len(child.terms) > 1]
        found = sum(1 for child in counted if self.share(child, other) >= _CHILD_SHARE)
        return found >= max(2, 0.6 * len(counted)) or (len(counted) < 2)

    def _titled(self, part: Part, other: Part) -> Part:
        """Return the enclosing section of a place if its heading names the subject of the part."""
        section = self._documents[other.source].section_at(other.lines)
        if section is None or other.kind == "section" or len(part.children) < 2:
            return other
        most = 2 * other.lines.length >= section.lines.length
        named = section.subjects and section.subjects <= part.terms and not other.title
        return section if most or named else other

    def _summarizes(self, part: Part, other: Part) -> bool:
        """Return True if a line of instructions summarizes a whole section of another file."""
        roles = {self._documents[side.source].role for side in (part, other)}
        single = part.kind in ("item", "sentence") and part.lines.length <= 2
        return roles == {"instruction"} and single and other.kind == "section" and other.lines.length > 5

    def _sections_referred_to(self, sentence: Part) -> Iterator[Match]:
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
        # Without a file name: the line has the heading's terms, and the section contains most of the others.
        roles = {self._documents[side.source].role for side in (sentence, section)}
        rest = {term for term in sentence.terms - subjects if not is_common(term)}
        covered = sum(1 for term in rest if term in section.terms)
        return (
            roles == {"instruction"}
            and len(sentence.terms) > 2
            and subjects <= sentence.terms
            and any(map(is_concept, subjects))
            and 3 < section.lines.length <= _MAX_LINES
            and 2 * covered >= len(rest)
        )


def _needed(part: Part, other: Part, shared: frozenset[str]) -> float:
    """Return the share of a part that must match: nearly all of few terms, about half of many."""
    if len(part.terms) >= 10 and len(shared) >= 6:
        return 0.5 if other.kind != "section" else 0.48
    concepts = frozenset(filter(is_concept, shared))
    if len(part.terms) >= 5 and len(concepts) > 1 and names_concept(part.text, concepts):
        return 0.5
    if len(part.terms) >= 7:
        return 0.62
    return 0.7 if any(map(is_concept, shared)) else 0.8


def _is_about(other: Part, shared: frozenset[str]) -> bool:
    """Return True if a line consists of little but these terms: "Be concise." and "Keep replies brief."."""
    if len(other.children) > 1 or not any(map(is_concept, shared)):
        return False
    more = [term for term in other.terms - shared if not is_common(term)]
    if len(shared) > 2:
        return len(more) <= 6
    return not more or (len(shared) == len(more) == 1 and names_concept(other.text, shared))


def is_pointer(part: Part) -> bool:
    """Return True if a line only names the file that contains something."""
    return part.lines.length == 1 and part.text.rstrip().endswith(".md below.")


def _is_statement(part: Part) -> bool:
    """Return True if a line is a statement, not the title of the lines after it."""
    line = part.parent.text if part.kind == "sentence" and part.parent else part.text
    return not line.rstrip("* ").endswith(":") and not re.fullmatch(r"\*\*.+\*\*", line.strip())


def _sides(match: Match) -> dict[str, Lines]:
    return {match.small.source: match.small_lines, match.large.source: match.large_lines}


def _overlap(match: Match, other: Match) -> bool:
    first, second = _sides(match), _sides(other)
    return first.keys() == second.keys() and all(first[source].overlap(second[source]) for source in first)
