"""A restore overwrites nothing that is not named, brings back nothing that was erased, and refuses hostile archives."""

import errno
import io
import os
import stat
import tarfile
import tempfile
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
from faults import Faults, injected
from upkeep.backup.homes import FACT, UID, furnished, leftovers, remembered, said

import daypack
from daypack.errors import AccessDenied, BadInput, Damaged, UnsafePath, WriteFailed
from daypack.files.atomic import make_folders
from daypack.history.layout import Home
from daypack.memory.audit_log.log import AuditLog
from daypack.memory.audit_log.record import Deed
from daypack.types.digest import digest_bytes
from daypack.upkeep.archive import Guard
from daypack.upkeep.backup.apply import apply as back_up
from daypack.upkeep.backup.contents import Request as BackupRequest
from daypack.upkeep.backup.extraction import remove_tree
from daypack.upkeep.backup.manifest import Backup
from daypack.upkeep.backup.restore import apply
from daypack.upkeep.backup.restore_plan import Request, plan
from daypack.upkeep.backup.scratch import scratch_folder
from daypack.upkeep.backup.verify import verify


@pytest.fixture
def backup(home: str, tmp_path: Path) -> str:
    furnished(home)
    return back_up(Home(home, UID), BackupRequest(), str(tmp_path / "b.tar")).path


def grow(home: str, text: str = "One more.") -> None:
    with daypack.open_session("work", home=home, uid=UID, durability="os") as session:
        session.append("user", text)


def test_everything_is_private_after_a_restore(backup: str, tmp_path: Path) -> None:
    target = tmp_path / "new"
    apply(str(target), backup, Request())
    modes = {stat.S_IMODE(path.lstat().st_mode) for path in target.rglob("*") if path.is_file()}
    folders = {stat.S_IMODE(path.lstat().st_mode) for path in target.rglob("*") if path.is_dir()}
    assert (modes, folders) == ({0o600}, {0o700})
    assert leftovers(target) == []


def test_what_exists_is_listed_and_not_overwritten(home: str, backup: str) -> None:
    grow(home)
    planned = plan(home, backup, Request())
    assert "default/work" in {item.name for item in planned.existing} <= {"default/work", "memory"}
    assert {item.state for item in planned.items if item.name in ("config.toml", "prompts")} == {"same"}
    before = said(home)
    with pytest.raises(BadInput, match="nothing is overwritten: default/work") as refused:
        apply(home, backup, Request())
    assert "--replace" in refused.value.hint
    assert said(home) == before
    assert leftovers(home) == []


def test_only_what_is_named_is_replaced(home: str, backup: str) -> None:
    grow(home)
    Path(home, "home", UID, "config.toml").write_text('model = "gpt-4"\n')
    done = apply(home, backup, Request(replace=("default/work",)))
    assert done.replaced == ("default/work",)
    assert "One more." not in said(home)
    assert {item.name for item in done.plan.existing} == {"config.toml"}
    assert '"gpt-4"' in Path(home, "home", UID, "config.toml").read_text()
    grow(home)
    with pytest.raises(BadInput, match="has no 'default/wrk'"):
        apply(home, backup, Request(replace=("default/wrk",)))
    done = apply(home, backup, Request(replace=("all",)))
    assert {"default/work", "config.toml"} <= set(done.replaced)
    assert "One more." not in said(home)
    assert "gpt-4o" in Path(home, "home", UID, "config.toml").read_text()
    assert leftovers(home) == []


def test_memories_alone_are_restored(home: str, backup: str) -> None:
    assert {item.state for item in plan(home, backup, Request()).items if item.name == "memory"} == {"same"}
    grow(home)
    with daypack.open_memory(home=home, uid=UID) as memories:
        memories.add_entry(memories.memories()[0].memory_id, "A mistake.")
    done = apply(home, backup, Request(replace=("memory",)))
    assert (done.replaced, [item.name for item in done.restored]) == (("memory",), ["memory"])
    assert remembered(home) == [FACT]
    assert "One more." in said(home)
    assert {item.state for item in plan(home, backup, Request()).items if item.name == "memory"} == {"same"}


