"""Decide which lines to remove from each prompt text, and why; the text around them is unchanged.

A line is removed only if another text covers it completely: its terms, its paths and numbers, and its negation. A
section that repeats a switchable block of daypack is removed as a whole, because the switch controls those rules.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from daypack.text.literals import literals, occurs
from daypack.upkeep.lint.duplicates import find_matches
from daypack.upkeep.lint.matches import Match, Weights, is_pointer
from daypack.upkeep.lint.narrative import SessionEntry
from daypack.upkeep.lint.passages import Document, Lines, Part
from daypack.upkeep.lint.prompt_texts import BLOCKS, MEMORY
from daypack.upkeep.lint.stale_references import Stale
from daypack.upkeep.lint.vocabulary import NEGATION, is_common

_MODEL_ID = re.compile(
    r"\b(?:claude|gpt|chatgpt|gemini|gemma|glm|llama|mistral|mixtral|codestral|qwen|deepseek|kimi|grok|command-r|phi|o[134])"
    r"(?:[-_./:][a-z0-9.]+)+\b|\b(?:anthropic|openai|google|zhipu|meta|mistralai)/[\w.-]+",
    re.I,
)
_FAMILY = re.compile(
    r"\b(?:opus|sonnet|haiku|claude|gpt|gemini|gemma|glm|zhipu|llama|mistral|qwen|deepseek|kimi|grok|flash|ultra)\b",
    re.I,
)
_MIN_COVERAGE = 0.62  # of a line's weight that another text must contain


class Removal(Struct, frozen=True):
    """Lines to remove from a text; `words` is set if only a part of the line is removed."""

    source: str
    first: int
    last: int
    reason: str
    words: str = ""


class RemovalPlanner:
    """Decides which text keeps a rule that two texts state."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self.documents = {document.name: document for document in documents}
        self.matches = find_matches(documents)
        self._weights = Weights(documents)
        self._rank = {name: rank for rank, name in enumerate(_ranked(documents))}

    def memory_removals(self, entries: Sequence[SessionEntry]) -> list[Removal]:
        """Return the removals from MEMORY.md: session history, and rules that the instructions already state."""
        document = self.documents.get(MEMORY)
        if document is None:
            return []
        found = [Removal(MEMORY, entry.first, entry.last, f"session history ({entry.reason})") for entry in entries]
        removed = {number for removal in found for number in range(removal.first, removal.last + 1)}
        for item in document.items:
            if item.lines.first not in removed:
                found += self._item_removals(item)
        return found

    def _item_removals(self, item: Part) -> Iterator[Removal]:
        if reason := self._kept_elsewhere(item):
            yield Removal(MEMORY, item.lines.first, item.lines.last, reason)
            return
        if reason := self._vendor_ids(item):
            yield Removal(MEMORY, item.lines.first, item.lines.last, reason)
            return
        if len(item.children) == 1:
            yield from self._nearly_exact(item)
        for sentence in item.children if len(item.children) > 1 else ():
            for match in self._exact_at(sentence.lines):
                if self._is_whole(sentence, match):
                    yield Removal(MEMORY, *sentence.lines, f"stated in {_other(match, MEMORY)}", sentence.text)
                    break

    def _exact_at(self, lines: Lines) -> Iterator[Match]:
        for match in self.matches:
            of_memory = match.kind == "exact" and MEMORY in (match.small.source, match.large.source)
            if of_memory and _side(match, MEMORY).overlap(lines):
                yield match

    def _nearly_exact(self, item: Part) -> Iterator[Removal]:
        """Yield a line whose rule occurs verbatim in another text and whose other terms are all common."""
        for match in self._exact_at(item.lines):
            other = match.large if match.small.source == MEMORY else match.small
            rest = [term for term in item.terms - other.terms if not is_common(term)]
            missing = [literal.text for literal in literals(item.text) if not occurs(literal.text, other.text)]
            if self.documents[other.source].role == "instruction" and not rest and not missing:
                yield Removal(MEMORY, *item.lines, f"stated in {other.source}")
                return

    def _is_whole(self, sentence: Part, match: Match) -> bool:
        part = match.small if match.small.source == MEMORY else match.large
        other = match.large if part is match.small else match.small
        return part.text == sentence.text and self.documents[other.source].role == "instruction"

    def _kept_elsewhere(self, item: Part) -> str:
        """Return a reason if another text covers all of an item, else an empty string."""
        for document in self.documents.values():
            if document.role not in ("instruction", "injected") or document.name == "TOOLS.md":
                continue
            places = [_side(match, document.name) for match in self.matches if _about(match, item, document.name)]
            for place in places:
                if self._covers(document, place, item):
                    return f"stated in {document.name} {place}"
        return ""

    def _covers(self, document: Document, place: Lines, item: Part) -> bool:
        text = "\n".join(document.rows[place.first - 1 : place.last])
        part = Part("block", document.name, place, text)
        shared = self._weights.total(item.terms & part.terms)
        if shared < _MIN_COVERAGE * self._weights.total(item.terms):
            return False
        missing = [
            literal.text
            for literal in literals(item.text)
            if not occurs(literal.text, text) and not _MODEL_ID.match(literal.text)
        ]
        if [literal for literal in missing if literal.lower() not in text.lower()]:
            return False
        if NEGATION in item.terms:
            return any(NEGATION in line.terms and len(line.terms & item.terms) > 1 for line in _lines(document, place))
        return True

    def _vendor_ids(self, item: Part) -> str:
        """Return a reason to remove a line of model ids if AGENTS.md has the model hierarchy, else an empty string."""
        ids = _MODEL_ID.findall(item.text)
        rules = self.documents.get("AGENTS.md")
        if not ids or rules is None or len(set(map(str.lower, _FAMILY.findall(rules.text)))) < 2:
            return ""
        rest = Part("item", item.source, item.lines, _MODEL_ID.sub(" ", item.text))
        subjects = {term for term in rest.terms if not is_common(term)} - {
            "model",
            "id",
            "anthropic",
            "openai",
            "google",
        }
        names = {term for term in rest.terms if _FAMILY.fullmatch(term)}
        return "model ids: AGENTS.md has the hierarchy" if len(subjects - names) <= 2 else ""

    def other_removals(self, stale: Sequence[Stale]) -> list[Removal]:
        """Return the removals from the other files: stale references and duplicates."""
        found = [
            Removal(reference.source, reference.first, reference.last, f"stale: no {reference.sort} {reference.name}")
            for reference in stale
        ]
        for match in self.matches:
            found += self._match_removals(match)
        return found

    def _match_removals(self, match: Match) -> Iterator[Removal]:
        names = (match.small.source, match.large.source)
        roles = {name: self.documents[name].role for name in names}
        if not set(roles.values()) <= {"instruction", "injected"} or is_pointer(match.small) or is_pointer(match.large):
            return
        keeps, loses = sorted(names, key=self._rank.__getitem__)
        if roles[loses] != "instruction":
            return
        lines = _side(match, loses)
        if match.kind == "cross-reference":
            if match.small.source == loses or roles[match.small.source] == "instruction":
                pointer = match.small
                yield Removal(pointer.source, *match.small_lines, f"refers to {match.large.source}", _words(pointer))
        elif keeps in BLOCKS and self.documents[loses].section_at(lines) and lines.length > 4:
            yield Removal(loses, *lines, f"provided by the switch {keeps}")
        else:
            yield from self._covered_items(self.documents[loses], lines, keeps)

    def _covered_items(self, document: Document, lines: Lines, keeps: str) -> Iterator[Removal]:
        """Yield the items that another text covers completely."""
        other = self.documents[keeps]
        for item in document.items:
            places = [_side(match, keeps) for match in self.matches if _about(match, item, keeps)]
            if item.lines.overlap(lines) and any(self._covers(other, place, item) for place in places):
                yield Removal(document.name, *item.lines, f"stated in {keeps}")


def _ranked(documents: Sequence[Document]) -> list[str]:
    first = [document.name for document in documents if document.role == "injected"]
    return first + [document.name for document in documents if document.role != "injected"]


def _words(part: Part) -> str:
    alone = part.kind != "sentence" or part.parent is None or len(part.parent.children) == 1
    return "" if alone else part.text


def _side(match: Match, source: str) -> Lines:
    return match.small_lines if match.small.source == source else match.large_lines


def _other(match: Match, source: str) -> str:
    return match.large.source if match.small.source == source else match.small.source


def _about(match: Match, item: Part, source: str) -> bool:
    """Return True if a match connects an item with this text."""
    names = {match.small.source, match.large.source}
    return names == {item.source, source} and bool(_side(match, item.source).overlap(item.lines))


def _lines(document: Document, place: Lines) -> list[Part]:
    return [item for item in document.items if item.lines.overlap(place)]
