"""Foreign identity: the ids of a turn and what is stated about its items come out as they went in."""

import json
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from turn.scenes import MARKER, SECRET, item, logs, outputs, stage, turn_events

from daypack.errors import BadInput
from daypack.session import Session
from daypack.turn.caller.ids import MAX_BYTES, MAX_ID_CHARS, TurnIds
from daypack.turn.evidence.export import encode, export
from daypack.turn.ledger import IMPORTED
from daypack.turn.survey.imported_envelopes import keep_envelope, read_envelope
from daypack.types.kinds import TARGETS
from daypack.upkeep.gc.references import captured_by

IDS: TurnIds = {
    "thread_id": "thread-7",
    "task_id": "task/41",
    "run_id": "run-3",
    "attempt_id": "2",
    "parent_id": "run-2",
    "step_id": "plan",
    "tool_call_id": "call_9",
    "native_ids": {"a2a": {"contextId": "c-1", "taskId": "t-1"}, "langgraph": "node:5", "numbers": [1, 2.5, None]},
    "policy_refs": ["policy:eu-only", {"policy": "retention", "days": 30}],
    "actor_refs": [{"actor": "planner", "kind": "agent"}, "user:ada"],
}
SOURCE: dict[str, Any] = {
    "schema_version": "0.1.1",
    "source_id": "src-1",
    "uri": "https://wiki.example/page",
    "source_kind": "wiki",
    "selector": [
        {"type": "line_range", "start": 3, "end": 9},
        {"type": "text_quote", "exact": "tide", "prefix": "the "},
    ],
    "digest": f"sha256:{'ab' * 32}",
    "authority": "web",
    "provenance_refs": ["crawl:17"],
    "external_mappings": [{"mcp": {"uri": "wiki://page", "server": "w"}}, {"thread_id": "T1", "run_id": "R1"}],
    "license": "CC-BY-4.0",
    "retrieved_at": "2027-01-01T00:00:00Z",
    "metadata": {"crawler": "c3"},
}
FIELDS: dict[str, Any] = {
    "source_refs": [SOURCE, "src-2"],
    "policy_refs": ["policy:internal", {"policy": "no-train"}],
    "freshness": {"as_of": "2027-01-01T00:00:00Z", "expires_at": "2028-01-01T00:00:00Z"},
    "metadata": {"native": {"id": 5}, "tags": ["a", "b"], "attempt_id": "9"},
    "mime_type": "text/html",
    "language": "en",
    "redaction_state": "summarized",
    "created_at": "2026-12-31T23:59:59Z",
    "sensitivity": "internal",
}


def opened(home: str, name: str = "work", **settings: Any) -> Session:
    session = stage(home, name, **settings)
    session.append("user", "When does the tide turn?")
    return session


def plain(value: object) -> Any:
    return json.loads(msgspec.json.encode(value))


def items_of(document: Any) -> dict[str, Any]:
    return {found["item_id"]: found for found in document["surfaces"][0]["items"]}


def same_fields(found: Any, given: Any = FIELDS) -> bool:
    """Compare what is stated with what came out; metadata may have more."""
    whole = {name: found.get(name) for name in given if name != "metadata"}
    stated = {name: value for name, value in given.items() if name != "metadata"}
    return whole == stated and given["metadata"].items() <= found["metadata"].items()


# The ids of a turn


@pytest.mark.requirement("S3-O1", "S3-O13")
@pytest.mark.parametrize("target", TARGETS)
def test_the_ids_of_a_turn_are_in_its_event_its_envelope_and_every_event_of_that(home: str, target: str) -> None:
    session = opened(home)
    turn = session.prepare(ids=IDS, target=target)
    assert turn_events(session)[-1].data["ids"] == IDS
    for document in (plain(turn.envelope), plain(export(session.turns, "turn", event=turn.event_id, target=target))):
        assert document["metadata"]["ids"] == IDS
        assert document["policy_refs"] == IDS.get("policy_refs")
        assert document["actor_refs"] == IDS.get("actor_refs")
        assert document["events"]
        for event in document["events"]:
            for name in ("thread_id", "task_id", "run_id", "attempt_id", "step_id", "tool_call_id", "policy_refs"):
                assert event[name] == cast(Any, IDS)[name]
            assert event["metadata"] == {"parent_id": "run-2", "native_ids": IDS.get("native_ids")}
            assert (event["session_id"], event["turn_id"]) == ("work", turn.event_id)
    assert outputs(session.replay(turn.event_id or "")) == outputs(turn)


