"""Texts and users of a store: any text is kept, threads and forked children share it."""

import os
import threading

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory.store.stores import ME, everything, fill, make

from daypack.memory.store.port import NewDocument, NewEntry, NewMemory, Profile, Store, Token, split_damaged
from daypack.types.memory import About, Where

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
TAGS = st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), min_size=1), max_size=3)
_SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.differing_executors]


class Sharing:
    """Any text is read as it was written, whoever writes at the same time."""

    @given(st.lists(st.tuples(WORDS, WORDS), max_size=20))
    @settings(max_examples=30, deadline=None, suppress_health_check=_SHARED)
    def test_any_text_is_read_as_it_was_written(self, store: Store, pairs: list[tuple[str, str]]) -> None:
        memory = make(store)
        entries = [NewEntry(raw=text, summary=summary, about=About(author=summary)) for text, summary in pairs]
        store.add(ME, memory, entries)
        assert [(one.raw_entry, one.summary, one.author) for one in everything(store, memory)] == [
            (text, summary, summary) for text, summary in pairs
        ]

    @given(st.tuples(WORDS, WORDS, WORDS, WORDS), TAGS)
    @settings(max_examples=30, deadline=None, suppress_health_check=_SHARED)
    def test_any_text_is_kept_in_every_field(
        self, store: Store, words: tuple[str, str, str, str], tags: list[str]
    ) -> None:
        one, two, three, four = words
        new = NewMemory(title=one, memory_type=two, description=three)
        memory = store.load(ME, new, (NewDocument(four),), ())
        assert (memory.title, memory.memory_type, memory.description) == (one, two, three)
        assert store.memory(ME, memory.memory_id) == memory
        assert store.document(ME, memory.memory_id).content == four
        about = About(session=one, role=two, author=three, at=four, tags=tuple(dict.fromkeys(tags)), source=one)
        entry = NewEntry(raw=two, summary=three, about=about, client_key=four)
        (stored,) = store.add(ME, memory.memory_id, (entry,))
        (read,) = everything(store, memory.memory_id)
        assert {name: getattr(read, name) for name in About.__struct_fields__} == {
            name: getattr(about, name) for name in About.__struct_fields__
        }
        assert store.find_key(ME, memory.memory_id, four) == read
        assert store.add(ME, memory.memory_id, (entry,)) == [stored._replace(replayed=True)]
        where = Where(session=one, role=two, author=three, tags=about.tags)
        assert store.find(ME, memory.memory_id, where) == {1}
        user = store.accounts.put(ME, Profile(name=one, email=two))
        assert store.accounts.find(ME) == user
        assert (user.name, user.email) == (one, two)
        token = Token(token_id=stored.entry_id, user=ME, name=one, scope="read", created_at="2025")
        digest = bytes.fromhex(stored.entry_id * 2)
        store.accounts.put_token(token, digest)
        assert store.accounts.find_token(digest) == token

    def test_threads_of_one_process_add_and_read_at_once(self, store: Store) -> None:
        memory = make(store)
        problems: list[object] = []

        def work(writer: int) -> None:
            try:
                for number in range(40):
                    (entry,) = fill(store, memory, f"{writer} {number}")
                    seq = store.seq_of(ME, memory, entry)
                    ((found,), _) = split_damaged(store.pick(ME, memory, [seq]).values())
                    assert found.raw_entry == f"{writer} {number}"
            except Exception as error:
                problems.append(error)

        threads = [threading.Thread(target=work, args=(writer,)) for writer in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == []
        read = everything(store, memory)
        assert [entry.seq for entry in read] == list(range(1, 321))
        for writer in range(8):
            mine = [entry.raw_entry for entry in read if entry.raw_entry.startswith(f"{writer} ")]
            assert mine == [f"{writer} {number}" for number in range(40)]

    def test_a_forked_child_uses_the_store_beside_its_parent(self, store: Store) -> None:
        memory = make(store)
        fill(store, memory, "parent")
        child = os.fork()
        if child == 0:
            try:
                fill(store, memory, "child")
                os._exit(0 if len(everything(store, memory)) == 2 else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        fill(store, memory, "parent")
        assert [entry.raw_entry for entry in everything(store, memory)] == ["parent", "child", "parent"]
