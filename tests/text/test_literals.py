from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daypack.text.literals import MAX_LITERAL_CHARS, MAX_QUOTED_CHARS, FoundLiteral, literals, occurs, places


def kinds(text: str) -> list[tuple[str, str]]:
    return [(found.kind, found.text) for found in literals(text)]


_NUMBERS = (
    "0|42|3.14|1,000|1,234,567.89|50%|12ms|1.1GB|$12.50|€9|1e-5|3/5|21:10|21:10:20.5|2026-11-15|11/15/2026"
    "|2026-11-15T21:10:20.123Z|2026-11-15 21:10:20"
)
_NAMES = (
    "snake_case camelCase GitHub SCREAMING_CASE __init__ os.path.join CVE-2024-12345 ISSUE-123 #42 3f9a2b1c 0xFF "
    "550e8400-e29b-41d4-a716-446655440000 --dry-run -v $HOME ${TOKEN} me@example.com 127.0.0.1:8080 Qwen3-1.7B Q4_K_M "
    "x86_64 run() example.com"
)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/hosts",
        "src/app.py",
        "./run.sh",
        "../lib/x",
        "~/notes.md",
        "README.md",
        "Makefile.am/x",
        ".env",
        ".github/workflows/ci.yml",
        "src/**/*.py",
        "*.toml",
        "C:\\Users\\me\\a.txt",
        ".\\build\\run.bat",
        "src\\daypack\\a.py",
        "@scope/package",
        "données/café.csv",
        "archive.tar.gz",
        "tests/text/",
    ],
)
def test_paths_of_all_kinds_are_found_whole(path: str) -> None:
    assert kinds(f"Look at {path}, please.") == [("path", path)]
    assert kinds(f"Look at {path}.") == [("path", path)]
    assert kinds(f"看{path}，谢谢") == [("path", path)]


@pytest.mark.parametrize(
    "number",
    _NUMBERS.split("|"),
)
def test_numbers_keep_their_signs_separators_and_units(number: str) -> None:
    assert kinds(f"It was {number}, then.") == [("number", number)]
    assert kinds(f"It was {number}.") == [("number", number)]


@pytest.mark.parametrize(
    "name",
    _NAMES.split(),
)
def test_identifiers_are_found_whole(name: str) -> None:
    assert kinds(f"We use {name}, now.") == [("id", name)]


@pytest.mark.parametrize("version", ["1.2.3", "v1.2.3", "1.2.3-rc1", "v2", "2026.10.11549"])
def test_versions_are_no_numbers(version: str) -> None:
    assert kinds(f"Needs {version}.") == [("version", version)]


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("See https://example.com/a.b?c=1#d.", "https://example.com/a.b?c=1#d"),
        ("(http://localhost:8080/x)", "http://localhost:8080/x"),
        ("https://en.wikipedia.org/wiki/A_(b), then", "https://en.wikipedia.org/wiki/A_(b)"),
        ("git clone ssh://git@host/repo.git now", "ssh://git@host/repo.git"),
        ("见https://example.com/路。", "https://example.com/"),
    ],
)
def test_an_address_ends_before_the_punctuation_of_its_sentence(text: str, url: str) -> None:
    assert kinds(text)[0] == ("url", url)


def test_the_line_of_a_path_is_a_number_of_its_own() -> None:
    assert kinds("src/app.py:12 and b.py:30:5") == [
        ("path", "src/app.py"),
        ("number", "12"),
        ("path", "b.py"),
        ("number", "30"),
    ]


@pytest.mark.parametrize("quotes", ['""', "''", "“”", "‘’", "「」", "『』", "«»"])
def test_quoted_names_are_given_without_their_quotation_marks(quotes: str) -> None:
    assert kinds(f"Call it {quotes[0]}Export late{quotes[1]} then") == [("quoted", "Export late")]


def test_what_alone_stands_in_quotation_marks_keeps_its_kind() -> None:
    assert kinds('"src/a.py" `b.py` "42" `pip install x`') == [
        ("path", "src/a.py"),
        ("path", "b.py"),
        ("number", "42"),
        ("id", "pip install x"),
    ]


def test_apostrophes_and_long_quotes_are_no_names() -> None:
    assert kinds("don't say it isn't so") == []
    assert kinds(f'"{"word " * MAX_QUOTED_CHARS}"') == []


def test_plain_prose_has_no_literals() -> None:
    text = "We agreed, and/or hoped: keep it read-only (e.g. i.e. etc.) **bold** - yes/no. U.S. Then what? -- N/A"
    assert kinds(text) == []


