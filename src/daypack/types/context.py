"""The thirteen objects of the envelope model, in its order.

Documents of other writers are welcome: unknown fields are skipped, open vocabularies are plain strings, and a
record without `schema_version` reads as ours. What daypack writes always carries it.

A `*_ref` or `*_refs` holds the ids of objects of the model; a `Link` points outside it.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct, field

from daypack.types.fields import (
    CompactionMethod,
    CompactionTrigger,
    ContentMode,
    ContextKind,
    Count,
    EventType,
    InjectionPoint,
    Lifecycle,
    MissingStatus,
    OverflowStrategy,
    RedactionState,
    ReplacementPolicy,
    Scope,
    Severity,
    SurfaceKind,
    Target,
    Timestamp,
)
from daypack.types.shapes import Block, Coverage, Inline, Link, Omission, Ranking, Segment, Selector, Truncation

SCHEMA_VERSION = "0.1.1"

Visibility = Annotated[tuple[Target, ...], Meta(min_length=1)]


class Record(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The fields common to all thirteen objects."""

    # A factory, because a plain default would be left out when written.
    schema_version: str = field(default_factory=lambda: SCHEMA_VERSION)


class ContextEnvelope(Record, frozen=True, kw_only=True):
    """One portable snapshot for a turn, task, session, tool call, review or handoff.

    It refers to its records by id; an export also contains them. A change makes a new envelope.
    """

    context_id: str
    scope: Scope
    lifecycle: Lifecycle
    created_at: Timestamp
    producer: Link | None = None
    actor_refs: tuple[Link, ...] = ()
    runtime_refs: tuple[Link, ...] = ()
    surface_refs: tuple[str, ...] = ()
    item_refs: tuple[str, ...] = ()
    selection_refs: tuple[str, ...] = ()
    budget_ref: str | None = None
    window_refs: tuple[str, ...] = ()
    assembly_refs: tuple[str, ...] = ()
    injection_refs: tuple[str, ...] = ()
    compaction_refs: tuple[str, ...] = ()
    missing_context_refs: tuple[str, ...] = ()
    policy_refs: tuple[Link, ...] = ()
    artifact_refs: tuple[Link, ...] = ()
    tool_refs: tuple[Link, ...] = ()
    evidence_refs: tuple[Link, ...] = ()
    telemetry_refs: tuple[Link, ...] = ()
    # Id -> digest of each item, each record and the envelope itself, so that a document verifies itself.
    digests: dict[str, str] = {}
    # The canonical form that the digests are computed from: "rfc8785".
    digest_form: str | None = None
    surfaces: tuple[ContextSurface, ...] = ()
    selections: tuple[ContextSelection, ...] = ()
    budgets: tuple[ContextBudget, ...] = ()
    windows: tuple[ContextWindow, ...] = ()
    assemblies: tuple[ContextAssembly, ...] = ()
    injections: tuple[ContextInjection, ...] = ()
    compactions: tuple[ContextCompaction, ...] = ()
    summaries: tuple[ContextSummary, ...] = ()
    missing_contexts: tuple[MissingContext, ...] = ()
    events: tuple[ContextEvent, ...] = ()
    metadata: dict[str, Any] = {}


class ContextSurface(Record, frozen=True, kw_only=True):
    """The context that was available before selection; the only place that holds items in full."""

    surface_id: str
    scope: Scope
    created_at: Timestamp
    surface_kind: SurfaceKind | None = None
    producer: Link | None = None
    available_source_refs: tuple[str | ContextSourceRef, ...] = ()
    available_item_refs: tuple[str, ...] = ()
    items: tuple[ContextItem, ...] = ()
    capability_refs: tuple[Link, ...] = ()
    policy_refs: tuple[Link, ...] = ()
    visibility: tuple[Target, ...] = ()
    expires_at: Timestamp | None = None
    metadata: dict[str, Any] = {}


