"""The duplication map: which concepts occur in several prompt texts, on which lines, and as which class.

    Model hierarchy   AGENTS.md L18-53   MEMORY.md L2,L3   near

Classes: exact (the same words), near (a paraphrase), cross-reference (a line that refers to, or summarizes, a section
of another text), triple (three or more texts), stale (refers to something that no longer exists).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from daypack.upkeep.lint.matches import Class, Finder, Match, find_exact, is_pointer
from daypack.upkeep.lint.passages import Document, Lines
from daypack.upkeep.lint.stale_references import Stale
from daypack.upkeep.lint.vocabulary import is_concept, is_file

_CONCEPT_CHARS = 60
_MAX_LINES = 60  # longer passages have several subjects
_CLOSE_LINES = 12  # a part of at most this many lines has the same subject as each of its lines


class Place(Struct, frozen=True):
    """A text and the lines of it that state a concept."""

    source: str
    spans: tuple[tuple[int, int], ...]

    @property
    def lines(self) -> str:
        """The lines as people write them: L2,L3 or L18-53."""
        return ",".join(str(Lines(*span)) for span in self.spans)

    def __str__(self) -> str:
        return f"{self.source} {self.lines}"


class Row(Struct, frozen=True, omit_defaults=True):
    """One row of the map."""

    concept: str
    kind: str = field(name="class")
    places: tuple[Place, ...]
    stale: tuple[str, ...] = ()  # the texts that are out of date


class _Draft:
    """A row under construction: its matches, and lines by text."""

    def __init__(self, match: Match) -> None:
        self.kind: Class = match.kind
        self.matches = [match]
        self.spans: dict[str, set[Lines]] = defaultdict(set)
        self.title = ""
        for part, lines in ((match.small, match.small_lines), (match.large, match.large_lines)):
            self.spans[part.source].add(lines)

    def merge(self, other: "_Draft") -> None:
        self.matches += other.matches
        for source, spans in other.spans.items():
            self.spans[source] |= spans


def find_duplicates(
    documents: Sequence[Document], stale: Sequence[Stale] = (), matches: Sequence[Match] | None = None
) -> tuple[Row, ...]:
    """Return the duplication map; `stale` are known stale references, `matches` known matches."""
    matches = find_matches(documents) if matches is None else matches
    order = {document.name: at for at, document in enumerate(documents)}
    drafts = _with_third(
        _with_same_place([_Draft(match) for match in matches], {document.name: document for document in documents})
    )
    drafts = [draft for draft in drafts if not _only_points(draft)]
    rows = [_row(draft, stale, order) for draft in drafts]
    reported = {
        (place.source, number) for row in rows if row.stale for place in row.places for number in _numbers(place)
    }
    rows += [
        Row(
            reference.name,
            "stale",
            (Place(reference.source, ((reference.first, reference.last),)),),
            (reference.source,),
        )
        for reference in stale
        if (reference.source, reference.first) not in reported
    ]
    return tuple(sorted(rows, key=lambda row: [(order[place.source], place.spans) for place in row.places]))


def find_matches(documents: Sequence[Document]) -> list[Match]:
    """Return the matches between texts without repetitions: exact ones first, then paraphrases, then references."""
    exact = _in_runs(find_exact(documents))
    finder = Finder(documents)
    kept = list(exact)
    for match in finder.find_near():
        if any(_same_place(match, other) and len(match.shared) < 1.3 * len(other.shared) for other in exact):
            continue
        small_place = match.large.kind != "section" or match.large_lines.length <= 8
        if small_place or match.small.kind in ("section", "block") or len(match.small.children) > 2:
            # A paraphrase of a whole passage replaces the exact matches within it.
            kept = [other for other in kept if not (other.kind == "exact" and _contains(match, other))]
        # An exact match of two terms within a paraphrase is not a rule of its own.
        kept = [
            other for other in kept if other.kind != "exact" or len(other.shared) > 2 or not _contains(match, other)
        ]
        kept.append(match)
    for match in finder.find_pointers():
        if not any(_same_place(match, other) or _within(match, other) for other in kept):
            kept.append(match)
    return kept


def _in_runs(matches: Sequence[Match]) -> list[Match]:
    """Merge matches of sentences that are consecutive in both texts."""
    runs: list[Match] = []
    for match in sorted(matches, key=lambda match: (match.small.source, match.large.source, match.small_lines)):
        last = runs[-1] if runs else None
        if last and _follows(last, match):
            runs[-1] = last._replace(
                small_lines=Lines(last.small_lines.first, match.small_lines.last),
                large_lines=Lines(last.large_lines.first, match.large_lines.last),
                shared=last.shared | match.shared,
            )
            continue
        runs.append(match)
    return runs


def _follows(last: Match, match: Match) -> bool:
    same = (last.small.source, last.large.source) == (match.small.source, match.large.source)
    near = _adjoins(last.small_lines, match.small_lines) and _adjoins(last.large_lines, match.large_lines)
    return same and near


def _adjoins(lines: Lines, other: Lines) -> bool:
    return lines.last <= other.first <= lines.last + 1 or lines == other


def _sides(match: Match) -> dict[str, Lines]:
    return {match.small.source: match.small_lines, match.large.source: match.large_lines}


def _same_place(match: Match, other: Match) -> bool:
    """Return True if two matches cover about the same lines of the same texts."""
    first, second = _sides(match), _sides(other)
    return first.keys() == second.keys() and all(_alike(first[source], second[source]) for source in first)


def _contains(match: Match, other: Match) -> bool:
    first, second = _sides(match), _sides(other)
    return first.keys() == second.keys() and all(first[key].overlap(second[key]) == second[key].length for key in first)


def _alike(lines: Lines, other: Lines) -> bool:
    return 2 * lines.overlap(other) >= max(lines.length, other.length)


def _within(match: Match, other: Match) -> bool:
    first, second = _sides(match), _sides(other)
    return first.keys() == second.keys() and all(first[source].overlap(second[source]) for source in first)


def _with_same_place(drafts: Sequence[_Draft], documents: Mapping[str, Document]) -> list[_Draft]:
    """Merge rows of nearby lines that match the same section, and include exact matches beside them."""
    rows: list[_Draft] = []
    for draft in drafts:
        match = draft.matches[0]
        for row in rows:
            other = row.matches[0]
            same = (match.small.source, match.large.source) == (other.small.source, other.large.source)
            close = _near_by(match.small_lines, other.small_lines) and match.large_lines.overlap(other.large_lines)
            if same and draft.kind == row.kind == "near" and (close or _alike(match.large_lines, other.large_lines)):
                row.merge(draft)
                break
        else:
            rows.append(draft)
    for row in rows:
        for other in rows:
            if row.kind == "near" and other.kind == "exact":
                _include_exact(row, other, documents)
    return rows


def _include_exact(row: _Draft, exact: _Draft, documents: Mapping[str, Document]) -> None:
    """If an exact match lies beside a paraphrase of the same section, extend the row to the whole section."""
    here, there = _sides(row.matches[0]), _sides(exact.matches[0])
    small, large = row.matches[0].small.source, row.matches[0].large.source
    if here.keys() != there.keys() or not any(_near_by(there[small], lines) for lines in row.spans[small]):
        return
    whole = Lines(min(here[large].first, there[large].first), max(here[large].last, there[large].last))
    section = documents[large].section_at(whole)
    if section:
        row.spans[large] = {section.lines}
        row.spans[small].add(there[small])
        row.title = section.title


def _near_by(lines: Lines, other: Lines, gap: int = 1) -> bool:
    return lines.first <= other.last + gap and other.first <= lines.last + gap


def _with_third(drafts: Sequence[_Draft]) -> list[_Draft]:
    """Merge rows with the same subject in different texts."""
    rows: list[_Draft] = []
    for draft in drafts:
        joined = draft
        for row in list(rows):
            if row.spans.keys() != joined.spans.keys() and _same_subject(row, joined):
                rows.remove(row)
                row.merge(joined)
                joined = row
        rows.append(joined)
    if len(rows) < len(drafts):
        return _with_third(rows)
    return _without_parts(rows)


def _same_subject(draft: _Draft, other: _Draft) -> bool:
    if any(
        _length(draft.spans[key] | other.spans[key]) > _MAX_LINES for key in draft.spans.keys() & other.spans.keys()
    ):
        return False
    return any(_related(match, another) for match in draft.matches for another in other.matches)


def _length(spans: Iterable[Lines]) -> int:
    return sum(lines.length for lines in spans)


def _related(match: Match, other: Match) -> bool:
    shared = match.shared & other.shared
    if not any(is_concept(term) or is_file(term) for term in shared) and len(shared) < 3:
        return False
    here, there = _sides(match), _sides(other)
    return here.keys() != there.keys() and any(_touch(here[key], there[key]) for key in here.keys() & there.keys())


def _touch(lines: Lines, other: Lines) -> bool:
    larger, overlap = max(lines.length, other.length), lines.overlap(other)
    if overlap:
        return larger <= _CLOSE_LINES or 4 * overlap >= larger
    return _near_by(lines, other, gap=2) and larger <= _CLOSE_LINES


def _without_parts(rows: Sequence[_Draft]) -> list[_Draft]:
    """Drop rows whose lines are all contained in a row of more texts."""
    kept: list[_Draft] = []
    for row in rows:
        larger = (other for other in rows if other is not row and len(other.spans) > len(row.spans))
        if not any(all(_is_contained_in(row, other, source) for source in row.spans) for other in larger):
            kept.append(row)
    return kept


def _is_contained_in(row: _Draft, other: _Draft, source: str) -> bool:
    spans = other.spans.get(source, set())
    return all(any(lines.overlap(span) == lines.length for span in spans) for lines in row.spans[source])


def _only_points(draft: _Draft) -> bool:
    """Return True if a row only consists of daypack's own file references and their targets."""
    return len(draft.spans) < 3 and all(is_pointer(match.small) or is_pointer(match.large) for match in draft.matches)


