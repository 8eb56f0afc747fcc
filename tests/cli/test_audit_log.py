"""`daypack audit-log`, and what commands and Python record in it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Command

import daypack


def told(command: Command, *options: str) -> list[dict[str, Any]]:
    done = command("audit-log", "--json", *options)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def deeds(command: Command) -> list[tuple[str, str, str]]:
    return [(line["action"], line["result"], line["door"]) for line in told(command)]


@pytest.fixture
def memory_id(command: Command) -> str:
    return command("memory", "new", "Tea party").stdout.strip()


def test_exports_erasures_and_imports_are_recorded_before_they_begin(
    command: Command, memory_id: str, tmp_path: Path
) -> None:
    entry = json.loads(command("memory", "add", memory_id, "the cake is green", "--json").stdout)["entry_id"]
    file = str(tmp_path / "export.jsonl")
    assert command("memory", "export", memory_id, file).returncode == 0
    assert command("memory", "erase", memory_id, "--entry", entry, "--yes").returncode == 0
    assert command("memory", "erase", memory_id, "--hide", "--yes").returncode == 0
    assert command("memory", "erase", memory_id, "--restore").returncode == 0
    assert command("memory", "erase", memory_id, "--yes").returncode == 0
    assert command("memory", "import", file).returncode == 0
    actions = ("export", "erase", "hide", "unhide", "erase", "import")
    assert deeds(command) == [(action, result, "cli") for action in actions for result in ("started", "ok")]
    lines = told(command)
    assert {line["memory"] for line in lines[:-2]} == {memory_id}
    assert lines[3]["entries"] == [entry]
    assert lines[-1]["memory"]
    assert {line["uid"] for line in lines} == {os.getuid()}
    text = json.dumps(lines)
    assert "cake" not in text
    assert "Tea" not in text


def test_python_is_a_door_of_its_own(home: str, command: Command) -> None:
    with daypack.open_memory(home=home) as memories:
        memory_id = memories.create_memory("x").memory_id
        list(memories.export_memory(memory_id))
        memories.erase_memory(memory_id)
        with pytest.raises(daypack.errors.MemoryMissing):
            memories.erase_memory("Tea party")
    assert deeds(command) == [
        ("export", "started", "python"),
        ("export", "ok", "python"),
        ("erase", "started", "python"),
        ("erase", "ok", "python"),
        ("erase", "started", "python"),
        ("erase", "MemoryMissing", "python"),
    ]
    assert "Tea" not in json.dumps(told(command))


def test_tokens_and_users_are_recorded_without_secrets(command: Command) -> None:
    made = json.loads(command("token", "new", "ada", "--json").stdout)
    token_id = made["token"]["token_id"]
    assert command("token", "revoke", token_id[:6]).returncode == 0
    assert command("user", "set", "bob", "--name", "Robert").returncode == 0
    ended = [line for line in told(command) if line["result"] == "ok"]
    assert [(line["action"], line["user"], line.get("target")) for line in ended] == [
        ("token.new", "ada", token_id),
        ("token.revoke", "ada", token_id),
        ("user.set", "bob", None),
    ]
    text = json.dumps(told(command))
    assert made["secret"][3:] not in text
    assert "Robert" not in text


def test_an_erased_literal_names_the_memories_it_was_in(command: Command, memory_id: str) -> None:
    command("memory", "add", memory_id, "the password is swordfish-7")
    assert command("erase", "--literal", "swordfish-7", "--memory", memory_id, "--apply").returncode == 0
    started, ended = told(command, "--action", "erase")
    assert (started["result"], ended["result"]) == ("started", "ok")
    assert ended["memories"] == [memory_id]
    assert told(command, "--memory", memory_id) == [started, ended]
    assert "swordfish" not in json.dumps(ended)


def test_people_get_a_table_and_the_newest_lines(command: Command, memory_id: str) -> None:
    assert "no such lines" in command("audit-log").stderr
    for _ in range(30):
        command("memory", "erase", memory_id, "--hide", "--yes")
        command("memory", "erase", memory_id, "--restore")
    done = command("audit-log")
    head, *rows = done.stdout.splitlines()
    assert head.split() == ["time", "action", "user", "what", "result", "tool", "through"]
    assert len(rows) == 50
    assert memory_id[:8] in rows[-1]
    assert "--json" in done.stderr
    assert len(command("audit-log", "-n", "3").stdout.splitlines()) == 4
    assert len(told(command)) == 120
    assert len(told(command, "--action", "hide", "-n", "7")) == 7


def test_the_start_of_an_id_is_enough_and_one_that_fits_nothing_is_an_error(command: Command, memory_id: str) -> None:
    command("memory", "erase", memory_id, "--hide", "--yes")
    assert len(told(command, "--memory", memory_id[:8])) == 2
    for options in ((), ("--json",)):
        done = command("audit-log", "--memory", "f" * 32, *options)
        assert done.returncode == 1
        assert done.stdout == ""
        assert "no line is about such a memory" in done.stderr


def test_the_caller_and_the_owner_are_asked_for_separately(home: str, command: Command) -> None:
    with daypack.open_memory(home=home, user="ada") as memories:
        memory_id = memories.create_memory("x").memory_id
        with pytest.raises(daypack.errors.MemoryMissing):
            memories.as_user("eve").delete_memory(memory_id)
    lines = told(command)
    assert {line["user"] for line in lines} == {"eve"}
    assert told(command, "--user", "eve") == lines
    assert told(command, "--user", "ada") == []
    assert told(command, "--owner", "ada") == lines
    assert told(command, "--owner", "eve") == []


def test_a_memory_that_is_erased_still_has_an_owner(home: str, command: Command) -> None:
    with daypack.open_memory(home=home, user="ada") as memories:
        memory_id = memories.create_memory("x").memory_id
        memories.erase_memory(memory_id)
    assert len(told(command, "--owner", "ada")) == 2


def test_every_line_says_what_it_is_about(command: Command, memory_id: str, tmp_path: Path) -> None:
    command("append", "work", "the password is halibut-9")
    command("memory", "add", memory_id, "the password is swordfish-7")
    assert command("erase", "--literal", "halibut-9", "work", "--apply").returncode == 0
    assert command("erase", "--literal", "swordfish-7", "--memory", memory_id, "--apply").returncode == 0
    backup = str(tmp_path / "monday.backup")
    assert command("backup", backup, "--apply").returncode == 0
    assert "monday.backup" in command("audit-log", "--action", "backup").stdout
    command("memory", "add", memory_id, "The boat is blue.")
    assert command("restore", backup, "--apply", "--replace", "all", "--force").returncode == 0
    assert " 1 part memory " in command("audit-log", "--action", "restore").stdout
    table = command("audit-log", "--action", "erase").stdout
    assert table.splitlines()[1].split()[1:3] == ["erase", "plan"]
    assert f" {memory_id[:8]} " in table.splitlines()[3]
    assert (
        command("audit-log", "cut", "--before", "2999-01-01", "--to", str(tmp_path / "old"), "--apply").returncode == 0
    )
    assert "lines 1 to " in command("audit-log").stdout


def test_a_plan_of_a_cut_names_only_what_is_missing(command: Command, memory_id: str, tmp_path: Path) -> None:
    command("memory", "erase", memory_id, "--hide", "--yes")
    assert "apply with --to FILE --apply" in command("audit-log", "cut", "--before", "2999-01-01").stderr
    done = command("audit-log", "cut", "--before", "2999-01-01", "--to", str(tmp_path / "old"))
    assert "apply with --apply" in done.stderr


def test_verify_says_how_many_lines_it_read(command: Command, memory_id: str) -> None:
    done = command("audit-log", "verify")
    assert done.returncode == 0
    assert "there is no audit log" in done.stderr
    command("memory", "erase", memory_id, "--hide", "--yes")
    assert "2 lines are as they were written" in command("audit-log", "verify").stderr
    assert json.loads(command("audit-log", "verify", "--json").stdout)["lines"] == 2


def test_what_cannot_be_asked_is_refused(command: Command) -> None:
    for options, named in (
        (("--since", "yesterday"), "--since"),
        (("--action", "look"), "--action"),
        (("cut",), "--before"),
        (("cut", "--before", "2026-01-01", "--apply"), "--to"),
        (("cut", "--before", "soon"), "--before"),
    ):
        done = command("audit-log", *options)
        assert done.returncode == 2, options
        assert named in done.stderr


def test_damage_is_found_and_a_cut_is_planned_then_applied(
    home: str, command: Command, memory_id: str, tmp_path: Path
) -> None:
    command("memory", "erase", memory_id, "--hide", "--yes")
    assert command("audit-log", "verify").returncode == 0
    planned = json.loads(command("audit-log", "cut", "--before", "2999-01-01", "--json").stdout)
    assert (planned["lines"], planned["applied"]) == (2, False)
    older = tmp_path / "older.jsonl"
    done = command("audit-log", "cut", "--before", "2999-01-01", "--to", str(older), "--apply")
    assert done.returncode == 0
    assert "the cut is recorded" in done.stderr
    assert len(older.read_text().splitlines()) == 2
    assert deeds(command) == [("audit.cut", "ok", "cli")]
    assert command("audit-log", "verify").returncode == 0
    [path] = Path(home).glob("home/*/audit/audit.jsonl")
    path.write_text(path.read_text().replace("audit.cut", "audit.cup"))
    done = command("audit-log", "verify")
    assert done.returncode == 3
    assert "line 1" in done.stdout
    assert json.loads(command("audit-log", "verify", "--json").stdout)["wrong"][0]["line"] == 1
