"""A backup contains all that cannot be made again, as it was at one moment, and is verified before it has its name."""

import fcntl
import os
import sqlite3
import stat
import tarfile
import threading
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest
from upkeep.backup.homes import FACT, UID, furnished, leftovers, remembered, said
from upkeep.erase.secrets import SECRET, holding

import daypack
from daypack.errors import BadInput, Damaged, DaypackError
from daypack.history.layout import Home
from daypack.upkeep.backup import apply as making
from daypack.upkeep.backup import restore
from daypack.upkeep.backup.apply import apply
from daypack.upkeep.backup.contents import Request, files_of
from daypack.upkeep.backup.manifest import Backup
from daypack.upkeep.backup.plan import plan
from daypack.upkeep.backup.records import known_backups
from daypack.upkeep.backup.restore_plan import Request as RestoreRequest
from daypack.upkeep.backup.verify import verify, verify_in
from daypack.upkeep.erase.apply import apply as erase
from daypack.upkeep.erase.plan import Request as EraseRequest


def names(path: Path) -> list[str]:
    with tarfile.open(path) as archive:
        return archive.getnames()


def test_a_backup_of_a_user_has_everything_but_what_is_derived_or_downloaded(home: str, tmp_path: Path) -> None:
    place = furnished(home)
    written = apply(place, Request(), str(tmp_path / "b.tar"))
    found = names(tmp_path / "b.tar")
    user = f"home/{UID}"
    session = f"{user}/agent/default/session/work"
    for kept in ("messages.jsonl", "events.jsonl", "meta.json", "state", "context/pinned/rule.md"):
        assert f"{session}/{kept}" in found
    assert f"{user}/archive/default/old-1/messages.jsonl" in found
    assert {f"{user}/config.toml", f"{user}/erase.key", f"{user}/prompts/voice.md"} <= set(found)
    assert f"{user}/memory/store.sqlite" in found
    assert found[-1] == "manifest.json"
    assert not [
        name
        for name in found
        if "/offsets/" in name or "search.sqlite" in name or "memory/index" in name or "model/" in name or "bo" in name
    ]
    assert (written.verified.sessions, written.verified.entries) == (2, 1)
    assert stat.S_IMODE(os.stat(tmp_path / "b.tar").st_mode) == 0o600
    assert leftovers(tmp_path) == []


def test_every_file_is_listed_with_its_size_and_digest(home: str, tmp_path: Path) -> None:
    apply(furnished(home), Request(), str(tmp_path / "b.tar"))
    with Backup(str(tmp_path / "b.tar")) as backup, tarfile.open(tmp_path / "b.tar") as archive:
        assert [file.path for file in backup.manifest.files] == archive.getnames()[:-1]
        for file in backup.manifest.files:
            data = archive.extractfile(file.path)
            assert data is not None
            content = data.read()
            assert (len(content), sha256(content).hexdigest()) == (file.size, file.sha256)


def test_the_same_home_makes_the_same_files_in_the_same_order(home: str, tmp_path: Path) -> None:
    place = furnished(home)
    for name in ("1.tar", "2.tar"):
        apply(place, Request(), str(tmp_path / name))
    with Backup(str(tmp_path / "1.tar")) as first, Backup(str(tmp_path / "2.tar")) as second:
        logs = [file for file in first.manifest.files if not file.path.endswith(".sqlite")]
        assert logs == [file for file in second.manifest.files if not file.path.endswith(".sqlite")]


def test_scopes_are_one_session_one_user_and_the_whole_home(home: str, tmp_path: Path) -> None:
    place = furnished(home)
    one = apply(place, Request(scope="session", session="work"), str(tmp_path / "1.tar"))
    whole = apply(place, Request(scope="home"), str(tmp_path / "3.tar"))
    assert (one.verified.sessions, one.verified.memories) == (1, 0)
    assert whole.verified.users == (UID, "bo")
    assert whole.verified.sessions == 3
    assert len(known_backups(place.folder)) == 2
    assert len(known_backups(Home(home, "bo").folder)) == 1


def test_a_plan_lists_the_parts_and_writes_nothing(home: str, tmp_path: Path) -> None:
    place = furnished(home)
    before = sorted(os.walk(home))
    planned = plan(place, Request())
    assert sorted(os.walk(home)) == before
    assert {"default/work", "archive/default/old-1", "memory", "config.toml", "erase.key", "prompts"} == {
        item.name for item in planned.items
    }
    with daypack.open_session("work", home=home, uid=UID) as session:
        session.append("user", "More.")
    assert plan(place, Request()).id == planned.id  # growing is no change of the plan
    with daypack.open_session("second", home=home, uid=UID):
        pass
    with pytest.raises(BadInput, match="the plan has changed"):
        apply(place, Request(), str(tmp_path / "b.tar"), planned.id)


