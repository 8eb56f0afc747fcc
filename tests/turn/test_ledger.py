"""The ledger is a fold of the events: it may be gone, old or broken, and nobody's event can stop turns."""

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from turn.scenes import converse, item, logs, outputs, release, stage, turn_events

from daypack.session import Session
from daypack.turn.ledger import SAVE_EVERY, Ledger


def folded(session: Session) -> Any:
    return msgspec.to_builtins(Ledger(session.history).read())


def furnished(home: str) -> Session:
    session = stage(home)
    session.set_budget(4000)
    session.pin("system", "You are a pilot.")
    session.switch("voice", on=True)
    session.add_question("Who pays?")
    converse(session, 3)
    session.append("user", "And now?")
    session.prepare()
    return session


def path_of(session: Session) -> Path:
    return Path(session.history.layout.derived("ledger"))


def test_it_says_what_the_events_say(home: str) -> None:
    session = furnished(home)
    session.prepare(target="user")
    found = folded(session)
    model, user = turn_events(session)
    assert found["turns"]["model"]["event"] == found["turns"]["model"]["opening"] == model.id
    assert found["turns"]["user"]["event"] == user.id
    assert found["budget"] == "4000\n"
    assert found["switches"] == {"voice": True}
    assert list(found["pins"]) == ["system.md"]
    assert [one["question"] for one in found["questions"].values()] == ["Who pays?"]
    session.unpin("system")
    session.switch("voice", on=False)
    session.resolve_question(next(iter(found["questions"])), answer="Anna.")
    later = folded(session)
    assert "pins" not in later
    assert "questions" not in later
    assert later["switches"] == {"voice": False}


def test_it_goes_on_where_it_stopped_and_comes_to_the_same(home: str) -> None:
    session = furnished(home)
    session.turns.inputs.ledger.save(always=True)
    session.pin("style", "Briefly.")
    session.prepare()
    kept = folded(session)
    path_of(session).unlink()
    assert folded(session) == kept


def test_it_is_saved_now_and_then_and_never_needed(home: str) -> None:
    session = stage(home)
    session.append("user", "Hi")
    for _ in range(SAVE_EVERY + 1):
        session.prepare()
    saved = msgspec.json.decode(path_of(session).read_bytes())
    assert saved["seq"] >= SAVE_EVERY
    assert saved["turns"]["model"]["opening"] == turn_events(session)[0].id


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"seq":"many"}',
        b'{"seq":1,"turns":{"model":5}}',
        b'{"seq":999999,"crc":1,"switches":{"pirate":true}}',
        b'{"seq":3,"crc":1,"switches":{"pirate":true}}',
        b'{"seq":-4,"switches":{"pirate":true}}',
        b'{"seq":0,"switches":{"pirate":true}}',
    ],
)
def test_a_broken_or_foreign_ledger_is_folded_anew(home: str, data: bytes) -> None:
    session = furnished(home)
    right = folded(session)
    release(session)
    path_of(session).write_bytes(data)
    fresh = stage(home)
    assert folded(fresh) == right
    turn = fresh.prepare()
    assert turn.new_epoch == ""
    assert "pirate" not in turn.pack_md
    assert outputs(fresh.replay(turn.event_id or "")) == outputs(turn)


def test_the_ledger_of_another_session_is_not_believed(home: str) -> None:
    session = furnished(home)
    other = stage(home, "other")
    other.add_question("Whose is this?")
    for number in range(20):
        other.pin(f"p{number}", "x")
    other.append("user", "Hi")
    other.prepare()
    other.turns.inputs.ledger.save(always=True)
    release(session)
    for name in range(30):
        session.append_event("note", {"number": name})
    right = folded(session)
    path_of(session).parent.mkdir(exist_ok=True)
    shutil.copy(path_of(other), path_of(session))
    assert folded(stage(home)) == right


def test_a_link_in_its_place_is_not_followed(home: str, tmp_path: Path) -> None:
    session = furnished(home)
    right = folded(session)
    path_of(session).unlink(missing_ok=True)
    (tmp_path / "x").write_text("{}")
    path_of(session).symlink_to(tmp_path / "x")
    assert folded(session) == right


FORGED: list[tuple[str, dict[str, Any]]] = [
    ("context.turn", {}),
    ("context.turn", {"target": "model"}),
    ("context.turn", {"target": ["model"], "stable": {}}),
    ("context.turn", {"target": "nobody", "renderer": "1.1", "stable": {}}),
    (
        "context.turn",
        {
            "target": "model",
            "renderer": "1.1",
            "epoch": "ev-77",
            "stable": {"tokens": 5, "prefix_tokens": 5, "prefix_sha256": "x"},
        },
    ),
    (
        "context.turn",
        {
            "target": "model",
            "renderer": "1.1",
            "opening": {"items": "many"},
            "stable": {"tokens": 5, "prefix_tokens": 5, "prefix_sha256": "x"},
        },
    ),
    ("context.turn", {"target": "model", "renderer": "1.1", "epoch": "ev-1", "stable": {"tokens": "x"}}),
    ("pin.set", {"name": ["x"], "digest": 5}),
    ("pin.set", {"name": "x"}),
    ("pin.removed", {"name": {"a": 1}}),
    ("context.budget", {"text": 5}),
    ("context.budget", {}),
    ("context.switch", {"name": "../../etc/passwd", "on": True}),
    ("context.switch", {"name": 5, "on": True}),
    ("context.switch", {"name": "voice", "on": "perhaps"}),
    ("context.missing.requested", {"missing_id": "q", "question": "?", "requested_from": {"a": 1}}),
    ("context.missing.requested", {"missing_id": ["q"], "question": "?"}),
    ("context.missing.detected", {"question": "?"}),
    ("context.missing.resolved", {}),
    ("context.missing.resolved", {"missing_id": ["q"]}),
    ("context.imported", {"digest": "sha256:abc"}),
    ("context.imported", {"digest": None}),
    ("child.updated", {"name": "../x", "result": {"text": "x"}}),
    ("context.usage", {"turn": 5}),
]


@pytest.mark.parametrize("number", range(len(FORGED)))
@pytest.mark.filterwarnings("ignore::daypack.errors.DamageWarning")
def test_an_event_of_another_writer_does_not_stop_turns(home: str, number: int) -> None:
    session = furnished(home)
    kind, data = FORGED[number]
    session.append_event(kind, data)
    before = logs(session)
    fresh = stage(home)
    turn = fresh.prepare(items=[item()])
    again = fresh.prepare(items=[item()])
    assert outputs(fresh.replay(turn.event_id or "")) == outputs(turn)
    assert again.new_epoch == ""
    assert logs(fresh)[0] == before[0]
    assert logs(fresh)[1].startswith(before[1])
    shutil.rmtree(fresh.history.layout.context)
    assert fresh.prepare().event_id


def test_an_envelope_event_that_names_no_envelope_is_missed(home: str) -> None:
    session = furnished(home)
    digest = session.append_event("note", session.history.capture(b"x" * 5000)).data["digest"]
    session.append_event("context.imported", {"digest": digest})
    turn = session.prepare()
    assert [one.id for one in turn.missing if one.id.startswith("import:")] == [f"import:{digest[7:15]}"]
