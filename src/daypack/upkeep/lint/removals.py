"""What to take out of each text of a prompt, line by line, and why; the words around it stay as they are.

A line goes only when another text has it whole: its words, its paths and numbers, and its "never". A section that a
switched block of daypack tells goes whole, because the switch decides whether those rules hold.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from daypack.text.literals import literals, occurs
from daypack.upkeep.lint.duplicates import find_matches
from daypack.upkeep.lint.matches import Match, Weights, is_pointer
from daypack.upkeep.lint.narrative import Past
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
_ENOUGH = 0.62  # of a line that must stand elsewhere for it to go


class Removal(Struct, frozen=True):
    """Lines to take out of a text; `words` is what goes when it is less than the whole line."""

    source: str
    first: int
    last: int
    reason: str
    words: str = ""


class Keeper:
    """Knows who keeps what two texts say."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self.documents = {document.name: document for document in documents}
        self.matches = find_matches(documents)
        self._weights = Weights(documents)
        self._rank = {name: rank for rank, name in enumerate(_ranked(documents))}

    def memory_removals(self, past: Sequence[Past]) -> list[Removal]:
        """Return what leaves MEMORY.md: sessions, and what the instructions say already."""
        document = self.documents.get(MEMORY)
        if document is None:
            return []
        found = [Removal(MEMORY, one.first, one.last, f"session history ({one.reason})") for one in past]
        gone = {number for one in found for number in range(one.first, one.last + 1)}
        for item in document.items:
            if item.lines.first not in gone:
                found += self._of_item(item)
        return found

    def _of_item(self, item: Part) -> Iterator[Removal]:
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
                    yield Removal(MEMORY, *sentence.lines, f"{_other(match, MEMORY)} says it", sentence.text)
                    break

    def _exact_at(self, lines: Lines) -> Iterator[Match]:
        for match in self.matches:
            of_memory = match.kind == "exact" and MEMORY in (match.small.source, match.large.source)
            if of_memory and _side(match, MEMORY).overlap(lines):
                yield match

    def _nearly_exact(self, item: Part) -> Iterator[Removal]:
        """A line goes when its rule stands elsewhere word for word and the rest of it says next to nothing."""
        for match in self._exact_at(item.lines):
            other = match.large if match.small.source == MEMORY else match.small
            rest = [term for term in item.terms - other.terms if not is_common(term)]
            told = [one.text for one in literals(item.text) if not occurs(one.text, other.text)]
            if self.documents[other.source].role == "instruction" and not rest and not told:
                yield Removal(MEMORY, *item.lines, f"{other.source} says it")
                return

    def _is_whole(self, sentence: Part, match: Match) -> bool:
        part = match.small if match.small.source == MEMORY else match.large
        other = match.large if part is match.small else match.small
        return part.text == sentence.text and self.documents[other.source].role == "instruction"

    def _kept_elsewhere(self, item: Part) -> str:
        """Return who says all of an item, empty when nobody does."""
        for document in self.documents.values():
            if document.role not in ("instruction", "injected") or document.name == "TOOLS.md":
                continue
            places = [_side(match, document.name) for match in self.matches if _about(match, item, document.name)]
            for place in places:
                if self._covers(document, place, item):
                    return f"{document.name} {place} says it"
        return ""

    def _covers(self, document: Document, place: Lines, item: Part) -> bool:
        said = "\n".join(document.rows[place.first - 1 : place.last])
        part = Part("block", document.name, place, said)
        shared = self._weights.total(item.terms & part.terms)
        if shared < _ENOUGH * self._weights.total(item.terms):
            return False
        missing = [
            one.text for one in literals(item.text) if not occurs(one.text, said) and not _MODEL_ID.match(one.text)
        ]
        if [one for one in missing if one.lower() not in said.lower()]:
            return False
        if NEGATION in item.terms:
            return any(NEGATION in one.terms and len(one.terms & item.terms) > 1 for one in _lines(document, place))
        return True

    def _vendor_ids(self, item: Part) -> str:
        """A line that only lists a vendor's model ids goes when AGENTS.md says which model does what."""
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
        """Return what leaves the other files: what is stale, and what is told better elsewhere."""
        found = [Removal(one.source, one.first, one.last, f"stale: no {one.sort} {one.name}") for one in stale]
        for match in self.matches:
            found += self._of_match(match)
        return found

    def _of_match(self, match: Match) -> Iterator[Removal]:
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
                yield Removal(pointer.source, *match.small_lines, f"points to {match.large.source}", _words(pointer))
        elif keeps in BLOCKS and self.documents[loses].section_at(lines) and lines.length > 4:
            yield Removal(loses, *lines, f"the switch {keeps} brings it")
        else:
            yield from self._doubled(self.documents[loses], lines, keeps)

    def _doubled(self, document: Document, lines: Lines, keeps: str) -> Iterator[Removal]:
        """Yield the items that another text has whole."""
        other = self.documents[keeps]
        for item in document.items:
            places = [_side(one, keeps) for one in self.matches if _about(one, item, keeps)]
            if item.lines.overlap(lines) and any(self._covers(other, place, item) for place in places):
                yield Removal(document.name, *item.lines, f"{keeps} says it")


def _ranked(documents: Sequence[Document]) -> list[str]:
    first = [one.name for one in documents if one.role == "injected"]
    return first + [one.name for one in documents if one.role != "injected"]


def _words(part: Part) -> str:
    alone = part.kind != "sentence" or part.parent is None or len(part.parent.children) == 1
    return "" if alone else part.text


def _side(match: Match, source: str) -> Lines:
    return match.small_lines if match.small.source == source else match.large_lines


def _other(match: Match, source: str) -> str:
    return match.large.source if match.small.source == source else match.small.source


def _about(match: Match, item: Part, source: str) -> bool:
    """Whether a match is between an item and this text."""
    names = {match.small.source, match.large.source}
    return names == {item.source, source} and bool(_side(match, item.source).overlap(item.lines))


def _lines(document: Document, place: Lines) -> list[Part]:
    return [item for item in document.items if item.lines.overlap(place)]
