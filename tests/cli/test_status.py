"""`daypack status`: a page for people, JSON for programs."""

import json
import os
from pathlib import Path

import pytest
from cli.conftest import Command

import daypack
from daypack.history.home import find_home
from daypack.hooks.setup.record import FileRecord, SetupRecord, write_record
from daypack.memory.tools import open_memory


def test_without_a_session_the_page_says_how_to_get_one(command: Command) -> None:
    done = command("status")
    assert done.returncode == 0
    assert "session     none of this project is recorded yet" in done.stdout
    assert "daypack setup" in done.stderr


def test_the_newest_session_of_the_folder_is_shown(command: Command, home: str) -> None:
    command("append", "talk", "hello")
    command("memory", "add", "The sea is blue.")
    shown = command("status").stdout
    assert "session     talk of default, 1 message, the last " in shown
    assert "memory      1 entry  " in shown
    report = json.loads(command("status", "--json").stdout)
    assert (report["session"]["name"], report["memory"]["entries"], report["window"]) == ("talk", 1, None)
    assert report["key"] == os.getcwd()


def test_after_a_compaction_the_command_that_searches_before_it_is_named(command: Command, home: str) -> None:
    with daypack.open_session("talk", home=home, durability="os") as session:
        for number in range(60):
            session.append("user", f"Decision {number}: the port is {8000 + number}. " + "We talk about it. " * 40)
            session.append("assistant", "Noted.")
        session.append("user", "go on")
        session.prepare(budget=4000)
        session.compact()
    done = command("status")
    assert "messages left the window" in done.stdout
    assert "`daypack search talk WORDS --agent default` finds what was said before the compaction" in done.stderr


def test_a_line_from_the_command_is_that_of_the_program(command: Command) -> None:
    done = command("status", "--line", "--width", "9")
    assert (done.returncode, done.stdout) == (0, "workspace\n")
    refused = command("status", "--line", "--json")
    assert refused.returncode == 2
    assert "exclude each other" in refused.stderr


def test_a_secret_in_a_session_name_is_not_printed(command: Command) -> None:
    name = "sk-ant-api03-" + "A1b2C3d4" * 12
    command("append", name[:100], "hello")
    assert name[:60] not in command("status").stdout
    assert name[:60] not in command("status", "--json").stdout


@pytest.mark.parametrize("chosen", ["project", "environment", "config"])
def test_the_memory_is_the_one_that_other_commands_mean(
    command: Command, home: str, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_memory(home=home) as memories:
        memory_id = memories.create_memory("mem0: ada").memory_id
        memories.add_entry(memory_id, "The staging port is 8091.")
    if chosen == "project":
        Path(".daypack.toml").write_text('memory = "mem0: ada"\n')
    elif chosen == "environment":
        monkeypatch.setenv("DAYPACK_MEMORY", "mem0: ada")
    else:
        Path(find_home(home).config).write_text('[memory]\ndefault = "mem0: ada"\n')
    assert "8091" in command("memory", "search", "staging port").stdout
    assert f"memory      1 entry  {memory_id}" in command("status").stdout
    assert json.loads(command("status", "--json").stdout)["memory"] == {
        "memory_id": memory_id,
        "entries": 1,
        "place": "",
    }


def test_after_a_set_up_the_first_step_is_a_session_and_not_another_set_up(command: Command, home: str) -> None:
    record = SetupRecord(files=(FileRecord(host="claude", path="/x", format="json", before="", after=""),))
    write_record(find_home(home), record)
    done = command("status")
    assert "daypack is set up for Claude Code: start a session in this folder" in done.stderr
    assert "`daypack setup`" not in done.stderr


def test_the_folder_of_a_repository_is_shown_and_why_the_cache_is_unknown(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")  # the folder of a test may be long
    for name in ("objects", "refs"):
        Path(".git", name).mkdir(parents=True)
    Path(".git/HEAD").write_text("ref: refs/heads/main\n")
    command("append", "talk", "hello")
    lines = command("status").stdout.splitlines()
    assert lines[0].endswith(f"  {os.getcwd()}")
    assert "cache       not reported by this agent" in lines
