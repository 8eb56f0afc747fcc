from collections.abc import Mapping
from typing import Any

import pytest

from daypack.types import fields, kinds
from daypack.types.kinds import PackKind, context_kind_of, is_known


@pytest.mark.requirement("S3-K0", "S3-K1", "S3-K2", "S3-K3", "S3-K4", "S3-K5", "S3-K6", "S3-K7", "S3-K8", "S3-K9")
@pytest.mark.requirement("S3-K10", "S3-K11", "S3-K12", "S3-K13", "S3-K14", "S3-K15", "S3-K16", "S3-K17", "S3-K18")
@pytest.mark.requirement("S3-K19", "S3-K20", "S3-K21", "S3-K22")
def test_there_are_the_twenty_two_context_kinds_of_the_model_in_its_order():
    assert kinds.CONTEXT_KINDS == (
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
    )


@pytest.mark.requirement("S3-V1", "S3-V2", "S3-V3", "S3-V4", "S3-V5", "S3-V6", "S3-V7", "S3-V8")
def test_there_are_the_eight_targets_of_the_model_in_its_order():
    assert kinds.TARGETS == ("model", "tool", "runtime", "ui", "user", "reviewer", "peer_agent", "evidence_export")


@pytest.mark.requirement("S3-O9.1", "S3-O9.2", "S3-O9.3", "S3-O9.4", "S3-O9.5", "S3-O9.6", "S3-O9.7")
def test_the_first_injection_points_are_the_seven_places_of_the_model():
    assert kinds.PLACES == (
        "system_prompt",
        "message_history",
        "tool_argument",
        "tool_visible_resource",
        "ui_panel",
        "runtime_metadata",
        "peer_agent_message",
    )
    assert kinds.INJECTION_POINTS[:7] == kinds.PLACES


def test_the_small_closed_vocabularies_list_what_their_documents_list():
    assert kinds.ROLES == ("system", "user", "assistant", "tool")
    assert kinds.TIERS == ("core", "working", "ephemeral")
    assert kinds.SESSION_STATES == ("active", "idle", "done", "error", "cancelled")


@pytest.mark.parametrize(
    ("vocabulary", "size"),
    [
        ("scope", 7),
        ("lifecycle", 9),
        ("content_mode", 8),
        ("surface_kind", 7),
        ("selector_type", 12),
        ("ranking_signal", 12),
        ("omission_reason", 12),
        ("overflow_strategy", 9),
        ("injection_point", 12),
        ("compaction_method", 8),
        ("compaction_trigger", 9),
        ("severity", 5),
        ("missing_status", 7),
        ("redaction_state", 7),
        ("event_type", 18),
    ],
)
def test_an_open_vocabulary_lists_as_many_members_as_the_draft_each_once(vocabulary: str, size: int):
    assert len(set(kinds.VOCABULARIES[vocabulary])) == len(kinds.VOCABULARIES[vocabulary]) == size


@pytest.mark.parametrize("vocabulary", kinds.VOCABULARIES)
def test_a_listed_value_is_known_and_another_one_is_not(vocabulary: str):
    assert all(is_known(vocabulary, value) for value in kinds.VOCABULARIES[vocabulary])
    assert not is_known(vocabulary, "something of somebody else")


@pytest.mark.parametrize("vocabulary", kinds.VOCABULARIES)
def test_each_open_vocabulary_is_a_string_type_with_its_members_as_examples(vocabulary: str):
    field: Any = getattr(fields, vocabulary.title().replace("_", ""))
    assert field.__origin__ is str
    assert tuple(field.__metadata__[0].examples) == kinds.VOCABULARIES[vocabulary]


def test_the_kinds_of_the_example_pack_are_pack_kinds():
    assert {"system", "summary", "facts", "recent_messages", "child_result"} <= set(kinds.PACK_KINDS)


def test_every_pack_kind_is_of_one_context_kind():
    assert tuple(kinds.PACK_CONTEXT_KINDS) == kinds.PACK_KINDS
    assert set(kinds.PACK_CONTEXT_KINDS.values()) <= set(kinds.CONTEXT_KINDS)


@pytest.mark.parametrize(
    ("kind", "details", "expected"),
    [
        ("system", {"source": "context/pinned/system.md"}, "system_prompt"),
        ("system", {"source": "context/pinned/AGENTS.md"}, "developer_instruction"),
        ("summary", {}, "thread_summary"),
        ("facts", {}, "computed_summary"),
        ("decisions", {}, "computed_summary"),
        ("todo", {}, "computed_summary"),
        ("refs", {"ref_kind": "artifact"}, "artifact_ref"),
        ("refs", {"ref_kind": "file"}, "file_excerpt"),
        ("refs", {"ref_kind": "tool_output"}, "tool_result"),
        ("refs", {"ref_kind": "swap"}, "artifact_ref"),
        ("recent_messages", {}, "session_history"),
        ("recent_messages", {"newest": True}, "user_message"),
        ("child_result", {}, "peer_agent_message"),
        ("child_refs", {}, "artifact_ref"),
        ("memory_document", {}, "durable_memory"),
        ("memory_entries", {}, "retrieval_result"),
        ("core_blocks", {}, "durable_memory"),
        ("working_blocks", {}, "working_memory"),
        ("ephemeral_blocks", {}, "working_memory"),
        ("runtime_block", {}, "runtime_state"),
    ],
)
def test_a_pack_item_is_on_the_surface_what_the_common_vocabulary_says(
    kind: PackKind, details: Mapping[str, Any], expected: str
):
    assert context_kind_of(kind, **details) == expected


def test_pack_kinds_that_share_a_context_kind_by_type_or_tier_differ_in_metadata():
    assert kinds.PACK_METADATA == {
        "facts": {"type": "fact"},
        "decisions": {"type": "decision"},
        "todo": {"type": "todo"},
        "errors": {"type": "error"},
        "core_blocks": {"tier": "core"},
        "working_blocks": {"tier": "working"},
        "ephemeral_blocks": {"tier": "ephemeral"},
    }
