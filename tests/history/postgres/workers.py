"""Workers with caches of their own in one process, and one that appends at the moment that a test chooses."""

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import daypack
from daypack.history.logs.upstream import Mark
from daypack.history.postgres.cache import Cache
from daypack.session import Session
from daypack.turn.turn import Turn
from daypack.types.history import Event

SETTINGS: dict[str, Any] = {"model": "gpt-4o", "workspace": ""}
LONG = "A long text that is stored as a blob. " * 200


class Workers:
    """Opens sessions of one database, each with a folder of its own; all are closed at the end."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self._open: list[Session] = []

    def open(self, worker: str, name: str = "work", **settings: Any) -> Session:
        """Open a session as a worker: those with the same name share a folder."""
        given: dict[str, Any] = {**SETTINGS, "store": self.url, **settings}
        session = daypack.open_session(name, home=self.folder / worker, **given)
        self._open.append(session)
        return session

    def pair(self, name: str = "work") -> tuple[Session, Session]:
        """Open a session as two workers."""
        return self.open("a", name), self.open("b", name)

    def close(self) -> None:
        while self._open:
            self._open.pop().close()


def fill(session: Session, rounds: int = 6) -> None:
    """Make a session with turns, pins, blobs, a budget, children, rules and a state."""
    session.pin("goal", "Ship it.")
    session.pin("plan", LONG)
    session.set_budget(12_000)
    session.put_child("scout", handoff="Look.", result=LONG)
    session.add_rule("Always answer in English.")
    for number in range(rounds):
        session.append("user", f"question {number} about the harbour", client_key=f"k{number}")
        session.prepare(items=[{"context_kind": "manual_note", "content": f"{LONG} {number}"}])
        session.accept(f"answer {number}")
    session.unpin("goal")
    session.set_state("idle")


def logs(session: Session) -> tuple[bytes, bytes]:
    """Return the bytes of both logs of a folder that is up to date."""
    session.history.refresh()
    return Path(session.layout.messages).read_bytes(), Path(session.layout.events).read_bytes()


def texts(session: Session) -> list[str]:
    return [message.text for message in session.messages()]


def turns(session: Session) -> list[Event]:
    return [event for event in session.events() if event.type == "context.turn"]


def replay_all(session: Session) -> list[tuple[bytes, str]]:
    """Replay every turn, which checks its digests, and return what each gives out."""
    return [given_out(session.replay(event.id)) for event in turns(session)]


def given_out(turn: Turn) -> tuple[bytes, str]:
    return turn.pack_json, turn.pack_md


def check_same(*sessions: Session) -> None:
    """Check that all workers have the same session, and that it is whole."""
    first = logs(sessions[0])
    for session in sessions:
        assert logs(session) == first
        assert [message.seq for message in session.messages()] == list(range(1, len(session.messages()) + 1))
        assert [event.seq for event in session.events()] == list(range(1, len(session.events()) + 1))
        assert session.damage == []
        assert (session.pins, session.state) == (sessions[0].pins, sessions[0].state)
        assert session.children == sessions[0].children
        assert session.turns.budget_text == sessions[0].turns.budget_text
        assert session.compactions == sessions[0].compactions
        assert session.rules() == sessions[0].rules()
    for data in first:
        assert data.count(b',"crc":"') == data.count(b"\n")


@contextmanager
def interrupted(at: int, interfere: Callable[[], object]) -> Generator[Iterator[int]]:
    """Call `interfere` before append number `at`, from 1, reaches the database; yields the number of appends so far."""
    number, busy, real = 0, False, Cache.append

    def append(self: Cache, path: str, place: Mark, data: bytes, crc: int) -> None:
        nonlocal number, busy
        if not busy:
            number += 1
            if number == at:
                busy = True
                interfere()
                busy = False
        real(self, path, place, data, crc)

    def count() -> Iterator[int]:
        while True:
            yield number

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Cache, "append", append)
        yield count()


def remove_cache(session: Session) -> None:
    """Delete the folder of a closed session."""
    for parent, folders, files in os.walk(session.layout.folder, topdown=False):
        for name in files:
            os.unlink(os.path.join(parent, name))
        for name in folders:
            os.rmdir(os.path.join(parent, name))
    os.rmdir(session.layout.folder)
