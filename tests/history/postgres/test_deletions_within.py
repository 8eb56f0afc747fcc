"""The folder of a session may be deleted at any moment within an operation, and begun to be made by another process."""

import shutil
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from history.postgres.workers import Workers, check_same, replay_all, texts

from daypack.derived.children import ChildUpdate
from daypack.files import atomic
from daypack.history.creation import require_stored
from daypack.history.logs.reader import Reader
from daypack.history.postgres.folder import make_folder
from daypack.history.postgres.stored import StoredSession
from daypack.session import Session

_LONG = "l " * 4000  # a blob, not a part of its event
_WITHIN = {"read": (Reader, "_cover"), "write": (atomic, "_place"), "folder": (atomic, "make_folders")}
_KNOWN: dict[str, Any] = {"role": "user", "content": "run it. Always use tabs.", "client_key": "known"}
_OPERATIONS: dict[str, Callable[[Session], object]] = {
    "known key": lambda session: session.append(**_KNOWN),
    "known and new key": lambda session: session.append_many(
        [_KNOWN, {"role": "user", "content": "more", "client_key": "new"}]
    ),
    "tool result": lambda session: session.append("tool", _LONG, tool_call_id="c2"),
    "prepare": lambda session: session.prepare(),
    "accept": lambda session: session.accept("fine"),
    "compact": lambda session: session.compact(keep_tokens=20),
    "pin": lambda session: session.pin("plan", _LONG),
    "unpin": lambda session: session.unpin("goal"),
    "child": lambda session: session.put_child("checker", ChildUpdate(result=_LONG)),
    "rule": lambda session: session.add_rule("Use spaces."),
    "rules": lambda session: _require([rule.text for rule in session.rules()] == ["Always use tabs.", "Never push."]),
    "state": lambda session: session.set_state("idle"),
    "budget": lambda session: session.set_budget(5000),
    "tail": lambda session: _require(len(session.tail(9)) == 6),
    "children": lambda session: _require(session.children == ()),
}


def _require(truth: object) -> None:
    assert truth


def _start(workers: Workers, name: str) -> Session:
    session = workers.open("a", name)
    session.pin("goal", "Ship it.")
    session.set_budget(9000)
    session.append(**_KNOWN)
    session.append("assistant", "ok", tool_calls=[{"id": "c1", "name": "bash", "arguments": "{}"}])
    session.append("tool", "file src/x.py", tool_call_id="c1")
    session.prepare()
    session.accept("done")
    session.add_rule("Never push.")
    session.append("user", "thanks")
    session.append("assistant", "ok", tool_calls=[{"id": "c2", "name": "bash", "arguments": "{}"}])
    return session


@contextmanager
def _disturbed(within: str, at: int, disturb: Callable[[], object]) -> Generator[Iterator[int]]:
    """Call `disturb` before read or write number `at`, from 1; yields how many there were so far."""
    owner, name = _WITHIN[within]
    number, real = 0, getattr(owner, name)

    def call(*args: Any, **options: Any) -> object:
        nonlocal number
        number += 1
        if number == at:
            disturb()
        return real(*args, **options)

    def count() -> Iterator[int]:
        while True:
            yield number

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, call)
        yield count()


def _facts(session: Session) -> list[object]:
    events = [event.type for event in session.events()]
    rules, compactions = [rule.text for rule in session.rules()], len(session.compactions)
    return [texts(session), events, session.pins, session.state, len(session.children), rules, compactions]


@pytest.mark.parametrize("operation", _OPERATIONS)
def test_an_operation_does_the_same_if_the_folder_is_deleted_within(workers: Workers, operation: str) -> None:
    run = _OPERATIONS[operation]
    expected: list[object] = []
    for within in _WITHIN:
        at, count = 0, 0
        while at <= count:
            session = _start(workers, f"{within}-{at}")

            def disturb(session: Session = session, reading: bool = within == "read") -> None:
                shutil.rmtree(session.layout.folder, ignore_errors=True)
                if reading:  # as another process that has not fetched anything yet
                    make_folder(session.layout, require_stored(session.layout))

            with _disturbed(within, at, disturb) as counts:
                run(session)
                total = next(counts)
            other = workers.open("b", session.name)
            check_same(session, other)
            replay_all(session)
            expected = expected or _facts(other)
            assert _facts(other) == expected, (within, at)
            session.close()
            other.close()
            count = count if at else total
            at += max(1, count // 3)


@pytest.mark.parametrize("within", _WITHIN)
def test_a_session_is_opened_although_its_folder_is_deleted_meanwhile(workers: Workers, within: str) -> None:
    first = _start(workers, "work")
    first.set_state("idle")
    first.close()
    at, total = 1, 1
    while at <= total:
        with _disturbed(within, at, lambda: shutil.rmtree(first.layout.folder, ignore_errors=True)) as counts:
            session = workers.open("a")
            total = next(counts)
        assert session.state == "idle"
        assert session.rules()
        check_same(session, workers.open("b"))
        session.close()
        at += 1


def test_other_threads_wait_until_a_deleted_folder_is_filled(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    session = _start(workers, "work")
    seen: list[int] = []
    reading = threading.Thread(target=lambda: seen.append(len(session.history.messages.tail(9))))
    real = StoredSession.fetch

    def fetch(self: StoredSession, *args: Any) -> object:
        if not reading.ident:
            reading.start()
            reading.join(0.3)  # ends at once if it reads what is not filled
        return real(self, *args)

    monkeypatch.setattr(StoredSession, "fetch", fetch)
    shutil.rmtree(session.layout.folder)
    session.append("user", "after")
    reading.join()
    assert seen[0] >= 6
