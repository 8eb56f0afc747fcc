"""Importing a transcript that grew: what was imported before is neither read nor stored again."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import daypack
from daypack.errors import BadInput
from daypack.history.draft import draft_event
from daypack.importers.import_file import Destination, import_file
from daypack.importers.import_transcript import ImportReport
from daypack.session import Session
from daypack.types.digest import digest_bytes

Write = Callable[..., str]
Bring = Callable[..., ImportReport]
Opened = Callable[[str], Session]
NAME = "aaaaaaaa-0000-0000-0000-000000000000"
FILE = f"{NAME}.jsonl"


def row(kind: str, uuid: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "uuid": uuid, "sessionId": NAME, **fields}


def user(uuid: str, words: str, **fields: Any) -> dict[str, Any]:
    return row("user", uuid, message={"role": "user", "content": words}, **fields)


def said(uuid: str, name: str, words: str, **fields: Any) -> dict[str, Any]:
    return row("assistant", uuid, message={"id": name, "content": [{"type": "text", "text": words}]}, **fields)


def talk(turns: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for turn in range(turns):
        rows += [
            user(f"u{turn}", f"ask {turn}"),
            row("progress", f"p{turn}"),
            said(f"a{turn}", f"m{turn}", f"say {turn}"),
        ]
    return rows


def lines(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in rows)


def grow(path: str, rows: list[dict[str, Any]]) -> None:
    with open(path, "ab") as file:
        file.write(lines(rows))


def edit(path: str, old: bytes, new: bytes) -> None:
    """Change bytes in place, in the same file."""
    assert len(old) == len(new)
    with open(path, "r+b") as file:
        at = file.read().index(old)
        file.seek(at)
        file.write(new)


def words_of(session: Session) -> list[str]:
    return [message.text for message in session.messages()]


def kept_in(session: Session) -> list[Any]:
    return [event.data.get("row", event.data.get("text")) for event in session.events() if event.type == "import.row"]


def progress_of(session: Session) -> list[dict[str, Any]]:
    return [event.data for event in session.events() if event.type == "import.progress"]


def test_only_what_was_appended_is_read(write: Write, bring: Bring, opened: Opened) -> None:
    rows = talk(6)
    path = write(FILE, rows[:12])
    bring("claude-code", path)
    edit(path, b"ask 1", b"ASK 1")  # nobody looks there
    grow(path, rows[12:])
    report = bring("claude-code", path)
    assert (report.new, report.known, report.messages, report.problems) == (4, 8, 12, [])
    assert words_of(opened(NAME)) == [words for turn in range(6) for words in (f"ask {turn}", f"say {turn}")]


def test_an_import_that_verifies_reads_everything_and_finds_an_edit(
    write: Write, bring: Bring, home: str, opened: Opened
) -> None:
    path = write(FILE, talk(3))
    bring("claude-code", path)
    edit(path, b"ask 1", b"ASK 1")
    (report,) = import_file("claude-code", path, Destination(home, verify=True))
    assert (report.new, report.changed) == (0, 1)
    assert "changed since the last import" in report.problems[0].problem
    assert words_of(opened(NAME))[2] == "ask 1"


@pytest.mark.parametrize("where", [b"ask 0", b"say 2"])
def test_a_file_that_was_replaced_is_read_as_a_whole(write: Write, bring: Bring, where: bytes) -> None:
    path = write(FILE, talk(3))
    bring("claude-code", path)
    other = f"{path}.new"
    Path(other).write_bytes(Path(path).read_bytes().replace(where, where.upper()))
    os.replace(other, path)
    grow(path, [user("more", "more")])
    report = bring("claude-code", path)
    assert (report.new, report.changed) == (1, 1)
    assert "changed since the last import" in report.problems[0].problem


def test_a_file_that_was_cut_is_matched_row_by_row(write: Write, bring: Bring, opened: Opened) -> None:
    rows = talk(4)
    path = write(FILE, rows)
    bring("claude-code", path)
    os.truncate(path, len(lines(rows[:7])))
    assert (report := bring("claude-code", path)).new == report.new_rows == 0
    grow(path, [*rows[7:], user("more", "more")])
    assert bring("claude-code", path).new == 1
    assert kept_in(opened(NAME)) == [each for each in rows if each["type"] == "progress"]


def test_every_import_of_a_growing_file_is_verified_by_a_copy(write: Write, bring: Bring, opened: Opened) -> None:
    rows = talk(8)
    path = write(FILE, rows[:2])
    for count in range(2, len(rows), 3):
        bring("claude-code", path)
        grow(path, rows[count : count + 3])
    bring("claude-code", path)
    assert len(progress_of(opened(NAME))) > 5
    copy = write(f"copy/{FILE}", Path(path).read_bytes() + lines([user("more", "more")]))
    report = bring("claude-code", copy)
    assert (report.new, report.new_rows, report.problems) == (1, 0, [])


def test_both_versions_of_an_edited_file_are_recognised(write: Write, bring: Bring) -> None:
    rows = talk(5)
    edited = [user("u0", "ask otherwise"), *rows[1:4], user("new", "inserted"), *rows[4:9]]
    first, second = write(FILE, rows), write(f"edited/{FILE}", edited)
    assert bring("claude-code", first).problems == []
    assert bring("claude-code", second).changed == 1
    for path in (first, second, first, second):
        report = bring("claude-code", write(f"copy/{FILE}", Path(path).read_bytes()))
        assert (report.new, report.new_rows) == (0, 0)
    assert bring("claude-code", second).problems == []  # it is the newest


def test_rows_of_an_earlier_version_are_not_stored_again(write: Write, bring: Bring, opened: Opened) -> None:
    """The edited file is shorter, and grows back by the rows it lost."""
    rows = talk(4)
    path = write(FILE, rows)
    bring("claude-code", path)
    write(FILE, [user("u0", "ask otherwise"), *rows[1:6]])
    assert bring("claude-code", path).changed == 1
    grow(path, rows[6:])
    assert bring("claude-code", path).new_rows == 0
    progress = [each for each in rows if each["type"] == "progress"]
    assert [each for each in kept_in(opened(NAME)) if each["type"] == "progress"] == progress


@pytest.mark.parametrize("ends", [b"\r\n", b"\n"])
@pytest.mark.parametrize("cut", range(1, 9))
def test_any_line_ends_may_grow(write: Write, bring: Bring, opened: Opened, ends: bytes, cut: int) -> None:
    text = lines(talk(3)).replace(b"\n", ends)
    at = len(ends.join(text.split(ends)[:cut])) + len(ends)
    for data in (text[: at - len(ends)], text[:at], text):  # the end of a line may be written later
        bring("claude-code", write(FILE, data))
    assert words_of(opened(NAME)) == ["ask 0", "say 0", "ask 1", "say 1", "ask 2", "say 2"]
    assert len(kept_in(opened(NAME))) == 3


def test_progress_that_was_recorded_without_an_offset_is_still_valid(
    write: Write, bring: Bring, home: str, opened: Opened
) -> None:
    """Sessions of earlier versions have the digest of all lines, and nothing else."""
    rows = talk(4)
    origin = {"format": "claude-code", "source": f"claude-code:{NAME}"}
    with daypack.open_session(NAME, home=home) as session:
        session.append("user", "ask 0", client_key="claude-code:u0", meta={"format": "claude-code"})
        facts = {"lines": 1, "digest": digest_bytes(lines(rows[:1])), "totals": {"messages": 1}}
        for kind, data in (("import.begun", {}), ("import.progress", facts)):
            session.history.append_event(draft_event(kind, origin | {"path": "/there"} | data))
    path = write(FILE, rows[:6])
    report = bring("claude-code", path)
    assert (report.new, report.known, report.changed, report.problems) == (3, 1, 0, [])
    grow(path, rows[6:])
    assert bring("claude-code", path).new == 4
    assert [each["lines"] for each in progress_of(opened(NAME))] == [1, 6, 12]


def test_progress_before_many_other_events_is_found_without_reading_all(
    write: Write, bring: Bring, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(FILE, talk(2))
    bring("claude-code", path)
    with opened(NAME) as session:
        for number in range(300):
            session.history.append_event(draft_event("note.written", {"number": number}))
    grow(path, [user("more", "more")])
    monkeypatch.delattr("daypack.importers.import_events.ImportLog.read_all")
    assert bring("claude-code", path).new == 1


def test_a_codex_session_that_grew_keeps_its_model(write: Write, bring: Bring, opened: Opened) -> None:
    def item(**payload: Any) -> dict[str, Any]:
        return {"timestamp": "2026-02-11T20:36:00.000Z", "type": "response_item", "payload": payload}

    rows = [
        {"type": "session_meta", "payload": {"id": NAME, "cwd": "/there"}},
        {"type": "turn_context", "payload": {"model": "some-model"}},
        item(type="message", role="user", content=[{"type": "input_text", "text": "ask"}]),
    ]
    path = write("rollout.jsonl", rows)
    bring("codex", path)
    for words in ("one", "two"):
        grow(path, [item(type="message", role="assistant", content=[{"type": "output_text", "text": words}])])
        bring("codex", path if words == "one" else write("copy.jsonl", Path(path).read_bytes()))
    answers = [message for message in opened(NAME).messages() if message.role == "assistant"]
    assert [(message.text, (message.meta or {}).get("model")) for message in answers] == [
        ("one", "some-model"),
        ("two", "some-model"),
    ]


def test_a_codex_file_that_changed_before_its_end_is_refused(write: Write, bring: Bring) -> None:
    rows = [{"type": "session_meta", "payload": {"id": NAME}}, {"type": "event_msg", "payload": {"type": "a"}}]
    path = write("rollout.jsonl", rows)
    bring("codex", path)
    write("rollout.jsonl", [rows[0], {"type": "event_msg", "payload": {"type": "changed"}}, rows[1]])
    with pytest.raises(BadInput, match="changed since the last import"):
        bring("codex", path)


def test_the_result_of_a_legacy_call_finds_its_call_in_an_earlier_import(
    write: Write, bring: Bring, opened: Opened
) -> None:
    path = write(
        "talk.jsonl", [{"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}]
    )
    bring("openai", path)
    grow(path, [{"role": "function", "name": "f", "content": "done"}])
    bring("openai", path)
    call, result = opened("talk").messages()
    assert call.tool_calls[0].id == result.tool_call_id == "call-1"


def test_side_rows_without_an_agent_id_find_their_thread_in_an_earlier_import(
    write: Write, bring: Bring, opened: Opened
) -> None:
    rows = [user("u", "ask"), user("root-row", "Task", isSidechain=True)]
    path = write(FILE, rows)
    bring("claude-code", path)
    grow(path, [said("next-row", "m", "Done", isSidechain=True, parentUuid="root-row")])
    bring("claude-code", path)
    assert words_of(opened(f"{NAME}--root-row")) == ["Task", "Done"]
