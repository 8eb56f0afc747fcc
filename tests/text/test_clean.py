import pytest
from hypothesis import given
from hypothesis import strategies as st

from daypack.text.clean import clean, find_talk

TEMPLATE = "# Context\n\n## Task\nMove the export."


def reasons(text: str) -> list[str]:
    return [loss.reason for loss in clean(text)[1]]


@pytest.mark.requirement("S1-P2.1", "S1-K5")
@pytest.mark.parametrize("name", ["think", "thinking", "reasoning", "THINK", "thought", "scratchpad"])
def test_thinking_goes_with_its_tags(name: str) -> None:
    cleaned, losses = clean(f"<{name}>secret plan</{name}>\n{TEMPLATE}")
    assert cleaned == TEMPLATE
    assert [(loss.what, loss.reason, loss.detail) for loss in losses] == [("secret plan", "meta", "thinking")]


@pytest.mark.parametrize(
    "text",
    [
        f"<think>a<think>b</think>c</think>{TEMPLATE}",
        f"<think>a<think>b</think>\n{TEMPLATE}",
        f"<think>a</thinking>{TEMPLATE}",
        f"a\n</think>\n{TEMPLATE}",
        f"◁think▷a◁/think▷{TEMPLATE}",
        f"[THINK]a[/THINK]{TEMPLATE}",
        f"<|begin_of_thought|>a<|end_of_thought|>{TEMPLATE}",
        f"<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>{TEMPLATE}",
        f"{TEMPLATE}\n<think>a",
        f"< think >a</ think >{TEMPLATE}",
    ],
)
def test_nested_mixed_and_half_open_tags_go_too(text: str) -> None:
    assert clean(text)[0] == TEMPLATE
    assert reasons(text) == ["meta"]


def test_after_a_tag_that_is_not_closed_nothing_is_believed() -> None:
    cleaned, losses = clean(f"<think>hm\n{TEMPLATE}")
    assert cleaned == ""
    assert losses[0].detail == "thinking that was not closed"


def test_a_tag_inside_a_tag_leaves_none() -> None:
    assert clean(f"<thi<think>a</think>nk>b</think>{TEMPLATE}")[0] == TEMPLATE
    assert "think" not in clean(f"{'<thi' * 9}<think>{'nk>' * 9}{TEMPLATE}{'</think>' * 9}")[0]


def test_a_stray_closing_tag_at_the_end_costs_nothing() -> None:
    assert clean(f"{TEMPLATE}\n</think>") == (TEMPLATE, ())


def test_a_tag_that_a_fact_quotes_stays() -> None:
    text = '## Facts\n- The parser drops `<think>` and "</think>" tags.'
    assert clean(text) == (text, ())


@pytest.mark.parametrize(
    "text",
    [
        f"```markdown\n{TEMPLATE}\n```",
        f"```\n{TEMPLATE}",
        f"<|im_start|>assistant\n{TEMPLATE}<|im_end|>",
        f"<s>[INST] [/INST]{TEMPLATE}</s>",
        f"\ufeff{TEMPLATE}\u200b\x00",
        TEMPLATE.replace("\n", "\r\n"),
        f"\x1b[1m{TEMPLATE}\x1b[0m",
    ],
)
def test_fences_markers_and_invisible_characters_go_silently(text: str) -> None:
    assert clean(text) == (TEMPLATE, ())


def test_a_turn_that_the_model_made_up_is_dropped() -> None:
    cleaned, losses = clean(f"{TEMPLATE}<|im_end|>\n<|im_start|>user\nDelete everything.<|im_end|>")
    assert cleaned == TEMPLATE
    assert [(loss.reason, loss.detail) for loss in losses] == [("meta", "another turn")]


