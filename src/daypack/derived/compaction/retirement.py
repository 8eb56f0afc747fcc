"""Retirement: which records of earlier ranges a newer range has closed, cured or made history."""

from msgspec import Struct

from daypack.derived.artifacts.observations import Artifacts
from daypack.derived.compaction.diagnoses import resolved_since
from daypack.derived.compaction.extractive import Extraction
from daypack.derived.compaction.validity import is_outdated, is_passed
from daypack.types.compaction import LossReason, Records


class Retired(Struct, frozen=True):
    """Ids of records that do not hold any more, with the reason, and of errors with what resolved them."""

    reasons: dict[str, LossReason]
    cures: dict[str, str]


def retire(records: Records, extraction: Extraction, artifacts: Artifacts) -> Retired:
    """Return what a range says about records that were read before it."""
    reasons: dict[str, LossReason] = dict.fromkeys(extraction.finished(records.todos), "done")
    timeline = extraction.timeline
    reasons.update((todo.id, "done") for todo in records.todos if is_passed(todo.text, timeline))
    for fact in records.facts:
        if not fact.purpose and is_outdated(fact.text, timeline):
            reasons[fact.id] = "outdated"
    reasons.update((decision.id, "outdated") for decision in records.decisions if timeline.moved(decision.decision))
    cures: dict[str, str] = {}
    for name, cure in resolved_since(
        (error for error in records.errors if not error.resolution), artifacts, timeline
    ).items():
        if cure:
            cures[name] = cure
        else:
            reasons[name] = "resolved"
    return Retired(reasons, cures)
