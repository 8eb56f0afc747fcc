"""The memory of a project: one for all worktrees and processes, recreated, hidden, chosen or switched off."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from memory.project.repositories import git, new_repository

from daypack.errors import BadInput, MemoryMissing
from daypack.history.home import find_home
from daypack.history.layout import Home
from daypack.memory.project import Project, find_project, project_folder, project_memory
from daypack.memory.project.memory import choose_memory, ensure_memory, expected_memory
from daypack.memory.tools import Memories
from daypack.types.memory import PLACEHOLDER


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit."""
    return new_repository(tmp_path / "app")


@pytest.fixture
def place(home: str) -> Home:
    """The home of the memories."""
    return find_home(home)


def name_memory(repository: Path, value: str) -> Project:
    (repository / ".daypack.toml").write_text(f"memory = {value}\n", encoding="utf-8")
    return find_project(str(repository))


def test_the_first_use_creates_the_memory_and_later_ones_find_it(
    memories: Memories, place: Home, repository: Path
) -> None:
    project = find_project(str(repository))
    expected = expected_memory(place, project)
    assert project_memory(place, project, create=False) is None
    memory_id = project_memory(place, project)
    assert memory_id == expected
    assert project_memory(place, project) == project_memory(place, project, create=False) == memory_id
    [memory] = memories.memories()
    assert (memory.memory_id, memory.title, memory.memory_type) == (memory_id, "app", "project")
    assert memory.description == f"Sessions in {repository}"
    assert memories.get_context(memory.memory_id).content == PLACEHOLDER
    record = json.loads(Path(project_folder(place, project), "project.json").read_bytes())
    assert (record["key"], record["name"], record["memory_id"]) == (str(repository / ".git"), "app", memory_id)


def test_worktrees_share_a_memory_and_clones_do_not(place: Home, repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "--quiet", str(tmp_path / "feature"))
    git(tmp_path, "clone", "--quiet", str(repository), "copy")
    own, worktree, clone = (
        project_memory(place, find_project(str(folder)))
        for folder in (repository, tmp_path / "feature", tmp_path / "copy")
    )
    assert own == worktree != clone


def test_clones_that_name_the_same_memory_share_it(memories: Memories, place: Home, tmp_path: Path) -> None:
    clones = [name_memory(new_repository(tmp_path / name), '"shared"') for name in ("one", "two")]
    first, second = (project_memory(place, project) for project in clones)
    assert first == second
    assert [memory.title for memory in memories.memories()] == ["shared"]
    assert project_folder(place, clones[0]) != project_folder(place, clones[1])


def test_a_name_finds_the_memory_that_already_has_this_title_or_id(
    memories: Memories, place: Home, repository: Path
) -> None:
    launch = memories.create_memory("launch").memory_id
    assert project_memory(place, name_memory(repository, '"launch"')) == launch
    assert project_memory(place, name_memory(repository, f'"{launch}"')) == launch
    assert expected_memory(place, name_memory(repository, f'"{launch}"')) == launch
    assert len(memories.memories()) == 1


def test_a_name_is_not_the_start_of_an_id(memories: Memories, place: Home, repository: Path) -> None:
    launch = memories.create_memory("launch").memory_id
    assert project_memory(place, name_memory(repository, f'"{launch[:8]}"')) != launch


def test_another_name_is_another_memory_and_no_name_is_the_projects_own_again(place: Home, repository: Path) -> None:
    own = project_memory(place, find_project(str(repository)))
    first, second = (project_memory(place, name_memory(repository, name)) for name in ('"one"', '"two"'))
    assert len({own, first, second}) == 3
    (repository / ".daypack.toml").unlink()
    assert project_memory(place, find_project(str(repository))) == own


def test_a_name_in_one_worktree_leaves_the_memory_of_the_others(place: Home, repository: Path, tmp_path: Path) -> None:
    own = project_memory(place, find_project(str(repository)))
    git(repository, "worktree", "add", "--quiet", str(tmp_path / "feature"))
    launch = project_memory(place, name_memory(tmp_path / "feature", '"launch"'))
    assert launch != own
    assert project_memory(place, find_project(str(repository)), create=False) == own
    assert project_memory(place, find_project(str(tmp_path / "feature")), create=False) == launch
    (tmp_path / "feature" / ".daypack.toml").unlink()
    assert project_memory(place, find_project(str(tmp_path / "feature")), create=False) == own


def test_a_chosen_memory_stays_chosen_while_one_worktree_names_another(
    memories: Memories, place: Home, repository: Path
) -> None:
    chosen = memories.create_memory("chosen").memory_id
    choose_memory(place, find_project(str(repository)), chosen)
    assert project_memory(place, name_memory(repository, '"launch"')) != chosen
    (repository / ".daypack.toml").unlink()
    assert project_memory(place, find_project(str(repository))) == chosen


def test_a_record_that_a_name_replaced_means_the_projects_own_memory(place: Home, repository: Path) -> None:
    project = find_project(str(repository))
    own = project_memory(place, project)
    record = Path(project_folder(place, project), "project.json")
    record.write_text(json.dumps({**json.loads(record.read_bytes()), "memory_id": "1" * 32, "named": "launch"}))
    assert project_memory(place, project, create=False) == own


