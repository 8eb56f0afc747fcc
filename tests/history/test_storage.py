"""File systems that refuse: read-only, full, without locks, with a disk that fails a sync."""

import errno
import fcntl
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from faults import refused_writing

import daypack
from daypack.errors import LockUnavailable, PoisonedLog, StorageFailed, SyncFailed, UnsafePath
from daypack.session import Session
from daypack.types.history import Message


@pytest.fixture
def written(home: str) -> Session:
    """A session with messages, an event and a pin, closed."""
    with daypack.open_session("work", home=home) as session:
        for number in range(20):
            session.append("assistant", f"text {number}")
        session.append_event("custom", {"x": 1})
        session.pin("system", "Be brief.")
    return session


@pytest.mark.requirement("G7", "X27")
@pytest.mark.parametrize("code", [errno.EROFS, errno.ENOSPC], ids=["read-only", "full"])
@pytest.mark.parametrize("derived", [True, False], ids=["with context", "without context"])
def test_reading_needs_no_writing(written: Session, code: int, derived: bool) -> None:
    if not derived:
        shutil.rmtree(written.path / "context")
    with refused_writing(code):
        session = daypack.open_session("work", home=written.layout.root)
        assert [message.text for message in session.messages()] == [f"text {number}" for number in range(20)]
        assert [message.seq for message in session.tail(2)] == [19, 20]
        assert [event.type for event in session.events()] == ["custom", "pin.set"]
        assert session.pins == {"system.md": "Be brief."}
        assert session.newest_within(10**6) == 20
        with pytest.raises(StorageFailed) as refused:
            session.append("user", "no")
        assert refused.value.hint
        session.close()


SCRIPT = """
import sys, daypack
from daypack.errors import DaypackError
home, mode = sys.argv[1:]
session = daypack.open_session("work", home=home)
session.append("user", "before")
acknowledged = 1
if mode == "full":
    try:
        while True:
            session.append("user", "fill " * 200)
            acknowledged += 1
    except DaypackError as error:
        assert error.hint, error
else:
    import subprocess
    session.close()
    subprocess.run(["mount", "-o", "remount,ro", home], check=True)
    try:
        daypack.open_session("work", home=home).append("user", "no")
        raise SystemExit("appended to a read-only file system")
    except DaypackError as error:
        assert error.hint, error
reader = daypack.open_session("work", home=home)
assert len(reader.messages()) == acknowledged, (len(reader.messages()), acknowledged)
assert reader.tail(1)[0].seq == acknowledged
assert not reader.damage
if mode == "full":
    import os
    os.unlink(home + "/big")
    assert reader.append("user", "room again").seq == acknowledged + 1
    assert session.append("user", "room again").seq == acknowledged + 2
    assert not list(reader.path.glob("*.torn-*"))
print("fine")
"""


@pytest.mark.parametrize("mode", ["full", "read-only"])
def test_a_real_full_or_read_only_disk_loses_nothing_and_can_be_read(tmp_path: Path, mode: str) -> None:
    home = tmp_path / "disk"
    home.mkdir()
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    big = "head -c 900000 /dev/zero > big; " if mode == "full" else ""
    run = f"{big}cd / && exec {sys.executable} {tmp_path}/script.py {home} {mode}"
    inner = f"mount -t tmpfs -o size=1200k none {home} && cd {home} && {run}"
    done = subprocess.run(["unshare", "-m", "sh", "-c", inner], capture_output=True, text=True, check=False)
    if "must be superuser" in done.stderr or "not permitted" in done.stderr or "denied" in done.stderr:
        pytest.skip("mounting needs more rights than this user has")
    assert done.stdout == "fine\n", done.stderr


@pytest.mark.requirement("G7")
def test_a_failed_sync_poisons_the_session_and_is_never_tried_again(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = daypack.open_session("work", home=home)
    session.append("user", "safe")
    syncs: list[int] = []

    def fail(fd: int) -> None:
        syncs.append(fd)
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fail)
    with pytest.raises(SyncFailed) as failed:
        session.append("user", "lost")
    assert "removed" in failed.value.problem
    monkeypatch.undo()
    for _ in range(3):
        with pytest.raises(PoisonedLog) as poisoned:
            session.append("user", "more")
        assert "reopen the session" in poisoned.value.hint
    assert len(syncs) == 1
    assert [message.text for message in session.messages()] == ["safe"]
    opened = daypack.open_session("work", home=home)
    assert opened.append("user", "lost").seq == 2
    assert [message.text for message in opened.messages()] == ["safe", "lost"]


