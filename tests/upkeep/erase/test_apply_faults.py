"""A kill or a failure at any file call of an erasure leaves the session as before or as after, for every reader."""

import errno
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import faults as faulty
import pytest
from campaigns import Campaign
from faults import Faults, calls_of, injected
from upkeep.erase.secrets import SECRET, holding, leaky, more_than_fits, place

import daypack
from daypack.errors import DaypackError, Erased
from daypack.files.rewrite import STAGING
from daypack.session import Session
from daypack.turn import prepare
from daypack.turn.pack.assemble import assemble
from daypack.upkeep.doctor import examine_session
from daypack.upkeep.erase.apply import apply
from daypack.upkeep.erase.plan import Request

WRITES = ("write", "pwrite", "fsync", "fdatasync", "ftruncate", "replace", "link", "unlink", "mkdir", "rename", "rmdir")
WORK = Request(literal=SECRET, session="work")


def opened(home: str) -> Session:
    return daypack.open_session("work", home=home, durability="sync", create=False)


def prepared(home: str) -> tuple[int, list[str]]:
    """Make the session; return its number of messages, and the turns that never showed the secret."""
    session = leaky(home)
    more_than_fits(session)
    count = len(session.messages())
    kept = [event.id for event in session.events() if event.type == "context.turn"][:1]
    session.close()
    return count, kept


def recorded_calls(home: str, folder: Path) -> list[str]:
    copy = str(folder / "counting")
    shutil.copytree(home, copy)
    calls = calls_of(lambda: apply(place(copy), WORK))
    assert holding(copy) == []
    shutil.rmtree(copy)
    return calls


def is_erased(session: Session) -> bool:
    """Return which side a session is on, after checking that both logs, all texts and the evidence agree."""
    messages = "".join(message.text + str(message.tool_calls) for message in session.messages())
    events = [event.type for event in session.events()]
    erased = "history.erased" in events
    assert ("[erased:" in messages) == erased
    assert (SECRET in messages) != erased
    for name, text in session.pins.items():
        assert ("[erased:" in text) == erased, name
    for event in session.events():
        if event.type == "context.turn":
            try:
                session.replay(event.id)
            except Erased:
                assert erased
    return erased


def check(home: str, count: int, kept: list[str]) -> bool:
    """Check the session as the next process finds it, then erase again; return on which side it was."""
    with opened(home) as session:
        erased = is_erased(session)
        assert len(session.messages()) == count
        for event in kept:
            session.replay(event)
        number = session.append("user", "What is next?").seq
        assert number == count + 1
        session.prepare(budget=8000)
        folder, layout = str(session.path), session.history.layout
    assert not os.path.exists(os.path.join(folder, STAGING))
    assert [finding for finding in examine_session(layout) if finding.severity == "damage"] == []
    assert bool(holding(folder)) != erased
    apply(place(home), WORK)
    assert holding(home) == []
    with opened(home) as session:
        assert is_erased(session)
        assert session.messages()[-1].seq == number
    assert [finding for finding in examine_session(layout) if finding.severity == "damage"] == []
    return erased


@pytest.mark.requirement("S4-R2")
def test_a_kill_at_any_write_leaves_before_or_after(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, campaign: Campaign
) -> None:
    monkeypatch.setattr(faulty, "CALLS", WRITES)
    count, kept = prepared(home)
    calls = recorded_calls(home, tmp_path)
    assert len(calls) > 40
    sides: set[bool] = set()
    for at in campaign.calls("kills", calls):
        copy = str(tmp_path / f"{at}")
        shutil.copytree(home, copy)
        child = os.fork()
        if child == 0:
            with injected(Faults(at, "kill")):
                apply(place(copy), WORK)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        sides.add(check(copy, count, kept))
        shutil.rmtree(copy)
    assert sides == {False, True}


@pytest.mark.requirement("S4-R2")
@pytest.mark.filterwarnings("ignore::daypack.errors.DamageWarning")
@pytest.mark.parametrize(("code", "persistent"), [(errno.EIO, False), (errno.ENOSPC, True)])
def test_an_error_at_any_write_is_reported_and_leaves_before_or_after(
    home: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    campaign: Campaign,
    code: int,
    *,
    persistent: bool,
) -> None:
    monkeypatch.setattr(faulty, "CALLS", WRITES)
    count, kept = prepared(home)
    failed = 0
    for at in campaign.calls("faults", recorded_calls(home, tmp_path)):
        copy = str(tmp_path / f"{at}")
        shutil.copytree(home, copy)
        with injected(Faults(at, code=code, persistent=persistent)):
            try:
                apply(place(copy), WORK)
            except DaypackError as error:
                failed += 1
                reported = bool(error.operation and error.place and error.hint)
            else:
                reported = True
        assert reported, at
        check(copy, count, kept)
        shutil.rmtree(copy)
    assert failed > 3


