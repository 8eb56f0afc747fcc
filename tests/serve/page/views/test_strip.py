"""The strip of a session: its facts, one row per call, and the compactions between them."""

from typing import Any

import msgspec
import pytest
from recorded_requests import ROW_TYPES, import_recording
from serve.page.views.looking import OTHER, look
from serve.page.views.sessions import HERE, working
from turn.compacting import fill
from turn.scenes import SECRET, stage

import daypack
from daypack.derived.children import ChildUpdate
from daypack.errors import AccessDenied, BadInput, SessionMissing
from daypack.serve.page.views.opened import OpenedHome
from daypack.turn.evidence.turn_list import newest_turns

COLUMNS = [
    *("event", "at", "kind", "target", "model", "tokens", "budget", "split", "omitted", "missing", "epoch", "break"),
    *("lost", "expected", "input", "cached", "output", "reply", "mark"),
]
PARTS = ["prefix", "pins", "memory", "summary", "records", "tail", "recalled", "volatile", "unknown"]
FACTS = {
    *("agent", "program", "session", "title", "project", "cwd", "model", "tokenizer", "state", "messages", "events"),
    *("tokens", "created_at", "updated_at", "budget_tokens", "memory", "pins", "children", "parent", "protocol"),
    *("own", "observed"),
}


def calls_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [dict(zip(answer["columns"], row, strict=True)) for row in answer["calls"]]


def test_every_turn_is_a_row(page: OpenedHome, home: str) -> None:
    session, turn = working(home)
    answer = look(page, "session", **HERE)
    assert (answer["columns"], answer["parts"], answer["from"]) == (COLUMNS, PARTS, 0)
    calls, listed = calls_of(answer), list(newest_turns(session.history))[::-1]
    assert [call["event"] for call in calls] == [each.event for each in listed]
    assert answer["total"] == len(listed)
    newest = calls[-1]
    assert (newest["event"], newest["tokens"], newest["budget"]) == (turn.event_id, turn.tokens, 6000)
    assert (newest["kind"], newest["target"], newest["input"], newest["output"]) == ("prepared", "model", 4000, 5)
    assert (newest["omitted"], newest["missing"]) == (listed[-1].omitted, listed[-1].missing)
    assert newest["break"].startswith("tools changed: +read_file")
    assert all(sum(call["split"]) == call["tokens"] for call in calls)


def test_compactions_are_folds(page: OpenedHome, home: str) -> None:
    session = stage(home)
    fill(session, 2)
    session.undo()
    answer = look(page, "session", **HERE)
    made = [event for event in session.events() if event.type == "context.compaction.completed"]
    assert [(fold["event"], fold["own"], fold["undone"]) for fold in answer["folds"]] == [
        (made[0].id, True, False),
        (made[1].id, True, True),
    ]
    fold = answer["folds"][0]
    assert set(fold) == {"event", "at", "before", "trigger", "before_tokens", "after_tokens", "undone", "own"}
    assert fold["trigger"] == "token_pressure"
    assert calls_of(answer)[fold["before"]]["epoch"] == calls_of(answer)[fold["before"]]["event"]


def test_a_page_asks_only_for_the_calls_it_lacks(page: OpenedHome, home: str) -> None:
    session, _ = working(home)
    before = look(page, "session", **HERE)
    session.append("user", "And now?")
    turn = session.prepare(budget=6000)
    new = look(page, "session", **HERE, **{"from": before["total"]})
    assert [call["event"] for call in calls_of(new)] == [turn.event_id]
    assert (new["from"], new["total"]) == (before["total"], before["total"] + 1)
    assert look(page, "session", **HERE, **{"from": 10_000})["calls"] == []
    with pytest.raises(BadInput):
        look(page, "session", **HERE, **{"from": "-1"})


