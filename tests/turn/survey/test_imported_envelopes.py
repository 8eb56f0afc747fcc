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
    assert "Tides turn" not in turn.system


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
    [b"", b"[]", b"{}", b"\xff", b"null", b'{"context_id":5}', b"[" * 5000, document(one(context_kind="gossip"))],
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
    assert checked.verification.verified == checked.verification.compared > 2 * len(checked.items) > 12
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
