"""The list of sessions: every session once, newest first, with counts that come from the background."""

import os
from pathlib import Path
from typing import Any

import pytest
from recorded_requests import import_recording
from serve.page.views.looking import OTHER, look
from turn.compacting import fill
from turn.scenes import SECRET, Clock, stage

import daypack
from daypack.cli.main import run
from daypack.errors import AccessDenied
from daypack.serve.page import session_list
from daypack.serve.page.views.opened import OpenedHome
from daypack.serve.page.views.sessions import list_of
from daypack.session import Session
from daypack.session.listing import read_one

MANY = 25  # sessions of one agent, which are no longer read one by one
FIELDS = {
    *("agent", "program", "session", "title", "project", "cwd", "model", "state", "messages", "tokens"),
    *("calls", "compactions", "created_at", "updated_at", "parent", "error"),
}


def rows(page: OpenedHome) -> dict[str, dict[str, Any]]:
    """The list as it is, by session."""
    return {row["session"]: row for row in look(page, "sessions")["sessions"]}


def counted(page: OpenedHome) -> dict[str, dict[str, Any]]:
    """The list after the background has counted everything."""
    look(page, "sessions")
    list_of(page).counts.wait()
    answer = look(page, "sessions")
    assert answer["counting"] is False
    return {row["session"]: row for row in answer["sessions"]}


def talk(home: str, name: str, words: str, agent: str = "default", now: float = 1_800_000_000.0) -> Session:
    session = daypack.open_session(name, agent=agent, home=home, durability="os", workspace="", model="gpt-4o")
    session.history.clock = Clock(now)
    session.append("user", words)
    return session


def test_sessions_of_all_agents_are_listed_newest_first(page: OpenedHome, home: str) -> None:
    talk(home, "old", "Paint the gate.", now=1_800_000_000.0).close()
    talk(home, "new", "Mow the lawn.", "claude-code", now=1_800_000_300.0).close()
    talk(home, "mid", "Feed the cat.", "codex", now=1_800_000_100.0).close()
    answer = look(page, "sessions")
    assert [(row["session"], row["program"]) for row in answer["sessions"]] == [
        ("new", "Claude Code"),
        ("mid", "Codex"),
        ("old", "daypack"),
    ]
    first = answer["sessions"][0]
    assert set(first) == FIELDS
    assert (first["title"], first["messages"], first["state"], first["model"]) == (
        "Mow the lawn.",
        1,
        "active",
        "gpt-4o",
    )
    assert (first["cwd"], first["project"]) == (os.getcwd(), Path.cwd().name)
    assert first["tokens"] > 0


