"""Envelope documents for the tests of the rules, and a second way to compute their digests."""

import hashlib
import json
from typing import Any, cast

from daypack.turn.conformance.objects import LISTS


def simple_digest(value: Any) -> str:
    """The digest of a value whose keys are ASCII and whose numbers are of everyday size, by other code than ours."""
    text = json.dumps(_whole(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _whole(inner) for key, inner in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_whole(inner) for inner in cast("list[Any]", value)]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def seal(document: dict[str, Any]) -> dict[str, Any]:
    """Give a document the digests of what is in it now."""
    digests: dict[str, str] = {}
    for name, (_, field) in LISTS.items():
        for record in document.get(name, []):
            held: list[dict[str, Any]] = record.get("items", []) if name == "surfaces" else []
            for item in held:
                digests[item["item_id"]] = simple_digest(item)
            if field in record:
                digests[record[field]] = simple_digest(record)
    document |= {"digest_form": "rfc8785", "digests": digests}
    return seal_envelope(document)


def seal_envelope(document: dict[str, Any]) -> dict[str, Any]:
    """Give a document the digest of itself as it is now, with the digests of its objects as they are."""
    context_id = document["context_id"]
    document["digests"].pop(context_id, None)
    document["digests"][context_id] = simple_digest(document)
    return document


def digest_of_text(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def good() -> dict[str, Any]:
    """A document to which every rule applies, and which breaks none."""
    at = iter(range(10, 60))

    def record(**fields: Any) -> dict[str, Any]:
        return {"schema_version": "0.1.1", "created_at": f"2027-01-01T00:00:{next(at)}Z", **fields}

    def item(name: str, **fields: Any) -> dict[str, Any]:
        stated = {"context_kind": "manual_note", "content_mode": "inline", "visibility": ["model", "reviewer"]}
        return {"schema_version": "0.1.1", "item_id": name, **stated, **fields}

    items = [
        item("plain", content="Tides turn at noon.", digest=digest_of_text("Tides turn at noon."), priority=0.5),
        item("masked", content="The key is [redacted].", redaction_state="masked"),
        item("file", content_mode="ref", content_ref="file://chart.pdf"),
        item("withheld", redaction_state="removed"),
    ]
    surface = record(surface_id="c/surface", scope="turn", visibility=["model", "reviewer"], items=items)
    surface["available_item_refs"] = [*(one["item_id"] for one in items), "old-1", "old-2"]
    shown = ["plain", "masked", "file"]
    selection = record(
        selection_id="c/selection",
        surface_id="c/surface",
        target="model",
        budget_ref="c/budget",
        candidate_item_refs=surface["available_item_refs"],
        selected_item_refs=shown,
        omitted_item_refs=[
            {"item_ref": "withheld", "reason": "policy_blocked"},
            {"item_ref": "old-1", "reason": "superseded_by_summary"},
            {"item_ref": "old-2", "reason": "superseded_by_summary"},
        ],
        ranking_signals={"plain": {"relevance": 0.75}},
    )
    limits = {"max_tokens": 100, "reserved_tokens": 20, "actual_tokens": 70}
    budget = record(budget_id="c/budget", target="model", window_ref="c/window", actual_items=3, max_items=9, **limits)
    segments = [
        {"segment_id": "head", "actual_tokens": 30, "item_refs": ["plain"], "order": 1},
        {"segment_id": "tail", "actual_tokens": 40, "item_refs": ["masked", "file"], "order": 2},
        {"segment_id": "answer", "reserved_tokens": 20, "order": 3},
    ]
    window = record(window_id="c/window", target="model", budget_ref="c/budget", segments=segments, **limits)
    blocks = [
        {"block_id": "b1", "position": 1, "item_refs": ["plain"]},
        {"block_id": "b2", "position": 2, "item_refs": ["masked", "file"], "redaction_state": "masked"},
    ]
    assembly = record(
        assembly_id="c/assembly",
        target="model",
        budget_ref="c/budget",
        window_ref="c/window",
        ordered_blocks=blocks,
        source_item_refs=shown,
        redaction_state="masked",
    )
    injection = record(
        injection_id="c/injection", assembly_id="c/assembly", target="model", injection_point="message_history"
    )
    sources = {"source_item_refs": ["old-1", "old-2"]}
    compaction = record(
        compaction_id="c/compaction", scope="turn", method="extractive_summary", summary_ref="c/summary", **sources
    )
    summary = record(summary_id="c/summary", content="It ebbed.", **sources)
    missing = record(missing_id="c/q", scope="turn", question="Who pays?", severity="low", status="open")
    asked = record(missing_id="c/r", scope="turn", question="When?", severity="low", status="requested")
    answered = record(missing_id="c/s", scope="turn", question="Why?", severity="low", status="resolved")
    asked["requested_from"], answered["resolution_refs"] = "Anna", ["messages:4"]
    happened = [
        ("surface.created", "c/surface"),
        ("selection.started", "c/selection"),
        ("selection.completed", "c/selection"),
        ("missing.detected", "c/r"),
        ("missing.requested", "c/r"),
        ("budget.applied", "c/budget"),
        ("compaction.completed", "c/compaction"),
        ("redaction.applied", "masked"),
        ("assembly.created", "c/assembly"),
        ("injection.applied", "c/injection"),
        ("exported", "c"),
    ]
    events: list[dict[str, Any]] = [
        {
            "schema_version": "0.1.1",
            "event_id": f"c/event-{number}",
            "event_type": f"context.{kind}",
            "source": "tide",
            "time": f"2027-01-01T00:01:{number:02}Z",
            "subject": subject,
            "context_id": "c",
        }
        for number, (kind, subject) in enumerate(happened)
    ]
    events[0]["data"], events[5]["data"] = {"items": len(items)}, {"tokens": 70.0}
    return seal(
        {
            "schema_version": "0.1.1",
            "context_id": "c",
            "scope": "turn",
            "lifecycle": "injected",
            "created_at": "2027-01-01T00:01:30Z",
            "surface_refs": ["c/surface"],
            "item_refs": [one["item_id"] for one in items],
            "selection_refs": ["c/selection"],
            "budget_ref": "c/budget",
            "window_refs": ["c/window"],
            "assembly_refs": ["c/assembly"],
            "injection_refs": ["c/injection"],
            "compaction_refs": ["c/compaction"],
            "missing_context_refs": ["c/q", "c/r", "c/s"],
            "surfaces": [surface],
            "selections": [selection],
            "budgets": [budget],
            "windows": [window],
            "assemblies": [assembly],
            "injections": [injection],
            "compactions": [compaction],
            "summaries": [summary],
            "missing_contexts": [missing, asked, answered],
            "events": events,
        }
    )
