import pytest
from hypothesis import given
from hypothesis import strategies as st

from daypack.derived.compaction.template_reader import read_filled
from daypack.derived.template import MAX_BULLET_CHARS, MAX_BULLETS, parse, problems, render
from daypack.errors import BadInput
from daypack.types.records import ContextDoc

FULL = ContextDoc(
    "Move the export to S3.",
    ("Keep boto3.", "Raise the timeout to 120 seconds."),
    ("The credentials expire after 12 hours.",),
    ("Write the alert.",),
    ("The upload timed out — the timeout was raised.",),
)
TEXT = """\
# Context

## Task
Move the export to S3.

## Decisions
- Keep boto3.
- Raise the timeout to 120 seconds.

## Facts
- The credentials expire after 12 hours.

## Pending
- [ ] Write the alert.

## Errors
- The upload timed out — the timeout was raised.
"""
EMPTY = "# Context\n\n## Task\n\n## Decisions\n\n## Facts\n\n## Pending\n\n## Errors\n"


@pytest.mark.requirement("S1-C1", "S1-C2", "S1-C3", "S1-C4", "S1-C5", "S1-C6")
def test_the_document_is_written_in_the_shape_of_the_template() -> None:
    assert render(FULL) == TEXT
    assert problems(TEXT) == []
    assert parse(TEXT) == FULL


def test_empty_sections_keep_their_headings() -> None:
    assert render(ContextDoc()) == EMPTY
    assert parse(EMPTY) == ContextDoc()
    assert problems(EMPTY) == []


_NASTY = [
    "# Context",
    "## Facts",
    "- x",
    "- [ ] y",
    "[ ] z",
    "\\# a",
    "\\",
    "# ",
    "[x]",
    "## Task",
    "1. one",
    "> q",
    "—",
]
_TEXT = st.one_of(st.sampled_from(_NASTY), st.text(min_size=1)).map(lambda text: " ".join(text.split())).filter(bool)
_TEXTS = st.lists(_TEXT).map(tuple)
_DOCS = st.builds(ContextDoc, st.one_of(st.just(""), _TEXT), _TEXTS, _TEXTS, _TEXTS, _TEXTS)


@given(_DOCS)
def test_what_was_written_is_read_back_whatever_the_texts_are(doc: ContextDoc) -> None:
    assert parse(render(doc)) == doc


@given(st.builds(ContextDoc, st.text(), *[st.lists(st.text()).map(tuple)] * 4))
def test_no_text_can_break_the_shape(doc: ContextDoc) -> None:
    text = render(doc)
    lines = text.split("\n")
    assert [line for line in lines if line.startswith("#")] == [line for line in EMPTY.split("\n") if line]
    again = parse(text)
    assert render(again) == text
    assert len(again.facts) == len([one for one in doc.facts if one.split()])


@given(st.lists(st.sampled_from([*TEXT.splitlines(), *_NASTY, "", "words"])).map("\n".join))
def test_other_documents_are_refused_or_come_out_as_they_went_in(text: str) -> None:
    try:
        doc = parse(text)
    except BadInput:
        assert problems(text)
    else:
        assert render(doc) == text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        (TEXT.replace("# Context", "# context"), 1),
        (TEXT.replace("## Facts", "## Fact"), 10),
        (TEXT.replace("- Keep", "* Keep"), 7),
        (TEXT.replace("- [ ] ", "- "), 14),
        (TEXT + "\n", 19),
        (TEXT.rstrip("\n"), 18),
        (TEXT.replace("## Errors", "text\n\n## Errors"), 16),
        (TEXT.replace("S3.\n", "S3.\nAnd more.\n"), 4),
    ],
)
def test_an_error_says_at_which_line_the_shape_is_left(text: str, line: int) -> None:
    with pytest.raises(BadInput, match=f"line {line} "):
        parse(text)
    assert problems(text) == [f"line {line} is not in the shape of the template"]


@pytest.mark.requirement("S1-K2")
def test_too_many_too_long_and_more_than_one_sentence_are_problems() -> None:
    many = ContextDoc(facts=tuple(f"Fact {n}." for n in range(MAX_BULLETS + 1)))
    assert problems(render(many)) == ["facts has 11 bullets, more than 10"]
    assert problems(render(ContextDoc(task="One. Two."))) == ["task 1 is more than one sentence"]
    assert problems(render(ContextDoc(pending=("x" * MAX_BULLET_CHARS,)))) == []
    long = ContextDoc(errors=("x" * (MAX_BULLET_CHARS + 1),))
    assert problems(render(long)) == [f"errors 1 has {MAX_BULLET_CHARS + 1} characters, more than {MAX_BULLET_CHARS}"]


