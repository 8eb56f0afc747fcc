import json
from typing import Any, TypeVar

import msgspec
import pytest

from daypack.types.context import OBJECTS, SCHEMA_VERSION, ContextEnvelope, ContextItem, ContextSurface, Record
from daypack.types.kinds import CONTEXT_KINDS, TARGETS, is_known

R = TypeVar("R", bound=Record)

NOW = "2026-11-15T21:10:20.123Z"

# Each object with its required fields and nothing else.
SMALLEST: dict[str, dict[str, Any]] = {
    "context_envelope": {"context_id": "ctx-1", "scope": "turn", "lifecycle": "injected", "created_at": NOW},
    "context_surface": {"surface_id": "surface-1", "scope": "turn", "created_at": NOW},
    "context_item": {
        "item_id": "item-1",
        "context_kind": "user_message",
        "content_mode": "inline",
        "visibility": ["model"],
    },
    "context_source_ref": {"source_id": "source-1", "uri": "messages.jsonl", "source_kind": "history"},
    "context_selection": {"selection_id": "selection-1", "surface_id": "surface-1", "created_at": NOW},
    "context_budget": {"budget_id": "budget-1", "target": "model", "created_at": NOW},
    "context_window": {"window_id": "window-1", "target": "model", "segments": [], "created_at": NOW},
    "context_assembly": {"assembly_id": "assembly-1", "target": "model", "ordered_blocks": [], "created_at": NOW},
    "context_injection": {
        "injection_id": "injection-1",
        "assembly_id": "assembly-1",
        "target": "model",
        "injection_point": "system_prompt",
        "created_at": NOW,
    },
    "context_compaction": {
        "compaction_id": "compaction-1",
        "scope": "session",
        "source_item_refs": [],
        "method": "structured_digest",
        "created_at": NOW,
    },
    "context_summary": {"summary_id": "summary-1", "content": "Nothing yet.", "source_item_refs": []},
    "missing_context": {
        "missing_id": "missing-1",
        "scope": "turn",
        "question": "Which file?",
        "severity": "high",
        "status": "open",
        "created_at": NOW,
    },
    "context_event": {
        "event_id": "event-1",
        "event_type": "context.surface.created",
        "source": "daypack",
        "time": NOW,
    },
}
REQUIRED = [(name, field) for name, document in SMALLEST.items() for field in document]


def read(name: str, document: dict[str, Any]) -> Record:
    return msgspec.json.decode(json.dumps(document), type=OBJECTS[name])


def written(record: Record) -> dict[str, Any]:
    return json.loads(msgspec.json.encode(record))


def kept(document: dict[str, Any], type_: type[R]) -> R:
    """Read a document, see that writing it loses nothing, and return it."""
    document = {"schema_version": "0.1.1", **document}
    record = msgspec.json.decode(json.dumps(document), type=type_)
    assert written(record) == document
    return record


@pytest.mark.requirement("S3-O0")
def test_there_are_exactly_thirteen_objects_in_the_order_of_the_model():
    assert list(OBJECTS) == [
        "context_envelope",
        "context_surface",
        "context_item",
        "context_source_ref",
        "context_selection",
        "context_budget",
        "context_window",
        "context_assembly",
        "context_injection",
        "context_compaction",
        "context_summary",
        "missing_context",
        "context_event",
    ]
    assert len(set(OBJECTS.values())) == 13


@pytest.mark.requirement("G19")
@pytest.mark.parametrize("name", OBJECTS)
def test_a_record_made_without_a_schema_version_is_written_with_ours(name: str):
    record = msgspec.convert(SMALLEST[name], type=OBJECTS[name])
    assert written(record) == {"schema_version": SCHEMA_VERSION, **SMALLEST[name]}


@pytest.mark.requirement("G19")
@pytest.mark.parametrize(("name", "field"), REQUIRED)
def test_a_document_without_a_required_field_is_refused_with_the_name_of_the_field(name: str, field: str):
    document = {key: value for key, value in SMALLEST[name].items() if key != field}
    with pytest.raises(msgspec.ValidationError, match=f"`{field}`"):
        read(name, document)


@pytest.mark.parametrize("name", OBJECTS)
def test_a_schema_version_of_another_writer_stays_as_it_is(name: str):
    document = {"schema_version": "0.0.7", **SMALLEST[name]}
    assert written(read(name, document)) == document


