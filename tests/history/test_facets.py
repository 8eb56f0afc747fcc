"""The small files beside the logs."""

import json
import shutil
from pathlib import Path

import pytest

import daypack
from daypack.config import Config
from daypack.errors import BadConfig, BadInput
from daypack.history.creation import create
from daypack.history.layout import Home
from daypack.history.session import History
from daypack.session import Session
from daypack.types.history import Event, Message


def read(session: Session, name: str) -> str:
    return (session.path / name).read_text(encoding="utf-8")


def fresh(session: Session) -> Session:
    return daypack.open_session(session.name, home=session.layout.root)


@pytest.mark.requirement("G17", "S4-F8")
def test_meta_says_whose_session_it_is_and_keeps_count(home: str) -> None:
    with daypack.open_session("talk", agent="coder", home=home, model="gpt-4o") as session:
        session.append("user", "x")
        session.append("user", "y")
        session.append_event("z", {})
        session.history.close()
        assert json.loads(read(session, "meta.json")) == session.meta
    meta = json.loads(read(session, "meta.json"))
    assert (meta["agent"], meta["session"], meta["scope"], meta["model"]) == ("coder", "talk", "session", "gpt-4o")
    assert meta["client"] == f"daypack/{daypack.__version__}"
    assert meta["tokenizer"] == "o200k_base"
    assert meta["protocols"] == {"history": "1"}
    assert meta["counters"] == {"messages": 2, "events": 1}


def test_keys_that_others_put_into_meta_stay(session: Session) -> None:
    path = session.path / "meta.json"
    path.write_text(json.dumps({**session.meta, "mine": [1]}), encoding="utf-8")
    session.append("user", "x")
    session.close()
    meta = fresh(session).meta
    assert meta["mine"] == [1]
    assert meta["counters"]["messages"] == 1


def test_a_meta_that_cannot_be_read_is_not_written_over(session: Session) -> None:
    (session.path / "meta.json").write_bytes(b'{"model": "gpt-4o", "oops"')
    opened = fresh(session)
    opened.append("user", "x")
    opened.close()
    assert (session.path / "meta.json").read_bytes() == b'{"model": "gpt-4o", "oops"'


def test_a_tokenizer_that_is_no_name_is_refused(session: Session) -> None:
    (session.path / "meta.json").write_text('{"tokenizer": 5}', encoding="utf-8")
    with pytest.raises(BadConfig, match="tokenizer is 5"):
        fresh(session)


def test_a_session_of_an_unknown_format_is_refused(session: Session) -> None:
    session.append("user", "x")
    session.close()
    (session.path / "meta.json").write_text('{"protocols": {"history": "2"}}', encoding="utf-8")
    with pytest.raises(BadConfig, match="history format '2'"):
        fresh(session)


def test_latest_is_the_newest_text_whichever_process_closes_last(session: Session) -> None:
    other = fresh(session)
    session.append("assistant", "one")
    session.append("assistant", "two")  # waits: the file was written less than a second ago
    other.append("assistant", "three")
    other.close()
    session.close()
    assert read(session, "latest.md") == "three"


def test_pins_come_back_before_another_is_pinned(session: Session) -> None:
    session.pin("a", "one")
    shutil.rmtree(session.path / "context")
    session.pin("b", "two")
    assert session.pins == {"a.md": "one", "b.md": "two"}


@pytest.mark.filterwarnings("ignore::daypack.errors.DamageWarning")
def test_a_pin_that_cannot_be_had_again_does_not_take_the_others_with_it(session: Session) -> None:
    session.pin("a", "one")
    session.pin("big", "x" * 10_000)
    session.append_event("pin.set", {"text": "no name"})
    session.append_event("pin.set", {"name": "odd.md", "text": 7})
    session.close()
    shutil.rmtree(session.path / "blob")
    shutil.rmtree(session.path / "context")
    assert fresh(session).pins == {"a.md": "one"}


