"""`daypack undo`: the newest compaction, or a named one, is undone by appending."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from turn.compacting import check_files, document_of, step

import daypack
from daypack.session import Session

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def talk(command: Command, home: str) -> Iterator[Session]:
    """A session that was compacted twice."""
    command("session", "new", "talk", "--model", "gpt-4o")
    with daypack.open_session("talk", home=home, durability="os") as session:
        for number in range(24):
            step(session, number)
            if number in (11, 23):
                session.append("user", "What is left to do?")
                assert session.compact(keep_tokens=1000).changed
        yield session


def test_the_newest_is_taken_back_and_what_counts_now_is_told(command: Command, talk: Session) -> None:
    first, second = talk.compactions
    messages = Path(talk.history.layout.messages).read_bytes()
    events = Path(talk.history.layout.events).read_bytes()
    done = command("undo", "talk")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"{second.id} ({second.source}) is undone",
        f"{first.id} is active now: the window starts after message {first.through}",
    ]
    assert command("undo", "talk").stdout.splitlines() == [
        f"{first.id} ({first.source}) is undone",
        "no compaction is active now: all messages can be in the window again",
    ]
    assert document_of(talk) == ""
    assert Path(talk.history.layout.messages).read_bytes() == messages
    assert Path(talk.history.layout.events).read_bytes().startswith(events)
    check_files(talk)


def test_a_named_one_is_taken_back_with_what_was_built_on_it(command: Command, talk: Session) -> None:
    first, second = talk.compactions
    told = json.loads(command("undo", "talk", second.id, "--json").stdout)
    assert told == {"undone": second.id, "source": second.source, "current": first.id}
    assert [one.id for one in talk.compactions] == [first.id]
    told = json.loads(command("undo", "talk", first.id, "--json").stdout)
    assert told == {"undone": first.id, "source": first.source, "current": None}


def test_the_older_one_takes_the_newer_one_with_it(command: Command, talk: Session) -> None:
    first, _ = talk.compactions
    told = json.loads(command("undo", "talk", first.id, "--json").stdout)
    assert told == {"undone": first.id, "source": first.source, "current": None}
    assert talk.compactions == ()


@pytest.mark.parametrize(
    ("args", "text"), [(("ev-99",), "no compaction ev-99 is in effect"), (("x\x1b",), "x\\x1b is in effect")]
)
def test_one_that_does_not_stand_is_refused(command: Command, talk: Session, args: tuple[str, ...], text: str) -> None:
    first, second = talk.compactions
    count = len(talk.events())
    done = command("undo", "talk", *args)
    assert (done.returncode, done.stdout) == (1, "")
    assert text in done.stderr
    assert f"there are {first.id}, {second.id}" in done.stderr
    assert len(talk.events()) == count


def test_nothing_is_taken_back_twice(command: Command, talk: Session) -> None:
    command("undo", "talk")
    command("undo", "talk")
    count = len(talk.events())
    done = command("undo", "talk")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no compaction" in done.stderr
    assert len(talk.events()) == count


def test_a_session_that_is_not_there_is_told(command: Command) -> None:
    done = command("undo", "none")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no such session" in done.stderr
