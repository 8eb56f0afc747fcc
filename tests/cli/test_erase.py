"""`daypack erase` shows the plan, applies it with --apply, and refuses what it cannot erase without damage."""

import getpass
import json
from pathlib import Path

import pytest
from cli.conftest import Command
from upkeep.erase.secrets import SECRET, holding, leaky, place

import daypack


@pytest.mark.requirement("X43")
def test_the_plan_is_printed_and_nothing_changes(home: str, command: Command) -> None:
    leaky(home).close()
    before = {path: path.read_bytes() for path in Path(home).rglob("*") if path.is_file()}
    done = command("erase", "work", "--literal", SECRET)
    assert done.returncode == 0, done.stderr
    assert "messages  4 lines: 5-8" in done.stdout
    assert "would no longer verify" in done.stdout
    assert "derived" in done.stdout
    assert "plan " in done.stdout
    assert SECRET not in done.stdout + done.stderr
    assert {path: path.read_bytes() for path in Path(home).rglob("*") if path.is_file()} == before


@pytest.mark.requirement("S4-R2")
def test_a_text_from_standard_input_is_erased_and_nothing_prints_it(home: str, command: Command) -> None:
    leaky(home).close()
    done = command("erase", "work", "--literal", "-", "--apply", stdin=f"{SECRET}\n".encode())
    assert done.returncode == 0, done.stderr
    assert "no longer verify" in done.stdout
    assert "recorded as work ev-" in done.stdout
    assert SECRET not in done.stdout + done.stderr
    assert holding(home) == []
    again = command("erase", "work", "--literal", SECRET, "--apply")
    assert again.returncode == 1
    assert "nothing found; nothing was erased" in again.stdout


def test_a_text_from_a_file_or_a_prompt_is_erased(
    home: str, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaky(home, "one").close()
    leaky(home, "two").close()
    secret = tmp_path / "secret"
    secret.write_text(f"{SECRET}\n")
    assert command("erase", "one", "--literal-file", str(secret), "--apply").returncode == 1  # two still has it
    monkeypatch.setattr(getpass, "getpass", lambda _: SECRET)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    assert command("erase", "two", "--ask", "--apply").returncode == 0
    assert holding(home) == []


def test_all_sessions_and_memories_are_erased(home: str, command: Command) -> None:
    leaky(home, "one").close()
    memories = daypack.open_memory(home=home)
    memory = memories.create_memory("Port").memory_id
    memories.add_entry(memory, f"The word is {SECRET}.")
    done = command("erase", "--all", "--literal", SECRET, "--apply")
    assert done.returncode == 0, done.stderr
    assert f"memory Port ({memory}): 1 entry, 0 document versions" in done.stdout
    assert holding(home) == []


def test_a_message_and_an_entry_are_erased(home: str, command: Command) -> None:
    leaky(home).close()
    memories = daypack.open_memory(home=home)
    memory = memories.create_memory("Port").memory_id
    entry = memories.add_entry(memory, "The lighthouse keeper is called Ada.").entry_id
    assert command("erase", "work", "--message", "msg-5", "--apply").returncode == 0
    assert "[erased:" in command("log", "work", "-n", "20").stdout
    done = command("erase", "--entry", entry, "--apply")
    assert done.returncode == 0, done.stderr
    assert memories.list_entries(memory).entries[0].raw_entry.startswith("[erased:")


def test_a_plan_that_changed_is_refused(home: str, command: Command) -> None:
    session = leaky(home)
    plan = json.loads(command("erase", "work", "--literal", SECRET, "--json").stdout)["plan"]
    session.append("user", f"again {SECRET}")
    done = command("erase", "work", "--literal", SECRET, "--apply", "--plan", plan["id"])
    assert done.returncode == 2
    assert "the plan has changed" in done.stderr
    plan = json.loads(command("erase", "work", "--literal", SECRET, "--json").stdout)["plan"]
    done = command("erase", "work", "--literal", SECRET, "--apply", "--plan", plan["id"], "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["applied"]["sessions"][0]["plan"]["messages"] == [5, 6, 7, 8, 11]
    session.close()
    assert holding(home) == []


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("work", "--literal", ""), "the literal is empty"),
        (("work", "--literal", "user"), "part of the format"),
        (("work", "--literal", "4711"), "--force"),
        (("work", "--literal", SECRET, "--plan", "1"), "--plan requires --apply"),
        (("--literal", SECRET), "session required"),
        (("work", "--all", "--literal", SECRET), "cannot be combined"),
        (("--all", "--message", "3"), "--message takes one session"),
        (("work", "--literal", SECRET, "--message", "3"), "not allowed with"),
        (("work",), "required"),
    ],
)
def test_wrong_arguments_are_refused(home: str, command: Command, arguments: tuple[str, ...], problem: str) -> None:
    leaky(home).close()
    done = command("erase", *arguments)
    assert done.returncode == 2
    assert problem in done.stderr
    assert "Traceback" not in done.stderr


def test_what_does_not_exist_is_named(home: str, command: Command) -> None:
    leaky(home).close()
    for arguments in (("work", "--message", "99"), ("--entry", "0" * 32), ("nowhere", "--literal", SECRET)):
        done = command("erase", *arguments)
        assert done.returncode == 1
        assert "→" in done.stderr
    assert not Path(place(home).memory).exists()


def test_replay_all_counts_erased_turns_and_is_no_failure(home: str, command: Command) -> None:
    leaky(home).close()
    command("erase", "work", "--literal", SECRET, "--apply")
    done = command("replay", "work", "--all")
    assert done.returncode == 0
    assert "1 turn verified, 0 failed, 2 erased" in done.stdout
    one = command("replay", "work")
    assert one.returncode == 1
    assert "was erased" in one.stderr
    assert command("doctor", "work").returncode == 0
    assert command("rebuild", "work").returncode == 0
    assert "erased a literal from messages 5-8" in command("log", "work", "--events").stdout
