"""The ledger of imported files."""

import json
import os

import daypack
from daypack.history.layout import Home
from daypack.importers.all_places.ledger import Ledger
from daypack.importers.places import PlacedFile

FILE = PlacedFile("/a.jsonl", 7, 100)


def write(place: Home, text: str) -> None:
    os.makedirs(place.folder)
    with open(os.path.join(place.folder, "past.json"), "w", encoding="utf-8") as file:
        file.write(text)


def test_rows_of_earlier_versions_are_read(place: Home) -> None:
    write(place, f'{{"/a.jsonl":[7,100,""],"/b.jsonl":[7,100,"{daypack.__version__}"],"/c.jsonl":[7,100,"0.0.1"]}}')
    ledger = Ledger(place)
    assert ledger.is_done(FILE, capturing=True)
    assert ledger.is_done(FILE._replace(path="/b.jsonl"), capturing=True)
    assert not ledger.is_done(FILE._replace(path="/c.jsonl"), capturing=True)
    assert not ledger.is_done(FILE._replace(size=101), capturing=False)
    assert ledger.deleted() == frozenset()


def test_a_damaged_ledger_counts_as_empty(place: Home) -> None:
    for text in ("{", '{"/a.jsonl":[7]}', '{"/a.jsonl":"x"}', '["/a.jsonl"]', '{"/a.jsonl":[7,100,"\udc80"]}'):
        os.makedirs(place.folder, exist_ok=True)
        with open(os.path.join(place.folder, "past.json"), "wb") as file:
            file.write(text.encode("utf-8", "surrogateescape"))
        ledger = Ledger(place)
        assert not ledger.is_done(FILE, capturing=False)
        ledger.note(FILE, ["claude-code/a"], captured=False)
        ledger.save()
        assert Ledger(place).is_done(FILE, capturing=False)


def test_rows_of_several_processes_are_kept(place: Home) -> None:
    first, second = Ledger(place), Ledger(place)
    first.note(FILE, ["claude-code/a"], captured=True)
    second.note(FILE._replace(path="/b.jsonl"), ["claude-code/b"], captured=False)
    first.save()
    second.save()
    assert second.is_done(FILE, capturing=True)  # it took in what the other wrote
    ledger = Ledger(place)
    assert ledger.deleted() == {"claude-code/a", "claude-code/b"}
    assert not ledger.is_done(FILE._replace(path="/b.jsonl"), capturing=True)


def test_sessions_of_one_database_that_several_processes_took_in_are_kept(place: Home) -> None:
    first, second = Ledger(place), Ledger(place)
    first.note_sessions("/opencode.db", ["opencode/a"])
    second.note_sessions("/opencode.db", ["opencode/b"])
    first.save()
    assert second.deleted() == {"opencode/a", "opencode/b"}
    second.save()
    assert Ledger(place).sessions("/opencode.db") == ("opencode/a", "opencode/b")


def test_a_ledger_of_named_files_leaves_nothing(place: Home) -> None:
    ledger = Ledger(place, stored=False)
    ledger.note(FILE, [], captured=False)
    ledger.save()
    assert ledger.is_done(FILE, capturing=False)
    assert not os.path.exists(place.folder)


def test_rows_that_name_no_session_are_ignored(place: Home) -> None:
    names = ["../../etc/passwd", "../x", "", "/", "a", "claude-code/gone", "#memory/../x"]
    write(place, json.dumps({"/a.jsonl": [7, 100, "", names, True]}))
    assert {name for name in Ledger(place).deleted() if "." in name or not name.strip("/")} == set()
    assert "claude-code/gone" in Ledger(place).deleted()
