"""The page of a context document: byte for byte, and never too long."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daypack.memory.document.document import initial_document, merge
from daypack.memory.document.markdown import (
    HEADINGS,
    TRIMMED_CHARS,
    fit_document,
    is_ticked,
    parse,
    render,
    trim_document,
)
from daypack.types.memory import DOCUMENT_MAX_CHARS, RawEntry

PROTECTED = [
    "- Ana",
    "- Sam (Ana's brother)",
    "- We decided on Postgres 16",
    "- [ ] Update the tracker",
    "- [ ] 日本へ行く",
]


def document(facts: int, *, fill: str = "x") -> str:
    lines = "\n".join(f"- fact {number} {fill * 60}" for number in range(facts))
    people, tasks = "\n".join(PROTECTED[:2]), "\n".join(PROTECTED[3:])
    return (
        f"# Memory\n\nI am a helpful agent.\n\n## Participants\n{people}\n\n## Facts\n{lines}\n\n"
        f"## Timeline\n- 1 May 2025 – kick-off\n\n## Decisions\n{PROTECTED[2]}\n\n## Open tasks\n{tasks}\n- [x] old\n"
    )


@pytest.mark.requirement("T7", "S2-R2.1", "S2-R6.1", "X4")
@pytest.mark.parametrize("letter", ["x", "é", "字", "🙂"])
@pytest.mark.parametrize("length", [4999, 5000, 5001])
def test_a_document_is_trimmed_above_5000_code_points_and_only_there(letter: str, length: int) -> None:
    text = document(50, fill=letter)[:100] + "\n## Facts\n" + f"- {letter * 80}\n" * 70
    text = text[:length]
    assert len(text) == length
    trimmed = trim_document(text)
    if length <= DOCUMENT_MAX_CHARS:
        assert trimmed == text
    else:
        assert len(trimmed) <= TRIMMED_CHARS
        assert len(trimmed) > TRIMMED_CHARS - 200  # no more goes than has to


@pytest.mark.requirement("S2-R6.1", "S2-R6.1a", "X4")
def test_the_oldest_lines_of_low_value_go_and_the_core_stays() -> None:
    text = document(80)
    trimmed = trim_document(text)
    assert len(trimmed) <= TRIMMED_CHARS
    assert all(line in trimmed.split("\n") for line in [*PROTECTED, "I am a helpful agent.", "# Memory"])
    assert "- [x] old" not in trimmed
    kept = [line for line in trimmed.split("\n") if line.startswith("- fact")]
    assert kept
    assert kept == [line for line in text.split("\n") if line.startswith("- fact")][-len(kept) :]
    assert [section.name for section in parse(trimmed) if section.name] == list(HEADINGS)


def test_what_stands_under_other_headings_goes_before_facts() -> None:
    text = document(40) + "\n## Diary\n" + "\n".join(f"dear diary {number} {'z' * 60}" for number in range(40))
    trimmed = trim_document(text)
    assert [line for line in trimmed.split("\n") if line.startswith("- fact")] == [
        line for line in text.split("\n") if line.startswith("- fact")
    ]
    assert len(trimmed) <= TRIMMED_CHARS


@pytest.mark.requirement("S2-R6.1a", "X4")
def test_protected_lines_alone_may_be_as_long_as_the_cap() -> None:
    lines = "\n".join(f"- decision {number} {'d' * 70}" for number in range(57))
    text = f"## Facts\n- {'x' * 900}\n\n## Decisions\n{lines}\n"
    assert len(text) > DOCUMENT_MAX_CHARS
    trimmed = trim_document(text)
    assert TRIMMED_CHARS < len(trimmed) <= DOCUMENT_MAX_CHARS
    assert all(line in trimmed for line in lines.split("\n"))


@pytest.mark.requirement("S2-R6.1a")
def test_too_many_protected_lines_are_shortened_oldest_first() -> None:
    lines = [f"- [ ] task {number}: {'word ' * 60}" for number in range(30)]
    trimmed = trim_document("## Open tasks\n" + "\n".join(lines))
    assert len(trimmed) <= TRIMMED_CHARS
    assert all(f"- [ ] task {number}:" in trimmed for number in range(30))
    assert trimmed.split("\n")[-1].strip() == lines[-1].strip()
    assert len(trimmed.split("\n")[1]) <= 120


_LINES = st.sampled_from(
    [
        *("## Facts", "## Participants", "# Memory", "## Own", "Decisions:", "**Open tasks:**", "```", "```mermaid"),
        *(
            "- a fact of 8080",
            "- [ ] 日本",
            "- [x] done",
            "",
            "graph TD",
            "A-->B",
            "  more",
            "text é " * 30,
            "字" * 700,
        ),
        "- " + "y" * 300,
    ]
)
_DOCUMENTS = st.lists(_LINES, max_size=40).map("\n".join)


@pytest.mark.requirement("S2-R6.1", "X4")
@settings(deadline=None)
@given(_DOCUMENTS)
def test_trimming_fits_the_cap_is_idempotent_and_leaves_what_fits(text: str) -> None:
    trimmed = trim_document(text, 1000, 960)
    assert len(trimmed) <= 1000
    assert trim_document(trimmed, 1000, 960) == trimmed
    if len(text) <= 1000:
        assert trimmed == text


@settings(deadline=None)
@given(st.one_of(_DOCUMENTS, st.text(alphabet="#-*[]x \n`a:é\r\u2028")))
def test_reading_and_writing_gives_the_same_bytes(text: str) -> None:
    assert render(parse(text)) == text


def test_headings_are_known_by_several_names_and_not_inside_code() -> None:
    page = parse("intro\n## TASKS ##\n- [ ] a\n**Decisions:**\n- b\n```\n## Facts\n```\n### Team\n- Ana")
    assert [(section.heading, section.name) for section in page] == [
        ("", ""),
        ("## TASKS ##", "Open tasks"),
        ("**Decisions:**", "Decisions"),
        ("### Team", "Participants"),
    ]
    assert is_ticked("* [X] done")
    assert not is_ticked("- [ ] open")


@pytest.mark.requirement("S2-R2.2", "X39")
def test_only_diagrams_of_at_most_ten_nodes_are_written() -> None:
    small = "```mermaid\ngraph TD\nA-->B\n```\n"
    large = "```mermaid\ngraph TD\n" + "\n".join(f"N{at}-->N{at + 1}" for at in range(10)) + "\n```\n"
    unreadable = "```mermaid\nflowchart TD\n A[f(x)] --> B\n```\n"
    head = initial_document()
    assert fit_document(f"{head}{small}{large}{unreadable}end") == f"{head}{small}end"


def test_a_document_without_the_five_headings_is_trimmed_too() -> None:
    text = "\n".join(f"line {number} {'w' * 90}" for number in range(60))
    trimmed = trim_document(text)
    assert len(trimmed) <= TRIMMED_CHARS
    assert trimmed.split("\n")[-1] == text.split("\n")[-1]


def test_a_document_that_grows_from_raw_entries_has_no_code_point_that_is_no_character() -> None:
    grown = merge(initial_document(), [RawEntry("The boat of\0 Ada is\uffff blue.", role="user")])
    assert "- The boat of Ada is blue" in grown
    assert fit_document("# A\0\ufdd0") == "# A"
