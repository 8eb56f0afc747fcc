"""Before an edit: what was decided about the file, once in a window, and nothing that the window has."""

import json
from pathlib import Path
from typing import Any

import pytest
from hooks.hook_process import HookProgram, event

from daypack.hooks.call import HookCall
from daypack.hooks.dispatch import answer
from daypack.hooks.file_decisions.before_edit import MAX_TOKENS, before_edit, edited_paths
from daypack.hooks.file_decisions.index import DecisionIndex, FileDecision, write_index
from daypack.hooks.file_decisions.updating import update_decisions
from daypack.hooks.recap.writing import write_recap
from daypack.memory.project.memory import decisions_file
from daypack.text.estimate import estimate_tokens
from tests.hooks.coding_session import NAME, CodingSession

RULE = "In shop/retry.py, never retry a refused payment, because the bank counts it as fraud."
OTHER = "0b7e5d1c-7d54-4a0f-9d0a-3f6f4f7b2a10"


@pytest.fixture
def earlier(tmp_path: Path) -> CodingSession:
    """A session that is over."""
    return CodingSession(tmp_path)


@pytest.fixture
def work(earlier: CodingSession) -> CodingSession:
    """The session that edits, in the same project."""
    return CodingSession(earlier.root, OTHER)


def take_in(work: CodingSession) -> None:
    write_recap(work.session, work.project)
    update_decisions(work.session, work.project, work.home)


def edit(work: CodingSession, path: str, **fields: Any) -> HookCall:
    return work.hook("PreToolUse", tool_name="Edit", tool_input={"file_path": f"{work.project.top}/{path}"}, **fields)


def text_before(work: CodingSession, path: str) -> str:
    found = before_edit(edit(work, path), work.home)
    return found.text if found else ""


def put(work: CodingSession, *decisions: FileDecision, **fields: Any) -> None:
    write_index(decisions_file(work.home, work.project), DecisionIndex(decisions=decisions, **fields))


def decision(text: str, *files: str, number: int = 1, **fields: Any) -> FileDecision:
    known: dict[str, Any] = {"kind": "decision", "at": f"2026-11-{number:02}T09:00:00Z", "session": f"codex/{NAME}"}
    return FileDecision(files=files, text=text, seq=number, **known | fields)


def test_a_decision_of_an_earlier_session_is_added_with_its_date_its_source_and_the_command_to_read_more(
    earlier: CodingSession, work: CodingSession
) -> None:
    seq = earlier.user(RULE)
    take_in(earlier)
    text = text_before(work, "shop/retry.py")
    assert f"- 2026-11-17 standing rule of the user, {NAME[:8]} messages:{seq}: {RULE}" in text
    assert f"`daypack recall {NAME[:8]} messages:{seq} --agent claude-code`" in text
    assert "no instructions" in text
    assert text_before(work, "shop/rows.py") == ""


def test_a_mention_of_a_file_is_no_decision(earlier: CodingSession, work: CodingSession) -> None:
    earlier.user("Please open shop/retry.py and tell me what it does.")
    earlier.read("shop/retry.py")
    earlier.agent("I looked at shop/retry.py, and it has three functions.")
    take_in(earlier)
    assert text_before(work, "shop/retry.py") == ""


def test_what_is_in_the_window_is_not_added_until_the_host_has_compacted(work: CodingSession) -> None:
    work.user("We decided to keep the timeout in shop/retry.py at 30 s.")
    work.agent("Understood.")
    take_in(work)
    assert text_before(work, "shop/retry.py") == ""
    work.summary()
    take_in(work)
    assert "at 30 s" in text_before(work, "shop/retry.py")


def test_a_file_is_spoken_of_once_in_a_window(work: CodingSession) -> None:
    put(work, decision("We chose TOML.", "config.py"))
    settings = Path(work.home.config)
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("[hooks]\nrecall_before_edit = true\n")
    output = json.loads(answer(edit(work, "config.py"), work.home))
    assert output.keys() == {"hookSpecificOutput"}
    assert output["hookSpecificOutput"].keys() == {"hookEventName", "additionalContext"}  # no decision about the edit
    assert answer(edit(work, "config.py"), work.home) == b""
    assert answer(edit(work, "config.py", agent_id="a1"), work.home) != b""  # a sub-agent has a window of its own
    answer(work.hook("SessionStart", source="clear"), work.home)
    assert answer(edit(work, "config.py"), work.home) != b""


