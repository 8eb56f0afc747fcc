"""Memories keep their ids, numbers, times and client keys between a file and a database."""

from postgres_server import needs_postgres

import daypack
from daypack.history.layout import Home
from daypack.memory.store.port import EntryRange, NewDocument, NewEntry, NewMemory, Profile, Store
from daypack.memory.store.postgres.store import PostgresStore
from daypack.memory.store.sqlite import SqliteStore
from daypack.postgres.database import Database
from daypack.types.memory import About
from daypack.upkeep.copy.apply import apply
from daypack.upkeep.copy.plan import Request, plan

pytestmark = needs_postgres
UID = "ada"


def request(source: str, target: str) -> Request:
    return Request(source=source, target=target, uid=UID, sessions=False)


def filled(store: Store, entries: int = 1200) -> str:
    """Store a user with quotas and a memory with documents, an erased entry and client keys; return its id."""
    store.accounts.put("local", Profile(name="Ada", email="a@b", quotas={"entries": 10_000}))
    about = About(session="s", role="user", author="Ada\\", at="2026", tags=("tide", "é\\n"), source="m:1")
    new = [NewEntry(raw=f"line {at}\0\n\\", summary=f"{at}", about=about) for at in range(entries)]
    memory = store.load(
        "local", NewMemory(title="Harbour", description="d"), (NewDocument("# 1"), NewDocument("#")), new
    )
    store.add("local", memory.memory_id, [NewEntry(raw="keyed", summary="keyed", client_key="k1")])
    page = store.page("local", memory.memory_id, EntryRange(limit=10))
    store.erase_entry("local", memory.memory_id, page[5].entry_id)  # type: ignore[union-attr]
    hidden = store.load("local", NewMemory(title="Hidden"), (NewDocument("x"),), ())
    store.delete("local", hidden.memory_id)
    return memory.memory_id


def contents(store: Store, memory_id: str) -> list[object]:
    user = store.accounts.find("local")
    assert user is not None
    return [
        (user.name, user.email, user.quotas.entries),
        store.memory("local", memory_id),
        store.documents("local", memory_id, 0, 100),
        store.page("local", memory_id, EntryRange(limit=100_000)),
        store.find_key("local", memory_id, "k1"),
    ]


def test_memories_are_the_same_in_a_file_a_database_and_a_file_again(home: str, database_url: str) -> None:
    file = SqliteStore(Home(home, UID).store)
    memory_id = filled(file)
    expected = contents(file, memory_id)
    planned = plan(request(home, database_url))
    assert [(found.state, found.entries, found.documents) for found in planned.memories] == [("new", 1200, 2)]
    assert planned.deleted_memories == 1
    copied = apply(request(home, database_url), planned.id)
    assert copied.memories[0].entries == 1200
    database = PostgresStore(Database(database_url))
    assert contents(database, memory_id) == expected
    other = f"{home}-2"
    again = apply(request(database_url, other))
    assert again.memories[0].digest == copied.memories[0].digest
    assert contents(SqliteStore(Home(other, UID).store), memory_id) == expected
    assert plan(request(home, database_url)).is_empty
    database.close()


def test_a_memory_continues_and_one_that_differs_is_refused(home: str, database_url: str) -> None:
    file = SqliteStore(Home(home, UID).store)
    memory_id = filled(file, 20)
    apply(request(home, database_url))
    file.add("local", memory_id, [NewEntry(raw="later", summary="later")])
    assert [found.state for found in plan(request(home, database_url)).memories] == ["continued"]
    apply(request(home, database_url))
    database = PostgresStore(Database(database_url))
    assert contents(database, memory_id) == contents(file, memory_id)
    database.add("local", memory_id, [NewEntry(raw="only there", summary="only there")])
    assert [found.state for found in plan(request(home, database_url)).memories] == ["newer"]
    file.add("local", memory_id, [NewEntry(raw="only here", summary="only here")])
    assert [found.state for found in plan(request(home, database_url)).memories] == ["conflict"]
    before = contents(database, memory_id)
    [problem] = apply(request(home, database_url)).conflicts
    assert memory_id in problem
    assert contents(database, memory_id) == before
    database.close()


def test_a_home_without_memories_creates_no_store(home: str, database_url: str) -> None:
    daypack.open_session("work", home=home, uid=UID, durability="os").close()
    assert apply(request(home, database_url)).memories == ()
    assert not SqliteStore(Home(home, UID).store).accounts.list()
