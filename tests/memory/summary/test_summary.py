"""The one summary of an entry."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daypack.memory.summary.summary import summarise_entry, trim_summary
from daypack.text.literals import literals, occurs
from daypack.types.memory import SUMMARY_MAX_CHARS, About

USER = About(role="user")
DOCUMENT = "# Memory\n\n## Participants\n- Ana (user)\n- Maria: designer\n\n## Facts\n"


@pytest.mark.requirement("S2-X2", "S2-R3.3", "S2-R3.4")
@pytest.mark.parametrize(
    ("raw", "about"),
    [
        ("Hi Sam, our Q3 launch date moved to 17 Aug 2025. Please update the tracker.", USER),
        ('USER: "Hi Sam, our Q3 launch date moved to 17 Aug 2025. Please update the tracker."', None),
    ],
)
def test_the_worked_example(raw: str, about: About | None) -> None:
    expected = "User stated the Q3 launch date moved to 17 Aug 2025 and asked Sam to update the tracker."
    assert summarise_entry(raw, about, None) == expected


@pytest.mark.requirement("S2-R3.2", "S2-R3.3")
@pytest.mark.parametrize(
    ("raw", "about", "summary"),
    [
        ("I moved the launch to 17 Aug", About(author="Sam"), "Sam moved the launch to 17 Aug"),
        ("I'm allergic to nuts", About(author="Sam"), "Sam stated that Sam is allergic to nuts"),
        ("I put mine there.", About(author="Sam"), "Sam said: I put mine there."),
        ("What is my dog's name?", USER, "User asked: What is my dog's name?"),
        ("You should raise `max_connections` to 200.", About(role="assistant"),
         "Assistant stated User should raise `max_connections` to 200."),
        ("Thanks!", USER, "User said: Thanks!"),
        ("I moved it.", None, "I moved it."),
    ],
)  # fmt: skip
def test_who_did_what_is_told_in_the_third_person(raw: str, about: About | None, summary: str) -> None:
    assert summarise_entry(raw, about, None) == summary


@pytest.mark.requirement("S2-R3.2", "S2-R3")
def test_pronouns_are_resolved_with_the_document() -> None:
    assert (
        summarise_entry("She moved to Berlin in 2021.", USER, DOCUMENT) == "Ana stated Maria moved to Berlin in 2021."
    )
    assert summarise_entry("I like her work.", USER, DOCUMENT) == "Ana stated that Ana likes Maria's work."


@pytest.mark.requirement("S2-R3.2")
@pytest.mark.parametrize(
    ("raw", "document"),
    [
        ("She moved to Berlin.", ""),
        ("She moved to Berlin.", "## Participants\n- Maria\n- Tom\n"),  # which of the two?
        ("My boss Eva came. She moved to Berlin.", DOCUMENT),  # somebody else was named before
    ],
)
def test_a_pronoun_that_may_mean_two_stays(raw: str, document: str) -> None:
    assert "she moved to berlin" in summarise_entry(raw, USER, document).lower()


def test_the_role_in_the_document_has_a_name() -> None:
    assert summarise_entry("I moved it.", USER, DOCUMENT) == "Ana moved it."
    assert summarise_entry("Sure. You moved it.", About(role="assistant"), DOCUMENT) == "Assistant stated Ana moved it."


@pytest.mark.parametrize(
    "raw",
    [
        "我把发布日期改到了2025年8月17日。请更新。",
        "Ich habe den Termin auf den 17. August verschoben. Bitte aktualisiere die Liste.",
        "Я перенёс запуск на 17 августа.",
        "発売日は8月17日に変更されました。",
    ],
)
def test_other_languages_are_left_as_they_are(raw: str) -> None:
    assert summarise_entry(raw, USER, DOCUMENT) == raw


def test_filler_goes_in_other_languages_too() -> None:
    assert summarise_entry("你好。发布日期改到了2025年8月17日。", USER, None) == "发布日期改到了2025年8月17日。"


def test_the_output_of_a_tool_is_not_speech() -> None:
    assert summarise_entry("I found 3 files.", About(role="tool"), None) == "I found 3 files."


@pytest.mark.requirement("T7", "X8", "S2-R3.1", "S2-R6.2")
@pytest.mark.parametrize("letter", ["a", "é", "字", "🙂"])
@pytest.mark.parametrize(("length", "kept"), [(511, True), (512, True), (513, False)])
def test_a_summary_is_cut_above_512_code_points_and_only_there(letter: str, length: int, kept: bool) -> None:
    text = letter * length
    trimmed = trim_summary(text)
    if kept:
        assert trimmed == text
    else:
        assert len(trimmed) <= SUMMARY_MAX_CHARS
        assert trimmed.endswith("…")


@pytest.mark.requirement("S2-R6.2", "S2-R6.2a", "S2-R6.2b", "X8")
def test_what_tells_least_goes_first_and_an_ellipsis_says_so() -> None:
    filler = "Thank you so much for all of the help with this. " * 3
    talk = "It was really nice and pleasant to see how everybody felt about all that. " * 7
    data = "The invoice INV-2041 over 1,250 EUR is due on 3 May 2026."
    trimmed = trim_summary(f"{filler}{talk}{data}")
    assert len(trimmed) <= SUMMARY_MAX_CHARS
    assert data in trimmed
    assert "Thank you" not in trimmed
    assert trimmed.endswith(" …")


@pytest.mark.requirement("S2-R6.2", "X8", "S2-R3.4")
def test_a_long_entry_keeps_its_dates_and_ids() -> None:
    raw = "I think it is all quite fine and there is nothing much to say about it. " * 20
    raw += "The ticket OPS-993 moved to 17 Aug 2025."
    summary = summarise_entry(raw, About(author="Sam"), None)
    assert len(summary) <= SUMMARY_MAX_CHARS
    assert "ticket OPS-993 moved to 17 Aug 2025" in summary
    assert summary.endswith("…")


def test_nothing_removed_no_ellipsis() -> None:
    assert "…" not in summarise_entry("I moved the launch to 17 Aug. It is a Sunday.", About(author="Sam"), None)


_TEXTS = st.one_of(
    st.text(max_size=1500),
    st.lists(
        st.sampled_from(
            [
                "I moved it to 8080.",
                "Hi!",
                "my dog",
                "字。",
                "We are",
                "src/app.py",
                '"',
                "\n",
                "Please",
                "you",
                "🙂" * 40,
            ]
        ),
        max_size=120,
    ).map(" ".join),
)
_ABOUTS = st.builds(
    About, author=st.one_of(st.none(), st.text(max_size=80)), role=st.sampled_from([None, "user", "assistant", "tool"])
)


@pytest.mark.requirement("S2-R3.1", "S2-R6.2", "X8")
@settings(deadline=None)
@given(_TEXTS, _ABOUTS, st.sampled_from([None, DOCUMENT]))
def test_whatever_is_said_the_summary_fits_and_is_the_same_again(raw: str, about: About, document: str | None) -> None:
    summary = summarise_entry(raw, about, document)
    assert len(summary) <= SUMMARY_MAX_CHARS
    assert summary == summarise_entry(raw, about, document)
    assert bool(summary.strip()) == bool(raw.strip())
    assert trim_summary(summary) == summary


@pytest.mark.requirement("S2-R3.4")
@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["I moved it to 8080.", "My id is ab-12.", "See src/app.py", "Hi Sam,", "we", "2 dogs!"]))
)
def test_no_literal_of_a_summary_is_made_up(parts: list[str]) -> None:
    raw = " ".join(parts)
    for one in literals(summarise_entry(raw, About(author="Ana"), None)):
        assert occurs(one.text, raw)


@pytest.mark.parametrize(
    "raw",
    [
        "Tom called, she is ill.",
        "My wife isn't allergic, but she doesn't eat meat.",
        "Mum said she won't come.",
        "The new manager quit because he wasn't paid.",
        "Somebody broke in and he took it.",
        "He told her that she is late.",
    ],
)
def test_he_and_she_are_not_taken_for_the_only_one_who_is_known(raw: str) -> None:
    assert "Maria" not in summarise_entry(raw, USER, DOCUMENT)


@pytest.mark.requirement("S2-R3.2")
@pytest.mark.parametrize(
    "raw",
    [
        "My boss said: I don't care about tests.",
        "She said, I am late.",
        "Translate: I am hungry and my feet hurt.",
        "World War I ended in 1918.",
        "If you don't have a key you can't enter the building.",
        "You told me you live in Rome.",
    ],
)
def test_words_of_others_and_words_for_anybody_are_quoted(raw: str) -> None:
    assert summarise_entry(raw, USER, None) == f"User said: {raw}"


@pytest.mark.parametrize(
    ("raw", "summary"),
    [
        ("Plan B is to fly with them.", "User stated Plan B is to fly with them."),
        ("Use by date is 3 May 2026.", "User stated Use by date is 3 May 2026."),
        ("Check that it is open.", "User asked Assistant to check that it is open."),
        ("please put the us format back", "User asked Assistant to put the us format back."),
        ("> I think we should use Mongo\nNo, I disagree.", "User stated that User disagrees."),
        ("```\nI am a comment\n```\nWhy does this fail?", "User asked: Why does this fail?"),
        ("From: Carl\nTo: me\n\nI won't pay you.", "From: Carl; To: me; I won't pay you."),
        ("Thanks! No meat for me. I booked it.", "User said: No meat for me. User booked it."),
        ("I did it. If you have any doubts, do not deploy.",
         "User did it. User said: If you have any doubts, do not deploy."),
        ("My cat is green. No wait, it's teal.", "User stated that User's cat is green. No wait, it's teal."),
    ],
)  # fmt: skip
def test_a_summary_says_what_was_said_and_by_whom(raw: str, summary: str) -> None:
    assert summarise_entry(raw, USER, None) == summary


def test_among_several_people_you_is_nobody_in_particular() -> None:
    document = "# Memory\n\n## Participants\n- Maya\n- Otto\n"
    maya = About(role="user", author="Maya")
    assert summarise_entry("You should call them.", maya, document) == "Maya said: You should call them."
    assert summarise_entry("I called him.", maya, document) == "Maya called him."
    assert summarise_entry("Otto, can you call them?", maya, document) == "Maya asked Otto to call them."