def test_the_rows_are_those_of_the_command(page: OpenedHome, home: str, capsys: pytest.CaptureFixture[str]) -> None:
    import json

    for number in range(3):
        talk(home, f"s{number}", f"Question {number}?", now=1_800_000_000.0 + number).close()
    assert run(["session", "list", "--home", home, "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    shared = ("session", "agent", "title", "state", "messages", "tokens", "created_at", "updated_at", "model")
    assert [{name: row[name] for name in shared} for row in look(page, "sessions")["sessions"]] == [
        {name: row[name] for name in shared} for row in listed
    ]


def test_calls_and_compactions_are_counted_in_the_background(page: OpenedHome, home: str) -> None:
    session = stage(home)
    fill(session, 2)
    session.undo()
    turns = sum(event.type == "context.turn" for event in session.events())
    session.close()
    import_recording(home, "notes")
    first = look(page, "sessions")
    assert first["counting"] is True
    assert {(row["calls"], row["compactions"]) for row in first["sessions"]} == {(None, None)}
    found = counted(page)
    assert (found["work"]["calls"], found["work"]["compactions"]) == (turns, 2)
    assert (found["notes"]["calls"], found["notes"]["compactions"]) == (9, 1)


def test_a_session_that_grew_is_counted_again(page: OpenedHome, home: str) -> None:
    session = talk(home, "work", "And?")
    session.prepare(budget=4000)
    assert counted(page)["work"]["calls"] == 1
    session.accept("Yes.")
    session.append("user", "More?")
    session.prepare(budget=4000)
    growing = look(page, "sessions")
    assert (growing["counting"], growing["sessions"][0]["calls"]) == (True, 1)
    assert growing["sessions"][0]["messages"] == 3
    assert counted(page)["work"]["calls"] == 2


def test_counts_of_an_earlier_process_need_no_logs(
    page: OpenedHome, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = talk(home, "work", "And?")
    session.prepare(budget=4000)
    session.turns.calls.read()
    session.close()

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the session was opened")

    monkeypatch.setattr("daypack.serve.page.call_counts.open_session", refuse)
    assert counted(page)["work"]["calls"] == 1


def test_counting_changes_nothing_but_derived_files(page: OpenedHome, home: str) -> None:
    session = talk(home, "work", "And?")
    session.prepare(budget=4000)
    session.close()
    before = {path: path.read_bytes() for path in Path(home).rglob("*") if path.is_file()}
    counted(page)
    after = {path: path.read_bytes() for path in Path(home).rglob("*") if path.is_file()}
    new = {path.name for path in after.keys() - before.keys()}
    assert new == {"calls.jsonl"}
    assert {path.name for path in before if before[path] != after[path]} == set()


def test_only_changed_sessions_are_read_again(page: OpenedHome, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        talk(home, f"s{number}", "And?").close()
    old = 1_700_000_000
    for path in Path(home).rglob("*"):
        os.utime(path, (old, old))
    monkeypatch.setattr(session_list, "_SETTLED_NS", -(10**18))  # nothing else changes these files
    read: list[str] = []
    original = read_one

    def note(place: Any, agent: str, name: str) -> dict[str, Any]:
        read.append(name)
        return original(place, agent, name)

    monkeypatch.setattr(session_list, "read_one", note)
    rows(page)
    assert sorted(read) == ["s0", "s1", "s2", "s3"]
    rows(page)
    assert len(read) == 4
    with daypack.open_session("s2", home=home, create=False) as session:
        session.append("assistant", "Yes.")
    assert rows(page)["s2"]["messages"] == 2
    assert read[4:] == ["s2"]


def test_a_session_that_is_gone_is_no_longer_listed(page: OpenedHome, home: str) -> None:
    import shutil

    session = talk(home, "work", "And?")
    session.close()
    talk(home, "other", "And?").close()
    assert set(rows(page)) == {"work", "other"}
    shutil.rmtree(session.path)
    assert set(rows(page)) == {"other"}


def test_many_sessions_are_listed_with_the_index_of_their_agent(
    page: OpenedHome, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(session_list, "read_one")
    for number in range(MANY):
        talk(home, f"s{number:02}", f"Question {number}?", now=1_800_000_000.0 + number).close()
    found = look(page, "sessions")["sessions"]
    assert [row["session"] for row in found] == [f"s{number:02}" for number in range(MANY - 1, -1, -1)]
    assert found[0]["title"] == f"Question {MANY - 1}?"


def test_children_name_their_parents(page: OpenedHome, home: str) -> None:
    for name in ("work", "work--a", "work--a--b", "other--a"):
        talk(home, name, "And?").close()
    parents = {name: row["parent"] for name, row in rows(page).items()}
    assert parents == {"work": None, "work--a": "work", "work--a--b": "work--a", "other--a": None}


def test_a_session_that_cannot_be_opened_says_why(page: OpenedHome, home: str) -> None:
    session = talk(home, "work", "And?")
    session.close()
    Path(session.layout.meta).write_text('{"tokenizer": "o200k_base", "protocols": {"history": "9"}}')
    talk(home, "other", "And?").close()
    found = counted(page)
    assert found["work"]["error"]
    assert (found["work"]["messages"], found["work"]["calls"], found["work"]["state"]) == (None, None, None)
    assert found["other"]["error"] is None


def test_secrets_in_folders_are_replaced_unless_redaction_is_off(
    page: OpenedHome, home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / SECRET
    folder.mkdir()
    monkeypatch.chdir(folder)
    talk(home, "work", f"The token is {SECRET}.").close()
    with daypack.open_session("open", home=home, durability="os", redaction="off") as session:
        session.append("user", "Hi.")
    found = rows(page)
    assert SECRET not in str(found["work"])
    assert "[redacted:github-token]" in found["work"]["cwd"]
    meta = Path(home) / "home" / str(os.getuid()) / "agent/default/session/open/meta.json"
    meta.write_text(meta.read_text().replace('"scope"', '"redaction": "off", "scope"'))
    assert rows(page)["open"]["cwd"] == str(folder)


def test_an_empty_home_has_no_sessions(page: OpenedHome) -> None:
    assert look(page, "sessions") == {"sessions": [], "counting": False}


def test_sessions_are_shown_to_their_owner_only(page: OpenedHome, home: str) -> None:
    talk(home, "work", "And?").close()
    with pytest.raises(AccessDenied):
        look(page, "sessions", OTHER)