def test_a_link_is_left_out_and_named(home: str, tmp_path: Path) -> None:
    place = furnished(home)
    os.symlink("/etc/passwd", os.path.join(place.folder, "prompts", "link.md"))
    os.mkfifo(os.path.join(place.folder, "prompts", "pipe"))
    written = apply(place, Request(), str(tmp_path / "b.tar"))
    assert sorted(os.path.basename(found.path) for found in written.left_out) == ["link.md", "pipe"]
    assert not [name for name in names(tmp_path / "b.tar") if "link" in name or "pipe" in name]


def test_a_backup_is_never_overwritten_and_never_in_the_home(home: str, tmp_path: Path) -> None:
    place = furnished(home)
    (tmp_path / "b.tar").write_text("mine")
    with pytest.raises(BadInput, match="never overwritten"):
        apply(place, Request(), str(tmp_path / "b.tar"))
    assert (tmp_path / "b.tar").read_text() == "mine"
    with pytest.raises(BadInput, match="lost with it"):
        apply(place, Request(), os.path.join(home, "b.tar"))
    with pytest.raises(BadInput, match="no such folder"):
        apply(place, Request(), str(tmp_path / "missing" / "b.tar"))
    folder = tmp_path / "backups"
    folder.mkdir()
    assert apply(place, Request(), str(folder)).path.startswith(str(folder / f"daypack-{UID}-"))


def test_a_backup_that_does_not_verify_never_gets_its_name(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = furnished(home)

    def flip(path: str, scratch: str) -> object:
        with open(path, "r+b") as file:
            file.seek(600)
            byte = file.read(1)
            file.seek(600)
            file.write(bytes([byte[0] ^ 1]))
        return verified(path, scratch)

    verified = verify_in
    monkeypatch.setattr(making, "verify_in", flip)
    with pytest.raises(Damaged, match="does not match its digest"):
        apply(place, Request(), str(tmp_path / "b.tar"))
    assert sorted(os.listdir(tmp_path)) == ["home"]


def test_a_damaged_session_and_a_damaged_store_are_backed_up_as_they_are_and_reported(
    home: str, tmp_path: Path
) -> None:
    place = furnished(home)
    log = place.session("default", "work").messages
    data = Path(log).read_bytes()
    Path(log).write_bytes(data.replace(b"ferry", b"fexry"))
    store = Path(place.memory, "store.sqlite")
    whole = store.read_bytes()
    store.write_bytes(b"not a database at all" + whole[21:])
    written = apply(place, Request(), str(tmp_path / "b.tar"))
    assert written.verified.is_damaged
    assert {found.path for found in written.verified.findings if found.severity == "damage"} == {log, str(store)}
    with Backup(str(tmp_path / "b.tar")) as backup:
        assert backup.read(os.path.relpath(log, home)) == Path(log).read_bytes()
        assert backup.read(os.path.relpath(store, home)) == store.read_bytes()


def test_a_file_in_very_many_folders_is_left_out_and_named(home: str, tmp_path: Path) -> None:
    place = furnished(home)
    deep = Path(place.folder, "prompts", *["a"] * 80)
    deep.mkdir(parents=True)
    (deep / "x.md").write_text("deep")
    written = apply(place, Request(), str(tmp_path / "b.tar"))
    assert [found.reason for found in written.left_out] == ["in too many folders"]
    assert "home/ada/prompts/voice.md" in names(tmp_path / "b.tar")


def test_what_killed_backups_of_other_names_left_is_removed_and_what_is_in_use_is_not(
    home: str, tmp_path: Path
) -> None:
    place = furnished(home)
    left, used, other = (tmp_path / f".tmp-{name}.backup" for name in ("left.tar", "used.tar", "other"))
    for folder in (left, used):
        folder.mkdir()
        (folder / "backup.tar").write_text("everything that was said")
    other.mkdir()
    (other / "mine.txt").write_text("not of daypack")
    fd = os.open(used, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    apply(place, Request(), str(tmp_path / "b.tar"))
    assert leftovers(tmp_path) == [other.name, used.name]
    os.close(fd)
    apply(place, Request(), str(tmp_path / "c.tar"))
    assert leftovers(tmp_path) == [other.name]


def test_a_record_of_a_memory_that_was_changed_is_found_by_its_checksum(home: str, tmp_path: Path) -> None:
    place = furnished(home)
    store = os.path.join(place.memory, "store.sqlite")
    with closing(sqlite3.connect(store, isolation_level=None)) as file:
        guards = file.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            file.execute(f"DROP TRIGGER {name}")
        file.execute("UPDATE entries SET author = 'Eve'")
        for _, statement in guards:
            file.execute(statement)
    written = apply(place, Request(), str(tmp_path / "b.tar"))
    assert written.verified.is_damaged
    assert {found.path for found in written.verified.findings} == {store}


def test_sessions_and_memories_that_are_written_meanwhile_are_copied_at_one_position(home: str, tmp_path: Path) -> None:
    """Whatever moment a backup catches, each log in it is a whole prefix, and events refer to messages in it."""
    place = furnished(home)
    stop = threading.Event()
    problems: list[BaseException] = []

    def write() -> None:
        try:
            with daypack.open_session("work", home=home, uid=UID, durability="os") as session:
                number = 0
                while not stop.is_set():
                    number += 1
                    message = session.append("user", f"message {number} " + "of some length " * 40)
                    session.append_event("mine", {"message": message.id})
        except BaseException as error:
            problems.append(error)

    def remember() -> None:
        try:
            with daypack.open_memory(home=home, uid=UID) as memories:
                memory = memories.memories()[0].memory_id
                number = 0
                while not stop.is_set():
                    number += 1
                    memories.add_entry(memory, f"entry {number}")
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work) for work in (write, remember)]
    for thread in threads:
        thread.start()
    try:
        for number in range(4):
            written = apply(place, Request(), str(tmp_path / f"{number}.tar"))
            assert written.verified.findings == ()
            target = str(tmp_path / f"restored-{number}")
            restore.apply(target, written.path, RestoreRequest())
            with daypack.open_session("work", home=target, uid=UID, create=False) as session:
                ids = {message.id for message in session.messages()}
                assert {event.data["message"] for event in session.events() if event.type == "mine"} <= ids
                assert not session.damage
                assert [message.seq for message in session.messages()] == list(range(1, len(ids) + 1))
            with daypack.open_memory(home=target, uid=UID) as memories:
                assert memories.memories()[0].stats.entries == written.verified.entries
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert problems == []


