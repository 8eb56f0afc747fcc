"""The rules of the envelope model: an id that stays, a sentence, and the check.

A check yields a finding for everything that it looks at, with a problem where the rule is broken. A rule that finds
nothing to look at does not apply.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from daypack.turn.conformance.rules import (
    absence,
    budget,
    digests,
    lifecycle,
    references,
    schema,
    selection,
    visibility,
)
from daypack.turn.conformance.subject import Finding, Subject


class Rule(NamedTuple):
    """What every conforming document keeps."""

    id: str
    sentence: str
    check: Callable[[Subject], Iterable[Finding]]

    @property
    def group(self) -> str:
        """The first part of the id."""
        return self.id.partition(".")[0]


RULES = (
    Rule("schema.required", "Every object has the fields that its schema requires.", schema.required),
    Rule("schema.type", "Every known field has the JSON type and range of its schema.", schema.types),
    Rule("schema.time", "Every time is a date and time of RFC 3339 with an offset.", schema.times),
    Rule(
        "schema.content",
        "An inline item has `content`, an item by reference has `content_ref`.",
        schema.content,
    ),
    Rule("refs.unique", "No two objects of the document share an id.", references.unique),
    Rule(
        "refs.envelope",
        "The envelope's refs and the records in its lists are the same, as far as the list is in the document.",
        references.envelope,
    ),
    Rule("refs.record", "A reference of one record to another leads to a record.", references.record),
    Rule("refs.item", "A reference to an item leads to an item that a surface holds or lists.", references.item),
    Rule("refs.event", "An event names this context, and an object of it as its subject.", references.event),
    Rule("lifecycle.state", "The records that the state implies are there.", lifecycle.state),
    Rule(
        "lifecycle.order",
        "Events come in the order of the lifecycle: surface, selection, budget, assembly, injection.",
        lifecycle.order,
    ),
    Rule("lifecycle.time", "No record is older than the record it was made from.", lifecycle.time),
    Rule("lifecycle.clock", "Events are listed in the order of their times.", lifecycle.clock),
    Rule(
        "lifecycle.figures",
        "What an event repeats of its subject in `data` is the same there.",
        lifecycle.figures,
    ),
    Rule(
        "selection.candidates",
        "What is selected or omitted was a candidate, and every candidate was available.",
        selection.candidates,
    ),
    Rule(
        "selection.complete",
        "Every candidate is either selected or omitted, and not both.",
        selection.complete,
    ),
    Rule("selection.reason", "Every omission has a reason.", selection.reason),
    Rule("assembly.selected", "An assembly shows only items selected for its target.", selection.assembled),
    Rule("assembly.sources", "`source_item_refs` of an assembly are the items of its blocks.", selection.sources),
    Rule("assembly.order", "Blocks are in the order of their positions.", selection.block_order),
    Rule("window.order", "Segments are in their order, and an item is in one of them only.", selection.segments),
    Rule("budget.limit", "What was used, with the reserve, is within the limits.", budget.limit),
    Rule("budget.sum", "The tokens of the segments add up to those of their window.", budget.sums),
    Rule("budget.reserve", "The reserves of the segments add up to that of their window.", budget.reserves),
    Rule("budget.window", "A window has the figures of its budget.", budget.window),
    Rule("budget.items", "`actual_items` is the number of items selected within the budget.", budget.items),
    Rule("visibility.item", "A target is shown only items that are visible to it.", visibility.item),
    Rule("visibility.surface", "A surface holds only items that one of its targets may see.", visibility.surface),
    Rule("visibility.chain", "Records that refer to each other are for the same target.", visibility.chain),
    Rule("visibility.point", "An injection point is one where its target can see it.", visibility.point),
    Rule("redaction.content", "Content that was withheld is not in the document.", absence.content),
    Rule("redaction.state", "What shows a redacted item does not claim to be unredacted.", absence.state),
    Rule("redaction.event", "A redaction of something shown is an event.", absence.event),
    Rule("compaction.source", "A compaction and a summary name what they were made from.", absence.sources),
    Rule("missing.status", "A resolved question has an answer, a requested one a source.", absence.missing),
    Rule("digest.form", "Digests are written sha256: and 64 lower-case hexadecimal digits.", digests.form),
    Rule("digest.complete", "Every object has a digest, and every digest an object.", digests.complete),
    Rule("digest.content", "The digest of an item is that of its content.", digests.content),
    Rule("digest.record", "The digest of an item or record is that of its canonical form.", digests.record),
    Rule("digest.envelope", "The digest of the envelope is that of its canonical form.", digests.envelope),
)
