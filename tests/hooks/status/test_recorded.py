"""What the ends of a session's files say, without opening the session."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from memory.project.repositories import git, new_repository
from msgspec.structs import replace

import daypack
from daypack.history.draft import draft_event
from daypack.history.home import find_home
from daypack.history.layout import Home, Layout
from daypack.hooks.status.recorded import (
    LINE_BYTES,
    find_recorded,
    newest_of,
    read_recorded,
    read_usage,
)
from daypack.hooks.status.status import Cache, LastCompaction, Window
from daypack.memory.project import find_project
from daypack.session import Session


@pytest.fixture
def place(home: str) -> Home:
    return find_home(home)


def note(session: Session, kind: str, **data: Any) -> None:
    session.history.append_event(draft_event(kind, data))


def start(home: str, name: str, agent: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    """Record a message of a session in a folder; each session is newer than those before it."""
    monkeypatch.chdir(folder)
    with daypack.open_session(name, agent=agent, home=home, durability="os") as session:
        session.append("user", "hello")
        layout = session.history.layout
    count = sum(1 for _ in Path(home).rglob("messages.jsonl"))
    os.utime(layout.messages, (1_000_000 + count, 1_000_000 + count))
    return layout


def test_messages_are_counted_and_dated_by_the_last_whole_line(session: Session) -> None:
    layout = session.history.layout
    assert read_recorded(layout).messages == 0
    for text in ("one", "two", "x" * 300_000):
        session.append("user", text)
    newest = session.messages()[-1]
    with Path(layout.messages).open("ab") as log:
        log.write(b'{"seq":4,"id":"msg-4","ts"')  # a write that is not complete
    recorded = read_recorded(layout)
    assert (recorded.agent, recorded.name, recorded.messages, recorded.at) == ("default", "work", 3, newest.ts)


def test_a_hand_written_line_counts_as_unknown(session: Session) -> None:
    session.append("user", "one")
    Path(session.history.layout.messages).write_text('{"role":"user","content":"two"}\n', encoding="utf-8")
    assert read_recorded(session.history.layout).messages == 0


def test_the_window_and_cache_of_a_turn_are_those_of_its_reply(session: Session) -> None:
    session.append("user", "hello")
    session.prepare(budget=8000)
    assert read_usage(session.history.layout, LINE_BYTES).window == Window(session.prepare(budget=8000).tokens, 8000)
    usage = {"prompt_tokens": 5000, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4000}}
    session.accept({"role": "assistant", "content": "hi", "usage": usage})
    found = read_usage(session.history.layout, LINE_BYTES)
    assert (found.window, found.cache) == (Window(5000, 8000), Cache(hit_share=0.8))
    assert found.compaction is None


def test_codex_states_its_window_in_rows_of_its_transcript(session: Session) -> None:
    info = {"last_token_usage": {"input_tokens": 8000, "cached_input_tokens": 2000}, "model_context_window": 258_400}
    note(session, "import.row", format="codex", row={"payload": {"type": "token_count", "info": info}})
    found = read_usage(session.history.layout, LINE_BYTES)
    assert (found.window, found.cache) == (Window(8000, 258_400), Cache(hit_share=0.25))


def test_a_compaction_of_claude_code_is_found_and_earlier_usage_is_not_shown(session: Session) -> None:
    note(session, "context.usage", message="msg-1", input_tokens=150_000, cached_tokens=100_000)
    stated = {"trigger": "auto", "preTokens": 150_000, "postTokens": 6_000}
    note(session, "import.row", row={"type": "system", "subtype": "compact_boundary", "compactMetadata": stated})
    Path(session.history.layout.derived("recap")).write_text('{"lost": 58, "kept": [57, 58], "title": "Fix it"}')
    found = read_usage(session.history.layout, LINE_BYTES)
    assert found.window == Window(6_000)
    assert found.cache is None
    assert found.compaction
    assert found.compaction._replace(at="") == LastCompaction("", "auto", 56, 58, 150_000, 6_000)
    assert found.compaction.at == list(session.events())[-1].ts
    assert read_recorded(session.history.layout).title == "Fix it"


def test_a_compaction_of_an_imported_session_says_which_messages_left(session: Session) -> None:
    note(session, "import.compacted", through=58, kept=[55, 56], trigger="manual", before_tokens=9000, after_tokens=900)
    note(session, "context.usage", message="msg-60", input_tokens=2_000)
    found = read_usage(session.history.layout, LINE_BYTES)
    assert found.window == Window(2_000)
    assert found.compaction
    assert found.compaction._replace(at="") == LastCompaction("", "manual", 56, 58, 9000, 900)


@pytest.mark.parametrize("event_first", [True, False])
def test_the_event_of_a_compaction_says_more_than_its_row(session: Session, *, event_first: bool) -> None:
    at = "2026-11-18T00:48:38.929Z"
    row = {"type": "system", "subtype": "compact_boundary", "compactMetadata": {"preTokens": 9, "postTokens": 1}}
    events = [
        replace(draft_event("import.compacted", {"through": 58, "kept": [58]}), ts=at),
        replace(draft_event("import.row", {"row": row}), ts=at),
    ]
    note(session, "import.compacted", through=20, kept=[])
    for event in events if event_first else reversed(events):
        session.history.append_event(event)
    found = read_usage(session.history.layout, LINE_BYTES).compaction
    assert found
    assert (found.left, found.through, found.at) == (57, 58, at)


def test_what_has_the_time_of_a_compaction_and_precedes_it_is_of_another_window(session: Session) -> None:
    at = "2026-11-18T00:48:38.929Z"
    for kind, data in (
        ("context.compaction.completed", {"through": 10, "after_tokens": 10}),
        ("context.usage", {"input_tokens": 150_000}),
        ("context.compaction.completed", {"through": 20, "after_tokens": 900}),
    ):
        session.history.append_event(replace(draft_event(kind, data), ts=at))
    found = read_usage(session.history.layout, LINE_BYTES)
    assert found.window == Window(900)
    assert found.compaction
    assert found.compaction.through == 20


def test_a_compaction_that_was_undone_does_not_count(session: Session) -> None:
    note(session, "context.compaction.completed", through=10, before_tokens=100, after_tokens=10)
    note(session, "context.compaction.completed", through=20, before_tokens=200, after_tokens=20)
    note(session, "context.compaction.undone", compaction="ev-2")
    found = read_usage(session.history.layout, LINE_BYTES).compaction
    assert found
    assert found.through == 10


def test_only_the_newest_bytes_are_looked_through_and_the_recap_knows_the_rest(session: Session) -> None:
    note(session, "import.compacted", through=58, before_tokens=9000, after_tokens=900)
    for _ in range(20):
        note(session, "import.row", row={"text": "x" * 1000})
    layout = session.history.layout
    assert read_usage(layout, LINE_BYTES).compaction
    assert read_usage(layout, 10_000).compaction is None
    Path(layout.derived("recap")).write_text('{"lost": 58}')
    assert read_usage(layout, 10_000).compaction == LastCompaction(left=58, through=58)


@pytest.mark.parametrize("size", [1, 5, 65_535, 65_536, 65_537, 200_000])
def test_lines_of_any_length_are_read_from_the_end(session: Session, size: int) -> None:
    note(session, "context.usage", input_tokens=7_000, padding="x" * size)
    note(session, "later", padding="x" * size)
    assert read_usage(session.history.layout, 1 << 20).window == Window(7_000)


@pytest.mark.parametrize("text", ["", "\n\n", "{", '{"type":"context.usage"}\n', '["context.usage"]\n', "\x00" * 99])
def test_damaged_files_say_nothing(session: Session, text: str) -> None:
    session.append("user", "hello")
    layout = session.history.layout
    for path in (layout.events, layout.messages, layout.derived("recap")):
        Path(path).write_text(text, encoding="utf-8")
    assert read_usage(layout, LINE_BYTES) == (None, None, None)
    assert read_recorded(layout).messages == 0


# Which session


def test_the_newest_session_of_the_project_is_found_over_all_agents(
    home: str, place: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, other = new_repository(tmp_path / "app"), new_repository(tmp_path / "other")
    git(app, "worktree", "add", "--quiet", str(tmp_path / "feature"))
    start(home, "first", "claude-code", app, monkeypatch)
    expected = start(home, "second", "codex", tmp_path / "feature", monkeypatch)
    start(home, "third", "claude-code", other, monkeypatch)
    start(home, "second--agent-1", "codex", app, monkeypatch)  # of a sub-agent
    found = newest_of(place, find_project(str(app)))
    assert found
    assert found.folder == expected.folder
    assert newest_of(place, find_project(str(tmp_path))) is None


def test_a_session_in_a_folder_with_wrong_settings_is_passed_over(
    home: str, place: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, wrong = new_repository(tmp_path / "app"), new_repository(tmp_path / "wrong")
    expected = start(home, "first", "codex", app, monkeypatch)
    start(home, "second", "codex", wrong, monkeypatch)
    (wrong / ".daypack.toml").write_text("memory = 3")
    found = newest_of(place, find_project(str(app)))
    assert found
    assert found.folder == expected.folder


def test_the_session_that_a_host_names_is_found_under_any_agent(
    home: str, place: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = start(home, "5ac2", "copilot", tmp_path, monkeypatch)
    found = find_recorded(place, "5ac2")
    assert found
    assert found.folder == layout.folder
    assert find_recorded(place, "5ac3") is None


def test_reading_writes_nothing(session: Session, home: str) -> None:
    session.append("user", "hello")
    before = {path: path.stat().st_mtime_ns for path in Path(home).rglob("*")}
    read_usage(session.history.layout, LINE_BYTES)
    read_recorded(session.history.layout)
    newest_of(find_home(home), find_project(os.getcwd()))
    assert {path: path.stat().st_mtime_ns for path in Path(home).rglob("*")} == before
    assert json.loads(Path(session.history.layout.meta).read_bytes())["session"] == "work"
