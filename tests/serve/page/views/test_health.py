"""Health on the page: store, hook failures, disk use, indexes, and doctor in steps."""

import os
from pathlib import Path
from typing import Any

import pytest
from serve.page.views.looking import OTHER, look
from turn.scenes import converse, logs, release, stage

from daypack.errors import AccessDenied, BadInput
from daypack.hooks import failures
from daypack.serve.page.views import health
from daypack.serve.page.views.opened import OpenedHome


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))


def size(rows: list[dict[str, Any]], what: str) -> int:
    (row,) = [row for row in rows if row["what"] == what]
    return row["bytes"]


def state(answer: dict[str, Any], what: str) -> str:
    (row,) = [row for row in answer["indexes"] if row["what"] == what]
    assert row["words"]
    return row["state"]


def test_every_file_of_the_home_is_counted_once(page: OpenedHome, home: str) -> None:
    session = stage(home)
    converse(session, 3)
    session.history.capture(b"x" * 9000)
    session.search_history("harbour")
    assert page.memories is not None
    page.memories.create_memory("Launch")
    look(page, "find", q="harbour")
    answer = look(page, "health")
    found = [path for path in Path(page.home.folder).rglob("*") if path.is_file()]
    assert sum(row["files"] for row in answer["disk"]) == len(found)
    assert sum(row["bytes"] for row in answer["disk"]) == sum(path.stat().st_size for path in found)
    assert size(answer["disk"], "blobs of sessions") == 9000
    assert size(answer["disk"], "logs of sessions") >= sum(map(len, logs(session)))
    for what in ("memory store", "index of find", "search indexes of sessions"):
        assert size(answer["disk"], what) > 0
    assert answer["incomplete"] is False
    assert answer["store"] == {"ok": True, "problem": None, "place": None}
    assert answer["home"] == page.home.folder


def test_counting_ends_when_it_takes_too_long(page: OpenedHome, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stage(home).append("user", "Hello")
    monkeypatch.setattr(health, "_SECONDS", -1.0)
    answer = look(page, "health")
    assert answer["incomplete"] is True
    assert size(answer["disk"], "logs of sessions") == 0


def test_index_states_follow_what_is_indexed(page: OpenedHome, home: str) -> None:
    session = stage(home)
    converse(session, 2)
    assert page.memories is not None
    memory = page.memories.create_memory("Launch").memory_id
    page.memories.add_entry(memory, "The boat is red.")
    release(session)
    empty = look(page, "health")
    assert [row["state"] for row in empty["indexes"]] == ["missing", "behind", "missing"]
    look(page, "find", q="harbour")
    page.memories.search_memories(memory, "boat")
    session.search_history("harbour")
    release(session)
    assert [row["state"] for row in look(page, "health")["indexes"]] == ["current"] * 3
    converse(session, 1)
    page.memories.add_entry(memory, "The boat is blue.")
    release(session)
    assert [row["state"] for row in look(page, "health")["indexes"]] == ["behind"] * 3
    Path(page.home.find_index).write_bytes(b"not a database" * 100)
    assert state(look(page, "health"), "index of find") == "damaged"


def test_hook_failures_are_listed_newest_first(page: OpenedHome) -> None:
    log = Path(page.home.folder) / failures.LOG
    log.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"2099-01-01T00:00:{number:02}Z claude Stop s{number} StorageFailed: full" for number in range(30)]
    log.write_text("\n".join([*lines, "2099-01-01T00:01:00Z - reported - 30", ""]))
    hooks = look(page, "health")["hooks"]
    assert (hooks["number"], hooks["since"], hooks["newest"]) == (
        30,
        "2099-01-01T00:00:00Z",
        "2099-01-01T00:00:29Z",
    )
    assert hooks["lines"] == lines[:9:-1]


def test_a_store_that_cannot_be_read_is_reported(page: OpenedHome) -> None:
    Path(page.home.store).parent.mkdir(parents=True)
    Path(page.home.store).write_bytes(b"not a database" * 1000)
    store = look(page, "health")["store"]
    assert store["ok"] is False
    assert store["problem"]


def steps(page: OpenedHome) -> list[dict[str, Any]]:
    answers = [look(page, "doctor")]
    while answers[-1]["next"] is not None:
        answers.append(look(page, "doctor", cursor=answers[-1]["next"]))
    return answers


@pytest.mark.parametrize("seconds", [-1.0, 100.0])
def test_doctor_examines_every_session_once_newest_first(
    page: OpenedHome, home: str, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    monkeypatch.setattr(health, "_SECONDS", seconds)
    for number in range(4):
        session = stage(home, f"work-{number}", agent=f"agent-{number % 2}")
        session.append("user", "Hello")
        path = Path(session.layout.messages)
        release(session)
        path.write_bytes(path.read_bytes().replace(b"Hello", b"Jello"))
        os.utime(path, (1_800_000_000 + number, 1_800_000_000 + number))
    answers = steps(page)
    damage = [found for answer in answers for found in answer["findings"] if found["severity"] == "damage"]
    assert [(found["agent"], found["session"]) for found in damage] == [
        (f"agent-{number % 2}", f"work-{number}") for number in (3, 2, 1, 0)
    ]
    assert all(found["line"] == 1 and "checksum" in found["problem"] and found["advice"] for found in damage)
    examined = [answer["examined"] for answer in answers]
    assert examined == ([1, 2, 3, 4, 5] if seconds < 0 else [4, 5])
    assert {answer["total"] for answer in answers} == {5}


def test_doctor_reports_a_damaged_memory_store(page: OpenedHome) -> None:
    Path(page.home.store).parent.mkdir(parents=True)
    Path(page.home.store).write_bytes(b"not a database" * 1000)
    (finding,) = [found for answer in steps(page) for found in answer["findings"]]
    assert (finding["severity"], finding["session"], finding["path"]) == ("damage", None, page.home.store)


def test_looking_writes_nothing_and_is_for_the_owner(page: OpenedHome, home: str) -> None:
    session = stage(home)
    converse(session, 2)
    before = logs(session)
    look(page, "health")
    steps(page)
    assert logs(session) == before
    for view in ("health", "doctor"):
        with pytest.raises(AccessDenied):
            look(page, view, OTHER)
    for wrong in ("x", "12:", "12:agent", "-3:a/b"):
        with pytest.raises(BadInput):
            look(page, "doctor", cursor=wrong)
