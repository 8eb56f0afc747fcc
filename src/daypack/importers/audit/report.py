"""The report on a store: how many memories have which fault, with examples, and what an import would keep."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import date

from msgspec import Struct

from daypack.importers.audit.contradictions import find_contradictions
from daypack.importers.audit.findings import CLASSES, Finding
from daypack.importers.audit.keep import choose
from daypack.importers.audit.pronouns import find_dangling
from daypack.importers.audit.secrets import find_secrets
from daypack.importers.audit.stale_dates import find_stale
from daypack.importers.stores.records import Orphan, Record, StoredMemory, Unreadable
from daypack.text.redact.redact import redact

_EXAMPLE_CHARS = 300

Progress = Callable[[int], None]  # called with the number of memories read


class Example(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A finding with the text it is about; secrets are replaced by markers."""

    id: str
    text: str
    problem: str
    place: str = ""
    written_at: str = ""
    other_id: str = ""
    other_text: str = ""
    other_written_at: str = ""


class Row(Struct, frozen=True, kw_only=True):
    """How many memories, or parts of a store, have a fault."""

    kind: str
    count: int
    examples: tuple[Example, ...]


class Report(Struct, frozen=True, kw_only=True):
    """What is in a store, what is wrong with it, and what an import would keep."""

    memories: int
    tokens: int
    owners: int
    kinds: dict[str, int]
    first: str
    last: str
    rows: tuple[Row, ...]
    with_findings: int  # memories that have at least one
    kept: int
    kept_tokens: int
    left_out: dict[str, int]  # by class


def examine(
    records: Iterable[Record], *, today: date, examples: int, count_tokens: Callable[[str], int], progress: Progress
) -> Report:
    """Return the report on the records of a store."""
    memories: list[StoredMemory] = []
    orphans: list[Orphan] = []
    unreadable: list[Unreadable] = []
    for record in records:
        if isinstance(record, StoredMemory):
            memories.append(record)
            progress(len(memories))
        elif isinstance(record, Orphan):
            orphans.append(record)
        else:
            unreadable.append(record)
    kept = choose(memories)
    findings = [
        *kept.left_out.values(),
        *find_contradictions(memories, kept.left_out),
        *find_stale(memories, today),
        *find_dangling(memories),
        *find_secrets(memories),
    ]
    tokens = [count_tokens(memory.text) for memory in memories]
    times = sorted(memory.written_at for memory in memories if memory.written_at)
    return Report(
        memories=len(memories),
        tokens=sum(tokens),
        owners=len({memory.owner.name for memory in memories if memory.owner.name}),
        kinds=dict(Counter(memory.kind for memory in memories).most_common()),
        first=times[0] if times else "",
        last=times[-1] if times else "",
        rows=(*_rows(memories, findings, examples), *_other_rows(orphans, unreadable, examples)),
        with_findings=len({finding.at for finding in findings}),
        kept=len(kept.memories),
        kept_tokens=sum(count for at, count in enumerate(tokens) if at not in kept.left_out),
        left_out=dict(Counter(finding.kind for finding in kept.left_out.values())),
    )


def _rows(memories: Sequence[StoredMemory], findings: Sequence[Finding], examples: int) -> list[Row]:
    rows: list[Row] = []
    for kind in CLASSES:
        found = [finding for finding in findings if finding.kind == kind]
        if not found:
            continue
        shown = found
        if kind.endswith("duplicate"):  # the most frequent originals first, each once
            copies = Counter(finding.other for finding in found)
            firsts = {finding.other: finding for finding in reversed(found)}
            shown = [
                Finding(kind=kind, at=firsts[other].at, other=other, problem=f"{count:,} more of it")
                for other, count in copies.most_common(examples)
            ]
        rows.append(Row(kind=kind, count=len(found), examples=tuple(_example(memories, f) for f in shown[:examples])))
    return rows


def _other_rows(orphans: Sequence[Orphan], unreadable: Sequence[Unreadable], examples: int) -> list[Row]:
    rows: list[Row] = []
    if orphans:
        shown = tuple(
            Example(id=_shown(orphan.id), text="", problem=_shown(orphan.problem), place=orphan.place)
            for orphan in orphans[:examples]
        )
        rows.append(Row(kind="orphan", count=len(orphans), examples=shown))
    if unreadable:
        shown = tuple(
            Example(id="", text="", problem=_shown(record.problem), place=record.place)
            for record in unreadable[:examples]
        )
        rows.append(Row(kind="unreadable", count=len(unreadable), examples=shown))
    return rows


def _example(memories: Sequence[StoredMemory], finding: Finding) -> Example:
    memory = memories[finding.at]
    other = None if finding.other is None else memories[finding.other]
    return Example(
        id=memory.id,
        text=_shown(memory.statement),
        problem=finding.problem,
        place=memory.place,
        written_at=memory.written_at,
        other_id=other.id if other else "",
        other_text=_shown(other.statement) if other else "",
        other_written_at=other.written_at if other else "",
    )


def _shown(text: str) -> str:
    """Return the beginning of a text; secrets are found in the whole of it, so that none is cut in two."""
    return redact(text).text[:_EXAMPLE_CHARS]
