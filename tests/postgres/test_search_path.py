"""No statement calls a function, or uses a table, of those who may create objects in the database."""

from collections.abc import Iterator
from pathlib import Path

import postgres_server
import psycopg
import pytest
from memory.many_workers.fifty_users import HashedWords, Person, Town
from memory.search.numbered import Entries, Numbered, make_vectors, number_memory
from memory.store.stores import ME, make
from postgres.hostile_functions import read_traps, set_traps
from upkeep.copy.copies import UID, fill

import daypack
from daypack.history.home import find_home
from daypack.memory.indexer import Indexer
from daypack.memory.search.postgres import vectors
from daypack.memory.search.postgres.loaded_rows import RowCache
from daypack.memory.search.postgres.partitions import drop_unused, promote, promote_due
from daypack.memory.search.postgres.vectors import PostgresVectors
from daypack.memory.store.examination import StoreProblem
from daypack.memory.store.postgres.examination import examine
from daypack.memory.store.postgres.jobs import Jobs
from daypack.memory.store.postgres.store import PostgresStore
from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope
from daypack.upkeep.backup.apply import apply as back_up
from daypack.upkeep.backup.contents import Request as BackupRequest
from daypack.upkeep.backup.restore import apply as restore
from daypack.upkeep.backup.restore_plan import Request as RestoreRequest
from daypack.upkeep.database import describe
from daypack.upkeep.erase.apply import apply as erase
from daypack.upkeep.erase.plan import Request as EraseRequest

pytestmark = postgres_server.needs_postgres
_MALLORY = "mallory"


def _run(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


@pytest.fixture
def trapped_url() -> Iterator[str]:
    """The address of a superuser and an empty database, in which another account has functions that fit better."""
    url = postgres_server.new_database(empty=True)
    set_traps(url, _MALLORY)
    yield url
    calls = read_traps(url, _MALLORY)
    postgres_server.drop_database(url)
    _run(postgres_server.running_server().url(), f"DROP ROLE {_MALLORY}")
    assert calls == ([], False)


def test_the_functions_are_called_where_the_path_leads_to_them() -> None:
    url = postgres_server.new_database(empty=True)
    assert set_traps(url, _MALLORY) > 500
    statements = "SELECT nextval('jobs')", "SELECT cardinality('{a}'::text[])", "SELECT '{a}'::text[] || 'b'::text"
    _run(url, *statements)
    assert read_traps(url, _MALLORY) == (["nextval", "cardinality", "joined"], True)
    postgres_server.drop_database(url)
    _run(postgres_server.running_server().url(), f"DROP ROLE {_MALLORY}")


def test_memories_call_no_function_of_others(trapped_url: str, tmp_path: Path) -> None:
    town = Town(trapped_url, tmp_path, 1, users=3)
    database, (first, second, third) = town.store.database, town.people
    assert Indexer(town.with_vectors).run() > 0
    town.check_people()
    for person in (first, second):
        assert promote(database, person.name, person.number, HashedWords.name.encode())
    town.check_people()
    _write(town, first)
    town.memories(second).erase_memory(second.memory_id)
    town.store.rewrite(lambda text: text.replace(third.secret, "[erased]"), None)
    assert drop_unused(database) == 2  # also the one from which an entry was erased
    Jobs(database).retry_dead()
    assert describe(database).dead_jobs == 0
    assert examine(database) == []
    town.close()


def _write(town: Town, person: Person) -> None:
    own = town.memories(person)
    own.put_context(person.memory_id, "# Vault")
    own.add_entry(person.memory_id, "The vault is open.")
    own.erase_entry(person.memory_id, person.entry_id)
    exported = list(own.export_memory(person.memory_id))
    own.delete_memory(person.memory_id)
    own.restore_memory(person.memory_id)
    assert own.import_memory(exported, title="Copy").memory_id != person.memory_id
    assert own.await_consistency(person.memory_id).status == "consistent"
    made = own.users.new_token(person.name)
    assert own.users.check_token(made.secret).user == person.name
    own.users.revoke(made.token.token_id)


def test_sessions_backup_and_restore_call_no_function_of_others(
    trapped_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for home in ("first", "second"):  # the other one opens what the first has stored
        with daypack.open_session("work", home=tmp_path / home, uid=UID, store=trapped_url, workspace="") as session:
            fill(session)
    monkeypatch.setenv("DAYPACK_STORE_URL", trapped_url)
    place, path = find_home(str(tmp_path / "first"), UID), str(tmp_path / "backup")
    erase(place, EraseRequest(literal="buoy 1", session="work"))
    assert back_up(place, BackupRequest(), path).verified.findings == ()
    _run(trapped_url, "DROP SCHEMA daypack CASCADE")
    restore(str(tmp_path / "third"), path, RestoreRequest())
    with daypack.open_session("work", home=tmp_path / "third", uid=UID, workspace="") as session:
        assert len(session.tail(100)) == 12


def test_temporary_tables_of_a_connection_are_not_ours(database_url: str) -> None:
    store = PostgresStore(Database(database_url, most=1))
    memory_id = make(store)
    store.database.run("test", lambda at: at.execute("CREATE TEMP TABLE memories(id text)").rowcount, Scope(ME))
    assert store.memory(ME, memory_id).memory_id == memory_id
    store.close()


@pytest.mark.parametrize("schema", ["public", "daypack", 'Odd "100%" name'])
def test_the_extension_is_used_in_whatever_schema_it_is(schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "LARGE", 500)
    url, quoted = postgres_server.new_database(empty=True), '"' + schema.replace('"', '""') + '"'
    if schema != "daypack":  # there we create it
        created = f"CREATE SCHEMA IF NOT EXISTS {quoted}", f"GRANT USAGE ON SCHEMA {quoted} TO PUBLIC"
        _run(url, *created, f"CREATE EXTENSION vector SCHEMA {quoted}")
    database = Database(url)
    store = PostgresVectors(database, ME, number_memory(database, ME, 1), Numbered(make_vectors(2_000, 32)), RowCache())
    assert store.catch_up(500, Entries(500), None) is None
    assert promote_due(database) == 1
    assert store.catch_up(600, Entries(600), None) is None
    found = store.search("1", 10, [1, 2, 3])
    assert found
    assert found.allowed
    assert len(found.ids) >= 10
    found_problems: list[StoreProblem] = [problem for problem in examine(database) if problem.remedy]
    assert found_problems == []
    with psycopg.connect(url) as connection:
        query = (
            "SELECT nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'vector'"
        )
        assert connection.execute(query).fetchall() == [(schema,)]
    database.close()
    postgres_server.drop_database(url)
