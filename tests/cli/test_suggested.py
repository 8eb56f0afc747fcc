"""Commands that notes and errors suggest: they look where the command looked that suggests them."""

import argparse
import shlex
import subprocess
from collections.abc import Callable
from importlib import import_module
from typing import cast

import pytest
from postgres_server import needs_postgres

from daypack.cli.main import COMMANDS, MODULES
from daypack.cli.parser import Parser
from daypack.cli.suggested import NOT_TAKEN

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def place(command: Command, home: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """The options of a home that no variable names, with a session."""
    monkeypatch.setenv("DAYPACK_HOME", "/nonexistent")
    place = ("--home", f"{home} of ada", "--uid", "ada")
    assert command("append", "talk", "Deploy at noon.", *place).returncode == 0
    return place


def test_suggested_commands_repeat_the_home_and_can_be_run(command: Command, place: tuple[str, ...]) -> None:
    options = shlex.join(place)
    missing = command("turns", "other", *place)
    assert f"list them with `daypack session list {options}`" in missing.stderr
    none = command("turns", "talk", *place)
    assert f"`daypack prepare talk {options}` records one" in none.stderr
    assert command(*shlex.split(f"prepare talk {options}")).returncode == 0
    listed = command("turns", "talk", *place)
    assert f"`daypack explain talk --event ev-1 {options}` lists what is in it" in listed.stderr
    for _ in range(30):
        command("append", "talk", "The tide gauge stands at the northern mole of the harbour.", *place)
    compacted = command("compact", "talk", "--keep", "100", *place)
    assert f"`daypack undo talk {options}` reverts it" in compacted.stdout


def test_without_options_nothing_is_added_and_no_command_remembers_those_of_another(
    command: Command, place: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "--home" in command("turns", "other", *place).stderr
    monkeypatch.setenv("DAYPACK_HOME", place[1])
    assert command("turns", "other").stderr.endswith("list them with `daypack session list`\n")
    assert "see `daypack turns --help`" in command("turns", "--colour").stderr


def test_an_option_is_added_only_where_the_command_takes_it() -> None:
    for name in COMMANDS:
        parser = Parser(prog=name)
        import_module(f"daypack.cli.{MODULES.get(name, name)}").configure(parser)
        usages = [parser.format_help()]
        for action in parser._actions:  # pyright: ignore[reportPrivateUsage]
            if action.nargs == argparse.PARSER:
                actions = cast("dict[str, argparse.ArgumentParser]", action.choices)
                usages = [each.format_help() for each in actions.values()]
        taken = {option for option in ("--home", "--uid", "--store") if all(f"{option} " in usage for usage in usages)}
        assert taken | set(NOT_TAKEN.get(name, ())) == {"--home", "--uid", "--store"}, name
        assert not taken & set(NOT_TAKEN.get(name, ())), name


@needs_postgres
def test_suggested_commands_repeat_the_database_without_its_password(command: Command, database_url: str) -> None:
    assert command("append", "talk", "Deploy at noon.", "--store", database_url).returncode == 0
    shown = command("turns", "talk", "--store", database_url)
    assert f"`daypack prepare talk --store {shlex.quote(database_url)}` records one" in shown.stderr
    secret = command("turns", "talk", "--store", database_url.replace("//postgres@", "//postgres:s3cret@"))
    assert "`daypack prepare talk --store URL` records one" in secret.stderr
    found = command("find", "noon", "--store", database_url)
    opening = next(line for line in found.stdout.splitlines() if line.startswith("    daypack log"))
    assert shlex.split(opening, comments=True)[-2:] == ["--store", database_url]
