"""Decide which lines to remove from each prompt text, and why; the text around them is unchanged.

A statement is removed only if another one that stays says all of it: its terms, its paths, numbers and names, its
negation and its condition. Everything else that is removed, such as a section that a switch of daypack provides, names
the reason. What cannot be decided stays.
"""

import re
from collections.abc import Iterator, Sequence

from daypack.text.statements.narrative import SessionEntry
from daypack.text.statements.passages import Document, Part, Span
from daypack.text.statements.wording import terms_of
from daypack.upkeep.lint.matches import Match, Rarity, file_names
from daypack.upkeep.lint.prompt_texts import BLOCKS, MEMORY
from daypack.upkeep.lint.stale_references import Stale

_COVERED = 0.55  # of a statement's weight that the other one must contain
_MODEL_ID = re.compile(r"\b[a-z][a-z0-9]*(?:[-_./:][a-z0-9.]+)*[-.:]\d[\w.:-]*", re.IGNORECASE)
_ID_TERMS = 3  # of a line that only lists ids, beside them
_MEMORY_FILES = {"MEMORY.MD", "CONTEXT.MD"}


class Removal(Span, frozen=True):
    """Lines to remove from a text; `words` is set if only a part of the line is removed."""

    reason: str
    words: str = ""


class RemovalPlanner:
    """Decides which text keeps a rule that two texts state."""

    def __init__(self, documents: Sequence[Document], matches: Sequence[Match], unused: Sequence[str] = ()) -> None:
        self._documents = {document.name: document for document in documents}
        self._matches = [match for match in matches if not match.differs]
        self._unused = unused
        self._rarity = Rarity(documents)
        files = [document.name for document in documents if document.role != "injected"]
        self._rank: dict[str, float] = {name: at for at, name in enumerate(files)}
        self._gone: set[tuple[str, int]] = set()  # lines
        self._repeated: dict[int, str] = {}  # statement -> where another one says it
        self._needed: set[int] = set()  # parts another removal rests on
        items = [item for document in documents for item in document.items]
        self._within = {id(part): {id(part), id(item)} for item in items for part in item.parts}

    def plan(self, history: Sequence[SessionEntry], stale: Sequence[Stale]) -> list[Removal]:
        """Return all removals."""
        found = [Removal(MEMORY, entry.first, entry.last, f"session history ({entry.reason})") for entry in history]
        reasons = [(entry, f"stale: no {entry.sort} {entry.name}") for entry in stale if not entry.mixed]
        found += [Removal(entry.source, entry.first, entry.last, reason) for entry, reason in reasons]
        # A section that daypack provides when a switch is on does not belong into a file, whatever the switch.
        blocks = {
            id(match.right): match for match in self._matches if match.right.title and match.left.source in BLOCKS
        }
        for match in blocks.values():
            off = ", which is off" if match.left.source in self._unused else ""
            found.append(
                Removal(match.right.source, *match.right.lines, f"provided by the switch {match.left.source}{off}")
            )
        self._gone = {(entry.source, number) for entry in found for number in entry.lines.numbers}
        for match in self._matches:
            self._decide(match)
        documents = [document for document in self._documents.values() if document.role in ("instruction", "memory")]
        return found + [removal for document in documents for removal in self._removals(document)]

    def _removals(self, document: Document) -> Iterator[Removal]:
        """Yield the items whose statements are all repeated, else the statements."""
        for item in document.items:
            reasons = [self._repeated.get(id(part)) for part in item.parts]
            whole = self._repeated.get(id(item)) or (reasons[0] if reasons and all(reasons) else None)
            if whole or (document.name == MEMORY and self._only_lists_models(item)):
                yield Removal(document.name, *item.lines, whole or "model ids: AGENTS.md has the hierarchy")
                continue
            for part, reason in zip(item.parts, reasons, strict=True):
                if reason:
                    yield Removal(document.name, *part.lines, reason, part.text)

    def _decide(self, match: Match) -> None:
        keeps, loses = self._sides(match)
        rest = {id(keeps), *map(id, keeps.parts), *(id(part) for item in keeps.parts for part in item.parts)}
        rest |= self._within.get(id(keeps), set())
        both = ((part.source, part.lines.first) for part in (keeps, loses))
        if loses.title or not self._gone.isdisjoint(both):
            return
        if not self._repeated.keys().isdisjoint(rest) or {id(loses), *map(id, loses.parts)} & self._needed:
            return
        reference = match.kind == "cross-reference"
        if not file_names(loses.text) if reference else self._covers(keeps, loses):
            self._repeated.setdefault(id(loses), f"{'refers to' if reference else 'stated in'} {keeps!r}")
            self._needed |= rest

    def _sides(self, match: Match) -> tuple[Part, Part]:
        """Return the part that keeps a rule, and the one that loses it."""
        left, right = match.left, match.right
        if right.title:
            return right, left
        # Where TOOLS.md explains memory, the explanation stays there.
        around = [self._documents[part.source].section_at(part.lines) or part for part in (left, right)]
        about_memory = all(_MEMORY_FILES & file_names(part.text) for part in around)
        ranks = self._rank | ({"TOOLS.md": -0.5} if about_memory else {})
        return (left, right) if ranks.get(left.source, -1) <= ranks.get(right.source, -1) else (right, left)

    def _covers(self, keeps: Part, loses: Part) -> bool:
        here, there = keeps.wording, loses.wording
        return (
            self._rarity.share(there.terms, here.terms) >= _COVERED
            and there.specifics <= here.specifics | here.terms
            and (not there.negated or any(part.wording.negated for part in (keeps.parts or [keeps])))
            and len(there.condition & here.terms) * 2 >= len(there.condition)
        )

    def _only_lists_models(self, item: Part) -> bool:
        """Return True for a line of ids of models that AGENTS.md has in its hierarchy."""
        rules = self._documents.get("AGENTS.md")
        ids = _MODEL_ID.findall(item.text)
        if rules is None or len(ids) < 2 or (item.source, item.lines.first) in self._gone:
            return False
        known = frozenset[str]().union(*(part.wording.terms for part in rules.items))
        named = all(terms_of(re.sub(r"[^a-zA-Z]", " ", name)) & known for name in ids)
        return named and len(terms_of(_MODEL_ID.sub(" ", item.text))) <= _ID_TERMS
