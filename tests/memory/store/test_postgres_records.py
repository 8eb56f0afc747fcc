"""The records of a PostgreSQL store: exact bytes, damage, several processes, positions, jobs and what is erased."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import postgres_server
import psycopg
import pytest
from campaigns import Campaign
from memory.store.stores import ME, OTHER, TEXTS, everything, fill, make, new_entry, usage

from daypack.errors import BadInput, Damaged, MemoryMissing, WriteFailed
from daypack.memory.search.postgres.words import ENTRIES, WordPlace
from daypack.memory.store.port import NewDocument, NewMemory, Profile, Token, split_damaged
from daypack.memory.store.postgres.store import PostgresStore
from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope, Transaction
from daypack.types.memory import Where
from tools.postgres import Server

pytestmark = postgres_server.needs_postgres
SECRET = "the-launch-code-is-xyzzy-4711"


@pytest.fixture
def store(database_url: str) -> Iterator[PostgresStore]:
    store = PostgresStore(Database(database_url))
    yield store
    store.close()


def raw(url: str, statement: str) -> list[tuple[object, ...]]:
    """Run a statement as the superuser, behind the store's back."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET search_path = daypack")
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def containing(url: str, text: str) -> list[str]:
    """Return the tables that have a text in any column, as text or as bytes."""
    tables = raw(url, "SELECT relname FROM pg_class WHERE relnamespace = 'daypack'::regnamespace AND relkind = 'r'")
    wanted = f"(t::text LIKE '%{text}%' OR t::text LIKE '%{text.encode().hex()}%')"
    return [str(name) for (name,) in tables if raw(url, f"SELECT 1 FROM {name} t WHERE {wanted} LIMIT 1")]


def test_raw_is_stored_as_its_exact_bytes_and_a_summary_only_when_it_differs(
    store: PostgresStore, database_url: str
) -> None:
    memory = make(store)
    store.add(ME, memory, [new_entry(text, text) for text in TEXTS] + [new_entry("one", "two")])
    rows = raw(database_url, "SELECT raw, summary FROM entries ORDER BY seq")
    assert rows == [*((text.encode(), None) for text in TEXTS), (b"one", b"two")]


def test_rows_that_were_changed_behind_the_store_are_damage(store: PostgresStore, database_url: str) -> None:
    memory, other = make(store), make(store)
    fill(store, memory, "good", SECRET, "also good")
    store.add(ME, memory, (new_entry("keyed", client_key="k"),))
    store.put_document(ME, memory, SECRET)
    store.accounts.put(OTHER, Profile(name="Jo"))
    store.accounts.put_token(Token(token_id="a", user=ME, name="", scope="read", created_at="2025"), b"1" * 32)
    raw(database_url, "UPDATE entries SET raw = raw || '!' WHERE seq = 2")
    raw(database_url, "UPDATE entries SET author = '\\xff' WHERE seq = 4")
    raw(database_url, "UPDATE documents SET content = '\\xff' WHERE version = 2")
    raw(database_url, f"UPDATE memories SET title = 'other' WHERE id = '{other}'")
    raw(database_url, "UPDATE users SET email = 'x' WHERE tenant = 'other'")
    raw(database_url, "UPDATE tokens SET scope = 'write'")
    entries, damaged = split_damaged(store.after(ME, memory, 0, 9))
    assert [entry.raw_entry for entry in entries] == ["good", "also good"]
    assert [(record.kind, record.seq, record.problem) for record in damaged] == [
        ("entry", 2, "checksum mismatch"),
        ("entry", 4, "checksum mismatch"),
    ]
    for call in (
        lambda: store.find_key(ME, memory, "k"),
        lambda: store.add(ME, memory, (new_entry("keyed", client_key="k"),)),
        lambda: store.document(ME, memory, 2),
        lambda: store.memory(ME, other),
        lambda: store.add(ME, other, (new_entry("new"),)),
        lambda: store.delete(ME, other),
        lambda: store.accounts.find(OTHER),
        lambda: store.accounts.put(OTHER, Profile(name="Zoë")),
        lambda: store.accounts.find_token(b"1" * 32),
    ):
        with pytest.raises(Damaged, match="checksum mismatch"):
            call()
    document = store.document(ME, memory)
    assert (document.version, [record.version for record in document.damaged]) == (1, [2])
    assert [one.memory_id for one in store.memories(ME)] == [memory]
    assert [record.id for record in store.damaged(ME)] == [other]
    assert [user.user_id for user in store.accounts.list()] == [ME]
    assert store.accounts.tokens() == ()
    assert {(record.kind, record.id) for record in store.accounts.damaged()} == {("user", OTHER), ("token", "a")}
    store.erase(ME, other)  # what is damaged can still be erased
    assert store.damaged(ME) == ()