def test_the_id_of_a_plan_says_what_is_replaced(home: str, backup: str) -> None:
    grow(home)
    planned = plan(home, backup, Request())
    with pytest.raises(BadInput, match="the plan has changed"):
        apply(home, backup, Request(replace=("all",)), planned.id)
    assert planned.replacing().id == plan(home, backup, Request(replace=("default/work",))).id != planned.id


def test_a_plan_compares_every_digest(backup: str, tmp_path: Path) -> None:
    data = Path(backup).read_bytes()
    Path(backup).write_bytes(data.replace(b"Which ferry", b"Whose ferry", 1))
    with pytest.raises(Damaged, match="does not match its digest"):
        plan(str(tmp_path / "new"), backup, Request())


# Tokens


@pytest.fixture
def tokens(home: str) -> list[str]:
    """The secrets of two tokens."""
    with daypack.open_memory(home=home, uid=UID) as memories:
        memories.users.get("eve")
        return [memories.users.new_token("eve").secret for _ in range(2)]


def revoke(home: str, secret: str) -> None:
    with daypack.open_memory(home=home, uid=UID) as memories:
        memories.users.revoke(memories.users.check_token(secret).token_id)


def works(home: str, secret: str) -> bool:
    with daypack.open_memory(home=home, uid=UID) as memories:
        try:
            return memories.users.check_token(secret).user == "eve"
        except AccessDenied:
            return False


def test_a_token_that_was_revoked_stays_revoked(home: str, tokens: list[str], tmp_path: Path) -> None:
    path = back_up(Home(home, UID), BackupRequest(), str(tmp_path / "b.tar")).path
    revoke(home, tokens[0])
    grown = plan(home, path, Request(replace=("all",)))
    assert {(item.name, item.state, item.tokens, item.revoked) for item in grown.items} == {("memory", "same", 1, 1)}
    with daypack.open_memory(home=home, uid=UID) as memories:
        memories.create_memory("Later")
    restored = apply(home, path, Request(replace=("all",)))
    assert [(item.tokens, item.revoked) for item in restored.restored] == [(1, 1)]
    assert [works(home, secret) for secret in tokens] == [False, True]
    new = str(tmp_path / "new")
    assert [(item.tokens, item.revoked) for item in plan(new, path, Request()).items] == [(2, 0)]
    apply(new, path, Request())
    assert [works(new, secret) for secret in tokens] == [True, True]


def test_the_audit_log_is_enough_to_know_a_revoked_token(home: str, tokens: list[str], tmp_path: Path) -> None:
    place = Home(home, UID)
    path = back_up(place, BackupRequest(), str(tmp_path / "b.tar")).path
    with daypack.open_memory(home=home, uid=UID) as memories:
        token = memories.users.check_token(tokens[0]).token_id
        memories.users.revoke(token)
    AuditLog(place.audit).record(Deed(action="token.revoke", target=token), durable=True)
    remove_tree(place.memory)
    for make_new_store in (False, True):
        if make_new_store:
            remove_tree(place.memory)
            with daypack.open_memory(home=home, uid=UID) as memories:
                memories.create_memory("Later")
        apply(home, path, Request(replace=("all",)))
        assert [works(home, secret) for secret in tokens] == [False, True]


def test_one_session_is_restored_out_of_a_backup_beside_others(home: str, backup: str) -> None:
    with daypack.open_session("work", home=home, uid=UID) as session:
        folder = session.path
    before = said(home)
    os.rename(folder, f"{folder}-lost")
    os.rename(f"{folder}-lost", f"{os.path.dirname(folder)}/other")
    done = apply(home, backup, Request(session="work"))
    assert [item.name for item in done.restored] == ["default/work"]
    assert said(home) == before
    with pytest.raises(BadInput, match="no session default/nothing in it"):
        plan(home, backup, Request(session="nothing"))


