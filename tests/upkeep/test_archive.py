"""Sessions are archived, restored and deleted by name only, and none overwrites another."""

import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from turn.scenes import close_all, outputs, stage, turn_events
from upkeep.gc.collectable import full_session, tree

import daypack
from daypack.errors import BadInput, BadName, Damaged, DaypackError, SessionMissing, StorageFailed, UnsafePath
from daypack.history.layout import Home
from daypack.session import Session
from daypack.upkeep.archive import Guard, archive, archived, delete, restore, sweep

LATER = Guard(time.time() + 7200)
NO_KEEPING = "keep_messages=0\nkeep_events=0\n"


@pytest.fixture(autouse=True)
def _closed_sessions() -> Iterator[None]:
    yield
    close_all()


@pytest.fixture
def place(home: str) -> Home:
    return Home(home, str(os.getuid()))


def closed_session(home: str, name: str = "work") -> Path:
    """Create a session with some history, close it and return its folder."""
    session = full_session(home, name)
    session.close()
    return session.path


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def write_policy(folder: Path, text: str) -> None:
    (folder / "context" / "gc.policy").write_text(text)


@pytest.mark.requirement("S4-GC0")
def test_a_session_is_archived_and_restored_byte_for_byte(home: str, place: Home) -> None:
    folder = closed_session(home)
    before = files(folder)
    moved = archive(place, "default", "work", LATER)
    assert moved.path == str(Path(home, "home", str(os.getuid()), "archive", "default", "work-1"))
    assert (moved.number, moved.bytes) == (1, sum(map(len, before.values())))
    assert not folder.exists()
    assert place.list("default") == []
    assert archived(place, "default", "work") == [1]
    assert files(Path(moved.path or "")) == before
    assert restore(place, "default", "work").path == str(folder)
    assert files(folder) == before
    assert archived(place, "default", "work") == []
    session = stage(home)
    [turn] = turn_events(session)
    assert outputs(session.replay(turn.id))[0] == before["context/pack.json"]


def test_each_archiving_has_its_own_number_and_the_newest_is_restored(home: str, place: Home) -> None:
    for number in (1, 2, 3):
        with stage(home) as session:
            session.append("user", f"Number {number}")
        assert archive(place, "default", "work", LATER).number == number
    assert archived(place, "default", "work") == [1, 2, 3]
    restore(place, "default", "work")
    assert stage(home).tail(1)[0].text == "Number 3"
    with pytest.raises(BadInput, match="session of that name exists"):
        restore(place, "default", "work", 1)
    assert archived(place, "default", "work") == [1, 2]
    close_all()
    archive(place, "default", "work", LATER)
    restore(place, "default", "work", 1)
    assert stage(home).tail(1)[0].text == "Number 1"


def test_similar_names_are_not_confused(home: str, place: Home) -> None:
    for name in ("work", "work-1", "work-1-1"):
        closed_session(home, name)
        archive(place, "default", name, LATER)
    assert [archived(place, "default", name) for name in ("work", "work-1", "work-1-1")] == [[1], [1], [1]]
    assert [restore(place, "default", name).number for name in ("work-1-1", "work", "work-1")] == [1, 1, 1]
    assert place.list("default") == ["work", "work-1", "work-1-1"]


@pytest.mark.parametrize("operation", ["archive", "delete"])
@pytest.mark.parametrize(
    ("state", "seconds", "current", "refused"),
    [
        ("active", 10, None, True),
        ("active", 3590, None, True),
        ("active", 3610, None, False),
        ("idle", 10, None, False),
        ("done", 10, None, False),
        ("done", 99999, "work", True),
        ("done", 99999, "other", False),
    ],
)
@pytest.mark.parametrize("force", [False, True])
def test_a_session_in_use_is_protected_without_force(
    home: str, place: Home, operation: str, state: str, seconds: int, current: str | None, *, refused: bool, force: bool
) -> None:
    with stage(home) as session:
        session.append("user", "Hello")
        session.set_state(state)  # type: ignore[arg-type]
    (session.path / "context").mkdir(exist_ok=True)
    write_policy(session.path, NO_KEEPING)
    guard = Guard(os.stat(session.path / "events.jsonl").st_mtime + seconds, current, force)
    run = archive if operation == "archive" else delete
    if refused and not force:
        with pytest.raises(BadInput, match=r"current session|is active") as caught:
            run(place, "default", "work", guard)
        assert "--force" in caught.value.hint
        assert session.path.exists()
    else:
        run(place, "default", "work", guard)
        assert not session.path.exists()


@pytest.mark.requirement("X29", "S4-GC4", "S4-GC5", "S4-GC10", "S4-GC11")
@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("", False),
        ("keep_messages=1\nkeep_events=1\n", False),
        ("keep_messages=0\n", False),
        ("keep_events=0\n", False),
        (NO_KEEPING, True),
    ],
)
def test_a_session_is_deleted_only_when_its_policy_keeps_neither_log(
    home: str, place: Home, text: str, *, allowed: bool
) -> None:
    folder = closed_session(home)
    write_policy(folder, text)
    before = files(folder)
    if allowed:
        assert delete(place, "default", "work", LATER).path is None
        assert not folder.exists()
        assert os.listdir(Path(place.folder, "archive")) == []
    else:
        with pytest.raises(BadInput, match="keeps its messages and events") as caught:
            delete(place, "default", "work", LATER)
        assert "--archive" in caught.value.hint
        assert files(folder) == before


