"""The folder of an open session may be deleted at any time: the same object makes it again and continues."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from history.postgres.workers import Workers, check_same, replay_all, texts

from daypack.session import Session

_DELETIONS: dict[str, Callable[[Path], object]] = {
    "the folder": shutil.rmtree,
    "context/": lambda folder: shutil.rmtree(folder / "context"),
    "messages.jsonl": lambda folder: (folder / "messages.jsonl").unlink(),
    "events.jsonl": lambda folder: (folder / "events.jsonl").unlink(),
    "both logs": lambda folder: [(folder / f"{log}.jsonl").unlink() for log in ("messages", "events")],
    "stored.json": lambda folder: (folder / "stored.json").unlink(),
    "meta.json": lambda folder: (folder / "meta.json").unlink(),
    "the caches of all databases": lambda folder: shutil.rmtree(folder.parents[4]),
}
_USES: dict[str, Callable[[Session], object]] = {
    "append": lambda session: session.append("user", "after"),
    "append with a key": lambda session: session.append("user", "after", client_key="after"),
    "event": lambda session: session.append_event("note", {"text": "after"}),
    "prepare": lambda session: session.prepare(),
    "read": lambda session: _require(len(session.tail(50)) == 9),
    "read all": lambda session: _require(len(list(session.messages())) == 9),
    "pins": lambda session: _require(session.pins == {"goal.md": "Ship it."}),
    "meta": lambda session: _require(session.meta["agent"] == session.agent),
    "recall": lambda session: _require(session.recall("messages:1-2")),
    "state": lambda session: session.set_state("idle"),
    "compact": lambda session: session.compact(),
    "pin": lambda session: session.pin("plan", "Later."),
    "replay": replay_all,
}


def _require(truth: object) -> None:
    assert truth


def _fill(session: Session) -> None:
    session.pin("goal", "Ship it.")
    for number in range(3):
        session.append("user", f"question {number} about the harbour", client_key=f"k{number}")
        session.prepare()
        session.accept(f"answer {number}")
        session.append("user", f"thanks {number}")


@pytest.mark.parametrize("deletion", _DELETIONS)
def test_an_open_session_continues_after_a_deletion(workers: Workers, deletion: str) -> None:
    for number, (use, action) in enumerate(_USES.items()):
        one = workers.open("a", f"work-{number}")
        _fill(one)
        _DELETIONS[deletion](Path(one.layout.folder))
        action(one)
        one.append("assistant", "it goes on")
        other = workers.open("b", one.name)
        check_same(one, other)
        assert texts(one)[-1] == "it goes on", use
        assert {**one.meta, "counters": None} == {**other.meta, "counters": None}, use


def test_nothing_is_lost_if_the_folder_is_deleted_after_every_append_while_threads_append(workers: Workers) -> None:
    one = workers.open("a")
    done: list[str] = []

    def append(session: Session, name: str) -> None:
        for number in range(40):
            session.append("user", f"{name} {number}")
            done.append(f"{name} {number}")

    threads = [threading.Thread(target=append, args=each) for each in ((one, "x"), (one, "y"), (one, "z"))]
    for thread in threads:
        thread.start()
    known = 0
    while any(thread.is_alive() for thread in threads):
        if len(done) != known:
            known = len(done)
            shutil.rmtree(one.layout.folder, ignore_errors=True)
    for thread in threads:
        thread.join()
    other = workers.open("b")
    check_same(one, other)
    assert sorted(texts(other)) == sorted(done)
    assert len(done) == 120


def test_closing_does_not_bring_a_deleted_folder_back(workers: Workers) -> None:
    one = workers.open("a")
    _fill(one)
    shutil.rmtree(one.layout.folder)
    one.close()
    assert not Path(one.layout.folder).exists()


def test_caches_are_removed_by_another_process_while_the_session_is_open(workers: Workers) -> None:
    one = workers.open("a")
    _fill(one)
    command = [sys.executable, "-m", "daypack", "gc", "--caches", "--older", "0d", "--apply", "--home"]
    environment = {**os.environ, "DAYPACK_STORE_URL": workers.url}
    for number in range(2):
        subprocess.run([*command, str(workers.folder / "a")], check=True, env=environment, capture_output=True)
        assert not Path(one.layout.folder).exists()
        one.append("user", f"after {number}")
    check_same(one, workers.open("b"))
    assert texts(one)[-2:] == ["after 0", "after 1"]
