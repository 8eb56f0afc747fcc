import json
from typing import Any, TypeVar

import msgspec
import pytest

from daypack.types.context import (
    ContextAssembly,
    ContextBudget,
    ContextCompaction,
    ContextEvent,
    ContextInjection,
    ContextItem,
    ContextSelection,
    ContextSourceRef,
    ContextSummary,
    ContextSurface,
    ContextWindow,
    MissingContext,
    Record,
)
from daypack.types.kinds import EVENT_TYPES, PLACES, is_known
from daypack.types.shapes import Selector

R = TypeVar("R", bound=Record)

NOW = "2026-11-15T21:10:20.123Z"
ITEM: dict[str, Any] = {
    "item_id": "item-1",
    "context_kind": "user_message",
    "content_mode": "inline",
    "visibility": ["model"],
}
SOURCE = {"source_id": "source-1", "uri": "messages.jsonl", "source_kind": "history"}
EVENT = {"event_id": "event-1", "event_type": "context.surface.created", "source": "daypack", "time": NOW}


def kept(document: dict[str, Any], type_: type[R]) -> R:
    """Read a document, see that writing it loses nothing, and return it."""
    document = {"schema_version": "0.1.1", **document}
    record = msgspec.json.decode(json.dumps(document), type=type_)
    assert json.loads(msgspec.json.encode(record)) == document
    return record


@pytest.mark.requirement("S3-O2")
def test_a_surface_holds_what_was_available_before_selection():
    surface = kept(
        {
            "surface_id": "surface-1",
            "scope": "turn",
            "surface_kind": "turn_surface",
            "created_at": NOW,
            "expires_at": NOW,
            "producer": "daypack",
            "available_source_refs": ["source-1", {"schema_version": "0.1.1", **SOURCE}],
            "available_item_refs": ["item-1"],
            "items": [{"schema_version": "0.1.1", **ITEM, "content": "Ship it."}],
            "capability_refs": ["search_history"],
            "policy_refs": ["policy-1"],
            "visibility": ["model", "reviewer"],
            "metadata": {"deadline_missed": True},
        },
        ContextSurface,
    )
    assert isinstance(surface.available_source_refs[1], ContextSourceRef)
    assert [item.text for item in surface.items] == ["Ship it."]


@pytest.mark.requirement("S3-O3")
def test_an_item_is_inline_or_by_reference():
    inline = kept({**ITEM, "content": "Ship it on 17 Aug."}, ContextItem)
    assert (inline.text, inline.content_ref) == ("Ship it on 17 Aug.", None)
    by_reference = kept(
        {
            "item_id": "item-2",
            "context_kind": "tool_result",
            "content_mode": "tool_result_ref",
            "visibility": ["tool"],
            "title": "Test log",
            "content_ref": "swap:sha256-def",
            "mime_type": "text/plain",
            "language": "en",
            "source_refs": ["events:ev-991"],
            "token_estimate": 45000,
            "byte_size": 180000,
            "freshness": "current",
            "trust_level": "tool",
            "sensitivity": "internal",
            "redaction_state": "none",
            "policy_refs": ["policy-1"],
            "priority": 0.5,
            "digest": "sha256:00",
            "created_at": NOW,
            "metadata": {"exit_code": 1},
        },
        ContextItem,
    )
    assert (by_reference.text, by_reference.content_ref) == ("", "swap:sha256-def")


def test_structured_content_of_another_writer_is_kept_and_has_no_text():
    for content in ({"rows": [1, 2]}, [{"kind": "text", "text": "hello"}]):
        assert kept({**ITEM, "content": content}, ContextItem).text == ""


@pytest.mark.requirement("S3-O4")
def test_a_source_ref_tells_origin_selector_digest_authority_and_native_ids():
    source = kept(
        {
            "source_id": "source-1",
            "uri": "file:///project/DESIGN.md",
            "source_kind": "file",
            "selector": {"type": "line_range", "start": 10, "end": 24},
            "digest": "sha256:00",
            "authority": "workspace",
            "provenance_refs": ["messages:12-18"],
            "external_mappings": [{"protocol": "mcp", "resource_uri": "file:///project/DESIGN.md"}],
            "license": "Apache-2.0",
            "retrieved_at": NOW,
            "modified_at": NOW,
            "metadata": {"encoding": "utf-8"},
        },
        ContextSourceRef,
    )
    assert source.selector == Selector(type="line_range", start=10, end=24)