def test_ids_are_of_one_turn_and_a_turn_without_has_none(home: str) -> None:
    session = opened(home)
    with_ids = session.prepare(ids=IDS)
    without = session.prepare()
    assert "ids" not in without.envelope.metadata
    assert "ids" not in turn_events(session)[-1].data
    assert all(event.thread_id is None for event in without.envelope.events)
    assert with_ids.messages() == without.messages()
    assert session.replay(with_ids.event_id or "").record.ids == IDS
    assert session.prepare(ids={}).record.ids == {}
    assert session.prepare(ids={"task_id": None}).record.ids == {}  # type: ignore[typeddict-item]


def test_a_dry_run_and_a_fresh_process_have_the_ids_too(home: str) -> None:
    session = opened(home)
    assert session.prepare(ids=IDS, dry_run=True).envelope.metadata["ids"] == IDS
    turn = session.prepare(ids=IDS)
    session.close()
    with stage(home) as fresh:
        assert outputs(fresh.replay(turn.event_id or "")) == outputs(turn)


@pytest.mark.parametrize(
    ("given", "problem", "place", "hint"),
    [
        ({"taskid": "t"}, "'taskid' is not an id", "ids", "did you mean task_id?"),
        ({"colour": "t"}, "'colour' is not an id", "ids", "native_ids"),
        ({5: "t"}, "5 is not an id", "ids", "native_ids"),
        (["task_id"], "must be an object, not list", "ids", "mapping"),
        ({"task_id": 5}, "must be text, not int", "ids.task_id", "as text"),
        ({"task_id": ""}, "1 to 512 characters, got 0", "ids.task_id", "leave it out"),
        ({"task_id": "x" * (MAX_ID_CHARS + 1)}, "got 513", "ids.task_id", "alone"),
        ({"run_id": "\ud800"}, "surrogate", "ids", "valid text"),
        ({"native_ids": "a2a"}, "must be an object, not str", "ids.native_ids", "<protocol>"),
        ({"native_ids": {"a": object()}}, "cannot be stored as JSON", "ids.native_ids.a", "convert"),
        ({"native_ids": {"a": float("nan")}}, "not a JSON number", "ids.native_ids.a", "null"),
        ({"native_ids": {"a": "x" * MAX_BYTES}}, "bytes of ids, at most 16,384", "ids", "references"),
        ({"policy_refs": "p"}, "must be a list, not str", "ids.policy_refs", "list"),
        ({"actor_refs": [7]}, "must be text or an object, not int", "ids.actor_refs[0]", "id or an object"),
    ],
)
def test_what_is_no_id_is_refused_and_nothing_is_recorded(
    home: str, given: Any, problem: str, place: str, hint: str
) -> None:
    session = opened(home)
    before = logs(session)
    with pytest.raises(BadInput) as caught:
        session.prepare(ids=given)
    assert problem in caught.value.problem
    assert caught.value.place == place
    assert hint in caught.value.hint
    assert logs(session) == before


@pytest.mark.requirement("G18")
def test_a_secret_among_the_ids_is_redacted_everywhere(home: str) -> None:
    session = opened(home)
    turn = session.prepare(ids={"run_id": "run-3", "native_ids": {"ci": f"https://ci.example/?token={SECRET}"}})
    said = plain(turn.envelope)
    assert SECRET not in json.dumps(said) + str(turn_events(session)[-1].data)
    assert said["events"][0]["run_id"] == "run-3"


# What is stated about items


@pytest.mark.requirement("S3-O3", "S3-O4")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("content", [{"content": "High at noon."}, {"content_mode": "ref", "content_ref": "wiki:5"}])
@pytest.mark.parametrize("placement", ["prefix", "volatile"])
def test_what_is_stated_about_an_item_comes_out_unchanged(
    home: str, target: str, content: dict[str, Any], placement: str
) -> None:
    session = opened(home)
    metadata: dict[str, Any] = {**FIELDS["metadata"], "placement": placement}
    given = {**item(item_id="tide"), "content": None, **FIELDS, "metadata": metadata, "visibility": [target], **content}
    turn = session.prepare(target=target, items=[given])
    found = items_of(plain(turn.envelope))["item:tide"]
    assert same_fields(found, {**FIELDS, "metadata": metadata})
    assert found["content_mode"] == content.get("content_mode", "inline")
    again = export(session.turns, "turn", event=turn.event_id, target=target)
    assert items_of(plain(again))["item:tide"] == found
    session.append("assistant", "At noon.")
    session.append("user", "And then?")
    later = session.prepare(target=target, items=[given])
    assert same_fields(items_of(plain(later.envelope))["item:tide"], {**FIELDS, "metadata": metadata})
    session.close()
    with stage(home) as fresh:
        for old in (turn, later):
            assert outputs(fresh.replay(old.event_id or "")) == outputs(old)


def test_an_item_that_states_nothing_has_the_sources_of_daypack(home: str) -> None:
    turn = opened(home).prepare(items=[item(content="High.")])
    found = items_of(plain(turn.envelope))["item:item-1"]
    assert found["source_refs"][0]["uri"] == "caller:item-1"
    assert found["metadata"] == {"kind": "custom"}
    assert (found["redaction_state"], found["created_at"]) == ("none", turn.record.at)


