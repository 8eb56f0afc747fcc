"""Items a caller hands in: checked at the edge, shown or left out with a reason, never believed blindly."""

from math import inf, nan
from typing import Any

import pytest
from turn.scenes import Clock, append_raw, given_out, item, logs, outputs, reasons, sent, stage, turn_events

from daypack.errors import BadInput
from daypack.session import Session
from daypack.turn.caller.items import read_items
from daypack.turn.conformance.report import conform
from daypack.turn.evidence.export import encode
from daypack.turn.items import Item
from daypack.types.context import ContextItem, ContextSourceRef
from daypack.types.kinds import OMISSION_REASONS


def opened(home: str) -> Session:
    session = stage(home)
    session.append("user", "What is the weather?")
    return session


def of_caller(session: Session, *items: Any, **fields: Any) -> dict[str, Item]:
    turn = session.prepare(items=items, **fields)
    found = turn.inserted
    return {one.id: one for one in found if one.id.startswith("item:")}


def test_values_and_mappings_are_the_same(home: str) -> None:
    session = opened(home)
    value = ContextItem(
        item_id="wind", context_kind="tool_result", content_mode="inline", visibility=("model",), content="Calm."
    )
    mapping = item("tool_result", "Calm.", item_id="wind", visibility=["model"])
    one, other = of_caller(session, value)["item:wind"], of_caller(session, mapping)["item:wind"]
    assert one == other
    assert one.text == "Calm."


def test_items_without_an_id_are_numbered(home: str) -> None:
    assert list(of_caller(opened(home), item(content="a"), item(content="b"))) == ["item:item-1", "item:item-2"]


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({}, "context_kind"),
        ({"context_kind": 5, "content": "x"}, "context_kind"),
        (item(visibility=[5]), "visibility"),
        (item(visibility=[]), "visibility"),
        (item(visibility="model"), "visibility"),
        (item(content=5), "content"),
        (item(priority="high"), "priority"),
        (item(priority=nan), "priority"),
        (item(priority=inf), "priority"),
        (item(content="\ud800"), None),
        (item(title="\ud800"), None),
        (item(content={"a": object()}), None),
        ("text", None),
        (None, None),
        (7, None),
    ],
)
def test_what_is_no_item_is_refused_and_nothing_is_recorded(home: str, given: Any, match: str | None) -> None:
    session = opened(home)
    before = logs(session)
    with pytest.raises(BadInput, match=match) as caught:
        session.prepare(items=[item(), given])
    assert caught.value.place == "items[1]"
    assert "context_kind and content" in caught.value.hint
    assert "`" not in caught.value.problem  # the words of a library
    assert logs(session) == before
    assert session.prepare().event_id


def test_a_value_made_in_python_is_checked_like_a_mapping(home: str) -> None:
    session = opened(home)
    wrong = ContextItem(item_id="x", context_kind=5, content_mode="inline", visibility=("model",), content="x")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="context_kind"):
        session.prepare(items=[wrong])


@pytest.mark.requirement("S3-K0", "S3-V0")
def test_kinds_and_targets_of_other_runtimes_are_kept_and_count_as_custom(home: str) -> None:
    session = opened(home)
    gossip = {"context_kind": "gossip", "content": "The cook is gone.", "visibility": ["model", "hologram"]}
    hidden = {"context_kind": "gossip", "content": "For none of ours.", "visibility": ["hologram"], "item_id": "h"}
    turn = session.prepare(items=[gossip, hidden])
    [shown] = [one for one in turn.envelope.surfaces[0].items if one.context_kind == "gossip"]
    assert (shown.content, shown.visibility) == ("The cook is gone.", ("model", "hologram"))
    [inside] = [one for one in turn.parts.volatile if one.context_kind == "gossip"]
    custom = session.prepare(items=[item("custom")], dry_run=True).parts.volatile
    assert {inside.kind, inside.authority} == {(one := custom[-1]).kind, one.authority}
    assert reasons(turn)["item:h"] == "not_visible_to_target"
    assert outputs(session.replay(turn.event_id or "")) == outputs(turn)


def test_one_id_twice_is_refused(home: str) -> None:
    session = opened(home)
    with pytest.raises(BadInput, match="is used twice"):
        session.prepare(items=[item(item_id="a"), item(item_id="a", content="other")])


def test_structured_content_is_shown_as_json(home: str) -> None:
    session = opened(home)
    shown = of_caller(session, item("browser_state", {"url": "https://example.org", "tabs": [1, 2]}))
    assert shown["item:item-1"].text == '{\n "url": "https://example.org",\n "tabs": [\n  1,\n  2\n ]\n}'


