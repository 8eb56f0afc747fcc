"""The history of a session: what is appended is read back, in order, whatever happens to context/."""

import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import daypack
from daypack.errors import BadMessage, Damaged, KeyConflict, SessionMissing, StorageFailed
from daypack.history.draft import draft_from
from daypack.history.session import History
from daypack.session import Session
from daypack.types.history import Image, Message, Text, ToolCall


def fresh(session: Session, **settings: Any) -> Session:
    return daypack.open_session(session.name, home=session.layout.root, **settings)


@pytest.mark.requirement("G5", "S4-F1")
def test_a_message_is_read_back_as_it_was_returned(session: Session) -> None:
    calls = [{"id": "c1", "name": "read", "arguments": '{"path": "a.py"}'}]
    returned = [
        session.append("system", "Be brief."),
        session.append("user", [{"type": "text", "text": "look"}, {"type": "image", "source": "a.png"}], name="ada"),
        session.append("assistant", None, tool_calls=calls, meta={"model": "m", "cost": 0.5}),
        session.append("tool", "print('hi')", tool_call_id="c1", client_key="k"),
    ]
    assert list(session.messages()) == returned
    assert list(fresh(session).messages()) == returned
    assert [(one.seq, one.id, one.role) for one in returned] == [
        (1, "msg-1", "system"),
        (2, "msg-2", "user"),
        (3, "msg-3", "assistant"),
        (4, "msg-4", "tool"),
    ]
    assert returned[1].content == (Text("look"), Image("a.png"))
    assert returned[2].tool_calls == (ToolCall("c1", "read", '{"path": "a.py"}'),)


@pytest.mark.requirement("G6", "S4-F2", "X26")
def test_an_event_is_read_back_as_it_was_returned(session: Session) -> None:
    event = session.append_event("tool.failed", {"message": "msg-1", "code": 7, "list": [1, {"a": None}]}, run="run-1")
    assert list(session.events()) == [event]
    assert (event.seq, event.id, event.type, event.run) == (1, "ev-1", "tool.failed", "run-1")


text = st.text(st.characters(exclude_categories=("Cs",)), max_size=200)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4), max_leaves=12
)
parts = st.fixed_dictionaries({"type": st.just("text"), "text": text}) | st.fixed_dictionaries(
    {"type": text.filter(bool), "payload": values}
)
names = text.filter(bool)
calls = st.lists(st.fixed_dictionaries({"id": names, "name": names, "arguments": text}), max_size=3)


def drafts_of(*roles: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    given = {"role": st.sampled_from(roles), "content": text | st.lists(parts, max_size=3)}
    return st.fixed_dictionaries(
        given, optional={"meta": st.dictionaries(text, values, max_size=3), "name": names, **fields}
    )


drafts = drafts_of("system", "user") | drafts_of("assistant", tool_calls=calls) | drafts_of("tool", tool_call_id=names)


@pytest.mark.requirement("S4-R2", "S4-SR1")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    batch=st.lists(drafts, min_size=1, max_size=5), torn=st.binary(max_size=60).filter(lambda tail: b"\n" not in tail)
)
def test_anything_appended_is_read_back_under_any_torn_tail(
    session: Session, batch: list[dict[str, Any]], torn: bytes
) -> None:
    before = list(session.messages())
    with (session.path / "messages.jsonl").open("ab") as file:
        file.write(torn)
    assert list(fresh(session).messages()) == before
    stored = session.history.append([draft_from(draft) for draft in batch])
    assert list(session.messages()) == [*before, *stored]
    assert list(fresh(session).messages()) == [*before, *stored]


@pytest.mark.requirement("G6")
def test_a_torn_tail_is_moved_aside_and_told_in_an_event(session: Session) -> None:
    session.append("user", "one")
    log = session.path / "messages.jsonl"
    with log.open("ab") as file:
        file.write(b'{"seq":2,"id":"msg-2","ts":"2026')
    reader = fresh(session)
    assert [message.text for message in reader.messages()] == ["one"]
    session.append("user", "two")
    assert [message.text for message in reader.messages()] == ["one", "two"]
    assert (session.path / "messages.jsonl.torn-1").read_bytes() == b'{"seq":2,"id":"msg-2","ts":"2026'
    event = list(session.events())[-1]
    assert event.type == "log.torn"
    assert event.data["file"] == "messages.jsonl.torn-1"
    assert event.data["bytes"] == 32


def test_a_whole_line_that_lacks_only_its_end_is_kept(session: Session) -> None:
    session.append("user", "one")
    session.append("user", "two")
    log = session.path / "messages.jsonl"
    log.write_bytes(log.read_bytes()[:-1])
    assert session.append("user", "three").seq == 3
    assert [message.text for message in session.messages()] == ["one", "two", "three"]
    assert not (session.path / "messages.jsonl.torn-1").exists()


def test_a_torn_tail_found_twice_is_kept_once(session: Session) -> None:
    log = session.path / "messages.jsonl"
    for _ in range(2):
        with log.open("ab") as file:
            file.write(b"same")
        session.append("user", "x")
    assert sorted(path.name for path in session.path.glob("*.torn-*")) == ["messages.jsonl.torn-1"]