def test_nothing_is_said_unless_the_user_switched_it_on(hook: HookProgram) -> None:
    answered = hook("claude", data=event("PreToolUse", tool_name="Edit", tool_input={"file_path": "/a.py"}))
    assert (answered.code, answered.output, answered.log) == (0, b"", [])


def test_what_a_prompt_brought_is_not_added_again(work: CodingSession) -> None:
    put(work, decision("We chose TOML.", "config.py", number=7))
    assert before_edit(edit(work, "config.py"), work.home, {f"codex/{NAME} messages:7"}) is None


def test_the_text_has_at_most_200_tokens_and_its_lines_are_whole(work: CodingSession) -> None:
    long = "We decided that " + "the importer keeps every row of the old shop, " * 5
    put(work, *(decision(f"{long}{number}.", "rows.py", number=number) for number in range(1, 9)))
    found = before_edit(edit(work, "rows.py"), work.home)
    assert found
    assert estimate_tokens(found.text) <= MAX_TOKENS
    lines = [line for line in found.text.splitlines() if line.startswith("- ")]
    assert lines
    assert all(line.endswith(".") for line in lines)
    assert f"{long}8." in lines[0]  # the newest first
    assert len(found.items) == 1 + len(lines)


def test_rules_come_first_then_what_the_user_decided(work: CodingSession) -> None:
    put(
        work,
        decision("Never print here.", "a.py", number=1, kind="rule", by_user=True),
        decision("We use tabs.", "a.py", number=2, by_user=True),
        decision("I chose a list.", "a.py", number=3),
    )
    text = text_before(work, "a.py")
    assert text.index("Never print") < text.index("We use tabs") < text.index("I chose a list")


def test_the_same_words_are_shown_once_from_their_newest_place(work: CodingSession) -> None:
    put(work, *(decision("We chose TOML.", "config.py", number=number) for number in (1, 2)))
    text = text_before(work, "config.py")
    assert text.count("We chose TOML.") == 1
    assert "2026-11-02" in text


def test_a_base_name_that_several_files_have_means_none_of_them(work: CodingSession) -> None:
    put(work, decision("We chose TOML.", "config.py"), paths=("a/config.py",))
    assert "TOML" in text_before(work, "a/config.py")
    put(work, decision("We chose TOML.", "config.py"), paths=("a/config.py", "b/config.py"))
    assert text_before(work, "a/config.py") == ""


def test_a_renamed_file_keeps_what_was_decided(work: CodingSession) -> None:
    put(work, decision("We chose TOML.", "a/config.py"), renamed=(("a/config.py", "b.py"), ("b.py", "c/settings.py")))
    assert "TOML" in text_before(work, "c/settings.py")


def test_a_folder_and_a_pattern_stand_for_their_files(work: CodingSession) -> None:
    put(work, decision("Never edit generated/.", "generated/"), decision("Never edit *.lock.", "*.lock", number=2))
    assert "generated/" in text_before(work, "src/generated/a.py")
    assert "*.lock" in text_before(work, "poetry.lock")
    assert text_before(work, "src/a.py") == ""


def test_a_project_without_a_memory_is_not_asked(work: CodingSession) -> None:
    put(work, decision("We chose TOML.", "config.py"))
    (work.folder / ".daypack.toml").write_text("memory = false\n")
    assert text_before(work, "config.py") == ""


def test_a_file_outside_of_the_project_is_not_asked_for(work: CodingSession) -> None:
    put(work, decision("We chose TOML.", "config.py"))
    outside = work.hook("PreToolUse", tool_name="Write", tool_input={"file_path": "/elsewhere/config.py"})
    assert before_edit(outside, work.home) is None


@pytest.mark.parametrize(
    "given",
    [
        {"file_path": "a.py"},
        {"path": "a.py"},
        {"notebook_path": "a.py"},
        {"command": "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch\n"},
        {"input": "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n+y\n"},
        "*** Begin Patch\n*** Add File: a.py\n+x\n*** End Patch\n",
    ],
)
def test_every_host_s_edit_names_its_files(work: CodingSession, given: object) -> None:
    assert edited_paths(work.hook("PreToolUse", tool_name="Edit", tool_input=given)) == ["a.py"]
