"""The vocabularies: closed ones as Literals, open ones as strings with a list of known members.

A closed vocabulary is ours: another value is an error. An open one comes from a draft others may extend:
another value is legal, `is_known` returns False for it, and the caller may warn.
"""

from typing import Literal, get_args

from daypack.errors import BadInput

# Closed vocabularies. Documents of other runtimes may have further context kinds and targets, see `fields`.

Role = Literal["system", "user", "assistant", "tool"]
ROLES: tuple[Role, ...] = ("system", "user", "assistant", "tool")

Tier = Literal["core", "working", "ephemeral"]
TIERS: tuple[Tier, ...] = get_args(Tier)

Target = Literal["model", "tool", "runtime", "ui", "user", "reviewer", "peer_agent", "evidence_export"]
TARGETS: tuple[Target, ...] = get_args(Target)

ContextKind = Literal[
    "user_message",
    "system_prompt",
    "developer_instruction",
    "session_history",
    "thread_summary",
    "working_memory",
    "durable_memory",
    "knowledge_pack_item",
    "document_excerpt",
    "file_excerpt",
    "artifact_ref",
    "tool_result",
    "browser_state",
    "runtime_state",
    "team_memory",
    "policy_note",
    "external_resource",
    "manual_note",
    "computed_summary",
    "peer_agent_message",
    "retrieval_result",
    "custom",
]
CONTEXT_KINDS: tuple[ContextKind, ...] = get_args(ContextKind)

# Why a candidate is not in a pack.
OmissionReason = Literal[
    "budget_limit",
    "duplicate",
    "superseded_by_summary",
    "stale",
    "not_visible_to_target",
    "too_large",
    "policy_blocked",
    "low_relevance",
    "permission_missing",
    "unsupported_media",
    "sensitive",
    "custom",
]
OMISSION_REASONS: tuple[OmissionReason, ...] = get_args(OmissionReason)

# Why an epoch begins, and the prompt cache has to be filled again.
EpochReason = Literal[
    "first",  # the first turn for its target
    "refresh",  # the caller asked for it
    "compaction",  # a compaction was made or undone
    "overflow",  # the window is full
    "withdrawn",  # an item of the prefix may no longer be shown
    "damaged",  # the epoch's record or a message of its tail cannot be read
    "erased",  # something that the last turn showed was erased
    "memory_bound",  # a memory was bound or unbound, and the prefix has another document
    "budget_changed",
    "tokenizer_changed",
    "redaction_changed",
    "renderer_changed",
]
EPOCH_REASONS: tuple[EpochReason, ...] = get_args(EpochReason)

SessionState = Literal["active", "idle", "done", "error", "cancelled"]
SESSION_STATES: tuple[SessionState, ...] = get_args(SessionState)

PackKind = Literal[
    "system",
    "context_doc",
    "summary",
    "facts",
    "decisions",
    "todo",
    "errors",
    "refs",
    "memory_document",
    "memory_entries",
    "core_blocks",
    "working_blocks",
    "ephemeral_blocks",
    "recent_messages",
    "child_result",
    "child_refs",
    "runtime_block",
    "tools",
    "custom",
]
PACK_KINDS: tuple[PackKind, ...] = get_args(PackKind)

# The context kind of each pack kind; three depend on more than the kind, see `context_kind_of`.
PACK_CONTEXT_KINDS: dict[PackKind, ContextKind] = {
    "system": "developer_instruction",
    "context_doc": "thread_summary",
    "summary": "thread_summary",
    "facts": "computed_summary",
    "decisions": "computed_summary",
    "todo": "computed_summary",
    "errors": "computed_summary",
    "refs": "artifact_ref",
    "memory_document": "durable_memory",
    "memory_entries": "retrieval_result",
    "core_blocks": "durable_memory",
    "working_blocks": "working_memory",
    "ephemeral_blocks": "working_memory",
    "recent_messages": "session_history",
    "child_result": "peer_agent_message",
    "child_refs": "artifact_ref",
    "runtime_block": "runtime_state",
    "tools": "runtime_state",
    "custom": "custom",
}

# The mapping above is many to one; this metadata of the surface item distinguishes the pack kinds.
PACK_METADATA: dict[PackKind, dict[str, str]] = {
    "facts": {"type": "fact"},
    "decisions": {"type": "decision"},
    "todo": {"type": "todo"},
    "errors": {"type": "error"},
    "core_blocks": {"tier": "core"},
    "working_blocks": {"tier": "working"},
    "ephemeral_blocks": {"tier": "ephemeral"},
}

_REF_CONTEXT_KINDS: dict[str, ContextKind] = {"file": "file_excerpt", "tool_output": "tool_result"}


def context_kind_of(kind: PackKind, *, source: str = "", ref_kind: str = "", newest: bool = False) -> ContextKind:
    """Return the context kind of a pack item.

    `source` decides for a system item, `ref_kind` for a ref, `newest` (the newest user line) for a message.
    """
    if kind == "system" and source == "context/pinned/system.md":
        return "system_prompt"
    if kind == "refs":
        return _REF_CONTEXT_KINDS.get(ref_kind, "artifact_ref")
    if kind == "recent_messages" and newest:
        return "user_message"
    return PACK_CONTEXT_KINDS[kind]