@pytest.mark.parametrize("ref", ["messages:1", "messages:tail:1", "user:latest", "messages:1-1"])
def test_content_inline_that_is_only_a_reference_of_ours_is_expanded(home: str, ref: str) -> None:
    session = opened(home)
    shown = of_caller(session, {"context_kind": "custom", "content_ref": ref})
    assert shown["item:item-1"].text == "What is the weather?"
    assert shown["item:item-1"].source == ref


def test_a_reference_to_a_tool_result_and_to_an_event_are_read(home: str) -> None:
    session = opened(home)
    session.append("assistant", "", tool_calls=[{"id": "c1", "name": "look"}])
    session.append("tool", "Rain.", tool_call_id="c1")
    event = session.append_event("note", {"text": "Umbrella."})
    refs = ("tool:c1", f"events:{event.id}")
    shown = of_caller(session, *({"context_kind": "custom", "content_ref": ref} for ref in refs))
    assert [one.text for one in shown.values()] == ["Rain.", "Umbrella."]


def test_a_reference_to_what_is_not_there_is_left_out_and_says_so(home: str) -> None:
    session = opened(home)
    turn = session.prepare(items=[{"context_kind": "custom", "content_ref": "messages:99"}])
    [left] = [one for one in turn.omitted if one.item == "item:item-1"]
    assert left.reason == "custom"
    assert left.high_impact
    assert "messages:99" in (left.note or "")
    assert "has 1 message" in (left.note or "")


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"content_mode": "ref"},
        {"content_mode": "ref", "content_ref": ""},
        {"content_mode": "resource_link", "content_ref": {}},
        {"content_mode": "ref", "content": "hello"},
        {"content_mode": "ref", "content": "hello", "content_ref": "https://example.org"},
        {"content_mode": "stream"},
    ],
)
def test_content_that_is_not_where_its_mode_says_is_refused(home: str, given: dict[str, Any]) -> None:
    session = opened(home)
    before = logs(session)
    with pytest.raises(BadInput, match=r"there is (no )?content") as caught:
        session.prepare(items=[item(), {"context_kind": "artifact_ref", **given}])
    assert caught.value.place == "items[1]"
    assert logs(session) == before
    withheld = {"context_kind": "artifact_ref", **given, "redaction_state": "removed"}
    assert session.prepare(items=[withheld]).event_id  # its owner says why there is none


def test_what_has_no_words_is_left_out(home: str) -> None:
    turn = opened(home).prepare(items=[{"context_kind": "artifact_ref", "content": ""}])
    assert reasons(turn)["item:item-1"] == "unsupported_media"


def test_content_with_a_reference_beside_it_is_shown_and_the_reference_stays(home: str) -> None:
    turn = opened(home).prepare(items=[item(content="hello", content_ref="https://example.org/a")])
    [found] = [one for one in turn.envelope.surfaces[0].items if one.item_id == "item:item-1"]
    assert (found.content, found.content_ref) == ("hello", "https://example.org/a")


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"context_kind": None}, "context_kind: expected a text, got null"),
        ({"visibility": "model"}, "visibility: expected a list that is not empty, got the text 'model'"),
        ({"visibility": ()}, "visibility: expected a list that is not empty, got an empty list"),
        ({"priority": "high"}, "priority: expected a number or null, got the text 'high'"),
        ({"source_refs": [{"uri": "a"}]}, "source_refs[0].source_id is missing"),
        ({"byte_size": -1}, "byte_size: expected a whole number of at least 0 or null, got -1"),
    ],
)
def test_a_wrong_field_is_named_with_what_is_expected(home: str, fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadInput) as caught:
        opened(home).prepare(items=[item(**fields)])
    assert caught.value.problem == problem
    with pytest.raises(BadInput, match="context_kind is missing"):
        opened(home).prepare(items=[{"content": "x"}])


@pytest.mark.requirement("X31")
@pytest.mark.parametrize(
    "origin", ["../../../etc/passwd", "/etc/passwd", "https://example.org/a", "../other/messages.jsonl"]
)
def test_the_source_in_a_pack_is_inside_the_session_whatever_the_origin_was(home: str, origin: str) -> None:
    session = opened(home)
    ref = ContextSourceRef(source_id="s", uri=origin, source_kind="file", authority="tool")
    turn = session.prepare(
        items=[item("file_excerpt", "root", source_refs=[ref]), item("custom", "up", item_id="../../up")]
    )
    sources = {one.item_ref: one.source for one in turn.items}
    assert sources["item:item-1"] == "caller:item-1"
    assert all(".." not in source and not source.startswith("/") for source in sources.values())
    origins = {one.item_id: one.source_refs[0] for one in turn.envelope.surfaces[0].items}
    assert getattr(origins["item:item-1"], "uri", None) == origin


