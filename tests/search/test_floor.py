"""The relevance floor: what part of a query an entry must account for, in memories of any size and language."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from daypack.search.floor import (
    EXAMINED,
    NAME,
    WHOLE,
    QueryWords,
    Similarity,
    read_query,
    relevant,
    strictness,
)
from daypack.search.indexing import Doc
from daypack.search.lexical import Hit, Lexical

TOPICS = ("garden", "kitchen", "bicycle", "invoice", "harbour", "violin", "tunnel", "meadow", "printer", "lantern")
VERBS = ("painted", "sold", "repaired", "measured", "forgot", "described", "borrowed", "cleaned", "moved", "found")


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Lexical]:
    index = Lexical(str(tmp_path / "index.db"))
    yield index
    index.close()


def add(index: Lexical, *texts: str) -> None:
    # A group each: the entries are no neighbours.
    index.add(Doc(number, text, group=str(number)) for number, text in enumerate(texts, index.newest + 1))


def fill(index: Lexical) -> None:
    add(
        index,
        *(f"Tessa {verb} the {colour} {topic}." for colour in ("old", "new") for topic in TOPICS for verb in VERBS),
    )


def weights(query: str) -> dict[str, float]:
    return read_query(query).weights


def found(index: Lexical, query: str) -> list[int]:
    return [hit.id for hit in relevant(index.search(query, limit=EXAMINED))]


@pytest.mark.requirement("S2-T9")
def test_a_question_about_something_else_gets_nothing(index: Lexical) -> None:
    fill(index)
    assert found(index, "When was the violin repaired?")
    assert found(index, "Which hotel in Lisbon did Ingrid recommend for the old conference?") == []


def test_one_rare_word_in_common_is_not_enough_for_a_long_question(index: Lexical) -> None:
    fill(index)
    add(index, "The conference was dull.")
    assert found(index, "Which hotel near the station did Ingrid book for the conference dinner?") == []
    assert found(index, "How was the conference?") == [201]


@pytest.mark.parametrize("query", ["violin", "violin?", "Tessa", "the violin of Tessa"])
def test_a_short_query_needs_no_more_than_its_words(index: Lexical, query: str) -> None:
    fill(index)
    assert found(index, query)


def test_an_id_is_found_by_itself(index: Lexical) -> None:
    fill(index)
    add(index, "Ticket ABC-4711 is closed.")
    assert found(index, "ABC-4711") == found(index, "what became of ABC-4711?") == [201]
    assert found(index, "what became of XYZ-9000?") == []


@pytest.mark.parametrize("entries", [1, 3, 20])
def test_a_small_memory_answers_by_few_words(index: Lexical, entries: int) -> None:
    add(
        index,
        "The user prefers a dark theme.",
        *[f"The {topic} {verb}." for topic, verb in zip(TOPICS, VERBS, strict=True)][: entries - 1],
    )
    assert found(index, "Which theme does the user like in the editor?") == [1]
    assert found(index, "How far is it to the moon?") == []


@pytest.mark.parametrize(
    ("texts", "asked", "foreign"),
    [
        (
            ("我住在巴黎，去年搬到这里。", "我的狗叫小白。", "数据库端口是5433。"),
            "我的狗叫什么名字？",
            "明天会下雨吗？",
        ),
        (("昨日、京都で抹茶を飲みました。", "会議は金曜日です。"), "会議は何曜日ですか。", "新しい電車はどこ。"),
        (("Ich wohne in Lyon.", "Mein Hund heißt Bruno."), "Wie heißt mein Hund?", "Wann fährt der Zug?"),
        (("J'habite à Lyon.", "Mon chien s'appelle Bruno."), "Comment s'appelle mon chien ?", "Quand part le train ?"),
        (("Мой пёс Бруно спит.", "Порт базы данных 5433."), "Какой порт базы данных?", "Когда уходит поезд?"),
    ],
)
def test_other_languages_have_a_floor_too(index: Lexical, texts: tuple[str, ...], asked: str, foreign: str) -> None:
    add(index, *texts)
    assert len(found(index, asked)) == 1
    assert found(index, foreign) == []


def test_a_long_message_is_judged_by_its_best_passage(index: Lexical) -> None:
    fill(index)
    add(index, "The retry limit of the uploader is seven.")
    request = (
        "Please refactor the parser so that every token keeps its column, rename the visitor methods after the nodes, "
        "and add a benchmark for deeply nested expressions. "
    )
    assert len(weights(request)) < WHOLE
    assert found(index, request + request) == []
    question = "Before that, tell me why the uploader reached its retry limit again this morning. "
    assert found(index, request + question + request) == [201]


def test_the_limit_of_a_search_does_not_change_whether_there_is_an_answer(index: Lexical) -> None:
    fill(index)
    hits = index.search("Which hotel did Tessa book?", limit=100)
    assert relevant(hits[:EXAMINED]) == relevant(hits)[:EXAMINED]


def test_hits_that_share_nothing_with_the_query_do_not_accompany_a_relevant_one() -> None:
    hits = [Hit(number, 0, 0, 1.0, {}, relevance) for number, relevance in enumerate((0.2, 1.0, 0.6, 0.0))]
    assert [hit.id for hit in relevant(hits)] == [1, 2]
    assert relevant(hits[:1]) == relevant([]) == []


def test_names_and_numbers_weigh_more_and_words_of_asking_less() -> None:
    terms = weights("Could you list what Ingrid saw in Lisbon after meeting 4711 people?")
    assert terms["ingrid"] == terms["lisbon"] == terms["4711"] == NAME
    assert terms["list"] < terms["saw"] < terms["ingrid"]


@pytest.mark.parametrize(
    "name",
    [
        "Eternal Sunshine of the Spotless Mind",
        "C. S. Lewis",
        "Dr. Seuss",
        "North Carolina",
        "Coca-Cola",
        "3 June, 2023",
    ],
)
def test_a_name_of_several_words_weighs_as_much_as_one(name: str) -> None:
    terms = weights(f"has Ingrid seen {name} before?")
    assert sum(terms.values()) == pytest.approx(NAME + 1.0 + NAME)  # Ingrid, seen, the name


def test_the_first_word_of_a_sentence_is_no_name() -> None:
    assert weights("Painting is fun. Violins are loud.") == dict.fromkeys(("painting", "fun", "violins", "loud"), 1.0)


def test_words_that_only_other_entries_contain_are_no_evidence() -> None:
    words = QueryWords(read_query("violin old"), [("violin", 5), ("old", 90)], [], chunks=100, entries=100)
    assert words.rate(0, 0) == 0
    assert words.rate(0b11, 0) > words.rate(0b01, 0b10) > words.rate(0b01, 0) > words.rate(0, 0b01) > 0
    assert QueryWords(read_query(""), [], [], chunks=1, entries=1).rate(1, 0) == 0


def test_rare_words_and_names_say_more_than_common_ones() -> None:
    query = read_query("the violin of Tessa is old")
    counts = [("violin", 2), ("tessa", 2), ("old", 900)]
    words = QueryWords(query, counts, [], chunks=1000, entries=1000)
    violin, tessa, old = (words.information(1 << number) for number in range(3))
    assert words.information(0) == 0
    assert 0 < old < 1 < violin < tessa
    assert words.information(0b111) == pytest.approx(violin + tessa + old)


@pytest.mark.parametrize("entries", [1, 3, 12])
def test_words_of_a_small_index_say_something_even_if_all_entries_have_them(entries: int) -> None:
    words = QueryWords(read_query("violin tunnel"), [("violin", entries)], ["tunnel"], chunks=entries, entries=entries)
    assert words.information(1) > 2


def test_a_hit_has_the_information_of_its_own_words(index: Lexical) -> None:
    fill(index)
    add(index, "The conservatory of Riga restored a viola da gamba.")
    best, *others = index.search("Who restored the viola da gamba of the conservatory? Tessa?", limit=5)
    assert best.information > 10
    assert all(hit.information < best.information / 2 for hit in others)


def test_the_floor_rises_with_the_memory_up_to_its_full_height() -> None:
    heights = [strictness(entries) for entries in (0, 1, 10, 50, 100, 100_000)]
    assert heights == sorted(heights)
    assert 0 < heights[0] < 0.2
    assert heights[-2:] == [1, 1]


def test_similarity_is_compared_with_that_of_the_entries_to_each_other() -> None:
    apart, alike = Similarity(2_000, 0.1, 0.1), Similarity(2_000, 0.7, 0.05)
    assert apart.rate(0.5, 1_000) > 1 > alike.rate(0.75, 1_000)
    assert Similarity().rate(0.45, 3) > 1 > Similarity().rate(0.45, 1_000)
