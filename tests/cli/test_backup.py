"""`daypack backup` shows a plan, makes a verified file, verifies one and lists those that are known."""

import json
import os
from pathlib import Path

import pytest
from cli.conftest import Command

from daypack.errors import WriteFailed
from daypack.memory.audit_log.log import AuditLog
from daypack.session import Session


def test_the_plan_writes_nothing_and_names_the_next_command(command: Command, talk: Session, tmp_path: Path) -> None:
    talk.close()
    done = command("backup", str(tmp_path / "b.tar"))
    assert done.returncode == 0
    assert "default/talk" in done.stdout
    assert "plan " in done.stdout
    assert "--apply" in done.stderr
    assert not (tmp_path / "b.tar").exists()


def test_a_backup_is_made_verified_and_listed(command: Command, talk: Session, tmp_path: Path) -> None:
    talk.close()
    path = str(tmp_path / "b.tar")
    planned = json.loads(command("backup", path, "--json").stdout)["plan"]["id"]
    made = command("backup", path, "--apply", "--plan", planned)
    assert made.returncode == 0, made.stderr
    assert "backed up and verified: 1 session, 1 message" in made.stdout
    assert "keep it private" in made.stderr
    checked = command("backup", "--verify", path)
    assert (checked.returncode, "verified" in checked.stdout) == (0, True)
    listed = json.loads(command("backup", "--list", "--json").stdout)
    assert [(known["path"], known["scope"]) for known in listed] == [(path, "user")]
    again = command("backup", path, "--apply")
    assert again.returncode == 2
    assert "never overwritten" in again.stderr


def test_one_session_or_all_users_are_backed_up(command: Command, talk: Session, tmp_path: Path) -> None:
    talk.close()
    one = json.loads(command("backup", str(tmp_path / "1.tar"), "--session", "ta", "--apply", "--json").stdout)
    assert one["applied"]["scope"] == "session"
    said = command("backup", str(tmp_path / "3.tar"), "--session", "ta", "--apply").stderr
    assert "said in the session" in said
    assert not {"token", "memories"} & set(said.replace(":", "").split())
    every = json.loads(command("backup", str(tmp_path / "2.tar"), "--all-users", "--apply", "--json").stdout)
    assert every["applied"]["verified"]["users"] == [str(os.getuid())]


def test_a_damaged_backup_is_exit_code_3(command: Command, talk: Session, tmp_path: Path) -> None:
    talk.close()
    path = tmp_path / "b.tar"
    command("backup", str(path), "--apply")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"List the files", b"Lost the files"))
    done = command("backup", "--verify", str(path))
    assert done.returncode == 3
    assert "does not match its digest" in done.stderr
    log = Path(talk.path, "messages.jsonl")
    log.write_bytes(log.read_bytes().replace(b"List", b"Lost"))
    damaged = command("backup", str(tmp_path / "c.tar"), "--apply")
    assert damaged.returncode == 3
    assert "checksum" in damaged.stdout
    assert damaged.stdout.startswith("backed up, with damage")
    assert command("backup", "--verify", str(tmp_path / "c.tar")).stdout.startswith("verified, with damage")
    assert (tmp_path / "c.tar").exists()


def test_arguments_that_cannot_be_combined_are_refused(command: Command, tmp_path: Path) -> None:
    for arguments in (
        (),
        ("--list", "--apply"),
        ("--verify", "x", "--apply"),
        ("x", "--session", "a", "--all-users"),
        ("x", "--plan", "1"),
    ):
        done = command("backup", *arguments)
        assert done.returncode == 2, arguments
        assert "hint" in done.stderr or "→" in done.stderr
    assert command("backup", str(tmp_path / "b.tar"), "--apply").returncode == 2  # an empty home


def test_a_missing_file_and_one_of_another_kind_are_named_as_what_they_are(command: Command, tmp_path: Path) -> None:
    missing = command("backup", "--verify", str(tmp_path / "none.tar"))
    assert missing.returncode == 1
    assert "no such file" in missing.stderr
    assert "doctor" not in missing.stderr
    assert "backup --list" in missing.stderr
    for text in ("print('hello')\n", "x" * 5_000, ""):
        (tmp_path / "first.py").write_text(text)
        other = command("backup", "--verify", str(tmp_path / "first.py"))
        assert other.returncode == 3
        assert "not a backup" in other.stderr
        assert "cut off" not in other.stderr


def test_a_backup_that_the_home_cannot_record_says_who_does_not_know_of_it(
    command: Command, talk: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk.close()

    def refuse(*_: object, **__: object) -> None:
        raise WriteFailed("read-only file system", operation="record", place="home", hint="write elsewhere")

    monkeypatch.setattr("daypack.upkeep.backup.apply.add_record", refuse)
    monkeypatch.setattr(AuditLog, "_append", refuse)
    done = command("backup", str(tmp_path / "b.tar"), "--apply")
    assert done.returncode == 0
    assert "neither `daypack erase` nor the audit log knows of this backup: read-only file system" in done.stderr