def test_processes_add_entries_and_all_are_there(store: PostgresStore, database_url: str, campaign: Campaign) -> None:
    each = campaign.size("concurrent writes", 500)
    memory = make(store)
    code = (
        "import sys\n"
        "from daypack.memory.store.postgres.store import PostgresStore\n"
        "from daypack.memory.store.port import NewEntry\n"
        "from daypack.postgres.database import Database\n"
        "store = PostgresStore(Database(sys.argv[1]))\n"
        "for number in range(int(sys.argv[4])):\n"
        f"    store.add({ME!r}, sys.argv[2], (NewEntry(raw=f'{{sys.argv[3]}} {{number}}', summary='s'),))\n"
        "store.close()\n"
    )
    command = [sys.executable, "-c", code, database_url, memory]
    children = [subprocess.Popen([*command, str(writer), str(each)]) for writer in range(2)]
    assert [child.wait(timeout=300) for child in children] == [0, 0]
    read = everything(store, memory)
    assert [entry.seq for entry in read] == list(range(1, 2 * each + 1))
    for writer in range(2):
        mine = [entry.raw_entry for entry in read if entry.raw_entry.startswith(f"{writer} ")]
        assert mine == [f"{writer} {number}" for number in range(each)]
    assert usage(store).entries == 2 * each


def test_writes_of_all_kinds_at_once_do_not_wait_for_each_other_forever(store: PostgresStore) -> None:
    memories = [make(store) for _ in range(2)]
    problems: list[Exception] = []

    def work(writer: int) -> None:
        memory = memories[writer % 2]
        try:
            for number in range(8):
                (entry,) = fill(store, memory, f"{writer} {number}")
                store.put_document(ME, memory, "next")
                store.accounts.put(ME, Profile(name=f"{number}"))
                if writer == 0 and not number % 4:
                    store.erase_entry(ME, memory, entry)
                    make(store)
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(writer,)) for writer in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert usage(store).entries == 46
    assert [len(everything(store, memory)) for memory in memories] == [22, 24]


def test_writes_do_not_wait_for_those_who_index_the_memory_but_an_erasure_does(
    store: PostgresStore, database_url: str
) -> None:
    memory = make(store)
    (entry, _) = fill(store, memory, "one", "two")
    erasing = threading.Thread(target=lambda: store.erase_entry(ME, memory, entry))
    indexing = Database(database_url)

    def work(transaction: Transaction) -> None:
        WordPlace(indexing, ME, memory, ENTRIES).lock(transaction, "index")
        limited = PostgresStore(Database(f"{database_url}&options=-c%20lock_timeout%3D10s"))  # else it would not end
        fill(limited, memory, "three")
        limited.put_document(ME, memory, "two")
        limited.load(ME, NewMemory(title="t", memory_id=memory), (), (new_entry("four"),))
        limited.delete(ME, memory)
        limited.restore(ME, memory)
        limited.close()
        erasing.start()
        waiting = "SELECT 1 FROM pg_locks WHERE NOT granted"
        while not raw(database_url, waiting):
            assert erasing.is_alive()

    indexing.run("index", work, Scope(ME))
    erasing.join()
    indexing.close()
    assert [entry.raw_entry for entry in everything(store, memory)] == ["two", "three", "four"]


