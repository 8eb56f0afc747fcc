"""Broken documents: small named changes of a good one, and the one rule that each of them breaks."""

from collections.abc import Callable
from typing import Any, NamedTuple

from turn.conformance.documents import digest_of_text, good, seal, seal_envelope

Json = dict[str, Any]


class Broken(NamedTuple):
    """A change of the good document."""

    name: str
    rule: str
    change: Callable[[Json], object]
    sealed: bool = True  # its digests are computed after the change

    def document(self) -> Json:
        document = good()
        self.change(document)
        return seal(document) if self.sealed else document


def put(path: str, value: Any) -> Callable[[Json], object]:
    """Set the field at a path like `budgets.0.max_tokens`."""

    def change(document: Json) -> None:
        inner, last = reach(document, path)
        inner[last] = value

    return change


def drop(path: str) -> Callable[[Json], object]:
    def change(document: Json) -> None:
        inner, last = reach(document, path)
        del inner[last]

    return change


def reach(document: Json, path: str) -> tuple[Any, Any]:
    inner: Any = document
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    for step in steps:
        inner = inner[step]
    return inner, last


def swap_events(first: int, second: int) -> Callable[[Json], object]:
    """Exchange what two events are about; their times stay."""

    def change(document: Json) -> None:
        one, other = document["events"][first], document["events"][second]
        for field in ("event_type", "subject"):
            one[field], other[field] = other[field], one[field]

    return change


def all_of(*changes: Callable[[Json], object]) -> Callable[[Json], object]:
    return lambda document: [change(document) for change in changes]


ITEMS = "surfaces.0.items"
OTHER = digest_of_text("other words")

