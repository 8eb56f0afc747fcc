"""What can be set about compactions, and what of a model's words never gets through."""

import re
from pathlib import Path
from typing import Any

import pytest
from scripted_endpoint import NOT_FOUND, Endpoint, Reply, Seen, chat, in_turn
from turn.compacting import context_tree, scene
from turn.scenes import stage

from daypack.derived.compaction.with_model import fill
from daypack.derived.raw_history import read_raw
from daypack.derived.template import problems
from daypack.errors import BadConfig, BadInput, ModelMissing
from daypack.llm.completers import open_completer

THINKING = """<thinking>
Okay, let's see. The user wants me to read files directly.
</thinking>
# Context

## Task
<thinking>The user asked about lamps.</thinking>

## Decisions
- I should prompt them to specify the file locations.
- We decided to keep the harbour lamp in src/harbour_0.py because it is cheap.

## Facts

## Pending

## Errors
"""


def choice_of(endpoint: Endpoint) -> str:
    return f"openai:{endpoint.url}/v1#scripted"


def first_request(seen: Seen) -> Reply:
    """Fill the template with the first request that stands in the question."""
    if not seen.path.endswith("/chat/completions"):
        return NOT_FOUND
    request = re.search(r"Fix the \w+ of part \d+", seen.json["messages"][-1]["content"])
    task = request[0] if request else ""
    return chat(f"# Context\n\n## Task\n{task}\n\n## Decisions\n\n## Facts\n\n## Pending\n- [ ] {task}\n\n## Errors\n")


@pytest.mark.requirement("S1-P2")
def test_a_thinking_block_in_a_summary_never_reaches_the_files(home: str) -> None:
    with Endpoint(in_turn(chat(THINKING))) as endpoint, scene(home) as session:
        done = session.compact(model=choice_of(endpoint), keep_tokens=300)
        assert done.changed
        assert done.losses
        assert "keep the harbour lamp" in done.document
        for name, data in context_tree(session).items():
            assert b"thinking>" not in data, name
            assert b"I should prompt" not in data or name == "compaction.json", name
        text = (session.path / "context" / "CONTEXT.md").read_text()
        assert "I should" not in text
        # The model's own words are kept where they can be looked up: in the event.
        assert THINKING in session.compactions[-1].output["texts"]  # pyright: ignore[reportOptionalSubscript]


@pytest.mark.requirement("S1-I1")
def test_model_prompt_and_merge_prompt_are_settings(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Endpoint(first_request) as endpoint:
        monkeypatch.setenv("DAYPACK_COMPACTION_MODEL", choice_of(endpoint) + "?window=4096")
        with scene(home, steps=30) as session:
            own = Path(session.history.layout.prompts)
            own.mkdir(parents=True)
            (own / "compaction.md").write_text("MY PROMPT: {conversation}")
            (own / "merge.md").write_text("MY MERGE: {partials}")
            session.set_budget(100_000)
            done = session.compact(keep_tokens=200)
        assert done.model.startswith("openai:")
        texts = [one["messages"][-1]["content"] for one in endpoint.asked]
    assert any("MY PROMPT: " in text for text in texts)
    assert any("MY MERGE: " in text for text in texts)
    assert not any("Extract facts" in text for text in texts)


def test_a_prompt_without_a_place_for_the_conversation_is_refused_by_name(home: str, tmp_path: Path) -> None:
    (tmp_path / "compaction.md").write_text("Sum it up.")
    with Endpoint(in_turn(chat("x"))) as endpoint, scene(home) as session:
        completer = open_completer(choice_of(endpoint))
        assert completer
        raw = read_raw(session.history, 1, 8, redacting=True)
        with pytest.raises(BadConfig, match="no place") as failure:
            fill(raw, completer, 50_000, str(tmp_path))
    assert "{conversation}" in failure.value.hint


@pytest.mark.requirement("S1-L3", "S1-L3.1")
def test_the_log_is_written_without_a_tool_for_it(home: str) -> None:
    session = stage(home)
    session.append("user", "What is here?")
    turn = session.prepare()
    session.accept({"tool_calls": [{"id": "c1", "name": "ls", "arguments": {"path": "."}}]})
    session.append("tool", "a.py  b.py", tool_call_id="c1")
    session.prepare()
    session.accept("Two files.")
    offered = {tool["function"]["name"] for tool in session.tools()}
    assert offered == {"recall", "search_history"}  # both only read
    assert "log" not in turn.system + turn.quoted
    assert [(one.role, one.text or one.tool_calls[0].name) for one in session.tail(10)] == [
        ("user", "What is here?"),
        ("assistant", "ls"),
        ("tool", "a.py  b.py"),
        ("assistant", "Two files."),
    ]
    written = ["context.turn", "tool.called", "tool.returned", "context.turn"]
    assert [one.type for one in session.events()] == written
    log = Path(session.history.layout.messages).read_text()
    for words in ("What is here?", '"name":"ls"', "a.py  b.py", "Two files."):
        assert words in log


@pytest.mark.requirement("S1-L0", "S1-L2.2")
def test_three_layers_with_a_model_between_them(home: str, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "MEMORY.md").write_text("- The harbour closes at six.\n")
    filled = THINKING.partition("</thinking>\n")[2]
    with Endpoint(in_turn(chat(filled))) as endpoint, scene(home, workspace=str(workspace)) as session:
        before = Path(session.history.layout.messages).read_bytes()
        session.compact(model=choice_of(endpoint), keep_tokens=300)
        turn = session.prepare(budget=6000)
        assert "The harbour closes at six." in turn.quoted
        assert "keep the harbour lamp" in turn.quoted
        assert problems((session.path / "context" / "CONTEXT.md").read_text()) == []
        assert Path(session.history.layout.messages).read_bytes() == before


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_model_that_cannot_be_used_is_refused_also_when_nothing_has_to_leave(home: str, *, dry_run: bool) -> None:
    session = stage(home, compaction_model="none")
    session.append("user", "Hello.")
    wrong: Any
    for wrong in ("nonsense", "", "openai:", 5):
        with pytest.raises(BadConfig, match=r"is not a model choice|names no model"):
            session.compact(model=wrong, dry_run=dry_run)
    with pytest.raises(ModelMissing, match="the model file does not exist"):
        session.compact(model="llama:/no/such.gguf", dry_run=dry_run)
    for wrong in (-1, "40", 2.5, True):
        with pytest.raises(BadInput, match="keep_tokens: must be a number of 0 or more, got"):
            session.compact(keep_tokens=wrong, dry_run=dry_run)
    assert not session.compact(keep_tokens=0, dry_run=dry_run).changed
