"""Ownership in a store: memories of users are separate, hidden when deleted, erased and counted."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from memory.store.stores import ME, OTHER, everything, fill, make, new_entry, seqs, usage

from daypack.errors import DaypackError, EntryMissing, MemoryMissing, QuotaExceeded
from daypack.memory.store.port import EntryRange, NewDocument, Newest, NewMemory, Profile, Store, Token
from daypack.types.memory import Usage, Where


def operations(store: Store, memory: str, entry: str) -> dict[str, Callable[[str], Any]]:
    """Every way to reach a memory, for a user."""
    return {
        "memory": lambda user: store.memory(user, memory),
        "delete": lambda user: store.delete(user, memory),
        "restore": lambda user: store.restore(user, memory),
        "erase": lambda user: store.erase(user, memory),
        "add": lambda user: store.add(user, memory, (new_entry("theirs"),)),
        "find_key": lambda user: store.find_key(user, memory, "k"),
        "seq_of": lambda user: store.seq_of(user, memory, entry),
        "page": lambda user: store.page(user, memory, EntryRange(limit=1)),
        "after": lambda user: store.after(user, memory, 0, 1),
        "pick": lambda user: store.pick(user, memory, [1]),
        "find": lambda user: store.find(user, memory, Where()),
        "erase_entry": lambda user: store.erase_entry(user, memory, entry),
        "put_document": lambda user: store.put_document(user, memory, "theirs"),
        "document": lambda user: store.document(user, memory),
        "documents": lambda user: store.documents(user, memory, 0, 1),
        "newest": lambda user: store.newest(user, memory),
    }


def told(call: Callable[[], Any]) -> tuple[type, str]:
    try:
        call()
    except DaypackError as error:
        return type(error), str(error)
    return type(None), ""


class Owners:
    """Nobody reaches what is another's, and cannot tell it from what is not there."""

    def test_no_operation_reaches_another_users_memory(self, store: Store) -> None:
        make(store, OTHER)
        memory = make(store)
        (entry,) = fill(store, memory, "mine")
        before = store.memory(ME, memory), everything(store, memory), usage(store)
        theirs = {name: told(lambda call=call: call(OTHER)) for name, call in operations(store, memory, entry).items()}
        nobody = {
            name: told(lambda call=call: call("nobody")) for name, call in operations(store, memory, entry).items()
        }
        store.erase(ME, make(store))
        assert (store.memory(ME, memory), everything(store, memory), usage(store)) == before
        store.erase(ME, memory)
        gone = {name: told(lambda call=call: call(OTHER)) for name, call in operations(store, memory, entry).items()}
        assert {kind for kind, _ in theirs.values()} == {MemoryMissing}
        assert theirs == nobody == gone

    @pytest.mark.parametrize("memory", ["", "x", "0" * 32, "' OR '1'='1", "../../etc", "\ud800", "ü" * 32])
    def test_what_is_no_id_is_no_memory(self, store: Store, memory: str) -> None:
        make(store)
        with pytest.raises(MemoryMissing):
            store.memory(ME, memory)
        with pytest.raises(MemoryMissing):
            store.add(ME, memory, (new_entry("a"),))

    def test_each_user_sees_only_what_is_theirs(self, store: Store) -> None:
        mine, theirs = make(store), make(store, OTHER)
        assert [one.memory_id for one in store.memories(ME)] == [mine]
        assert [one.memory_id for one in store.memories(OTHER)] == [theirs]
        assert store.memories("nobody") == ()


class Deletion:
    """Deleted is hidden until it is restored, erased is gone."""

    def test_a_deleted_memory_is_hidden_everywhere_and_comes_back(self, store: Store) -> None:
        memory = make(store)
        (entry,) = fill(store, memory, "mine")
        before = store.memory(ME, memory), usage(store)
        store.delete(ME, memory)
        hidden = operations(store, memory, entry)
        kinds = {
            name: told(lambda call=call: call(ME))[0] for name, call in hidden.items() if name[:2] not in ("re", "er")
        }
        assert set(kinds.values()) == {MemoryMissing}
        assert store.memories(ME) == ()
        (deleted,) = store.memories(ME, deleted=True)
        assert deleted.memory_id == memory
        assert deleted.deleted_at is not None
        assert usage(store) == before[1]
        store.restore(ME, memory)
        assert (store.memory(ME, memory), usage(store)) == before
        with pytest.raises(MemoryMissing):
            store.restore(ME, memory)

    def test_an_erased_memory_is_gone_and_costs_nothing(self, store: Store) -> None:
        store.accounts.put(ME, Profile())
        empty = usage(store)
        kept = make(store)
        fill(store, kept, "kept")
        before = usage(store)
        for hide in (False, True):
            memory = make(store)
            store.add(ME, memory, (new_entry("mine", client_key="k", tags=("t",)),))
            if hide:
                store.delete(ME, memory)
            store.erase(ME, memory)
            with pytest.raises(MemoryMissing):
                store.restore(ME, memory)
            with pytest.raises(MemoryMissing):
                store.erase(ME, memory)
        assert usage(store) == before
        assert [entry.raw_entry for entry in everything(store, kept)] == ["kept"]
        store.erase(ME, kept)
        assert usage(store) == empty

    def test_an_erased_entry_is_gone_and_its_number_is_not_given_again(self, store: Store) -> None:
        memory = make(store)
        fill(store, memory, "one")
        before = store.memory(ME, memory).stats, usage(store)
        kept = store.add(
            ME, memory, (new_entry("two ü", "sum", client_key="k", tags=("t", "ü"), author="Jo", at="x"),)
        )[0]
        store.erase_entry(ME, memory, kept.entry_id)
        assert (store.memory(ME, memory).stats, usage(store)) == before
        assert store.find_key(ME, memory, "k") is None
        assert store.find(ME, memory, Where(tags=("t",))) == frozenset()
        assert store.newest(ME, memory) == Newest(1, 1, 2)
        with pytest.raises(EntryMissing):
            store.erase_entry(ME, memory, kept.entry_id)
        assert store.add(ME, memory, (new_entry("three"),))[0].seq == 3
        assert [entry.raw_entry for entry in everything(store, memory)] == ["one", "three"]


