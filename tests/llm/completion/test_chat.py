"""Thinking is switched off where a model would think."""

import pytest

from daypack.llm.completion.chat import can_think, chat_messages
from daypack.llm.completion.port import Prompt


@pytest.mark.parametrize(
    ("model", "template", "thinks"),
    [
        ("llama:Qwen3-1.7B-Q4_K_M.gguf", "", True),
        ("mine.gguf", "{% if enable_thinking is false %}", True),
        ("gemma-3-1b", "{{ messages }}", False),
    ],
)
def test_a_thinking_model_is_known_by_its_name_or_its_template(model: str, template: str, thinks: bool) -> None:
    assert can_think(model, template) is thinks


def test_the_word_that_stops_it_is_at_the_end_of_the_question_only() -> None:
    assert chat_messages(Prompt("Be brief.", "Why?"), thinks=True) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Why?\n/no_think"},
    ]
    assert chat_messages(Prompt("", "Why?"), thinks=False) == [{"role": "user", "content": "Why?"}]
