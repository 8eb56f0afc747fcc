"""What a review broke once: threads that fold at once, forks, cut secrets, epochs that forgot, and strange servers."""

import os
import signal
import threading

import msgspec
import pytest
from scripted_endpoint import Endpoint, Reply
from turn.compacting import check_files, fill, scene, step
from turn.scenes import stage

from daypack.errors import SourceMissing
from daypack.history.layout import Home
from daypack.turn.ledger import Ledger
from daypack.upkeep.rebuild import verify

TOKEN = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


def test_two_threads_that_read_at_once_fold_every_event_once(home: str) -> None:
    session = stage(home)
    step(session, 0)
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            with pytest.raises(SourceMissing):
                session.recall("zz1")

    readers = [threading.Thread(target=look) for _ in range(2)]
    try:
        for reader in readers:
            reader.start()
        for number in range(1, 12):
            step(session, number)
            session.append("user", "Next?")
            session.compact(keep_tokens=30)
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    names = [one.id for one in session.compactions]
    assert len(names) == len(set(names)) == 11
    assert len(Ledger(session.history).read().compactions) == 11


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_of_a_fork_is_not_kept_waiting_by_a_thread_of_its_parent(home: str) -> None:
    session = scene(home)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with session.turns._threads:  # pyright: ignore[reportPrivateUsage]
            held.set()
            done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(30)
    child = os.fork()
    if not child:
        signal.alarm(20)
        try:
            session.prepare(budget=6000, dry_run=True)
        except BaseException:
            os._exit(1)
        os._exit(0)
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("before", [90, 120, 125, 140, 150])
def test_a_secret_in_a_childs_answer_is_not_cut_in_half(home: str, before: int) -> None:
    session = scene(home)
    session.put_child("rev", handoff="Deploy it.", result=f"Deployed:{'x' * before}={TOKEN} and done")
    session.compact(keep_tokens=300)
    refs = (session.path / "context" / "refs.jsonl").read_text()
    assert "result of child rev" in refs
    for length in range(10, len(TOKEN)):
        assert TOKEN[:length] not in refs


def test_a_server_that_points_nowhere_is_a_loss_and_no_crash(home: str) -> None:
    with Endpoint(lambda _: Reply(b"", 307, {"Location": "http://[bad"})) as endpoint, scene(home) as session:
        done = session.compact(model=f"openai:{endpoint.url}/v1#m", keep_tokens=300)
    assert done.changed
    assert [one.reason for one in done.losses][:1] == ["unread"]


def test_undo_and_rebuild_leave_what_verify_expects(home: str) -> None:
    session = scene(home)
    for number in (1, 2):
        session.append("assistant", "", tool_calls=[{"id": f"d{number}", "name": "cat", "arguments": "{}"}])
        session.append("tool", "the same long line\n" * 400, tool_call_id=f"d{number}")
    session.append("user", "And?")
    session.compact(keep_tokens=100)
    place = Home(home, session.path.parts[-5])
    for act in (session.undo, lambda: session.compact(keep_tokens=100), session.undo):
        act()
        assert verify(place, session.agent, session.name, session.history.config) == ()
        check_files(session)


@pytest.mark.requirement("S4-CP1")
@pytest.mark.parametrize("reason", ["first", "budget_changed"])
def test_an_epoch_that_begins_too_small_for_everything_compacts_as_well(home: str, reason: str) -> None:
    session = stage(home)
    for number in range(60):
        step(session, number)
    session.append("user", "What is left to do?")
    if reason != "first":
        session.prepare(budget=200_000)
        session.append("user", "And now?")
    turn = session.prepare(budget=9000)
    assert turn.new_epoch == reason
    [compaction] = session.compactions
    assert compaction.through == turn.parts.epoch.start - 1
    assert any(one.kind == "context_doc" for one in turn.parts.epoch.prefix)
    assert not [one for one in turn.omitted if one.reason == "budget_limit" and one.item.startswith("messages:")]
    assert session.replay(turn.event_id or "").messages() == turn.messages()


def test_in_a_window_that_is_too_small_for_it_a_first_turn_does_not_compact(home: str) -> None:
    session = stage(home)
    for number in range(20):
        step(session, number)
    session.append("user", "What is left to do?")
    session.prepare(budget=3000)
    assert session.compactions == ()


def test_records_are_not_told_as_left_out_when_context_md_says_them(home: str) -> None:
    session = stage(home)
    turn, _ = fill(session, 1)
    assert not {"summary", "facts", "decisions", "todo", "errors"} & {one.item for one in turn.omitted}
    assert len(msgspec.json.encode(turn.record.omitted)) < 2000


def test_compacting_by_hand_lets_messages_leave_also_when_stubs_would_make_all_of_them_fit(home: str) -> None:
    session = stage(home)
    for number in range(12):
        step(session, number, lines=200)
    session.append("user", "What is left to do?")
    before = session.prepare(budget=48_000)
    made = session.compact()
    assert made.changed, made.problem
    assert 1 < made.kept_from <= len(session.messages())
    assert session.prepare(budget=48_000).tokens < before.tokens // 2
