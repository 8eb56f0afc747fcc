"""Codex's history database: threads whose rollouts are gone are read from it, others are not."""

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agents_home import CODEX_SUB_AGENT, CODEX_THREAD, AgentsHome

from daypack.cli.main import run
from daypack.derived.children import read_children
from daypack.errors import BadInput, StorageFailed
from daypack.importers.import_file import Destination, import_file
from daypack.importers.import_transcript import ImportReport
from daypack.session import open_session
from daypack.types.authority import writer_of
from daypack.types.history import Message

CHILD = f"{CODEX_THREAD}--{CODEX_SUB_AGENT}"


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AgentsHome:
    monkeypatch.setenv("DAYPACK_DURABILITY", "os")
    return AgentsHome(tmp_path / "user", monkeypatch)


@pytest.fixture
def database(agents: AgentsHome) -> Path:
    """A thread with commands, a patch, a sub-agent and a compaction."""
    return agents.codex_history()


def bring(home: str, path: Path, **options: Any) -> list[ImportReport]:
    return import_file(None, str(path), Destination(home, agent=None, **options))


def messages_of(home: str, name: str = CODEX_THREAD) -> list[Message]:
    with open_session(name, agent="codex", home=home, create=False) as session:
        return list(session.messages())


def change(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement, values)
        connection.commit()


def add_item(path: Path, number: int, fields: dict[str, Any], *, thread: str = CODEX_THREAD, at: int = 1) -> None:
    values = (thread, "turn", str(number), number, at, json.dumps(fields), str(fields.get("type")), number, at, at)
    change(path, "INSERT INTO thread_items VALUES(?,?,?,?,?,?,?,?,?,?)", *values)


