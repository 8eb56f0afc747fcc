"""A model reads in chunks that fit it; merging ends, what is cut off counts for nothing, and its words are kept."""

import os
from pathlib import Path

import pytest
from derived.compaction.conversations import raw

from daypack.derived.compaction import with_model as modelled
from daypack.derived.compaction.with_model import ANSWER_TOKENS, MAX_CHUNKS, MAX_ROUNDS, fill, transcript
from daypack.errors import ModelFailed
from daypack.llm.completion.port import Completion, Finish, Prompt
from daypack.prompts import SHIPPED_PROMPTS
from daypack.types.compaction import FilledTemplate
from daypack.types.history import Message, Text, ToolCall

PROMPTS = Path(SHIPPED_PROMPTS)


class Model:
    """Answers every question with what a function makes of it."""

    name = "scripted"

    def __init__(self, answer: object, window: int = 4000, finish: Finish = "stop") -> None:
        self._answer = answer
        self.window_tokens = window
        self._finish: Finish = finish
        self.prompts: list[Prompt] = []

    def complete(self, prompt: Prompt) -> Completion:
        self.prompts.append(prompt)
        text = self._answer(prompt.user) if callable(self._answer) else self._answer
        if isinstance(text, Exception):
            raise text
        return Completion(str(text), self._finish, self.name)

    def close(self) -> None:
        """Nothing is open."""

    @property
    def merges(self) -> int:
        return sum("<partials>" in one.user for one in self.prompts)


def long_raw(messages: int = 60, words: int = 60):
    lines = [("user", f"Lamp {at} is in hall {at}. " + f"Hall {at} is dark. " * words) for at in range(messages)]
    return raw(*lines)


def template(*facts: str, task: str = "Lamp 1 is in hall 1.") -> str:
    listed = "".join(f"- {one}\n" for one in facts)
    return f"# Context\n\n## Task\n{task}\n\n## Decisions\n\n## Facts\n{listed}\n## Pending\n\n## Errors\n"


def told(prompt: str) -> str:
    """Fill the template with the first lamp of a chunk, or with all lamps of the templates to merge."""
    body = prompt.rsplit("<partials>", maxsplit=1)[-1] if "<partials>" in prompt else prompt
    numbers = sorted({int(part.split(" ")[0]) for part in body.split("Lamp ")[1:]})
    kept = numbers[:1] if "<conversation>" in prompt else numbers[:3]
    return template(*(f"Lamp {at} is in hall {at}." for at in kept), task=f"Lamp {numbers[0]} is in hall {numbers[0]}.")


def test_a_short_range_is_one_question_and_its_answer_is_kept() -> None:
    model = Model(template("Hall 1 is dark."))
    filled = fill(raw(("user", "Lamp 1 is in hall 1. Hall 1 is dark.")), model, 32_000)
    assert [(one.section, one.text) for one in filled.bullets] == [
        ("task", "Lamp 1 is in hall 1."),
        ("facts", "Hall 1 is dark."),
    ]
    assert filled.outputs == (template("Hall 1 is dark."),)
    assert filled.unread == 0
    [prompt] = model.prompts
    assert prompt.max_tokens == ANSWER_TOKENS
    assert prompt.grammar


@pytest.mark.parametrize("window", [2500, 4000, 9000])
def test_every_chunk_fits_the_window_and_none_is_forgotten_silently(window: int) -> None:
    model = Model(told, window)
    history = long_raw()
    filled = fill(history, model, 32_000)
    asked = [one for one in model.prompts if "<conversation>" in one.user]
    assert 1 < len(asked) <= MAX_CHUNKS
    for prompt in asked:
        assert len(prompt.user) <= 3 * (window - ANSWER_TOKENS)
    read = sum(one.user.count(" user] ") for one in asked)
    assert read + filled.unread == len(history.messages)
    assert f"[{len(history.messages)} user]" in asked[-1].user  # the newest are read, whatever is left out


def test_a_message_that_is_longer_than_the_window_is_shown_by_its_ends() -> None:
    model = Model(told, 2500)
    fill(raw(("user", "Lamp 1 is first. " + "x" * 200_000 + " Lamp 2 is last.")), model, 32_000)
    [prompt] = model.prompts
    assert len(prompt.user) <= 3 * (2500 - ANSWER_TOKENS)
    assert "Lamp 1 is first." in prompt.user
    assert "Lamp 2 is last." in prompt.user


def test_a_long_message_in_parts_is_shortened_as_well() -> None:
    model = Model(told, 2500)
    message = Message(role="user", content=(Text("Lamp 1 is first. " + "x" * 200_000),))
    fill(raw(message), model, 32_000)
    assert len(model.prompts[0].user) <= 3 * (2500 - ANSWER_TOKENS)