def test_an_erasure_meanwhile_is_in_the_backup_whole_or_not_at_all(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with daypack.open_session("work", home=home, uid=UID, durability="os", workspace="") as session:
        session.append("user", f"The password is {SECRET}.")
        session.pin("long.md", f"{SECRET} " + "Tides turn. " * 500)
    place = Home(home, UID)
    from daypack.upkeep.backup import snapshot

    real, once = files_of, iter((True,))

    def erasing(*args: object) -> object:
        if next(once, False):  # the logs are copied, the blobs are not
            erase(place, EraseRequest(literal=SECRET, session="work"))
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(snapshot, "files_of", erasing)
    apply(place, Request(), str(tmp_path / "b.tar"))
    assert holding(tmp_path) == []
    assert verify(str(tmp_path / "b.tar")).findings == ()


def test_a_home_that_cannot_be_written_is_backed_up(home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from daypack.errors import StorageFailed
    from daypack.files.lock import Lock
    from daypack.upkeep.backup import apply as module

    place = furnished(home)

    def refuse(*_: object) -> None:
        raise StorageFailed("Read-only file system", operation="open", place=home)

    monkeypatch.setattr(Lock, "_open", refuse)
    monkeypatch.setattr(module, "add_record", refuse)
    written = apply(place, Request(), str(tmp_path / "b.tar"))
    assert "Read-only" in written.unrecorded
    assert written.verified.sessions == 2


@pytest.mark.parametrize("at", [0.02, 0.3, 0.6, 0.97])
def test_a_flipped_byte_or_a_cut_anywhere_is_found(home: str, tmp_path: Path, at: float) -> None:
    apply(furnished(home), Request(), str(tmp_path / "b.tar"))
    data = (tmp_path / "b.tar").read_bytes()
    place = int(len(data) * at)
    while data[place] == 0:  # padding is not part of any file
        place += 1
    (tmp_path / "flipped.tar").write_bytes(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
    (tmp_path / "cut.tar").write_bytes(data[:place])
    for name in ("flipped.tar", "cut.tar"):
        with pytest.raises(Damaged) as refused:
            verify(str(tmp_path / name))
        assert refused.value.hint
        assert refused.value.place == str(tmp_path / name)


def test_what_is_no_backup_is_refused_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    (tmp_path / "zeros").write_bytes(bytes(4096))
    os.mkfifo(tmp_path / "pipe")
    for name in ("text", "zeros", "pipe", "missing", ""):
        with pytest.raises(DaypackError):
            verify(str(tmp_path / name))


def test_restored_sessions_say_what_was_said(home: str, tmp_path: Path) -> None:
    apply(furnished(home), Request(scope="home"), str(tmp_path / "b.tar"))
    target = str(tmp_path / "new")
    restore.apply(target, str(tmp_path / "b.tar"), RestoreRequest())
    assert said(target) == said(home)
    assert said(target, "hers", "bo") == ["Bo's own words."]
    assert remembered(target) == [FACT]
