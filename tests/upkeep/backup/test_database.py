"""Memories in a database: a backup is one moment of it, a restore is all of it or nothing."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from campaigns import Campaign
from postgres_server import drop_database, needs_postgres, new_database
from upkeep.backup.homes import UID, furnished, said

from daypack.errors import BadInput, Damaged
from daypack.history.layout import Home
from daypack.memory.store.port import EntryRange, NewDocument, NewEntry, NewMemory, Profile, Token
from daypack.memory.store.postgres.store import PostgresStore
from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope
from daypack.types.memory import About
from daypack.upkeep.backup.apply import apply as back_up
from daypack.upkeep.backup.contents import Request as BackupRequest
from daypack.upkeep.backup.database.copying import current_sum
from daypack.upkeep.backup.database.lines import TABLES
from daypack.upkeep.backup.plan import plan as plan_backup
from daypack.upkeep.backup.restore import apply as restore
from daypack.upkeep.backup.restore_plan import Request
from daypack.upkeep.backup.restore_plan import plan as plan_restore
from daypack.upkeep.backup.verify import verify

pytestmark = needs_postgres
_OPERATOR = Scope(role="daypack_operator")
_DERIVED = {  # from what is in a backup, or of one server alone
    *("tags", "jobs", "indexes", "postings", "words", "places", "conversations", "authors", "author_names"),
    *(
        "embeddings",
        "vectors",
        "small_vectors",
        "rates",
        "processes",
        "used_tokens",
        "migrations",
        "store",
        "audit_end",
    ),
}


@pytest.fixture
def other_url() -> Iterator[str]:
    """An empty database to restore to."""
    url = new_database()
    yield url
    drop_database(url)


def filled(url: str, users: int = 3) -> None:
    """Store users, tokens, memories, entries and documents with everything that a record can have."""
    store = PostgresStore(Database(url))
    for number in range(users):
        user = f"user{number}"
        store.accounts.put(user, Profile(name=f"Übung {number}", email="a@b", quotas={"entries": 10_000}))
        token = Token(
            token_id=f"t{number}", user=user, name="laptop", scope="read", created_at="2026-11-18T09:00:00.000Z"
        )
        store.accounts.put_token(token, bytes([number]) * 32)
        about = About(session="s", role="user", author="Ada\\", at="2026", tags=("tide", "é\\n"), source="m:1")
        entries = [NewEntry(raw=f"line {at}\0\n\\ {user}", summary=f"{at}", about=about) for at in range(40)]
        memory = store.load(user, NewMemory(title="Harbour"), (NewDocument("# One"), NewDocument("# Two")), entries)
        store.add(user, memory.memory_id, [NewEntry(raw="keyed", summary="keyed", client_key="k1")])
        gone = store.load(user, NewMemory(title="Hidden"), (NewDocument("x"),), ())
        store.delete(user, gone.memory_id)
    store.close()


def texts(url: str) -> dict[tuple[str, str], list[str]]:
    """Return what each user has in each memory."""
    store, found = PostgresStore(Database(url)), dict[tuple[str, str], list[str]]()
    for user in store.accounts.list():
        for memory in store.memories(user.user_id):
            page = store.page(user.user_id, memory.memory_id, EntryRange(limit=100_000))
            found[user.user_id, memory.memory_id] = [getattr(entry, "raw_entry", "damaged") for entry in page]
    store.close()
    return found


def rows(url: str, query: str) -> list[tuple[object, ...]]:
    database = Database(url)
    try:
        return database.run("test", lambda transaction: transaction.rows(query), _OPERATOR)
    finally:
        database.close()


def total(url: str) -> object:
    database = Database(url)
    try:
        return current_sum(database)
    finally:
        database.close()


@pytest.fixture
def place(tmp_path: Path) -> Home:
    """A home of its own, which is empty."""
    home = Home(str(tmp_path / "home"), UID)
    os.makedirs(home.folder)
    return home


def backed_up(place: Home, url: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("DAYPACK_STORE_URL", url)
    back_up(place, BackupRequest(), str(path))
    return str(path)


def test_every_column_of_every_table_that_is_not_derived_is_in_a_backup(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        query = (
            "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE nspname = 'daypack'"
        )
        names = connection.execute(f"{query} AND relkind IN ('r', 'p') AND NOT relispartition".encode()).fetchall()
    assert {str(name[0]) for name in names} - _DERIVED == set(TABLES)


def test_a_restored_database_has_the_records_and_an_id_of_its_own(
    database_url: str, other_url: str, place: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(database_url)
    path = backed_up(place, database_url, tmp_path / "b.tar", monkeypatch)
    verified = verify(path)
    assert (verified.memories, verified.entries, verified.findings) == (6, 123, ())
    monkeypatch.setenv("DAYPACK_STORE_URL", other_url)
    assert [item.state for item in plan_restore(place.root, path, Request()).items] == ["new"]
    assert restore(place.root, path, Request()).restored[0].tokens == 3
    assert total(other_url) == total(database_url)
    assert texts(other_url) == texts(database_url)
    for derived in ("SELECT tenant, memory, tag, seq FROM tags ORDER BY 1, 2, 3, 4", "SELECT id, number FROM memories"):
        assert sorted(rows(other_url, derived)) == sorted(rows(database_url, derived))
    assert rows(other_url, "SELECT count(DISTINCT (tenant, memory)) FROM jobs") == [(6,)]
    assert rows(other_url, "SELECT id, signing_key FROM store") != rows(
        database_url, "SELECT id, signing_key FROM store"
    )
    before = PostgresStore(Database(other_url))
    new = before.load("user0", NewMemory(title="New"), (NewDocument("x"),), ())  # its number is not taken
    assert before.memory("user0", new.memory_id).title == "New"
    before.close()


def test_a_record_of_control_characters_is_backed_up_and_restored(
    database_url: str, other_url: str, place: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As JSON each takes six bytes: the longest entry that a setting allows has a line of 96 MB."""
    store = PostgresStore(Database(database_url))
    entries = [NewEntry(raw="\x01" * 16_000_000, summary="long"), NewEntry(raw="after it", summary="short")]
    store.load("ada", NewMemory(title="Harbour"), (NewDocument("# One"),), entries)
    store.close()
    path = backed_up(place, database_url, tmp_path / "b.tar", monkeypatch)
    assert verify(path).findings == ()
    monkeypatch.setenv("DAYPACK_STORE_URL", other_url)
    assert restore(place.root, path, Request()).restored
    assert texts(other_url) == texts(database_url)