def test_pins_made_by_hand_are_read_under_their_names(session: Session) -> None:
    session.pin("a", "text")
    (session.path / "context" / "pinned" / "README").write_text("by hand", encoding="utf-8")
    (session.path / "context" / "pinned" / "folder").mkdir()
    assert session.pins == {"README": "by hand", "a.md": "text"}
    assert session.unpin("README")
    assert session.pins == {"a.md": "text"}


@pytest.mark.requirement("X27")
def test_a_session_with_nothing_but_its_logs_opens_and_gets_its_meta_back(session: Session) -> None:
    session.append("user", "x")
    session.close()
    for name in ("latest.md", "state", "cwd", "created_at", "updated_at", "meta.json"):
        (session.path / name).unlink(missing_ok=True)
    opened = fresh(session)
    assert [message.text for message in opened.messages()] == ["x"]
    assert opened.state == "active"
    assert opened.meta["session"] == "work"


@pytest.mark.requirement("G17", "S4-F4")
def test_the_state_changes_with_an_event(session: Session) -> None:
    assert session.state == "active"
    for state in ("idle", "done", "error", "cancelled", "active"):
        session.set_state(state)
        assert session.state == state
        assert read(session, "state") == f"{state}\n"
    assert next(event.data for event in session.events()) == {"from": "active", "to": "idle"}
    with pytest.raises(BadInput, match="asleep"):
        session.set_state("asleep")  # type: ignore[arg-type]
    assert session.state == "active"
    assert len(session.events()) == 5


@pytest.mark.requirement("S4-F3")
def test_latest_is_the_newest_assistant_text(session: Session) -> None:
    session.append("assistant", "first")
    assert read(session, "latest.md") == "first"
    session.append("assistant", "second")
    session.append("user", "a question")
    session.append("assistant", "", tool_calls=[{"id": "c", "name": "f"}])
    session.close()
    assert read(session, "latest.md") == "second"


def test_latest_is_brought_up_to_date_when_a_session_is_forgotten(home: str) -> None:
    session = daypack.open_session("work", home=home)
    session.append("assistant", "first")
    session.append("assistant", "second")
    path = session.path
    del session
    assert (path / "latest.md").read_text(encoding="utf-8") == "second"


@pytest.mark.requirement("S4-F6", "S4-F7")
def test_times_are_those_of_the_first_and_the_newest_append(home: str) -> None:
    layout = Home(home, "u").session("default", "work")
    times = iter([1_700_000_000.5, 1_700_000_061.9, 1_700_000_100.0])
    create(layout, {}, clock=lambda: next(times))
    path = Path(layout.folder)

    def read(name: str) -> str:
        return (path / name).read_text(encoding="utf-8")

    assert read("created_at") == read("updated_at") == "2023-11-14T22:13:20Z\n"
    history = History(layout, Config(), clock=lambda: next(times))
    history.append((Message(role="user", content="x"),))
    assert read("updated_at") == "2023-11-14T22:14:21Z\n"
    history.append_event(Event(type="x"))
    assert read("updated_at") == "2023-11-14T22:15:00Z\n"
    assert read("created_at") == "2023-11-14T22:13:20Z\n"


def test_a_half_made_session_is_completed(home: str) -> None:
    session = daypack.open_session("work", home=home)
    (Path(session.path) / "meta.json").unlink()
    (Path(session.path) / "events.jsonl").unlink()
    session.close()
    opened = daypack.open_session("work", home=home)
    opened.append_event("x", {})
    assert opened.meta["agent"] == "default"


def test_events_that_record_what_was_shown_do_not_make_a_session_newer(home: str) -> None:
    with daypack.open_session("talk", home=home) as session:
        session.append("user", "hello")
        dated = session.path / "updated_at"
        dated.write_text("2020-01-01T00:00:00Z\n")
    with daypack.open_session("talk", home=home) as session:
        session.prepare(budget=8000)
        assert dated.read_text() == "2020-01-01T00:00:00Z\n"
        session.append_event("note", {"text": "deployed"})
        assert dated.read_text() > "2026"
