"""Stores of opencode: a recorded database, the files of earlier versions, and databases that cannot be read."""

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from daypack.derived.children import read_children
from daypack.errors import BadInput, StorageFailed
from daypack.importers.import_file import Destination, import_file, take_in
from daypack.importers.import_transcript import ImportReport
from daypack.importers.opencode_store import Store, is_store, session_path
from daypack.session import Session, open_session
from daypack.types.authority import writer_of
from daypack.types.history import Image, Message, Text, Thinking

RECORDED = Path(__file__).parent / "recorded" / "opencode.sql"
SESSION, CHILD = "ses_e133e95e0ffeuZEjFJSkY9RxCa", "ses_e133e7538ffeUAcasHvfbNnTFU"
Change = Callable[..., None]


@pytest.fixture
def database(tmp_path: Path) -> str:
    """The database of a session with tools, a sub-agent, an image, messages taken back, and a compaction."""
    path = tmp_path / "opencode" / "opencode.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(RECORDED.read_text(encoding="utf-8"))
    return str(path)


@pytest.fixture
def change(database: str) -> Change:
    def change(statement: str, values: tuple[Any, ...] = ()) -> None:
        with closing(sqlite3.connect(database)) as connection:
            connection.execute(statement, values)
            connection.commit()

    return change


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYPACK_DURABILITY", "os")


def bring(home: str, path: str, **options: Any) -> list[ImportReport]:
    return import_file(None, path, Destination(home, agent=None, **options))


def messages_of(home: str, name: str = SESSION) -> list[Message]:
    with open_session(name, agent="opencode", home=home, create=False) as session:
        return list(session.messages())


@pytest.fixture
def imported(home: str, database: str) -> Iterator[Session]:
    bring(home, database)
    with open_session(SESSION, agent="opencode", home=home, create=False) as session:
        yield session


def add_message(
    change: Change, name: str, info: dict[str, Any], *parts: dict[str, Any], at: float | None = None
) -> None:
    """Add a message behind all others, as opencode writes it."""
    now = int((at or time.time()) * 1000)
    info = {"time": {"created": now, **info.pop("time", {})}, **info}
    change("INSERT INTO message VALUES(?,?,?,?,?)", (name, SESSION, now, now, json.dumps(info)))
    for number, part in enumerate(parts):
        values = (f"prt_{name}_{number}", name, SESSION, now, now, json.dumps(part))
        change("INSERT INTO part VALUES(?,?,?,?,?,?)", values)


def test_a_recorded_session_is_read_whole(home: str, database: str) -> None:
    main, child = bring(home, database)
    assert (main.format, main.session, main.agent, main.tool_calls, main.problems) == (
        "opencode", SESSION, "opencode", 3, []
    )  # fmt: skip
    assert (child.session, child.parent) == (f"{SESSION}--{CHILD}", SESSION)
    said = [(message.role, message.text.partition("\n")[0]) for message in messages_of(home)]
    assert said == [
        ("user", "Read the README"),
        ("assistant", "I look."),
        ("tool", "# project"),
        ("tool", "(no output)"),
        ("assistant", "Retries are in retry.py."),
        ("user", "Delegate it"),
        ("assistant", ""),
        ("tool", f'<task id="{CHILD}" state="completed">'),
        ("assistant", "The sub-agent found it."),
        ("user", "What is in the picture"),
        ("assistant", "One pixel."),
        ("user", "A better question"),
        ("assistant", "A better answer."),
        ("user", "What did we do so far?"),
        ("assistant", "## Goal"),
        ("user", "After the compaction"),
        ("assistant", "I remember."),
    ]


def test_calls_have_their_results_and_replies_their_model_and_usage(imported: Session) -> None:
    reply, first, second = imported.messages(2, 4)
    assert [call.id for call in reply.tool_calls] == [first.tool_call_id, second.tool_call_id]
    assert json.loads(reply.tool_calls[0].arguments) == {"command": "cat README.md", "description": "Run it"}
    assert reply.meta
    assert reply.meta["model"] == "model"
    assert reply.meta["usage"]["input"] > 0
    assert imported.meta["model"] == "model"
    assert (imported.path / "cwd").read_text().strip() == "/work/project"


def test_a_sub_agent_is_a_child_whose_first_words_are_its_agents(imported: Session, home: str) -> None:
    (child,) = read_children(imported.history)
    assert (child.handoff, child.result) == ("Find where retries are", "In line 3 of the README.")
    first = messages_of(home, f"{SESSION}--{CHILD}")[0]
    assert writer_of(first) == "agent"