class Accounts:
    """Usage is exact, quotas hold, tokens are found by their digest."""

    def test_usage_counts_what_is_stored(self, store: Store) -> None:
        memory = store.load(ME, NewMemory(title="t"), (NewDocument("dü"),), ()).memory_id
        store.add(ME, memory, (new_entry("räw", "sum", author="Jo", tags=("t1",)), new_entry("same")))
        size = len("dü".encode()) + len("räw".encode()) + len("sum") + len("Jot1") + len("same")
        assert usage(store) == Usage(1, 2, size)
        stats = store.memory(ME, memory).stats
        assert (stats.entries, stats.documents, stats.bytes) == (2, 1, size)

    def test_a_quota_is_reached_and_not_passed(self, store: Store) -> None:
        store.accounts.put(ME, Profile(quotas={"memories": 1, "entries": 2, "bytes": 100}))
        memory = make(store)
        with pytest.raises(QuotaExceeded, match="memories: 2 would exceed the quota of 1"):
            make(store)
        with pytest.raises(QuotaExceeded, match="entries: 3 would exceed the quota of 2"):
            fill(store, memory, "a", "b", "c")
        with pytest.raises(QuotaExceeded, match="bytes: 101 would exceed the quota of 100"):
            fill(store, memory, "x" * 96)
        with pytest.raises(QuotaExceeded):
            store.put_document(ME, memory, "x" * 96)
        fill(store, memory, "a", "x" * 94)
        assert usage(store) == Usage(1, 2, 100)
        store.accounts.put(ME, Profile(quotas={"memories": None, "entries": None, "bytes": None}))
        fill(store, memory, "x" * 1000)
        make(store, OTHER)

    def test_threads_together_do_not_pass_a_quota(self, store: Store) -> None:
        memory = make(store)
        store.accounts.put(ME, Profile(quotas={"entries": 50}))
        refused: list[Exception] = []

        def add(writer: int) -> None:
            for number in range(10):
                try:
                    fill(store, memory, f"{writer} {number}")
                except QuotaExceeded as error:
                    refused.append(error)

        threads = [threading.Thread(target=add, args=(writer,)) for writer in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(refused) == 30
        assert seqs(everything(store, memory)) == list(range(1, 51))
        assert usage(store).entries == 50

    def test_a_profile_is_made_and_changed(self, store: Store) -> None:
        assert store.accounts.find("new") is None
        made = store.accounts.put("new", Profile())
        assert (made.user_id, made.name, made.email, made.quotas.memories) == ("new", "new", "", None)
        changed = store.accounts.put(
            "new", Profile(name="Zoë", email="z@example.org", quotas={"memories": 1, "bytes": 3})
        )
        assert store.accounts.find("new") == changed
        assert (changed.name, changed.email) == ("Zoë", "z@example.org")
        assert (changed.quotas.memories, changed.quotas.entries, changed.quotas.bytes) == (1, None, 3)
        assert store.accounts.put("new", Profile(email="")).name == "Zoë"
        assert [user.user_id for user in store.accounts.list()] == ["new"]

    def test_tokens_are_found_by_their_digest_and_forgotten(self, store: Store) -> None:
        one = Token(token_id="a", user=ME, name="laptop", scope="read", created_at="2025-01-01T00:00:00.000Z")
        two = Token(token_id="b", user=OTHER, name="", scope="write", created_at="2025-01-02", expires_at="2026-01-01")
        store.accounts.put_token(one, b"1" * 32)
        store.accounts.put_token(two, b"2" * 32)
        assert store.accounts.find_token(b"1" * 32) == one
        assert store.accounts.find_token(b"2" * 32) == two
        assert store.accounts.find_token(b"3" * 32) is None
        assert store.accounts.tokens() == (one, two)
        assert store.accounts.tokens(OTHER) == (two,)
        assert store.accounts.drop_token("a")
        assert not store.accounts.drop_token("a")
        assert store.accounts.tokens() == (two,)


class OwnershipConformance(Owners, Deletion, Accounts):
    """All of it."""