@pytest.mark.parametrize(
    ("stated", "stale"),
    [
        ("2027-01-15T07:59:59Z", True),
        ("2027-01-15T08:00:00Z", True),
        ("2027-01-15T08:00:01Z", False),
        ("2027-01-15T09:30:00+02:00", True),
        ("2027-01-15T07:30:00-02:00", False),
        ("2027-01-15T09:00:00", False),
        ("2027-01-14", True),
        ("some day", True),
        ("0001-01-01T00:00:00+14:00", True),
    ],
)
@pytest.mark.parametrize("where", ["freshness", "metadata"])
def test_what_has_expired_is_stale(home: str, where: str, stated: str, *, stale: bool) -> None:
    session = opened(home)
    turn = session.prepare(items=[item() | {where: {"expires_at": stated}}])
    assert ("item:item-1" in reasons(turn)) == stale
    assert reasons(turn).get("item:item-1", "stale") == "stale"


def test_tiers_and_placement_are_as_asked(home: str) -> None:
    session = opened(home)
    shown = of_caller(
        session,
        item("working_memory", "a", metadata={"tier": "core"}),
        item("working_memory", "b", metadata={"tier": "ephemeral"}),
        item("working_memory", "c"),
        item("manual_note", "d", metadata={"placement": "prefix"}),
        item("system_prompt", "e", metadata={"placement": "volatile"}),
        item("manual_note", "f", metadata={"placement": "everywhere", "tier": "attic"}),
    )
    kinds = {one.text: (one.kind, one.placement) for one in shown.values()}
    assert kinds == {
        "a": ("core_blocks", "prefix"),
        "b": ("ephemeral_blocks", "volatile"),
        "c": ("working_blocks", "volatile"),
        "d": ("custom", "prefix"),
        "e": ("system", "volatile"),
        "f": ("custom", "volatile"),
    }


@pytest.mark.requirement("G9")
def test_every_reason_to_leave_something_out_can_occur(home: str, tmp_path: Any) -> None:
    workspace = tmp_path / "w"
    workspace.mkdir()
    (tmp_path / "outside.md").write_text("x")
    (workspace / "AGENTS.md").symlink_to(tmp_path / "outside.md")
    session = stage(home, workspace=str(workspace), clock=Clock())
    for number in range(24):
        session.append("user", f"Question {number} on the harbour wall: " + f"stone {number} " * 16)
        session.append("assistant", f"Answer {number} on the harbour wall: " + f"brick {number} " * 16)
    append_raw(session, {"role": "tool", "content": "a result nobody asked for", "tool_call_id": "nobody"})
    session.append("user", "What of the harbour wall, the stone and the brick?")
    turn = session.prepare(
        budget=1500,
        items=[
            item(content="same", item_id="one"),
            item(content="same", item_id="two"),
            item(content="old", item_id="old", freshness={"expires_at": "2020-01-01T00:00:00Z"}),
            item(content="x", item_id="tools", visibility=["tool"]),
            item(content="word " * 3000, item_id="huge"),
            item(content="fits alone " * 180, item_id="big", priority=0.2),
            item(content="no", item_id="blocked", redaction_state="policy_blocked"),
            item(content="pin", item_id="secret", sensitivity="secret"),
            item("artifact_ref", "", item_id="film"),
        ],
    )
    found = reasons(turn)
    assert found["item:two"] == "duplicate"
    assert found["item:old"] == "stale"
    assert found["item:tools"] == "not_visible_to_target"
    assert found["item:huge"] == "too_large"
    assert found["item:big"] == "budget_limit"
    assert found["item:blocked"] == "policy_blocked"
    assert found["item:secret"] == "sensitive"
    assert found["item:film"] == "unsupported_media"
    assert found["file:AGENTS.md"] == "permission_missing"
    assert found["messages:49"] == "custom"
    assert "low_relevance" in {one.reason for one in turn.omitted if one.item == "excerpts"}
    # A summary that stands for something comes with compaction.
    assert {one.reason for one in turn.omitted} == set(OMISSION_REASONS) - {"superseded_by_summary"}
    assert outputs(session.replay(turn.event_id or "")) == outputs(turn)


