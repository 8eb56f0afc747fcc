"""A model's summary is accepted only if the entry supports it."""

import pytest
from memory.scripted_completer import DOCUMENT, PROMPTS, RAW, Scripted

from daypack.llm.completion.port import Finish
from daypack.memory.summary.summary import summarise_entry
from daypack.memory.summary.with_model import summarise_with
from daypack.types.memory import SUMMARY_MAX_CHARS, About

USER = About(role="user")
PLAIN = summarise_entry(RAW, USER, "")


def summarise(answer: str, finish: Finish = "stop") -> str:
    return summarise_with(Scripted(answer, finish=finish), PROMPTS.summary_prompt, RAW, USER, "")


def test_a_summary_that_was_said_is_taken_over_and_cleaned() -> None:
    good = "User told Sam that the Q3 launch date moved to 17 Aug 2025."
    assert summarise(good) == good
    assert summarise(f"<think>hm</think>Summary: {good}") == good
    assert summarise(f'"{good}"') == good


@pytest.mark.parametrize(
    ("answer", "finish"),
    [
        ("User told Sam that the Q3 launch date moved to 18 Aug 2025.", "stop"),  # nobody said 18
        ("User told Sam that the Q3 launch date did not move to 17 Aug 2025.", "stop"),
        ("A completely different matter entirely was discussed yesterday evening.", "stop"),
        ("I'm sorry, I can't help with that.", "stop"),
        ("User told Sam that the Q3 launch date moved", "length"),
        ("", "stop"),
    ],
)
def test_a_summary_that_nobody_said_is_not(answer: str, finish: Finish) -> None:
    assert summarise(answer, finish) == PLAIN


def test_a_model_that_fails_costs_nothing_but_time() -> None:
    assert summarise_with(Scripted(), PROMPTS.summary_prompt, RAW, USER, "") == PLAIN


def test_a_summary_that_is_too_long_is_trimmed() -> None:
    assert len(summarise("The Q3 launch date moved to 17 Aug 2025. " * 40)) <= SUMMARY_MAX_CHARS


def test_a_model_gets_only_the_block_of_add_entry() -> None:
    model = Scripted("x")
    summarise_with(model, PROMPTS.summary_prompt, RAW, USER, DOCUMENT)
    assert "### TOOL: add_entry" in model.asked[0].system
    assert RAW in model.asked[0].user
    assert DOCUMENT in model.asked[0].user
