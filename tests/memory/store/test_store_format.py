"""A store of an earlier format is upgraded in place, whole or not at all."""

import os
import sqlite3
from pathlib import Path

import pytest
from campaigns import Campaign
from memory.store.format_1 import MEMORY, write_store

from daypack.memory.store import checksums, store_format
from daypack.memory.store.port import NewEntry, split_damaged
from daypack.memory.store.sqlite import SqliteStore
from daypack.types.memory import About, Where

ME = "local"


def test_records_of_an_earlier_format_get_their_checksums_when_the_store_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "memory" / "store.sqlite"
    write_store(path, 5)
    store = SqliteStore(str(path))
    entries, damaged = split_damaged(store.after(ME, MEMORY, 0, 10))
    assert [entry.raw_entry for entry in entries] == [f"old entry {seq}" for seq in range(1, 6)]
    assert damaged == []
    assert store.document(ME, MEMORY).content == "the old document"
    assert store.accounts.tokens(ME)[0].scope == "read"
    assert store.accounts.damaged() == store.damaged(ME) == ()
    again = NewEntry(
        raw="old entry 3",
        summary="old entry 3",
        client_key="key 3",
        about=About(session="s", role="user", author="Ada", tags=("t1", "t2")),
    )
    assert store.add(ME, MEMORY, (again,))[0].replayed
    assert store.find(ME, MEMORY, Where(tags=("t2",))) == {1, 2, 3, 4, 5}
    store.close()
    with sqlite3.connect(path) as file:
        assert file.execute("PRAGMA user_version").fetchone() == (2,)
        assert file.execute("SELECT client_key FROM entries WHERE seq = 2").fetchone() == ("key 2",)


def test_an_upgrade_does_not_make_damaged_text_valid(tmp_path: Path) -> None:
    path = tmp_path / "memory" / "store.sqlite"
    write_store(path, 5, damaged=2)
    entries, damaged = split_damaged(SqliteStore(str(path)).after(ME, MEMORY, 0, 10))
    assert [entry.seq for entry in entries] == [1, 3, 4, 5]
    assert [(record.kind, record.seq) for record in damaged] == [("entry", 2)]


def test_a_killed_upgrade_starts_again_and_loses_nothing(
    tmp_path: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = 10 + 1 + 1 + 1 + 1  # checksums of entries, the document, the user, the memory and the token
    for at in campaign.calls("kills", ["checksum"] * steps):
        path = tmp_path / str(at) / "store.sqlite"
        write_store(path, 10)
        real, left = checksums.checksum, [at]

        def checksum(record: object, real: object = real, left: list[int] = left) -> int:
            left[0] -= 1
            if not left[0]:
                os._exit(9)
            return real(record)  # type: ignore[operator]

        child = os.fork()
        if child == 0:
            monkeypatch.setattr(store_format, "checksum", checksum)
            SqliteStore(str(path)).memories(ME)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        with sqlite3.connect(path) as file:
            assert file.execute("PRAGMA user_version").fetchone() == (1,)
        store = SqliteStore(str(path))
        assert len(split_damaged(store.after(ME, MEMORY, 0, 99))[0]) == 10
        store.close()