def test_the_facts_of_a_session(page: OpenedHome, home: str) -> None:
    session = stage(home)
    session.pin("rules", "Be brief.")
    session.switch("protocol", on=True)
    session.set_budget(12_000)
    session.put_child("painter", ChildUpdate(handoff="Paint it."))
    session.append("user", "Paint the gate.")
    session.append("assistant", "Done.")
    stage(home, "work--mower").append("user", "Mow.")
    facts = look(page, "session", **HERE)["facts"]
    assert set(facts) == FACTS
    assert (facts["agent"], facts["session"], facts["program"]) == ("default", "work", "daypack")
    assert (facts["title"], facts["messages"], facts["events"]) == ("Paint the gate.", 2, len(session.events()))
    assert (facts["budget_tokens"], facts["pins"], facts["protocol"]) == (12_000, ["rules.md"], True)
    assert (facts["children"], facts["parent"], facts["memory"]) == (2, None, None)
    assert (facts["own"], facts["observed"]) == (False, False)
    assert look(page, "session", agent="default", session="work--mower")["facts"]["parent"] == "work"


def test_a_bound_memory_is_named_to_its_user(page: OpenedHome, home: str) -> None:
    assert page.memories is not None
    memory = page.memories.create_memory("Garden")
    session = stage(home)
    session.append("user", "Hi.")
    session.bind_memory(memory.memory_id)
    assert look(page, "session", **HERE)["facts"]["memory"] == {"id": memory.memory_id, "title": "Garden"}
    theirs = page.memories.as_user("eve").create_memory("Secret plans")
    session.bind_memory(theirs.memory_id, user="eve")
    assert look(page, "session", **HERE)["facts"]["memory"] == {"id": theirs.memory_id, "title": None}


def test_observed_calls_use_the_same_rows(page: OpenedHome, home: str) -> None:
    import_recording(home, "notes")
    import_recording(home, "older", leave_out=ROW_TYPES)
    recorded = look(page, "session", agent="default", session="notes")
    older = look(page, "session", agent="default", session="older")
    assert (recorded["facts"]["own"], recorded["facts"]["observed"]) == (False, True)
    assert [call["input"] for call in calls_of(recorded)] == [call["input"] for call in calls_of(older)]
    for call in calls_of(older):
        assert (call["kind"], call["split"][:-1], call["split"][-1]) == ("observed", [0] * 8, call["tokens"])
        assert (call["budget"], call["omitted"], call["epoch"]) == (None, None, None)
    assert {call["split"][-1] for call in calls_of(recorded)} == {0}
    [fold] = recorded["folds"]
    assert (fold["own"], fold["trigger"], fold["before"]) == (False, "manual", 6)


def test_a_growing_session_is_seen(page: OpenedHome, home: str) -> None:
    with daypack.open_session("work", home=home, durability="os", workspace="") as session:
        session.append("user", "Paint the gate.")
        assert look(page, "session", **HERE)["total"] == 0
        session.prepare(budget=4000)
        session.accept("Green?")
        (call,) = calls_of(look(page, "session", **HERE))
        assert (call["reply"], call["mark"]) == (2, None)


def test_secrets_in_names_are_replaced(page: OpenedHome, home: str) -> None:
    session = stage(home)
    for tools in ([], [{"type": "function", "function": {"name": SECRET}}]):
        session.append("user", f"The token is {SECRET}.")
        session.prepare(budget=4000, tools=tools, model=f"gpt-4o-{SECRET}")
        session.accept("Thanks.")
    answer = look(page, "session", **HERE)
    assert SECRET not in msgspec.json.encode(answer).decode()
    assert calls_of(answer)[1]["break"] == "tools changed: +[redacted:github-token]"


def test_an_unknown_session_and_another_user_are_refused(page: OpenedHome, home: str) -> None:
    stage(home).append("user", "Hi.")
    with pytest.raises(SessionMissing):
        look(page, "session", agent="default", session="absent")
    with pytest.raises(AccessDenied):
        look(page, "session", OTHER, **HERE)


def test_the_budget_of_another_program_is_unknown_until_one_is_set(page: OpenedHome, home: str) -> None:
    name = import_recording(home)
    here = {"agent": "default", "session": name}
    assert look(page, "session", **here)["facts"]["budget_tokens"] is None
    with daypack.open_session(name, home=home) as session:
        session.set_budget(9_000)
    assert look(page, "session", **here)["facts"]["budget_tokens"] == 9_000
