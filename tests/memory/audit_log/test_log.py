"""The audit log: numbered, sealed, shared by processes, whole after a crash, never silent about what it missed."""

import errno
import json
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from daypack.errors import WriteFailed
from daypack.files import jsonl
from daypack.memory.audit_log import port
from daypack.memory.audit_log.log import AuditLog
from daypack.memory.audit_log.reading import verify
from daypack.memory.audit_log.record import Actor, Deed, actor

MEMORY = "0" * 31 + "1"


def lines(log: AuditLog) -> list[dict[str, Any]]:
    data = Path(log.path).read_bytes().split(b"\n")
    assert data.pop() == b""
    assert all(jsonl.check(line) == "sealed" for line in data)
    return [json.loads(line) for line in data]


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    return AuditLog(str(tmp_path / "audit"))


def test_a_line_says_who_did_what_through_which_door(log: AuditLog) -> None:
    token = actor.set(Actor("http", "t-1", "r-1"))
    assert log.record(Deed(action="read", tool="search_memories", user="ada", memory=MEMORY, entries=("e1", "e2")))
    actor.reset(token)
    log.record(Deed(action="write", user="ada", result="MemoryMissing"), durable=True)
    first, second = lines(log)
    assert first.pop("time").endswith("Z")
    assert first.pop("crc")
    assert first == {
        "seq": 1, "action": "read", "door": "http", "result": "ok", "tool": "search_memories", "user": "ada",
        "token": "t-1", "request": "r-1", "memory": MEMORY, "entries": ["e1", "e2"],
    }  # fmt: skip
    assert (second["seq"], second["door"], second["result"]) == (2, "python", "MemoryMissing")
    assert second["uid"] >= 0
    assert Path(log.path).stat().st_mode & 0o077 == 0


def test_threads_and_processes_share_it_without_gaps(log: AuditLog) -> None:
    code = (
        "import sys\nfrom daypack.memory.audit_log.log import AuditLog\n"
        "from daypack.memory.audit_log.record import Deed\n"
        "log = AuditLog(sys.argv[1])\n"
        "for n in range(200): assert log.record(Deed(action='read', user=sys.argv[2]), durable=n % 20 == 0)"
    )
    folder = str(Path(log.path).parent)
    others = [subprocess.Popen([sys.executable, "-c", code, folder, f"process{at}"]) for at in range(2)]

    def record(name: str) -> None:
        for number in range(200):
            assert log.record(Deed(action="read", user=name), durable=number % 20 == 0)

    threads = [threading.Thread(target=record, args=(f"thread{at}",)) for at in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [other.wait(60) for other in others] == [0, 0]
    told = lines(log)
    assert [line["seq"] for line in told] == list(range(1, 1001))
    assert set(Counter(line["user"] for line in told).values()) == {200}


@pytest.mark.parametrize("left", [1, 7, 40])
def test_a_torn_tail_is_set_aside_and_said(log: AuditLog, left: int) -> None:
    log.record(Deed(action="read", user="ada"))
    path = Path(log.path)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:left])
    assert [found.problem for found in verify(log.path)] == [f"{left} bytes of an unfinished line at the end"]
    AuditLog(str(path.parent)).record(Deed(action="read", user="bob"))
    assert [(line["seq"], line["action"]) for line in lines(log)] == [(1, "read"), (2, "audit.repair"), (3, "read")]
    assert Path(f"{log.path}.torn-1").read_bytes() == whole[:left]
    assert verify(log.path) == []


def test_a_line_that_lacks_only_its_end_is_completed(log: AuditLog) -> None:
    log.record(Deed(action="read", user="ada"))
    path = Path(log.path)
    path.write_bytes(path.read_bytes()[:-1])
    AuditLog(str(path.parent)).record(Deed(action="read", user="bob"))
    assert [line.get("user") for line in lines(log)] == ["ada", None, "bob"]


def fail_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    write = jsonl.write_all

    def fail(fd: int, data: bytes) -> None:
        write(fd, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(jsonl, "write_all", fail)


def test_lines_of_a_full_disk_are_written_when_there_is_space(log: AuditLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log.record(Deed(action="read", user="before"))
    with monkeypatch.context() as full:
        fail_writes(full)
        assert not log.record(Deed(action="write", user="first"), durable=True)
        assert not log.record(Deed(action="read", user="second"))
        assert log.pending == 2
        with pytest.raises(WriteFailed, match="No space left"):
            log.require()  # so a write does not even begin
        with pytest.raises(WriteFailed):
            log.check()
        assert [line["user"] for line in lines(log)] == ["before"]  # nothing half-written stays
    log.require()
    assert log.pending == 0
    log.record(Deed(action="read", user="after"))
    assert [line["user"] for line in lines(log)] == ["before", "first", "second", "after"]
    assert verify(log.path) == []


def test_lines_that_are_too_many_to_keep_are_counted(log: AuditLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port, "MAX_PENDING", 3)
    with monkeypatch.context() as full:
        fail_writes(full)
        for number in range(5):
            assert not log.record(Deed(action="read", user=f"u{number}"))
    log.require()
    assert [(line["action"], line.get("count")) for line in lines(log)[2:]] == [("read", None), ("audit.lost", 2)]
    assert log.pending == 0


def test_what_an_owner_does_is_recorded_before_it_begins(log: AuditLog) -> None:
    with log.recording(Deed(action="erase", user="ada", memory=MEMORY)):
        assert [line["result"] for line in lines(log)] == ["started"]

    def fail() -> None:
        with log.recording(Deed(action="export", user="ada")) as more:
            more["memory"] = MEMORY
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    told = lines(log)
    assert [line["result"] for line in told] == ["started", "ok", "started", "ZeroDivisionError"]
    assert told[3]["memory"] == MEMORY


def test_nothing_is_erased_that_cannot_be_recorded(log: AuditLog, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_writes(monkeypatch)
    began = False
    with pytest.raises(WriteFailed), log.recording(Deed(action="erase", user="ada")):
        began = True
    assert not began
