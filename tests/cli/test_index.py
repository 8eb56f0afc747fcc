"""`daypack index`: the search index of a long session, built by a process of its own."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import daypack
from daypack.derived.history_index import INLINE_BYTES
from daypack.session import Session

Command = Callable[..., subprocess.CompletedProcess[str]]
COUNT = 2400
NOTE = "the search index is being built in the background; `daypack index {0}` shows its progress\n"


def talk() -> list[dict[str, str]]:
    """A conversation that a turn would have to wait for."""
    padding = "of the harbour and the lantern " * 80
    assert COUNT * len(padding) > INLINE_BYTES
    roles = ("user", "assistant")
    return [{"role": roles[number % 2], "content": f"note {number} {padding}"} for number in range(COUNT)]


def open_named(home: str, name: str) -> Session:
    return daypack.open_session(name, home=home, create=False)


@pytest.mark.requirement("G11")
def test_an_import_builds_the_index_of_a_long_transcript_in_the_background(
    command: Command, home: str, tmp_path: Path
) -> None:
    file = tmp_path / "talk.jsonl"
    file.write_text("".join(json.dumps(message) + "\n" for message in talk()))
    done = command("import", "openai", str(file))
    assert (done.returncode, done.stderr) == (0, NOTE.format("talk"))
    waited = command("index", "talk")
    assert (waited.returncode, waited.stdout) == (0, f"talk: {COUNT:,} messages indexed\n")
    with open_named(home, "talk") as session:
        assert session.turns.inputs.history_search.index.unindexed() == []
    again = command("import", "openai", str(file))
    assert again.stderr == ""


@pytest.mark.requirement("S3-O12")
def test_a_turn_from_the_shell_starts_the_build_and_says_what_is_not_searched(command: Command, home: str) -> None:
    with daypack.open_session("long", home=home, durability="os", workspace="") as session:
        session.append_many(talk())
        session.append("user", "what did note 7 say?")
    first = command("prepare", "long", "--budget", "8000")
    assert NOTE.format("long") in first.stderr
    assert "It is not searched yet: its index is being built." in first.stdout
    assert command("index", "long").returncode == 0
    second = command("prepare", "long", "--budget", "8000")
    assert "in the background" not in second.stderr
    assert "not searched yet" not in second.stdout


def test_json_lists_the_sessions_with_their_messages(command: Command, home: str) -> None:
    for name in ("one", "two"):
        with daypack.open_session(name, home=home, durability="os") as session:
            session.append("user", "hello")
    done = command("index", "one", "two", "--json")
    assert json.loads(done.stdout) == [{"session": "one", "messages": 1}, {"session": "two", "messages": 1}]
    assert command("index", "none").returncode == 1