def test_a_call_is_known_by_its_name() -> None:
    assert kinds("run_export() and run()") == [("id", "run_export"), ("id", "run()")]


def test_escaped_line_breaks_end_a_word() -> None:
    assert kinds(r"done\nsrc/a.py\tb_c") == [("path", "src/a.py"), ("id", "b_c")]


def test_words_that_are_data_are_passed_over() -> None:
    assert kinds("a/" * MAX_LITERAL_CHARS) == []


@pytest.mark.parametrize(
    ("literal", "source"),
    [
        ("3", "30"),
        ("3", "13"),
        ("3", "3.5"),
        ("3", "1.3"),
        ("300", "1,300"),
        ("1", "1,300"),
        ("50", "50%"),
        ("10", "21:10"),
        ("15", "2026-11-15"),
        ("a.py", "aa.py"),
        ("a.py", "src/a.py"),
        ("src/a", "src/a.py"),
        ("src/a.py", "src/a.pyc"),
        ("src", "src/a.py"),
        ("export", "run_export"),
        ("ISSUE-12", "ISSUE-123"),
        ("1.2.3", "1.2.3.4"),
        ("https://x.io/a", "https://x.io/a/b"),
        ("", "anything"),
        ("Keep", "keep"),
    ],
)
def test_a_part_of_a_longer_word_is_not_an_occurrence(literal: str, source: str) -> None:
    assert not occurs(literal, source)
    assert not occurs(literal, f"so {source}, then")


@pytest.mark.parametrize(
    ("literal", "source"),
    [
        ("3", "3, 4"),
        ("3", "(3)"),
        ("3", "x=3."),
        ("12", "a.py:12:5"),
        ("a.py", '"a.py":'),
        ("a.py", "a.py."),
        ("src/a.py", "src/a.py:12"),
        ("src", "src/ has it"),
        ("Export late", "the 'Export late' alert"),
        ("src/a.py", r"x\nsrc/a.py\n"),
        ("a.py", "请看a.py文件"),
        ("a", "ba a"),
    ],
)
def test_an_occurrence_may_touch_punctuation(literal: str, source: str) -> None:
    assert occurs(literal, source)


def test_places_gives_every_occurrence() -> None:
    assert list(places("a.py", "a.py aa.py a.py")) == [0, 11]


_WORDS = [
    "src/a.py",
    "a.py:12",
    "42",
    "1,000",
    "50%",
    "snake_case",
    "camelCase",
    "v1.2.3",
    "https://x.io/a?b=1",
    "the",
    "we",
    "--flag",
    "`code`",
    '"a name"',
    "$HOME",
    "#7",
    "21:10",
    "2026-11-15",
    "run()",
    "e.g.",
    "文件",
    "*.py",
    "…",
]


@given(st.lists(st.tuples(st.sampled_from(_WORDS), st.sampled_from([" ", ", ", "\n", ". ", " (", ") ", ": ", "; "]))))
def test_what_is_found_in_a_text_occurs_in_it(words: list[tuple[str, str]]) -> None:
    text = "".join(word + sign for word, sign in words)
    for found in literals(text):
        assert occurs(found.text, text), (found, text)


@given(st.text(alphabet=st.sampled_from("ab1_./\\:,-\"'`$%@~*#() \n“”文A{}")))
def test_literals_stand_where_they_say_in_order_and_apart(text: str) -> None:
    found = literals(text)
    assert all(isinstance(one, FoundLiteral) and one.text == text[one.start : one.stop] and one.text for one in found)
    assert all(one.stop <= other.start for one, other in pairwise(found))


_PATTERNS = [
    "a",
    "/",
    "a/",
    ".",
    '"',
    "`a",
    "https://",
    "https://.,",
    "1,000",
    "1:",
    "-",
    "*",
    "a\\",
    "${A",
    "a@",
    "\\n",
    "1.1.",
    "(a",
    "Ab",
    "$",
    "a b ",
    "C:\\",
    "x://a(",
    "'a ",
    "0x",
    "a.b@",
    "#1",
    "'",
    "“a",
    "ab://",
    "\\",
    "{",
]


@pytest.mark.parametrize("pattern", _PATTERNS)
def test_long_hostile_texts_come_to_an_end(pattern: str) -> None:
    text = pattern * (300_000 // len(pattern))
    assert sum(len(one.text) for one in literals(text)) <= len(text)