def test_every_write_makes_a_job_and_leaves_the_position_of_its_commit(store: PostgresStore, database_url: str) -> None:
    positions: list[int] = [store.last_position]
    memory = make(store)
    positions.append(store.last_position)
    fill(store, memory, "one", "two")
    positions.append(store.last_position)
    store.put_document(ME, memory, "two")
    positions.append(store.last_position)
    assert positions[0] == 0
    assert positions == sorted(set(positions))
    assert positions[-1] <= store.database.wal_position()
    assert raw(database_url, "SELECT tenant, goal, documents FROM jobs ORDER BY id") == [
        (ME, 0, 1),
        (ME, 2, 1),
        (ME, 2, 2),
    ]
    elsewhere: list[int] = []
    thread = threading.Thread(target=lambda: elsewhere.append(store.last_position))
    thread.start()
    thread.join()
    assert elsewhere == [0]


def test_a_default_that_forbids_writes_is_only_a_default(store: PostgresStore, database_url: str) -> None:
    name = database_url.partition("?")[0].rpartition("/")[2]
    raw(database_url, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    store.close()
    store.check()
    assert make(store)


def test_a_server_that_takes_no_writes_is_noticed(tmp_path: Path) -> None:
    with Server.start(tmp_path / "primary") as server:
        PostgresStore(Database(server.url())).check()
        with server.replica(tmp_path / "standby") as replica, pytest.raises(WriteFailed, match="is a replica"):
            PostgresStore(Database(replica.url())).check()


def test_stores_of_one_database_have_the_same_id_and_key(store: PostgresStore, database_url: str) -> None:
    other = PostgresStore(Database(database_url))
    assert (other.store_id, other.signing_key) == (store.store_id, store.signing_key)
    assert len(store.signing_key) == 32
    other.close()


@pytest.mark.parametrize("user", ["", "a\0b", "\ud800", "'; DROP TABLE entries; --"])
def test_what_is_no_user_has_nothing(store: PostgresStore, user: str) -> None:
    memory = make(store)
    assert store.accounts.find(user) is None
    assert store.accounts.tokens(user) == ()
    assert store.memories(user) == ()
    with pytest.raises(MemoryMissing):
        store.memory(user, memory)
    with pytest.raises(MemoryMissing):
        store.add(user, memory, (new_entry("theirs"),))


@pytest.mark.parametrize("user", ["", "a\0b", "\ud800"])
def test_what_can_be_no_user_is_refused(store: PostgresStore, user: str) -> None:
    token = Token(token_id="a", user=user, name="", scope="read", created_at="2025")
    for call in (
        lambda: store.load(user, NewMemory(title="t"), (), ()),
        lambda: store.accounts.put(user, Profile(name="Jo")),
        lambda: store.accounts.put_token(token, b"1" * 32),
    ):
        with pytest.raises(BadInput, match="cannot be the name of a user"):
            call()
    assert store.accounts.list() == ()
    assert store.accounts.tokens() == ()


def test_what_can_be_no_id_of_a_token_is_refused(store: PostgresStore) -> None:
    token = Token(token_id="a\0b", user=ME, name="", scope="read", created_at="2025")
    with pytest.raises(BadInput, match="cannot be stored"):
        store.accounts.put_token(token, b"1" * 32)
    assert not store.accounts.drop_token("a\0b")


def test_no_table_takes_rows_of_nobody(store: PostgresStore, database_url: str) -> None:
    store.check()
    tables = raw(
        database_url,
        "SELECT attrelid::regclass::text FROM pg_attribute JOIN pg_class c ON c.oid = attrelid WHERE attname = 'tenant'"
        " AND relkind IN ('r', 'p') AND NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = attrelid"
        " AND pg_get_constraintdef(oid) LIKE 'CHECK ((tenant <> %')",
    )
    assert tables == []


def secret_memory(store: PostgresStore) -> str:
    """Return a memory that has the secret in every field that is erased from."""
    new = NewMemory(title=SECRET, description=SECRET)
    memory = store.load(ME, new, (NewDocument(SECRET), NewDocument(f"{SECRET} again")), ()).memory_id
    about = {"author": SECRET, "session": SECRET, "source": SECRET, "at": SECRET, "role": SECRET, "tags": (SECRET,)}
    for number in range(5):
        one = new_entry(f"{SECRET} {number} " * 20, SECRET + "!", client_key=f"{SECRET} {number}", **about)
        store.add(ME, memory, (one, new_entry(f"kept {number}")))
    return memory


def test_nothing_of_an_erased_memory_is_left_in_any_table(store: PostgresStore, database_url: str) -> None:
    kept, gone = make(store), secret_memory(store)
    fill(store, kept, "kept")
    assert set(containing(database_url, SECRET)) > {"memories"}
    store.erase(ME, gone)
    assert containing(database_url, SECRET) == []
    assert [entry.raw_entry for entry in everything(store, kept)] == ["kept"]
    assert raw(database_url, "SELECT memories, entries FROM users") == [(1, 1)]
    numbers = raw(database_url, "SELECT DISTINCT memory FROM jobs")
    assert numbers == raw(database_url, "SELECT number FROM memories")


def test_erased_texts_are_rewritten_everywhere_and_stay_verified(store: PostgresStore, database_url: str) -> None:
    memory, kept = secret_memory(store), make(store, OTHER)
    theirs = store.load(OTHER, NewMemory(title="theirs"), (NewDocument("d"),), (new_entry(f"so {SECRET}"),)).memory_id
    before = everything(store, memory)

    def change(text: str) -> str:
        return text.replace(SECRET, "[erased]")

    expected = {(memory, 5, 2), (theirs, 1, 0)}
    assert {
        (one.memory_id, one.entries, one.documents) for one in store.rewrite(change, None, dry_run=True)
    } == expected
    assert everything(store, memory) == before
    done = store.rewrite(change, None)
    assert {(one.memory_id, one.entries, one.documents) for one in done} == expected
    assert containing(database_url, SECRET) == []
    after = everything(store, memory)
    assert [(entry.entry_id, entry.seq) for entry in after] == [(entry.entry_id, entry.seq) for entry in before]
    assert after[0].raw_entry.startswith("[erased] 0")
    assert store.find(ME, memory, Where(tags=("[erased]",))) == {1, 3, 5, 7, 9}
    assert store.find_key(ME, memory, "[erased] 3") == after[6]
    assert store.memory(ME, memory).title == "[erased]"
    assert store.document(ME, memory).content == "[erased] again"
    assert store.rewrite(change, None) == []
    assert store.memory(OTHER, kept).title == "Launch"
    counted = raw(database_url, "SELECT sum(bytes) FROM memories WHERE tenant = 'me'")
    assert [(usage(store).bytes,)] == counted
    size = sum(len(entry.raw_entry) + _words(entry) for entry in after) + len("[erased]" * 2 + " again")
    assert usage(store).bytes == size


def _words(entry: object) -> int:
    names = ("session", "role", "author", "at", "source")
    texts = [getattr(entry, name) or "" for name in names] + [*getattr(entry, "tags")]  # noqa: B009
    summary = getattr(entry, "summary")  # noqa: B009
    return len("".join(texts)) + (len(summary) if summary != getattr(entry, "raw_entry") else 0)  # noqa: B009


def test_client_keys_that_become_the_same_leave_one(store: PostgresStore) -> None:
    memory = make(store)
    store.add(ME, memory, [new_entry(f"{key}", client_key=f"{key}!") for key in ("a", "b", "c")])
    done = store.rewrite(lambda text: text.replace("a!", "b!").replace("c!", "b!"), {memory})
    assert [(one.entries, one.fields) for one in done] == [(2, 2)]
    found = store.find_key(ME, memory, "b!")
    assert found is not None
    assert found.raw_entry == "b"
    assert [entry.raw_entry for entry in everything(store, memory)] == ["a", "b", "c"]