@pytest.mark.requirement("S4-R2")
def test_a_session_that_was_open_when_the_eraser_was_killed_loses_nothing(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, campaign: Campaign
) -> None:
    """It reads one side, appends, and what it appended is there after the erasure was completed."""
    monkeypatch.setattr(faulty, "CALLS", WRITES)
    count, _ = prepared(home)
    for at in campaign.calls("kills", recorded_calls(home, tmp_path), 2):
        copy = str(tmp_path / f"{at}")
        shutil.copytree(home, copy)
        session = opened(copy)
        assert len(session.messages()) == count
        session.append_event("mine", {"before": at})
        child = os.fork()
        if child == 0:
            with injected(Faults(at, "kill")):
                apply(place(copy), WORK)
            os._exit(0)
        os.waitpid(child, 0)
        event = session.append_event("mine", {"after": at})
        message = session.append("user", f"after the kill at {at}")
        erased = is_erased(session)
        session.close()
        with opened(copy) as again:
            assert is_erased(again) == erased
            assert again.messages()[-1].text == message.text
            assert [stored.data for stored in again.events() if stored.id == event.id] == [{"after": at}]
            assert [stored.seq for stored in again.messages()] == list(range(1, count + 2))
            assert [stored.seq for stored in again.events()] == list(range(1, len(again.events()) + 1))
        shutil.rmtree(copy)


@pytest.mark.requirement("S4-R2")
def test_writers_in_other_processes_lose_nothing_while_sessions_are_erased(home: str, campaign: Campaign) -> None:
    leaky(home).close()
    rounds = campaign.size("concurrent writes", 900, 90)
    children: list[int] = []
    for writer in range(2):
        child = os.fork()
        if child == 0:
            try:
                with opened(home) as session:
                    for number in range(rounds):
                        session.append("user", f"{writer}:{number}", client_key=f"{writer}:{number}")
                        session.append_event("written", {"number": f"{writer}:{number}"})
            except BaseException:
                os._exit(1)
            os._exit(0)
        children.append(child)
    erased = 0
    running = set(children)
    with opened(home) as session:
        while running:
            session.append("user", f"The word is {SECRET} ({erased}).")
            apply(place(home), WORK)
            assert holding(str(session.path)) == []
            erased += 1
            for child in list(running):
                found, status = os.waitpid(child, os.WNOHANG)
                if found:
                    assert os.waitstatus_to_exitcode(status) == 0
                    running.remove(child)
        messages = [message.text for message in session.messages()]
        layout = session.history.layout
        numbers = [event.data["number"] for event in session.events() if event.type == "written"]
        written = sorted(f"{writer}:{number}" for writer in range(2) for number in range(rounds))
        assert sorted(text for text in messages if text in written) == written
        assert sorted(numbers) == written
        assert [message.seq for message in session.messages()] == list(range(1, len(messages) + 1))
        assert sum("The word is [erased:" in text for text in messages) == erased
    assert erased > 1
    assert [finding for finding in examine_session(layout) if finding.severity == "damage"] == []


def test_a_turn_that_is_prepared_during_an_erasure_does_not_bring_it_back(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = leaky(home)
    session.append("user", "What was the password of the port?")
    calls = iter((True,))

    def erase_first(*args: Any) -> Any:
        if next(calls, False):  # all texts have been read by now
            apply(place(home), WORK)
        return assemble(*args)

    monkeypatch.setattr(prepare, "assemble", erase_first)
    turn = session.prepare(budget=8000)
    assert next(calls, None) is None
    assert "[erased:" in str(turn.messages("openai"))
    assert holding(home) == []
    session.replay(turn.event_id or "")
    layout = session.history.layout
    session.close()
    assert [finding for finding in examine_session(layout) if finding.severity == "damage"] == []


def test_rules_that_were_read_before_an_erasure_do_not_bring_it_back(home: str) -> None:
    with daypack.open_session("work", home=home, durability="os", workspace="") as session:
        session.append("user", f"Always answer in English. Never use the word {SECRET} in a commit message.")
        session.append("assistant", "Understood.")
        assert SECRET in "".join(rule.text for rule in session.rules())
        apply(place(home), WORK)
        assert "[erased:" in "".join(rule.text for rule in session.rules())
    assert holding(home) == []
