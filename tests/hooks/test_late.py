"""Hosts that take texts with prompts only: the start of a session and a compaction are told with the next prompt."""

import json
from pathlib import Path
from typing import Any

import pytest

from daypack.hooks import dispatch
from daypack.hooks.intake import take_in
from daypack.hooks.recap.writing import write_recap
from daypack.memory.project import project_memory
from daypack.memory.project.memory import USER
from daypack.memory.tools import open_memory
from tests.hooks.coding_session import CodingSession

RULE = "Never call time.sleep in this project, always use retry_with_backoff."


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CodingSession:
    def requested(*_: object) -> None: ...

    monkeypatch.setattr(take_in, "request", requested)
    return CodingSession(tmp_path, host="gemini")


def told(work: CodingSession, event: str, **fields: Any) -> str:
    output = dispatch.answer(work.hook(event, **fields), work.home)
    return json.loads(output)["hookSpecificOutput"]["additionalContext"] if output else ""


def ask(work: CodingSession, prompt: str = "Go on with the importer, please.") -> str:
    return told(work, "UserPromptSubmit", prompt=prompt)


def remember(work: CodingSession) -> None:
    memory = project_memory(work.home, work.project)
    assert memory
    with open_memory(home=work.home.root, uid=work.home.uid, user=USER) as memories:
        memories.put_context(memory, "# Project\n\nJobs are started by Quartzkeeper.\n")


def compact(work: CodingSession) -> None:
    work.user(RULE)
    work.agent("I will.")
    work.summary("<state_snapshot>Nothing.</state_snapshot>")
    work.agent("On we go.")
    write_recap(work.session, work.project)


def test_the_first_prompt_after_a_start_carries_the_document_once(work: CodingSession) -> None:
    remember(work)
    assert told(work, "SessionStart", source="startup") == ""
    assert "Quartzkeeper" in ask(work)
    assert ask(work) == ""


def test_a_session_that_is_resumed_is_not_told_again(work: CodingSession) -> None:
    remember(work)
    told(work, "SessionStart", source="startup")
    ask(work)
    told(work, "SessionStart", source="resume")
    assert ask(work) == ""


def test_without_a_start_a_prompt_carries_no_document(work: CodingSession) -> None:
    remember(work)
    assert ask(work) == ""


def test_a_compaction_is_told_with_the_next_prompt_once(work: CodingSession) -> None:
    told(work, "SessionStart", source="startup")
    assert ask(work) == ""
    compact(work)
    assert f"- {RULE}" in ask(work)
    assert ask(work) == ""
    work.user("Another one.")
    compact(work)
    assert f"- {RULE}" in ask(work)


def test_after_a_compaction_the_document_is_told_again_when_the_session_is_resumed_in_a_new_window(
    work: CodingSession,
) -> None:
    remember(work)
    told(work, "SessionStart", source="startup")
    assert "Quartzkeeper" in ask(work)
    compact(work)
    told(work, "SessionStart", source="resume")
    assert f"- {RULE}" in ask(work)


def test_a_new_session_gets_the_document_and_excerpts_in_one_text(work: CodingSession, tmp_path: Path) -> None:
    remember(work)
    memory = project_memory(work.home, work.project)
    assert memory
    with open_memory(home=work.home.root, uid=work.home.uid, user=USER) as memories:
        memories.add_entry(memory, "The staging database runs on db-staging-17.internal with the port 6543.")
        memories.await_consistency(memory)
    told(work, "SessionStart", source="startup")
    text = ask(work, "On which host and port does the staging database run?")
    assert "Quartzkeeper" in text
    assert "db-staging-17.internal" in text