def test_an_image_becomes_a_blob_and_a_file_is_what_the_program_wrote(imported: Session) -> None:
    (message,) = imported.messages(10, 10)
    assert not isinstance(message.content, str)
    typed, image, called, content = message.content
    assert isinstance(typed, Text)
    assert typed.text == "What is in the picture"
    assert not typed.meta
    assert isinstance(image, Image)
    assert image.source.startswith("sha256-")
    assert image.media_type == "image/png"
    assert isinstance(content, Text)
    assert "Retries are in retry.py." in content.text
    assert [part.meta for part in (called, content) if isinstance(part, Text)] == [{"writer": "harness"}] * 2


def test_a_compaction_is_an_event_and_its_request_is_not_the_users(imported: Session) -> None:
    (request,) = imported.messages(14, 14)
    assert writer_of(request) == "harness"
    (event,) = (event for event in imported.events() if event.type == "import.compacted")
    assert (event.data["through"], event.data["kept"]) == (15, [])


def test_a_second_import_adds_nothing(home: str, database: str) -> None:
    first = sum(report.new for report in bring(home, database))
    again = bring(home, database)
    assert first == 21
    assert [report.new for report in again] == [0, 0]
    assert [report.problems for report in again] == [[], []]


def test_only_what_is_new_is_added(home: str, database: str, change: Change) -> None:
    bring(home, database)
    add_message(change, "msg_new", {"role": "user"}, {"type": "text", "text": "One more."})
    main, child = bring(home, database)
    assert (main.new, child.new) == (1, 0)
    assert messages_of(home)[-1].text == "One more."


def test_what_opencode_changes_in_old_messages_changes_nothing(home: str, database: str, change: Change) -> None:
    bring(home, database)
    change(
        "UPDATE message SET data = json_set(data, '$.summary', json('{\"diffs\":[1]}')) WHERE data LIKE '%\"user\"%'"
    )
    change("UPDATE part SET data = json_set(data, '$.state.time.compacted', 1) WHERE data LIKE '%\"tool\"%'")
    assert [(report.new, report.changed, report.problems) for report in bring(home, database)] == [(0, 0, [])] * 2


def test_messages_that_were_taken_back_stay_in_history(home: str, database: str, change: Change) -> None:
    bring(home, database)
    change("DELETE FROM message WHERE id = (SELECT max(id) FROM message WHERE session_id = ?)", (SESSION,))
    add_message(change, "msg_zzz", {"role": "user"}, {"type": "text", "text": "Another way."})
    bring(home, database)
    assert [message.text for message in messages_of(home)][-2:] == ["I remember.", "Another way."]


def test_a_reply_that_is_being_written_is_left_out_until_it_is_complete(
    home: str, database: str, change: Change
) -> None:
    add_message(change, "msg_1", {"role": "user"}, {"type": "text", "text": "Go on."})
    add_message(change, "msg_2", {"role": "assistant"}, {"type": "text", "text": "I beg"})
    add_message(change, "msg_3", {"role": "user"}, {"type": "text", "text": "And then?"})
    bring(home, database)
    assert messages_of(home)[-1].text == "Go on."
    change("UPDATE message SET data = json_set(data, '$.time.completed', 2) WHERE id = 'msg_2'")
    change("UPDATE part SET data = json_set(data, '$.text', 'I begin.') WHERE message_id = 'msg_2'")
    bring(home, database)
    assert [message.text for message in messages_of(home)][-3:] == ["Go on.", "I begin.", "And then?"]


def test_a_reply_that_was_abandoned_is_read_as_it_is(home: str, database: str, change: Change) -> None:
    running: dict[str, Any] = {
        "type": "tool",
        "tool": "bash",
        "callID": "c1",
        "state": {"status": "running", "input": {}},
    }
    add_message(change, "msg_1", {"role": "assistant"}, running, at=time.time() - 7200)
    bring(home, database)
    assert "[Tool execution was interrupted]" in [message.text for message in messages_of(home)]


def test_reasoning_keeps_its_signature(home: str, database: str, change: Change) -> None:
    metadata = {"anthropic": {"signature": "abc="}}
    thinking = {"type": "reasoning", "text": "Let me see.", "metadata": metadata}
    add_message(change, "msg_1", {"role": "assistant", "time": {"completed": 1}}, thinking)
    bring(home, database)
    message = messages_of(home)[-1]
    assert not isinstance(message.content, str)
    (part,) = message.content
    assert isinstance(part, Thinking)
    assert (part.text, part.signature) == ("Let me see.", "abc=")


