"""The table of known places."""

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
