"""`daypack import-envelope`: documents made elsewhere are checked, told and kept."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import daypack
from daypack.session import Session

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def document(command: Command) -> bytes:
    """An envelope that was exported from another session."""
    command("append", "other", "Where are the keys?")
    command("append", "other", "--role", "assistant", "Under the mat.")
    command("append", "other", "Which mat?")
    data = command("export", "other", "--scope", "handoff").stdout.encode()
    Path("in.json").write_bytes(data)
    return data


@pytest.fixture
def talk(command: Command, home: str) -> Session:
    """A session that is to get an envelope."""
    command("append", "talk", "What do you know of keys?")
    return daypack.open_session("talk", home=home, durability="os")


def test_a_document_is_checked_and_told(command: Command, document: bytes) -> None:
    context = json.loads(document)["context_id"]
    lines = command("import-envelope", "in.json").stdout.splitlines()
    assert lines[0] == f"context   {context}"
    assert lines[1].startswith("scope     handoff, assembled, ")
    assert lines[2:] == [
        "made by   daypack:default/other",
        "items     3: 2 session_history, 1 user_message",
        "verified  3 of 3 digests",
    ]


def test_it_can_come_from_standard_input(command: Command, document: bytes) -> None:
    printed = json.loads(command("import-envelope", "-", "--json", stdin=document).stdout)
    assert (printed["items"], printed["verified"], printed["digests"], printed["warnings"]) == (3, 3, 3, [])
    assert printed["kinds"] == {"session_history": 2, "user_message": 1}
    assert printed["event_id"] is None


@pytest.mark.usefixtures("document")
def test_a_kept_document_is_recorded_and_used_by_the_next_turn(command: Command, talk: Session) -> None:
    done = command("import-envelope", "in.json", "--session", "talk")
    event = talk.events()[-1]
    assert event.type == "context.imported"
    assert done.stdout.splitlines()[-1].startswith(f"added     to talk as {event.id}; ")
    assert "Under the mat." in command("prepare", "talk", "--dialect", "openai").stdout


def test_words_that_do_not_match_their_digest_are_told_and_not_kept(
    command: Command, talk: Session, document: bytes
) -> None:
    Path("bad.json").write_bytes(document.replace(b"Under the mat.", b"Under my hat."))
    done = command("import-envelope", "bad.json")
    assert done.returncode == 3
    assert "verified  2 of 3 digests" in done.stdout
    assert "warning   messages:2: content does not match its digest" in done.stdout
    refused = command("import-envelope", "bad.json", "--session", "talk")
    assert refused.returncode == 2
    assert "nothing was stored" in refused.stderr
    assert len(talk.events()) == 0
    assert not (talk.path / "blob").exists()


def test_words_of_another_vocabulary_are_a_warning(command: Command, talk: Session, document: bytes) -> None:
    value = json.loads(document)
    value["scope"], value["item_refs"] = "galaxy\x1b[2J", [*value["item_refs"], "lost"]
    Path("odd.json").write_text(json.dumps(value), encoding="utf-8")
    done = command("import-envelope", "odd.json", "--session", "talk")
    assert done.returncode == 0
    assert "scope 'galaxy" in done.stdout
    assert "1 referenced items are not in the document: lost" in done.stdout
    assert "\x1b" not in done.stdout
    assert len(talk.events()) == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "truncated"),
        ("{}", "missing required field `context_id`"),
        ("[]", "Expected `object`"),
        ("not json", "malformed"),
        ("[" * 5000, ""),
    ],
)
def test_what_is_no_envelope_is_refused(command: Command, text: str, problem: str) -> None:
    done = command("import-envelope", "-", stdin=text.encode())
    assert (done.returncode, done.stdout) == (2, "")
    assert problem in done.stderr


@pytest.mark.usefixtures("document")
def test_a_file_or_session_that_is_not_there_is_told(command: Command) -> None:
    assert "No such file" in command("import-envelope", "none.json").stderr
    done = command("import-envelope", "in.json", "--session", "none")
    assert done.returncode == 1
    assert "no such session" in done.stderr
