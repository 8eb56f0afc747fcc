"""A commit whose answer is lost: the write finds out what became of it. Nothing is doubled, nothing is lost."""

from collections.abc import Iterator

import postgres_server
import psycopg
import pytest
from campaigns import Campaign
from memory.store.postgres_proxy import Cut, Proxy, proxied
from memory.store.stores import ME, everything, fill, make, new_entry, usage

from daypack.errors import EntryMissing, MemoryMissing
from daypack.memory.store.port import EntryRange, NewDocument, NewMemory, Profile, Token
from daypack.memory.store.postgres.store import PostgresStore
from daypack.postgres.database import Database
from daypack.types.memory import Where

pytestmark = postgres_server.needs_postgres
CUTS: tuple[Cut, ...] = ("before", "after", "meanwhile")


@pytest.fixture
def proxy(database_url: str) -> Iterator[Proxy]:
    with proxied(database_url) as proxy:
        yield proxy


@pytest.fixture
def store(proxy: Proxy) -> Iterator[PostgresStore]:
    store = PostgresStore(Database(proxy.url, most=1))
    yield store
    store.close()


def test_entries_are_stored_once_whatever_became_of_the_commit(
    store: PostgresStore, proxy: Proxy, database_url: str, campaign: Campaign
) -> None:
    memory = make(store)
    expected: list[tuple[str, str]] = []
    with psycopg.connect(database_url, autocommit=True) as connection:
        writes = campaign.size("faults", 300)
        for number in range(writes):
            cut = CUTS[number % 3]
            before = _count(connection)
            proxy.arm(cut)
            raws = [f"{number}.{part}" for part in range(1 + number % 3)]
            key = {"client_key": str(number)} if number % 2 else {}
            stored = store.add(ME, memory, [new_entry(raws[0], **key), *map(new_entry, raws[1:])])
            assert _count(connection) == before + len(raws), cut
            assert not any(entry.replayed for entry in stored)
            expected += [(entry.entry_id, raw) for entry, raw in zip(stored, raws, strict=True)]
        assert proxy.cuts == writes
        jobs = connection.execute("SELECT count(*), max(goal) FROM daypack.jobs").fetchone()
    assert jobs == (writes + 1, len(expected))  # each write made one, also that of the memory
    read = everything(store, memory)
    assert [(entry.entry_id, entry.raw_entry) for entry in read] == expected
    assert [entry.seq for entry in read] == list(range(1, len(expected) + 1))
    assert usage(store).entries == len(expected)
    assert store.memory(ME, memory).stats.entries == len(expected)


def _count(connection: "psycopg.Connection[tuple[int]]") -> int:
    row = connection.execute("SELECT count(*) FROM daypack.entries").fetchone()
    assert row
    return row[0]


@pytest.mark.parametrize("cut", CUTS)
def test_other_writes_happen_once_too(store: PostgresStore, proxy: Proxy, cut: Cut) -> None:
    new = NewMemory(title="t", memory_id="a" * 32)
    archived = new_entry("archived", entry_id="b" * 24 + "00000001")
    proxy.arm(cut)
    memory = store.load(ME, new, (NewDocument("one"),), (archived, new_entry("new"))).memory_id
    assert [entry.raw_entry for entry in everything(store, memory)] == ["archived", "new"]
    proxy.arm(cut)
    assert store.load(ME, new, (), (archived, new_entry("more"))).stats.entries == 3
    assert [entry.raw_entry for entry in everything(store, memory)] == ["archived", "new", "more"]
    proxy.arm(cut)
    assert store.load("other", new, (NewDocument("one"),), ()).memory_id != memory  # the id is taken
    assert len(store.memories("other")) == 1
    proxy.arm(cut)
    assert store.put_document(ME, memory, "two").version == 2
    assert [one.version for one in store.documents(ME, memory, 0, 9)] == [1, 2]
    proxy.arm(cut)
    store.delete(ME, memory)
    with pytest.raises(MemoryMissing):
        store.memory(ME, memory)
    proxy.arm(cut)
    store.restore(ME, memory)
    (first, *_) = everything(store, memory)
    proxy.arm(cut)
    store.erase_entry(ME, memory, first.entry_id)
    with pytest.raises(EntryMissing):
        store.seq_of(ME, memory, first.entry_id)
    proxy.arm(cut)
    assert store.rewrite(lambda text: text.replace("more", "less"), None)[0].entries == 1
    assert [entry.raw_entry for entry in everything(store, memory)] == ["new", "less"]
    proxy.arm(cut)
    assert store.accounts.put(ME, Profile(quotas={"entries": 5})).quotas.entries == 5
    token = Token(token_id="a", user=ME, name="laptop", scope="read", created_at="2025-01-01T00:00:00.000Z")
    proxy.arm(cut)
    store.accounts.put_token(token, b"1" * 32)
    assert store.accounts.find_token(b"1" * 32) == token
    proxy.arm(cut)
    assert store.accounts.drop_token("a")
    proxy.arm(cut)
    store.erase(ME, memory)
    assert store.memories(ME, deleted=None) == ()
    assert (usage(store).memories, usage(store).entries, usage(store).bytes) == (0, 0, 0)
    assert proxy.cuts == 12


def test_a_write_waits_for_the_server_twice_and_a_read_once(store: PostgresStore, proxy: Proxy) -> None:
    memory = make(store)
    (entry,) = fill(store, memory, "one")

    def trips(call: object) -> int:
        before = proxy.trips
        assert callable(call)
        call()
        return proxy.trips - before

    assert trips(lambda: store.add(ME, memory, (new_entry("a"),))) == 2
    assert trips(lambda: store.add(ME, memory, [new_entry(str(n), tags=("t",)) for n in range(10)])) == 2
    assert trips(lambda: store.add(ME, memory, [new_entry("b", client_key=key) for key in ("k", "l")])) == 2
    assert trips(lambda: store.put_document(ME, memory, "two")) == 2
    reads = {
        "memory": lambda: store.memory(ME, memory),
        "memories": lambda: store.memories(ME),
        "find_key": lambda: store.find_key(ME, memory, "k"),
        "seq_of": lambda: store.seq_of(ME, memory, entry),
        "page": lambda: store.page(ME, memory, EntryRange(limit=3)),
        "after": lambda: store.after(ME, memory, 0, 3),
        "pick": lambda: store.pick(ME, memory, [1, 2]),
        "find": lambda: store.find(ME, memory, Where(tags=("t",))),
        "document": lambda: store.document(ME, memory),
        "documents": lambda: store.documents(ME, memory, 0, 9),
        "newest": lambda: store.newest(ME, memory),
        "user": lambda: store.accounts.find(ME),
        "token": lambda: store.accounts.find_token(b"1" * 32),
    }
    assert {name: trips(read) for name, read in reads.items()} == dict.fromkeys(reads, 1)
