"""Erasures and backups know each other: an erasure names the backups that hold it, a restore what it brings back."""

import os
from pathlib import Path

import pytest
from upkeep.backup.homes import UID, said
from upkeep.erase.secrets import SECRET, holding

import daypack
from daypack.errors import BadInput
from daypack.history.layout import Home
from daypack.upkeep.archive import Guard, archive, delete
from daypack.upkeep.backup.apply import apply as back_up
from daypack.upkeep.backup.contents import Request as BackupRequest
from daypack.upkeep.backup.restore import apply as restore
from daypack.upkeep.backup.restore_plan import Request, plan
from daypack.upkeep.erase.apply import apply as erase
from daypack.upkeep.erase.plan import Request as EraseRequest
from daypack.upkeep.erase.plan import plan as plan_erasure

LITERAL = EraseRequest(literal=SECRET, everywhere=True)


@pytest.fixture
def place(home: str) -> Home:
    with daypack.open_session("work", home=home, uid=UID, durability="os", workspace="") as session:
        session.append("user", f"The password is {SECRET}.")
        session.append("assistant", "ok")
    with daypack.open_session("plain", home=home, uid=UID, durability="os", workspace="") as session:
        session.append("user", "Nothing of interest.")
    with daypack.open_memory(home=home, uid=UID) as memories:
        memory = memories.create_memory("Harbour")
        memories.add_entry(memory.memory_id, "A long entry. " * 280 + SECRET + " and more. " * 400)
    return Home(home, UID)


def made(place: Home, path: Path, session: str | None = None) -> str:
    request = BackupRequest(scope="session", session=session) if session else BackupRequest()
    return back_up(place, request, str(path)).path


def test_an_erasure_names_the_backups_that_hold_it_and_those_that_may(place: Home, tmp_path: Path) -> None:
    held = made(place, tmp_path / "held.tar")
    free = made(place, tmp_path / "free.tar", "plain")
    gone = made(place, tmp_path / "gone.tar", "plain")
    os.unlink(gone)
    Path(made(place, tmp_path / "bad.tar")).write_text("not a backup")
    found = {file.path: file for file in plan_erasure(place, LITERAL).elsewhere if file.is_backup}
    assert set(found) == {held, gone, str(tmp_path / "bad.tar")}
    assert free not in found
    assert found[held].is_certain
    assert "delete this one" in found[held].reason
    assert "may hold it" in found[gone].reason
    assert "may hold it" in found[str(tmp_path / "bad.tar")].reason
    applied = erase(place, LITERAL)
    assert [file.path for file in applied.remaining if file.is_backup] == [held]
    assert holding(place.folder) == []


@pytest.mark.parametrize("kind", ["memory", "message", "entry"])
def test_also_in_a_store_where_its_bytes_are_in_pieces_and_of_a_short_message(
    place: Home, tmp_path: Path, kind: str
) -> None:
    path = made(place, tmp_path / "b.tar")
    with daypack.open_memory(home=place.root, uid=UID) as memories:
        memory = memories.memories()[0].memory_id
        entry = memories.list_entries(memory).entries[0].entry_id
    request = {
        "memory": EraseRequest(literal=SECRET, memory="Harbour"),
        "message": EraseRequest(session="work", message=2),
        "entry": EraseRequest(entry=entry),
    }[kind]
    applied = erase(place, request)
    assert path in [file.path for file in applied.remaining]
    erased = plan(place.root, path, Request()).erased
    assert {found.name for found in erased} == {"default/work" if kind == "message" else "memory"}


def test_a_restore_does_not_bring_back_what_was_erased_unless_it_is_asked_to(place: Home, tmp_path: Path) -> None:
    path = made(place, tmp_path / "b.tar")
    erase(place, LITERAL)
    for target in (place.root, str(tmp_path / "new")):  # the home of the backup still knows it
        planned = plan(target, path, Request(replace=("all",)))
        assert {found.name for found in planned.erased} == {"default/work", "memory"}
        with pytest.raises(BadInput, match="bring back what was erased") as refused:
            restore(target, path, Request(replace=("all",)))
        assert "--with-erased" in refused.value.hint
    assert holding(place.folder) == []
    restore(place.root, path, Request(session="plain"))
    restore(place.root, path, Request(session="work", replace=("all",), with_erased=True))
    assert SECRET in said(place.root)[0]
    erase(place, LITERAL)
    assert holding(place.folder) == []