def test_a_failed_sync_takes_back_no_line_that_another_process_answered_with(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = daypack.open_session("work", home=home), daypack.open_session("work", home=home)
    one.append("user", "safe")
    real, fails, answers, rewritten = os.fdatasync, [True], list[int](), list[bytes]()

    def fail_once(fd: int) -> None:
        if not fails:
            real(fd)
            return
        fails.clear()
        answers.append(other.append("user", "pay", client_key="k").seq)  # between our write and our sync
        raise OSError(errno.EIO, "Input/output error")

    pwrite = os.pwrite

    def noted(fd: int, data: bytes, offset: int) -> int:
        rewritten.append(data)
        return pwrite(fd, data, offset)

    monkeypatch.setattr(os, "fdatasync", fail_once)
    monkeypatch.setattr(os, "pwrite", noted)
    with pytest.raises(SyncFailed, match="may still be there"):
        one.append("user", "pay", client_key="k")
    assert answers == [2]
    assert [message.text for message in daypack.open_session("work", home=home).messages()] == ["safe", "pay"]
    line = (one.path / "messages.jsonl").read_bytes().splitlines(keepends=True)[1]
    assert line in rewritten  # so that the other's sync had something to write


def test_a_sync_proves_only_what_was_written_before_it_began(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = daypack.open_session("work", home=home)
    session.append("user", "first")
    real, syncs = os.fdatasync, list[int]()

    def counted(fd: int) -> None:
        syncs.append(fd)
        if len(syncs) == 1:
            # Another thread writes, without a sync of its own, while this one is under way.
            with session.history.lock:
                handle = session.history.messages.begin()
                session.history.messages.writer.write(handle, (Message(role="user", content="during"),), 1e9)
        real(fd)

    monkeypatch.setattr(os, "fdatasync", counted)
    session.append("user", "second")
    handle = session.history.messages.writer.begin()
    assert handle.durable < handle.written
    session.append("user", "third")
    assert handle.durable == handle.written
    assert len(syncs) == 2


def test_a_failed_sync_takes_back_no_line_of_another_process(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = daypack.open_session("work", home=home), daypack.open_session("work", home=home, durability="os")
    one.append("user", "safe")
    real = os.fdatasync

    def fail(fd: int) -> None:
        other.append("user", "theirs")  # between our write and our sync
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fail)
    with pytest.raises(SyncFailed) as failed:
        one.append("user", "ours")
    monkeypatch.setattr(os, "fdatasync", real)
    assert "may still be there" in failed.value.problem
    assert [message.text for message in other.messages()] == ["safe", "ours", "theirs"]


def test_a_failed_sync_acknowledges_no_thread_that_waited_for_it(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = daypack.open_session("work", home=home)
    session.append("user", "safe")
    log, failures = session.path / "messages.jsonl", list[Exception]()

    def fail(_: int) -> None:
        deadline = time.monotonic() + 10
        while log.read_bytes().count(b"\n") < 5 and time.monotonic() < deadline:
            time.sleep(0.001)  # until all four have written and wait
        raise OSError(errno.ENOSPC, "No space left on device")

    def write(text: str) -> None:
        try:
            session.append("user", text)
        except (SyncFailed, PoisonedLog) as error:
            failures.append(error)

    monkeypatch.setattr(os, "fdatasync", fail)
    threads = [threading.Thread(target=write, args=(str(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    monkeypatch.undo()
    assert len(failures) == 4
    assert [message.text for message in daypack.open_session("work", home=home).messages()] == ["safe"]


def test_a_replayed_key_is_acknowledged_only_when_its_line_is_on_disk(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    daypack.open_session("work", home=home, durability="os").append("user", "x", client_key="k")
    syncs: list[int] = []
    real = os.fdatasync

    def counted(fd: int) -> None:
        syncs.append(fd)
        real(fd)

    monkeypatch.setattr(os, "fdatasync", counted)
    session = daypack.open_session("work", home=home)
    assert session.append("user", "x", client_key="k").seq == 1
    assert len(syncs) == 1
    session.append("user", "x", client_key="k")
    assert len(syncs) == 1


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS])
def test_a_file_system_without_locks_is_refused_unless_one_writer_is_promised(
    home: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = daypack.open_session("work", home=home)

    def no_locks(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.raises(LockUnavailable) as refused:
        session.append("user", "x")
    assert "single_writer" in refused.value.hint
    alone = daypack.open_session("work", home=home, locking="single_writer")
    assert alone.append("user", "x").seq == 1


@pytest.mark.parametrize("name", ["messages.jsonl", "events.jsonl", "context", "context/offsets", "blob"])
def test_a_symbolic_link_inside_a_session_is_refused_and_nothing_outside_is_touched(
    home: str, tmp_path: Path, name: str
) -> None:
    with daypack.open_session("work", home=home) as session:
        session.append("user", "x")
        session.append_event("y", {})
    outside = tmp_path / "outside"
    target = session.path / name
    if target.is_dir():
        shutil.copytree(target, outside)
        shutil.rmtree(target)
    elif target.exists():
        shutil.move(target, outside)
    else:
        outside.mkdir()
    target.symlink_to(outside)
    before = {path: path.read_bytes() for path in [outside, *outside.rglob("*")] if path.is_file()}

    def use() -> None:
        opened = daypack.open_session("work", home=home)
        opened.append("user", "z")
        opened.append_event("z", {})

    with pytest.raises(UnsafePath) as refused:
        use()
    assert refused.value.hint
    assert {path: path.read_bytes() for path in [outside, *outside.rglob("*")] if path.is_file()} == before


def test_a_session_folder_that_is_a_link_out_of_the_home_is_refused(home: str, tmp_path: Path) -> None:
    with daypack.open_session("work", home=home) as session:
        session.append("user", "x")
    moved = tmp_path / "elsewhere"
    shutil.move(session.path, moved)
    session.path.symlink_to(moved)
    with pytest.raises(UnsafePath):
        daypack.open_session("work", home=home)
    assert not list(tmp_path.glob("elsewhere/*.torn-*"))


def test_a_session_that_is_deleted_under_a_writer_is_told_and_not_begun_anew(home: str) -> None:
    session = daypack.open_session("work", home=home)
    session.append("user", "x")
    shutil.rmtree(session.path)
    with pytest.raises(StorageFailed) as gone:
        session.append("user", "y")
    assert "restore it" in gone.value.hint
    assert not session.path.exists()


def test_the_home_itself_may_be_a_link(home: str, tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    Path(home).symlink_to(real)
    with daypack.open_session("work", home=home) as session:
        assert session.append("user", "x").seq == 1


def test_an_append_that_is_stored_does_not_fail_because_its_repair_cannot_be_told(home: str) -> None:
    session = daypack.open_session("work", home=home)
    session.append("user", "a")
    with (session.path / "messages.jsonl").open("ab") as file:
        file.write(b"torn")
    events = session.path / "events.jsonl"
    events.rename(session.path / "away")
    assert session.append("user", "b").seq == 2
    (session.path / "away").rename(events)
    assert session.append("user", "c").seq == 3
    assert [message.text for message in session.messages()] == ["a", "b", "c"]
    assert [event.type for event in session.events()] == ["log.torn"]


def test_new_files_are_synced_before_they_are_named_and_named_before_they_count(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    for name in ("fsync", "replace", "link"):
        real = getattr(os, name)

        def noted(*args: object, name: str = name, real: Callable[..., object] = real) -> object:
            target = os.readlink(f"/proc/self/fd/{args[0]}") if name == "fsync" else str(args[1])
            calls.append(f"{name} {os.path.basename(target).split('.')[0].replace('-', '') or target}")
            return real(*args)

        monkeypatch.setattr(os, name, noted)
    daypack.open_session("work", home=home)
    meta = calls[-3:]
    assert [call.split()[0] for call in meta] == ["fsync", "replace", "fsync"]
    assert meta[1:] == ["replace meta", "fsync work"]
    for name in ("created_at", "updated_at", "cwd", "state"):
        assert f"link {name}" in calls
        assert calls[calls.index(f"link {name}") - 1].startswith("fsync")