def test_a_call_with_very_many_arguments_does_not_break_the_window() -> None:
    model = Model(template(), 2500)
    calls = tuple(ToolCall(f"c{at}", "write", '{"text": "' + "Lamp 1 " * 300 + '"}') for at in range(40))
    fill(raw(("user", "Lamp 1."), Message(role="assistant", tool_calls=calls)), model, 32_000)
    assert all(len(one.user) <= 3 * (2500 - ANSWER_TOKENS) for one in model.prompts)


def test_merging_ends_after_few_rounds_and_keeps_what_history_says() -> None:
    model = Model(told)
    filled = fill(long_raw(), model, 32_000)
    chunks = len(model.prompts) - model.merges
    assert chunks > 4
    assert model.merges <= chunks
    assert filled.bullets
    for one in filled.bullets:
        number = one.text.split(" ")[1]
        assert one.text == f"Lamp {number} is in hall {number}."
    assert len([one for one in filled.bullets if one.section == "task"]) == 1


def test_a_round_that_makes_nothing_smaller_is_the_last() -> None:
    def growing(prompt: str) -> str:
        if "<partials>" in prompt:
            return template(*(f"Lamp {at} is in hall {at}." for at in range(10)))
        return told(prompt)

    model = Model(growing)
    filled = fill(long_raw(), model, 32_000)
    chunks = len(model.prompts) - model.merges
    assert 0 < model.merges <= chunks // 2
    assert filled.bullets


def test_merging_never_takes_more_rounds_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modelled, "MAX_ROUNDS", 1)
    model = Model(told)
    filled = fill(long_raw(), model, 32_000)
    chunks = len(model.prompts) - model.merges
    assert model.merges <= (chunks + 1) // 2
    assert filled.bullets
    assert MAX_CHUNKS.bit_length() <= MAX_ROUNDS


def test_what_was_cut_off_counts_for_nothing_and_is_told() -> None:
    filled = fill(
        raw(("user", "Lamp 1 is in hall 1.")), Model(template("Lamp 1 is in hall 1."), finish="length"), 32_000
    )
    assert filled.bullets == ()
    [loss] = filled.losses
    assert (loss.reason, loss.what) == ("unfinished", "messages:1")
    assert len(filled.outputs) == 1


def test_a_merge_that_fails_leaves_the_newest_of_its_parts() -> None:
    def failing(prompt: str) -> object:
        if "<partials>" in prompt:
            return ModelFailed("gone", operation="complete", place="there", hint="")
        return told(prompt)

    filled: FilledTemplate = fill(long_raw(), Model(failing), 32_000)
    assert filled.bullets


def test_one_chunk_that_fails_does_not_cost_what_the_others_said() -> None:
    asked: list[int] = []

    def sometimes(prompt: str) -> object:
        asked.append(1)
        if len(asked) == 3:
            return ModelFailed("busy", operation="complete", place="there", hint="")
        return told(prompt)

    filled = fill(long_raw(), Model(sometimes), 32_000)
    assert filled.bullets
    assert filled.outputs


def test_a_model_that_is_dead_fails_as_a_whole() -> None:
    dead = ModelFailed("dead", operation="complete", place="there", hint="")
    with pytest.raises(ModelFailed):
        fill(long_raw(), Model(dead), 32_000)


@pytest.mark.parametrize(
    ("reader", "name"), [(8_000, "compaction-small"), (64_000, "compaction"), (1_000_000, "compaction-large")]
)
def test_readers_of_different_size_have_their_own_prompt(reader: int, name: str) -> None:
    model = Model(template())
    fill(raw(("user", "Lamp 1.")), model, reader)
    words = (PROMPTS / f"{name}.md").read_text()
    assert model.prompts[0].user == words.replace("{conversation}", "[1 user] Lamp 1.")


def test_braces_and_prompts_in_a_conversation_stay_what_they_are() -> None:
    model = Model(template())
    fill(raw(("user", "Write {conversation} and {partials} and {x}.")), model, 64_000)
    assert "[1 user] Write {conversation} and {partials} and {x}." in model.prompts[0].user
    assert os.linesep in model.prompts[0].user


def test_results_and_calls_are_shown_by_their_ends() -> None:
    call = ToolCall("a", "bash", '{"command": "' + "y" * 3000 + '"}')
    said = raw(
        ("user", "Run it."),
        Message(role="assistant", content="I run it.", tool_calls=(call,)),
        Message(role="tool", content="begin " + "z" * 5000 + " end", tool_call_id="a"),
    )
    shown = transcript(said, 10_000)
    assert shown.startswith("[1 user] Run it.\n\n[2 assistant] I run it.\ncalls bash ")
    assert len(shown) < 1200
    assert "begin" in shown
    assert shown.endswith(" end")
