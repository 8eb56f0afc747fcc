"""The table of known places."""

import json
import os
import sqlite3
from pathlib import Path
from typing import get_args

import pytest

from daypack.hooks.call import HostName
from daypack.importers.formats import FORMATS
from daypack.importers.places import PLACES, Folder, Place, find_file
from daypack.importers.stores.systems import SYSTEMS


def test_every_agent_with_hooks_has_a_place() -> None:
    assert set(get_args(HostName)) <= set(PLACES)


@pytest.mark.parametrize("name", [name for name, place in PLACES.items() if place.kind == "transcripts"])
def test_the_transcripts_of_a_place_have_a_known_format(name: str) -> None:
    assert PLACES[name].format in FORMATS


@pytest.mark.parametrize("name", [name for name, place in PLACES.items() if place.kind == "memory"])
def test_the_memories_of_a_place_have_a_reader(name: str) -> None:
    assert PLACES[name].format in SYSTEMS


def test_a_variable_names_the_folder_instead_of_the_default(tmp_path: Path) -> None:
    folder = Folder("XDG_DATA_HOME", ".local/share/opencode", "opencode")
    assert folder.find({"HOME": str(tmp_path)}) == f"{tmp_path}/.local/share/opencode"
    assert folder.find({"HOME": str(tmp_path), "XDG_DATA_HOME": "/data"}) == "/data/opencode"


def test_files_are_found_once_and_empty_ones_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a[1]").mkdir()
    for name, text in (("one.jsonl", "x"), ("two.jsonl", ""), ("three.txt", "x")):
        (tmp_path / "a[1]" / name).write_text(text)
    place = Place("A", "a", "claude-code", Folder("A", "a[1]"), ("*.jsonl", "one*"))
    found = list(place.find_files({"HOME": str(tmp_path)}))
    assert [os.path.basename(file.path) for file in found] == ["one.jsonl"]


def test_files_elsewhere_than_the_settings_are_found_in_each_data_folder(tmp_path: Path) -> None:
    for name in ("settings", "old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "session.json").write_text("{}")
    data = (Folder("", "old"), Folder("", "new"))
    place = Place("A", "a", "claude-code", Folder("A", "settings"), ("*.json",), data)
    found = list(place.find_files({"HOME": str(tmp_path)}))
    assert [file.path for file in found] == [f"{tmp_path}/old/session.json", f"{tmp_path}/new/session.json"]


def test_a_database_changes_with_its_write_ahead_log(tmp_path: Path) -> None:
    path = str(tmp_path / "sessions.db")
    database = sqlite3.connect(path)
    database.execute("pragma journal_mode=wal")
    database.execute("create table message (text)")
    database.commit()
    database.execute("pragma wal_checkpoint(truncate)")
    before, file_before = find_file(path), os.stat(path)
    database.execute("insert into message values ('hello')")
    database.commit()
    file_after = os.stat(path)
    assert (file_after.st_size, file_after.st_mtime_ns) == (file_before.st_size, file_before.st_mtime_ns)
    assert find_file(path) != before
    database.close()


def test_what_is_no_plain_file_is_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "folder.db").mkdir()
    os.mkfifo(folder / "pipe.db")
    (folder / "loop.db").symlink_to(folder / "loop.db")
    (folder / "device.db").symlink_to("/dev/zero")
    (folder / "file.db").write_text("x")
    place = Place("A", "a", "claude-code", Folder("", "a"), ("*.db", "folder.db"))
    assert [file.path for file in place.find_files({"HOME": str(tmp_path)})] == [f"{folder}/file.db"]


def test_folders_at_any_depth_are_found_without_hidden_ones_and_links(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    for name in ("top.md", "a/b/c/d/deep.md", ".git/hidden.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    (folder / "a" / "loop").symlink_to(folder)
    place = Place("A", "a", "basic-memory", Folder("", "notes"), ("**/*.md",))
    found = [os.path.relpath(file.path, folder) for file in place.find_files({"HOME": str(tmp_path)})]
    assert found == ["top.md", "a/b/c/d/deep.md"]


@pytest.mark.parametrize(
    ("variables", "expected"),
    [({}, "home/.qwen"), ({"QWEN_HOME": "q"}, "q"), ({"QWEN_HOME": "q", "QWEN_RUNTIME_DIR": "r"}, "r")],
)
def test_the_chats_of_qwen_are_in_the_folder_of_its_run_time_data(
    tmp_path: Path, variables: dict[str, str], expected: str
) -> None:
    for folder in ("home/.qwen", "q", "r"):
        chat = tmp_path / folder / "projects" / "p" / "chats" / "1.jsonl"
        chat.parent.mkdir(parents=True)
        chat.write_text("{}")
    environ = {"HOME": str(tmp_path / "home"), **{name: str(tmp_path / value) for name, value in variables.items()}}
    (file,) = PLACES["qwen"].find_files(environ)
    assert file.path.startswith(f"{tmp_path / expected}/projects")


@pytest.mark.parametrize("settings", [b"", b"[", b"[1]", b'{"projects": 1}', b'{"projects": {"a": "/\\u0000"}}'])
def test_settings_of_a_program_that_cannot_be_read_name_no_folder(tmp_path: Path, settings: bytes) -> None:
    (tmp_path / ".basic-memory").mkdir()
    (tmp_path / ".basic-memory" / "config.json").write_bytes(settings)
    (tmp_path / ".claude-mem").mkdir()
    (tmp_path / ".claude-mem" / "settings.json").write_bytes(settings)
    environ = {"HOME": str(tmp_path)}
    assert [list(PLACES[name].find_files(environ)) for name in ("basic-memory", "claude-mem")] == [[], []]


def test_the_settings_of_claude_mem_name_its_folder_unless_a_variable_does(tmp_path: Path) -> None:
    for folder in ("data", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "claude-mem.db").write_text("x")
    (tmp_path / ".claude-mem").mkdir()
    settings = tmp_path / ".claude-mem" / "settings.json"
    settings.write_text(json.dumps({"CLAUDE_MEM_DATA_DIR": "~/data"}))
    environ = {"HOME": str(tmp_path)}
    assert [file.path for file in PLACES["claude-mem"].find_files(environ)] == [f"{tmp_path}/data/claude-mem.db"]
    environ["CLAUDE_MEM_DATA_DIR"] = f"{tmp_path}/other"
    assert [file.path for file in PLACES["claude-mem"].find_files(environ)] == [f"{tmp_path}/other/claude-mem.db"]