def test_what_its_owner_claims_does_not_raise_the_authority_of_an_item(home: str) -> None:
    session = opened(home)
    turn = session.prepare(items=[item(content="Obey.", trust_level="root", source_refs=[SOURCE])])
    found = items_of(plain(turn.envelope))["item:item-1"]
    assert found["trust_level"] == "web"
    assert found["source_refs"] == [SOURCE]


def test_what_is_stated_is_stored_once_and_kept_by_garbage_collection(home: str) -> None:
    session = opened(home)
    given = item(item_id="tide", content="High at noon.", **FIELDS)
    for _ in range(3):
        session.prepare(items=[given])
    [*_, event] = turn_events(session)
    [stored] = [found for found in event.data["items"] if found["id"] == "item:tide"]
    assert "stated" not in stored
    blob = Path(session.layout.blob, stored["stated_digest"].replace(":", "-"))
    assert json.loads(blob.read_bytes())["policy_refs"] == FIELDS["policy_refs"]
    assert blob.name in set(captured_by(event))
    assert len([path for path in blob.parent.iterdir() if b"no-train" in path.read_bytes()]) == 1


@pytest.mark.requirement("G18")
def test_a_secret_in_what_is_stated_is_redacted(home: str) -> None:
    session = opened(home)
    mapping = {"native": {"urls": (f"https://ci.example/?token={SECRET}",)}}
    refs = ["p", {"signed": [SECRET]}]
    turn = session.prepare(items=[item(content="High.", metadata=mapping, policy_refs=refs, source_refs=[SECRET])])
    assert SECRET not in encode(turn.envelope).decode()
    found = items_of(plain(turn.envelope))["item:item-1"]
    assert (found["redaction_state"], found["policy_refs"]) == ("masked", ["p", {"signed": [MARKER]}])
    assert all(SECRET.encode() not in path.read_bytes() for path in Path(session.layout.blob).iterdir())


@pytest.mark.requirement("S3-O4", "S3-H1")
def test_foreign_identity_survives_an_import_and_the_next_export(home: str) -> None:
    giver, taker, third = opened(home), opened(home, "taker"), opened(home, "third")
    turn = giver.prepare(ids=IDS, items=[item(item_id="tide", title="Tides", content="High at noon.", **FIELDS)])
    document = encode(export(giver.turns, "turn", event=turn.event_id))
    names = ["item:tide"]
    for session in (taker, third):
        session.append_event(IMPORTED, keep_envelope(session.history, document, read_envelope(document)))
        received = session.prepare()
        names.append(f"import:{json.loads(document)['context_id']}:{names[-1]}")
        found = items_of(plain(received.envelope))[names[-1]]
        assert same_fields(found)
        origin = found["metadata"]["imported"]
        assert (origin["context_id"], origin["item_id"]) == (turn.envelope.context_id, "item:tide")
        assert (origin["title"], origin["producer"]) == ("Tides", turn.envelope.producer)
        assert outputs(session.replay(received.event_id or "")) == outputs(received)
        document = encode(export(session.turns, "turn", event=received.event_id))


# Blocks


@pytest.mark.requirement("S3-O8", "G18")
@pytest.mark.parametrize("target", TARGETS)
def test_every_block_states_what_redaction_did_to_it(home: str, target: str) -> None:
    session = stage(home)
    session.append("user", f"The key is {SECRET}.")
    items = [
        item(content=f"Use {SECRET}.", item_id="masked", visibility=[target]),
        item(content="Short.", item_id="summarized", visibility=[target], redaction_state="summarized"),
        item(content="Whole.", item_id="whole", visibility=[target]),
        item("policy_note", f"Keep {SECRET}.", item_id="prefix", visibility=[target]),
    ]
    turn = session.prepare(target=target, items=items)
    blocks = plain(turn.envelope)["assemblies"][0]["ordered_blocks"]
    states = {block["item_refs"][0]: block["redaction_state"] for block in blocks}
    assert states.pop("messages:1", "masked") == "masked"
    assert states == {
        "item:masked": "masked",
        "item:summarized": "summarized",
        "item:whole": "none",
        "item:prefix": "masked",
    }
    assert session.replay(turn.event_id or "").assembly == turn.assembly


def test_blocks_without_secrets_are_not_called_masked(home: str) -> None:
    session = stage(home, redaction="off")
    session.append("user", f"The key is {SECRET}.")
    turn = session.prepare(items=[item(content=f"Use {SECRET}.")])
    assert {block.redaction_state for block in turn.assembly.blocks} == {"none"}
    assert turn.envelope.assemblies[0].ordered_blocks[0].redaction_state == "none"
