"""The context document: what it begins as, and what lasts of raw entries."""

import inspect

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from daypack.memory.document.document import initial_document, is_placeholder, merge, without_summary
from daypack.memory.document.markdown import HEADINGS, parse
from daypack.types.memory import DOCUMENT_MAX_CHARS, PLACEHOLDER, Entry, RawEntry

EMPTY = initial_document()


def said(text: str, role: str | None = "user", author: str | None = None, at: str | None = None) -> RawEntry:
    return RawEntry(text, author=author, role=role, at=at)


def lines(document: str, heading: str) -> list[str]:
    return [line for one in parse(document) if one.name == heading for line in one.lines if line.strip()]


def learnt(*texts: str, document: str = EMPTY) -> dict[str, list[str]]:
    merged = merge(document, [said(text) for text in texts])
    return {heading: lines(merged, heading) for heading in HEADINGS if lines(merged, heading)}


@pytest.mark.requirement("X3", "S2-X1", "S2-R2")
def test_a_memory_begins_with_headings_and_a_persona() -> None:
    assert len(EMPTY) < 200
    assert not is_placeholder(EMPTY)
    assert [section.name for section in parse(EMPTY) if section.name] == list(HEADINGS)
    persona = "I am a helpful customer-support agent. Ready to greet customer."
    assert initial_document(f" {persona}\n").split("\n")[2] == persona
    assert len(initial_document("word " * 3000)) < DOCUMENT_MAX_CHARS


@pytest.mark.requirement("X1", "S2-R7.1a")
def test_the_placeholder_is_compared_exactly_and_known_in_three_forms() -> None:
    assert len(PLACEHOLDER) == 134
    assert is_placeholder(PLACEHOLDER)
    assert is_placeholder("NEW MEMORY – init context")
    assert is_placeholder(msgspec.json.encode({"context": PLACEHOLDER}).decode())
    for other in (f"{PLACEHOLDER} ", PLACEHOLDER[:-1], f"{PLACEHOLDER}\n- a", "", "{}", f'["{PLACEHOLDER}"]', EMPTY):
        assert not is_placeholder(other)
    assert not is_placeholder(msgspec.json.encode({"a": PLACEHOLDER, "b": "more"}).decode())


@pytest.mark.requirement("S2-R2")
def test_the_five_classes_of_lasting_knowledge_have_their_places() -> None:
    assert learnt(
        "Hi, my name is Ana.",
        "I'm allergic to nuts.",
        "The API listens on port 8080.",
        "The kick-off is on 3 May 2026.",
        "We decided to go with Postgres 16.",
        "Never commit to main.",
        "Please send the report to Tom.",
        "I need to renew my passport.",
        "My brother Tom is a nurse.",
    ) == {
        "Participants": ["- Ana (user)", "- Tom (Ana's brother)"],
        "Facts": ["- Ana is allergic to nuts", "- The API listens on port 8080", "- Ana's brother Tom is a nurse"],
        "Timeline": ["- 3 May 2026 – The kick-off is on 3 May 2026"],
        "Decisions": [
            "- Ana and others decided to go with Postgres 16",
            "- Ana asked Assistant to never commit to main",
        ],
        "Open tasks": ["- [ ] Send the report to Tom", "- [ ] Renew Ana's passport (Ana)"],
    }


def test_authors_take_part_and_their_days_are_dated_by_when_they_spoke() -> None:
    talk = [
        said("I went to a pottery class yesterday.", None, "Mel", "2023-05-08T13:56:00Z"),
        said("Wow, sounds great!", None, "Caro", "2023-05-08T13:57:00Z"),
    ]
    document = merge(EMPTY, talk)
    assert lines(document, "Participants") == ["- Mel", "- Caro"]
    assert lines(document, "Timeline") == ["- 2023-05-08 – Mel went to a pottery class yesterday"]