# Open vocabularies.

SCOPES = ("turn", "task", "session", "tool_invocation", "review", "handoff", "custom")
LIFECYCLES = (
    "draft",
    "available",
    "selected",
    "assembled",
    "injected",
    "compacted",
    "redacted",
    "expired",
    "archived",
)
CONTENT_MODES = (
    "inline",
    "ref",
    "summary",
    "embedded_resource",
    "resource_link",
    "artifact_ref",
    "tool_result_ref",
    "opaque",
)
SURFACE_KINDS = (
    "turn_surface",
    "task_surface",
    "session_surface",
    "tool_surface",
    "review_surface",
    "handoff_surface",
    "custom",
)
SELECTOR_TYPES = (
    "text_quote",
    "text_position",
    "byte_range",
    "line_range",
    "json_pointer",
    "css_selector",
    "xpath",
    "page_region",
    "media_time_range",
    "artifact_part",
    "message_part",
    "custom",
)
RANKING_SIGNALS = (
    "relevance",
    "recency",
    "authority",
    "user_pin",
    "policy_allow",
    "freshness",
    "coverage",
    "dedupe_score",
    "token_cost",
    "sensitivity",
    "tool_visibility",
    "runtime_need",
)
OVERFLOW_STRATEGIES = (
    "reject",
    "truncate_tail",
    "truncate_middle",
    "summarize_oldest",
    "summarize_low_priority",
    "defer_to_retrieval",
    "ask_for_choice",
    "policy_block",
    "custom",
)
# The seven places of the model; the draft it is based on has five more.
PLACES = (
    "system_prompt",
    "message_history",
    "tool_argument",
    "tool_visible_resource",
    "ui_panel",
    "runtime_metadata",
    "peer_agent_message",
)
INJECTION_POINTS = (
    *PLACES,
    "developer_prompt",
    "user_message_appendix",
    "review_export",
    "artifact_input",
    "custom",
)
COMPACTION_METHODS = (
    "extractive_summary",
    "abstractive_summary",
    "structured_digest",
    "rolling_summary",
    "semantic_memory_update",
    "human_curated_summary",
    "provider_context_editing",
    "custom",
)
COMPACTION_TRIGGERS = (
    "manual",
    "token_pressure",
    "session_length",
    "task_boundary",
    "handoff",
    "retention",
    "privacy",
    "provider_context_editing",
    "custom",
)
# Only the window changes: the bytes of history stay.
REPLACEMENT_POLICIES = ("window_only",)
SEVERITIES = ("info", "low", "medium", "high", "blocking")
MISSING_STATUSES = ("open", "requested", "waiting", "resolved", "declined", "blocked", "expired")
REDACTION_STATES = ("none", "masked", "removed", "summarized", "encrypted_ref", "policy_blocked", "unknown")
# Those in which the content itself is withheld.
WITHHELD_STATES = ("removed", "encrypted_ref", "policy_blocked")
EVENT_TYPES = (
    "context.surface.created",
    "context.surface.updated",
    "context.item.added",
    "context.item.updated",
    "context.item.removed",
    "context.selection.started",
    "context.selection.completed",
    "context.budget.applied",
    "context.assembly.created",
    "context.injection.applied",
    "context.compaction.started",
    "context.compaction.completed",
    "context.summary.created",
    "context.missing.detected",
    "context.missing.requested",
    "context.missing.resolved",
    "context.redaction.applied",
    "context.exported",
)
REF_KINDS = ("file", "artifact", "tool_output", "swap", "child_result")
SWAP_KINDS = ("message_range", "tool_output", "file")

VOCABULARIES: dict[str, tuple[str, ...]] = {
    "scope": SCOPES,
    "lifecycle": LIFECYCLES,
    "content_mode": CONTENT_MODES,
    "surface_kind": SURFACE_KINDS,
    "selector_type": SELECTOR_TYPES,
    "ranking_signal": RANKING_SIGNALS,
    "omission_reason": OMISSION_REASONS,
    "overflow_strategy": OVERFLOW_STRATEGIES,
    "injection_point": INJECTION_POINTS,
    "compaction_method": COMPACTION_METHODS,
    "compaction_trigger": COMPACTION_TRIGGERS,
    "replacement_policy": REPLACEMENT_POLICIES,
    "severity": SEVERITIES,
    "missing_status": MISSING_STATUSES,
    "redaction_state": REDACTION_STATES,
    "event_type": EVENT_TYPES,
    "ref_kind": REF_KINDS,
    "swap_kind": SWAP_KINDS,
}


def is_known(vocabulary: str, value: str) -> bool:
    """Return True if an open vocabulary lists `value`; an unlisted value deserves a warning, never an error."""
    return value in VOCABULARIES[vocabulary]


def known_kind(name: str) -> ContextKind:
    """Return the context kind of that name; a kind of another runtime counts as custom."""
    for kind in CONTEXT_KINDS:
        if kind == name:
            return kind
    return "custom"


def check_target(name: str) -> Target:
    """Return the target of that name; another name is refused."""
    for target in TARGETS:
        if target == name:
            return target
    hint = f"use one of {', '.join(TARGETS)}"
    raise BadInput(f"{name!r} is not a target", operation="prepare", place="target", hint=hint)