@pytest.mark.parametrize("state", ["removed", "encrypted_ref", "policy_blocked"])
def test_content_that_its_owner_withholds_is_in_no_pack_and_no_envelope(home: str, state: str) -> None:
    session = opened(home)
    given = [
        item(content="open sesame", item_id="inline", redaction_state=state),
        item(content=None, content_ref="messages:1", item_id="ours", redaction_state=state),
    ]
    turn = session.prepare(items=given)
    assert "open sesame" not in given_out(turn)
    assert reasons(turn)["item:inline"] == reasons(turn)["item:ours"] == "policy_blocked"
    notes = {omission.note for omission in turn.omitted if omission.reason == "policy_blocked"}
    assert notes == {"blocked by its owner's policy" if state == "policy_blocked" else f"its owner states {state}"}
    assert conform(encode(turn.envelope)).conforms


def test_a_secret_item_is_for_tools_and_the_runtime(home: str) -> None:
    session = opened(home)
    one = item(content="open sesame", sensitivity="secret", visibility=["tool", "runtime", "model"])
    assert "open sesame" in sent(session.prepare(target="tool", items=[one]))
    assert "open sesame" in sent(session.prepare(target="runtime", items=[one]))
    assert "open sesame" not in sent(session.prepare(items=[one]))


def test_items_of_one_turn_are_not_in_the_next(home: str) -> None:
    session = opened(home)
    session.prepare(items=[item(content="Only now.")])
    assert "Only now." not in sent(session.prepare())
    assert len(turn_events(session)) == 2


def test_without_a_history_nothing_is_looked_up(home: str) -> None:
    [one] = read_items([{"context_kind": "custom", "content_ref": "messages:1"}], None)
    assert (one.media, one.problem, one.text) == (False, "", "")
    assert one.reference
    assert "the session that the document comes from" in one.reference.problem


def test_an_item_nested_beyond_reason_is_refused(home: str) -> None:
    session = stage(home)
    session.append("user", "Hello")
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(BadInput, match="items\\[0\\]"):
        session.prepare(items=[item("custom", {"a": deep})])


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "fields",
    [
        {"metadata": {"n": nan}},
        {"metadata": {"n": 1 << 64}},
        {"metadata": {"n": 10**400}},
        {"byte_size": 1 << 70, "content": None, "content_ref": "x://y"},
        {"content": {"n": inf}},
        {"metadata": {"deep": nested(59)}},
        {"policy_refs": [{"deep": nested(58)}]},
        {"title": "\ud800"},
    ],
    ids=str,
)
def test_what_a_reader_of_the_envelope_would_refuse_or_change_is_refused(home: str, fields: dict[str, Any]) -> None:
    session = opened(home)
    before = logs(session)
    with pytest.raises(BadInput) as caught:
        session.prepare(items=[item(), item(**{"content": "x", **fields})])
    assert caught.value.place == "items[1]"
    assert logs(session) == before


def test_as_many_levels_as_an_envelope_may_have_are_taken(home: str) -> None:
    given = item(metadata={"deep": nested(58)}, policy_refs=[{"deep": nested(57)}])
    ids: Any = {"native_ids": {"deep": nested(59)}, "policy_refs": [{"deep": nested(58)}]}
    turn = opened(home).prepare(items=[given], ids=ids)
    assert conform(encode(turn.envelope)).conforms
    assert turn.envelope.metadata["ids"] == ids


@pytest.mark.parametrize("values", [5, "text", {"context_kind": "manual_note"}])
def test_items_that_are_no_list_are_refused(home: str, values: Any) -> None:
    with pytest.raises(BadInput, match="must be a list of items"):
        opened(home).prepare(items=values)


def test_the_content_mode_of_another_runtime_stays(home: str) -> None:
    given = item(content=None, content_ref="x://y", content_mode="stream", item_id="s")
    [found] = [one for one in opened(home).prepare(items=[given]).envelope.surfaces[0].items if one.item_id == "item:s"]
    assert (found.content_mode, found.content_ref) == ("stream", "x://y")


def test_the_size_of_an_item_in_an_envelope_is_that_of_its_content(home: str) -> None:
    envelope = opened(home).prepare(items=[item(content="Ebb – flow")]).envelope
    [found] = [one for one in envelope.surfaces[0].items if one.item_id == "item:item-1"]
    assert found.byte_size == len("Ebb – flow".encode())
