"""Words: what is one to the index, what nobody asks for, where a long text is cut."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daypack.search.words import (
    HEAD_CHARS,
    MAX_CHUNKS,
    MAX_WORD_CHARS,
    QUERY_CHARS,
    find_speaker,
    fold,
    index_header,
    is_paraphrase,
    name_words,
    query_terms,
    split_chunks,
)


def test_stop_words_and_punctuation_are_not_looked_for() -> None:
    assert query_terms("What did the AGENT say about retry-limits, and when?") == ["agent", "say", "retry", "limits"]


def test_a_term_is_looked_for_once() -> None:
    assert query_terms("Rome rome ROME Paris") == ["rome", "paris"]


def test_accents_and_wide_forms_are_folded_on_both_sides() -> None:
    assert query_terms("Café ＡＰＩ Ёлка naïve ﬁle ٤٢") == ["cafe", "api", "елка", "naive", "file", "42"]
    assert fold("Café") == "Cafe"


def test_vowel_signs_stay_in_their_words() -> None:
    assert query_terms("हिन्दी भाषा") == ["हिन्दी", "भाषा"]


@pytest.mark.parametrize("text", ["東京都に行く", "ラーメンが好き", "서울에서", "ภาษาไทย"])
def test_text_without_spaces_is_cut_into_pairs(text: str) -> None:
    pairs = [text[at : at + 2] for at in range(len(text) - 1)]
    assert query_terms(text) == list(dict.fromkeys(pairs))
    assert set(pairs) <= set(fold(text).split())


def test_a_single_character_can_be_looked_for() -> None:
    assert query_terms("猫") == ["猫"]
    assert "猫" in fold("黒い猫が好き").split()


def test_dates_in_numbers_become_words() -> None:
    assert index_header("2023-05-08T13:56:00Z", "Melanie") == "2023 May 8 Melanie"
    assert index_header("8 May, late", "") == "8 May, late"
    assert query_terms("the log of 2023-05-08") == ["log", "2023", "may", "8"]


def test_coded_data_is_left_out_and_paths_are_kept() -> None:
    path = "/home/ana/projects/daypack/src/daypack/search/a-rather-long-name/of/some_module_of_mine.py"
    digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    coded = "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO9TXL0Y4OHw"
    assert fold(f"see {path} {digest} {coded} end").split() == ["see", path, digest, "end"]
    assert fold("x" * 1_000) == " "
    assert not any(len(word) > MAX_WORD_CHARS for word in fold("é" * 1_000).split())


def test_of_a_giant_query_both_ends_are_read() -> None:
    middle = " ".join(f"middle{number}" for number in range(100_000))
    assert len(middle) > 2 * QUERY_CHARS
    terms = query_terms(f"first {middle} last")
    assert terms[0] == "first"
    assert terms[-1] == "last"
    assert len(terms) < QUERY_CHARS


@given(st.text())
def test_every_term_is_one_token_of_the_index(query: str) -> None:
    with_index = sqlite3.connect(":memory:")
    with_index.execute("CREATE VIRTUAL TABLE f USING fts5(t, content='', detail=none, tokenize='porter ascii')")
    for term in query_terms(query):
        # With detail=none, a quoted string of two tokens is an error.
        with_index.execute("SELECT rowid FROM f WHERE f MATCH ?", (f'"{term}"',)).fetchall()
    with_index.close()


@given(st.text())
def test_what_is_asked_in_a_texts_own_words_is_in_the_text(text: str) -> None:
    index = sqlite3.connect(":memory:")
    index.execute("CREATE VIRTUAL TABLE f USING fts5(t, content='', detail=none, tokenize='porter ascii')")
    index.execute("INSERT INTO f(rowid, t) VALUES (1, ?)", (fold(text),))
    for term in query_terms(text):
        assert index.execute("SELECT rowid FROM f WHERE f MATCH ?", (f'"{term}"',)).fetchall() == [(1,)], term
    index.close()


def test_names_have_words_and_roles_are_no_names() -> None:
    assert name_words("Ana María López") == ["ana", "maria", "lopez"]
    assert name_words("assistant") == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Caroline: hi there", "Caroline"),
        ("Jean-Luc Picard: engage", "Jean-Luc Picard"),
        ("caution, this: is prose", ""),
        ("12:30 is fine", ""),
        ("http://example.org", ""),
    ],
)
def test_a_speaker_is_read_off_the_text(text: str, name: str) -> None:
    assert find_speaker(text) == name


def test_a_short_text_is_one_chunk() -> None:
    text = "word " * 120
    assert split_chunks(text) == [(0, len(text), 120)]


def test_a_long_text_is_cut_at_sentence_ends_without_gaps() -> None:
    text = " ".join(f"This is sentence number {number} of a long answer." for number in range(200))
    chunks = split_chunks(text)
    assert 10 < len(chunks) < 30
    assert all(75 <= words <= 150 for _, _, words in chunks)
    assert all(text[stop - 1] == "." for _, stop, _ in chunks)
    assert " ".join(text[start:stop] for start, stop, _ in chunks) == text


def test_a_long_text_without_spaces_is_cut_too() -> None:
    text = "我们昨天在东京吃了很好吃的拉面然后去了博物馆" * 100
    chunks = split_chunks(text)
    assert len(chunks) > 5
    assert "".join(text[start:stop] for start, stop, _ in chunks) == text


def test_of_a_giant_text_beginning_and_end_are_taken() -> None:
    text = "alpha " * 100_000 + "omega"
    chunks = split_chunks(text)
    assert len(chunks) <= MAX_CHUNKS
    assert chunks[0][0] == 0
    assert chunks[-1][1] == len(text)
    assert not any(HEAD_CHARS < start < len(text) - HEAD_CHARS for start, _, _ in chunks)


def test_a_summary_in_other_words_is_told_from_one_in_the_same() -> None:
    raw = "I went to the lake with my sister, it was great!"
    assert is_paraphrase(raw, "Ana visited Lisbon together with Bo")
    assert not is_paraphrase(raw, "Ana went to the lake with her sister")
    assert not is_paraphrase(raw, raw)
    assert not is_paraphrase(raw, "")