BROKEN = (
    Broken("envelope without a lifecycle", "schema.required", drop("lifecycle")),
    Broken("budget without a target", "schema.required", drop("budgets.0.target")),
    Broken("item without a version", "schema.required", drop(f"{ITEMS}.0.schema_version")),
    Broken("omission without a reason", "schema.required", drop("selections.0.omitted_item_refs.0.reason")),
    Broken("tokens as a text", "schema.type", put("budgets.0.max_items", "nine")),
    Broken("tokens below zero", "schema.type", put("budgets.0.actual_ms", -1)),
    Broken("priority that is true", "schema.type", put(f"{ITEMS}.0.priority", True)),
    Broken("item visible to nothing", "schema.type", put(f"{ITEMS}.3.visibility", [])),
    Broken("events that have no time of day", "schema.time", put("missing_contexts.0.created_at", "yesterday")),
    Broken("a time without an offset", "schema.time", put("summaries.0.created_at", "2027-01-01T00:00:00")),
    Broken("an inline item without content", "schema.content", drop(f"{ITEMS}.1.content")),
    Broken("a reference that refers to nothing", "schema.content", drop(f"{ITEMS}.2.content_ref")),
    Broken(
        "two questions with one id",
        "refs.unique",
        all_of(put("missing_contexts.1.missing_id", "c/q"), drop("missing_context_refs.1"),
               put("events.3.subject", "c/q"), put("events.4.subject", "c/q")),
    ),
    Broken("a summary with the id of the envelope", "refs.unique",
           all_of(put("summaries.0.summary_id", "c"), put("compactions.0.summary_ref", "c"))),
    Broken("a ref to a window that is not there", "refs.envelope", put("window_refs", ["c/window", "c/door"])),
    Broken("a compaction that the envelope does not name", "refs.envelope", put("compaction_refs", [])),
    Broken("a budget_ref to nothing", "refs.envelope", put("budget_ref", "c/none")),
    Broken("a summary_ref that is a file", "refs.record", put("compactions.0.summary_ref", "context/CONTEXT.md")),
    Broken("an injection of no assembly", "refs.record",
           put("injections.0.assembly_id", "c/none")),
    Broken("a block of an unknown item", "refs.item", put("assemblies.0.ordered_blocks.0.item_refs", ["plain", "x"])),
    Broken("a compaction of unknown items", "refs.item", put("compactions.0.source_item_refs", ["messages:1-9"])),
    Broken("a ranking of an unknown item", "refs.item", put("selections.0.ranking_signals.x", {"relevance": 1})),
    Broken("an event of another context", "refs.event", put("events.0.context_id", "d")),
    Broken("an event about nothing", "refs.event", put("events.10.subject", "c/elsewhere")),
    Broken("injected without an injection", "lifecycle.state",
           all_of(put("injections", []), put("injection_refs", []), drop("events.9"))),
    Broken("compacted without a compaction", "lifecycle.state",
           all_of(put("lifecycle", "compacted"), put("compactions", []), put("compaction_refs", []), drop("events.6"))),
    Broken("assembled before the budget", "lifecycle.order", swap_events(5, 8)),
    Broken("selected before it started", "lifecycle.order", swap_events(1, 2)),
    Broken("asked before it was known", "lifecycle.order", swap_events(3, 4)),
    Broken("a selection older than its surface", "lifecycle.time",
           put("selections.0.created_at", "2026-01-01T00:00:00Z")),
    Broken("an injection older than its assembly", "lifecycle.time",
           put("injections.0.created_at", "2027-01-01T00:00:00+05:00")),
    Broken("an event that goes back in time", "lifecycle.clock", put("events.10.time", "2027-01-01T00:00:00Z")),
    Broken("an event that counts other items", "lifecycle.figures", put("events.0.data.items", 3)),
    Broken("an event with another sum of tokens", "lifecycle.figures", put("events.5.data.tokens", 71)),
    Broken("an omission that was no candidate", "selection.candidates",
           put("selections.0.candidate_item_refs", ["plain", "masked", "file", "withheld", "old-1"])),
    Broken("a candidate that was not available", "selection.candidates",
           put("surfaces.0.available_item_refs", ["masked", "file", "withheld", "old-1", "old-2"])),
    Broken("a candidate that was forgotten", "selection.complete", drop("selections.0.omitted_item_refs.0")),
    Broken("selected and omitted", "selection.complete", put("selections.0.omitted_item_refs.0.item_ref", "plain")),
    Broken("an empty reason", "selection.reason", put("selections.0.omitted_item_refs.0.reason", "")),
    Broken("a reason of blanks", "selection.reason", put("selections.0.omitted_item_refs.0.reason", "  ")),
    Broken("a selection from no candidates", "selection.candidates", put("selections.0.candidate_item_refs", [])),
    Broken("a block of an omitted item that is elsewhere", "assembly.selected",
           all_of(put("assemblies.0.ordered_blocks.0.item_refs", ["plain", "old-1"]),
                  put("assemblies.0.source_item_refs", ["plain", "masked", "file", "old-1"]))),
    Broken("an event with an empty id", "refs.unique", put("events.10.event_id", "")),
    Broken("an answer that leads nowhere", "missing.status",
           all_of(put("missing_contexts.0.status", "resolved"), put("missing_contexts.0.resolution_refs", [""]))),
    Broken("a block of an omitted item", "assembly.selected",
           all_of(put("assemblies.0.ordered_blocks.0.item_refs", ["plain", "withheld"]),
                  put("assemblies.0.source_item_refs", ["plain", "masked", "file", "withheld"]))),
    Broken("sources that the blocks do not show", "assembly.sources",
           put("assemblies.0.source_item_refs", ["plain", "masked"])),
    Broken("blocks out of order", "assembly.order", put("assemblies.0.ordered_blocks.0.position", 3)),
    Broken("segments out of order", "window.order", put("windows.0.segments.1.order", 1)),
    Broken("an item in two segments", "window.order", put("windows.0.segments.0.item_refs", ["plain", "file"])),
    Broken("more tokens than allowed", "budget.limit",
           all_of(put("budgets.0.max_tokens", 80), put("windows.0.max_tokens", 80))),
    Broken("more items than allowed", "budget.limit", put("budgets.0.max_items", 2)),
    Broken("segments that do not add up", "budget.sum", put("windows.0.segments.0.actual_tokens", 31)),
    Broken("a reserve that is not kept", "budget.reserve", put("windows.0.segments.2.reserved_tokens", 19)),
    Broken("a window with another budget", "budget.window",
           all_of(put("budgets.0.actual_tokens", 69), put("events.5.data.tokens", 69))),
    Broken("items counted wrongly", "budget.items", put("budgets.0.actual_items", 4)),
    Broken("shown to a target that may not see it", "visibility.item",
           put(f"{ITEMS}.2.visibility", ["reviewer", "ui"])),
    Broken("an item for none of the targets", "visibility.surface", put(f"{ITEMS}.3.visibility", ["user"])),
    Broken("a window for another target", "visibility.chain", put("windows.0.target", "tool")),
    Broken("an injection for another target", "visibility.chain",
           all_of(put("injections.0.target", "user"), put("injections.0.injection_point", "ui_panel"))),
    Broken("the model reads no UI panel", "visibility.point", put("injections.0.injection_point", "ui_panel")),
    Broken("removed and still there", "redaction.content", put(f"{ITEMS}.3.content", "the secret")),
    Broken("an assembly that claims to be clean", "redaction.state", put("assemblies.0.redaction_state", "none")),
    Broken("a block that claims to be clean", "redaction.state",
           put("assemblies.0.ordered_blocks.1.redaction_state", "none")),
    Broken("a redaction without an event", "redaction.event", drop("events.7")),
    Broken("a summary of nothing", "compaction.source", put("summaries.0.source_item_refs", [])),
    Broken("resolved without an answer", "missing.status", drop("missing_contexts.2.resolution_refs")),
    Broken("requested from nowhere", "missing.status", put("missing_contexts.1.requested_from", None)),
    Broken("a digest of another algorithm", "digest.form", put("digests.c/budget", "md5:0"), sealed=False),
    Broken("a digest in capitals", "digest.form", put(f"{ITEMS}.0.digest", "sha256:" + "AB" * 32)),
    Broken("a record without a digest", "digest.complete",
           all_of(drop("digests.c/budget"), seal_envelope), sealed=False),
    Broken("a digest of nothing", "digest.complete", all_of(put("digests.c/none", OTHER), seal_envelope), sealed=False),
    Broken("other words in an item", "digest.content", put(f"{ITEMS}.0.content", "Tides turn at one."), sealed=False),
    Broken("other words in a sealed item", "digest.content", put(f"{ITEMS}.0.content", "Tides turn at one.")),
    Broken("a changed note of an omission", "digest.record",
           put("selections.0.omitted_item_refs.0.note", "no"), sealed=False),
    Broken("a changed title", "digest.record", put(f"{ITEMS}.1.title", "x"), sealed=False),
    Broken("a changed field of others", "digest.record", put("budgets.0.euros", 5), sealed=False),
    Broken("a changed envelope", "digest.envelope", put("metadata", {"x": 1}), sealed=False),
)  # fmt: skip