@pytest.mark.requirement("S2-R2")
@pytest.mark.parametrize(
    "text",
    [
        "Hi there, how are you?",
        "What is the port of the API?",
        "Thanks, that's great!",
        "It is on port 8080.",  # what is?
        "Maybe we could use Postgres 16?",
        "Explain decorators in Python 3.11.",
        "I'm trying to get version 3.11 to work.",
        "```\nport = 8080\n```",
        "2025-05-08T10:00:00 ERROR timeout after 30s",
        '<note id="1f3a9c02" name="memory">\nThe API listens on port 8080.\n</note 1f3a9c02>',
        "🙂",
        "",
    ],
)
def test_what_does_not_last_leaves_the_document_as_it_is(text: str) -> None:
    assert merge(EMPTY, [said(text)]) == EMPTY


@pytest.mark.parametrize(
    "text",
    ["Python was made in 1991.", "You should use port 8080.", "Let's use Heron's formula with 6 cm.", "I am a model."],
)
def test_what_an_assistant_explains_is_not_knowledge(text: str) -> None:
    assert merge(EMPTY, [said(text, "assistant")]) == EMPTY


def test_tools_and_systems_say_nothing_that_lasts() -> None:
    assert merge(EMPTY, [said("My name is Bob.", "tool"), said("We decided on tabs.", "system")]) == EMPTY


@pytest.mark.requirement("S2-X3")
def test_tentative_becomes_confirmed_in_place() -> None:
    before = "# Launch\n\n• 17 Aug 2025 – tentative Q3 launch\n• own line\n"
    after = merge(before, [said("Hi Sam, our Q3 launch date moved to 17 Aug 2025.")])
    assert after == before.replace("tentative", "**confirmed**")
    assert merge(after, [said("Hi Sam, our Q3 launch date moved to 17 Aug 2025.")]) == after


