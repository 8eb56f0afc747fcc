"""What the words of a sentence tell."""

import pytest

from daypack.text.cues.cues import Cues, find_cues, is_acknowledgement
from daypack.text.cues.phrases import ENGLISH, FRENCH, GERMAN, SPANISH, UNSPACED


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Let's use SQLite instead of Postgres.", "decisions"),
        ("We decided to keep the old endpoint.", "decisions"),
        ("From now on every migration gets a test.", "decisions"),
        ("The root cause is a stale lock file.", "facts"),
        ("It turns out the port is 8081.", "facts"),
        ("My name is Ada and I live in Turin.", "facts"),
        ("We still need to update the changelog.", "pending"),
        ("TODO: write the migration.", "pending"),
        ("Please add a flag for that.", "request"),
        ("Never commit to main.", "order"),
        ("So please don't touch the schema.", "order"),
        ("We could use Redis for that.", "doubt"),
        ("Let me check the config.", "talk"),
        ("Good luck with the race!", "chatter"),
        ("The parser is fixed.", "done"),
        ("Wir haben uns entschieden, SQLite zu verwenden.", "decisions"),
        ("Die Ursache ist eine falsche Adresse.", "facts"),
        ("Die Doku ist noch offen.", "pending"),
        ("Verwende keine Tabs.", "order"),
        ("Nous avons décidé de garder PostgreSQL.", "decisions"),
        ("J'habite à Lyon.", "facts"),
        ("Il reste à écrire les tests.", "pending"),
        ("Decidimos usar PostgreSQL para los datos.", "decisions"),
        ("El problema es el puerto del servidor.", "facts"),
        ("La documentación está pendiente.", "pending"),
        ("我们决定使用 PostgreSQL。", "decisions"),
        ("原因是端口错误。", "facts"),
        ("文档还没写。", "pending"),
        ("SQLiteを採用することに決定しました。", "decisions"),
        ("原因は古い設定でした。", "facts"),
        ("テストはまだです。", "pending"),
    ],
)
def test_a_cue_tells_what_a_sentence_is_for(text: str, kind: str) -> None:
    assert getattr(find_cues(text), kind) >= 0.7, find_cues(text)


def test_a_sentence_without_cues_tells_nothing() -> None:
    assert find_cues("Lorem ipsum dolor sit amet") == Cues()
    assert find_cues("") == Cues()


def test_a_phrase_for_the_beginning_counts_only_there() -> None:
    assert find_cues("Use tabs.").order > 0
    assert find_cues("And please use tabs.").order > 0
    assert find_cues("The tools they use are old.").order == 0


def test_words_inside_identifiers_are_no_cues() -> None:
    assert find_cues("hidden_by_default").decisions == 0
    assert find_cues("todolist").pending == 0


@pytest.mark.parametrize(
    "text", ["Should we use X?", "用哪个版本？", "Is that so?)", "We use X, right? :-)", "これですか"]
)
def test_a_question_is_known_by_its_end(text: str) -> None:
    assert find_cues(text).asks


@pytest.mark.parametrize("text", ["See https://a.example/?q=1 for it.", "It works."])
def test_a_question_mark_inside_an_address_asks_nothing(text: str) -> None:
    assert not find_cues(text).asks


@pytest.mark.parametrize(
    "text", ["It does not work", "never", "kein Port", "sans erreur est le but", "不能用", "動かない"]
)
def test_a_not_is_heard_in_every_language(text: str) -> None:
    assert find_cues(text).denied == 1.0


def test_words_of_one_language_are_no_cues_in_another() -> None:
    assert find_cues("The car went to Rome and the others went home.").facts == 0  # "car" is French for because
    assert find_cues("Work on bead 7.").request == 1.0  # "on" is a French word too


@pytest.mark.parametrize(
    "text", ["ok", "Yes, please!", "continue", "thanks!!", "go ahead", "Danke", "好的", "はい", "", "👍"]
)
def test_an_acknowledgement_asks_for_nothing(text: str) -> None:
    assert is_acknowledgement(text)


@pytest.mark.parametrize("text", ["fix the tests", "yes, but use port 8080", "继续写文档的第二章"])
def test_a_request_is_no_acknowledgement(text: str) -> None:
    assert not is_acknowledgement(text)


@pytest.mark.parametrize("table", [ENGLISH, GERMAN, FRENCH, SPANISH, UNSPACED])
def test_every_line_of_a_table_can_be_read(table: str) -> None:
    lines = [line for line in table.splitlines() if line and not line.startswith("    ")]
    for line in lines:
        head, _, phrases = line.partition(": ")
        kind, _, weight = head.partition(" ")
        assert kind in Cues._fields
        assert 0 < float(weight) <= 1
        assert phrases.strip(" ,")
