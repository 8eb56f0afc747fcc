"""The index of a project: found at a take-in, bounded, newest decision last, made again when it is missing."""

import os
from pathlib import Path

import daypack
from daypack.history.across_sessions import forget_words
from daypack.hooks.file_decisions.index import (
    MAX_DECISIONS,
    DecisionIndex,
    FileDecision,
    entries_file,
    read_index,
    write_index,
)
from daypack.hooks.file_decisions.updating import build_missing_decisions, update_decisions, update_entry_decisions
from daypack.memory.project import project_memory
from daypack.memory.project.memory import decisions_file
from daypack.types.memory import About
from tests.hooks.coding_session import CodingSession

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def update(work: CodingSession) -> tuple[FileDecision, ...]:
    update_decisions(work.session, work.project, work.home)
    return read(work).decisions


def read(work: CodingSession) -> DecisionIndex:
    index = read_index(decisions_file(work.home, work.project))
    assert index
    return index


def test_a_decision_is_about_the_file_it_names(tmp_path: Path) -> None:
    work = CodingSession(tmp_path)
    work.edit("src/shop/retry.py")
    seq = work.user("In retry.py, never retry a refused payment, because the bank counts it as fraud.")
    (found,) = update(work)
    assert (found.files, found.kind, found.seq, found.by_user) == (("src/shop/retry.py",), "rule", seq, True)


def test_a_decision_is_about_the_file_whose_identifiers_it_has(tmp_path: Path) -> None:
    work = CodingSession(tmp_path)
    work.user("Make the backoff shorter.")
    work.edit("src/retry.py", "def wait_for_bank(): ...", "def wait_for_bank(seconds): ...")
    for number in range(4):
        work.edit(f"src/part{number}.py")
    work.agent("`wait_for_bank` now uses a fixed delay instead of an exponential one.")
    (found,) = update(work)
    assert found.files == ("src/retry.py",)


def test_a_revert_a_failed_attempt_and_its_reason_are_kept(tmp_path: Path) -> None:
    work = CodingSession(tmp_path)
    work.user("The queue in shop/rows.py failed in production because the bank blocks us, so we reverted it.")
    work.bash("git checkout -- shop/rows.py")
    assert [found.kind for found in update(work)] == ["reason", "revert"]


def test_a_rename_is_noted(tmp_path: Path) -> None:
    work = CodingSession(tmp_path)
    work.bash(f"cd {work.project.top} && git mv shop/rows.py shop/lines.py")
    update(work)
    assert read(work).renamed == (("shop/rows.py", "shop/lines.py"),)


def test_a_later_rule_on_the_same_matter_replaces_the_earlier_one(tmp_path: Path) -> None:
    work = CodingSession(tmp_path)
    work.user("Always keep the lines of shop/rows.py under 150 characters.")
    later = work.user("Always keep the lines of shop/rows.py under 80 characters.")
    assert [found.seq for found in update(work)] == [later]


def test_secrets_are_redacted(tmp_path: Path) -> None:
    work = CodingSession(tmp_path)
    work.user(f"We decided to put the token {SECRET} into shop/keys.py.")
    (found,) = update(work)
    assert SECRET not in found.text


def test_a_missing_index_is_made_again_from_all_sessions_of_the_project(tmp_path: Path) -> None:
    first, second = CodingSession(tmp_path, "first"), CodingSession(tmp_path, "second", "codex")
    elsewhere = CodingSession(tmp_path, "third", project="other")
    for work in (first, second, elsewhere):
        work.user(f"We decided to keep {work.name}.py free of dependencies.")
        (Path(work.session.layout.folder) / "cwd").write_text(f"{work.folder}\n")
    assert [found.files for found in update(second)] == [("first.py",), ("second.py",)]
    assert [found.session for found in update(first)] == ["claude-code/first", "codex/second"]
    Path(decisions_file(first.home, first.project)).write_bytes(b"{")
    assert len(update(first)) == 2
    forget_words(first.home)
    assert read_index(decisions_file(first.home, first.project)) is None
    assert len(update(second)) == 2


def test_a_second_take_in_changes_nothing_and_the_index_is_bounded(tmp_path: Path) -> None:
    work = CodingSession(tmp_path)
    work.user("We decided to keep a.py free of dependencies.")
    before = update(work)
    assert update(work) == before
    many = (
        FileDecision(files=(f"{number}.py",), kind="decision", text=f"We chose {number}.", at=f"{number:06}", seq=1)
        for number in range(MAX_DECISIONS + 5)
    )
    write_index(decisions_file(work.home, work.project), DecisionIndex(decisions=tuple(many)))
    after = update(work)
    assert len(after) == MAX_DECISIONS
    assert after[-1] == before[0]


def test_entries_that_were_not_said_in_a_session_of_this_home_count_until_they_are_erased(tmp_path: Path) -> None:
    work = CodingSession(tmp_path)
    memory_id = project_memory(work.home, work.project)
    assert memory_id
    text = "For config.py we chose TOML instead of YAML."
    with daypack.open_memory(home=work.home.root, user="local") as memories:
        entry = memories.add_entry(memory_id, text).entry_id
        memories.add_entry(memory_id, "The README.md is in English.")
        about = About(session=f"claude-code/{work.name}", source="messages:1", role="user")
        work.user(text)
        memories.add_entry(memory_id, text, about=about)
        update_entry_decisions(work.home, memory_id)
        index = read_index(entries_file(work.home, memory_id))
        assert index
        assert [(found.entry, found.files) for found in index.decisions] == [(entry, ("config.py",))]
        memories.erase_entry(memory_id, entry)
    assert not os.path.exists(entries_file(work.home, memory_id))
    update_entry_decisions(work.home, memory_id)
    assert read_index(entries_file(work.home, memory_id)) == DecisionIndex(entries=3)


def recorded_session(tmp_path: Path) -> CodingSession:
    work = CodingSession(tmp_path)
    Path(work.session.layout.cwd).write_text(f"{work.project.top}\n")
    return work


def test_indexes_that_are_missing_are_made_from_the_recorded_sessions(tmp_path: Path) -> None:
    work = recorded_session(tmp_path)
    work.edit("src/shop/retry.py")
    work.user("In retry.py, never retry a refused payment, because the bank counts it as fraud.")
    work.session.close()
    assert build_missing_decisions(work.home, seconds=60) == 1
    (found,) = read(work).decisions
    assert found.files == ("src/shop/retry.py",)
    assert build_missing_decisions(work.home, seconds=60) == 0


def test_an_index_that_is_not_made_in_time_is_left_to_the_take_in(tmp_path: Path) -> None:
    work = recorded_session(tmp_path)
    work.user("In retry.py, never retry a refused payment, because the bank counts it as fraud.")
    assert build_missing_decisions(work.home, seconds=-1) == 0
    assert read_index(decisions_file(work.home, work.project)) is None
    assert update(work)


def test_no_index_is_made_for_a_project_without_a_memory(tmp_path: Path) -> None:
    work = recorded_session(tmp_path)
    work.user("In retry.py, never retry a refused payment, because the bank counts it as fraud.")
    Path(work.project.top, ".daypack.toml").write_text("memory = false\n")
    assert build_missing_decisions(work.home, seconds=60) == 0