def test_one_session_of_a_database_can_be_taken_in_alone(home: str, database: str, change: Change) -> None:
    change("CREATE TABLE copied AS SELECT * FROM session WHERE parent_id IS NULL")
    change("UPDATE copied SET id = 'ses_other'")
    change("INSERT INTO session SELECT * FROM copied")
    destination = Destination(home, agent="opencode")
    of_parent = take_in(session_path(database, SESSION), destination)
    of_child = take_in(session_path(database, CHILD), destination)
    assert [report.session for report in of_parent] == [SESSION, f"{SESSION}--{CHILD}"]
    assert [report.session for report in of_child] == [SESSION, f"{SESSION}--{CHILD}"]
    with pytest.raises(BadInput, match="has no session ses_none"):
        take_in(session_path(database, "ses_none"), destination)


def test_what_is_only_in_the_write_ahead_log_is_read_while_opencode_has_it_open(home: str, database: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        values = ("msg_new", SESSION, 2_000_000_000_000, 0, '{"role":"user","time":{"created":2000000000000}}')
        connection.execute("INSERT INTO message VALUES(?,?,?,?,?)", values)
        text = ("prt_new", "msg_new", SESSION, 0, 0, '{"type":"text","text":"Not in the file yet."}')
        connection.execute("INSERT INTO part VALUES(?,?,?,?,?,?)", text)
        connection.commit()
        bring(home, database)
        assert messages_of(home)[-1].text == "Not in the file yet."


def write_files(folder: Path, database: str) -> Path:
    """Write a database as the files of an earlier version, and return the file of the first session."""
    with closing(sqlite3.connect(database)) as connection:
        for name, parent, cwd in connection.execute("SELECT id, parent_id, directory FROM session"):
            path = folder / "session" / "project" / f"{name}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            fields = {"id": name, "directory": cwd, **({"parentID": parent} if parent else {})}
            path.write_text(json.dumps(fields))
        for name, session, data in connection.execute("SELECT id, session_id, data FROM message"):
            path = folder / "message" / session / f"{name}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({**json.loads(data), "id": name, "sessionID": session}))
        for name, message, data in connection.execute("SELECT id, message_id, data FROM part"):
            path = folder / "part" / message / f"{name}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({**json.loads(data), "id": name, "messageID": message}))
    return folder / "session" / "project" / f"{SESSION}.json"


def test_the_files_of_an_earlier_version_have_the_same_messages(home: str, database: str, tmp_path: Path) -> None:
    path = str(write_files(tmp_path / "storage", database))
    reports = bring(home, path)
    assert [report.session for report in reports] == [SESSION, f"{SESSION}--{CHILD}"]
    assert len(messages_of(home)) == 17
    assert sum(report.new for report in bring(home, database)) == 0


@pytest.mark.parametrize("name", ["opencode.db", "another.db"])
def test_a_database_of_another_program_is_refused(home: str, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE session (id, title)")
    with pytest.raises(BadInput, match=r"not a database of opencode|unknown format"):
        bring(home, str(path))


def test_a_truncated_database_is_refused(home: str, database: str) -> None:
    data = Path(database).read_bytes()
    Path(database).write_bytes(data[: len(data) // 2])
    with pytest.raises(BadInput, match=r"cannot be (read|opened)"):
        bring(home, database)


def test_a_locked_database_is_no_bad_input_so_that_the_next_import_tries_again(
    home: str, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daypack.importers.readers.program_database._LOCK_SECONDS", 0.01)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StorageFailed, match="locked") as refused:
            bring(home, database)
    assert "import again when opencode is idle" in refused.value.hint


@pytest.mark.parametrize(
    "data", ['{"type":"text","text":', "[]", '"text"', "null", '{"type":7}', "x" * 100, '{"type":"tool","state":[]}']
)
def test_hostile_parts_and_messages_stop_nothing(home: str, database: str, change: Change, data: str) -> None:
    change("UPDATE part SET data = ? WHERE id = (SELECT min(id) FROM part WHERE session_id = ?)", (data, SESSION))
    change("UPDATE message SET data = ? WHERE id = (SELECT max(id) FROM message WHERE session_id = ?)", (data, SESSION))
    bring(home, database)
    texts = [message.text for message in messages_of(home)]
    assert "After the compaction" in texts
    assert "Read the README" not in texts


def test_sessions_that_are_each_others_parents_are_read(home: str, database: str, change: Change) -> None:
    change("UPDATE session SET parent_id = ? WHERE id = ?", (CHILD, SESSION))
    assert Store(session_path(database, SESSION)).sessions()
    assert take_in(session_path(database, SESSION), Destination(home, agent="opencode"))


def test_a_stream_of_the_shell_is_no_store() -> None:
    assert not is_store("/dev/stdin")