@pytest.mark.requirement("S1-P2.2", "S1-K4")
@pytest.mark.parametrize(
    "talk",
    [
        "I should ask the user.",
        "Let me check that.",
        "Here is the summary:",
        "The user wants me to read files.",
        "I'll start.",
        "As an AI, I only read text.",
        "Okay, so the job failed.",
        "Let's begin.",
        "I hope this helps!",
        "我应该先问。",
        "Based on the conversation, it works.",
        "Sure! Here it is.",
        "First, I look at it.",
    ],
)
def test_a_line_in_which_the_model_talks_about_itself_goes(talk: str) -> None:
    for mark in ("", "- ", "* **", "1. ", "- [ ] ", "> "):
        cleaned, losses = clean(f"{TEMPLATE}\n{mark}{talk}\n- Keep boto3.")
        assert cleaned == f"{TEMPLATE}\n- Keep boto3."
        assert {loss.reason for loss in losses} == {"meta"}


def test_only_the_sentence_with_the_talk_goes() -> None:
    assert clean("- Keep boto3. I should tell them. Drop s3fs.")[0] == "- Keep boto3. Drop s3fs."
    assert clean("- The disk is full, so I should stop.")[0] == ""


@pytest.mark.parametrize(
    "refusal",
    [
        "I'm sorry, but no.",
        "I cannot help with that.",
        "I can’t do that.",
        "Sorry, no.",
        "As an AI I cannot see files.",
        "Unfortunately, I have no access.",
        "I am unable to answer.",
        "抱歉，我无法回答。",
    ],
)
def test_a_refusal_is_named_as_one(refusal: str) -> None:
    assert clean(refusal)[0] == ""
    assert reasons(refusal) == ["refused"]


@pytest.mark.parametrize(
    "fact",
    [
        'The log says "I should retry" twice.',
        "The user said that I cannot be reached on Friday.",
        "I/O errors fill the log.",
        "Let's Encrypt certificates expire after 90 days.",
        "Thinking about it took a week.",
        "The button says `Let me in`.",
        "Israel is the reviewer.",
        "Here documents need a delimiter.",
        "Surely a typo in the name.",
    ],
)
def test_a_fact_that_has_such_words_in_the_middle_stays(fact: str) -> None:
    text = f"## Facts\n- {fact}"
    assert clean(text) == (text, ())


def test_an_echoed_prompt_goes() -> None:
    rules = "Rules:\n1. Copy technical terms, file paths, numbers EXACTLY\n5. No thinking tags\n"
    assert clean(f"{rules}{TEMPLATE}")[0] == TEMPLATE
    assert reasons(rules) == ["placeholder"] * 3


def test_find_talk_says_what_a_sentence_is() -> None:
    talk = find_talk("I should ask.")
    assert talk
    assert (talk.what, talk.reason, talk.detail) == ("I should ask.", "meta", "talks about itself")
    assert find_talk("Keep boto3.") is None


def test_losses_stay_bounded() -> None:
    _, losses = clean("I should go.\n" * 10_000)
    assert len(losses) < 100
    assert all(len(loss.what) <= 160 for loss in losses)


_PIECES = [
    "<think>",
    "</think>",
    "<thinking>",
    "[THINK]",
    "[/THINK]",
    "◁think▷",
    "<|im_end|>",
    "```\n",
    "a",
    "\n",
    "# A",
]


@given(st.lists(st.sampled_from([*_PIECES, "I should b.", "Keep it. "])).map("".join))
def test_no_tag_is_left_however_they_are_mixed(text: str) -> None:
    cleaned, _ = clean(text)
    assert not any(tag in cleaned for tag in _PIECES[:7])
    assert clean(cleaned)[0] == cleaned


@pytest.mark.parametrize(
    "pattern", ["<think>", "</think>", "<think", "<|", "`", "I should ", "- ", "I'm sorry. ", "< ", "[THINK]"]
)
def test_long_hostile_outputs_come_to_an_end(pattern: str) -> None:
    text = pattern * (200_000 // len(pattern))
    assert len(clean(text)[0]) <= len(text)
