"""The import of what is new at known places: each file once, in any number of runs and processes."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest
from agents_home import OPENCODE_SESSION, RECORDED, AgentsHome, add_opencode_session, set_minute

import daypack
from daypack.errors import StorageFailed
from daypack.history.layout import Home
from daypack.importers.all_places.ledger import Ledger
from daypack.importers.all_places.new_files import Done, NewFiles, NoCapture, Taken
from daypack.importers.all_places.scan import PlacesScanner
from daypack.importers.import_file import Destination, import_file
from daypack.importers.import_transcript import ImportReport
from daypack.importers.places import PLACES
from daypack.memory.project import find_project

ID = "01a1ec69-6358-7c01-b518-b5b523a473a9"


class Recording(NoCapture):
    """Captures sessions of some places by writing down their names."""

    def __init__(self, places: Collection[str]) -> None:
        self._places = places
        self.captured: list[str] = []

    def wants(self, place: str) -> bool:
        return place in self._places

    def capture(self, place: str, report: ImportReport) -> int | None:
        self.captured.append(report.session)
        return 1


def find_new(place: Home, capture: Recording | None = None) -> NewFiles:
    found = PlacesScanner(list(PLACES), os.environ).scan()
    return NewFiles(place, found, Ledger(place), capture)


def take_in(place: Home, capture: Recording | None = None) -> list[Done]:
    done: list[Done] = []
    find_new(place, capture).take_in(done.append)
    return done


def texts(place: Home, agent: str, session: str) -> list[str]:
    with daypack.open_session(session, agent=agent, home=place.root, create=False) as opened:
        return [message.text for message in opened.messages()]


def delete(place: Home, agent: str, session: str) -> None:
    shutil.rmtree(place.session(agent, session).folder)


def test_all_places_are_imported_the_oldest_file_first(agents: AgentsHome, place: Home) -> None:
    set_minute(agents.claude("b", "Second?"), 2)
    set_minute(agents.codex(ID, "First?"), 1)
    set_minute(agents.claude("c", "Third?"), 3)
    assert [done.reports[0].session for done in take_in(place)] == [ID, "b", "c"]
    assert texts(place, "codex", ID) == ["First?"]


def test_a_second_run_reads_no_file(agents: AgentsHome, place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    agents.claude("a", "One?")
    take_in(place)
    monkeypatch.setattr("daypack.importers.import_file.read_file", None)
    assert find_new(place).files == []


def test_only_what_is_new_of_a_changed_file_is_added(agents: AgentsHome, place: Home) -> None:
    agents.claude("a", "One?", "Two.")
    take_in(place)
    agents.claude("a", "Three?", first=3)
    (done,) = take_in(place)
    assert done.messages == 1
    assert texts(place, "claude-code", "a") == ["One?", "Two.", "Three?"]


def test_a_file_that_fails_is_named_and_the_others_are_imported(agents: AgentsHome, place: Home) -> None:
    set_minute(agents.claude("a", "One?"), 1)
    broken = agents.folder / ".claude" / "projects" / "-work" / "broken.jsonl"
    broken.write_text("no transcript\n")
    set_minute(broken, 2)
    set_minute(agents.claude("z", "Last?"), 3)
    first, second, third = take_in(place)
    assert (first.failure, third.failure) == (None, None)
    assert second.failure
    assert (second.failure.path, second.sessions) == (str(broken), 0)
    assert "unknown format" in second.failure.problem
    assert take_in(place) == []  # until the file changes, or another version can read it


def test_what_could_not_be_read_is_tried_by_another_version(
    agents: AgentsHome, place: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents.claude("a", "One?").write_text("no transcript\n")
    take_in(place)
    monkeypatch.setattr(daypack, "__version__", "9.9.9")
    assert len(find_new(place).files) == 1


def test_an_error_that_may_pass_is_tried_again(
    agents: AgentsHome, place: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents.claude("a", "One?")

    def fail(*_: object) -> None:
        raise StorageFailed("disk full")

    with monkeypatch.context() as patch:
        patch.setattr("daypack.importers.import_file.take_in", fail)
        (done,) = take_in(place)
    assert done.failure
    assert done.failure.problem == "disk full"
    assert [done.messages for done in take_in(place)] == [1]


def test_a_compressed_rollout_is_imported_once_its_decoder_is_installed(
    agents: AgentsHome, place: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    from backports import zstd

    path = agents.codex(ID, "Packed?")
    Path(f"{path}.zst").write_bytes(zstd.compress(path.read_bytes()))
    path.unlink()
    with monkeypatch.context() as patch:
        for name in ("compression.zstd", "backports.zstd", "zstandard", "pyzstd"):
            patch.setitem(sys.modules, name, None)
        (done,) = take_in(place)
    assert done.failure
    assert "daypack[zstd]" in done.failure.hint
    assert [done.messages for done in take_in(place)] == [1]


class TestDeletedSessions:
    """A session that the user deleted does not come back."""

    def test_not_from_the_same_file(self, agents: AgentsHome, place: Home) -> None:
        agents.claude("a", "One?")
        take_in(place)
        delete(place, "claude-code", "a")
        assert take_in(place) == []

    def test_not_when_the_file_continues(self, agents: AgentsHome, place: Home) -> None:
        agents.claude("a", "One?")
        take_in(place)
        delete(place, "claude-code", "a")
        agents.claude("a", "Two?", first=3)
        (done,) = take_in(place)
        assert (list(done.reports), done.failure) == ([], None)
        assert place.list("claude-code") == []
        assert take_in(place) == []

    def test_not_when_the_file_is_compressed(self, agents: AgentsHome, place: Home) -> None:
        from backports import zstd

        path = agents.codex(ID, "One?")
        take_in(place)
        delete(place, "codex", ID)
        Path(f"{path}.zst").write_bytes(zstd.compress(path.read_bytes()))
        path.unlink()
        take_in(place)
        assert place.list("codex") == []

    def test_not_from_a_database_with_other_sessions(self, agents: AgentsHome, place: Home) -> None:
        database = agents.opencode()
        take_in(place)
        child = next(name for name in place.list("opencode") if name != OPENCODE_SESSION)
        delete(place, "opencode", OPENCODE_SESSION)
        delete(place, "opencode", child)
        add_opencode_session(database, "ses_new", "A new one?", cwd="/work/project")
        add_opencode_session(database, "ses_child", "Look.", cwd="/work/project", parent=OPENCODE_SESSION)
        (done,) = take_in(place)
        assert [report.session for report in done.reports] == ["ses_new"]
        assert place.list("opencode") == ["ses_new"]
        assert not done.is_left_out

    def test_not_when_its_words_would_be_captured(self, agents: AgentsHome, place: Home) -> None:
        agents.claude("a", "One?")
        agents.claude("b", "One?")
        take_in(place)
        delete(place, "claude-code", "a")
        capture = Recording({"claude"})
        take_in(place, capture)
        assert capture.captured == ["b"]
        assert place.list("claude-code") == ["b"]

    def test_but_when_the_user_names_the_file(self, agents: AgentsHome, place: Home) -> None:
        path = agents.claude("a", "One?")
        take_in(place)
        delete(place, "claude-code", "a")
        import_file(None, str(path), Destination(place.root, None))
        assert place.list("claude-code") == ["a"]


def test_sessions_that_were_imported_without_capture_are_captured_later_and_once(
    agents: AgentsHome, place: Home
) -> None:
    agents.claude("a", "One?")
    agents.codex(ID, "One?")
    take_in(place)
    capture = Recording({"claude"})
    assert [done.entries for done in take_in(place, capture)] == [1]
    assert capture.captured == ["a"]
    assert find_new(place, capture).files == []


def test_a_run_that_is_stopped_ends_after_the_present_file(agents: AgentsHome, place: Home) -> None:
    for number in range(3):
        set_minute(agents.claude(f"s{number}", "One?"), number)
    done: list[Done] = []
    find_new(place).take_in(done.append, is_stopped=lambda: bool(done))
    assert place.list("claude-code") == ["s0"]
    assert len(find_new(place).files) == 2


def test_two_runs_at_once_import_each_file_once_and_note_all_of_them(agents: AgentsHome, place: Home) -> None:
    for number in range(45):
        set_minute(agents.claude(f"s{number:02}", "One?", "Two."), number)
    program = [sys.executable, "-m", "daypack", "import", "--all", "--json", "--home", place.root]
    runs = [subprocess.Popen(program, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    answers = [json.loads(run.communicate(timeout=120)[0]) for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0]
    new = [row["imported"]["messages"] for answer in answers for row in answer["places"] if row["agent"] == "claude"]
    assert sum(new) == 90
    assert all(texts(place, "claude-code", f"s{number:02}") == ["One?", "Two."] for number in range(45))
    assert find_new(place).files == []


def test_a_run_that_is_killed_is_continued_without_loss(agents: AgentsHome, place: Home) -> None:
    for number in range(60):
        set_minute(agents.claude(f"s{number:02}", "One?", "Two."), number)
    program = [sys.executable, "-m", "daypack", "import", "--watch", "--json", "--home", place.root]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as run:
        assert run.stdout
        for _ in range(30):
            run.stdout.readline()
        run.kill()
    take_in(place)
    assert all(texts(place, "claude-code", f"s{number:02}") == ["One?", "Two."] for number in range(60))
    assert find_new(place).files == []


def test_a_file_without_messages_is_not_one_whose_session_was_deleted(agents: AgentsHome, place: Home) -> None:
    """Gemini CLI leaves such a file when it resumes a session."""
    path = agents.folder / ".gemini" / "tmp" / "app" / "chats" / "session-1-47e43d0b.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes((RECORDED / "gemini-resumed.jsonl").read_bytes())
    (done,) = take_in(place)
    assert (list(done.reports), done.is_left_out) == ([], False)
    assert Taken().plus(done).deleted == 0


class TestOneProject:
    """Only the sessions of one project, also of a database that has those of several."""

    def test_other_sessions_of_a_database_are_left_out_and_imported_later(
        self, agents: AgentsHome, place: Home, tmp_path: Path
    ) -> None:
        mine, other = tmp_path / "mine", tmp_path / "other"
        mine.mkdir()
        other.mkdir()
        database = agents.opencode()
        add_opencode_session(database, "ses_mine", "Mine?", cwd=str(mine))
        add_opencode_session(database, "ses_child", "Look.", cwd=str(mine), parent="ses_mine")
        add_opencode_session(database, "ses_other", "Other?", cwd=str(other))
        capture = Recording({"opencode"})
        new = find_new(place, capture)
        new.keep_project(find_project(str(mine)))
        taken = new.take_in(lambda _: None)
        assert place.list("opencode") == ["ses_mine", "ses_mine--ses_child"]
        assert capture.captured == ["ses_mine"]
        assert (taken["opencode"].sessions, taken["opencode"].deleted) == (1, 0)
        (done,) = take_in(place)
        assert sorted(report.session for report in done.reports if report.new and not report.parent) == [
            OPENCODE_SESSION,
            "ses_other",
        ]
        assert take_in(place) == []

    def test_a_database_without_a_session_of_it_is_not_read(
        self, agents: AgentsHome, place: Home, tmp_path: Path
    ) -> None:
        agents.opencode()
        new = find_new(place)
        new.keep_project(find_project(str(tmp_path)))
        assert new.files == []