def import_all(home: str, capsys: pytest.CaptureFixture[str], *, code: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    assert run(["import", "--all", "--agent", "codex", "--json", "--home", home]) == code
    return json.loads(capsys.readouterr().out)


def test_a_thread_without_a_rollout_is_read_whole(home: str, database: Path) -> None:
    main_report, child = bring(home, database)
    assert (main_report.format, main_report.session, main_report.agent) == ("codex", CODEX_THREAD, "codex")
    assert (main_report.tool_calls, main_report.problems, child.session) == (5, [], CHILD)
    assert [(message.role, message.text.partition("\n")[0]) for message in messages_of(home)] == [
        ("user", "In which file are the retries of the client?"),
        ("assistant", "I look."),
        ("tool", "# project"),
        ("assistant", ""),
        ("tool", "Process exited with code 2"),
        ("assistant", "I note it."),
        ("tool", "completed"),
        ("assistant", "The retries are in retry.py."),
        ("user", "Delegate it."),
        ("assistant", "I delegate."),
        ("tool", messages_of(home)[10].text),
        ("assistant", ""),
        ("tool", messages_of(home)[12].text),
        ("assistant", "It is done."),
        ("user", "And now?"),
        ("assistant", "Nothing more."),
    ]
    assert "It schedules the nightly jobs." in messages_of(home)[12].text


def test_commands_and_patches_are_calls_as_the_model_wrote_them(home: str, database: Path) -> None:
    bring(home, database)
    calls = {call.id: call for message in messages_of(home) for call in message.tool_calls}
    assert json.loads(calls["call_1_1"].arguments) == {"cmd": "cat README.md", "workdir": "/work/project"}
    assert (calls["call_3_1"].name, calls["call_3_1"].arguments) == (
        "apply_patch",
        "*** Begin Patch\n*** Add File: /work/project/notes.txt\n+Retries: retry.py\n*** End Patch\n",
    )
    results = [message.tool_call_id for message in messages_of(home) if message.role == "tool"]
    assert results == list(calls)


def test_a_session_has_its_times_folder_model_and_sub_agent(home: str, database: Path) -> None:
    bring(home, database)
    with open_session(CODEX_THREAD, agent="codex", home=home, create=False) as session:
        assert session.messages()[0].ts == "2026-11-18T05:08:43.525Z"
        assert session.meta["model"] == "gpt-5.5"
        assert (session.path / "cwd").read_text().strip() == "/work/project"
        (child,) = read_children(session.history)
    assert (child.handoff, child.result) == ("Say what the scheduler does.", "It schedules the nightly jobs.")
    assert [writer_of(messages_of(home, name)[0]) for name in (CODEX_THREAD, CHILD)] == [None, "agent"]


def test_what_the_database_lacks_is_reported(home: str, database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "encrypted reasoning" in bring(home, database)[0].note
    assert run(["import", str(database), "--home", f"{home}-2"]) == 0
    assert "because the rollout is gone: without instructions" in capsys.readouterr().err
    assert run(["import", "--all", "--agent", "codex", "--home", f"{home}-3"]) == 0
    assert "2 sessions of Codex read from its history database" in capsys.readouterr().err


@pytest.mark.parametrize("archived", [False, True])
def test_threads_with_rollouts_add_nothing(
    home: str, agents: AgentsHome, database: Path, archived: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    for thread in (CODEX_THREAD, CODEX_SUB_AGENT):
        path = agents.codex(thread, "From the rollout.")
        if archived:
            (database.parent / "archived_sessions").mkdir(exist_ok=True)
            path.rename(database.parent / "archived_sessions" / path.name)
    assert bring(home, database) == []
    assert run(["import", str(database), "--home", home]) == 0
    assert "nothing to import" in capsys.readouterr().err


def test_a_rollout_where_the_database_of_threads_says_counts(home: str, database: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.jsonl.zst"
    elsewhere.write_bytes(b"compressed")
    change(database.parent / "state_5.sqlite", "UPDATE threads SET rollout_path = ?", str(tmp_path / "elsewhere.jsonl"))
    assert bring(home, database) == []


def test_an_empty_rollout_is_no_rollout(home: str, agents: AgentsHome, database: Path) -> None:
    agents.codex(CODEX_THREAD).write_bytes(b"")
    assert [report.session for report in bring(home, database)] == [CODEX_THREAD, CHILD]


def test_all_places_read_only_the_thread_whose_rollout_is_gone(
    home: str, agents: AgentsHome, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agents.codex(CODEX_THREAD, "From the rollout.")
    answer = import_all(home, capsys)
    assert answer["failed"] == []
    assert answer["places"][0]["imported"]["without_transcript"] == 1
    assert [message.text for message in messages_of(home)] == ["From the rollout."]
    assert messages_of(home, CHILD)[-1].text == "It schedules the nightly jobs."
    with open_session(CODEX_THREAD, agent="codex", home=home, create=False) as session:
        assert [child.name for child in read_children(session.history)] == [CODEX_SUB_AGENT]


def test_a_rollout_that_is_deleted_after_its_import_doubles_nothing(
    home: str, agents: AgentsHome, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rollout = agents.codex(CODEX_THREAD, "From the rollout.")
    import_all(home, capsys)
    rollout.unlink()
    add_item(database, 900, {"type": "agentMessage", "id": "msg_900", "text": "More."})
    assert import_all(home, capsys)["places"][0]["imported"]["messages"] == 0
    assert [message.text for message in messages_of(home)] == ["From the rollout."]


def test_a_rollout_that_comes_back_is_refused_until_the_session_is_archived(
    home: str, agents: AgentsHome, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import_all(home, capsys)
    rollout = agents.codex(CODEX_THREAD, "From the rollout.")
    (failure,) = import_all(home, capsys, code=1)["failed"]
    assert "holds other messages" in failure["problem"]
    assert messages_of(home)[-1].text == "Nothing more."
    assert run(["gc", CODEX_THREAD, "--archive", "--force", "--agent", "codex", "--home", home]) == 0
    assert run(["import", str(rollout), "--home", home]) == 0
    assert [message.text for message in messages_of(home)] == ["From the rollout."]


def test_importing_again_adds_only_what_is_new(home: str, database: Path) -> None:
    bring(home, database)
    count = len(messages_of(home))
    assert [report.new for report in bring(home, database)] == [0, 0]
    add_item(database, 900, {"type": "userMessage", "id": "u", "content": [{"type": "text", "text": "One more?"}]})
    assert [report.new for report in bring(home, database)] == [1, 0]
    assert (len(messages_of(home)), messages_of(home)[-1].text) == (count + 1, "One more?")


def test_a_session_that_was_deleted_does_not_come_back(
    home: str, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import_all(home, capsys)
    with open_session(CODEX_THREAD, agent="codex", home=home, create=False) as session:
        folder = session.path
    shutil.rmtree(folder)
    add_item(database, 900, {"type": "agentMessage", "id": "msg_900", "text": "More."})
    import_all(home, capsys)
    assert not folder.exists()


def test_an_item_that_still_runs_is_left_out_until_it_ends(home: str, database: Path) -> None:
    fields = {"type": "commandExecution", "id": "c", "command": "make", "status": "inProgress"}
    add_item(database, 900, fields, at=int(time.time() * 1000))
    bring(home, database)
    assert messages_of(home)[-1].text == "Nothing more."
    done = json.dumps({**fields, "status": "completed", "aggregatedOutput": "built", "exitCode": 0})
    change(database, "UPDATE thread_items SET item_json = ? WHERE rollout_ordinal = 900", done)
    bring(home, database)
    assert messages_of(home)[-1].text == "built"


def test_items_of_other_kinds_are_kept(home: str, database: Path) -> None:
    tool = {"type": "mcpToolCall", "id": "m", "server": "wiki", "tool": "read", "arguments": {"page": "ports"}}
    items: list[dict[str, Any]] = [
        {**tool, "result": {"content": [{"type": "text", "text": "Port 4804."}]}},
        {**tool, "id": "m2", "error": {"message": "no such page"}},
        {"type": "reasoning", "id": "r", "summary": ["I think."], "content": []},
        {
            "type": "dynamicToolCall",
            "id": "d",
            "tool": "look",
            "contentItems": [{"type": "inputText", "text": "Seen."}],
        },
        {"type": "somethingNew", "id": "n", "words": "kept"},
    ]
    for number, fields in enumerate(items, 900):
        add_item(database, number, fields)
    assert bring(home, database)[0].problems == []
    said = [message.text for message in messages_of(home)]
    assert ["Port 4804." in said, '{"message":"no such page"}' in said, "Seen." in said] == [True, True, True]
    calls = [call.name for message in messages_of(home) for call in message.tool_calls]
    assert calls[-3:] == ["mcp__wiki__read", "mcp__wiki__read", "look"]
    with open_session(CODEX_THREAD, agent="codex", home=home, create=False) as session:
        kept = [event.data["row"]["payload"] for event in session.events() if event.type == "import.row"]
    assert items[-1] in kept


@pytest.mark.parametrize(
    "item",
    [
        "not json",
        "[1]",
        '"text"',
        "[" * 5000,
        '{"type":"userMessage","id":7,"content":"x"}',
        '{"type":"userMessage","id":"u","content":[null,{"type":"localImage","path":"/a.png"}]}',
        '{"type":"commandExecution","id":"c","command":"echo \'","exitCode":"x","aggregatedOutput":7}',
        '{"type":"fileChange","id":"f","changes":[{"kind":7},null,{"kind":{"type":"update"},"diff":null}]}',
        '{"type":"agentMessage","id":"a","text":"\\ud800"}',
    ],
)
def test_a_hostile_item_stops_no_import(home: str, database: Path, item: str) -> None:
    statement = "INSERT INTO thread_items VALUES(?,'t','i',?,'x',?,'',0,'x',NULL)"
    change(database, statement, CODEX_THREAD, 60, item)
    change(database, statement, "../../etc", 61, item)
    reports = bring(home, database)
    assert messages_of(home)[-1].text == "Nothing more."
    assert not [report for report in reports if "/" in report.session]


def test_a_circle_of_parents_is_no_endless_one(home: str, database: Path) -> None:
    edge = "INSERT INTO thread_spawn_edges VALUES(?,?,'open')"
    change(database.parent / "state_5.sqlite", edge, CODEX_SUB_AGENT, CODEX_THREAD)
    assert len(bring(home, database)) == 2


@pytest.mark.parametrize("state", ["missing", "damaged", "foreign"])
def test_without_the_database_of_threads_each_thread_is_a_session(home: str, database: Path, state: str) -> None:
    path = database.parent / "state_5.sqlite"
    path.unlink()
    if state == "damaged":
        path.write_bytes(b"SQLite format 3\x00" + b"\xff" * 5000)
    elif state == "foreign":
        change(path, "CREATE TABLE threads (id TEXT)")
    reports = bring(home, database)
    assert [report.session for report in reports] == [CODEX_THREAD, CODEX_SUB_AGENT]
    assert "sub-agents are sessions of their own" in reports[0].note
    with open_session(CODEX_THREAD, agent="codex", home=home, create=False) as session:
        assert (session.path / "cwd").read_text().strip() == "/work/project"


@pytest.mark.parametrize("size", [100, 5000])
def test_a_truncated_database_is_a_clear_error(
    home: str, database: Path, size: int, capsys: pytest.CaptureFixture[str]
) -> None:
    os.truncate(database, size)
    with pytest.raises(BadInput, match="cannot be read"):
        bring(home, database)
    (failure,) = import_all(home, capsys, code=1)["failed"]
    assert (failure["path"], "integrity_check" in failure["hint"]) == (str(database), True)


def test_a_database_of_another_version_is_refused(home: str, database: Path) -> None:
    other = database.with_name("thread_history_2.sqlite")
    other.write_bytes(b"\n")
    with pytest.raises(BadInput, match="is not a database of Codex that this version reads"):
        bring(home, other)
    change(database, "ALTER TABLE thread_items RENAME COLUMN item_json TO item")
    with pytest.raises(BadInput, match="thread_items has no item_json"):
        bring(home, database)


@pytest.fixture
def locked(database: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    monkeypatch.setattr("daypack.importers.readers.program_database._LOCK_SECONDS", 0.01)
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield connection


def test_a_locked_database_is_tried_again(
    home: str, locked: sqlite3.Connection, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(StorageFailed, match="locked"):
        bring(home, database)
    assert "locked" in import_all(home, capsys, code=1)["failed"][0]["problem"]
    locked.execute("ROLLBACK")
    assert import_all(home, capsys)["places"][0]["imported"]["sessions"] == 1


def test_what_is_only_in_the_write_ahead_log_is_read(home: str, database: Path) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        add_item(database, 900, {"type": "agentMessage", "id": "msg_900", "text": "In the log."})
        before = database.read_bytes()
        bring(home, database)
        assert database.read_bytes() == before
    assert messages_of(home)[-1].text.endswith("In the log.")


def test_reading_a_database_does_not_make_it_look_changed(
    home: str, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(database, "PRAGMA journal_mode=WAL")
    import_all(home, capsys)
    assert import_all(home, capsys)["places"][0]["new_files"] == 0


def test_rollouts_on_a_disk_that_is_away_are_not_taken_for_gone(home: str, database: Path) -> None:
    (database.parent / "sessions").symlink_to("/nowhere/sessions")
    with pytest.raises(StorageFailed, match="link to a folder that is not there"):
        bring(home, database)


def test_one_name_for_several_threads_is_refused(home: str, database: Path) -> None:
    (database.parent / "state_5.sqlite").unlink()
    with pytest.raises(BadInput, match="--session names one"):
        bring(home, database, session="mine")
