"""The folder of a session in a database is a cache: whatever becomes of it, the session is that of the database."""

import errno
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import msgspec
import psycopg
import pytest
from campaigns import Campaign
from faults import Faults, calls_of, injected
from history.postgres.workers import LONG, Workers, check_same, fill, logs, replay_all, texts, turns

import daypack
from daypack.errors import DamageWarning, DaypackError
from daypack.session import Session


def test_an_empty_cache_replays_every_turn_of_another_worker(workers: Workers) -> None:
    one = workers.open("a")
    fill(one)
    given = replay_all(one)
    assert len(given) == 6
    other = workers.open("b")
    assert replay_all(other) == given
    check_same(one, other)
    assert other.history.facets.read(other.layout.created_at) == one.history.facets.read(one.layout.created_at)
    assert other.history.facets.read(other.layout.cwd) == one.history.facets.read(one.layout.cwd)
    assert {**other.meta, "counters": None} == {**one.meta, "counters": None}


def test_blobs_are_fetched_when_they_are_read(workers: Workers) -> None:
    one = workers.open("a")
    fill(one, 2)
    other = workers.open("b")
    assert not os.path.exists(other.layout.blob)
    assert other.pins == {"plan.md": LONG}
    assert len(os.listdir(other.layout.blob)) == 1
    assert replay_all(other) == replay_all(one)
    assert set(os.listdir(other.layout.blob)) <= set(os.listdir(one.layout.blob))


def test_a_blob_that_is_damaged_here_is_fetched_again(workers: Workers) -> None:
    one = workers.open("a")
    fill(one, 1)
    given = replay_all(one)
    for name in os.listdir(one.layout.blob):
        Path(one.layout.blob, name).write_bytes(b"")
    assert replay_all(one) == given
    for name in os.listdir(one.layout.blob):
        Path(one.layout.blob, name).unlink()
    assert replay_all(one) == given


def test_a_blob_that_a_killed_worker_put_here_is_stored_when_it_is_used(workers: Workers) -> None:
    one = workers.open("a")
    name = one.history.blobs.put(LONG.encode())
    one.close()
    again = workers.open("a")
    assert again.history.blobs.has(name)
    again.append_event("notes", {"blob": name})
    assert workers.open("b").history.blobs.get(name) == LONG.encode()


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _tear(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 5)


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def _flip_last(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-40] ^= 4
    path.write_bytes(data)


def _empty(path: Path) -> None:
    os.truncate(path, 0)


def _zeros(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def _repeat(path: Path) -> None:
    """Have the last line once more."""
    data = path.read_bytes()
    path.write_bytes(data + data.splitlines(keepends=True)[-1])


def _lines_removed(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2] + lines[3:]))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "deleted": os.unlink,
    "truncated": _truncate,
    "torn": _tear,
    "a bit flipped": _flip,
    "a bit flipped at the end": _flip_last,
    "emptied": _empty,
    "zeros": _zeros,
    "a line twice": _repeat,
    "a line removed": _lines_removed,
}


@pytest.mark.parametrize("running", [False, True], ids=["closed", "running"])
@pytest.mark.parametrize("log", ["messages.jsonl", "events.jsonl"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_log_is_rebuilt(workers: Workers, damage: str, log: str, running: bool) -> None:
    one, other = workers.pair()
    fill(one, 3)
    before = logs(other)
    given = replay_all(other)
    if not running:
        one.close()
    DAMAGES[damage](Path(one.layout.folder, log))
    if not running:
        one = workers.open("a")
    assert len(one.messages()) == 6
    assert [event.seq for event in one.events()] == [event.seq for event in other.events()]
    assert replay_all(one) == given
    assert logs(one) == before
    assert not list(Path(one.layout.folder).glob("*.ahead-*"))
    one.append("user", "And now?", client_key="new")
    assert one.append("user", "question 1 about the harbour", client_key="k1").seq == 3
    one.prepare()
    assert replay_all(one) == replay_all(other)
    assert logs(one) == logs(other)


@pytest.mark.parametrize("name", ["stored.json", "meta.json", "state", "context", "blob", "cwd", "created_at", "*"])
def test_what_is_deleted_from_the_folder_comes_back(workers: Workers, name: str) -> None:
    one, other = workers.pair()
    fill(one, 3)
    given = replay_all(other)
    one.close()
    path = Path(one.layout.folder if name == "*" else os.path.join(one.layout.folder, name))
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    one = workers.open("a")
    assert replay_all(one) == given
    one.append("user", "And now?")
    one.prepare()
    check_same(one, other)


def test_a_folder_of_another_session_is_dropped(workers: Workers) -> None:
    one, other = workers.open("a", "one"), workers.open("a", "other")
    fill(one, 2)
    other.append("user", "Something else.")
    other.pin("secret", "Not for one.")
    one.close()
    other.close()
    shutil.rmtree(one.layout.folder)
    shutil.copytree(other.layout.folder, one.layout.folder)
    again = workers.open("a", "one")
    check_same(again, workers.open("b", "one"))
    assert again.pins == {"plan.md": LONG}
    assert len(turns(again)) == 2


def test_a_session_that_was_deleted_and_made_again_has_nothing_of_the_first(workers: Workers) -> None:
    one = workers.open("a")
    fill(one, 2)
    one.close()
    with psycopg.connect(workers.url, autocommit=True) as connection:
        connection.execute("DELETE FROM daypack.session_lines")
        connection.execute("DELETE FROM daypack.session_blobs")
        connection.execute("DELETE FROM daypack.sessions")
    again = workers.open("a")
    assert (texts(again), list(again.events()), again.pins, again.children) == ([], [], {}, ())
    assert (again.state, again.turns.budget_text) == ("active", None)
    assert not os.path.exists(again.layout.blob)


# Faults of the folder


def test_a_full_disk_does_not_fail_an_append_that_is_stored(workers: Workers) -> None:
    one, other = workers.pair()
    fill(one, 1)
    path = one.layout.messages
    for number in range(3):
        real = os.write

        def full(fd: int, data: bytes, real: Callable[[int, bytes], int] = real) -> int:
            if os.path.samestat(os.fstat(fd), os.stat(path)):
                real(fd, bytes(data)[:10])
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(fd, data)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "write", full)
            stored = one.append("user", f"on a full disk {number}", client_key=f"full-{number}")
            assert texts(other)[-1] == stored.text
        assert one.append("user", stored.text, client_key=f"full-{number}").seq == stored.seq
        check_same(one, other)


def test_any_fault_of_the_folder_loses_nothing_and_doubles_nothing(workers: Workers, campaign: Campaign) -> None:
    """The n-th call fails: what was acknowledged is stored, what was not is stored once or not at all."""

    def work(session: Session, done: list[str]) -> None:
        steps: list[tuple[str, Callable[[], object]]] = [
            ("one", lambda: session.append("user", "one")),
            ("pin", lambda: session.pin("goal", LONG)),
            ("two", lambda: session.append("user", "two", client_key="two")),
            ("turn", lambda: session.prepare(budget=8_000)),
            ("unpin", lambda: session.unpin("goal")),
        ]
        for name, step in steps:
            try:
                step()
                done.append(name)
            except DaypackError:
                continue

    plain = workers.open("plain", "plain")
    names = calls_of(lambda: work(plain, []))
    for at in campaign.calls("faults", names, every=4):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamageWarning)
            name = f"work-{at}"
            one, done = workers.open("a", name), list[str]()
            with injected(Faults(at, "error", errno.ENOSPC)):
                work(one, done)
            other = workers.open("b", name)
            stored = texts(other)
            assert [text for text in ("one", "two") if text in done] == [text for text in stored if text in done], at
            assert len(set(stored)) == len(stored), at
            assert ("turn" not in done) or len(turns(other)) == 1, at
            one.append("user", "two", client_key="two")
            one.prepare(budget=8_000)
            one.close()
            one = workers.open("a", name)
            assert texts(one).count("two") == 1
            assert logs(one) == logs(other), at
            assert replay_all(one) == replay_all(other), at
            if "unpin" in done:
                assert other.pins == {}, at
            workers.close()


