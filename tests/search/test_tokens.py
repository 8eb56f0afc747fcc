"""Tokens are those of FTS5 itself, for whatever it is given."""

import random
import re
import sqlite3
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daypack.search.tokens import MAX_BYTES, MAX_STEMMED_BYTES, stem_token, tokens
from daypack.search.words import fold, query_terms

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"


def listed(words: str) -> list[str]:
    return words.split()


ENDINGS = listed(
    "s es ies sses ss ed eed ing ly y ational tional enci anci izer logi bli alli entli eli ousli ization ation ator"
    " alism iveness fulness ousness aliti iviti biliti icate ative alize iciti ical ful ness al ance ence er ic able"
    " ible ant ement ment ent ion sion tion ou ism ate iti ous ive ize e ee le ll lle at bl iz ating bling izing ated"
    " bled ized"
)
STEMS = listed(
    "a b y by ay yay toy tr tree try hop hopp fall fizz miss fail fil conflat troubl siz tann relat condit ration val"
    " hesit digit radic differ vil analog vietnam predict oper feud decis hope call form sens triplic electr good"
    " reviv allow infer airlin gyroscop adjust defens irrit replac depend adopt homolog commun activ effect bowdler"
    " probat rat ceas contr roll skies dying é éa aé 東 東a aत मत 1 1a 42 x9 yy syzyg z ax aw ow wxy queue"
)
CHARACTERS = st.characters(exclude_categories=["Cs"])
TEXTS = st.text(st.one_of(CHARACTERS, st.sampled_from("aeiouybdlstzngr Aé東京तяß🙂\0 09_-'.")))


class Fts:
    """FTS5 with the tokenizer of an index, and the terms it makes."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self._connection.text_factory = bytes  # a term may be half a character
        self._connection.executescript("""
            CREATE VIRTUAL TABLE postings USING fts5(words, content='', tokenize='porter ascii');
            CREATE VIRTUAL TABLE terms USING fts5vocab(postings, instance)
        """)

    def terms(self, texts: Iterable[str]) -> list[tuple[int, bytes]]:
        """Return the terms of texts, each with the number of its text."""
        self._connection.execute("INSERT INTO postings(postings) VALUES ('delete-all')")
        self._connection.executemany("INSERT INTO postings(rowid, words) VALUES (?, ?)", enumerate(texts))
        return self._connection.execute("SELECT doc, term FROM terms").fetchall()

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(scope="module")
def fts() -> Iterator[Fts]:
    fts = Fts()
    yield fts
    fts.close()


def spelled(term: bytes) -> str:
    return term.decode("utf-8", "backslashreplace")


def check_texts(fts: Fts, texts: list[str]) -> None:
    assert {token for text in texts for token in tokens(text)} == {spelled(term) for _, term in fts.terms(texts)}


def check_words(fts: Fts, words: Iterable[str]) -> None:
    """Compare word by word: two wrong stems must not make up for each other."""
    known = sorted(set(words))
    stems = {known[row]: spelled(term) for row, term in fts.terms(known)}
    assert len(stems) == len(known)
    assert [(word, tokens(word), stem) for word, stem in stems.items() if tokens(word) != [stem]] == []


def test_words_with_several_endings_get_the_stem_of_fts5(fts: Fts) -> None:
    words = [stem + ending for stem, ending in product(STEMS, ENDINGS)]
    pairs = list(product(STEMS, ENDINGS, ENDINGS))
    check_words(fts, [*words, *map("".join, random.Random(2).sample(pairs, 40_000))])


def test_words_of_random_letters_get_the_stem_of_fts5(fts: Fts) -> None:
    rng = random.Random(3)
    letters = "aeiouyaeiouybcdglnrstzwxéत0"
    words = ["".join(rng.choices(letters, k=rng.randint(1, 9))) for _ in range(20_000)]
    words += [word + rng.choice(ENDINGS) for word in words[:10_000]]
    check_words(fts, words)


def test_all_short_words_of_a_few_letters_get_the_stem_of_fts5(fts: Fts) -> None:
    check_words(fts, ("".join(letters) for size in range(1, 6) for letters in product("aeysdl", repeat=size)))


def test_texts_of_the_project_and_of_conversations_have_the_tokens_of_fts5(fts: Fts) -> None:
    paths = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/daypack/search/*.py")]
    paths += sorted(DATA.glob("**/*.json"))
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in paths]
    assert len(texts) > 10
    check_texts(fts, [fold(line) for text in texts for line in text.splitlines()])
    check_words(fts, {word for text in texts for word in re.findall("[0-9a-z\x80-\U0010ffff]+", fold(text))})


@settings(deadline=None, max_examples=400)
@given(text=TEXTS)
def test_any_text_has_the_tokens_of_fts5(fts: Fts, text: str) -> None:
    check_texts(fts, [text])
    check_texts(fts, [fold(text)])


@settings(deadline=None, max_examples=200)
@given(text=TEXTS)
def test_a_term_of_a_query_becomes_one_token(fts: Fts, text: str) -> None:
    for term in query_terms(text):
        assert tokens(term) == [stem_token(term)]
        assert [spelled(token) for _, token in fts.terms([term])] == [stem_token(term)]


@pytest.mark.parametrize("size", [1, 2, 3, 63, 64, 65, 66, MAX_BYTES - 1, MAX_BYTES, MAX_BYTES + 1, 3 * MAX_BYTES])
def test_the_limits_of_length_are_those_of_fts5(fts: Fts, size: int) -> None:
    for last in ("ings", "e", "é", "東", "a東"):
        check_texts(fts, [("ba" * size)[: max(0, size - len(last.encode()))] + last])
        check_texts(fts, ["東" * (size // 3) + last])


def test_a_character_may_be_cut_in_half_and_is_no_other_token(fts: Fts) -> None:
    assert fts.terms(["aतing"]) == [(0, "aत".encode()[:-1])]
    assert tokens("aतing") == ["a\\xe0\\xa4"]
    check_texts(fts, ["aतing aत aतs"])


def test_repeated_words_are_repeated_tokens_in_their_order() -> None:
    assert tokens("Painted 2nd\0paintings, of_東京 PAINT") == ["paint", "2nd", "paint", "of", "東京", "paint"]
    assert tokens(" \0-") == []
    assert stem_token("x" * MAX_STEMMED_BYTES + "ing") == "x" * MAX_STEMMED_BYTES + "ing"
