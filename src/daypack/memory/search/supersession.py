"""Finds the hits that a later hit supersedes, and ranks them below it.

Both must state a value of the same matter, of the same kind, and the values must differ. Precision counts more than
recall: what is wrongly called superseded is lost to the reader. Nothing is stored, so the rule applies to all entries.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from daypack.memory.search.statements import Replacement, Statement, read_statements
from daypack.memory.times import parse_time
from daypack.text.sentences import sentences
from daypack.text.words import stems_of
from daypack.types.memory import Entry, Hit

MAX_CHARS = 400  # of a superseded entry: a longer one also says something else
MAX_SENTENCES = 3
MAX_WORDS = 12  # of an entry that says what a person uses


def mark_superseded(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits, the superseded ones marked and below the hits that supersede them.

    A hit that supersedes a better ranked one gets its score; `score_parts` has the difference.
    """
    superseded = find_superseded(hits)
    if not superseded:
        return list(hits)
    scores = {hit.entry_id: hit.score for hit in hits}
    for older, newer in superseded.items():
        scores[newer] = max(scores[newer], scores[older])
    marked = [_mark(hit, scores[hit.entry_id], superseded.get(hit.entry_id)) for hit in hits]
    return sorted(marked, key=lambda hit: (-hit.score, hit.superseded_by is not None))


def find_superseded(entries: Sequence[Entry]) -> dict[str, str]:
    """Return the ids of superseded entries, each with the id of the newest entry that supersedes it."""
    ordered = sorted(entries, key=_moment)
    stated: dict[tuple[str, frozenset[str], str], list[tuple[Entry, Statement]]] = {}
    superseded: dict[str, str] = {}
    for position, entry in enumerate(ordered):
        for new in read_statements(entry):
            if isinstance(new, Statement):
                earlier = stated.setdefault((new.owner, new.matter, new.kind), [])
                olds = [old for old, statement in earlier if new.certain and statement.value != new.value]
                for old, statement in earlier:
                    if statement.value == new.value:  # it applies again
                        superseded.pop(old.entry_id, None)
                earlier.append((entry, new))
            else:
                olds = [old for old in ordered[:position] if _gives_up(new, old)]
            superseded |= {old.entry_id: entry.entry_id for old in olds if old is not entry and _is_short(old)}
    return superseded


def _moment(entry: Entry) -> tuple[int, int]:
    """Return when an entry was said, and its number."""
    return parse_time(entry.at) or parse_time(entry.created_at) or 0, entry.seq


def _is_short(entry: Entry) -> bool:
    return len(entry.raw_entry) <= MAX_CHARS and len(sentences(entry.raw_entry)) <= MAX_SENTENCES


def _gives_up(new: Replacement, older: Entry) -> bool:
    """Return True if an entry says that a person has what they gave up later."""
    text = older.raw_entry
    if not new.old or "?" in text or len(text.split()) > MAX_WORDS:
        return False
    speaker = (older.author or older.role or "").casefold()
    if new.owner != speaker and new.owner not in text.casefold().split():
        return False
    stems = stems_of(text)
    return new.old <= stems and not (new.new and new.new <= stems)


def _mark(hit: Hit, score: float, superseded_by: str | None) -> Hit:
    parts = hit.score_parts
    if parts is not None and score != hit.score:
        parts = {**parts, "supersedes": score - hit.score}
    return replace(hit, score=score, score_parts=parts, superseded_by=superseded_by)
