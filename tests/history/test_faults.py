"""A fault at any file call of an append: nothing acknowledged is lost, the error is clear, the next run is clean."""

import errno
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from campaigns import Campaign
from faults import ERRORS, Fault, Faults, calls_of, injected, mac

import daypack
from daypack.errors import DaypackError
from daypack.session import Session
from daypack.upkeep.doctor import examine_session

Acknowledge = Callable[[str], None]


def scenario(home: str, acknowledge: Acknowledge) -> None:
    """Make a session and use every way to write to it; each content is acknowledged when its append returns."""
    with daypack.open_session("work", home=home) as session:
        session.append("user", "first")
        acknowledge("first")
        session.append("assistant", "second", client_key="k")
        acknowledge("second")
        session.append_many([{"role": "user", "content": f"batch {number}"} for number in range(3)])
        for number in range(3):
            acknowledge(f"batch {number}")
        session.append("assistant", "fourth", tool_calls=[{"id": "c1", "name": "run", "arguments": "{}"}])
        acknowledge("fourth")
        session.append("tool", "fifth", tool_call_id="c1")
        acknowledge("fifth")
        session.pin("rules", "Be brief. " * 1000)
        session.append("user", "third" * 50)
        acknowledge("third" * 50)


def calls_of_scenario(folder: Path) -> list[str]:
    return calls_of(lambda: scenario(str(folder / "counting"), lambda _: None))


def reopened(home: str) -> Session:
    """Open the session as the next run would, and use it."""
    session = daypack.open_session("work", home=home)
    session.append("user", "next run")
    return session


def check(home: str, acknowledged: list[str]) -> None:
    with reopened(home) as session:
        messages = list(session.messages())
        contents = [message.text for message in messages]
        assert [content for content in acknowledged if content not in contents] == []
        assert [message.seq for message in messages] == list(range(1, len(messages) + 1))
        assert contents[-1] == "next run"
        assert session.damage == []
        assert [one for one in examine_session(session.history.layout) if one.severity == "damage"] == []
        assert len({message.client_key for message in messages if message.client_key}) <= 1
        assert sum(content == "second" for content in contents) <= 1
        described = [event.data["message"] for event in session.events() if event.type.startswith("tool.")]
        assert described == [message.id for message in messages if message.tool_calls or message.role == "tool"]


def run_with(faults: Faults, home: str) -> list[str]:
    acknowledged: list[str] = []
    with injected(faults):
        try:
            scenario(home, acknowledged.append)
        except DaypackError as error:
            told = bool(error.operation and error.place and error.hint)
        else:
            told = True
    assert told
    return acknowledged


@pytest.mark.requirement("G7", "S4-R2")
@pytest.mark.parametrize("persistent", [False, True], ids=["once", "persistent"])
@pytest.mark.parametrize("code", ERRORS, ids=[*map(os.strerror, ERRORS)])
def test_an_error_at_any_call_loses_nothing_acknowledged(
    tmp_path: Path, code: int, persistent: bool, campaign: Campaign
) -> None:
    calls = calls_of_scenario(tmp_path)
    assert len(calls) * len(ERRORS) * 2 >= 1000
    for at in campaign.calls("faults", calls):
        home = str(tmp_path / str(at))
        acknowledged = run_with(Faults(at, "error", code, persistent=persistent), home)
        check(home, acknowledged)
        shutil.rmtree(home)


@pytest.mark.requirement("G7")
@pytest.mark.parametrize("persistent", [False, True], ids=["completed", "then full"])
def test_a_short_write_is_completed_or_rolled_back(tmp_path: Path, persistent: bool, campaign: Campaign) -> None:
    for at in campaign.calls("faults", calls_of_scenario(tmp_path)):
        home = str(tmp_path / str(at))
        acknowledged = run_with(Faults(at, "short", persistent=persistent), home)
        check(home, acknowledged)
        shutil.rmtree(home)


@pytest.mark.requirement("G6", "G7")
def test_a_kill_at_any_call_loses_nothing_acknowledged(tmp_path: Path, campaign: Campaign) -> None:
    for at in campaign.calls("kills", calls_of_scenario(tmp_path)):
        home = str(tmp_path / str(at))
        acknowledged = run_killed(at, "kill", home)
        check(home, acknowledged)
        shutil.rmtree(home)


def run_killed(at: int, fault: Fault, home: str) -> list[str]:
    """Run the scenario in a child that dies at a call; return what it had acknowledged."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        real_write = os.write

        def acknowledge(content: str) -> None:
            real_write(writing, f"{content}\n".encode())

        with injected(Faults(at, fault)):
            scenario(home, acknowledge)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        acknowledged = pipe.read().decode().splitlines()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) in (0, -signal.SIGKILL)
    return acknowledged


@pytest.mark.requirement("G7")
@pytest.mark.parametrize("refusal", [None, errno.ENOTSUP], ids=["full sync", "refused by the file system"])
def test_a_failed_sync_on_macos_loses_nothing_acknowledged(
    tmp_path: Path, refusal: int | None, campaign: Campaign
) -> None:
    with mac(refusal) as synced:
        calls = calls_of_scenario(tmp_path)
        assert "fdatasync" not in calls
        assert bool(synced) == ("fsync" not in calls) == (refusal is None)
        syncs = [at + 1 for at, name in enumerate(calls) if name in ("fcntl", "fsync")]
        for chosen in campaign.calls("faults", [calls[at - 1] for at in syncs]):
            at = syncs[chosen - 1]
            home = str(tmp_path / str(at))
            faults = Faults(at, "error", errno.EIO)
            acknowledged = run_with(faults, home)
            assert faults.hit
            check(home, acknowledged)
            shutil.rmtree(home)
