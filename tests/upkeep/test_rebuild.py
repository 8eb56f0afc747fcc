"""A deleted context/ folder is rebuilt byte for byte, and nothing is appended to the logs."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from turn.scenes import Clock, close_all, converse, digest, excerpts_in, item, logs, outputs, stage, turn_events

from daypack.errors import DamageWarning, DaypackError
from daypack.history.layout import Home
from daypack.session import Session
from daypack.turn.turn import Turn
from daypack.types.records import Ref
from daypack.upkeep.rebuild import Rebuilt, rebuild, verify


@pytest.fixture(autouse=True)
def _closed_sessions() -> Iterator[None]:
    yield
    close_all()


def full_session(home: str, workspace: Path) -> Session:
    """Return a session with pins, children, a budget, switches, questions, items, history and several epochs."""
    workspace.mkdir(exist_ok=True)
    (workspace / "AGENTS.md").write_text("Ask before you sail.\n")
    clock = Clock()
    session = stage(home, clock=clock, workspace=str(workspace))
    session.set_budget(1800)
    session.pin("system", "You are a pilot.")
    session.pin("style", "Answer briefly.")
    session.switch("provenance", on=True)
    session.put_child(
        "rev-1", handoff="Chart the reef.", result="It is charted.", refs=[Ref("r1", "a.py", "file", "x")]
    )
    session.put_child("rev-2", handoff="Chart the bay.")
    session.add_question("Who pays?", requested_from="user:anna")
    converse(session, 10)
    for number in range(3):
        clock.now += 3600
        session.append("user", f"What of the glacier 1 and the violin {number}?")
        session.prepare(items=[item("tool_result", f"Wind {number}")])
        session.accept(f"Number {number}. " + "It goes on. " * 60)
    session.append("user", "And the lantern 4, what of it?")
    clock.now += 60
    return session


@pytest.fixture
def full(home: str, tmp_path: Path) -> Session:
    return full_session(home, tmp_path / "workspace")


def delete(session: Session) -> None:
    shutil.rmtree(session.layout.context)


def run(session: Session) -> Rebuilt:
    return rebuild(session.history, session.turns)


def files(session: Session) -> tuple[bytes, bytes]:
    layout = session.layout
    return Path(layout.derived("pack")).read_bytes(), Path(layout.derived("pack_text")).read_bytes()


@pytest.mark.requirement("T1", "S4-R1", "S4-R4", "S4-R6", "S4-PK10", "S4-PK11", "S4-SR2", "S4-G1")
@pytest.mark.parametrize("reopened", [False, True])
def test_a_deleted_context_is_rebuilt_byte_for_byte_and_the_logs_are_unchanged(
    full: Session, *, reopened: bool
) -> None:
    turn = full.prepare(items=[item("tool_result", "Wind: five knots.")])
    assert turn.omitted
    assert excerpts_in(turn)
    before, packed, written = logs(full), files(full), outputs(turn)
    session, workspace = full, full.turns.inputs.workspace
    if reopened:
        full.close()
    delete(full)
    if reopened:
        session = stage(str(full.path.parents[5]), workspace=workspace)
    built = run(session)
    assert files(session) == packed == (turn.pack_json, turn.pack_md.encode())
    assert outputs(session.replay(turn.event_id or "")) == written
    assert [digest(log) for log in logs(session)] == [digest(log) for log in before]
    assert built == Rebuilt(
        messages=27,
        events=len(session.events()),
        pins=2,
        children=2,
        compactions=len(session.compactions),
        budget=True,
        pack=turn.event_id,
    )


@pytest.mark.requirement("T1")
@pytest.mark.parametrize("rebuilding", [False, True])
def test_the_next_turn_is_the_same_whether_context_was_deleted_or_not(
    full: Session, tmp_path: Path, *, rebuilding: bool
) -> None:
    """Two copies of a session at the same time; one of them loses its context."""
    clock, workspace = full.history.clock, full.turns.inputs.workspace
    full.close()
    turns: list[Turn] = []
    for name in ("kept", "deleted"):
        shutil.copytree(full.path.parents[5], tmp_path / name)
        session = stage(str(tmp_path / name), clock=clock, workspace=workspace)
        if name == "deleted":
            delete(session)
            if rebuilding:
                run(session)
        turns.append(session.prepare(items=[item("tool_result", "Wind: five knots.")]))
        session.accept("It is lit.")
        session.append("user", "What of the orchard 2 and the harbour 5?")
        turns.append(session.prepare())
    kept, later, again, last = turns
    assert outputs(kept) == outputs(again)
    assert outputs(later) == outputs(last)
    assert kept.event_id == again.event_id


def test_hand_edits_survive_once_a_turn_has_recorded_them(full: Session, tmp_path: Path) -> None:
    """A budget, a new pin and a removed pin survive deletion of the context folder."""
    layout = full.layout
    Path(layout.derived("budget")).write_text("2200")
    Path(layout.pin("extra")).write_text("Mind the gap.")
    Path(layout.pin("style")).unlink()
    first = full.prepare()
    delete(full)
    again = full.prepare()
    assert first.budget_tokens == again.budget_tokens == 2200
    assert full.pins == {"system.md": "You are a pilot.", "extra.md": "Mind the gap."}
    assert [item.id for item in again.parts.volatile if "changed" in item.id] == [
        item.id for item in first.parts.volatile if "changed" in item.id
    ]


def test_hand_edits_are_recorded_once(full: Session) -> None:
    Path(full.layout.pin("extra")).write_text("Mind the gap.")
    full.prepare()
    count = len(full.events())
    full.prepare()
    assert [event.type for event in full.events(count + 1)] == ["context.turn"]


def test_existing_files_are_not_replaced(full: Session) -> None:
    Path(full.layout.derived("budget")).write_text("900")
    run(full)
    assert Path(full.layout.derived("budget")).read_text() == "900"
    assert full.pins.keys() == {"system.md", "style.md"}


def test_a_session_without_a_turn_has_no_pack_to_rebuild(home: str) -> None:
    session = stage(home)
    session.append("user", "Hello")
    built = run(session)
    assert built == Rebuilt(messages=1, events=0, pins=0, children=0, compactions=0, budget=False, pack=None)
    assert not Path(session.layout.derived("pack")).exists()


def test_an_empty_session_can_be_rebuilt(home: str) -> None:
    assert run(stage(home)).messages == 0


def test_only_the_model_has_a_pack_on_disk(home: str) -> None:
    session = stage(home)
    session.append("user", "Hello")
    session.prepare(target="reviewer")
    assert run(session).pack is None
    model = session.prepare()
    session.prepare(target="user")
    delete(session)
    assert run(session).pack == model.event_id


def test_a_turn_that_cannot_be_replayed_is_reported_and_the_rest_is_rebuilt(full: Session) -> None:
    turn = full.prepare()
    delete(full)
    for path in Path(full.layout.blob).iterdir():
        path.unlink()
    with stage(str(full.path.parents[5])) as session:
        built = run(session)
    assert built.pack is None
    assert "is gone" in (built.problem or "")
    assert built.pins == 2
    with pytest.raises(DaypackError):
        full.turns.replay(turn.event_id or "")


def test_a_forged_turn_does_not_prevent_the_rebuild_of_the_newest_real_one(full: Session) -> None:
    turn = full.prepare()
    full.append_event("context.turn", {"target": "model", "stable": {"tokens": "many"}})
    full.append_event("context.turn", {"hello": "world"})
    delete(full)
    assert run(full).pack == turn.event_id
    assert files(full) == (turn.pack_json, turn.pack_md.encode())


def test_a_rebuild_leaves_a_torn_line_to_the_next_append(full: Session) -> None:
    full.prepare()
    path = Path(full.layout.messages)
    with path.open("ab") as file:
        file.write(b'{"seq":99,"role":"us')
    before = logs(full)
    delete(full)
    with stage(str(full.path.parents[5])) as session:
        run(session)
        assert logs(session) == before


def test_the_rebuilt_ledger_equals_the_original(full: Session) -> None:
    full.prepare()
    full.turns.inputs.ledger.save(always=True)
    path = Path(full.layout.derived("ledger"))
    original = msgspec.json.decode(path.read_bytes())
    delete(full)
    run(full)
    assert msgspec.json.decode(path.read_bytes()) == original
    assert original["turns"]["model"]["event"] == turn_events(full)[-1].id


def verified(session: Session) -> dict[str, str]:
    """Return the differences that `verify` reports: path -> problem."""
    differences = verify(place_of(session), session.agent, session.name, session.history.config)
    return {difference.path: difference.problem for difference in differences}


def test_verify_compares_every_file_and_changes_nothing(full: Session) -> None:
    full.prepare()
    assert full.compactions
    before = {path: path.read_bytes() for path in full.path.rglob("*") if path.is_file()}
    assert verified(full) == {}
    assert {path: path.read_bytes() for path in full.path.rglob("*") if path.is_file()} == before


def test_verify_reports_edited_and_missing_files(full: Session) -> None:
    full.prepare()
    layout = full.layout
    Path(layout.derived("context_doc")).write_text("# Context\n\nSomething else.\n")
    Path(layout.derived("facts")).unlink()
    Path(layout.derived("pack")).unlink()  # this one may have been collected
    assert verified(full) == {"context/CONTEXT.md": "content differs", "context/facts.jsonl": "missing"}
    run(full)
    assert verified(full) == {}


def test_verify_reports_that_the_newest_turn_cannot_be_replayed(full: Session) -> None:
    turn = full.prepare()
    full.append("user", "And then?")  # damage in the newest line could be a torn write
    full.history.close()
    lines = Path(full.layout.messages).read_bytes()
    last = turn.parts.messages[-1].text.encode()
    Path(full.layout.messages).write_bytes(lines.replace(last, last[::-1]))
    with pytest.warns(DamageWarning):
        found = verified(full)
    assert list(found) == ["context/pack.json"]


def place_of(session: Session) -> Home:
    return session.layout.home


@pytest.mark.parametrize("name", ["cwd", "state", "blob/pipe", "messages.jsonl.torn-1"])
def test_a_pipe_in_a_session_is_named_and_not_waited_for(full: Session, name: str) -> None:
    full.prepare()
    config = full.history.config
    close_all()
    path = full.path / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    with pytest.raises(DaypackError, match="pipe") as caught:
        verify(place_of(full), full.agent, full.name, config)
    assert name in caught.value.place


@pytest.mark.parametrize("removed", [None, 7, "swap", [1, {}]])
def test_a_hand_written_event_does_not_break_a_verification(full: Session, removed: object) -> None:
    full.prepare()
    full.append_event("gc.applied", {"removed": removed} if removed is not None else {})
    assert verify(place_of(full), full.agent, full.name, full.history.config) == ()