def test_a_restore_into_a_database_with_memories_is_refused_and_a_repeated_one_finds_nothing_to_do(
    database_url: str, other_url: str, place: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(database_url)
    path = backed_up(place, database_url, tmp_path / "b.tar", monkeypatch)
    assert [item.state for item in plan_restore(place.root, path, Request()).items] == ["same"]
    assert not restore(place.root, path, Request()).restored
    filled(other_url, users=1)
    former = total(other_url)
    monkeypatch.setenv("DAYPACK_STORE_URL", other_url)
    for request in (Request(), Request(replace=("database",))):
        with pytest.raises(BadInput) as refused:
            restore(place.root, path, request)
        assert "--store" in (refused.value.hint or "")
    assert total(other_url) == former
    monkeypatch.delenv("DAYPACK_STORE_URL")
    with pytest.raises(BadInput, match="none is named"):
        plan_restore(place.root, path, Request())


def test_a_backup_has_the_sessions_of_the_home_and_the_memories_of_the_database(
    database_url: str, other_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = furnished(str(tmp_path / "home"))
    filled(database_url, users=1)
    monkeypatch.setenv("DAYPACK_STORE_URL", database_url)
    names = [item.name for item in plan_backup(home, BackupRequest()).items]
    assert {"default/work", "memory", "database"} <= set(names)
    path = backed_up(home, database_url, tmp_path / "b.tar", monkeypatch)
    monkeypatch.setenv("DAYPACK_STORE_URL", other_url)
    fresh = str(tmp_path / "fresh")
    restore(fresh, path, Request())
    assert said(fresh)[0].startswith("Which ferry")
    assert total(other_url) == total(database_url)


def test_a_backup_while_others_write_is_one_moment(
    database_url: str, other_url: str, place: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(database_url, users=2)
    store = PostgresStore(Database(database_url))
    stop, added = threading.Event(), [0] * 4

    def write(number: int) -> None:
        user = f"user{number % 2}"
        memory = store.memories(user)[0].memory_id
        while not stop.is_set():
            at = added[number]
            # Two entries in one transaction: a snapshot has both or none.
            pair = [NewEntry(raw=f"{number}/{at}/{part}", summary="") for part in ("first", "second")]
            store.add(user, memory, pair)
            added[number] += 1

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    try:
        paths = [backed_up(place, database_url, tmp_path / f"{at}.tar", monkeypatch) for at in range(3)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        store.close()
    for path in paths:
        assert not verify(path).findings
    monkeypatch.setenv("DAYPACK_STORE_URL", other_url)
    restore(place.root, paths[-1], Request())
    found = texts(other_url)
    for number in range(4):
        mine = [text for (user, _), said in found.items() if user == f"user{number % 2}" for text in said]
        written = [text.split("/") for text in mine if text.startswith(f"{number}/")]
        firsts, seconds = ([int(at) for _, at, part in written if part == name] for name in ("first", "second"))
        assert sorted(firsts) == sorted(seconds) == list(range(len(firsts)))
    for user, entries, memories in rows(other_url, "SELECT tenant, entries, memories FROM users"):
        counted = rows(other_url, f"SELECT count(*) FROM entries WHERE tenant = '{user}'")
        assert counted == [(entries,)], memories


def test_a_flipped_bit_is_found(
    database_url: str, place: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, campaign: Campaign
) -> None:
    filled(database_url, users=1)
    data = Path(backed_up(place, database_url, tmp_path / "b.tar", monkeypatch)).read_bytes()
    damaged = tmp_path / "damaged.tar"
    step = max(1, len(data) // campaign.size("faults", 1_000, least=40))
    for at in range(campaign.seed % step, len(data), step):
        damaged.write_bytes(data[:at] + bytes([data[at] ^ (1 << (at + campaign.seed) % 8)]) + data[at + 1 :])
        with pytest.raises(Damaged):
            verify(str(damaged))


def test_a_record_that_was_damaged_in_the_database_is_reported_and_kept(
    database_url: str, place: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(database_url, users=1)
    with psycopg.connect(database_url) as connection:  # as a superuser, whom no role stops
        connection.execute("UPDATE daypack.entries SET raw = 'other'::bytea WHERE seq = 7")
        connection.execute(r"UPDATE daypack.entries SET author = '\xff'::bytea WHERE seq = 8")
    path = backed_up(place, database_url, tmp_path / "b.tar", monkeypatch)
    assert [found.severity for found in verify(path).findings] == ["damage", "damage"]


def test_a_restore_that_is_killed_at_any_step_leaves_all_or_nothing(
    database_url: str, place: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, campaign: Campaign
) -> None:
    filled(database_url)
    path = backed_up(place, database_url, tmp_path / "b.tar", monkeypatch)
    whole, kills = total(database_url), 0
    url = new_database()
    monkeypatch.setenv("DAYPACK_STORE_URL", url)
    statements = _statements(lambda: restore(place.root, path, Request()))
    drop_database(url)
    url = new_database()
    monkeypatch.setenv("DAYPACK_STORE_URL", url)
    for at in campaign.calls("kills", ["statement"] * statements):
        assert _killed(lambda: restore(place.root, path, Request()), at)
        state = [item.state for item in plan_restore(place.root, path, Request()).items]
        assert state in (["new"], ["same"])
        kills += 1
        if state == ["same"]:
            drop_database(url)
            url = new_database()
            monkeypatch.setenv("DAYPACK_STORE_URL", url)
    restore(place.root, path, Request())
    assert kills
    assert total(url) == whole
    drop_database(url)


class _Counter:
    """Counts the statements of this process, and kills it at one of them."""

    def __init__(self, kill_at: int = 0) -> None:
        self.count = 0
        self._kill_at = kill_at
        self.patch = pytest.MonkeyPatch()
        for kind, name in ((psycopg.Connection, "execute"), (psycopg.Cursor, "executemany")):
            self._wrap(kind, name)

    def _wrap(self, kind: type, name: str) -> None:
        original = getattr(kind, name)

        def counted(*args: object, **options: object) -> object:
            self.count += 1
            if self.count == self._kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*args, **options)

        self.patch.setattr(kind, name, counted)


def _statements(work: Callable[[], object]) -> int:
    counter = _Counter()
    try:
        work()
    finally:
        counter.patch.undo()
    return counter.count


def _killed(work: Callable[[], object], at: int) -> bool:
    child = os.fork()
    if child == 0:
        try:
            _Counter(at)
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