def test_a_title_of_two_memories_is_refused_with_their_ids(memories: Memories, place: Home, repository: Path) -> None:
    ids = [memories.create_memory("launch").memory_id for _ in range(2)]
    with pytest.raises(BadInput, match="2 memories have the title 'launch'") as caught:
        project_memory(place, name_memory(repository, '"launch"'))
    assert all(memory_id in caught.value.hint for memory_id in ids)
    assert caught.value.place == str(repository / ".daypack.toml")


def test_a_named_id_that_does_not_exist_is_not_created(memories: Memories, place: Home, repository: Path) -> None:
    project = name_memory(repository, f'"{"0" * 32}"')
    with pytest.raises(MemoryMissing, match="no such memory") as caught:
        ensure_memory(memories, place, project)
    assert caught.value.place == str(repository / ".daypack.toml")
    assert memories.memories() == ()


def test_a_project_that_is_switched_off_has_no_memory(memories: Memories, place: Home, repository: Path) -> None:
    project = name_memory(repository, "false")
    assert project_memory(place, project) is None
    assert expected_memory(place, project) == ""
    with pytest.raises(MemoryMissing, match="switched off"):
        ensure_memory(memories, place, project)
    assert memories.memories() == ()


def test_an_erased_memory_is_created_again(memories: Memories, place: Home, repository: Path) -> None:
    project = find_project(str(repository))
    memory_id = ensure_memory(memories, place, project)
    memories.add_entry(memory_id, "the gate code is 4711")
    memories.erase_memory(memory_id)
    assert ensure_memory(memories, place, project) == memory_id
    assert memories.get_memory(memory_id).stats.entries == 0


def test_a_hidden_memory_is_neither_used_nor_created_again(memories: Memories, place: Home, repository: Path) -> None:
    project = find_project(str(repository))
    memory_id = ensure_memory(memories, place, project)
    memories.delete_memory(memory_id)
    assert project_memory(place, project) is None
    with pytest.raises(MemoryMissing, match="hidden") as caught:
        ensure_memory(memories, place, project)
    assert f"daypack memory erase {memory_id} --restore" in caught.value.hint
    assert memories.memories() == ()
    memories.restore_memory(memory_id)
    assert project_memory(place, project) == memory_id


def test_a_moved_repository_gets_its_memory_back_by_choice(memories: Memories, place: Home, repository: Path) -> None:
    old = ensure_memory(memories, place, find_project(str(repository)))
    moved = repository.rename(repository.parent / "moved")
    project = find_project(str(moved))
    own = expected_memory(place, project)
    assert own != old
    choose_memory(place, project, old)
    assert project_memory(place, project) == project_memory(place, project, create=False) == old
    choose_memory(place, project, None)
    assert expected_memory(place, project) == own


def test_a_chosen_memory_that_was_erased_is_reported(memories: Memories, place: Home, repository: Path) -> None:
    project = find_project(str(repository))
    chosen = memories.create_memory("chosen").memory_id
    choose_memory(place, project, chosen)
    memories.erase_memory(chosen)
    with pytest.raises(MemoryMissing, match="does not exist any more") as caught:
        ensure_memory(memories, place, project)
    assert "--reset" in caught.value.hint


@pytest.mark.parametrize("damage", [b"", b"[]", b'{"memory_id": 3}', b'{"memory_id": "x"}', b"\xff\x00", b"[" * 9_999])
def test_a_damaged_record_is_written_again(place: Home, repository: Path, damage: bytes) -> None:
    project = find_project(str(repository))
    memory_id = project_memory(place, project)
    record = Path(project_folder(place, project), "project.json")
    whole = record.read_bytes()
    record.write_bytes(damage)
    assert project_memory(place, project, create=False) is None
    assert project_memory(place, project) == memory_id
    assert record.read_bytes() == whole


def test_a_home_that_lost_its_records_finds_the_memory_again(place: Home, repository: Path) -> None:
    project = find_project(str(repository))
    memory_id = project_memory(place, project)
    Path(project_folder(place, project), "project.json").unlink()
    assert project_memory(place, project) == memory_id


@pytest.mark.parametrize("named", [False, True])
def test_processes_that_start_at_the_same_time_create_one_memory(
    memories: Memories, place: Home, repository: Path, *, named: bool
) -> None:
    if named:
        name_memory(repository, '"shared"')
    code = (
        "import sys; from daypack.memory.project import *; from daypack.history.home import find_home;"
        "import daypack.memory.tools; home, project = find_home(sys.argv[1]), find_project(sys.argv[2]);"
        "print('ready', flush=True); sys.stdin.read(); print(project_memory(home, project))"
    )
    command = [sys.executable, "-c", code, place.root, str(repository)]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ})
        for _ in range(6)
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    found = {process.communicate(timeout=60)[0].strip() for process in started}
    [memory] = memories.memories()
    assert found == {memory.memory_id}
    assert memory.stats.documents == 1