_REFRESHING = """
import sys
from pathlib import Path
from faults import Faults, injected
import daypack
at, home, url, name = int(sys.argv[1]), *sys.argv[2:]
session = daypack.open_session(name, home=home, store=url, model="gpt-4o", workspace="")
print("open", flush=True)
sys.stdin.readline()
faults = Faults(at, "kill")
with injected(faults):
    session.history.refresh()
    session.pins
print(faults.count, flush=True)
"""


def test_a_worker_killed_while_it_fetches_never_reverts_what_others_did(workers: Workers, campaign: Campaign) -> None:
    def run(at: int, name: str) -> str:
        one = workers.open("b", name)
        one.append("user", "Hello.")
        one.pin("goal", "first")
        one.pin("plan", "first")
        one.set_budget(9_000)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
        command = [sys.executable, "-c", _REFRESHING, str(at), str(workers.folder / "a"), workers.url, name]
        with subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == "open\n"
            one.pin("goal", LONG)
            one.unpin("plan")
            one.set_budget(7_000)
            one.set_state("done")
            one.put_child("scout", result="second")
            process.stdin.write("\n")
            process.stdin.flush()
            printed = process.stdout.read()
        again = workers.open("a", name)
        again.prepare()
        kinds = [event.type for event in one.events()]
        assert (kinds.count("pin.set"), kinds.count("pin.removed"), kinds.count("context.budget")) == (3, 1, 2), at
        assert one.pins == {"goal.md": LONG}, at
        check_same(again, one)
        workers.close()
        return printed

    count = int(run(0, "plain"))
    for number in range(campaign.size("kills", count)):
        at = 1 + (campaign.seed + number * max(1, round(1 / campaign.scale))) % count
        run(at, f"work-{number}")


def test_after_a_restart_of_the_machine_nothing_of_the_folder_is_taken_for_an_edit(workers: Workers) -> None:
    """What was not synced may be empty then."""
    one, other = workers.pair()
    fill(one, 2)
    assert other.pins == {"plan.md": LONG}
    other.close()
    marker = Path(other.layout.folder, "stored.json")
    marker.write_bytes(msgspec.json.encode({**msgspec.json.decode(marker.read_bytes()), "boot": "00"}))
    for path in Path(other.layout.folder).rglob("*"):
        if path.is_file() and path != marker:
            path.write_bytes(b"")
    other = workers.open("b")
    other.prepare()
    kinds = [event.type for event in one.events()]
    assert (kinds.count("pin.set"), kinds.count("pin.removed"), kinds.count("context.budget")) == (2, 1, 1)
    check_same(one, other)
    assert replay_all(one) == replay_all(other)
    assert {**other.meta, "counters": None} == {**one.meta, "counters": None}


def test_the_folder_is_where_the_layout_says(workers: Workers) -> None:
    one = workers.open("a", uid="ada")
    folder = workers.folder / "a" / "home" / "ada" / "store"
    (cache,) = folder.iterdir()
    assert Path(one.layout.folder) == cache / "agent" / "default" / "session" / "work"
    with daypack.open_session("work", home=workers.folder / "a", uid="ada", store="") as files:
        assert texts(files) == []
        files.append("user", "in files")
    assert texts(one) == []