def test_a_session_in_use_is_replaced_only_with_force(home: str, backup: str) -> None:
    grow(home)
    request = Request(session="work", replace=("all",))
    with pytest.raises(BadInput, match="written to within the last hour"):
        apply(home, backup, request, guard=Guard(time.time()))
    with daypack.open_session("work", home=home, uid=UID, durability="os") as session:
        session.append("user", "Before the restore.")
        apply(home, backup, request, guard=Guard(time.time(), force=True))
        session.append("user", "After the restore.")
        assert [message.text for message in session.messages()][-1] == "After the restore."
    assert said(home)[-1] == "After the restore."
    assert "Before the restore." not in said(home)


def test_a_backup_is_restored_as_another_user(backup: str, tmp_path: Path) -> None:
    target = str(tmp_path / "new")
    apply(target, backup, Request(user="1001"))
    assert os.listdir(os.path.join(target, "home")) == ["1001"]
    assert len(said(target, uid="1001")) == 2
    assert remembered(target, "1001") == [FACT]


def test_a_plan_is_applied_only_if_it_is_still_the_same(home: str, backup: str, tmp_path: Path) -> None:
    target = str(tmp_path / "new")
    planned = plan(target, backup, Request())
    assert not os.path.exists(target)
    with daypack.open_session("work", home=target, uid=UID):
        pass
    with pytest.raises(BadInput, match="the plan has changed"):
        apply(target, backup, Request(), planned.id)
    assert apply(target, backup, Request(replace=("all",))).replaced == ("default/work",)


def test_a_restore_that_is_repeated_has_nothing_to_do(backup: str, tmp_path: Path) -> None:
    target = str(tmp_path / "new")
    apply(target, backup, Request())
    assert apply(target, backup, Request()).restored == ()


def test_a_link_in_the_home_is_not_followed(backup: str, tmp_path: Path) -> None:
    target, outside = tmp_path / "new", tmp_path / "outside"
    outside.mkdir()
    (target / "home").mkdir(parents=True)
    (target / "home" / UID).symlink_to(outside)
    with pytest.raises(UnsafePath, match="symbolic link"):
        apply(str(target), backup, Request())
    assert list(outside.iterdir()) == []


# Hostile archives


def forged(path: Path, members: list[tuple[str, bytes]], change: dict[str, Any] | None = None) -> str:
    """Write an archive whose manifest matches its members, so that only its names are wrong."""
    files = [{"path": name, "size": len(data), "sha256": sha256(data).hexdigest()} for name, data in members]
    items = [{"path": "home/ada/agent/default/session/work", "kind": "session", "messages": 0, "events": 0}]
    manifest: dict[str, Any] = {
        "format": "daypack-backup/1",
        "created_at": "2026-11-17T21:00:00.000Z",
        "root": "/nowhere",
        "scope": "user",
        "users": ["ada"],
        "items": items,
        "files": files,
    } | (change or {})
    body = msgspec.json.encode(manifest)[:-1]
    members = [*members, ("manifest.json", body + f',"digest":"{digest_bytes(body)}"}}'.encode())]
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return str(path)


SESSION = "home/ada/agent/default/session/work"


@pytest.mark.parametrize(
    "name",
    [
        "/etc/cron.d/x",
        "../../x",
        f"{SESSION}/../../../../../x",
        f"{SESSION}/blob/..",
        f"{SESSION}//x",
        f"{SESSION}/./x",
        "home/../x",
        "home/ada/agent/default/session/other/messages.jsonl",
        f"{SESSION}/{'x' * 300}",
        f"{SESSION}/a\0b",
    ],
)
def test_a_name_outside_of_the_parts_is_refused(tmp_path: Path, name: str) -> None:
    path = forged(tmp_path / "b.tar", [(f"{SESSION}/messages.jsonl", b""), (name, b"owned")])
    for read in (lambda: verify(path), lambda: apply(str(tmp_path / "new"), path, Request())):
        with pytest.raises(Damaged):
            read()
    assert not list(tmp_path.rglob("x"))
    assert not (tmp_path / "new").exists() or not list((tmp_path / "new").rglob("*"))


