"""Everything under context/ can go and comes back, byte for byte, without a line added to the logs."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from turn.scenes import Clock, close_all, converse, digest, item, logs, outputs, stage, turn_events

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


def furnish(home: str, workspace: Path) -> Session:
    """A session with pins, children, a budget, switches, questions, items, a past and several epochs."""
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
    session.add_question("Who pays?", requested_from="Anna")
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
def furnished(home: str, tmp_path: Path) -> Session:
    return furnish(home, tmp_path / "workspace")


def delete(session: Session) -> None:
    shutil.rmtree(session.history.layout.context)


def run(session: Session) -> Rebuilt:
    return rebuild(session.history, session.turns)


def files(session: Session) -> tuple[bytes, bytes]:
    layout = session.history.layout
    return Path(layout.derived("pack")).read_bytes(), Path(layout.derived("pack_text")).read_bytes()


@pytest.mark.requirement("T1", "S4-R1", "S4-R4", "S4-R6", "S4-PK10", "S4-PK11", "S4-SR2", "S4-G1")
@pytest.mark.parametrize("anew", [False, True])
def test_a_deleted_context_comes_back_byte_for_byte_and_the_logs_stay(furnished: Session, *, anew: bool) -> None:
    turn = furnished.prepare(items=[item("tool_result", "Wind: five knots.")])
    assert turn.omitted
    assert any(one.span for one in turn.parts.volatile)
    before, packed, written = logs(furnished), files(furnished), outputs(turn)
    session = furnished
    if anew:
        furnished.close()
    delete(furnished)
    if anew:
        session = stage(str(furnished.path.parents[5]), workspace=furnished.turns.inputs.workspace)
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
    furnished: Session, tmp_path: Path, *, rebuilding: bool
) -> None:
    """Two copies of one session at one time; one of them loses its context."""
    clock, workspace = furnished.history.clock, furnished.turns.inputs.workspace
    furnished.close()
    turns: list[Turn] = []
    for name in ("kept", "deleted"):
        shutil.copytree(furnished.path.parents[5], tmp_path / name)
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


def test_hand_edits_count_after_a_turn_has_seen_them(furnished: Session, tmp_path: Path) -> None:
    """A budget, a pin written and a pin removed by hand survive the folder they were made in."""
    layout = furnished.history.layout
    Path(layout.derived("budget")).write_text("2200")
    Path(layout.pin("extra")).write_text("Mind the gap.")
    Path(layout.pin("style")).unlink()
    first = furnished.prepare()
    delete(furnished)
    again = furnished.prepare()
    assert first.budget_tokens == again.budget_tokens == 2200
    assert furnished.pins == {"system.md": "You are a pilot.", "extra.md": "Mind the gap."}
    assert [one.id for one in again.parts.volatile if "changed" in one.id] == [
        one.id for one in first.parts.volatile if "changed" in one.id
    ]


def test_taking_in_hand_edits_happens_once(furnished: Session) -> None:
    Path(furnished.history.layout.pin("extra")).write_text("Mind the gap.")
    furnished.prepare()
    count = len(furnished.events())
    furnished.prepare()
    assert [event.type for event in furnished.events(count + 1)] == ["context.turn"]


def test_what_is_there_already_is_not_replaced(furnished: Session) -> None:
    Path(furnished.history.layout.derived("budget")).write_text("900")
    run(furnished)
    assert Path(furnished.history.layout.derived("budget")).read_text() == "900"
    assert furnished.pins.keys() == {"system.md", "style.md"}


def test_a_session_without_a_turn_has_no_pack_to_rebuild(home: str) -> None:
    session = stage(home)
    session.append("user", "Hello")
    built = run(session)
    assert built == Rebuilt(messages=1, events=0, pins=0, children=0, compactions=0, budget=False, pack=None)
    assert not Path(session.history.layout.derived("pack")).exists()


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


def test_a_turn_that_cannot_be_made_again_is_told_and_the_rest_is_built(furnished: Session) -> None:
    turn = furnished.prepare()
    delete(furnished)
    for path in Path(furnished.history.layout.blob).iterdir():
        path.unlink()
    with stage(str(furnished.path.parents[5])) as session:
        built = run(session)
    assert built.pack is None
    assert "is gone" in (built.problem or "")
    assert built.pins == 2
    with pytest.raises(DaypackError):
        furnished.turns.replay(turn.event_id or "")


def test_a_forged_turn_does_not_keep_the_newest_real_one_from_being_rebuilt(furnished: Session) -> None:
    turn = furnished.prepare()
    furnished.append_event("context.turn", {"target": "model", "stable": {"tokens": "many"}})
    furnished.append_event("context.turn", {"hello": "world"})
    delete(furnished)
    assert run(furnished).pack == turn.event_id
    assert files(furnished) == (turn.pack_json, turn.pack_md.encode())


def test_a_rebuild_leaves_a_torn_line_to_the_next_append(furnished: Session) -> None:
    furnished.prepare()
    path = Path(furnished.history.layout.messages)
    with path.open("ab") as file:
        file.write(b'{"seq":99,"role":"us')
    before = logs(furnished)
    delete(furnished)
    with stage(str(furnished.path.parents[5])) as session:
        run(session)
        assert logs(session) == before


def test_the_rebuilt_ledger_is_the_one_that_was(furnished: Session) -> None:
    furnished.prepare()
    furnished.turns.inputs.ledger.save(always=True)
    path = Path(furnished.history.layout.derived("ledger"))
    former = msgspec.json.decode(path.read_bytes())
    delete(furnished)
    run(furnished)
    assert msgspec.json.decode(path.read_bytes()) == former
    assert former["turns"]["model"]["event"] == turn_events(furnished)[-1].id


def verified(session: Session) -> dict[str, str]:
    """What `verify` says of a session: path -> problem."""
    root = str(session.path.parents[5])
    place = Home(root, session.path.parts[-5])
    found = verify(place, session.agent, session.name, session.history.config)
    return {one.path: one.problem for one in found}


def test_verify_compares_every_file_and_changes_nothing(furnished: Session) -> None:
    furnished.prepare()
    assert furnished.compactions
    before = {path: path.read_bytes() for path in furnished.path.rglob("*") if path.is_file()}
    assert verified(furnished) == {}
    assert {path: path.read_bytes() for path in furnished.path.rglob("*") if path.is_file()} == before


def test_verify_names_what_was_edited_and_what_is_gone(furnished: Session) -> None:
    furnished.prepare()
    layout = furnished.history.layout
    Path(layout.derived("context_doc")).write_text("# Context\n\nSomething else.\n")
    Path(layout.derived("facts")).unlink()
    Path(layout.derived("pack")).unlink()  # this one may have been collected
    assert verified(furnished) == {"context/CONTEXT.md": "says something else", "context/facts.jsonl": "is missing"}
    run(furnished)
    assert verified(furnished) == {}


def test_verify_tells_when_the_newest_turn_cannot_be_made_again(furnished: Session) -> None:
    turn = furnished.prepare()
    furnished.close()
    lines = Path(furnished.history.layout.messages).read_bytes()
    last = turn.parts.messages[-1].text.encode()
    Path(furnished.history.layout.messages).write_bytes(lines.replace(last, last[::-1]))
    with pytest.warns(DamageWarning):
        found = verified(furnished)
    assert list(found) == ["context/pack.json"]