class ContextItem(Record, frozen=True, kw_only=True):
    """A unit of context, either inline (`content`) or by reference (`content_ref`)."""

    item_id: str
    context_kind: ContextKind
    content_mode: ContentMode
    visibility: Visibility
    title: str | None = None
    content: Inline | None = None
    content_ref: Link | None = None
    mime_type: str | None = None
    language: str | None = None
    source_refs: tuple[str | ContextSourceRef, ...] = ()
    token_estimate: Count | None = None
    byte_size: Count | None = None
    freshness: Link | None = None
    trust_level: str | None = None
    sensitivity: str | None = None
    redaction_state: RedactionState | None = None
    policy_refs: tuple[Link, ...] = ()
    priority: float | None = None
    digest: str | None = None
    created_at: Timestamp | None = None
    metadata: dict[str, Any] = {}

    @property
    def text(self) -> str:
        """The inline text; empty if the content is structured or stored elsewhere."""
        return self.content if isinstance(self.content, str) else ""


class ContextSourceRef(Record, frozen=True, kw_only=True):
    """Origin, selector, digest, authority and native ids of an item."""

    source_id: str
    uri: str
    source_kind: str
    # A string is a source reference of our own grammar ("messages:12-18").
    selector: str | Selector | tuple[Selector, ...] | None = None
    digest: str | None = None
    authority: str | None = None
    provenance_refs: tuple[Link, ...] = ()
    # One object per foreign protocol, with the ids it uses for the same thing.
    external_mappings: tuple[dict[str, Any], ...] = ()
    license: str | None = None
    retrieved_at: Timestamp | None = None
    modified_at: Timestamp | None = None
    metadata: dict[str, Any] = {}


class ContextSelection(Record, frozen=True, kw_only=True):
    """Which candidates were selected and omitted, how they ranked, and why."""

    selection_id: str
    surface_id: str
    created_at: Timestamp
    target: Target | None = None
    query: str | None = None
    intent: str | None = None
    candidate_item_refs: tuple[str, ...] = ()
    selected_item_refs: tuple[str, ...] = ()
    omitted_item_refs: tuple[Omission, ...] = ()
    ranking_signals: dict[str, Ranking] = {}
    selection_policy: Link | None = None
    budget_ref: str | None = None
    rationale: str | None = None
    actor_ref: Link | None = None
    model_ref: Link | None = None
    policy_refs: tuple[Link, ...] = ()
    metadata: dict[str, Any] = {}


class ContextBudget(Record, frozen=True, kw_only=True):
    """Token, byte, item, time and visibility limits for one target, with the use measured against them."""

    budget_id: str
    target: Target
    created_at: Timestamp
    max_tokens: Count | None = None
    reserved_tokens: Count | None = None
    max_bytes: Count | None = None
    max_items: Count | None = None
    max_ms: Count | None = None
    # Only items that these targets may see count.
    visibility: tuple[Target, ...] = ()
    actual_tokens: Count | None = None
    actual_bytes: Count | None = None
    actual_items: Count | None = None
    actual_ms: Count | None = None
    # The tokenizer or estimate: a count means little without it.
    token_method: str | None = None
    overflow_strategy: OverflowStrategy | None = None
    truncation_records: tuple[Truncation, ...] = ()
    window_ref: str | None = None
    metadata: dict[str, Any] = {}


class ContextWindow(Record, frozen=True, kw_only=True):
    """The ordered segments of the final window and the space reserved in it."""

    window_id: str
    target: Target
    segments: tuple[Segment, ...]
    created_at: Timestamp
    max_tokens: Count | None = None
    reserved_tokens: Count | None = None
    actual_tokens: Count | None = None
    budget_ref: str | None = None
    metadata: dict[str, Any] = {}


class ContextAssembly(Record, frozen=True, kw_only=True):
    """The blocks assembled for one target, in their order."""

    assembly_id: str
    target: Target
    ordered_blocks: tuple[Block, ...]
    created_at: Timestamp
    wrapping_policy: Link | None = None
    separator_policy: Link | None = None
    visibility: tuple[Target, ...] = ()
    budget_ref: str | None = None
    window_ref: str | None = None
    source_item_refs: tuple[str, ...] = ()
    redaction_state: RedactionState | None = None
    policy_refs: tuple[Link, ...] = ()
    hash: str | None = None
    metadata: dict[str, Any] = {}