def test_a_filled_template_is_read_as_it_is() -> None:
    assert read_filled(TEXT) == (FULL, ())


@pytest.mark.parametrize(
    "heading", ["## To do", "**Next steps**", "Open issues:", "### PENDING ###", "3. Remaining work:", "__Todo__:"]
)
def test_headings_are_known_by_other_names_too(heading: str) -> None:
    doc, losses = read_filled(f"{heading}\n* Write the alert.\n")
    assert (doc, losses) == (ContextDoc(pending=("Write the alert.",)), ())


def test_a_subheading_or_another_heading_opens_no_section() -> None:
    doc, losses = read_filled("## Facts\n- One thing.\n## Weather\n- Rain.\n- Snow.\n")
    assert doc == ContextDoc(facts=("One thing.",))
    assert [(one.what, one.reason, one.detail) for one in losses] == [
        ("Rain.", "unreadable", "outside the template, lines: 2")
    ]


@pytest.mark.parametrize(
    "nothing", ["None", "none.", "N/A", "Nothing", "-", "—", "No errors.", "There were no errors found.", "无"]
)
def test_words_for_nothing_are_dropped_without_a_loss(nothing: str) -> None:
    assert read_filled(f"## Facts\n- One thing.\n## Errors\n- {nothing}\n") == (ContextDoc(facts=("One thing.",)), ())


@pytest.mark.requirement("X35")
@pytest.mark.parametrize(
    "echo", ["[What was discovered?]", "[Important fact discovered]", "What was discovered?", "<fact>", "[ ] [x y]"]
)
def test_an_echoed_placeholder_is_a_loss(echo: str) -> None:
    doc, losses = read_filled(f"## Facts\n- {echo}\n- One thing.\n")
    assert doc == ContextDoc(facts=("One thing.",))
    assert [one.reason for one in losses] == ["placeholder"]


def test_a_bullet_that_begins_with_brackets_is_no_placeholder() -> None:
    assert read_filled("## Errors\n- [E501] Line too long.\n")[0].errors == ("[E501] Line too long.",)


def test_a_bullet_with_several_sentences_becomes_several_bullets_up_to_the_limit() -> None:
    doc, losses = read_filled("## Facts\n- " + " ".join(f"Thing {chr(97 + n) * 3} is here." for n in range(12)))
    assert len(doc.facts) == MAX_BULLETS
    assert [one.reason for one in losses] == ["over_limit", "over_limit"]


def test_a_task_keeps_its_first_sentence() -> None:
    doc, losses = read_filled("## Task\nMove it. Then rest.\n")
    assert doc.task == "Move it."
    assert [(one.what, one.reason) for one in losses] == [("Then rest.", "over_limit")]


def test_repeated_bullets_are_kept_once() -> None:
    doc, losses = read_filled(
        "## Facts\n- The disk is full.\n- the disk is FULL\n- Disk is full!\n## Errors\n- The disk is full."
    )
    assert doc == ContextDoc(facts=("The disk is full.",))
    assert [one.reason for one in losses] == ["repeated"] * 3


def test_order_and_negation_make_another_bullet() -> None:
    facts = ("Anna pays Ben.", "Ben pays Anna.", "Ben never pays Anna.")
    assert read_filled("## Facts\n" + "".join(f"- {one}\n" for one in facts))[0].facts == facts


def test_a_few_bullets_may_differ_in_their_numbers_alone() -> None:
    facts = tuple(f"Port {n} is open." for n in (80, 443, 8080))
    assert read_filled("## Facts\n" + "".join(f"- {one}\n" for one in facts)) == (ContextDoc(facts=facts), ())


def test_losses_stay_bounded() -> None:
    _, losses = read_filled(
        "## Facts\n" + "".join(f"- Thing {chr(97 + n % 26) * (n // 26 + 1)} is here.\n" for n in range(5000))
    )
    assert len(losses) < 100
    assert losses[-1].what.endswith("more")


@given(st.text())
def test_any_text_is_read_into_a_valid_document(text: str) -> None:
    doc, _ = read_filled(text)
    assert problems(render(doc)) == []


_PIECES = [
    "## Task",
    "# Context",
    "**Facts**:",
    "- ",
    "* ",
    "One. Two.",
    "[x]",
    "\n",
    "\n\n",
    "None",
    "{",
    "Errors: x",
    "1. ",
]


@given(st.lists(st.sampled_from(_PIECES)).map("".join))
def test_any_mixture_of_pieces_is_read_into_a_valid_document(text: str) -> None:
    doc, losses = read_filled(text)
    assert problems(render(doc)) == []
    assert doc != ContextDoc() or losses or "None" in text