@pytest.mark.requirement("S3-O5")
def test_a_selection_tells_candidates_selected_omitted_ranking_and_rationale():
    selection = kept(
        {
            "selection_id": "selection-1",
            "surface_id": "surface-1",
            "created_at": NOW,
            "target": "model",
            "query": "When do we ship?",
            "intent": "answer",
            "candidate_item_refs": ["a", "b", "c", "messages:1-120", "d"],
            "selected_item_refs": ["a", "b", "c"],
            "omitted_item_refs": [
                {
                    "item_ref": "messages:1-120",
                    "reason": "superseded_by_summary",
                    "token_estimate": 18000,
                    "swap_ref": "swap:sha256-abc",
                },
                {"item_ref": "d", "reason": "budget_limit", "high_impact": True, "note": "the newest log"},
            ],
            "ranking_signals": {"a": {"relevance": 0.92, "user_pin": True}, "b": {"recency": 0.4}},
            "selection_policy": "recent_first",
            "budget_ref": "budget-1",
            "rationale": "Pinned first, then by relevance.",
            "actor_ref": "daypack",
            "model_ref": "none",
            "policy_refs": ["policy-1"],
            "metadata": {"round": 7},
        },
        ContextSelection,
    )
    assert set(selection.candidate_item_refs) == {
        *selection.selected_item_refs,
        *(omission.item_ref for omission in selection.omitted_item_refs),
    }
    assert selection.ranking_signals["a"]["relevance"] == 0.92


@pytest.mark.requirement("S3-O6")
def test_a_budget_limits_tokens_bytes_items_time_and_visibility_and_records_their_use():
    document = {
        "budget_id": "budget-1",
        "target": "model",
        "created_at": NOW,
        "max_tokens": 32000,
        "max_bytes": 128000,
        "max_items": 50,
        "max_ms": 40,
        "visibility": ["model"],
        "reserved_tokens": 4096,
        "actual_tokens": 10900,
        "actual_bytes": 43600,
        "actual_items": 5,
        "actual_ms": 12,
        "token_method": "o200k_base",
        "overflow_strategy": "summarize_oldest",
        "truncation_records": [
            {"item_ref": "item-9", "strategy": "truncate_tail", "tokens_before": 9, "tokens_after": 4}
        ],
        "window_ref": "window-1",
        "metadata": {"source": "context/budget"},
    }
    budget = kept(document, ContextBudget)
    assert (budget.max_tokens, budget.max_bytes, budget.max_items, budget.max_ms) == (32000, 128000, 50, 40)
    for limit in ("max_tokens", "max_bytes", "max_items", "max_ms"):
        with pytest.raises(msgspec.ValidationError, match=limit):
            msgspec.convert({**document, limit: -1}, type=ContextBudget)


@pytest.mark.requirement("S3-O7")
def test_a_window_has_ordered_segments_and_reserved_space():
    segment = {
        "segment_id": "prefix",
        "role": "prefix",
        "target": "model",
        "reserved_tokens": 4000,
        "actual_tokens": 3900,
        "item_refs": ["item-1", "item-2"],
        "order": 1,
        "truncation_records": [{"note": "none"}],
    }
    window = kept(
        {
            "window_id": "window-1",
            "target": "model",
            "created_at": NOW,
            "segments": [segment, {"segment_id": "tail"}, {"segment_id": "volatile"}],
            "max_tokens": 32000,
            "reserved_tokens": 4096,
            "actual_tokens": 10900,
            "budget_ref": "budget-1",
            "metadata": {"epoch": 3},
        },
        ContextWindow,
    )
    assert [segment.segment_id for segment in window.segments] == ["prefix", "tail", "volatile"]
    assert window.reserved_tokens == 4096


@pytest.mark.requirement("S3-O8")
def test_an_assembly_has_ordered_blocks_for_one_target():
    block = {
        "block_id": "b-2",
        "item_refs": ["item-2", "item-1"],
        "content_ref": "blob:00",
        "wrapper": "fence",
        "position": 0,
        "visibility": ["model"],
        "token_estimate": 120,
        "hash": "sha256:00",
        "redaction_state": "masked",
    }
    document = {
        "assembly_id": "assembly-1",
        "target": "model",
        "created_at": NOW,
        "ordered_blocks": [block, {"block_id": "b-1"}],
        "wrapping_policy": "digest_fence",
        "separator_policy": {"between": "blank line"},
        "visibility": ["model"],
        "budget_ref": "budget-1",
        "window_ref": "window-1",
        "source_item_refs": ["item-1", "item-2"],
        "redaction_state": "masked",
        "policy_refs": ["policy-1"],
        "hash": "sha256:00",
        "metadata": {"renderer": "1"},
    }
    assembly = kept(document, ContextAssembly)
    assert [block.block_id for block in assembly.ordered_blocks] == ["b-2", "b-1"]
    assert assembly.ordered_blocks[0].item_refs == ("item-2", "item-1")
    with pytest.raises(msgspec.ValidationError, match="target"):
        msgspec.convert({**document, "target": ["model", "ui"]}, type=ContextAssembly)