@pytest.mark.requirement("S2-X3", "S2-R5.3")
@pytest.mark.parametrize(
    ("first", "second", "heading", "line"),
    [
        ("The Q3 launch is on 3 Aug 2025.", "The Q3 launch moved to 17 Aug 2025.", "Timeline",
         "- 17 Aug 2025 – The Q3 launch moved to 17 Aug 2025"),
        ("The API listens on port 8080.", "The API now listens on port 9090.", "Facts",
         "- The API now listens on port 9090"),
        ("I live in Berlin.", "I moved to Paris.", "Facts", "- User moved to Paris"),
        ("My favourite colour is blue.", "My favourite colour is green.", "Facts",
         "- User's favourite colour is green"),
        ("I work at Acme.", "I no longer work at Acme.", "Facts", "- User no longer works at Acme"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("together", [True, False])
def test_an_update_takes_the_place_of_what_it_updates(
    first: str, second: str, heading: str, line: str, together: bool
) -> None:
    own = "- a line of somebody else"
    document = EMPTY.replace(f"## {heading}\n", f"## {heading}\n{own}\n")
    entries = [said(first), said("The moon is 384,400 km away."), said(second)]
    merged = document
    for batch in [entries] if together else [[one] for one in entries]:
        merged = merge(merged, batch)
    if heading == "Timeline" and not together:
        assert lines(merged, heading) == [own, line]
    assert [one for one in lines(merged, heading) if one.startswith(line[:8])] == [line]
    assert own in lines(merged, heading)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The API listens on port 8080.", "The API listens on port 9090."),
        ("Ana is allergic to 2 drugs.", "Ana is not allergic to 2 drugs."),
        ("Ana is 30 years old.", "Tom is 30 years old."),
        ("The budget of Acme is 500 EUR.", "The budget of Umbrella is now 900 EUR."),
    ],
)
def test_alike_is_not_the_same_without_a_word_of_change(first: str, second: str) -> None:
    found = learnt(first, second)
    assert len(found["Facts"]) == 2


def test_nothing_is_said_twice() -> None:
    assert learnt(
        "The API listens on port 8080.", "So the API listens on port 8080!", "The port 8080 is what API listens on."
    ) == {"Facts": ["- The API listens on port 8080"]}
    assert len(learnt("We decided on Postgres 16.", "We have decided on Postgres 16.")["Decisions"]) == 1


@pytest.mark.parametrize(
    ("answer", "role", "ticked"),
    [
        ("I've updated the tracker.", "assistant", True),
        ("Done!", "assistant", True),
        ("Tracker is updated.", "user", True),
        ("I have not updated the tracker yet.", "assistant", False),
        ("I will update the tracker.", "assistant", False),
        ("I sent the invoice.", "assistant", False),
    ],
)
def test_a_task_is_ticked_when_it_is_said_to_be_done(answer: str, role: str, ticked: bool) -> None:
    asked = said("Please update the tracker.")
    document = merge(EMPTY, [asked])
    assert lines(document, "Open tasks") == ["- [ ] Update the tracker"]
    done = merge(document, [asked, said(answer, role)])
    assert lines(done, "Open tasks") == [f"- [{'x' if ticked else ' '}] Update the tracker"]
    assert merge(done, [asked, said(answer, role)]) == done


def test_a_task_that_is_done_in_the_same_breath_is_not_written_down() -> None:
    assert merge(EMPTY, [said("Please update the tracker."), said("Done.", "assistant")]) == EMPTY


def test_a_task_that_is_asked_for_again_is_open_again() -> None:
    document = EMPTY.rstrip("\n") + "\n- [x] Update the tracker\n"
    assert lines(merge(document, [said("Please update the tracker.")]), "Open tasks") == ["- [ ] Update the tracker"]


def test_what_somebody_else_wrote_stays_byte_for_byte() -> None:
    own = "Intro  \n\n## Facts ##\n* one\n\t* nested\n\n## My own heading\n1) x\n\n\n<!-- note -->\n"
    merged = merge(own, [said("The API listens on port 8080.")])
    assert merged == own.replace("\t* nested\n", "\t* nested\n* The API listens on port 8080\n")


def test_a_missing_section_is_added_at_the_end() -> None:
    assert merge("- hello", [said("I'm allergic to nuts.")]) == "- hello\n\n## Facts\n- User is allergic to nuts\n"


def test_other_languages_are_kept_as_they_were_said() -> None:
    found = learnt("我住在柏林。", "我们决定用 Postgres 16。", "Ich heiße Anna und ich wohne in Köln.")
    assert found["Facts"] == ["- User: 我住在柏林", "- User: Ich heiße Anna und ich wohne in Köln"]
    assert found["Decisions"] == ["- User: 我们决定用 Postgres 16"]


@pytest.mark.requirement("S2-R1", "S2-R4", "X10")
def test_no_summary_can_get_into_a_document() -> None:
    assert "summary" not in RawEntry.__struct_fields__
    hints = inspect.signature(merge).parameters
    assert [str(one.annotation) for one in hints.values()][1].endswith("Sequence[daypack.types.memory.RawEntry]")
    entry = Entry(
        entry_id="e", memory_id="m", seq=1, created_at="2025-01-01T00:00:00Z", raw_entry="Hello.", role="user",
        summary="User stated the port is 9999 and decided on MySQL 8.",
    )  # fmt: skip
    assert merge(EMPTY, [without_summary(entry)]) == EMPTY


@pytest.mark.requirement("S2-R6.1", "S2-R5.3")
def test_a_document_that_would_grow_too_long_is_trimmed() -> None:
    facts = "\n".join(f"- fact {number} of the {'x' * 60}" for number in range(64))
    document = EMPTY.replace("## Facts\n", f"## Facts\n{facts}\n")
    merged = merge(document, [said(f"Gadget {number} has id GX-{number}.") for number in range(8)])
    assert len(merged) <= DOCUMENT_MAX_CHARS
    assert "GX-7" in merged
    assert "- fact 0 " not in merged


_SENTENCES = st.sampled_from(
    [
        *(
            "My name is Ana.",
            "I'm allergic to nuts.",
            "The API listens on port 8080.",
            "The API now listens on port 9.",
        ),
        *("We decided on Postgres 16.", "We moved to MySQL 8.", "Please update the tracker.", "Done.", "I updated it."),
        *("I updated the tracker.", "My wife Eva is a nurse.", "She moved to Rome in 2020.", "The launch is on 3 May."),
        *(
            "The launch moved to 4 May.",
            "I live in Oslo.",
            "I moved to Bergen.",
            "Never push to main.",
            "Hi Tom!",
            "字。",
        ),
        *("I need to call Bob.", "I called Bob.", "You should rest.", "My favourite food is rice.", "我住在柏林。"),
    ]
)
_ENTRIES = st.lists(
    st.builds(
        RawEntry,
        st.lists(_SENTENCES, min_size=1, max_size=3).map(" ".join),
        author=st.sampled_from([None, "Ana", "Tom"]),
        role=st.sampled_from([None, "user", "assistant"]),
        at=st.sampled_from([None, "2025-05-08"]),
    ),
    max_size=8,
)


@settings(deadline=None, max_examples=300)
@given(_ENTRIES)
@example([RawEntry("Hi.", author="Ana"), RawEntry("Hi.", author="Tom"), RawEntry("She moved to Rome.", author="Ana")])
@example([RawEntry("My name is Ana."), RawEntry("Hi.", author="Tom"), RawEntry("She moved in 2020.", role="user")])
def test_the_same_entries_a_second_time_change_nothing(entries: list[RawEntry]) -> None:
    merged = merge(EMPTY, entries)
    assert merge(merged, entries) == merged


@pytest.mark.requirement("S2-R6.1a")
@settings(deadline=None)
@given(_ENTRIES, _ENTRIES)
def test_merging_loses_no_participant_decision_or_task(before: list[RawEntry], after: list[RawEntry]) -> None:
    first = merge(EMPTY, before)
    second = merge(first, after)
    for heading in ("Participants", "Decisions", "Open tasks"):
        assert len(lines(second, heading)) >= len(lines(first, heading))
    names = [line.removeprefix("- ").partition(" (")[0] for line in lines(first, "Participants")]
    assert all(any(name in line for line in lines(second, "Participants")) for name in names)
    assert len(second) <= DOCUMENT_MAX_CHARS


@pytest.mark.parametrize(
    "text",
    [
        "Book club meets every Thursday with us.",
        "We haven't decided on a date.",
        "If we decided to move to AWS it would cost more.",
        "In the story, I was born in 1820 and I live in Paris.",
        "Write a poem in which I am a bird and you are the sky.",
        "> I live in Paris.\nWhat do you think?",
        "From: Carl\nTo: me\n\nI live in Paris.",
        "Run them please.",
    ],
)
def test_what_nobody_says_of_himself_is_not_learnt(text: str) -> None:
    assert learnt(text) == {}


def test_a_statement_that_begins_like_an_order_is_no_task() -> None:
    assert "Open tasks" not in learnt("Order number is 4411.", "Call center hours changed to 9-5.")


def test_a_day_that_is_only_known_from_when_it_was_said_is_dated() -> None:
    merged = merge(EMPTY, [said("My daughter Lena turned 7 last week.", at="2025-05-08T18:00:00Z")])
    assert lines(merged, "Timeline") == ["- 2025-05-08 – User's daughter Lena turned 7 last week"]


def test_what_an_assistant_says_was_agreed_stands_there_as_its_words() -> None:
    merged = merge(EMPTY, [said("We agreed on ISO dates.", role="assistant")])
    assert lines(merged, "Decisions") == ["- Assistant: We agreed on ISO dates"]


def test_a_task_is_done_when_somebody_says_so_in_his_own_words() -> None:
    document = merge(EMPTY, [said("Please remind me to call the movers on Friday.")])
    assert lines(document, "Open tasks") == ["- [ ] Call the movers on Friday (User)"]
    done = merge(document, [said("I called the movers.")])
    assert lines(done, "Open tasks") == ["- [x] Call the movers on Friday (User)"]
    document = merge(EMPTY, [said("Set retries to 3 and open a merge request.")])
    asked = said("Set retries to 3 and open a merge request.")
    done = merge(document, [asked, said("Done, I opened !482.", role="assistant")])
    assert lines(done, "Open tasks") == ["- [x] Set retries to 3 and open a merge request"]
    partly = merge(document, [asked, said("Done, but not the request.", role="assistant")])
    assert lines(partly, "Open tasks") == ["- [ ] Set retries to 3 and open a merge request"]


def test_facts_in_other_languages_are_learnt() -> None:
    assert learnt("我对花生过敏，千万别推荐含花生的餐厅。") == {
        "Facts": ["- User: 我对花生过敏，千万别推荐含花生的餐厅"]
    }
    assert learnt("Ich bin allergisch gegen Nüsse.") == {"Facts": ["- User: Ich bin allergisch gegen Nüsse"]}
    assert learnt("Er endet am 30.06.2026.") == {}  # nobody knows what ends
