"""The duplication map: which concepts occur in several prompt texts, on which lines, and as which class.

    Model hierarchy   AGENTS.md L18-53   MEMORY.md L2,L3   near

Classes: exact (the same words), near (a paraphrase), cross-reference (a line that refers to a section of another text),
triple (three or more texts), stale (refers to something that no longer exists).
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from msgspec import Struct, field

from daypack.text.statements.passages import Document, Lines, Part
from daypack.text.statements.wording import terms_of
from daypack.upkeep.lint.matches import Finder, Match, file_names, is_pointer
from daypack.upkeep.lint.stale_references import Stale

_CONCEPT_CHARS = 60
_REPEATED = 0.6  # of a section's items that must be repeated for the whole section to count
_NEIGHBOURS = 2  # items or lines apart


class Place(Struct, frozen=True):
    """A text and the lines of it that state a concept."""

    source: str
    spans: tuple[Lines, ...]

    def __str__(self) -> str:
        return f"{self.source} {','.join(map(str, self.spans))}"

    @property
    def numbers(self) -> set[tuple[str, int]]:
        """The lines, each with its text."""
        return {(self.source, number) for span in self.spans for number in span.numbers}


class Row(Struct, frozen=True, omit_defaults=True):
    """One row of the map."""

    concept: str
    kind: str = field(name="class")
    places: tuple[Place, ...]
    stale: tuple[str, ...] = ()  # the texts that are out of date
    deliberate: bool = False  # a reference that names its file: nothing to fix


class _Draft:
    """A row under construction."""

    def __init__(self, match: Match) -> None:
        self.kind: str = match.kind
        self.title = match.right.title or min(match.left.text, match.right.text, key=len)
        self.deliberate = match.kind == "cross-reference" and bool(file_names(match.left.text))
        self.spans: dict[str, set[Lines]] = defaultdict(set)
        for part in (match.left, match.right):
            self.spans[part.source].add(part.lines)

    def merge(self, other: "_Draft") -> None:
        for source, spans in other.spans.items():
            self.spans[source] |= spans

    def contains(self, other: "_Draft") -> bool:
        pairs = [(lines, self.spans.get(source, ())) for source, spans in other.spans.items() for lines in spans]
        return all(any(lines.within(span) for span in spans) for lines, spans in pairs)


def find_duplicates(
    documents: Sequence[Document], stale: Sequence[Stale] = (), matches: Sequence[Match] | None = None
) -> tuple[Row, ...]:
    """Return the duplication map; `stale` are known stale references, `matches` known matches."""
    matches = Finder(documents).find() if matches is None else matches
    rows = _Map(documents, stale).rows([match for match in matches if not match.differs])
    listed = {line for row in rows if row.stale for place in row.places for line in place.numbers}
    rows += [
        Row(found.name, "stale", (Place(found.source, (found.lines,)),), (found.source,))
        for found in stale
        if (found.source, found.first) not in listed
    ]
    order = [document.name for document in documents]
    return tuple(sorted(rows, key=lambda row: [(order.index(place.source), place.spans) for place in row.places]))


def find_conflicts(matches: Sequence[Match]) -> tuple[Row, ...]:
    """Return statements that are alike except for a number, a name, a negation, an order or a condition."""
    same = {end for match in matches if not match.differs for end in _ends(match)}
    alike = [match for match in matches if match.differs and not same.intersection(_ends(match))]
    return tuple(
        Row(
            _shortened(f"{match.left.text} / {match.right.text}", 2 * _CONCEPT_CHARS),
            match.differs,
            tuple(Place(part.source, (part.lines,)) for part in (match.left, match.right)),
        )
        for match in alike
    )


class _Map:
    """Draws the map of some texts."""

    def __init__(self, documents: Sequence[Document], stale: Sequence[Stale]) -> None:
        self._documents = {document.name: document for document in documents}
        self._stale = {(found.source, number) for found in stale for number in found.lines.numbers}

    def rows(self, matches: Sequence[Match]) -> list[Row]:
        """Return matches of sections and of single statements, joined where they have the same subject."""
        pairs = [match for match in matches if match.kind != "cross-reference" and not match.right.title]
        drafts = self._over_sections([match for match in matches if match.kind == "near" and match.right.title], pairs)
        groups: dict[tuple[str, str], list[Match]] = defaultdict(list)
        for match in pairs:
            groups[match.left.source, match.right.source].append(match)
        drafts += [draft for group in groups.values() for draft in self._by_section(group)]
        drafts = self._joined(drafts + [_Draft(match) for match in matches if match.kind == "cross-reference"])
        for draft in drafts:
            self._add_pointers(draft)
        return [self._row(draft) for draft in drafts if not any(self._is_part(draft, other) for other in drafts)]

    def _over_sections(self, matches: Sequence[Match], pairs: Sequence[Match]) -> list[_Draft]:
        """Return a row for each section that lines of a text summarize, with repeated lines beside them."""
        rows: dict[tuple[int, str], _Draft] = {}
        for match in matches:
            rows.setdefault((id(match.right), match.left.source), _Draft(match)).merge(_Draft(match))
        for (_, source), row in rows.items():
            for here, there in [(m.left, m.right) for m in pairs] + [(m.right, m.left) for m in pairs]:
                beside = here.source == source and any(here.lines.gap(lines) < 2 for lines in row.spans[source])
                if beside and any(there.lines.within(lines) for lines in row.spans.get(there.source, ())):
                    row.spans[source].add(here.lines)
        return list(rows.values())

    def _by_section(self, matches: list[Match]) -> list[_Draft]:
        """Return the rows of the matches of two texts; a section that is mostly repeated is one row."""
        left, right = (self._documents[part.source] for part in (matches[0].left, matches[0].right))
        groups = [(section, self._together(section, matches)) for section in left.sections if left is not right]
        shares = [self._repeated(section, [match.left for match in inside]) for section, inside in groups]
        if max(shares, default=0.0) < _REPEATED:
            return [_Draft(match) for match in matches]
        section, inside = groups[shares.index(max(shares))]
        row = _Draft(Match("near", inside[0].right, section))
        others = [match.right for match in inside]
        row.spans[right.name] = {part.lines for part in others}
        whole = right.section_at(Lines(others[0].lines.first, others[-1].lines.last))
        if whole and self._repeated(whole, others) >= _REPEATED:
            row.spans[right.name] = {whole.lines}
            row.title = min(section.title, whole.title, key=len)
        rest = [match for match in matches if match not in inside]
        return [row, *(self._by_section(rest) if rest else [])]

    def _together(self, section: Part, matches: Sequence[Match]) -> list[Match]:
        """Return the largest group of a section's matches whose lines are neighbours in the second text."""
        groups: list[list[Match]] = [[]]
        inside = [match for match in matches if match.left.lines.within(section.lines)]
        last = 0
        for match in sorted(inside, key=lambda match: match.right.lines):
            items = self._active(self._documents[match.right.source].items)
            at = sum(item.lines.first <= match.right.lines.first for item in items)
            if groups[-1] and at - last > _NEIGHBOURS:
                groups.append([])
            groups[-1].append(match)
            last = at
        return max(groups, key=len)

    def _repeated(self, section: Part, parts: Sequence[Part]) -> float:
        """Return the share of a section's items that these parts are of; 0 for a single item."""
        active = self._active(section.parts)
        repeated = [item for item in active if any(part.lines.within(item.lines) for part in parts)]
        return len(repeated) / len(active) if len(repeated) > 1 else 0.0

    def _active(self, items: Iterable[Part]) -> list[Part]:
        """Return the items that are neither stale nor introductions."""
        return [item for item in items if (item.source, item.lines.first) not in self._stale and not item.is_lead]

    def _joined(self, drafts: Sequence[_Draft]) -> list[_Draft]:
        rows: list[_Draft] = []
        for draft in drafts:
            same = [row for row in rows if self._is_one_subject(row, draft)]
            *others, joined = [draft, *same]
            for other in others:
                joined.merge(other)
            rows = [row for row in rows if row not in same] + [joined]
        return rows

    def _is_one_subject(self, left: _Draft, right: _Draft) -> bool:
        """Return True if two rows of different texts are about the same lines of a text they share."""
        if left.spans.keys() == right.spans.keys() or "cross-reference" in (left.kind, right.kind):
            return False
        for source in left.spans.keys() & right.spans.keys():
            # Rules of behaviour that daypack injects in several places are together in a file.
            injected = all(map(self._is_injected, (left.spans.keys() | right.spans.keys()) - {source}))
            gaps = [here.gap(there) for here in left.spans[source] for there in right.spans[source]]
            if min(gaps) <= (_NEIGHBOURS if injected else 0):
                return True
        return False

    def _is_injected(self, source: str) -> bool:
        return self._documents[source].role == "injected"

    def _add_pointers(self, draft: _Draft) -> None:
        """Add the lines of the identity that point to a file this row explains."""
        lines = [(source, number) for source, spans in draft.spans.items() for span in spans for number in span.numbers]
        named = file_names("\n".join(self._documents[source].row(number) for source, number in lines))
        for source in filter(self._is_injected, self._documents):
            for statement in self._documents[source].statements:
                if is_pointer(statement) and file_names(statement.text) & named:
                    draft.spans[source].add(statement.lines)

    def _is_part(self, draft: _Draft, other: _Draft) -> bool:
        """Return True if another row says all of it; an exact copy within a paraphrase is a row of its own."""
        if draft is other or not other.contains(draft):
            return False
        if draft.contains(other) and draft.kind == other.kind:
            return id(draft) > id(other)
        few = len(terms_of(draft.title)) < 3 or any(map(self._is_injected, draft.spans))
        return draft.kind != "exact" or other.kind == "exact" or few

    def _row(self, draft: _Draft) -> Row:
        joined = any(map(self._is_injected, draft.spans))
        sources = [name for name in self._documents if name in draft.spans]
        places = tuple(Place(source, _united(draft.spans[source], joined=joined)) for source in sources)
        old = tuple(place.source for place in places if place.numbers & self._stale)
        kind = "triple" if len(places) > 2 else draft.kind
        return Row(_shortened(draft.title), f"{kind}, stale" if old else kind, places, old, draft.deliberate)


def _ends(match: Match) -> tuple[tuple[int, str], tuple[int, str]]:
    """Return each statement with the text that has the other one."""
    return (id(match.left), match.right.source), (id(match.right), match.left.source)


def _united(spans: Iterable[Lines], *, joined: bool) -> tuple[Lines, ...]:
    """Drop spans contained in longer ones; adjacent ones are separate items, unless they are to be joined."""
    kept: list[Lines] = []
    for lines in sorted(spans, key=lambda lines: (lines.first, -lines.last)):
        if kept and (lines.within(kept[-1]) or (joined and lines.first == kept[-1].last + 1)):
            kept[-1] = Lines(kept[-1].first, max(lines.last, kept[-1].last))
        else:
            kept.append(lines)
    return tuple(kept)


def _shortened(text: str, limit: int = _CONCEPT_CHARS) -> str:
    text = " ".join(text.replace("*", "").replace("`", "").split()).lstrip("-+• ").rstrip(":. ")
    return text if len(text) <= limit else f"{text[:limit].rsplit(' ', 1)[0]} …"
