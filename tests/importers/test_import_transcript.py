"""Importing again, after growth, edits, bad lines and crashes: everything once, nothing lost."""

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from campaigns import Campaign
from faults import Faults, calls_of, injected

import daypack
from daypack.errors import BadInput
from daypack.history.facets import Facets
from daypack.importers import import_transcript
from daypack.importers.import_file import Destination, import_file
from daypack.importers.import_transcript import ImportReport
from daypack.session import Session
from daypack.upkeep.doctor import examine_session

Write = Callable[..., str]
Bring = Callable[..., ImportReport]
Opened = Callable[[str], Session]
NAME = "aaaaaaaa-0000-0000-0000-000000000000"
FILE = f"{NAME}.jsonl"


def row(kind: str, uuid: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "uuid": uuid, "sessionId": NAME, **fields}


def user(uuid: str, words: str) -> dict[str, Any]:
    return row("user", uuid, message={"role": "user", "content": words})


def said(uuid: str, name: str, words: str) -> dict[str, Any]:
    return row("assistant", uuid, message={"id": name, "content": [{"type": "text", "text": words}]})


def talk(turns: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for turn in range(turns):
        rows += [user(f"u{turn}", f"ask {turn}"), row("progress", f"p{turn}", data={"n": turn})]
        rows += [said(f"a{turn}", f"m{turn}", f"first {turn}"), said(f"b{turn}", f"m{turn}", f"second {turn}")]
    return rows


def words_of(session: Session) -> list[str]:
    return [message.text for message in session.messages()]


def kept_in(session: Session) -> list[Any]:
    return [event.data.get("row", event.data.get("text")) for event in session.events() if event.type == "import.row"]


def whole(turns: int) -> list[str]:
    return [words for turn in range(turns) for words in (f"ask {turn}", f"first {turn}\nsecond {turn}")]


def test_a_second_import_adds_nothing(write: Write, bring: Bring, opened: Opened) -> None:
    path = write(FILE, talk(5))
    first = bring("claude-code", path)
    session = opened(NAME)
    sizes = [os.path.getsize(session.path / name) for name in ("messages.jsonl", "events.jsonl")]
    second = bring("claude-code", path)
    assert (first.messages, first.new, first.known, first.rows, first.new_rows) == (10, 10, 0, 5, 5)
    assert (second.messages, second.new, second.known, second.rows, second.new_rows) == (10, 0, 10, 5, 0)
    assert [os.path.getsize(session.path / name) for name in ("messages.jsonl", "events.jsonl")] == sizes


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_file_that_grew_adds_exactly_the_rest(write: Write, bring: Bring, opened: Opened, cut: int) -> None:
    rows = talk(3)
    bring("claude-code", write(FILE, rows[:cut]))
    bring("claude-code", write(FILE, rows))
    session = opened(NAME)
    assert "\n".join(words_of(session)) == "\n".join(whole(3))
    assert kept_in(session) == [one for one in rows if one["type"] == "progress"]


def test_a_message_that_grew_is_continued_by_a_further_message(write: Write, bring: Bring, opened: Opened) -> None:
    rows = [said("a", "m", "one"), said("b", "m", "two"), said("c", "m", "three")]
    for count, new in ((1, 1), (2, 1), (3, 1), (3, 0)):
        assert bring("claude-code", write(FILE, rows[:count])).new == new
    assert words_of(opened(NAME)) == ["one", "two", "three"]


def test_an_older_copy_adds_nothing(write: Write, bring: Bring, opened: Opened) -> None:
    rows = talk(4)
    bring("claude-code", write(FILE, rows))
    assert bring("claude-code", write(f"copy/{FILE}", rows[:6])).new == 0
    events = len(opened(NAME).events())
    assert bring("claude-code", write(FILE, rows)).new == 0
    assert words_of(opened(NAME)) == whole(4)
    assert len(opened(NAME).events()) == events


def test_a_torn_last_line_is_reported_kept_and_completed_later(write: Write, bring: Bring, opened: Opened) -> None:
    text = "".join(json.dumps(one) + "\n" for one in talk(2))
    torn = text[: text.index("ask 1") + 2]
    for _ in range(2):
        report = bring("claude-code", write(FILE, torn))
        assert [(one.line, "is incomplete" in one.problem) for one in report.problems] == [(5, True)]
    assert kept_in(opened(NAME))[1:] == [torn.splitlines()[-1]]
    assert bring("claude-code", write(FILE, text)).problems == []
    assert words_of(opened(NAME)) == whole(2)


def test_a_whole_last_line_without_its_end_is_read(write: Write, bring: Bring, opened: Opened) -> None:
    text = "".join(json.dumps(one) + "\n" for one in talk(1))
    assert bring("claude-code", write(FILE, text.rstrip("\n"))).problems == []
    assert bring("claude-code", write(FILE, text + json.dumps(user("z", "more")) + "\n")).new == 1
    assert words_of(opened(NAME)) == [*whole(1), "more"]


def test_bad_lines_are_named_and_kept_and_the_rest_is_read(write: Write, bring: Bring, opened: Opened) -> None:
    good = [json.dumps(one).encode() for one in (user("a", "one"), user("b", "two"))]
    bad = [b"{broken", b'{"type":"user" \xff}', b""]
    path = write(FILE, b"\n".join((good[0], *bad, good[1])) + b"\n")
    report = bring("claude-code", path)
    assert [problem.line for problem in report.problems] == [2, 3]
    session = opened(NAME)
    assert words_of(session) == ["one", "two"]
    events = [event.data for event in session.events() if event.type == "import.row"]
    assert events[0]["text"] == "{broken"
    assert (session.path / "blob" / events[1]["blob"]).read_bytes() == bad[1]
    assert all("not JSON" in event["problem"] for event in events)
    assert bring("claude-code", path).new_rows == 0


def test_half_a_character_is_replaced_and_the_line_is_kept_as_it_was(
    write: Write, bring: Bring, opened: Opened
) -> None:
    line = json.dumps(user("a", "cut: PLACE end")).replace("PLACE", "\\ud83d")
    report = bring("claude-code", write(FILE, line + "\n"))
    assert words_of(opened(NAME)) == ["cut: � end"]
    assert kept_in(opened(NAME)) == [line]
    assert "replaced" in report.problems[0].problem


@pytest.mark.parametrize("depth", [99, 500, 20_000])
def test_what_is_nested_too_deeply_is_kept_as_text(write: Write, bring: Bring, opened: Opened, depth: int) -> None:
    line = json.dumps(row("user", "b", message={"role": "user", "content": "fine"}, deep=0))
    line = line.replace('"deep": 0', f'"deep": {"[" * depth}1{"]" * depth}')
    report = bring("claude-code", write(FILE, json.dumps(user("a", "one")) + f"\n{line}\n"))
    assert words_of(opened(NAME)) == ["one"]
    assert kept_in(opened(NAME)) == [line]
    assert [problem.line for problem in report.problems] == [2]


def test_a_message_that_cannot_be_stored_is_kept_as_rows(write: Write, bring: Bring, opened: Opened) -> None:
    odd = row("user", "b", message={"role": "user", "content": "fine"}, big=1 << 70)
    report = bring("claude-code", write(FILE, [user("a", "one"), odd]))
    assert words_of(opened(NAME)) == ["one"]
    assert [json.loads(one) for one in kept_in(opened(NAME))] == [odd]
    assert "beyond 64 bits" in report.problems[0].problem


def test_an_edited_file_is_reported_and_only_what_is_new_is_added(write: Write, bring: Bring, opened: Opened) -> None:
    rows = talk(3)
    bring("claude-code", write(FILE, rows))
    changed = [user("u0", "ask otherwise"), *rows[2:6], user("new", "inserted"), *rows[6:]]
    report = bring("claude-code", write(FILE, changed))
    assert "changed since the last import" in report.problems[0].problem
    assert (report.new, report.changed) == (1, 1)
    session = opened(NAME)
    assert words_of(session) == [*whole(3), "inserted"]
    events = [event.data for event in session.events() if event.type == "import.row"]
    assert [event["row"] for event in events if event.get("changed")] == [changed[0]]
    assert len(events) == 4
    again = bring("claude-code", write(FILE, changed))
    assert (again.new, again.new_rows, again.changed, again.problems) == (0, 0, 0, [])


def test_two_rows_with_one_id_are_both_kept(write: Write, bring: Bring, opened: Opened) -> None:
    path = write(FILE, [user("a", "one"), user("a", "one"), user("a", "other")])
    assert bring("claude-code", path).new == 2
    assert bring("claude-code", path).new == 0
    assert words_of(opened(NAME)) == ["one", "other"]


def test_a_session_of_somebody_else_is_not_mixed_with(write: Write, bring: Bring, home: str, opened: Opened) -> None:
    path = write("talk.jsonl", [{"role": "user", "content": "from a file"}])
    with daypack.open_session("talk", home=home) as session:
        session.append("user", "by hand")
    with pytest.raises(BadInput, match="holds other messages") as refused:
        bring("openai", path)
    assert "--session" in refused.value.hint
    assert bring("openai", path, "talk").new == 1
    assert words_of(opened("talk")) == ["by hand", "from a file"]


def test_without_ids_a_changed_file_is_left_alone(write: Write, bring: Bring, opened: Opened) -> None:
    rows = [{"role": "user", "content": f"{number}"} for number in range(5)]
    bring("openai", write("talk.jsonl", rows))
    rows[2]["content"] = "changed"
    path = write("talk.jsonl", rows)
    with pytest.raises(BadInput, match=r"changed since the last import .*line 5"):
        bring("openai", path)
    assert words_of(opened("talk")) == list("01234")
    assert bring("openai", path, "other").new == 5


def test_a_long_file_is_stored_in_groups_that_end_between_messages(
    write: Write, bring: Bring, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_transcript, "_BATCH_MESSAGES", 3)
    bring("claude-code", write(FILE, talk(20)))
    session = opened(NAME)
    assert words_of(session) == whole(20)
    lines = [event.data["lines"] for event in session.events() if event.type == "import.progress"]
    assert len(lines) > 5
    assert lines == sorted(lines)
    assert lines[-1] == 80


def test_a_group_does_not_end_within_a_message(
    write: Write, bring: Bring, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_transcript, "_BATCH_STEPS", 3)
    between = [row("progress", f"p{number}") for number in range(5)]
    bring("claude-code", write(FILE, [user("u", "ask"), said("a", "m", "one"), *between, said("b", "m", "two")]))
    assert words_of(opened(NAME)) == ["ask", "one\ntwo"]


def check_import(home: str, path: str) -> None:
    """Import again after a crash, and see that everything is there once."""
    import_file("claude-code", path, Destination(home))
    with daypack.open_session(NAME, home=home, durability="os") as session:
        assert words_of(session) == whole(4)
        assert kept_in(session) == [row("progress", f"p{turn}", data={"n": turn}) for turn in range(4)]
        assert [one for one in examine_session(session.history.layout) if one.severity == "damage"] == []


class Changes(Faults):
    """Counts only the calls that change something: between two of them a kill makes no difference."""

    def call(self, name: str, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if name not in ("write", "pwrite", "ftruncate", "replace", "link", "unlink", "mkdir"):
            return real(*args, **kwargs)
        return super().call(name, real, *args, **kwargs)


def leave(_facets: Facets, _seconds: float) -> None:
    """Leave updated_at as it is."""


def test_a_kill_at_any_write_leaves_nothing_out_and_nothing_twice(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, campaign: Campaign
) -> None:
    monkeypatch.setattr(import_transcript, "_BATCH_MESSAGES", 3)
    monkeypatch.setattr(Facets, "touch", leave)  # once a second: the calls of two runs would differ
    monkeypatch.setenv("DAYPACK_DURABILITY", "os")
    path, template = write(FILE, talk(4)), tmp_path / "template"
    daypack.open_session(NAME, home=template).close()
    shutil.copytree(template, tmp_path / "counting")
    calls = calls_of(lambda: import_file("claude-code", path, Destination(str(tmp_path / "counting"))), Changes())
    assert len(calls) > 20
    for at in campaign.calls("kills", calls):
        home = str(tmp_path / str(at))
        shutil.copytree(template, home)
        child = os.fork()
        if child == 0:
            with injected(Changes(at, "kill")):
                import_file("claude-code", path, Destination(home))
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        check_import(home, path)


def test_a_message_that_grew_after_a_crash_is_continued(write: Write, bring: Bring, opened: Opened) -> None:
    """The message is there, the progress is not: only what it lacks may be added."""
    rows = [user("u", "ask"), said("a", "m", "one"), said("b", "m", "two"), said("c", "m", "three")]
    for count in (2, 3, 4):
        bring("claude-code", write(FILE, rows[:count]))
        log = opened(NAME).path / "events.jsonl"
        log.write_bytes(log.read_bytes().split(b"\n")[0] + b"\n")
    assert words_of(opened(NAME)) == ["ask", "one", "two", "three"]


def test_an_imported_session_is_as_old_as_its_newest_message(write: Write, bring: Bring, opened: Opened) -> None:
    bring("claude-code", write(FILE, [{**line, "timestamp": "2026-03-01T10:00:00.000Z"} for line in talk(1)]))
    assert (opened(NAME).path / "updated_at").read_text() == "2026-03-01T10:00:00Z\n"
