"""`daypack replay`: recorded turns are made again from history, and a difference is told."""

import json
import subprocess
from collections.abc import Callable
from hashlib import sha256

import pytest

import daypack
from daypack.session import Session

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def talk(command: Command, home: str) -> Session:
    """A session with two recorded turns, ev-2 and ev-3, behind the event of a pin."""
    command("session", "new", "talk", "--model", "gpt-4o")
    session = daypack.open_session("talk", home=home, durability="os")
    session.pin("rules", "Be brief.")
    session.append("user", "List the files")
    session.prepare()
    session.accept("There are two.")
    session.append("user", "Which?")
    session.prepare()
    return session


def forge(session: Session) -> None:
    """Change a message by hand, as somebody does who also takes its checksum out."""
    log = session.path / "messages.jsonl"
    first, *others = log.read_text(encoding="utf-8").splitlines(keepends=True)
    line = json.loads(first)
    del line["crc"]
    line["content"] = "Lose the files"
    log.write_text("".join([json.dumps(line, separators=(",", ":")) + "\n", *others]), encoding="utf-8")


def test_a_turn_is_made_again_and_what_was_proved_is_told(command: Command, talk: Session) -> None:
    before = (talk.path / "events.jsonl").read_bytes()
    done = command("replay", "talk", "ev-2")
    assert done.returncode == 0
    assert done.stdout.startswith("verified  ev-2: assembly, openai, responses, anthropic\ndefault/talk: ")
    assert "recorded  as ev-2, ctx-" in done.stdout
    assert (talk.path / "events.jsonl").read_bytes() == before


def test_latest_is_the_newest_turn_and_what_is_meant_when_none_is_named(command: Command, talk: Session) -> None:
    newest = command("replay", "talk", "ev-3").stdout
    assert "epoch     continues ev-2" in newest
    assert command("replay", "talk", "latest").stdout == newest
    assert command("replay", "talk").stdout == newest


def test_json_names_the_digests_that_were_compared(command: Command, talk: Session) -> None:
    printed = json.loads(command("replay", "talk", "ev-2", "--json").stdout)
    assert printed["event_id"] == "ev-2"
    assert printed["verified"] == next(iter(talk.events(2, 2))).data["sha256"]


@pytest.mark.parametrize("dialect", ["openai", "responses", "anthropic"])
def test_the_exact_body_of_a_past_call_comes_back(command: Command, talk: Session, dialect: str) -> None:
    talk.pin("rules", "Something else.")
    body = command("replay", "talk", "ev-2", "--dialect", dialect).stdout
    recorded = next(iter(talk.events(2, 2))).data["sha256"][dialect]
    assert recorded == f"sha256:{sha256(body.removesuffix(chr(10)).encode()).hexdigest()}"
    assert "Be brief." in body


def test_a_difference_is_told_and_exits_with_3(command: Command, talk: Session) -> None:
    forge(talk)
    done = command("replay", "talk", "ev-2")
    assert (done.returncode, done.stdout) == (3, "")
    assert "replay digest mismatch for ev-2" in done.stderr


def test_all_turns_are_counted(command: Command, talk: Session) -> None:
    assert command("replay", "talk", "--all").stdout == "2 turns verified, 0 failed\n"
    assert json.loads(command("replay", "talk", "--all", "--json").stdout) == {
        "verified": 2,
        "erased": [],
        "unknown": [],
        "failed": [],
        "damaged": 0,
    }


def test_turns_that_fail_among_all_are_named(command: Command, talk: Session) -> None:
    forge(talk)
    talk.append("assistant", "So.")
    talk.append("user", "x")
    done = command("replay", "talk", "--all")
    assert done.returncode == 3
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == [
        "failed  ev-2",
        "failed  ev-3",
        "0 turns verified, 2 failed",
    ]
    printed = command("replay", "talk", "--all", "--json")
    assert printed.returncode == 3
    assert [one["event"] for one in json.loads(printed.stdout)["failed"]] == ["ev-2", "ev-3"]


def test_an_event_that_cannot_be_read_is_damage_also_when_the_others_verify(command: Command, talk: Session) -> None:
    log = talk.path / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([lines[0].replace(b"rules", b"ruins"), *lines[1:]]))
    done = command("replay", "talk", "--all")
    assert (done.returncode, done.stdout) == (3, "2 turns verified, 0 failed\n")
    assert "damaged: " in done.stderr


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        (("ev-1",), 1, "ev-1 is not a turn"),
        (("ev-99",), 1, "events:ev-99: the session has"),
        (("ev-99",), 1, "`daypack turns talk` lists the turns"),
        (("ev-2", "--all"), 2, "--all cannot be combined with an event"),
        (("--all", "--dialect", "openai"), 2, "--all cannot be combined with an event"),
    ],
)
def test_wrong_use_is_told(command: Command, talk: Session, args: tuple[str, ...], code: int, text: str) -> None:
    done = command("replay", talk.name, *args)
    assert done.returncode == code
    assert text in done.stderr


def test_a_session_without_turns_says_how_to_make_one(command: Command) -> None:
    command("append", "new", "hello")
    done = command("replay", "new")
    assert done.returncode == 1
    assert "prepare one with `daypack prepare new`" in done.stderr
    assert command("replay", "new", "--all").stdout == "0 turns verified, 0 failed\n"
