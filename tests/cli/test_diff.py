"""`daypack diff`: what changed from one turn to another."""

import json
import subprocess
from collections.abc import Callable

import pytest

import daypack
from daypack.session import Session

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def talk(command: Command, home: str) -> Session:
    """A session with one recorded turn, ev-2, behind the event of a pin."""
    command("session", "new", "talk", "--model", "gpt-4o")
    session = daypack.open_session("talk", home=home, durability="os")
    session.pin("rules", "Be brief.")
    session.append("user", "List the files")
    session.prepare()
    return session


def test_a_turn_that_goes_on_keeps_prefix_and_tail(command: Command, talk: Session) -> None:
    talk.accept("There are two.")
    talk.append("user", "Which?")
    talk.pin("more", "Be kind.")
    talk.prepare()
    newest = talk.turns.newest()
    lines = command("diff", "talk", "ev-2", "latest").stdout.splitlines()
    assert lines[0].startswith("ev-2 (")
    assert f" → {newest} (" in lines[0]
    assert lines[2:7] == [
        "epoch     unchanged",
        "prefix    unchanged",
        "tail      continued",
        "messages  2-3 added",
        "added     pin:more.md~changed",
    ]
    printed = json.loads(command("diff", "talk", "ev-2", "latest", "--json").stdout)
    assert (printed["before"], printed["after"]) == ("ev-2", newest)
    assert printed["added"] == ["pin:more.md~changed"]
    assert printed["prefix_kept"] is printed["tail_kept"] is printed["epoch_kept"] is True
    assert lines[1] == f"tokens    {printed['tokens'][1] - printed['tokens'][0]:+,}"


def test_a_new_epoch_drops_messages_and_takes_in_what_changed(command: Command, talk: Session) -> None:
    for number in range(30):
        talk.append("assistant", f"The walrus number {number} lives in harbour {number}. " * 30)
        talk.append("user", f"And where does walrus {number + 1} live?")
    talk.pin("rules", "Be long.")
    talk.prepare(budget=2500)
    shown = command("diff", "talk", "ev-2", "latest").stdout
    assert "epoch     new\nprefix    changed\ntail      changed\n" in shown
    assert ", 1 dropped\n" in shown
    assert " excerpts from messages " in shown
    assert "changed   pin:rules.md" in shown


def test_a_turn_compared_with_itself_has_no_difference(command: Command, talk: Session) -> None:
    lines = command("diff", talk.name, "ev-2", "ev-2").stdout.splitlines()
    assert lines[1:] == [
        "tokens    unchanged",
        "epoch     unchanged",
        "prefix    unchanged",
        "tail      continued",
        "messages  unchanged",
    ]


def test_turns_that_cannot_be_proved_are_still_compared(command: Command, talk: Session) -> None:
    log = talk.path / "messages.jsonl"
    line = json.loads(log.read_bytes())
    del line["crc"]
    log.write_text(json.dumps(line | {"content": "Lose the files"}) + "\n", encoding="utf-8")
    done = command("diff", "talk", "ev-2", "ev-2")
    assert done.returncode == 3
    assert "not verified: replay digest mismatch for ev-2" in done.stderr
    assert "tokens    unchanged" in done.stdout


def test_what_is_no_turn_is_told(command: Command, talk: Session) -> None:
    done = command("diff", talk.name, "ev-1", "ev-2")
    assert done.returncode == 1
    assert "ev-1 is not a turn" in done.stderr