@pytest.mark.requirement("S3-O9")
def test_an_injection_tells_at_which_place_an_assembly_became_visible():
    for place in PLACES:
        injection = kept(
            {
                "injection_id": "injection-1",
                "assembly_id": "assembly-1",
                "target": "model",
                "created_at": NOW,
                "injection_point": place,
                "native_id": "msg_01",
                "visibility": ["model"],
                "final_ref": "messages:12",
                "hash": "sha256:00",
                "policy_refs": ["policy-1"],
                "metadata": {"attempt": 2},
            },
            ContextInjection,
        )
        assert (injection.assembly_id, injection.injection_point) == ("assembly-1", place)


@pytest.mark.requirement("S3-O10")
def test_a_compaction_tells_what_was_replaced_by_which_shorter_summary():
    compaction = kept(
        {
            "compaction_id": "compaction-1",
            "scope": "session",
            "method": "structured_digest",
            "created_at": NOW,
            "source_item_refs": ["messages:1-120"],
            "summary_ref": "summary-1",
            "trigger": "token_pressure",
            "coverage": {
                "items_covered": 120,
                "estimated_tokens_before": 18000,
                "estimated_tokens_after": 640,
                "source": "messages:1-120",
            },
            "loss_notes": ["A bullet with a number that is not in the source was dropped."],
            "validation": {"status": "grounded"},
            "replacement_policy": "window_only",
            "policy_refs": ["policy-1"],
            "metadata": {"compactor": "modelfree"},
        },
        ContextCompaction,
    )
    assert compaction.source_item_refs == ("messages:1-120",)
    assert is_known("replacement_policy", compaction.replacement_policy or "")


@pytest.mark.requirement("S3-O11")
def test_a_summary_has_content_coverage_loss_notes_and_a_refresh_policy():
    summary = kept(
        {
            "summary_id": "summary-1",
            "summary_kind": "task",
            "content": "The launch moved to 17 Aug 2025.",
            "source_item_refs": ["messages:1-120"],
            "coverage": {"items_covered": 120},
            "loss_notes": ["Greetings were left out."],
            "open_questions": ["Who updates the tracker?"],
            "freshness": {"as_of": NOW},
            "validation": "grounded",
            "refresh_policy": "next_compaction",
            "created_at": NOW,
            "metadata": {"language": "en"},
        },
        ContextSummary,
    )
    assert summary.coverage is not None
    assert summary.coverage.items_covered == 120


@pytest.mark.requirement("S3-O12")
def test_missing_context_tells_the_question_the_blockers_and_the_requested_sources():
    missing = kept(
        {
            "missing_id": "missing-1",
            "scope": "turn",
            "question": "Which file?",
            "severity": "high",
            "status": "open",
            "created_at": NOW,
            "needed_for": "checking the date",
            "candidate_sources": [{"kind": "file", "hint": "the tracker"}, "file:tracker.md"],
            "blocked_actions": ["answer"],
            "requested_from": "user",
            "resolution_refs": ["messages:14"],
            "metadata": {"asked": 1},
        },
        MissingContext,
    )
    assert missing.blocked_actions == ("answer",)
    assert len(missing.candidate_sources) == 2


@pytest.mark.requirement("S3-O13")
@pytest.mark.parametrize(
    "subject", ["surface", "selection", "budget", "injection", "compaction", "redaction", "exported"]
)
def test_there_are_events_for_every_stage_that_the_model_names(subject: str):
    types = [type_ for type_ in EVENT_TYPES if type_.split(".")[1] == subject]
    assert types
    for type_ in types:
        assert kept({**EVENT, "event_type": type_}, ContextEvent).event_type == type_


def test_an_event_keeps_the_ids_of_the_runtime_it_happened_in():
    names = (
        "runtime",
        "session",
        "thread",
        "turn",
        "task",
        "run",
        "attempt",
        "step",
        "tool_call",
        "action",
        "evidence",
    )
    ids = {f"{name}_id": f"{name}-1" for name in names}
    rest = {
        "subject": "surface-1",
        "context_id": "ctx-1",
        "data": {"items": 5},
        "policy_refs": ["policy-1"],
        "evidence_refs": ["events:ev-9"],
        "telemetry_refs": ["trace-1"],
        "metadata": {"host": "local"},
    }
    assert kept({**EVENT, **ids, **rest}, ContextEvent).attempt_id == "attempt-1"
