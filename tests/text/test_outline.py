"""The outline of a text: its names in order, each once, with the line numbers the text shows, in a bounded length."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daypack.text.outline import names_in, outline

LISTING = "\n".join(
    [
        "   430→func apply(repo_root string)",
        "   431→    return load_config(repo_root)",
        "   432→}",
    ]
)
WORDS = st.sampled_from(
    ["src/app.py", "load_config", "UserModel", "https://example.org/a", "v2.4.1", "12:", "plain", "words", "\n", "\t7|"]
)
TEXTS = st.lists(WORDS, max_size=60).map(" ".join)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (LISTING, "430 repo_root 431 load_config"),
        ("app/models.py:12: class UserModel:", "12 app/models.py UserModel"),
        ("12\tdef read_rows(path):", "12 read_rows"),
        ("see https://example.org/guide and README.md", "https://example.org/guide README.md"),
        ("nothing here but plain words", ""),
        ("", ""),
    ],
)
def test_names_are_listed_in_order_with_the_line_numbers_that_the_text_shows(text: str, names: str) -> None:
    assert outline(text, 1000) == names


def test_a_name_is_listed_where_it_first_occurs() -> None:
    assert outline("read_rows\nwrite_rows\nread_rows again\n", 1000) == "read_rows write_rows"


def test_quoted_code_and_escapes_are_no_names() -> None:
    assert [name for name in names_in(r'"def run(x)" and "a\nb_c" and run_all') if " " in name or "\\" in name] == []
    assert "run_all" in names_in("then run_all")


def test_too_many_names_are_spread_over_the_whole_text() -> None:
    text = "\n".join(f"{number}: name_{number}" for number in range(1000))
    listed = [int(word[5:]) for word in outline(text, 600).split() if word.startswith("name_")]
    assert listed == sorted(listed)
    assert listed[0] < 100
    assert listed[-1] > 900
    assert any(400 < number < 600 for number in listed)


@given(TEXTS, st.integers(0, 300))
def test_an_outline_keeps_its_length_and_says_nothing_that_the_text_does_not(text: str, most: int) -> None:
    shown = outline(text, most)
    assert len(shown) <= most
    assert "\n" not in shown
    for word in shown.split():
        assert word in text


@given(TEXTS, st.integers(0, 300))
def test_an_outline_that_fits_has_every_name(text: str, most: int) -> None:
    whole = outline(text, 10_000)
    assert set(names_in(text)) <= set(whole.split())
    if len(whole) < most:
        assert outline(text, most) == whole