def _row(draft: _Draft, stale: Sequence[Stale], order: dict[str, int]) -> Row:
    places = tuple(
        Place(source, tuple((span.first, span.last) for span in _united(spans)))
        for source, spans in sorted(draft.spans.items(), key=lambda entry: order[entry[0]])
    )
    old = {
        reference.source
        for reference in stale
        for place in places
        if reference.source == place.source
        and any(Lines(*span).overlap(Lines(reference.first, reference.last)) for span in place.spans)
    }
    kind = "triple" if len(places) > 2 else draft.kind
    return Row(
        _concept(draft),
        ", ".join((kind, *(["stale"] if old else []))),
        places,
        tuple(sorted(old, key=order.__getitem__)),
    )


def _united(spans: Iterable[Lines]) -> list[Lines]:
    """Drop spans contained in longer ones; adjacent spans stay separate, because they are separate items."""
    kept: list[Lines] = []
    for lines in sorted(spans, key=lambda lines: (-lines.length, lines.first)):
        if not any(lines.overlap(other) == lines.length for other in kept):
            kept.append(lines)
    return sorted(kept)


def _concept(draft: _Draft) -> str:
    """Name a row after the heading of its subject, else after its shortest text."""
    titles = [draft.title] if draft.title else []
    titles += [part.title for match in draft.matches for part in (match.large, match.small) if part.title]
    if titles and draft.kind != "exact":
        return _shortened(titles[0])
    texts = [part.text for match in draft.matches for part in (match.small, match.large)]
    return _shortened(min(texts, key=len))


def _shortened(text: str) -> str:
    text = " ".join(text.replace("*", "").replace("`", "").split()).lstrip("-+• ").rstrip(":. ")
    return text if len(text) <= _CONCEPT_CHARS else f"{text[:_CONCEPT_CHARS].rsplit(' ', 1)[0]} …"


def _numbers(place: Place) -> Iterable[int]:
    return (number for first, last in place.spans for number in range(first, last + 1))
