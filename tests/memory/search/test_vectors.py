"""Vectors of a memory: they find what words do not, are made again for another model, and may be missing."""

import os
from pathlib import Path

import pytest
from memory.search.feeds import Knowing, ListFeed, document, entry, many, seqs, vectors_in

from daypack.memory.search import vectors as module
from daypack.memory.search.index import Index, IndexProgress
from daypack.memory.search.index_files import index_files

SAID = [
    entry(1, "The hound barks at night.", session="a"),
    entry(2, "The lorry is in the garage.", session="b"),
    entry(3, "We bought a loaf.", session="c"),
]


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "index")


def test_what_is_meant_is_found_without_a_word_in_common(folder: str) -> None:
    index = Index(index_files(folder, Knowing()), ListFeed(SAID))
    assert seqs(index.search("puppy", 1)) == [1]
    assert seqs(index.search("vehicle", 1)) == [2]
    assert seqs(index.search("vehicle", 3, allowed=[1, 3])) == []  # neither means a vehicle
    assert Index(index_files(folder), ListFeed(SAID)).search("puppy", 1) == []
    index.close()


def test_a_filter_leaves_scores_as_they_are(folder: str) -> None:
    index = Index(index_files(folder, Knowing()), ListFeed(many(200)))
    index.catch_up()
    every = {one.seq: one for one in index.search("the hound in a storm", 100)}
    some = index.search("the hound in a storm", 5, allowed=[seq for seq in every if seq % 3 == 0])
    assert len(some) == 5
    assert all(every[one.seq].score == pytest.approx(one.score) for one in some)
    index.close()


def test_names_of_who_speaks_are_not_embedded_with_a_query(folder: str) -> None:
    embedder = Knowing()
    said = [entry(1, "My hound barks.", author="Ana"), entry(2, "My lorry is old.", author="Bo")]
    index = Index(index_files(folder, embedder), ListFeed(said))
    index.search("What is Ana's puppy called?", 1)
    assert embedder.texts[-1] == "What is puppy called?"
    index.close()


def test_a_summary_in_other_words_has_a_vector_of_its_own(folder: str) -> None:
    embedder = Knowing()
    told = entry(4, "It was red and fast.", "Ana described a new vehicle")
    index = Index(index_files(folder, embedder), ListFeed([*SAID[:1], told, entry(5, "It rains.", "It rains.")]))
    index.catch_up()
    assert embedder.texts == [SAID[0].raw_entry, told.raw_entry, told.summary, "It rains."]
    assert seqs(index.search("lorry", 1)) == [4]
    index.close()


def test_another_embedder_begins_anew_and_the_former_vectors_go_when_all_are_made(folder: str) -> None:
    feed = ListFeed(many(200))
    first = Index(index_files(folder, Knowing("one")), feed)
    first.catch_up()
    (former,) = vectors_in(folder)
    second = Index(index_files(folder, Knowing("two")), feed)
    found = second.search("puppy", 5)
    assert seqs(found)
    assert "dense" not in found[0].parts
    assert second.notes == ("vectors: 0 of 200 entries; await_consistency embeds the rest",)
    assert former in vectors_in(folder)
    assert second.catch_up() == IndexProgress(200, 0, 200)
    assert former not in vectors_in(folder)
    assert len(vectors_in(folder)) == 1
    assert "dense" in second.search("puppy", 5)[0].parts
    assert second.notes == ()
    first.close()
    second.close()


def test_embedding_goes_on_where_it_stopped_and_tells_how_far_it_is(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BATCH", 50)
    embedder = Knowing()
    index = Index(index_files(folder, embedder), ListFeed(many(200)))
    steps: list[IndexProgress] = []

    def stop(reached: IndexProgress) -> None:
        steps.append(reached)
        embedder.failing = reached.vectors == 100

    reached = index.catch_up(progress=stop)
    assert [one.vectors for one in steps] == [0, 50, 100]
    assert (reached.entries, reached.vectors) == (200, 100)
    assert reached.problem is not None
    assert "does not answer" in reached.problem
    embedder.failing = False
    assert index.catch_up() == IndexProgress(200, 0, 200)
    assert len(embedder.texts) == 200
    index.close()


def test_a_search_makes_a_few_vectors_and_leaves_many_to_others(folder: str) -> None:
    embedder = Knowing()
    feed = ListFeed(many(60))
    index = Index(index_files(folder, embedder), feed)
    index.search("puppy", 5)
    assert index.notes == ()
    assert len(embedder.texts) == 61
    feed.stored = many(300)
    found = index.search("puppy", 5)
    assert index.notes == ("vectors: 60 of 300 entries; await_consistency embeds the rest",)
    assert len(embedder.texts) == 62
    assert "dense" in found[0].parts
    assert max(seqs(index.search("number 299", 3))) > 60
    index.close()


def test_an_embedder_that_fails_is_a_note_and_a_problem(folder: str) -> None:
    embedder = Knowing()
    index = Index(index_files(folder, embedder), ListFeed(SAID, [document(1, "words")]))
    embedder.failing = True
    assert seqs(index.search("lorry", 3)) == [2]
    assert any("does not answer" in note for note in index.notes)
    reached = index.catch_up()
    assert (reached.entries, reached.documents, reached.vectors) == (3, 1, 0)
    assert reached.problem
    embedder.failing = False
    assert index.catch_up() == IndexProgress(3, 1, 3)
    embedder.failing = True
    assert seqs(index.search("lorry", 3)) == [2]
    assert [note for note in index.notes if "does not answer" in note]
    index.close()


def test_vectors_that_were_deleted_are_made_again(folder: str) -> None:
    index = Index(index_files(folder, Knowing()), ListFeed(SAID))
    index.catch_up()
    (name,) = vectors_in(folder)
    for file in os.listdir(os.path.join(folder, name)):
        os.unlink(os.path.join(folder, name, file))
    assert seqs(index.search("puppy", 1)) == [1]
    index.close()