@pytest.mark.requirement("X29")
def test_an_archived_session_is_deleted_by_its_number(home: str, place: Home) -> None:
    for _ in range(2):
        closed_session(home)
        archive(place, "default", "work", LATER)
    with pytest.raises(BadInput, match=r"2 times \(1, 2\)") as caught:
        delete(place, "default", "work", LATER)
    assert "--number" in caught.value.hint
    closed_session(home)
    assert delete(place, "default", "work", LATER, 1).number == 1
    assert archived(place, "default", "work") == [2]
    assert place.list("default") == ["work"]  # a number never means the live session
    with pytest.raises(BadInput, match="keeps"):
        delete(place, "default", "work", LATER)
    archive(place, "default", "work", LATER)
    delete(place, "default", "work", LATER, 2)
    assert delete(place, "default", "work", LATER).number == 3
    assert archived(place, "default", "work") == []


@pytest.mark.parametrize("number", [None, 7])
def test_a_missing_session_is_reported(home: str, place: Home, number: int | None) -> None:
    closed_session(home)
    for run in (
        lambda: restore(place, "default", "unknown", number),
        lambda: archive(place, "default", "unknown", LATER),
    ):
        with pytest.raises(SessionMissing):
            run()
    with pytest.raises(SessionMissing, match="no such archived session" if number else "no such session: 'unknown'"):
        delete(place, "default", "unknown", LATER, number)
    for name in ("../work", "", ".x", "a/b"):
        with pytest.raises(BadName):
            archive(place, "default", name, LATER)
        with pytest.raises(BadName):
            restore(place, "../x", name)


def test_a_session_that_lost_its_log_is_not_moved(home: str, place: Home) -> None:
    folder = closed_session(home)
    (folder / "messages.jsonl").unlink()
    with pytest.raises(Damaged, match="log is missing"):
        archive(place, "default", "work", LATER)


def test_an_empty_folder_is_not_an_archived_session(home: str, place: Home) -> None:
    folder = closed_session(home)
    empty = Path(place.folder, "archive", "default", "work-1")
    empty.mkdir(parents=True)
    assert archived(place, "default", "work") == []
    assert archive(place, "default", "work", LATER).path == str(empty)
    folder.mkdir()  # an empty folder does not block a restore
    assert restore(place, "default", "work").path == str(folder)
    assert (folder / "messages.jsonl").exists()


def test_a_link_on_the_path_is_refused(home: str, place: Home, tmp_path: Path) -> None:
    folder = closed_session(home)
    (tmp_path / "elsewhere").mkdir()
    Path(place.folder, "archive").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafePath):
        archive(place, "default", "work", LATER)
    assert folder.exists()


def test_an_interrupted_deletion_is_completed_by_the_next(
    home: str, place: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = closed_session(home)
    write_policy(folder, NO_KEEPING)

    def failing(path: str, **_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    monkeypatch.setattr("shutil.rmtree", failing)
    with pytest.raises(StorageFailed, match="Input/output"):
        delete(place, "default", "work", LATER)
    monkeypatch.undo()
    assert not folder.exists()
    assert place.list("default") == []
    assert sweep(place) == 1
    assert sweep(place) == 0
    assert os.listdir(Path(place.folder, "archive")) == []


def test_a_move_to_another_file_system_is_refused(home: str, place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = closed_session(home)
    before = files(folder)

    def failing(_: str, __: str) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(os, "rename", failing)
    with pytest.raises(StorageFailed, match="cross-device") as caught:
        archive(place, "default", "work", LATER)
    assert "same file system" in caught.value.hint
    assert files(folder) == before


def test_an_open_writer_loses_nothing_when_its_session_is_archived(home: str, place: Home) -> None:
    writer = daypack.open_session("work", home=home, durability="os")
    writer.append("user", "before")
    moved = archive(place, "default", "work", Guard(0.0, force=True))
    try:
        writer.append("user", "after")
    except DaypackError:
        refused = True
    else:
        refused = False
    stored = (Path(moved.path or "") / "messages.jsonl").read_text()
    assert "before" in stored
    assert refused or "after" in stored
    assert not Path(home, "home", str(os.getuid()), "agent", "default", "session", "work").exists()


def test_an_open_writer_fails_when_its_session_is_deleted(home: str, place: Home) -> None:
    writer: Session = full_session(home)
    write_policy(writer.path, NO_KEEPING)
    before = tree(writer)
    delete(place, "default", "work", Guard(0.0, force=True))
    with pytest.raises(StorageFailed):
        writer.append("user", "too late")
    assert before
    assert not writer.path.exists()
