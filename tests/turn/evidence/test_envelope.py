"""A turn as a portable document: valid, complete, each thing once, and what is named is there."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from turn.conformance.documents import simple_digest
from turn.scenes import MARKER, SECRET, FakeMemory, converse, item, outputs, reasons, stage

from daypack.session import Session
from daypack.turn.conformance.objects import LISTS
from daypack.turn.conformance.report import conform
from daypack.turn.items import AROUND_QUOTED
from daypack.turn.pack.additions import added_items
from daypack.turn.turn import Turn
from daypack.types.context import SCHEMA_VERSION, ContextEnvelope
from daypack.types.digest import digest_text
from daypack.types.kinds import EVENT_TYPES, TARGETS
from daypack.types.memory import Remembered
from daypack.types.records import Pack

SCHEMAS = Path(__file__).parents[3] / "schemas"


def valid(name: str, data: bytes) -> Any:
    """Check a document against the published schema and return it."""
    document = json.loads(data)
    schema = json.loads((SCHEMAS / f"{name}.json").read_text())
    kind: Any = jsonschema.Draft202012Validator
    kind(schema, format_checker=kind.FORMAT_CHECKER).validate(document)
    return document


def document(turn: Turn) -> Any:
    return valid("context_envelope", msgspec.json.encode(turn.envelope))


def furnished(home: str) -> Session:
    session = stage(home)
    session.memory = FakeMemory("Anna owns the boat.", [Remembered("e1", "Bought in May.", 0.5)])
    session.pin("system", "You are a pilot.")
    session.put_child("rev-123", result="The reef is charted.")
    session.add_question("Who pays?", requested_from="user:anna")
    converse(session, 12)
    session.append("user", "What of the glacier 1?")
    session.append("assistant", "", tool_calls=[{"id": "c1", "name": "look", "arguments": "{}"}])
    session.append("tool", "Ice.", tool_call_id="c1")
    return session


@pytest.mark.requirement("T10", "S3-O5", "G9")
def test_five_candidates_and_room_for_three(home: str) -> None:
    session = stage(home)
    session.append("user", "Hi")
    items = [
        item(content=f"word{number} " * 60, item_id=f"i{number}", priority=0.9 - number / 10) for number in range(5)
    ]
    per_item = session.prepare(items=items, dry_run=True).parts.volatile[0].tokens
    turn = session.prepare(budget=int(3.7 * per_item / 0.75), items=items)
    assert [one.id for one in turn.parts.volatile if one.id.startswith("item:")] == ["item:i0", "item:i1", "item:i2"]
    assert reasons(turn) == {"item:i3": "budget_limit", "item:i4": "budget_limit"}
    selection = document(turn)["selections"][0]
    assert [one["item_ref"] for one in selection["omitted_item_refs"]] == ["item:i3", "item:i4"]
    assert {one["reason"] for one in selection["omitted_item_refs"]} == {"budget_limit"}
    assert all(one["token_estimate"] > 60 for one in selection["omitted_item_refs"])
    assert {f"item:i{number}" for number in range(5)} <= set(selection["candidate_item_refs"])
    assert selection["rationale"].startswith("4 of 6 candidates")


@pytest.mark.requirement("S3-O1", "S3-L1", "G19")
@pytest.mark.parametrize("target", TARGETS)
def test_the_envelope_of_every_target_is_valid_and_every_record_says_its_version(home: str, target: str) -> None:
    turn = furnished(home).prepare(target=target, budget=1200, items=[item(visibility=[target])])
    found = document(turn)
    for name in ("schema_version", "context_id", "scope", "lifecycle", "created_at"):
        assert found[name]
    records = [found, *found["surfaces"], *found["surfaces"][0]["items"], *found["selections"], *found["budgets"]]
    records += [*found["windows"], *found["assemblies"], *found["injections"], *found.get("missing_contexts", ())]
    records += [*found["events"], *(ref for one in found["surfaces"][0]["items"] for ref in one["source_refs"])]
    assert len(records) > 12
    assert {record["schema_version"] for record in records} == {SCHEMA_VERSION}
    assert msgspec.json.decode(msgspec.json.encode(turn.envelope), type=ContextEnvelope) == turn.envelope


@pytest.mark.requirement("S3-O2", "S3-O3", "S3-O8", "S3-O7", "S3-O9")
def test_items_stand_whole_once_and_everything_else_names_them(home: str) -> None:
    turn = furnished(home).prepare(budget=1200)
    found = document(turn)
    [surface], [selection], [window] = found["surfaces"], found["selections"], found["windows"]
    ids = [one["item_id"] for one in surface["items"]]
    assert len(ids) == len(set(ids))
    assert ids == found["item_refs"] == selection["selected_item_refs"]
    assert [ref for segment in window["segments"] for ref in segment.get("item_refs", ())] == ids
    left = {one["item_ref"] for one in selection["omitted_item_refs"]}
    assert left
    assert set(surface["available_item_refs"]) == set(ids) | left == set(selection["candidate_item_refs"])
    blocks = found["assemblies"][0]["ordered_blocks"]
    assert [block["position"] for block in blocks] == list(range(1, len(blocks) + 1))
    assert sorted(name for one in found["injections"] for name in one["metadata"]["blocks"]) == sorted(
        block["block_id"] for block in blocks
    )


@pytest.mark.requirement("S3-O4", "X18")
def test_every_item_every_record_and_the_envelope_have_a_digest_that_the_document_alone_gives(home: str) -> None:
    turn = furnished(home).prepare(budget=1200)
    found = document(turn)
    digests = found["digests"]
    for one in found["surfaces"][0]["items"]:
        assert one["digest"] == digest_text(one["content"])
        assert one["source_refs"][0]["authority"] == one["trust_level"]
    records = [(one["item_id"], one) for one in found["surfaces"][0]["items"]]
    for plural, (_, name) in LISTS.items():
        records += [(record[name], record) for record in found.get(plural, ())]
    for name, record in records:
        assert digests[name] == simple_digest(record)
    others = {name: digest for name, digest in digests.items() if name != found["context_id"]}
    assert digests[found["context_id"]] == simple_digest({**found, "digests": others})
    ids = [found["context_id"], *(name for name, _ in records)]
    assert set(digests) == set(ids)
    assert len(ids) == len(set(ids))
    proof = {one["rendering"]: one["digest"] for one in found["evidence_refs"]}
    assert proof == turn.record.sha256
    assert set(proof) == {"assembly", "openai", "responses", "anthropic"}


@pytest.mark.requirement("S3-O4")
def test_a_message_names_its_origin_and_native_ids(home: str) -> None:
    turn = furnished(home).prepare()
    items = {one["item_id"]: one for one in document(turn)["surfaces"][0]["items"]}
    result = items["messages:27"]
    [source] = result["source_refs"]
    assert (source["uri"], source["selector"], source["authority"]) == ("messages.jsonl", "messages:27", "tool")
    assert source["external_mappings"] == [{"daypack": {"id": "msg-27", "role": "tool"}, "tool_call_id": "c1"}]
    assert result["context_kind"] == "tool_result"
    assert items["messages:25"]["context_kind"] == "user_message"
    assert items["messages:26"]["context_kind"] == "session_history"
    assert items["messages:26"]["content"] == "→ look {}"


@pytest.mark.requirement("S3-O6", "S3-O7")
def test_budget_and_window_say_what_was_allowed_and_used(home: str) -> None:
    turn = furnished(home).prepare(budget={"tokens": 1200, "bytes": 50_000, "items": 60, "ms": 5000})
    [budget], [window] = turn.envelope.budgets, turn.envelope.windows
    assert (budget.max_tokens, budget.max_bytes, budget.max_items, budget.max_ms) == (1200, 50_000, 60, 5000)
    assert budget.reserved_tokens == window.reserved_tokens == 300
    assert budget.actual_tokens == window.actual_tokens == turn.tokens <= 900
    assert budget.visibility == ("model",)
    assert budget.token_method == "o200k_base"
    assert budget.overflow_strategy == "defer_to_retrieval"
    assert [segment.role for segment in window.segments] == ["prefix", "tail", "after", "answer"]
    assert sum(segment.actual_tokens or 0 for segment in window.segments) == turn.tokens
    assert window.segments[-1].reserved_tokens == 300
    assert window.metadata["prefix_sha256"] == turn.prefix_sha256


@pytest.mark.requirement("S3-O12", "S3-L2")
def test_what_is_missing_has_a_question_a_severity_and_a_source(home: str) -> None:
    session = furnished(home)
    turn = session.prepare()
    [missing] = document(turn)["missing_contexts"]
    assert missing["question"] == "Who pays?"
    assert (missing["severity"], missing["status"], missing["requested_from"]) == ("medium", "requested", "user:anna")
    assert turn.envelope.missing_context_refs == (missing["missing_id"],)


@pytest.mark.requirement("X17", "S3-L3", "S3-O10")
def test_an_overflow_is_a_compaction_of_the_window_only(home: str) -> None:
    session = stage(home)
    converse(session, 4)
    session.append("user", "One")
    session.prepare(budget=1200)
    converse(session, 8)
    session.append("user", "Two")
    before = Path(session.history.layout.messages).read_bytes()
    turn = session.prepare(budget=1200)
    assert turn.new_epoch == "overflow"
    [compaction] = document(turn)["compactions"]
    assert compaction["replacement_policy"] == "window_only"
    assert compaction["trigger"] == "token_pressure"
    assert compaction["compaction_id"] == session.compactions[-1].id
    assert compaction["source_item_refs"] == [session.compactions[-1].source]
    [omission] = [one for one in turn.omitted if one.reason == "superseded_by_summary"]
    assert omission.item == session.compactions[-1].source
    assert session.recall(omission.swap or "").source == omission.item
    [summary] = document(turn)["summaries"]
    assert compaction["summary_ref"] == summary["summary_id"]
    assert summary["content"].startswith("# Context")
    assert summary["coverage"]
    assert summary["refresh_policy"]
    assert "context.compaction.completed" in {event.event_type for event in turn.envelope.events}
    assert Path(session.history.layout.messages).read_bytes() == before


@pytest.mark.requirement("S3-O10", "S3-O11", "S3-L3")
def test_every_turn_of_an_epoch_names_the_compaction_it_rests_on(home: str) -> None:
    session = stage(home)
    converse(session, 12)
    session.append("user", "Where were we?")
    session.compact()
    first = document(session.prepare(budget=2400))
    session.append("assistant", "At the harbour.")
    session.append("user", "And then?")
    turn = session.prepare(budget=2400)
    assert not turn.new_epoch
    later = document(turn)
    [compaction] = later["compactions"]
    assert later["compaction_refs"] == first["compaction_refs"] == [session.compactions[-1].id]
    assert compaction == first["compactions"][0]
    assert compaction["created_at"] == session.compactions[-1].at
    assert [one["summary_id"] for one in later["summaries"]] == [compaction["summary_ref"]]
    assert set(compaction["source_item_refs"]) <= set(later["surfaces"][0]["available_item_refs"])
    completed = [event for event in later["events"] if event["event_type"] == "context.compaction.completed"]
    assert completed == []
    assert outputs(session.replay(turn.event_id or "")) == outputs(turn)


@pytest.mark.requirement("S3-O10", "S3-O11")
@pytest.mark.parametrize("target", TARGETS)
def test_whoever_sees_the_summary_learns_which_compaction_it_is_from(home: str, target: str) -> None:
    session = stage(home)
    converse(session, 12)
    session.append("user", "Where were we?")
    session.compact()
    session.prepare(target=target)
    session.append("assistant", "At the harbour.")
    turn = session.prepare(target=target)
    found = document(turn)
    shown = "context_doc" in {one.get("metadata", {}).get("kind") for one in found["surfaces"][0].get("items", ())}
    assert shown == (target in ("model", "reviewer", "ui", "user", "peer_agent", "evidence_export"))
    if shown:
        assert found["compaction_refs"] == [session.compactions[-1].id]
        assert [one["summary_id"] for one in found["summaries"]] == [found["compactions"][0]["summary_ref"]]
    assert conform(msgspec.json.encode(found)).failed == ()
    assert outputs(session.replay(turn.event_id or "")) == outputs(turn)


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_without_the_summary_gets_no_notes_of_what_it_lost(home: str, target: str) -> None:
    session = stage(home)
    converse(session, 12)
    session.append("user", "Where were we?")
    session.compact()
    found = document(session.prepare(target=target))
    for compaction in found.get("compactions", ()):
        assert ("summary_ref" in compaction) == bool(found.get("summaries"))
        assert "summary_ref" in compaction or "loss_notes" not in compaction


@pytest.mark.requirement("S3-O13")
def test_events_tell_the_lifecycle(home: str) -> None:
    session = furnished(home)
    session.append("user", f"The key is {SECRET}.")
    turn = session.prepare()
    found = [event.event_type for event in turn.envelope.events]
    assert found == [
        "context.surface.created",
        "context.selection.completed",
        "context.budget.applied",
        "context.assembly.created",
        "context.missing.detected",
        "context.redaction.applied",
        "context.injection.applied",
    ]
    assert set(found) <= set(EVENT_TYPES)
    ids = {*turn.envelope.digests}
    assert all(event.subject in ids for event in turn.envelope.events)
    [redaction] = [event for event in turn.envelope.events if event.event_type == "context.redaction.applied"]
    assert redaction.data == {"items": ["messages:28"]}
    assert turn.envelope.assemblies[0].redaction_state == "masked"
    dry = session.prepare(dry_run=True)
    assert "context.injection.applied" not in [event.event_type for event in dry.envelope.events]
    assert (turn.envelope.lifecycle, dry.envelope.lifecycle) == ("injected", "assembled")


@pytest.mark.requirement("G18")
def test_redaction_is_stated_for_items_as_for_messages(home: str) -> None:
    session = stage(home)
    session.pin("system", f"Use {SECRET}.")
    session.append("user", "Hi")
    turn = session.prepare()
    [pin] = [one for one in turn.envelope.surfaces[0].items if one.item_id == "pin:system.md"]
    assert pin.content == f"Use {MARKER}."
    assert pin.redaction_state == "masked"
    assert pin.metadata["redacted"] == ["github-token"]
    [event] = [one for one in turn.envelope.events if one.event_type == "context.redaction.applied"]
    assert event.data == {"items": ["pin:system.md"]}


def test_with_redaction_off_nothing_is_called_masked(home: str) -> None:
    session = stage(home, redaction="off")
    session.append("user", f"The key is {SECRET}.")
    turn = session.prepare()
    assert turn.envelope.assemblies[0].redaction_state == "none"
    assert "context.redaction.applied" not in [event.event_type for event in turn.envelope.events]


# pack.json and pack.md


def indent(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))


@pytest.mark.requirement("S4-PK2", "S4-PK3", "S4-PK7", "S4-PK9", "S4-PK12", "S4-F11", "S4-PK1")
def test_pack_json_has_the_shape_of_the_example(home: str) -> None:
    session = furnished(home)
    turn = session.prepare(budget=32_000)
    path = Path(session.history.layout.derived("pack"))
    found = valid("pack", path.read_bytes())
    assert (found["session"], found["agent"], found["budget_tokens"]) == ("work", "default", 32_000)
    for one in found["items"]:
        assert {"kind", "source", "tokens"} <= one.keys()
    by_kind = {one["kind"]: one for one in found["items"]}
    assert by_kind["recent_messages"]["source"] == "messages.jsonl"
    assert by_kind["recent_messages"]["range"] == "1-27"
    assert by_kind["child_result"]["source"] == "context/child/rev-123/result.md"
    assert {one["source"] for one in found["items"] if one["kind"] == "system"} == {"context/pinned/system.md"}
    assert sum(one["tokens"] for one in found["items"]) + AROUND_QUOTED.tokens == turn.tokens
    assert msgspec.json.decode(path.read_bytes(), type=Pack) == turn.pack


@pytest.mark.requirement("X31")
@pytest.mark.parametrize("target", TARGETS)
def test_no_source_leads_out_of_the_session(home: str, target: str) -> None:
    turn = furnished(home).prepare(target=target, items=[item(visibility=[target], item_id="../../x")])
    assert turn.items
    for one in turn.items:
        assert ".." not in one.source
        assert not one.source.startswith("/")
    valid("pack", turn.pack_json)


def test_a_head_that_stands_apart_is_an_item_of_its_own(home: str) -> None:
    session = stage(home)
    session.append("user", "Go through all of it, please.")
    for number in range(30):
        session.append("assistant", "", tool_calls=[{"id": f"c{number}", "name": "look"}])
        session.append("tool", "It goes on and on. " * 12, tool_call_id=f"c{number}")
    turn = session.prepare(budget=1200)
    head, tail = [one for one in turn.items if one.kind == "recent_messages"]
    assert head.range == "1"
    assert tail.range == f"{turn.parts.epoch.start}-61"
    assert turn.parts.epoch.start > 20
    added = added_items(turn.parts.additions)
    parts = head.tokens + tail.tokens + sum(one.tokens for one in added)
    assert parts == turn.stable_tokens - turn.record.stable.prefix_tokens
    refs = [block.item_refs for block in turn.assembly.blocks if block.block_id.startswith("tail")]
    assert refs == [("messages:1", f"messages:{tail.range}", *(one.id for one in added))]
    assert outputs(session.replay(turn.event_id or "")) == outputs(turn)


@pytest.mark.requirement("S4-PK14", "S4-F12")
def test_pack_md_shows_everything_that_is_sent_and_what_is_not(home: str) -> None:
    session = furnished(home)
    turn = session.prepare(budget=1200, items=[item()])
    text = Path(session.history.layout.derived("pack_text")).read_text()
    assert text == turn.pack_md
    for part in (*turn.assembly.given.prefix, *turn.assembly.given.quoted, *turn.assembly.given.volatile):
        assert indent(part) in text
    for message in turn.assembly.given.messages:
        assert indent(message.text) in text
    assert turn.parts.additions
    for left in turn.omitted:
        assert f"- {left.item}" in text
    assert "Who pays?" in text
    for heading in (
        "# Pack for model",
        "## System prompt",
        "## Quoted",
        "## Messages",
        "## After the messages",
        "## Omitted",
        "## Missing",
    ):
        assert f"\n{heading}" in f"\n{text}"


def test_pack_md_does_not_spell_out_pictures(home: str) -> None:
    session = stage(home)
    picture = {"type": "image", "source": "data:image/png;base64," + "QUFB" * 100}
    session.append("user", [picture, {"type": "image", "source": "plan.png"}, {"type": "text", "text": "What is it?"}])
    turn = session.prepare()
    assert indent("[image: image/png]\n[image: plan.png]\nWhat is it?") in turn.pack_md
    assert "QUFBQUFB" not in turn.pack_md + str(turn.envelope)


def test_pack_md_shows_hostile_text_as_text(home: str) -> None:
    session = stage(home)
    hostile = "## Omitted\n\nnothing\n<script>alert(1)</script>\n```\n\x1b[2J\u202e\x85 | [x](javascript:1)"
    session.append("user", hostile, name="<b>\n## Missing")
    session.add_question("<img src=x>\n## Missing")
    pack = session.prepare(items=[item("tool_result", hostile, item_id="<i>\n# x")]).pack_md
    assert [line for line in pack.split("\n") if line.startswith("## ")].count("## Omitted") == 1
    assert pack.count("\n## Missing") == 1
    assert not any("<" in line for line in pack.split("\n") if not line.startswith("    "))
    assert "\x1b" not in pack
    assert "\\x1b[2J\\u202e\\x85" in pack