class ContextInjection(Record, frozen=True, kw_only=True):
    """Where an assembly became visible; being selected never implies it."""

    injection_id: str
    assembly_id: str
    target: Target
    injection_point: InjectionPoint
    created_at: Timestamp
    # The id that the injection point itself uses: of a message, a request, a panel.
    native_id: str | None = None
    visibility: tuple[Target, ...] = ()
    final_ref: Link | None = None
    hash: str | None = None
    policy_refs: tuple[Link, ...] = ()
    metadata: dict[str, Any] = {}


class ContextCompaction(Record, frozen=True, kw_only=True):
    """The replacement, in a window, of original context by a shorter summary or structured digest."""

    compaction_id: str
    scope: Scope
    source_item_refs: tuple[str, ...]
    method: CompactionMethod
    created_at: Timestamp
    summary_ref: str | None = None
    trigger: CompactionTrigger | None = None
    coverage: Coverage | None = None
    loss_notes: tuple[str, ...] = ()
    validation: Link | None = None
    replacement_policy: ReplacementPolicy | None = None
    policy_refs: tuple[Link, ...] = ()
    metadata: dict[str, Any] = {}


class ContextSummary(Record, frozen=True, kw_only=True):
    """A summary's content with its source coverage, loss notes and refresh policy."""

    summary_id: str
    content: str
    source_item_refs: tuple[str, ...]
    summary_kind: str | None = None
    coverage: Coverage | None = None
    loss_notes: tuple[str, ...] = ()
    open_questions: tuple[str, ...] = ()
    freshness: Link | None = None
    validation: Link | None = None
    refresh_policy: Link | None = None
    created_at: Timestamp | None = None
    metadata: dict[str, Any] = {}


class MissingContext(Record, frozen=True, kw_only=True):
    """A known missing input: the question, what it blocks, and where the answer was asked for."""

    missing_id: str
    scope: Scope
    question: str
    severity: Severity
    status: MissingStatus
    created_at: Timestamp
    needed_for: str | None = None
    candidate_sources: tuple[Link, ...] = ()
    blocked_actions: tuple[str, ...] = ()
    requested_from: Link | None = None
    resolution_refs: tuple[Link, ...] = ()
    metadata: dict[str, Any] = {}


class ContextEvent(Record, frozen=True, kw_only=True):
    """Something that happened to a surface, selection, budget, injection, compaction, redaction or export."""

    event_id: str
    event_type: EventType
    source: str
    time: Timestamp
    subject: str | None = None
    context_id: str | None = None
    runtime_id: str | None = None
    session_id: str | None = None
    thread_id: str | None = None
    turn_id: str | None = None
    task_id: str | None = None
    run_id: str | None = None
    attempt_id: str | None = None
    step_id: str | None = None
    tool_call_id: str | None = None
    action_id: str | None = None
    evidence_id: str | None = None
    data: dict[str, Any] = {}
    policy_refs: tuple[Link, ...] = ()
    evidence_refs: tuple[Link, ...] = ()
    telemetry_refs: tuple[Link, ...] = ()
    metadata: dict[str, Any] = {}


# The model's name of each object, in the model's order.
OBJECTS: dict[str, type[Record]] = {
    "context_envelope": ContextEnvelope,
    "context_surface": ContextSurface,
    "context_item": ContextItem,
    "context_source_ref": ContextSourceRef,
    "context_selection": ContextSelection,
    "context_budget": ContextBudget,
    "context_window": ContextWindow,
    "context_assembly": ContextAssembly,
    "context_injection": ContextInjection,
    "context_compaction": ContextCompaction,
    "context_summary": ContextSummary,
    "missing_context": MissingContext,
    "context_event": ContextEvent,
}
