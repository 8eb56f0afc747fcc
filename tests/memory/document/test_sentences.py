"""Which sentences the document keeps without a model, and under which heading."""

from collections.abc import Sequence

import pytest

from daypack.memory.document.document import initial_document, merge
from daypack.memory.document.markdown import parse
from daypack.types.memory import RawEntry
from tests.memory.document.sentence_tables import DEVELOPMENT, HELD_OUT, Sample

KEPT, LEFT_OUT = 40, 20
LEAST_RIGHT = 0.9


def learnt(*texts: str, role: str = "user", author: str | None = None) -> dict[str, list[str]]:
    document = merge(initial_document(), [RawEntry(text, role=role, author=author) for text in texts])
    sections = {section.name: [line for line in section.lines if line.strip()] for section in parse(document)}
    return {name: lines for name, lines in sections.items() if lines and name not in ("", "Participants")}


def wrong(samples: Sequence[Sample]) -> list[Sample]:
    return [sample for sample in samples if list(learnt(sample.sentence)) != [sample.heading] * bool(sample.heading)]


@pytest.mark.requirement("S2-R2")
@pytest.mark.parametrize("samples", [DEVELOPMENT, HELD_OUT], ids=["development", "held out"])
def test_nine_sentences_of_ten_are_kept_under_their_heading_or_left_out(samples: list[Sample]) -> None:
    assert len([sample for sample in samples if sample.heading]) == KEPT
    assert len(samples) == len({sample.sentence for sample in samples}) == KEPT + LEFT_OUT
    assert len(wrong(samples)) <= (1 - LEAST_RIGHT) * len(samples), wrong(samples)


def test_the_two_tables_have_no_sentence_in_common() -> None:
    assert not {sample.sentence for sample in DEVELOPMENT} & {sample.sentence for sample in HELD_OUT}


@pytest.mark.requirement("S2-R2")
def test_a_plain_statement_is_kept_in_its_own_words() -> None:
    assert learnt("Maria is the new project manager.", "The API key rotation happens every 90 days.") == {
        "Facts": ["- Maria is the new project manager", "- The API key rotation happens every 90 days"]
    }
    assert learnt("The boat of Ada is blue. Our office is in Porto.", author="Sam") == {
        "Facts": ["- The boat of Ada is blue", "- The office is in Porto"]
    }


@pytest.mark.parametrize(
    "text",
    [
        "Every change request needs a ticket.",
        "The guarantee covers theft and fire.",
        "Each guest brings a dish.",
        "The bell of the chapel rings at seven.",
    ],
)
def test_verbs_that_look_like_nouns_and_rules_for_all_of_a_kind_are_recognised(text: str) -> None:
    assert learnt(text) == {"Facts": [f"- {text.rstrip('.')}"]}


def test_a_person_is_not_listed_by_a_possessive() -> None:
    document = merge(initial_document(), [RawEntry("My daughter Sara's school is in Porto.", role="user")])
    assert "Sara's (" not in document


def test_what_the_speaker_still_has_to_do_is_open_whatever_the_deed() -> None:
    assert list(learnt("We still need to write the harvest report.")) == ["Open tasks"]
    assert learnt("I need to write a poem.") == {}
    assert learnt("Please write a poem.") == {}


def test_a_label_decides_where_a_sentence_goes() -> None:
    assert learnt("TODO: write the release notes.", "Decision: my logo stays green.") == {
        "Decisions": ["- User's logo stays green"],
        "Open tasks": ["- [ ] Write the release notes"],
    }
    assert learnt("Decision: the green logo or the blue one?") == {}


def test_a_labelled_task_is_ticked_when_it_is_done() -> None:
    assert learnt("TODO: renew the domain.", "We have renewed the domain, it is done.") == {}
    both = learnt("TODO: renew the domain.", "TODO: paint the fence.", "I have painted the fence, done.")
    assert both == {"Open tasks": ["- [ ] Renew the domain"]}


def test_what_the_user_asks_to_remember_is_kept_whatever_its_form() -> None:
    assert learnt("Please remember that the spare key is under the mat.") == {
        "Facts": ["- The spare key is under the mat"]
    }
    assert learnt("FYI, the lift is reserved for deliveries.") == {"Facts": ["- The lift is reserved for deliveries"]}


@pytest.mark.requirement("S2-R2")
@pytest.mark.parametrize(
    ("text", "heading", "line"),
    [
        ("The gutter still needs to be cleaned.", "Open tasks", "- [ ] The gutter still needs to be cleaned"),
        ("Karim has to sign my form.", "Open tasks", "- [ ] Karim has to sign User's form"),
        ("Don't forget to post the parcel.", "Open tasks", "- [ ] Post the parcel"),
        ("Every visitor has to wear a badge.", "Facts", "- Every visitor has to wear a badge"),
        ("The team has chosen the smaller hall.", "Decisions", "- The team has chosen the smaller hall"),
        ("Let's pick the oak table.", "Decisions", "- User proposed to pick the oak table"),
        ("The shop won't sell bikes anymore.", "Decisions", "- The shop won't sell bikes anymore"),
        ("Revenue grew by 12 percent.", "Facts", "- Revenue grew by 12 percent"),
    ],
)
def test_obligations_choices_and_amounts_have_their_places(text: str, heading: str, line: str) -> None:
    assert learnt(text) == {heading: [line]}


@pytest.mark.parametrize(
    "text",
    ["I have to say the food was great.", "You have to see that film.", "Does Tom have to go?", "We won't make it."],
)
def test_a_manner_of_speaking_is_no_task_and_no_decision(text: str) -> None:
    assert learnt(text) == {}


def test_what_an_assistant_states_is_not_learnt() -> None:
    assert learnt("Maria is the new project manager. TODO: renew the domain.", role="assistant") == {}


def test_a_pasted_text_is_not_learnt_sentence_by_sentence() -> None:
    pasted = " ".join(f"The {name} valve belongs to the main circuit." for name in "abcdefghijklmnopqrst")
    assert learnt(pasted) == {}


def test_plain_statements_give_way_to_decisions_and_tasks() -> None:
    plain = " ".join(
        f"Hall {name} belongs to the city." for name in ("Alder", "Birch", "Cedar", "Ebony", "Maple", "Olive", "Rowan")
    )
    found = learnt(f"{plain} We decided to rent hall seven. TODO: sign the lease.")
    assert found["Decisions"] == ["- User and others decided to rent hall seven"]
    assert found["Open tasks"] == ["- [ ] Sign the lease"]
    assert len(found["Facts"]) == 6


@pytest.mark.parametrize(
    "text",
    [
        "Implement the following plan:",
        "Please check `rows.py`:",
        "TODO: fix these:",
        "请修改 `rows.py`：",
        "Test cases:",
        "# Update the importer",
        "### Add the docs",
        "Fix the importer\n================",
    ],
)
def test_a_heading_and_an_introduction_of_a_list_are_no_tasks(text: str) -> None:
    assert learnt(f"{text}\n\nThe parser is written in Rust.") == {"Facts": ["- The parser is written in Rust"]}


def test_the_items_below_an_introduction_and_tasks_with_a_colon_within_are_tasks() -> None:
    text = "Implement the following plan:\n- Add the index to orders\n- Drop the old table"
    assert learnt(text) == {"Open tasks": ["- [ ] Add the index to orders", "- [ ] Drop the old table"]}
    assert learnt("Add a header `Accept:`") == {"Open tasks": ["- [ ] Add a header `Accept:`"]}
    assert learnt("Please update the tracker: it is stale.") == {
        "Open tasks": ["- [ ] Update the tracker: it is stale"]
    }
