"""`daypack backup` shows a plan, makes a verified file, verifies one and lists those that are known."""

import json
import os
from pathlib import Path

from cli.conftest import Command

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
