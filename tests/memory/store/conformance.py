"""The behaviour every memory store must have; the tests of a store inherit it and provide a `store` fixture."""

import pytest
from memory.store.stores import ME, OTHER, TEXTS, everything, fill, make, new_entry, seqs, usage

from daypack.errors import DaypackError, EntryMissing, KeyConflict
from daypack.memory.store.port import EntryRange, NewDocument, NewEntry, NewMemory, Store, StoreFeed, split_damaged
from daypack.types.memory import About, Where


class Entries:
    """Entries are kept exactly, once, in order, and never change."""

    def test_what_is_read_is_what_was_written(self, store: Store) -> None:
        memory = make(store)
        kept = store.add(
            ME, memory, [new_entry(text, summary) for text in TEXTS for summary in (text[:512], "said so")]
        )
        read = everything(store, memory)
        assert [entry.raw_entry for entry in read] == [text for text in TEXTS for _ in range(2)]
        assert [entry.summary for entry in read] == [one for text in TEXTS for one in (text[:512], "said so")]
        assert [(one.entry_id, one.seq, one.summary) for one in kept] == [
            (entry.entry_id, entry.seq, entry.summary) for entry in read
        ]
        store.close()
        assert everything(store, memory) == read

    def test_what_is_known_of_an_entry_is_kept(self, store: Store) -> None:
        memory = make(store)
        about = About(
            session="s-1", role="user", author="Zoë", at="last Tuesday", tags=("plan", "café au lait"), source="m:1"
        )
        store.add(ME, memory, (NewEntry(raw="one", summary="sum", about=about), new_entry("two")))
        first, second = everything(store, memory)
        assert {name: getattr(first, name) for name in About.__struct_fields__} == {
            name: getattr(about, name) for name in About.__struct_fields__
        }
        assert (second.session, second.tags, second.source) == (None, (), None)

    def test_numbers_begin_at_one_and_have_no_gaps_in_each_memory(self, store: Store) -> None:
        one, two = make(store), make(store)
        for raw in "abc":
            fill(store, one, raw)
            fill(store, two, raw, raw)
        assert seqs(everything(store, one)) == [1, 2, 3]
        assert seqs(everything(store, two)) == [1, 2, 3, 4, 5, 6]

    def test_ids_are_random_and_differ(self, store: Store) -> None:
        memory = make(store)
        ids = fill(store, memory, *["same"] * 100)
        assert len({entry_id[:24] for entry_id in ids}) == 100

    def test_all_entries_are_stored_or_none(self, store: Store) -> None:
        memory = make(store)
        store.add(ME, memory, (new_entry("first", client_key="k"),))
        before = usage(store)
        with pytest.raises(KeyConflict):
            store.add(ME, memory, (new_entry("new", tags=("t",)), new_entry("other", client_key="k")))
        assert [entry.raw_entry for entry in everything(store, memory)] == ["first"]
        assert usage(store) == before
        assert store.find(ME, memory, Where(tags=("t",))) == frozenset()
        assert store.add(ME, memory, (new_entry("next"),))[0].seq == 2

    def test_a_clock_that_is_set_back_does_not_turn_times_around(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        memory = make(store)
        fill(store, memory, "one")
        monkeypatch.setattr("time.time_ns", lambda: 1_000_000_000)
        fill(store, memory, "two")
        one, two = everything(store, memory)
        assert two.created_at == one.created_at

    def test_pages_are_newest_first_and_lead_on(self, store: Store) -> None:
        memory = make(store)
        fill(store, memory, *map(str, range(10)))

        def page(**span: int) -> list[int]:
            return seqs(store.page(ME, memory, EntryRange(**({"limit": 3} | span))))

        assert page() == [10, 9, 8]
        assert page(before_seq=8) == [7, 6, 5]
        assert page(before_seq=2) == [1]
        assert page(before_seq=1) == []
        assert page(after_seq=2) == [5, 4, 3]
        assert page(after_seq=9) == [10]
        assert page(after_seq=10) == []
        assert page(limit=100) == list(range(10, 0, -1))

    def test_pages_can_be_asked_for_by_time(self, store: Store) -> None:
        entries = [new_entry(str(number), created_at=1_000 * number) for number in range(1, 7)]
        memory = store.load(ME, NewMemory(title="t"), (NewDocument("d"),), entries).memory_id
        assert seqs(store.page(ME, memory, EntryRange(limit=2, before_time=5_000))) == [4, 3]
        assert seqs(store.page(ME, memory, EntryRange(limit=2, after_time=2_000))) == [4, 3]
        assert seqs(store.page(ME, memory, EntryRange(limit=9, after_time=6_000))) == []

    def test_entries_are_found_by_id_and_by_number(self, store: Store) -> None:
        memory, elsewhere = make(store), make(store)
        ids = fill(store, memory, "a", "b", "c")
        (theirs,) = fill(store, elsewhere, "a")
        assert [store.seq_of(ME, memory, one) for one in ids] == [1, 2, 3]
        picked, _ = split_damaged(store.pick(ME, memory, [3, 1, 9]).values())
        assert {entry.seq: entry.raw_entry for entry in picked} == {1: "a", 3: "c"}
        assert store.pick(ME, memory, []) == {}
        for missing in (theirs, ids[0][:-1] + "2", "f" * 32, "", "nonsense", ids[0].upper() + "\0"):
            with pytest.raises(EntryMissing):
                store.seq_of(ME, memory, missing)

    def test_a_feed_gives_what_follows_in_order(self, store: Store) -> None:
        memory = make(store)
        fill(store, memory, *map(str, range(5)))
        store.put_document(ME, memory, "second")
        feed = StoreFeed(store, ME, memory)
        assert feed.newest() == (5, 2)
        assert [entry.seq for entry in feed.entries(2, 2)] == [3, 4]
        assert [entry.seq for entry in feed.entries(5, 2)] == []
        assert [document.content for document in split_damaged(feed.documents(0, 10))[0]] == ["first", "second"]
        assert [document.version for document in feed.documents(1, 10)] == [2]


class Keys:
    """The same client key with the same payload is one entry, however often it is sent."""

    def test_the_same_again_answers_as_the_first_time(self, store: Store) -> None:
        memory = make(store)
        one = new_entry("said", "sum", client_key="k", author="Jo", tags=("a", "b"))
        first = store.add(ME, memory, (one,))[0]
        again = store.add(ME, memory, (one,))[0]
        assert again == first._replace(replayed=True)
        assert not first.replayed
        assert len(everything(store, memory)) == 1

    def test_a_summary_that_was_made_is_not_compared(self, store: Store) -> None:
        memory = make(store)
        first = store.add(ME, memory, (new_entry("said", "made", client_key="k", summary_given=False),))[0]
        again = store.add(ME, memory, (new_entry("said", "made otherwise", client_key="k", summary_given=False),))[0]
        assert again == first._replace(replayed=True)
        with pytest.raises(KeyConflict):
            store.add(ME, memory, (new_entry("said", "stated", client_key="k"),))

    @pytest.mark.parametrize(
        "other",
        [
            new_entry("said!", "sum", client_key="k"),
            new_entry("said", "other", client_key="k"),
            new_entry("said", "sum", client_key="k", role="user"),
            new_entry("said", "sum", client_key="k", tags=("a",)),
        ],
    )
    def test_another_payload_is_refused(self, store: Store, other: NewEntry) -> None:
        memory = make(store)
        store.add(ME, memory, (new_entry("said", "sum", client_key="k"),))
        with pytest.raises(KeyConflict, match="a different entry"):
            store.add(ME, memory, (other,))
        assert [entry.raw_entry for entry in everything(store, memory)] == ["said"]

    def test_keys_repeat_within_one_batch_too(self, store: Store) -> None:
        memory = make(store)
        one = new_entry("said", client_key="k")
        first, second = store.add(ME, memory, (one, one))
        assert second == first._replace(replayed=True)
        with pytest.raises(KeyConflict):
            store.add(ME, memory, (new_entry("a", client_key="j"), new_entry("b", client_key="j")))

    def test_each_memory_has_keys_of_its_own(self, store: Store) -> None:
        one, two = make(store), make(store)
        store.add(ME, one, (new_entry("here", client_key="k"),))
        assert not store.add(ME, two, (new_entry("there", client_key="k"),))[0].replayed
        found = store.find_key(ME, one, "k")
        assert found is not None
        assert found.raw_entry == "here"
        assert store.find_key(ME, one, "absent") is None


class Documents:
    """Every version of the document is kept, the latest is current."""

    def test_a_new_version_is_current_and_the_old_ones_stay(self, store: Store) -> None:
        memory = make(store)
        second = store.put_document(ME, memory, "second ünïcode")
        assert (second.version, second.content) == (2, "second ünïcode")
        assert store.document(ME, memory) == second
        assert store.document(ME, memory, 1).content == "first"
        assert [one.version for one in store.documents(ME, memory, 0, 10)] == [1, 2]
        assert store.memory(ME, memory).stats.documents == 2
        assert len({one.document_id for one in split_damaged(store.documents(ME, memory, 0, 10))[0]}) == 2


class Filters:
    """`find` returns the entries for which all that is given holds."""

    @pytest.fixture
    def memory(self, store: Store) -> str:
        drafts = [
            new_entry("1", role="user", author="Jo", session="a", at="2025-08-17", tags=("plan",)),
            new_entry(
                "2", role="assistant", author="Sam", session="a", at="2025-08-17T12:00:00+02:00", tags=("plan", "x")
            ),
            new_entry("3", role="user", author="Sam", session="b", at="2025-08-18T00:00:00Z", tags=("x",)),
            new_entry("4", role="user", at="some day", created_at=1_000),
            new_entry("5", created_at=2_000),
        ]
        return store.load(ME, NewMemory(title="t"), (NewDocument("d"),), drafts).memory_id

    @pytest.mark.parametrize(
        ("where", "wanted"),
        [
            (Where(), {1, 2, 3, 4, 5}),
            (Where(role="user"), {1, 3, 4}),
            (Where(author="Sam"), {2, 3}),
            (Where(session="a"), {1, 2}),
            (Where(tags=("plan",)), {1, 2}),
            (Where(tags=("plan", "x")), {2}),
            (Where(tags=("pla",)), set[int]()),
            (Where(role="user", author="Sam", tags=("x",)), {3}),
            (Where(since="2025-08-17"), {1, 2, 3}),
            (Where(since="2025-08-17T10:00:00Z"), {2, 3}),
            (Where(until="2025-08-17"), {1, 2, 4, 5}),
            (Where(since="2025-08-17", until="2025-08-17"), {1, 2}),
            (Where(since="1970-01-01T00:00:01Z", until="1970-01-01T00:00:01Z"), {4}),
            (Where(since="1970-01-01T00:00:02Z", until="1980-01-01"), {5}),
            (Where(role="' OR 1=1 --"), set[int]()),
        ],
    )
    def test_all_conditions_must_hold(self, store: Store, memory: str, where: Where, wanted: set[int]) -> None:
        assert store.find(ME, memory, where) == wanted


class Loading:
    """A memory comes back whole from an archive: all or none, once."""

    def test_a_memory_comes_with_its_documents_and_entries(self, store: Store) -> None:
        new = NewMemory(title="t", memory_type="task", description="d", memory_id="a" * 32, created_at=5_000)
        documents = (NewDocument("one", "b" * 24 + "00000001", 6_000), NewDocument("two", "c" * 24 + "00000002", 7_000))
        drafts = (
            new_entry("one", entry_id="d" * 24 + "00000002", created_at=8_000),
            new_entry("two", entry_id="e" * 24 + "00000005", created_at=9_000),
            new_entry("three"),
        )
        memory = store.load(ME, new, documents, drafts)
        assert (memory.memory_id, memory.memory_type, memory.created_at) == (
            "a" * 32,
            "task",
            "1970-01-01T00:00:05.000Z",
        )
        assert [(one.version, one.document_id[0]) for one in split_damaged(store.documents(ME, "a" * 32, 0, 9))[0]] == [
            (1, "b"),
            (2, "c"),
        ]
        assert store.document(ME, "a" * 32).content == "two"
        read = everything(store, "a" * 32)
        assert [(one.seq, one.raw_entry) for one in read] == [(2, "one"), (5, "two"), (6, "three")]
        assert read[0].created_at == "1970-01-01T00:00:08.000Z"
        again = store.load(ME, new, documents, drafts[:2])
        assert again == memory
        assert everything(store, "a" * 32) == read
        more = (*drafts[:2], new_entry("four", entry_id="f" * 24 + "00000009"))
        assert store.load(ME, new, documents, more).stats.entries == 4

    def test_an_entry_in_the_place_of_another_is_refused(self, store: Store) -> None:
        new = NewMemory(title="t", memory_id="a" * 32)
        store.load(ME, new, (NewDocument("d"),), (new_entry("one", entry_id="d" * 24 + "00000001"),))
        before = usage(store)
        with pytest.raises(KeyConflict):
            store.load(ME, new, (), (new_entry("new"), new_entry("other", entry_id="e" * 24 + "00000001")))
        back = [new_entry("new", entry_id="d" * 24 + ending) for ending in ("00000009", "00000008")]
        with pytest.raises(DaypackError, match="ascending order"):
            store.load(ME, new, (), back)
        with pytest.raises(KeyConflict):
            store.load(ME, new, (NewDocument("x", "b" * 24 + "00000001"),), ())
        with pytest.raises(DaypackError, match="an earlier document is missing"):
            store.load(ME, new, (NewDocument("x", "b" * 24 + "00000003"),), ())
        assert usage(store) == before

    def test_an_id_that_is_taken_becomes_another_one(self, store: Store) -> None:
        memory = make(store)
        new = NewMemory(title="theirs", memory_id=memory)
        assert store.load(OTHER, new, (NewDocument("d"),), ()).memory_id != memory
        store.delete(ME, memory)
        assert store.load(ME, new, (NewDocument("d"),), ()).memory_id != memory
        store.restore(ME, memory)
        assert store.memory(ME, memory).title == "Launch"


class StoreConformance(Entries, Keys, Documents, Filters, Loading):
    """All of it."""

    def test_a_store_has_an_id_that_stays(self, store: Store) -> None:
        first = store.store_id
        assert len(bytes.fromhex(first)) == 8
        store.close()
        assert store.store_id == first
