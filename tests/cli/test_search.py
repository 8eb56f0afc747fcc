"""`daypack search`: the places of a session that say most, in the window or not."""

import json
import subprocess
from collections.abc import Callable, Iterator

import pytest
from turn.compacting import step

import daypack
from daypack.session import Session

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def talk(command: Command, home: str) -> Iterator[Session]:
    """A session whose beginning has left the window."""
    command("session", "new", "talk", "--model", "gpt-4o")
    with daypack.open_session("talk", home=home, durability="os") as session:
        session.append("user", "The tide table of Quiberon stands in data/tides-2031.csv, column 7.")
        session.append("assistant", "Noted.")
        for number in range(10):
            step(session, number)
        session.append("user", "What is left to do?")
        assert session.compact(keep_tokens=1000).changed
        yield session


def test_what_left_the_window_is_found_best_first(command: Command, talk: Session) -> None:
    done = command("search", "talk", "where", "is", "the", "tide", "table", "of", "Quiberon?")
    assert (done.returncode, done.stderr) == (0, "")
    head, text, *_ = done.stdout.splitlines()
    assert head.startswith("messages:1  ")
    assert text == "  The tide table of Quiberon stands in data/tides-2031.csv, column 7."


def test_the_words_may_stand_anywhere_among_the_options(command: Command, talk: Session) -> None:
    one = command("search", "-k", "1", "talk", "tide table")
    assert one.stdout == command("search", "talk", "tide", "table", "-k", "1").stdout
    assert one.stdout.count("messages:") == 1


def test_json_lists_text_source_and_score(command: Command, talk: Session) -> None:
    hits = json.loads(command("search", "talk", "harbour lamp", "-k", "3", "--json").stdout)
    assert len(hits) == 3
    assert [set(hit) for hit in hits] == [{"text", "source", "score"}] * 3
    assert hits == [
        {"text": hit.text, "source": hit.source, "score": hit.score} for hit in talk.search_history("harbour lamp", 3)
    ]


def test_a_literal_is_found_as_it_is_spelled(command: Command, talk: Session) -> None:
    hits = json.loads(command("search", "talk", "tides-2031.csv", "--json").stdout)
    assert hits[0]["source"] == "messages:1"


def test_nothing_found_is_told_and_is_exit_code_1(command: Command, talk: Session) -> None:
    done = command("search", "talk", "zeppelin")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "no matches\n")
    told = command("search", "talk", "zeppelin", "--json")
    assert (told.returncode, told.stdout) == (1, "[]\n")


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        (("talk", " "), 2, "the query is empty"),
        (("talk", "tide", "-k", "0"), 2, "k must be at least 1, got 0"),
        (("talk", "tide", "-k", "some"), 2, "must be a number of 0 or more, got 'some'"),
        (("talk",), 2, "required: query"),
        (("none", "tide"), 1, "no such session"),
    ],
)
def test_wrong_use_is_told(command: Command, talk: Session, args: tuple[str, ...], code: int, text: str) -> None:
    done = command("search", *args)
    assert (done.returncode, done.stdout) == (code, "")
    assert text in done.stderr


def test_control_characters_and_secrets_are_not_shown(command: Command, talk: Session) -> None:
    key = "sk-ant-api03-" + "Ab1" * 31 + "AA"
    talk.append("assistant", f"The zeppelin \x1b[2J has the key {key} in it.")
    shown = command("search", "talk", "zeppelin").stdout
    assert "The zeppelin \\x1b[2J has the key [redacted:" in shown
    assert key not in shown
    assert "\x1b" not in shown
    assert command("search", "talk", key).stdout.count(key) == 0
