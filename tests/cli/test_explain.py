"""`daypack explain`: why an item is in a turn or not."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import daypack
from daypack.session import Session

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def talk(command: Command, home: str) -> Session:
    """A session with a pin, a question that is open, and more messages than 2,500 tokens hold."""
    command("session", "new", "talk", "--model", "gpt-4o")
    session = daypack.open_session("talk", home=home, durability="os")
    session.pin("rules", "Be brief.")
    session.append("user", "Where does walrus 0 live?")
    for number in range(30):
        session.append("assistant", f"The walrus number {number} lives in harbour {number}. " * 30)
        session.append("user", f"And where does walrus {number + 1} live?")
    return session


def test_a_turn_that_was_recorded_is_explained(command: Command, talk: Session) -> None:
    turn = talk.prepare(budget=2500)
    done = command("explain", "talk")
    assert done.stderr == f"turn {turn.event_id}\n"
    lines = done.stdout.splitlines()
    assert any(line.startswith("included  prefix ") and line.endswith("pinned, authority system") for line in lines)
    assert any(line.startswith("omitted ") and "messages:1-" in line and "budget_limit" in line for line in lines)


def test_without_a_recorded_turn_a_dry_run_is_explained_and_said_to_be_one(command: Command, talk: Session) -> None:
    done = command("explain", "talk", "pin:rules.md")
    assert done.stderr == "dry run: no turn is recorded yet\n"
    assert done.stdout.startswith("included: pin:rules.md, ")
    assert len(talk.events()) == 1
    assert json.loads(command("explain", "talk", "pin:rules.md", "--json").stdout)["event_id"] is None


def test_one_item_goes_by_its_id_its_source_or_its_message(command: Command, talk: Session) -> None:
    turn = talk.prepare(budget=2500)
    newest, (start, *_) = turn.record.user, [message.seq for message in turn.parts.messages]
    quoted = next(item.range for item in turn.items if item.context_kind == "retrieval_result")
    gone = next(number for number in range(1, start) if f"excerpt:{number}" not in {one.item_ref for one in turn.items})
    answers = {
        name: command("explain", "talk", name).stdout
        for name in ("context/pinned/rules.md", f"messages:{newest}", f"msg-{newest}", f"msg-{quoted}", f"msg-{gone}")
    }
    assert answers["context/pinned/rules.md"].startswith("included: pin:rules.md, ")
    assert answers[f"messages:{newest}"] == answers[f"msg-{newest}"]
    assert answers[f"msg-{newest}"].startswith(f"included: messages:{newest}, in the tail")
    assert answers[f"msg-{quoted}"].startswith(f"included: excerpt:{quoted}, ")
    assert answers[f"msg-{gone}"].startswith("omitted: messages:1-")


def test_an_older_turn_is_explained_by_its_event(command: Command, talk: Session) -> None:
    older = talk.prepare(budget=2500).event_id
    talk.pin("rules", "Be long.")
    talk.prepare(budget=2500)
    assert "pin:rules.md~changed" in command("explain", "talk").stdout
    assert "pin:rules.md~changed" not in command("explain", "talk", "--event", str(older)).stdout


def test_json_tells_it_of_one_item_or_of_all(command: Command, talk: Session) -> None:
    missing = talk.add_question("Which sea?", severity="high")
    turn = talk.prepare(
        budget=2500, items=[{"context_kind": "tool_result", "content": "Five knots.", "item_id": "wind"}]
    )
    whole = json.loads(command("explain", "talk", "--json").stdout)
    assert whole["event_id"] == turn.event_id
    assert whole["tokens"] == turn.tokens
    parts = {one["item"]: one["part"] for one in whole["included"]}
    assert parts["pin:rules.md"] == "prefix"
    assert parts["item:wind"] == "volatile"
    assert {part for item, part in parts.items() if item.startswith("excerpt:")} == {"tail"}
    assert [part for item, part in parts.items() if item.startswith("messages:")] == ["tail"]
    assert "budget_limit" in {one["reason"] for one in whole["omitted"]}
    assert [one["question"] for one in whole["missing"]] == ["Which sea?"]
    one = json.loads(command("explain", "talk", missing, "--json").stdout)
    assert (one["item"], one["state"]) == (missing, "missing")
    assert one["why"].endswith("Which sea?")


def test_what_the_turn_did_not_know_is_told(command: Command, talk: Session) -> None:
    talk.prepare(budget=2500)
    done = command("explain", "talk", "pin:other.md")
    assert (done.returncode, done.stdout) == (1, "")
    assert "'pin:other.md' was not available to this turn" in done.stderr
    assert command("explain", "talk", "--event", "ev-1").returncode == 1
    assert "`daypack turns talk` lists the turns" in command("explain", "talk", "--event", "ev-999").stderr


def test_a_turn_of_messages_only_names_them(command: Command, home: str) -> None:
    with daypack.open_session("talk", home=home) as session:
        session.append("user", "hello")
    assert command("explain", "talk", "pin:other.md").stderr.splitlines()[-1] == "  → available: messages:1"


def test_the_start_of_an_items_id_is_enough(command: Command, home: str) -> None:
    with daypack.open_session("talk", home=home) as session:
        session.append("user", "hello")
        asked = session.add_question("Which harbour?")
    assert command("explain", "talk", asked[:6]).stdout == command("explain", "talk", asked).stdout
    assert command("explain", "talk", asked[:3]).returncode == 1


def test_an_item_of_the_caller_has_one_name_everywhere(command: Command, home: str, tmp_path: Path) -> None:
    with daypack.open_session("short", home=home, durability="os") as session:
        session.append("user", "Where is the harbour?")
    items = tmp_path / "items.json"
    items.write_text('[{"context_kind": "artifact_ref", "content": "The guide of Kiel."}]')
    done = command("prepare", "short", "--items", str(items))
    assert done.returncode == 0, done.stderr
    assert "item:item-1" in done.stdout
    assert "caller:" not in done.stdout
    listed = command("explain", "short").stdout
    assert "messages:1 " in listed
    assert "messages:1-1" not in listed
    assert "; passed by the caller: " in listed
    explained = command("explain", "short", "item:item-1").stdout
    assert explained.startswith("included: item:item-1, ")
    assert " tokens after the tail; " in explained
    for name in ("item-1", "caller:item-1"):
        assert command("explain", "short", name).stdout == explained
    assert ", messages:1\n" in command("explain", "short", "nothing").stderr
