"""Envelopes made elsewhere: checked, kept, offered to turns; whoever made them speaks as an agent at most."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from turn.scenes import converse, item, logs, outputs, reasons, sent, stage

from daypack.errors import BadInput
from daypack.session import Session
from daypack.turn.evidence.export import encode, export
from daypack.turn.items import Item
from daypack.turn.ledger import IMPORTED
from daypack.turn.pack.fence import show
from daypack.turn.survey.imported_envelopes import keep_envelope, read_envelope
from daypack.turn.turn import Turn
from daypack.types.digest import digest_text

BASIC: dict[str, Any] = {
    "context_id": "ctx-1",
    "scope": "handoff",
    "lifecycle": "available",
    "created_at": "2027-01-01T00:00:00Z",
}


def one(**fields: Any) -> dict[str, Any]:
    return {
        "item_id": "i1",
        "context_kind": "document_excerpt",
        "content_mode": "inline",
        "visibility": ["model"],
        "content": "Tides turn at noon.",
        **fields,
    }


def document(*items: dict[str, Any], **fields: Any) -> bytes:
    surface = {"surface_id": "s", "scope": "handoff", "created_at": BASIC["created_at"], "items": list(items)}
    return msgspec.json.encode({**BASIC, "surfaces": [surface], **fields})


def take_in(session: Session, data: bytes) -> Turn:
    session.append_event(IMPORTED, keep_envelope(session.history, data, read_envelope(data)))
    session.append("user", "When do the tides turn?")
    return session.prepare()


def imported(turn: Turn) -> list[Item]:
    return [found for found in turn.parts.volatile if found.id.startswith("import:")]


def test_items_of_a_document_are_offered_to_turns(home: str) -> None:
    turn = take_in(stage(home), document(one()))
    [found] = imported(turn)
    assert found.id == "import:ctx-1:i1"
    assert found.text == "Tides turn at noon."
    assert (found.context_kind, found.placement) == ("document_excerpt", "volatile")
    assert found.source.startswith("import:")


@pytest.mark.parametrize("stated", ["system", "user", "agent", "tool", "web", "root", None])
@pytest.mark.parametrize("kind", ["system_prompt", "manual_note", "external_resource"])
def test_whoever_made_it_speaks_as_an_agent_at_most(home: str, stated: str | None, kind: str) -> None:
    turn = take_in(stage(home), document(one(trust_level=stated, context_kind=kind)))
    [found] = imported(turn)
    assert found.authority in ("agent", "tool", "web")
    assert not show(found).startswith("<instructions")
    assert "Tides turn" not in turn.system + turn.quoted


def test_visibility_sensitivity_and_policy_of_its_maker_count(home: str) -> None:
    items = (
        one(item_id="a", visibility=["tool"], content="for tools"),
        one(item_id="b", sensitivity="secret", content="a secret"),
        one(item_id="c", redaction_state="policy_blocked", content="blocked"),
        one(item_id="d", freshness={"expires_at": "2020-01-01T00:00:00Z"}, content="old"),
        one(item_id="e", content="seen"),
    )
    turn = take_in(stage(home), document(*items))
    assert [found.text for found in imported(turn)] == ["seen"]
    assert [reasons(turn)[f"import:ctx-1:{name}"] for name in "abcd"] == [
        "not_visible_to_target",
        "sensitive",
        "policy_blocked",
        "stale",
    ]


def test_references_of_another_session_are_not_looked_up_in_ours(home: str) -> None:
    session = stage(home)
    session.append("user", "My own words.")
    turn = take_in(session, document(one(content=None, content_ref="messages:1")))
    [found] = imported(turn)
    assert "messages:1; not found here: it is in the session that the document comes from" in found.text
    assert "My own words." not in found.text
    assert [missing.id for missing in turn.missing] == ["ref:import:ctx-1:i1"]


def test_an_item_on_two_surfaces_comes_once(home: str) -> None:
    surface = {"surface_id": "s", "scope": "turn", "created_at": BASIC["created_at"], "items": [one()]}
    data = msgspec.json.encode({**BASIC, "surfaces": [surface, {**surface, "surface_id": "t"}]})
    session = stage(home)
    assert len(imported(take_in(session, data))) == 1
    assert session.prepare().event_id


def test_a_document_that_comes_again_replaces_the_former(home: str) -> None:
    session = stage(home)
    take_in(session, document(one()))
    take_in(session, document(one(content="Tides turn at one.")))
    assert [found.text for found in imported(take_in(session, document(one())))] == ["Tides turn at noon."]
    turn = take_in(session, document(one(content="Tides turn at one.")))
    assert [found.text for found in imported(turn)] == ["Tides turn at one."]
    assert outputs(session.replay(turn.event_id or "")) == outputs(turn)


def test_words_that_do_not_match_their_digest_are_refused(home: str) -> None:
    session = stage(home)
    good = one(digest=digest_text("Tides turn at noon."))
    assert read_envelope(document(good)).verification.verified == 1
    for digest in (digest_text("Tides turn at one."), "sha256:zz", "sha256-0"):
        data = document({**good, "digest": digest})
        checked = read_envelope(data)
        assert checked.verification.verified == 0
        assert "does not match" in checked.warnings[0]
        before = logs(session)
        with pytest.raises(BadInput, match="does not match"):
            keep_envelope(session.history, data, checked)
        assert logs(session) == before
    assert not Path(session.history.layout.blob).exists()


def test_what_is_odd_is_told_and_taken(home: str) -> None:
    data = document(one(content_mode="hologram"), scope="galaxy", item_refs=["i1", "i2"])
    checked = read_envelope(data)
    assert any("galaxy" in line for line in checked.warnings)
    assert any("hologram" in line for line in checked.warnings)
    assert any("i2" in line for line in checked.warnings)
    assert imported(take_in(stage(home), data))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b"null",
        b'{"context_id":5}',
        b"[" * 5000,
        b'{"context_id":""}',
        b'{"context_id":"\\ud800"}',
    ],
)
def test_what_is_no_envelope_is_refused(data: bytes) -> None:
    with pytest.raises(BadInput, match="read envelope"):
        read_envelope(data)


def test_a_document_that_turns_could_not_use_is_refused_at_once(home: str) -> None:
    session = stage(home)
    data = document(one(priority=5e-324, title="t"), one(item_id="b", priority=1.0))
    keep_envelope(session.history, data, read_envelope(data))
    checked = read_envelope(document(one()))
    unusable = msgspec.structs.replace(checked.items[0], content="\ud800")
    with pytest.raises(BadInput):
        keep_envelope(session.history, document(one()), msgspec.structs.replace(checked, items=(unusable,)))


def test_a_kept_document_that_is_lost_is_missed(home: str) -> None:
    session = stage(home)
    turn = take_in(session, document(one()))
    digest = next(event.data["digest"] for event in session.events() if event.type == IMPORTED)
    Path(session.history.layout.blob, digest.replace(":", "-")).unlink()
    later = session.prepare()
    assert imported(later) == []
    [missing] = later.missing
    assert (missing.id, missing.severity, missing.requested) == (f"import:{digest[7:15]}", "medium", digest)
    assert outputs(session.replay(turn.event_id or "")) == outputs(turn)


def test_the_line_about_an_imported_reference_has_its_title_once(home: str) -> None:
    fields: dict[str, Any] = {"content": None, "content_mode": "ref", "content_ref": "s3://docs/kiel.pdf"}
    turn = take_in(stage(home), document(one(title="Guide to Kiel", **fields)))
    [found] = imported(turn)
    assert found.text.startswith("Guide to Kiel (document_excerpt): s3://docs/kiel.pdf")
    assert str(turn.request("openai")).count("imported from") == 1


@pytest.mark.requirement("S3-O1", "S3-H1")
def test_a_handoff_of_one_session_is_read_by_another(home: str) -> None:
    giver, taker = stage(home), stage(home, "taker")
    giver.pin("system", "Never tell.")
    converse(giver, 3)
    giver.append("user", "Please hand this over.")
    giver.put_child("rev", result="The reef is charted.")
    data = encode(export(giver.turns, "handoff"))
    checked = read_envelope(data)
    assert checked.warnings == ()
    assert checked.verification.verified == len(checked.verification.comparisons) > 2 * len(checked.items) > 12
    turn = take_in(taker, data)
    assert "Please hand this over." in sent(turn)
    assert "The reef is charted." in sent(turn)
    assert "Never tell." not in sent(turn)
    assert taker.prepare(items=[item()]).event_id


def test_items_beyond_the_share_of_imports_are_recorded_as_one_omission(home: str) -> None:
    session = stage(home)
    items = (one(item_id=f"i{number}", content=f"Tide table {number}: " + "ebb and flow " * 80) for number in range(20))
    data = document(*items)
    session.append_event(IMPORTED, keep_envelope(session.history, data, read_envelope(data)))
    session.append("user", "When do the tides turn?")
    turn = session.prepare(budget=8000)
    shown = len(imported(turn))
    assert 0 < shown < 20
    [omission] = [omission for omission in turn.omitted if omission.item == "import:ctx-1"]
    assert (omission.reason, omission.note) == ("budget_limit", f"{20 - shown} items")


FOREIGN = Path(__file__).parents[1] / "conformance" / "foreign.json"


@pytest.mark.requirement("S3-K0", "S3-V0", "S3-H1")
def test_a_document_with_kinds_targets_and_fields_of_others_is_taken_as_it_is(home: str) -> None:
    data = FOREIGN.read_bytes()
    checked = read_envelope(data)
    assert checked.verification.differences == ()
    for term in ("sensor_reading", "wall_display", "galactic", "stream", "whispered"):
        assert any(term in line for line in checked.warnings), term
    session = stage(home)
    turn = take_in(session, data)
    [found] = imported(turn)
    assert (found.context_kind, found.kind) == ("sensor_reading", "custom")
    assert found.visibility == ("model", "wall_display")
    assert reasons(turn)["import:orbit-7:note-2"] == "not_visible_to_target"
    assert data in [blob.read_bytes() for blob in Path(session.history.layout.blob).glob("sha256-*")]
    [again] = [one for one in turn.envelope.surfaces[0].items if one.item_id == "import:orbit-7:reading-1"]
    assert (again.context_kind, again.visibility) == ("sensor_reading", ("model", "wall_display"))
    assert (again.content_mode, again.redaction_state) == ("stream", "whispered")
    assert [source["source_kind"] for source in msgspec.to_builtins(again.source_refs)] == ["telemetry"]


def test_fields_that_are_missing_are_warnings(home: str) -> None:
    data = msgspec.json.encode({"context_id": "c", "surfaces": [{"items": [{"item_id": "i", "content": "Ebb."}]}]})
    checked = read_envelope(data)
    for field in ("lifecycle", "scope", "surface_id", "context_kind", "content_mode"):
        assert any(f"requires {field}" in line for line in checked.warnings), field
    assert any("no visibility is stated" in line for line in checked.warnings)
    turn = take_in(stage(home), data)
    assert imported(turn) == []
    assert reasons(turn)["import:c:i"] == "not_visible_to_target"


def test_fields_that_only_describe_are_ignored_where_they_cannot_be_read(home: str) -> None:
    sources: list[Any] = [{"uri": "x://y", "authority": "web", "selector": {"start": 1}, "modified_at": 5}, "elsewhere"]
    data = document(one(title=5, token_estimate="many", priority=None, byte_size=-1, source_refs=sources))
    checked = read_envelope(data)
    for field in ("title", "token_estimate", "byte_size", "source_refs[0].selector", "source_refs[0].modified_at"):
        path = f"$.surfaces[0].items[0].{field}"
        assert any(line.startswith(path) and line.endswith("; ignored") for line in checked.warnings), field
    [found] = imported(take_in(stage(home), data))
    assert (found.text, found.authority) == ("Tides turn at noon.", "web")


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"item_id": 5}, "item_id"),
        ({"content": 5}, "content"),
        ({"visibility": "model"}, "visibility"),
        ({"visibility": [5]}, "visibility[0]"),
        ({"context_kind": []}, "context_kind"),
        ({"sensitivity": 1}, "sensitivity"),
        ({"redaction_state": True}, "redaction_state"),
        ({"freshness": 7}, "freshness"),
        ({"trust_level": {}}, "trust_level"),
        ({"metadata": "x"}, "metadata"),
        ({"source_refs": {}}, "source_refs"),
        ({"source_refs": [{"uri": "x", "authority": 5}]}, "source_refs[0].authority"),
    ],
)
def test_a_needed_field_of_the_wrong_type_refuses_the_document_with_its_path(fields: dict[str, Any], path: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_envelope(document(one(), one(item_id="j") | fields), "given.json")
    assert caught.value.place == f"given.json $.surfaces[0].items[1].{path}"


@pytest.mark.parametrize("lists", [{"surfaces": {}}, {"events": [1]}, {"surfaces": [{"items": 5}]}])
def test_a_list_that_is_none_refuses_the_document(lists: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="must"):
        read_envelope(msgspec.json.encode({**BASIC, **lists}))


def test_an_id_that_names_two_things_refuses_the_document() -> None:
    with pytest.raises(BadInput, match=r"'i1' is used twice, first in \$\.surfaces\[0\]\.items\[0\]"):
        read_envelope(document(one(), one(content="Other words.")))
    budget = {"budget_id": "b", "target": "model", "created_at": BASIC["created_at"]}
    with pytest.raises(BadInput, match="'b' is used twice"):
        read_envelope(document(one(), budgets=[budget, {**budget, "max_tokens": 5}]))


def test_whole_numbers_may_be_written_with_a_fraction_of_zero(home: str) -> None:
    source = {"source_id": "s", "uri": "x://y", "source_kind": "web", "selector": {"type": "range", "start": 3.0}}
    given = one(token_estimate=12.0, byte_size=48120.0, priority=1.0, source_refs=[source])
    checked = read_envelope(document(given))
    assert (checked.items[0].token_estimate, checked.items[0].byte_size) == (12, 48120)
    assert imported(take_in(stage(home), document(given)))


def test_a_document_beyond_every_size_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daypack.turn.conformance.document.MAX_CHARS", 1 << 20)
    with pytest.raises(BadInput, match="larger than 1 Mi characters"):
        read_envelope(document(one(content="x" * (1 << 20))))