def test_a_session_that_records_its_erasure_is_enough(place: Home, tmp_path: Path) -> None:
    path = made(place, tmp_path / "b.tar", "work")
    erase(place, EraseRequest(session="work", literal=SECRET))
    os.unlink(os.path.join(place.folder, "erasures.jsonl"))
    assert [found.name for found in plan(place.root, path, Request()).erased] == ["default/work"]


def test_a_session_that_was_deleted_before_the_erasure_is_known_by_its_backup(place: Home, tmp_path: Path) -> None:
    path = made(place, tmp_path / "b.tar", "work")
    archive(place, "default", "work", Guard(0.0, force=True))
    delete(place, "default", "work", Guard(0.0, force=True))
    erase(place, LITERAL)  # the memory has it still
    with pytest.raises(BadInput, match="bring back what was erased"):
        restore(place.root, path, Request())


def test_what_only_a_backup_holds_is_recorded_and_not_brought_back(place: Home, tmp_path: Path) -> None:
    path = made(place, tmp_path / "b.tar")
    for name in ("work", "plain"):
        archive(place, "default", name, Guard(0.0, force=True))
        delete(place, "default", name, Guard(0.0, force=True))
    with daypack.open_memory(home=place.root, uid=UID) as memories:
        memory = memories.memories()[0].memory_id
        memories.delete_memory(memory)
        memories.erase_memory(memory)
    assert plan_erasure(place, LITERAL).is_empty
    applied = erase(place, LITERAL)
    assert [file.path for file in applied.remaining] == [path]
    assert applied.marker.startswith("[erased:")
    planned = plan(place.root, path, Request(replace=("all",)))
    assert {found.name for found in planned.erased} == {"default/work", "memory"}
    with pytest.raises(BadInput, match="bring back what was erased"):
        restore(place.root, path, Request(replace=("all",)))
    restore(place.root, path, Request(session="plain"))


def test_what_stays_in_the_home_is_no_erasure_of_its_backup(place: Home, tmp_path: Path) -> None:
    with daypack.open_session("plain", home=place.root, uid=UID, durability="os") as session:
        session.append("user", f"Again: {SECRET}")
    path = made(place, tmp_path / "b.tar")
    erase(place, EraseRequest(session="work", literal=SECRET))
    planned = plan(place.root, path, Request(replace=("all",)))
    assert {found.name for found in planned.erased} == {"default/work"}


def test_a_backup_made_after_the_erasure_is_restored_without_a_question(place: Home, tmp_path: Path) -> None:
    erase(place, LITERAL)
    path = made(place, tmp_path / "b.tar")
    assert plan(place.root, path, Request()).erased == ()
    target = str(tmp_path / "new")
    restore(target, path, Request())
    assert "[erased:" in said(target)[0]
    older = os.path.join(target, "home", UID, "erasures.jsonl")
    assert os.path.exists(older)  # the new home knows it too


def test_records_of_erasures_are_merged_and_never_replaced(place: Home, tmp_path: Path) -> None:
    erase(place, EraseRequest(session="work", literal=SECRET))
    path = made(place, tmp_path / "b.tar")
    with daypack.open_session("plain", home=place.root, uid=UID, durability="os") as session:
        session.append("user", "Another secret: hunter2hunter2.")
    erase(place, EraseRequest(session="plain", literal="hunter2hunter2"))
    record = Path(place.folder, "erasures.jsonl")
    lines = record.read_bytes().splitlines()
    restore(place.root, path, Request(replace=("all",), with_erased=True))
    assert record.read_bytes().splitlines() == lines
    record.write_bytes(b"\n".join(lines[2:]) + b"\n")
    restore(place.root, path, Request(replace=("all",), with_erased=True))
    assert sorted(record.read_bytes().splitlines()) == sorted(lines)
