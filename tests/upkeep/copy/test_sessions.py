"""Sessions are copied byte for byte between files and a database, whatever is in them, and never overwritten."""

import os
from pathlib import Path

import pytest
from memory.store.postgres_proxy import proxied
from postgres_server import needs_postgres
from upkeep.copy.copies import UID, bytes_of_database, bytes_of_folder, damage, fill, furnished, rows_of

import daypack
from daypack.errors import BadInput
from daypack.history.layout import Home
from daypack.history.logs.upstream import Mark
from daypack.history.postgres import rewriting, stored
from daypack.history.postgres.store import close_databases, open_store
from daypack.upkeep.copy import sessions
from daypack.upkeep.copy.apply import apply
from daypack.upkeep.copy.folder import FolderSession
from daypack.upkeep.copy.plan import Request, plan

pytestmark = needs_postgres


def request(source: str, target: str, **more: object) -> Request:
    return Request(source=source, target=target, uid=UID, memories=False, **more)  # type: ignore[arg-type]


@pytest.fixture
def other(tmp_path: Path) -> str:
    """The root of another home."""
    return str(tmp_path / "other")


def test_a_session_is_the_same_in_files_a_database_and_files_again(home: str, other: str, database_url: str) -> None:
    furnished(home)
    expected = bytes_of_folder(home)
    copied = apply(request(home, database_url))
    assert [session.session for session in copied.sessions] == ["work"]
    assert bytes_of_database(database_url) == expected
    apply(request(database_url, other))
    assert bytes_of_folder(other) == expected
    assert bytes_of_folder(home) == expected


def test_a_copied_session_goes_on_in_both_places(home: str, other: str, database_url: str) -> None:
    furnished(home)
    with daypack.open_session("work", home=home, uid=UID, store="") as session:
        session.set_state("done")
        session.set_budget(9000)
        pins, count = session.pins, len(session.tail(10_000))
    apply(request(home, database_url))
    with daypack.open_session("work", home=other, uid=UID, store=database_url, create=False) as session:
        assert len(session.tail(10_000)) == count
        assert session.pins == pins
        assert session.history.facets.state() == "done"
        session.append("user", "And at high tide?")
        session.prepare(budget=8000)
    third = f"{other}-files"
    apply(request(database_url, third))
    with daypack.open_session("work", home=third, uid=UID, store="", create=False) as session:
        assert len(session.tail(10_000)) == count + 1
        assert session.pins == pins
        assert session.history.facets.state() == "done"
        assert session.tail(1)[0].text == "And at high tide?"
        session.append("user", "Thank you.")


def test_damaged_lines_and_blobs_are_copied_as_they_are(home: str, other: str, database_url: str) -> None:
    furnished(home)
    damage(home)
    expected = bytes_of_folder(home)
    apply(request(home, database_url))
    assert bytes_of_database(database_url) == expected
    apply(request(database_url, other))
    assert bytes_of_folder(other) == expected


def test_a_torn_tail_is_not_copied_and_is_reported(home: str, database_url: str) -> None:
    furnished(home)
    expected = bytes_of_folder(home)
    with open(Home(home, UID).session("default", "work").messages, "ab") as log:
        log.write(b'{"seq":8,"id":"ms')
    planned = plan(request(home, database_url))
    assert planned.sessions[0].torn == 17
    assert apply(request(home, database_url)).sessions[0].torn == 17
    assert bytes_of_database(database_url) == expected


def test_a_copy_continues_where_an_earlier_one_ended(home: str, other: str, database_url: str) -> None:
    furnished(home)
    apply(request(home, database_url))
    with daypack.open_session("work", home=home, uid=UID, store="") as session:
        fill(session, 2)
    planned = plan(request(home, database_url))
    assert planned.sessions[0].state == "continued"
    apply(request(home, database_url), planned.id)
    assert bytes_of_database(database_url) == bytes_of_folder(home)
    assert plan(request(home, database_url)).sessions[0].state == "same"
    assert plan(request(home, database_url)).is_empty


def test_a_target_that_went_on_is_left_as_it_is(home: str, other: str, database_url: str) -> None:
    furnished(home)
    apply(request(home, database_url))
    with daypack.open_session("work", home=other, uid=UID, store=database_url) as session:
        session.append("user", "And now?")
    before = bytes_of_database(database_url)
    planned = plan(request(home, database_url))
    assert planned.sessions[0].state == "newer"
    assert apply(request(home, database_url)).sessions == ()
    assert bytes_of_database(database_url) == before


def test_another_session_of_the_same_name_is_refused_and_named(home: str, other: str, database_url: str) -> None:
    furnished(home)
    furnished(other, store=database_url)
    before = bytes_of_database(database_url)
    [problem] = apply(request(home, database_url)).conflicts
    assert problem.startswith("default/work: another session of this name")
    assert bytes_of_database(database_url) == before
    assert len(apply(request(database_url, home)).conflicts) == 1


def test_both_sides_that_went_on_are_refused(home: str, other: str, database_url: str) -> None:
    furnished(home)
    apply(request(home, database_url))
    for root, store in ((home, ""), (other, database_url)):
        with daypack.open_session("work", home=root, uid=UID, store=store) as session:
            session.append("user", f"Only in {root}.")
    assert plan(request(home, database_url)).sessions[0].state == "conflict"