@pytest.mark.requirement("G7")
def test_a_client_key_repeated_with_its_payload_gives_the_first_answer(session: Session) -> None:
    first = session.append("user", "pay 5", client_key="k1", meta={"a": 1})
    session.append("user", "something else")
    assert session.append("user", "pay 5", client_key="k1", meta={"a": 1}) == first
    assert fresh(session).append("user", "pay 5", client_key="k1", meta={"a": 1}) == first
    assert len(session.messages()) == 2


@pytest.mark.requirement("G7")
def test_a_client_key_with_another_payload_is_refused_and_writes_nothing(session: Session) -> None:
    session.append("user", "pay 5", client_key="k1")
    before = (session.path / "messages.jsonl").read_bytes()
    for batch in (
        [{"role": "user", "content": "pay 6", "client_key": "k1"}],
        [{"role": "user", "content": "new"}, {"role": "assistant", "content": "pay 5", "client_key": "k1"}],
        [
            {"role": "user", "content": "a", "client_key": "k2"},
            {"role": "user", "content": "b", "client_key": "k2"},
        ],
    ):
        with pytest.raises(KeyConflict) as refused:
            session.append_many(batch)
        assert "different payload" in str(refused.value)
    assert (session.path / "messages.jsonl").read_bytes() == before


def test_a_batch_may_repeat_a_key_of_its_own(session: Session) -> None:
    one = {"role": "user", "content": "a", "client_key": "k"}
    first, second = session.append_many([one, one])
    assert first == second
    assert len(session.messages()) == 1


@pytest.mark.parametrize("spoil", ["deleted", "stale", "garbage"])
def test_client_keys_survive_whatever_happens_to_their_table(session: Session, spoil: str) -> None:
    table = session.path / "context" / "offsets" / "keys.idx"
    stored = [session.append("user", f"text {number}", client_key=f"key {number}") for number in range(10)]
    early = table.read_bytes()
    stored += [session.append("user", f"text {number}", client_key=f"key {number}") for number in range(10, 700)]
    session.close()
    if spoil == "deleted":
        shutil.rmtree(session.path / "context")
    else:
        table.write_bytes(early if spoil == "stale" else os.urandom(5000))
    opened = fresh(session)
    assert [opened.append("user", one.text, client_key=one.client_key) for one in stored[::50]] == stored[::50]
    assert len(opened.messages()) == 700


@pytest.mark.requirement("S4-R1", "S4-R4", "S4-F9", "S4-SR2")
def test_deleting_context_changes_nothing_that_is_read(session: Session) -> None:
    for number in range(30):
        session.append("user", f"text {number}", client_key=f"key {number}")
    session.pin("system", "Be brief.")
    session.pin("long", "x" * 10_000)
    session.pin("gone", "y")
    session.unpin("gone")
    messages, events, pins = list(session.messages()), list(session.events()), session.pins
    hashes = [(session.path / name).read_bytes() for name in ("messages.jsonl", "events.jsonl")]
    session.close()
    shutil.rmtree(session.path / "context")
    opened = fresh(session)
    assert list(opened.messages()) == messages
    assert opened.tail(3) == tuple(messages[-3:])
    assert list(opened.events()) == events
    assert opened.pins == pins == {"long.md": "x" * 10_000, "system.md": "Be brief."}
    assert [(session.path / name).read_bytes() for name in ("messages.jsonl", "events.jsonl")] == hashes
    assert opened.append("user", "text 7", client_key="key 7") == messages[7]


