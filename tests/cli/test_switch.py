"""`daypack switch`: blocks of instructions that are on or off."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import daypack
from daypack.errors import BadInput

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def _talk(command: Command) -> None:
    command("append", "talk", "hello")


def test_switches_are_listed_with_their_state_and_text(command: Command) -> None:
    assert command("switch", "talk").stdout.splitlines() == [
        "identity    off  text of daypack",
        "protocol    off  text of daypack",
        "provenance  off  text of daypack",
        "voice       off  text of daypack",
    ]


def test_a_block_that_is_on_is_in_the_next_pack_and_gone_when_off(command: Command) -> None:
    assert command("switch", "talk", "voice", "on").stdout == "voice is on: it counts from the first turn on\n"
    assert "prompts:voice.md" in command("pack", "talk").stdout
    assert command("switch", "talk", "voice", "off").stdout == "voice is off: it counts from the first turn on\n"
    assert "prompts:voice.md" not in command("pack", "talk").stdout
    assert "daypack:identity" not in command("pack", "talk").stdout
    assert command("switch", "talk", "identity", "on").returncode == 0
    assert "daypack:identity" in command("pack", "talk").stdout


def test_a_block_of_ones_own_wants_a_text(command: Command, home: str) -> None:
    done = command("switch", "talk", "mine", "on")
    place = daypack.open_session("talk", home=home).layout.prompts + "/mine.md"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "daypack: no block 'mine'; there are identity, protocol, provenance, voice [name]\n"
        f"  → for a block of your own, write {place} first\n"
    )
    Path(place).parent.mkdir(parents=True)
    Path(place).write_text("Answer in rhymes.", encoding="utf-8")
    assert "mine        off  your text" in command("switch", "talk").stdout
    command("switch", "talk", "mine", "on")
    assert f"mine        on   your text: {place}" in command("switch", "talk").stdout
    assert "Answer in rhymes." in command("pack", "talk", "--dialect", "openai").stdout


def test_json_lists_all(command: Command) -> None:
    listed = json.loads(command("switch", "talk", "voice", "on", "--json").stdout)
    assert {"name": "voice", "on": True, "source": "daypack"} in listed
    assert json.loads(command("switch", "talk", "--json").stdout) == listed


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("voice",), "state required: on or off"),
        (("voice", "maybe"), "invalid choice"),
        (("../voice", "on"), "has a path separator"),
    ],
)
def test_wrong_use_is_told(command: Command, args: tuple[str, ...], text: str) -> None:
    done = command("switch", "talk", *args)
    assert done.returncode == 2
    assert text in done.stderr


def test_a_misspelled_block_is_suggested(command: Command) -> None:
    done = command("switch", "talk", "voise", "on")
    assert done.returncode == 2
    assert (
        "no block 'voise'; there are identity, protocol, provenance, voice [name]\n  → did you mean voice?"
        in done.stderr
    )
    assert "on " not in command("switch", "talk").stdout


def test_a_block_whose_text_is_gone_can_be_switched_off(command: Command, home: str) -> None:
    place = Path(daypack.open_session("talk", home=home).layout.prompts) / "mine.md"
    place.parent.mkdir(parents=True)
    place.write_text("Answer in rhymes.", encoding="utf-8")
    command("switch", "talk", "mine", "on")
    place.unlink()
    assert f"mine        on   no text: {place} does not exist" in command("switch", "talk").stdout
    assert command("switch", "talk", "mine", "off").returncode == 0


def test_it_says_when_the_change_counts(command: Command) -> None:
    command("prepare", "talk")
    counts = "it counts from the next turn on, as a note until an epoch begins"
    assert command("switch", "talk", "voice", "on").stdout == f"voice is on: {counts}\n"
    assert command("prepare", "talk", "--json").returncode == 0
    waits = "it counts from the next epoch on (`daypack prepare talk --refresh` begins one)"
    assert command("switch", "talk", "identity", "on").stdout == f"identity is on: {waits}\n"
    assert "Current time" in command("prepare", "talk", "--refresh", "--dialect", "openai").stdout


def test_a_state_that_is_neither_true_nor_false_is_refused(home: str) -> None:
    session = daypack.open_session("talk", home=home)
    wrong: Any = "off"
    with pytest.raises(BadInput, match="must be True or False, got 'off'"):
        session.switch("voice", on=wrong)


def test_a_forgotten_session_is_asked_for(command: Command) -> None:
    done = command("switch", "identity", "on")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "daypack: session required [arguments]\n  → daypack switch SESSION identity on\n"