@pytest.mark.parametrize("name", OBJECTS)
def test_a_field_nobody_here_knows_does_not_stop_the_reading(name: str):
    assert read(name, {**SMALLEST[name], "weather": {"sky": "blue"}}) == read(name, SMALLEST[name])


@pytest.mark.parametrize("name", OBJECTS)
def test_a_record_cannot_be_changed(name: str):
    with pytest.raises(AttributeError):
        read(name, SMALLEST[name]).schema_version = "2"  # pyright: ignore[reportAttributeAccessIssue]


def test_a_value_an_open_vocabulary_does_not_list_is_read_as_it_stands():
    surface = kept({"surface_id": "s", "scope": "sprint", "created_at": NOW}, ContextSurface)
    assert surface.scope == "sprint"
    assert not is_known("scope", surface.scope)


@pytest.mark.requirement("S3-K0")
def test_an_item_takes_every_listed_kind_and_those_of_others():
    for kind in (*CONTEXT_KINDS, "weather"):
        assert kept({**SMALLEST["context_item"], "context_kind": kind}, ContextItem).context_kind == kind
    with pytest.raises(msgspec.ValidationError, match="context_kind"):
        read("context_item", {**SMALLEST["context_item"], "context_kind": 5})


@pytest.mark.requirement("S3-V0")
def test_an_item_is_visible_to_one_or_more_targets_the_eight_and_those_of_others():
    for visibility in (*([target] for target in TARGETS), list(TARGETS), ["everybody"]):
        item = kept({**SMALLEST["context_item"], "visibility": visibility}, ContextItem)
        assert list(item.visibility) == visibility
    for refused in ([], [5], "model"):
        with pytest.raises(msgspec.ValidationError, match="visibility"):
            read("context_item", {**SMALLEST["context_item"], "visibility": refused})


@pytest.mark.requirement("S3-O1")
@pytest.mark.parametrize("scope", ["turn", "task", "session", "tool_invocation", "review", "handoff"])
def test_an_envelope_is_one_snapshot_of_any_scope_that_carries_its_records_whole(scope: str):
    stamp = {"schema_version": "0.1.1"}
    whole = {
        "surfaces": [{**stamp, **SMALLEST["context_surface"], "items": [{**stamp, **SMALLEST["context_item"]}]}],
        "selections": [{**stamp, **SMALLEST["context_selection"]}],
        "budgets": [{**stamp, **SMALLEST["context_budget"]}],
        "windows": [{**stamp, **SMALLEST["context_window"]}],
        "assemblies": [{**stamp, **SMALLEST["context_assembly"]}],
        "injections": [{**stamp, **SMALLEST["context_injection"]}],
        "compactions": [{**stamp, **SMALLEST["context_compaction"]}],
        "summaries": [{**stamp, **SMALLEST["context_summary"]}],
        "missing_contexts": [{**stamp, **SMALLEST["missing_context"]}],
        "events": [{**stamp, **SMALLEST["context_event"]}],
    }
    envelope = kept({**SMALLEST["context_envelope"], "scope": scope, **whole}, ContextEnvelope)
    assert is_known("scope", envelope.scope)
    assert envelope.surfaces[0].items[0].item_id == "item-1"


def test_an_envelope_names_its_records_and_links_out_of_the_model_by_id_or_by_description():
    envelope = kept(
        {
            **SMALLEST["context_envelope"],
            "producer": {"id": "daypack", "version": "0.1.0"},
            "actor_refs": ["user:ada"],
            "runtime_refs": [{"kind": "turn", "id": "turn-42"}, "session:default"],
            "surface_refs": ["surface-1"],
            "item_refs": ["item-1", "item-2"],
            "selection_refs": ["selection-1"],
            "budget_ref": "budget-1",
            "window_refs": ["window-1"],
            "assembly_refs": ["assembly-1"],
            "injection_refs": ["injection-1"],
            "compaction_refs": ["compaction-1"],
            "missing_context_refs": ["missing-1"],
            "policy_refs": ["policy-1"],
            "artifact_refs": ["artifact-1"],
            "tool_refs": [{"tool_call_id": "call-1"}],
            "evidence_refs": ["events:ev-9"],
            "telemetry_refs": [{"trace_id": "4bf92f"}],
            "digests": {"item-1": "sha256:00"},
            "metadata": {"epoch": 3},
        },
        ContextEnvelope,
    )
    assert envelope.runtime_refs == ({"kind": "turn", "id": "turn-42"}, "session:default")
