"""`daypack erase` shows the plan, applies it with --apply, and refuses what it cannot erase without damage."""

import getpass
import json
from pathlib import Path

import pytest
from cli.conftest import Command
from postgres_server import needs_postgres
from upkeep.erase.secrets import SECRET, holding, leaky, place

import daypack
from daypack.cli.event_words import describe_event
from daypack.session import Session


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


def test_events_that_hold_the_text_are_named_apart_from_those_that_only_refer_to_it(
    command: Command, talk: Session
) -> None:
    for number in range(3):
        talk.append("user", f"Code {number}: hunter2-hunter2.")
        talk.prepare()
    done = command("erase", "talk", "--literal", "hunter2-hunter2")
    assert "hunter2" not in (talk.path / "events.jsonl").read_text()
    [marked] = [line.split(": ")[1] for line in done.stdout.splitlines() if "marked" in line]
    assert "  events " not in done.stdout
    turns = [event.id for event in talk.events() if event.type == "context.turn"]
    assert marked == f"{turns[0]} to {turns[-1]}"
    assert f"replays   {turns[0]} to {turns[-1]} would no longer verify" in done.stdout
    assert command("erase", "talk", "--literal", "hunter2-hunter2", "--apply").returncode == 0
    line = describe_event(talk.events()[-1], len)
    assert "erased a literal from messages 2-4, now [erased:" in line
    assert f"turns {turns[0][3:]}-{turns[-1][3:]} no longer verify" in line


def test_one_turn_is_named_in_the_singular(command: Command, talk: Session) -> None:
    talk.append("user", "The code is hunter2-hunter2.")
    turn = talk.prepare().event_id or ""
    done = command("erase", "talk", "--literal", "hunter2-hunter2", "--apply")
    assert f"replays   {turn} no longer verifies\n" in done.stdout
    line = describe_event(talk.events()[-1], len)
    assert "from message 2, now [erased:" in line
    assert f"; turn {turn.removeprefix('ev-')} no longer verifies" in line


def test_what_is_outside_the_scope_comes_with_the_option_that_reaches_it(home: str, command: Command) -> None:
    leaky(home, "one").close()
    leaky(home, "two").close()
    done = command("erase", "one", "--literal", SECRET)
    assert "outside the scope" in done.stdout
    assert "`daypack erase --all …` covers all sessions" in done.stderr
    assert "--all" not in command("erase", "one", "--message", "5").stderr.replace("erase one", "")


def test_turns_that_showed_what_was_erased_are_marked_and_not_recommended(command: Command, talk: Session) -> None:
    talk.prepare()
    intact = talk.prepare().event_id or ""
    talk.append("user", "The code is hunter2-hunter2.")
    erased = talk.prepare().event_id or ""
    command("erase", "talk", "--literal", "hunter2-hunter2", "--apply")
    tombstone = talk.events()[-1].id
    done = command("turns", "talk")
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert lines[erased].endswith(f"; erased in part by {tombstone}")
    assert "erased" not in lines[intact]
    assert f"explain talk --event {intact}`" in done.stderr
    assert "daypack diff" not in done.stderr
    assert json.loads(command("turns", "talk", "--json").stdout)[-1]["erased"] == tombstone
    for arguments in (("explain", "talk", "--event", erased), ("diff", "talk")):
        done = command(*arguments)
        assert done.returncode == 0, done.stderr
        assert f"not verified: {erased} no longer verifies" in done.stderr
        assert "hunter2" not in done.stdout
    assert "pin:rules" in command("explain", "talk").stdout
    refused = command("replay", "talk", erased)
    assert "`daypack log talk --events`" in refused.stderr


@needs_postgres
def test_the_caches_of_other_machines_are_named_with_the_command_that_empties_them(
    home: str, command: Command, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAYPACK_STORE_URL", database_url)
    leaky(home).close()
    for words in ((), ("--apply",)):
        done = command("erase", "work", "--literal", SECRET, *words)
        assert done.returncode == 0, done.stderr
        assert "caches on other machines keep it until the session is next used there" in done.stdout
        assert "daypack gc --caches --older 0d --apply" in done.stdout
