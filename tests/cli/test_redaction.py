"""What commands print has no secrets, unless redaction is off; what is stored keeps them."""

import json
from pathlib import Path

import pytest
from cli.conftest import Command

import daypack
from daypack import open_memory
from daypack.derived.children import ChildUpdate, put_child
from daypack.types.memory import About

SECRET = "dp_" + "aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV1wX2yZ3aB4c"
MARKER = "[redacted:daypack-token]"

DOORS = (
    "memory list",
    "memory show Keys",
    "memory search Keys token",
    "memory context Keys",
    "memory export Keys",
    "pin talk",
    "child talk",
    "child talk scout",
    "question talk list --all",
    "log talk",
    "log talk --events",
    "session show talk",
    "session list",
    "turns talk",
    "token list",
    "erase --message 1 talk",
    "erase --literal Facts --all --force",
)
# What was typed in the wrong place.
MISTAKES = (
    f"log {SECRET}",
    f"recall talk {SECRET}",
    f"memory show {SECRET}x",
    f"token revoke {SECRET}",
    f"budget talk {SECRET}",
    f"import {SECRET}",
    f"{SECRET} talk",
    f"log talk --{SECRET}",
)


@pytest.fixture
def secrets(home: str) -> None:
    """A memory and a session with a secret in every field that holds words."""
    with open_memory(home=home) as memories:
        memory_id = memories.create_memory("Keys", "chat", f"about {SECRET}").memory_id
        about = About(session=SECRET, role=SECRET, author=SECRET, tags=(SECRET,), source=SECRET)
        memories.add_entry(memory_id, f"the token is {SECRET}", f"a token: {SECRET}", about=about)
        memories.create_memory(SECRET)
        memories.users.new_token("local", SECRET)
        memories.put_context(memory_id, f"# Facts\n- the token is {SECRET}\n")
    with daypack.open_session("talk", home=home, durability="os") as session:
        session.pin("rules", f"use {SECRET}")
        session.append("user", f"my token is {SECRET}", meta={SECRET: 1})
        session.append("assistant", f"your token is {SECRET}")
        put_child(session.history, "scout", ChildUpdate(handoff=SECRET, result=f"found {SECRET}", agent=SECRET))
        session.add_question(f"is {SECRET} valid?", needed_for=SECRET)
        session.append_event("note.made", {SECRET: SECRET})
        session.prepare(model=SECRET)


@pytest.mark.requirement("G18")
@pytest.mark.usefixtures("secrets")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_an_error_repeats_no_secret(mistake: str, command: Command) -> None:
    done = command(*mistake.split())
    assert done.returncode
    assert SECRET not in done.stdout + done.stderr
    assert MARKER in done.stderr


@pytest.mark.requirement("G18")
def test_the_stored_message_is_printed_without_its_secret(command: Command) -> None:
    done = command("append", "talk", f"my token is {SECRET}", "--json")
    assert MARKER in done.stdout
    assert SECRET not in done.stdout


@pytest.mark.requirement("G18")
@pytest.mark.usefixtures("secrets")
@pytest.mark.parametrize("json_option", [(), ("--json",)])
@pytest.mark.parametrize("door", DOORS)
def test_a_command_prints_no_secret(door: str, json_option: tuple[str, ...], command: Command) -> None:
    done = command(*door.split(), *json_option)
    assert done.returncode == 0, done.stderr
    assert SECRET not in done.stdout + done.stderr
    assert done.stdout


@pytest.mark.usefixtures("secrets")
@pytest.mark.parametrize("door", ["memory export Keys", "pin talk --json", "child talk scout", "log talk"])
def test_with_redaction_off_it_prints_what_is_stored(
    door: str, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAYPACK_REDACTION", "off")
    done = command(*door.split())
    assert SECRET in done.stdout
    assert "DAYPACK_REDACTION" not in done.stderr


@pytest.mark.usefixtures("secrets")
def test_an_export_counts_the_lines_without_secrets_and_can_be_imported(command: Command, tmp_path: Path) -> None:
    done = command("memory", "export", "Keys", str(tmp_path / "keys.jsonl"))
    assert "3 lines without secrets; DAYPACK_REDACTION=off exports them as stored" in done.stderr
    copied = command("memory", "import", str(tmp_path / "keys.jsonl"), "--title", "Copy", "--json")
    assert json.loads(copied.stdout)["stats"]["entries"] == 1
    assert MARKER in command("memory", "search", "Copy", "token").stdout


@pytest.mark.usefixtures("secrets")
def test_latest_md_has_no_secret_and_the_log_keeps_it(home: str) -> None:
    with daypack.open_session("talk", home=home, create=False) as session:
        assert (session.path / "latest.md").read_text() == f"your token is {MARKER}"
        assert session.tail(1)[0].text == f"your token is {SECRET}"
