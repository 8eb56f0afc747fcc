"""`daypack restore` shows a plan, overwrites nothing that is not named, and says what was erased since."""

import json
from pathlib import Path

from cli.conftest import Command

import daypack
from daypack.session import Session


def backed_up(command: Command, talk: Session, folder: Path) -> str:
    talk.close()
    path = str(folder / "b.tar")
    assert command("backup", path, "--apply").returncode == 0
    return path


def test_a_backup_is_restored_into_a_new_home(bare_command: Command, talk: Session, tmp_path: Path) -> None:
    path = backed_up(bare_command, talk, tmp_path)
    target = str(tmp_path / "new")
    planned = bare_command("restore", path, "--home", target)
    assert planned.returncode == 0
    assert "new" in planned.stdout
    assert not Path(target).exists()
    done = bare_command("restore", path, "--home", target, "--apply")
    assert done.returncode == 0, done.stderr
    assert "restored 1 part" in done.stdout
    with daypack.open_session("talk", home=target, create=False) as session:
        assert [message.text for message in session.messages()] == ["List the files"]
        assert session.pins == {"rules.md": "Be brief."}
    again = bare_command("restore", path, "--home", target, "--apply")
    assert "nothing to restore" in again.stdout


def test_what_exists_is_refused_until_it_is_named(command: Command, talk: Session, tmp_path: Path) -> None:
    path = backed_up(command, talk, tmp_path)
    command("append", "talk", "and then")
    planned = command("restore", path)
    assert "exists" in planned.stdout
    assert "--replace default/talk" in planned.stderr
    refused = command("restore", path, "--apply")
    assert refused.returncode == 2
    assert "nothing is overwritten" in refused.stderr
    in_use = command("restore", path, "--apply", "--replace", "default/talk")
    assert (in_use.returncode, "--force" in in_use.stderr) == (2, True)
    plan = json.loads(command("restore", path, "--json", "--replace", "default/talk").stdout)["plan"]["id"]
    done = command("restore", path, "--apply", "--replace", "default/talk", "--force", "--plan", plan)
    assert done.returncode == 0, done.stderr
    assert "1 of them replaced" in done.stdout
    assert "and then" not in command("log", "talk").stdout


def test_what_was_erased_since_is_not_brought_back(command: Command, talk: Session, tmp_path: Path) -> None:
    path = backed_up(command, talk, tmp_path)
    erased = command("erase", "talk", "--literal", "the files", "--apply")
    assert erased.returncode == 1
    assert path in erased.stdout
    assert "still there" in erased.stdout
    planned = command("restore", path, "--replace", "all")
    assert "erased" in planned.stdout
    assert "--with-erased" in planned.stderr
    refused = command("restore", path, "--replace", "all", "--force", "--apply")
    assert refused.returncode == 2
    assert "bring back" in refused.stderr
    forced = command("restore", path, "--replace", "all", "--force", "--apply", "--with-erased")
    assert forced.returncode == 0
    assert "erase it again" in forced.stderr
    assert "List the files" in command("log", "talk").stdout


def test_the_restored_user_is_named_if_it_is_another(bare_command: Command, talk: Session, tmp_path: Path) -> None:
    path = backed_up(bare_command, talk, tmp_path)
    done = bare_command("restore", path, "--home", str(tmp_path / "new"), "--uid", "1001", "--apply")
    assert done.returncode == 0, done.stderr
    shown = bare_command("session", "list", "--home", str(tmp_path / "new"), "--uid", "1001", "--json")
    assert [row["session"] for row in json.loads(shown.stdout)] == ["talk"]


def test_a_file_that_is_no_backup_is_refused(command: Command, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("hello")
    assert command("restore", str(tmp_path / "x"), "--apply").returncode == 3
    assert command("restore", str(tmp_path / "missing")).returncode == 1
    assert command("restore", str(tmp_path / "x"), "--plan", "1").returncode == 2


def test_a_restore_that_was_interrupted_is_mentioned_by_doctor(command: Command, home: str) -> None:
    assert command("doctor").returncode == 0
    Path(home, ".restore").mkdir(parents=True)
    assert "has changed nothing yet" in command("doctor").stdout
    Path(home, ".restore", "journal").write_text("[]")
    assert "run the same restore again" in command("doctor").stdout


def test_the_plan_names_every_condition_and_its_command_works(command: Command, talk: Session, tmp_path: Path) -> None:
    path = backed_up(command, talk, tmp_path)
    assert command("erase", "talk", "--literal", "the files", "--apply").returncode == 1
    planned = command("restore", path)
    assert "1 part that exists will be left as it is" in planned.stderr
    assert "default/talk" in planned.stderr
    (line,) = [line for line in planned.stderr.splitlines() if "replace also what exists" in line]
    words = line.split("`")[1].split()[1:]
    assert words[2:4] == ["--replace", "default/talk"]
    assert {"--with-erased", "--force", "--apply", "--plan"} <= set(words)
    done = command(*words)
    assert done.returncode == 0, done.stderr
    assert "what was erased is back" in done.stderr


def test_a_restore_that_does_nothing_says_so_and_leaves_no_line(
    command: Command, talk: Session, tmp_path: Path
) -> None:
    command("memory", "new", "Harbour")
    path = backed_up(command, talk, tmp_path)
    planned = command("restore", path)
    assert planned.returncode == 0
    assert "exists" not in planned.stdout.replace("0 that exist", "")
    assert "nothing to restore" in planned.stderr
    assert "--apply" not in planned.stderr
    before = command("audit-log", "--json").stdout
    done = command("restore", path, "--replace", "all", "--apply")
    assert (done.returncode, "nothing to restore" in done.stdout) == (0, True)
    assert command("audit-log", "--json").stdout == before


def test_the_audit_log_grows_by_what_was_replaced(command: Command, talk: Session, tmp_path: Path) -> None:
    command("token", "new", "eve")
    path = backed_up(command, talk, tmp_path)
    (token,) = json.loads(command("token", "list", "--json").stdout)
    command("token", "revoke", token["token_id"])
    command("memory", "new", "Later")
    command("append", "talk", "more")
    before = command("audit-log", "--json").stdout
    planned = command("restore", path, "--replace", "memory")
    assert "kept" in planned.stdout
    assert "the audit log of this home is kept" in planned.stderr
    assert "1 token of the backup stays revoked" in planned.stderr
    done = command("restore", path, "--replace", "memory", "--apply")
    assert done.returncode == 0, done.stderr
    assert "1 token of the backup stays revoked" in done.stderr
    assert "1 part that exists was left as it is" in done.stderr
    assert json.loads(command("token", "list", "--json").stdout) == []
    again = command("restore", path, "--replace", "memory", "--apply")
    assert (again.returncode, "what you named is as in the backup" in again.stdout) == (0, True)
    after = [json.loads(line) for line in command("audit-log", "--json").stdout.splitlines()]
    assert len(after) == len(before.splitlines()) + 1
    assert (after[-1]["action"], after[-1]["target"], after[-1]["count"]) == ("restore", "memory", 1)