@pytest.mark.requirement("S4-R9", "S4-R10", "S4-R3", "X26")
def test_nothing_that_can_be_done_to_a_session_changes_a_line_that_is_written(session: Session) -> None:
    logs = [session.path / name for name in ("messages.jsonl", "events.jsonl")]
    former = [b"", b""]

    def grown() -> None:
        now = [log.read_bytes() for log in logs]
        assert all(after.startswith(before) for after, before in zip(now, former, strict=True))
        former[:] = now

    session.append("user", "a", client_key="k")
    grown()
    session.append_many([{"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}])
    grown()
    session.append("user", "a", client_key="k")
    grown()
    session.append_event("custom", {"x": 1})
    grown()
    session.pin("p", "text")
    session.pin("p", "text 2")
    session.unpin("p")
    grown()
    session.set_state("done")
    grown()
    with pytest.raises(BadMessage):
        session.append_many([{"role": "user", "content": "fine"}, {"role": "user", "content": "\ud800"}])
    grown()
    session.close()
    fresh(session).append("user", "d")
    grown()


def test_ranges_are_numbered_from_1_and_include_both_ends(session: Session) -> None:
    session.append_many([{"role": "user", "content": str(number)} for number in range(1, 2501)])
    assert [message.text for message in session.messages(3, 5)] == ["3", "4", "5"]
    assert [message.seq for message in session.messages(2499)] == [2499, 2500]
    assert list(session.messages(2501)) == []
    assert list(session.messages(0, 1)) == list(session.messages(1, 1)) == [session.messages()[0]]
    assert len(session.messages()) == 2500
    assert session.messages()[-1].seq == session.messages(1, 2500)[2499].seq == 2500
    assert [message.seq for message in session.tail(2)] == [2499, 2500]
    assert [message.seq for message in session.messages()[-2:]] == [2499, 2500]
    with pytest.raises(IndexError):
        session.messages()[2500]
    assert session.tail(0) == ()
    assert len(session.tail(10_000)) == 2500


def test_how_many_of_the_newest_fit_is_told_by_the_counts_stored_at_append(session: Session) -> None:
    session.append_many([{"role": "user", "content": "one two three four"} for _ in range(50)])
    each = session.history.messages.reader.slots(0, 1)[0].tokens
    assert each == 4
    assert session.newest_within(each * 7) == 7
    assert session.newest_within(each * 7 - 1) == 6
    assert session.newest_within(0) == 0
    assert session.newest_within(10**9) == 50


def test_a_reader_without_a_sidecar_counts_for_itself(session: Session) -> None:
    session.append_many([{"role": "user", "content": "one two three four"} for _ in range(50)])
    session.close()
    shutil.rmtree(session.path / "context")
    assert fresh(session).newest_within(28) == 7


def test_threads_share_a_session(session: Session) -> None:
    def write(writer: int) -> None:
        for number in range(50):
            session.append("user", f"{writer} {number}")
            session.tail(3)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    messages = list(session.messages())
    assert [message.seq for message in messages] == list(range(1, 401))
    assert sorted(message.text for message in messages) == sorted(f"{a} {b}" for a in range(8) for b in range(50))


def test_a_forked_child_takes_a_lock_of_its_own(session: Session) -> None:
    session.append("user", "parent")
    child = os.fork()
    if child == 0:
        for number in range(100):
            session.append("user", f"child {number}")
        os._exit(0)
    for number in range(100):
        session.append("user", f"parent {number}")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    messages = list(fresh(session).messages())
    assert [message.seq for message in messages] == list(range(1, 202))
    assert sum(message.text.startswith("child") for message in messages) == 100


@pytest.mark.requirement("G7")
def test_a_clock_that_jumps_back_changes_neither_order_nor_ids(session: Session) -> None:
    times = iter([2e9, 1e9, 1.5e9])
    history = History(session.layout, session.history.config, clock=lambda: next(times))
    for text in ("a", "b", "c"):
        history.append((Message(role="user", content=text),))
    messages = list(session.messages())
    assert [(message.seq, message.id, message.text) for message in messages] == [
        (1, "msg-1", "a"),
        (2, "msg-2", "b"),
        (3, "msg-3", "c"),
    ]
    assert [message.ts[:4] for message in messages] == ["2033", "2001", "2017"]


def test_a_replaced_log_is_noticed_by_open_sessions(session: Session) -> None:
    session.append("user", "one")
    session.append("user", "two")
    log = session.path / "messages.jsonl"
    whole = log.read_bytes()
    other = session.path / "new"
    other.write_bytes(whole.splitlines(keepends=True)[0])
    other.replace(log)
    assert [message.text for message in session.messages()] == ["one"]
    assert session.append("user", "three").seq == 2
    assert [message.text for message in session.messages()] == ["one", "three"]


def test_a_session_that_does_not_exist_is_not_made_when_nobody_asked_for_it(home: str) -> None:
    with pytest.raises(SessionMissing) as missing:
        daypack.open_session("nothing", home=home, create=False)
    assert missing.value.hint
    assert not Path(home).exists()


def test_a_running_writer_notices_that_context_was_deleted(session: Session) -> None:
    seconds = iter([1e9, 2e9, 3e9])
    history = History(session.layout, session.history.config, clock=lambda: next(seconds))
    history.append([Message(role="user", content=str(number)) for number in range(100)])
    shutil.rmtree(session.path / "context")
    history.append([Message(role="user", content="after")])
    reader = fresh(session)
    assert reader.history.messages.reader.slots(0, 101)[-1].tokens == 1  # counted by the writer, not read off the log
    assert len(reader.messages()) == 101


def test_a_session_whose_log_was_deleted_is_not_silently_begun_anew(session: Session) -> None:
    session.append("user", "x")
    session.close()
    (session.path / "messages.jsonl").unlink()
    with pytest.raises(Damaged, match="the log is missing"):
        fresh(session)
    assert not (session.path / "messages.jsonl").exists()


def test_a_pin_that_cannot_be_recorded_is_not_pinned(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    session.pin("rules", "old")

    def fail(*_: object) -> None:
        raise StorageFailed("no")

    monkeypatch.setattr(session.history, "append_event", fail)
    for name, text in (("rules", "new"), ("other", "text")):
        with pytest.raises(StorageFailed):
            session.pin(name, text)
    assert session.pins == {"rules.md": "old"}