@pytest.mark.parametrize(
    "item",
    [
        {"path": "home/ada/agent/default/session/..", "kind": "session"},
        {"path": "home/../agent/default/session/work", "kind": "session"},
        {"path": "home/ada/agent", "kind": "file"},
        {"path": "home/ada/model", "kind": "file"},
        {"path": "home", "kind": "file"},
        {"path": "", "kind": "memory"},
        {"path": "home/eve/memory", "kind": "memory"},
    ],
)
def test_a_part_that_is_no_part_of_a_home_is_refused(tmp_path: Path, item: dict[str, str]) -> None:
    path = forged(tmp_path / "b.tar", [(f"{item['path']}/x", b"owned")], {"items": [item]})
    with pytest.raises(Damaged):
        apply(str(tmp_path / "new"), path, Request())
    assert not list(tmp_path.rglob("x"))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_folders_and_devices_are_refused(tmp_path: Path, backup: str, kind: bytes) -> None:
    path = tmp_path / "hostile.tar"
    with tarfile.open(path, "w") as archive:
        info = tarfile.TarInfo(f"{SESSION}/messages.jsonl")
        info.type, info.linkname = kind, "/etc/passwd"
        archive.addfile(info)
    with open(path, "rb") as head, open(backup, "rb") as rest:
        data = head.read(512) + rest.read()
    path.write_bytes(data)
    with pytest.raises(Damaged, match="not a plain file"):
        apply(str(tmp_path / "new"), str(path), Request())


def test_duplicates_sparse_files_and_false_sizes_are_refused(tmp_path: Path) -> None:
    messages = (f"{SESSION}/messages.jsonl", b"")
    with pytest.raises(Damaged, match="twice"):
        verify(forged(tmp_path / "1.tar", [messages, messages]))
    with pytest.raises(Damaged, match="file and a folder"):
        verify(forged(tmp_path / "2.tar", [messages, (f"{SESSION}/a", b""), (f"{SESSION}/a/b", b"")]))
    header = tarfile.TarInfo(f"{SESSION}/messages.jsonl")
    header.size = 1 << 40
    (tmp_path / "3.tar").write_bytes(header.tobuf(tarfile.PAX_FORMAT) + bytes(1024))
    with pytest.raises(Damaged, match="longer than the file"):
        verify(str(tmp_path / "3.tar"))
    sparse = tarfile.TarInfo(f"{SESSION}/messages.jsonl")
    sparse.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.realsize": "99999999999"}
    (tmp_path / "4.tar").write_bytes(sparse.tobuf(tarfile.PAX_FORMAT) + bytes(1024))
    with pytest.raises(Damaged, match="a damaged name"):
        verify(str(tmp_path / "4.tar"))
    with pytest.raises(Damaged, match="format"):
        verify(forged(tmp_path / "5.tar", [messages], {"format": "daypack-backup/9"}))


def test_a_negative_size_a_deep_manifest_and_a_part_twice_are_refused(tmp_path: Path) -> None:
    messages = (f"{SESSION}/messages.jsonl", b"")
    header = tarfile.TarInfo(f"{SESSION}/messages.jsonl")
    header.pax_headers = {"size": "-1024"}
    (tmp_path / "1.tar").write_bytes(header.tobuf(tarfile.PAX_FORMAT) + bytes(1024))
    with pytest.raises(Damaged, match="a damaged name"):
        verify(str(tmp_path / "1.tar"))
    deep = msgspec.Raw(b"[" * 100_000 + b"]" * 100_000)
    with pytest.raises(Damaged, match="manifest cannot be read"):
        verify(forged(tmp_path / "2.tar", [messages], {"more": deep}))
    part = {"path": SESSION, "kind": "session"}
    with pytest.raises(Damaged, match="twice"):
        verify(forged(tmp_path / "3.tar", [messages], {"items": [part, part]}))
    with pytest.raises(Damaged, match="is no folder"):
        apply(str(tmp_path / "new"), forged(tmp_path / "4.tar", [messages], {"root": "/a\0b"}), Request())


