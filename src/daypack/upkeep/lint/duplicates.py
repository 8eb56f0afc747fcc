"""The duplication map: which concept stands in which prompt texts, on which lines, and what kind of waste that is.

    Model hierarchy   AGENTS.md L18-53   MEMORY.md L2,L3   near

Classes: exact (the same words), near (the same in other words), cross-reference (a line that points to, or stands for,
a section elsewhere), triple (three texts and more), stale (it tells of something that does not exist any more).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from daypack.upkeep.lint.matches import Class, Finder, Match, find_exact, is_pointer
from daypack.upkeep.lint.passages import Document, Lines
from daypack.upkeep.lint.stale_references import Stale
from daypack.upkeep.lint.vocabulary import is_concept, is_file

_CONCEPT_CHARS = 60
_LONGEST = 60  # lines of a text that can be about one thing
_CLOSE = 12  # lines up to which a part and a line in it are about one thing


class Place(Struct, frozen=True):
    """Where a text says it."""

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
    """A row in the making: lines by text, and what they share."""

    def __init__(self, match: Match) -> None:
        self.kind: Class = match.kind
        self.matches = [match]
        self.spans: dict[str, set[Lines]] = defaultdict(set)
        self.title = ""
        for part, lines in ((match.small, match.small_lines), (match.large, match.large_lines)):
            self.spans[part.source].add(lines)

    def take(self, other: "_Draft") -> None:
        """Make one row of two."""
        self.matches += other.matches
        for source, spans in other.spans.items():
            self.spans[source] |= spans


def find_duplicates(
    documents: Sequence[Document], stale: Sequence[Stale] = (), matches: Sequence[Match] | None = None
) -> tuple[Row, ...]:
    """Return the map over these texts; `stale` is what was found out of date in them, `matches` what they share."""
    matches = find_matches(documents) if matches is None else matches
    order = {document.name: at for at, document in enumerate(documents)}
    drafts = _with_third(_with_same_place([_Draft(match) for match in matches], {one.name: one for one in documents}))
    drafts = [draft for draft in drafts if not _only_points(draft)]
    rows = [_row(draft, stale, order) for draft in drafts]
    told = {(place.source, number) for row in rows if row.stale for place in row.places for number in _numbers(place)}
    rows += [
        Row(one.name, "stale", (Place(one.source, ((one.first, one.last),)),), (one.source,))
        for one in stale
        if (one.source, one.first) not in told
    ]
    return tuple(sorted(rows, key=lambda row: [(order[one.source], one.spans) for one in row.places]))


def find_matches(documents: Sequence[Document]) -> list[Match]:
    """Return what two texts share, each thing once: the same words first, then other words, then pointers."""
    exact = _in_runs(find_exact(documents))
    finder = Finder(documents)
    kept = list(exact)
    for match in finder.find_near():
        if any(_same_place(match, other) and len(match.shared) < 1.3 * len(other.shared) for other in exact):
            continue
        small_place = match.large.kind != "section" or match.large_lines.length <= 8
        if small_place or match.small.kind in ("section", "block") or len(match.small.children) > 2:
            # A text that is told again as a whole is one thing, also where some words are the same.
            kept = [other for other in kept if not (other.kind == "exact" and _holds(match, other))]
        # A turn of two words is a part of what is told again there, and no rule of its own.
        kept = [other for other in kept if other.kind != "exact" or len(other.shared) > 2 or not _holds(match, other)]
        kept.append(match)
    for match in finder.find_pointers():
        if not any(_same_place(match, other) or _within(match, other) for other in kept):
            kept.append(match)
    return kept


def _in_runs(matches: Sequence[Match]) -> list[Match]:
    """Make one match of sentences that follow each other in both texts."""
    runs: list[Match] = []
    for match in sorted(matches, key=lambda one: (one.small.source, one.large.source, one.small_lines)):
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


def _adjoins(one: Lines, other: Lines) -> bool:
    return one.last <= other.first <= one.last + 1 or one == other


def _sides(match: Match) -> dict[str, Lines]:
    return {match.small.source: match.small_lines, match.large.source: match.large_lines}


def _same_place(match: Match, other: Match) -> bool:
    """Whether two matches are about the same few lines of the same texts."""
    one, two = _sides(match), _sides(other)
    return one.keys() == two.keys() and all(_alike(one[source], two[source]) for source in one)


def _holds(match: Match, other: Match) -> bool:
    one, two = _sides(match), _sides(other)
    return one.keys() == two.keys() and all(one[key].overlap(two[key]) == two[key].length for key in one)


def _alike(one: Lines, other: Lines) -> bool:
    return 2 * one.overlap(other) >= max(one.length, other.length)


def _within(match: Match, other: Match) -> bool:
    one, two = _sides(match), _sides(other)
    return one.keys() == two.keys() and all(one[source].overlap(two[source]) for source in one)


def _with_same_place(drafts: Sequence[_Draft], documents: Mapping[str, Document]) -> list[_Draft]:
    """Make one row of several lines of a text that are found in one section; exact lines count there too."""
    rows: list[_Draft] = []
    for draft in drafts:
        match = draft.matches[0]
        for row in rows:
            other = row.matches[0]
            same = (match.small.source, match.large.source) == (other.small.source, other.large.source)
            close = _near_by(match.small_lines, other.small_lines) and match.large_lines.overlap(other.large_lines)
            if same and draft.kind == row.kind == "near" and (close or _alike(match.large_lines, other.large_lines)):
                row.take(draft)
                break
        else:
            rows.append(draft)
    for row in rows:
        for other in rows:
            if row.kind == "near" and other.kind == "exact":
                _count_exact(row, other, documents)
    return rows


def _count_exact(row: _Draft, exact: _Draft, documents: Mapping[str, Document]) -> None:
    """Where the line beside a near one is in the same section word for word, the section is what is told again."""
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


def _near_by(one: Lines, other: Lines, gap: int = 1) -> bool:
    return one.first <= other.last + gap and other.first <= one.last + gap


def _with_third(drafts: Sequence[_Draft]) -> list[_Draft]:
    """Make one row of rows that are about one thing in different texts."""
    rows: list[_Draft] = []
    for draft in drafts:
        joined = draft
        for row in list(rows):
            if row.spans.keys() != joined.spans.keys() and _one_thing(row, joined):
                rows.remove(row)
                row.take(joined)
                joined = row
        rows.append(joined)
    if len(rows) < len(drafts):
        return _with_third(rows)
    return _without_parts(rows)


def _one_thing(one: _Draft, other: _Draft) -> bool:
    if any(_length(one.spans[key] | other.spans[key]) > _LONGEST for key in one.spans.keys() & other.spans.keys()):
        return False
    return any(_related(match, another) for match in one.matches for another in other.matches)


def _length(spans: Iterable[Lines]) -> int:
    return sum(lines.length for lines in spans)


def _related(one: Match, other: Match) -> bool:
    shared = one.shared & other.shared
    if not any(is_concept(term) or is_file(term) for term in shared) and len(shared) < 3:
        return False
    here, there = _sides(one), _sides(other)
    return here.keys() != there.keys() and any(_touch(here[key], there[key]) for key in here.keys() & there.keys())


def _touch(one: Lines, other: Lines) -> bool:
    larger, overlap = max(one.length, other.length), one.overlap(other)
    if overlap:
        return larger <= _CLOSE or 4 * overlap >= larger
    return _near_by(one, other, gap=2) and larger <= _CLOSE


def _without_parts(rows: Sequence[_Draft]) -> list[_Draft]:
    """Leave out rows whose lines all stand in a row of more texts."""
    kept: list[_Draft] = []
    for row in rows:
        larger = (other for other in rows if other is not row and len(other.spans) > len(row.spans))
        if not any(all(_stands_in(row, other, source) for source in row.spans) for other in larger):
            kept.append(row)
    return kept


def _stands_in(row: _Draft, other: _Draft, source: str) -> bool:
    spans = other.spans.get(source, set())
    return all(any(lines.overlap(span) == lines.length for span in spans) for lines in row.spans[source])


def _only_points(draft: _Draft) -> bool:
    """Whether a row is a pointer of ours and what it points to."""
    return len(draft.spans) < 3 and all(is_pointer(one.small) or is_pointer(one.large) for one in draft.matches)


def _row(draft: _Draft, stale: Sequence[Stale], order: dict[str, int]) -> Row:
    places = tuple(
        Place(source, tuple((one.first, one.last) for one in _united(spans)))
        for source, spans in sorted(draft.spans.items(), key=lambda one: order[one[0]])
    )
    old = {
        one.source
        for one in stale
        for place in places
        if one.source == place.source and any(Lines(*span).overlap(Lines(one.first, one.last)) for span in place.spans)
    }
    kind = "triple" if len(places) > 2 else draft.kind
    return Row(
        _concept(draft),
        ", ".join((kind, *(["stale"] if old else []))),
        places,
        tuple(sorted(old, key=order.__getitem__)),
    )


def _united(spans: Iterable[Lines]) -> list[Lines]:
    """Leave out lines that stand in longer ones; lines that merely adjoin stay apart, as they are several items."""
    kept: list[Lines] = []
    for lines in sorted(spans, key=lambda one: (-one.length, one.first)):
        if not any(lines.overlap(other) == lines.length for other in kept):
            kept.append(lines)
    return sorted(kept)


def _concept(draft: _Draft) -> str:
    """Name a row: by the heading of what it is about, else by its shortest words."""
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
