"""`daypack switch`: blocks of instructions that are on or off."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import daypack

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
    assert command("switch", "talk", "voice", "on").stdout == "voice is on\n"
    assert "prompts/voice.md" in command("pack", "talk").stdout
    assert command("switch", "talk", "voice", "off").stdout == "voice is off\n"
    assert "prompts/voice.md" not in command("pack", "talk").stdout
    assert "daypack:identity" not in command("pack", "talk").stdout
    assert command("switch", "talk", "identity", "on").returncode == 0
    assert "daypack:identity" in command("pack", "talk").stdout


def test_a_block_of_ones_own_wants_a_text(command: Command, home: str) -> None:
    done = command("switch", "talk", "mine", "on")
    assert done.stdout == "mine is on\n"
    place = daypack.open_session("talk", home=home).history.layout.prompts + "/mine.md"
    assert done.stderr == f"  → the block has no text yet: write {place}\n"
    assert f"mine        on   no text: {place} does not exist" in command("switch", "talk").stdout
    Path(place).parent.mkdir(parents=True)
    Path(place).write_text("Answer in rhymes.", encoding="utf-8")
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