def test_rows_are_bounded_and_end_with_a_line(home: str, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    furnished(home)
    with daypack.open_session("work", home=home, uid=UID, store="") as session:
        session.append("user", "a line that is longer than a row " * 100)
        session.append_many([{"role": "user", "content": f"together {number}"} for number in range(20)])
    monkeypatch.setattr(sessions, "MAX_ROW_BYTES", 700)
    monkeypatch.setattr(rewriting, "MAX_FETCHED_BYTES", 1000)
    apply(request(home, database_url))
    rows = rows_of(database_url)
    for log in (0, 1):
        found = list(rows.read(rows.known().generation, log))
        assert len(found) > 3
        assert all(row.data.endswith(b"\n") for row in found)
        assert all(len(row.data) <= 700 or row.data.count(b"\n") == 1 for row in found)
        assert Mark(found[-1].stop, found[-1].crc) == rows.known().ends[log]
    assert bytes_of_database(database_url) == bytes_of_folder(home)
    with daypack.open_session("work", home=f"{home}-2", uid=UID, store=database_url, create=False) as session:
        assert session.tail(1)[0].text == "together 19"


def test_a_write_of_many_lines_in_several_rows_is_read_whole(
    home: str, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnished(home, turns=1)
    with daypack.open_session("work", home=home, uid=UID, store="") as session:
        session.append_many([{"role": "user", "content": f"together {number}"} for number in range(20)])
    monkeypatch.setattr(sessions, "MAX_ROW_BYTES", 400)
    monkeypatch.setattr(stored, "MAX_FETCHED_BYTES", 500)  # a cache gets a part of the write at a time
    apply(request(home, database_url))
    with daypack.open_session("work", home=f"{home}-2", uid=UID, store=database_url, create=False) as session:
        assert [message.text for message in session.tail(20)] == [f"together {number}" for number in range(20)]


@pytest.mark.filterwarnings("ignore::daypack.errors.DamageWarning")
def test_a_damaged_session_can_be_used_in_the_database(home: str, database_url: str) -> None:
    furnished(home)
    damage(home)
    apply(request(home, database_url))
    with daypack.open_session("work", home=f"{home}-2", uid=UID, store=database_url, create=False) as session:
        assert any(message.text == "by hand" for message in session.tail(100))
        session.append("user", "It goes on.")
        assert session.tail(1)[0].text == "It goes on."


def test_sessions_are_copied_between_two_folders(home: str, other: str) -> None:
    furnished(home)
    apply(request(home, other))
    assert bytes_of_folder(other) == bytes_of_folder(home)


def test_only_the_named_session_is_copied(home: str, database_url: str) -> None:
    for name in ("one", "two"):
        furnished(home, name, turns=1)
    apply(request(home, database_url, session=("default", "two")))
    assert [found.session for found in plan(request(database_url, f"{home}-2")).sessions] == ["two"]
    with pytest.raises(BadInput, match="no session default/three"):
        plan(request(home, database_url, session=("default", "three")))


def test_a_copy_to_itself_and_a_missing_home_are_refused(home: str, database_url: str) -> None:
    os.makedirs(Home(home, UID).folder)
    with pytest.raises(BadInput, match="the same"):
        plan(request(home, f"{home}/../home"))
    with pytest.raises(BadInput, match="the same"):
        plan(request(database_url, database_url))
    with pytest.raises(BadInput, match="no such home"):
        plan(request(f"{home}-missing", database_url))


def test_servers_whose_addresses_differ_only_in_parameters_are_two(home: str, database_url: str) -> None:
    furnished(home)
    apply(request(home, database_url))
    with proxied(database_url) as proxy:
        assert proxy.url.partition("?")[0] == database_url.partition("?")[0]
        assert open_store(proxy.url, UID).cache_name != open_store(database_url, UID).cache_name
        assert plan(request(database_url, proxy.url)).is_empty
        close_databases()


def test_what_a_source_gets_meanwhile_is_reported(
    home: str, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnished(home)
    real = FolderSession.blob_names

    def grow(source: FolderSession) -> list[str]:
        with daypack.open_session("work", home=home, uid=UID, store="") as session:
            session.append("user", "While it is copied.")
        return real(source)

    monkeypatch.setattr(FolderSession, "blob_names", grow)
    assert apply(request(home, database_url)).grew[0].grew > 0
    monkeypatch.undo()
    assert plan(request(home, database_url)).sessions[0].state == "continued"
    apply(request(home, database_url))
    assert bytes_of_database(database_url) == bytes_of_folder(home)


def test_blobs_that_a_source_gets_while_it_is_copied_are_left_to_the_next_copy(
    home: str, other: str, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnished(home)
    real = FolderSession.append

    def append(target: FolderSession, log: int, place: Mark, data: bytes, crc: int) -> None:
        with daypack.open_session("work", home=f"{home}-2", uid=UID, store=database_url) as session:
            session.pin("tide.md", f"A text after byte {place.end} of log {log}. " * 300)
        real(target, log, place, data, crc)

    apply(request(home, database_url))
    monkeypatch.setattr(FolderSession, "append", append)
    (copied,) = apply(request(database_url, other)).sessions
    assert copied.blobs == len(os.listdir(Home(other, UID).session("default", "work").blob))
    assert copied.grew > 0
    monkeypatch.undo()
    apply(request(database_url, other))
    assert bytes_of_folder(other) == bytes_of_database(database_url)