def test_a_path_with_more_folders_than_python_allows_calls_is_refused_and_can_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "t"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    name = f"{SESSION}/blob/" + "a/" * 1500 + "x"
    path = forged(tmp_path / "b.tar", [(f"{SESSION}/messages.jsonl", b""), (name, b"")])
    with pytest.raises(Damaged, match="is no place in a home"):
        verify(path)
    assert list(scratch.iterdir()) == []
    make_folders(str(scratch / "/".join(["a"] * 1500)), durable=False)
    remove_tree(str(scratch))
    assert not scratch.exists()


def test_bytes_that_belong_to_no_member_are_refused(tmp_path: Path, backup: str) -> None:
    data = Path(backup).read_bytes()
    with Backup(backup) as opened:
        member = next(member for member in opened.members.values() if member.size % 512)
    gap = member.offset + member.size
    changed = {
        "between the members": data[:gap] + b"x" + data[gap + 1 :],
        "after the end": data + b"hidden",
        "cut off": data[:-1],
    }
    for problem, content in changed.items():
        (tmp_path / "x.tar").write_bytes(content)
        with pytest.raises(Damaged, match=problem):
            verify(str(tmp_path / "x.tar"))


def test_a_home_of_the_backup_that_cannot_be_read_does_not_matter(tmp_path: Path) -> None:
    foreign = tmp_path / "file"
    foreign.write_text("not a home")
    messages = (f"{SESSION}/messages.jsonl", b"")
    path = forged(tmp_path / "b.tar", [messages], {"root": str(foreign)})
    assert [item.name for item in apply(str(tmp_path / "new"), path, Request()).restored] == ["default/work"]


def test_the_audit_log_of_a_home_is_kept(home: str, tmp_path: Path) -> None:
    place = furnished(home)
    log = Path(place.audit, "audit.jsonl")
    with AuditLog(place.audit).recording(Deed(action="erase")):
        backup = back_up(place, BackupRequest(), str(tmp_path / "b.tar")).path
    grown = log.read_bytes()
    planned = plan(home, backup, Request(replace=("all",)))
    assert {item.name: item.state for item in planned.items}["audit"] == "kept"
    apply(home, backup, Request(replace=("all",)))
    assert log.read_bytes() == grown
    apply(str(tmp_path / "new"), backup, Request())
    assert grown.startswith((tmp_path / "new" / log.relative_to(home)).read_bytes())


def test_a_scratch_folder_that_a_killed_process_left_is_removed(
    backup: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "t"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    (scratch / "daypack-verify-left").mkdir()
    (scratch / "daypack-verify-left" / "messages.jsonl").write_text("private")
    (scratch / "other").mkdir()
    with scratch_folder("daypack-verify-") as used:
        Path(used, "file").write_text("in use")
        verify(backup)
        assert sorted(path.name for path in scratch.iterdir()) == sorted([Path(used).name, "other"])
    assert [path.name for path in scratch.iterdir()] == ["other"]


def test_a_scratch_folder_that_cannot_be_used_is_named_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with injected(Faults(2, code=errno.ENOSPC)), pytest.raises(WriteFailed, match="TMPDIR") as caught:
        scratch_folder("daypack-verify-").__enter__()
    assert caught.value.place.startswith(str(tmp_path / "daypack-verify-"))
    assert not list(tmp_path.iterdir())


def test_names_of_any_length_and_script_survive(home: str, tmp_path: Path) -> None:
    name = "ß" * 60
    with daypack.open_session(name, agent="日本語" * 10, home=home, uid=UID, durability="os") as session:
        session.append("user", "hello")
        session.pin("é" * 40, "text")
    back_up(Home(home, UID), BackupRequest(), str(tmp_path / "b.tar"))
    with Backup(str(tmp_path / "b.tar")) as backup:
        assert backup.manifest.items[0].name == f"{'日本語' * 10}/{name}"
    apply(str(tmp_path / "new"), str(tmp_path / "b.tar"), Request())
    with daypack.open_session(name, agent="日本語" * 10, home=str(tmp_path / "new"), uid=UID, create=False) as session:
        assert [message.text for message in session.messages()] == ["hello"]
        assert list(session.pins) == [f"{'é' * 40}.md"]
