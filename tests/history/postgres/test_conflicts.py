"""Two workers with one session: each sees what the other did, and nothing is stored twice, lost or reverted."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from history.postgres.workers import Workers, check_same, interrupted, replay_all, texts

import daypack
from daypack.errors import BadName, KeyConflict
from daypack.session import Session

LONG = "A long text that is stored as a blob. " * 200


def test_each_worker_sees_what_the_other_appended(workers: Workers) -> None:
    one, other = workers.pair()
    for number in range(6):
        (one, other)[number % 2].append("user", f"message {number}")
    assert texts(one) == texts(other) == [f"message {number}" for number in range(6)]
    assert [event.type for event in one.events()] == [event.type for event in other.events()]
    check_same(one, other)


def test_each_worker_sees_what_the_other_did(workers: Workers) -> None:
    one, other = workers.pair()
    one.pin("goal", "Ship it.")
    assert other.pins == {"goal.md": "Ship it."}
    other.pin("goal", LONG)
    assert one.pins == {"goal.md": LONG}
    assert one.unpin("goal")
    assert other.pins == {}
    other.set_budget(9_000)
    assert one.turns.budget_text == other.turns.budget_text == "9000\n"
    one.put_child("scout", handoff="Look.", result=LONG)
    (child,) = other.children
    assert child.result == LONG
    other.put_child("scout", result="Nothing there.")
    assert [child.result for child in one.children] == ["Nothing there."]
    one.set_state("done")
    assert other.state == "done"
    rule = other.add_rule("Always answer in English.")
    assert [known.id for known in one.rules()] == [rule.id]
    question = one.add_question("Which port?")
    other.resolve_question(question, answer="8080")
    assert one.turns.inputs.ledger.read().questions == {}
    check_same(one, other)


def test_each_worker_sees_the_compactions_of_the_other(workers: Workers) -> None:
    one, other = workers.pair()
    for number in range(60):
        one.append("user" if number % 2 == 0 else "assistant", f"message {number} " + "on the harbour " * 60)
    one.append("user", "And now?")
    one.compact(keep_tokens=500)
    assert [made.id for made in other.compactions] == [made.id for made in one.compactions] != []
    (undone,) = one.compactions
    turn = other.prepare(budget=16_000)
    assert other.undo() == undone
    assert one.compactions == ()
    assert one.replay(turn.event_id or "").pack_json == turn.pack_json
    check_same(one, other)


def test_a_pin_of_another_worker_is_never_reverted(workers: Workers) -> None:
    one, other = workers.pair()
    one.append("user", "Hello.")
    one.pin("goal", "first")
    one.prepare(budget=8_000)
    other.prepare(budget=8_000)
    other.pin("goal", "second")
    other.pin("more", LONG)
    one.prepare(budget=8_000)
    assert one.pins == other.pins == {"goal.md": "second", "more.md": LONG}
    assert other.unpin("goal")
    one.prepare(budget=8_000)
    assert other.pins == {"more.md": LONG}
    kinds = Counter(event.type for event in other.events())
    assert (kinds["pin.set"], kinds["pin.removed"]) == (3, 1)
    check_same(one, other)


def test_a_worker_can_unpin_what_another_has_just_pinned(workers: Workers) -> None:
    one, other = workers.pair()
    assert one.pins == {}
    other.pin("goal", "Ship it.")
    assert one.unpin("goal")
    assert not one.unpin("goal")
    assert not other.unpin("goal")
    check_same(one, other)


def test_a_client_key_is_stored_once_by_any_worker(workers: Workers) -> None:
    one, other = workers.pair()
    stored = one.append("user", "Hello.", client_key="k1")
    assert other.append("user", "Hello.", client_key="k1") == stored
    both = [{"role": "user", "content": "Hello.", "client_key": "k1"}, {"role": "user", "content": "New."}]
    assert [message.seq for message in other.append_many(both)] == [1, 2]
    with interrupted(1, lambda: other.append("user", "Again.", client_key="k2")):
        answer = one.append("user", "Again.", client_key="k2")
    assert (answer.seq, texts(one)) == (3, ["Hello.", "New.", "Again."])
    check_same(one, other)


def test_a_client_key_of_another_worker_with_another_payload_is_refused(workers: Workers) -> None:
    one, other = workers.pair()
    one.append("user", "Hello.", client_key="k1")
    with pytest.raises(KeyConflict, match="'k1' was already used"):
        other.append("user", "Bye.", client_key="k1")
    with (
        interrupted(1, lambda: other.append("user", "theirs", client_key="k2")),
        pytest.raises(KeyConflict, match="'k2' was already used"),
    ):
        one.append("user", "mine", client_key="k2")
    assert texts(one) == ["Hello.", "theirs"]
    check_same(one, other)


def _work(session: Session) -> None:
    """Do everything that appends."""
    session.append("user", "Hello.", client_key="hello")
    calls = [{"id": "c1", "name": "read", "arguments": '{"path": "a.py"}'}]
    session.append("assistant", None, tool_calls=calls)
    session.append("tool", LONG, tool_call_id="c1")
    session.append_many([{"role": "assistant", "content": f"part {number}"} for number in range(3)])
    session.pin("goal", "Ship it.")
    session.pin("goal", LONG)
    session.pin("plan", "Test first.")
    session.unpin("plan")
    session.set_budget("16k")
    session.put_child("scout", handoff="Look.", result=LONG)
    session.put_child("scout", result="Nothing there.")
    session.set_state("idle")
    session.set_state("active")
    rule = session.add_rule("Always answer in English.")
    session.pin_rule(rule.id)
    session.add_question("Which port?")
    session.switch("protocol", on=True)
    session.append_event("build.done", {"seconds": 3})
    session.append("user", "What is the port of the harbour?")
    session.prepare(tools=[{"name": "read", "description": LONG, "input_schema": {"type": "object"}}])
    session.accept("It is 8080.", {"prompt_tokens": 10, "completion_tokens": 3})
    session.append("user", "And of the glacier?")
    session.prepare(items=[{"context_kind": "manual_note", "content": LONG}])
    session.accept("It has none.")
    session.drop_rule(rule.id)


def _done(session: Session, by: str) -> tuple[list[tuple[str, str]], Counter[str]]:
    """Return what the session has of the work, and how many events of each kind; without what `by` added."""
    messages = [(message.role, message.text) for message in session.messages() if by not in message.text]
    added = ("intruder", "pin.set")  # a turn may mention them
    kinds = Counter(event.type for event in session.events() if event.type not in added or by not in repr(event.data))
    return messages, kinds


INTERFERENCES: dict[str, Callable[[Session, int], object]] = {
    "a message": lambda session, number: session.append("user", f"intruder {number}"),
    "an event": lambda session, number: session.append_event("intruder", {"by": f"intruder {number}"}),
    "a pin": lambda session, number: session.pin(f"intruder-{number}", f"intruder {number} {LONG}"),
    "both": lambda session, number: (
        session.append_event("intruder", {"by": f"intruder {number}"}),
        session.append("user", f"intruder {number}"),
    ),
}


@pytest.mark.parametrize("interference", INTERFERENCES)
def test_whatever_another_worker_appends_in_between_everything_is_done_once(
    workers: Workers, interference: str
) -> None:
    with interrupted(0, lambda: None) as count:
        plain = workers.open("a", "plain")
        _work(plain)
        appends = next(count)
    expected = _done(plain, "intruder")
    assert appends > 25
    for at in range(1, appends + 1):
        one, other = workers.pair(f"work-{at}")
        with interrupted(at, lambda other=other, at=at: INTERFERENCES[interference](other, at)):
            _work(one)
        assert _done(one, "intruder") == expected, at
        assert _done(other, "intruder") == expected, at
        assert replay_all(one) == replay_all(other), at
        check_same(one, other)
        workers.close()


def test_a_name_that_differs_in_case_is_refused_by_every_worker(workers: Workers) -> None:
    workers.open("a", "Work")
    for worker in ("a", "b"):
        for name in ("work", "WORK"):
            with pytest.raises(BadName, match="differs from the existing 'Work'"):
                workers.open(worker, name)
    workers.open("a", "Straße")
    with pytest.raises(BadName, match="'Straße'"):
        workers.open("b", "strasse")
    assert workers.open("b", "Work").name == "Work"
    assert workers.open("b", "work", agent="other").name == "work"


def test_the_progress_of_a_capture_does_not_revert_a_binding(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYPACK_EMBEDDING_MODEL", "none")
    one, other = workers.pair()
    with daypack.open_memory(home=one.layout.root, url=workers.url) as memories:
        first, second = (memories.create_memory(name).memory_id for name in ("first", "second"))
    one.bind_memory(first)
    one.append("user", "The launch moved to August.")
    write_meta = one.history.facets.write_meta

    def rebound(changes: Mapping[str, Any], **options: Any) -> None:
        other.bind_memory(second)
        write_meta(changes, **options)

    with monkeypatch.context() as patched:
        patched.setattr(one.history.facets, "write_meta", rebound)
        assert len(one.capture()) == 1
    assert one.meta["memory"] == other.meta["memory"]
    assert one.meta["memory"]["memory_id"] == second
    one.capture()
    assert other.meta["memory"]["captured_through"] == 1
