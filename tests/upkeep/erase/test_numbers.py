"""A literal of digits: erased from numbers too, and no setting, time or JSON text becomes unreadable."""

import json
from pathlib import Path

import pytest
from upkeep.erase.secrets import place

import daypack
from daypack.session import Session
from daypack.upkeep.doctor import examine_session
from daypack.upkeep.erase.apply import apply
from daypack.upkeep.erase.plan import Request


def erase(session: Session, home: str, literal: str) -> list[str]:
    """Erase a literal, check that the session still works, and return the reasons for what remains."""
    remaining = apply(place(home), Request(literal=literal, session="numbers")).remaining
    session.append("user", "What is next?")
    turn = session.prepare()
    for dialect in ("openai", "anthropic"):
        turn.messages(dialect)
    session.accept("Nothing.")
    assert [finding for finding in examine_session(session.history.layout) if finding.severity != "note"] == []
    return [found.reason for found in remaining]


@pytest.fixture
def session(home: str) -> Session:
    return daypack.open_session("numbers", home=home, durability="os", workspace="")


def test_numbers_of_messages_and_of_events_of_others_are_erased(session: Session, home: str) -> None:
    session.append("user", "Note it.", meta={"pin": 471147, "longer": 94711475, "share": 0.471147, "on": True})
    session.append_event("mine", {"pin": 471147})
    assert erase(session, home, "471147") == []
    for name in ("messages.jsonl", "events.jsonl"):
        assert "471147" not in (session.path / name).read_text()
    meta = session.messages()[0].meta or {}
    assert [str(meta[name])[:8] for name in ("pin", "longer", "share")] == ["[erased:"] * 3
    assert meta["on"] is True


@pytest.mark.parametrize("literal", ["471147", "pin: 47"])
def test_arguments_stay_json(session: Session, home: str, literal: str) -> None:
    session.append("user", "Unlock it.")
    arguments = '{"pin": 471147, "text": "471147", "more": "pin: 471147"}'
    session.append("assistant", "", tool_calls=[{"id": "c1", "name": "unlock", "arguments": arguments}])
    session.append("tool", "ok", tool_call_id="c1")
    erase(session, home, literal)
    changed = session.messages()[1].tool_calls[0].arguments
    assert sorted(json.loads(changed)) == ["more", "pin", "text"]
    assert "[erased:" in changed


def test_a_budget_and_the_settings_of_a_session_stay(session: Session, home: str) -> None:
    session.set_budget(471147)
    meta = json.loads((session.path / "meta.json").read_text())
    (session.path / "meta.json").write_text(json.dumps({**meta, "size": 471147, "note": "pin 471147"}))
    session.append("user", "The pin is 471147.")
    session.prepare()
    reasons = erase(session, home, "471147")
    assert reasons
    assert all("settings, which stay as they are" in reason for reason in reasons)
    assert (session.path / "context" / "budget").read_text().strip() == "471147"
    assert session.meta["size"] == 471147
    assert session.meta["note"].startswith("pin [erased:")


def test_a_date_is_erased_from_texts_and_not_from_times(session: Session, home: str) -> None:
    session.append("user", "hello")
    times = {name: Path(session.path, name).read_text() for name in ("created_at", "updated_at")}
    date = times["created_at"][:10]
    session.append("user", f"It was on {date}.")
    assert all("times" in reason for reason in erase(session, home, date))
    assert date not in session.messages()[1].text
    assert Path(session.path, "created_at").read_text() == times["created_at"]
    assert Path(session.path, "updated_at").read_text()[:10] >= date
