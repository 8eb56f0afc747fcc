"""A line of a model's document is accepted only if an entry or the former document supports it."""

import pytest
from memory.scripted_completer import DOCUMENT, PROMPTS, RAW, Scripted

from daypack.memory.document.document import merge
from daypack.memory.document.with_model import merge_with
from daypack.memory.keeper import Keeper
from daypack.memory.tools import Memories
from daypack.types.memory import RawEntry


def test_a_model_gets_only_the_block_of_put_context() -> None:
    model = Scripted("x")
    merge_with(model, PROMPTS.context_prompt, DOCUMENT, [RawEntry(RAW, role="user")])
    assert "### TOOL: put_context" in model.asked[0].system
    assert "### TOOL: get_context" not in model.asked[0].system


def test_a_document_keeps_what_was_said_and_loses_what_was_made_up() -> None:
    answer = """# Memory
## Participants
- Ana (user)
- Sam
## Facts
- Sam has 3 dogs
## Timeline
- 17 Aug 2025 – Q3 launch
- 18 Aug 2025 – Q3 launch party
## Decisions
- Ana and others decided on tabs
## Open tasks
- [ ] Call Bob
"""
    entries = [RawEntry(RAW, role="user")]
    merged = merge_with(Scripted(answer), PROMPTS.context_prompt, DOCUMENT, entries)
    assert "- 17 Aug 2025 – Q3 launch\n" in merged
    assert "18 Aug" not in merged
    assert "dogs" not in merged
    assert "I am a helpful agent." in merged


@pytest.mark.requirement("S2-R6.1a")
def test_a_model_cannot_drop_what_must_be_kept() -> None:
    answer = "## Participants\n- Sam\n## Timeline\n- 17 Aug 2025 – Q3 launch\n"
    merged = merge_with(Scripted(answer), PROMPTS.context_prompt, DOCUMENT, [RawEntry(RAW, role="user")])
    for line in ("- Ana (user)", "- Ana and others decided on tabs", "- [ ] Call Bob", "- 17 Aug 2025 – Q3 launch"):
        assert line in merged.split("\n")


def test_a_task_that_is_done_may_be_ticked_by_the_model() -> None:
    answer = DOCUMENT.replace("[ ]", "[x]")
    merged = merge_with(Scripted(answer), PROMPTS.context_prompt, DOCUMENT, [RawEntry("I called Bob.", role="user")])
    assert "- [x] Call Bob" in merged
    assert "- [ ] Call Bob" not in merged


@pytest.mark.parametrize("answer", ["", "Sure, here is nothing.", "no headings at all"])
def test_an_answer_that_is_no_document_is_not_taken(answer: str) -> None:
    entries = [RawEntry(RAW, role="user")]
    assert merge_with(Scripted(answer), PROMPTS.context_prompt, DOCUMENT, entries) == merge(DOCUMENT, entries)


def test_what_does_not_fit_the_window_is_read_without_the_model() -> None:
    model = Scripted("## Facts\n- x")
    entries = [RawEntry("word " * 9000, role="user")]
    assert merge_with(model, PROMPTS.context_prompt, DOCUMENT, entries) == merge(DOCUMENT, entries)
    assert model.asked == []


def test_a_keeper_with_a_model_asks_it_for_summaries_and_when_it_writes(memories: Memories, memory_id: str) -> None:
    document = "## Timeline\n- 17 Aug 2025 – Q3 launch\n"
    model = Scripted("User told Sam that the Q3 launch date moved to 17 Aug 2025.", document)
    keeper = Keeper(memories, memory_id, completer=model)
    keeper.prompts_folder = ""
    added = keeper.observe("user", RAW)
    assert added is not None
    assert added.summary == "User told Sam that the Q3 launch date moved to 17 Aug 2025."
    keeper.finish()
    assert "- 17 Aug 2025 – Q3 launch\n" in memories.get_context(memory_id).content
    assert len(model.asked) == 2
