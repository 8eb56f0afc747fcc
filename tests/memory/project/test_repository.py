"""The project of a folder: repositories, worktrees, submodules, clones, and .daypack.toml."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from memory.project.repositories import common_directory, git, new_repository

from daypack.errors import BadConfig
from daypack.memory.project import find_project
from daypack.types.memory import TITLE_MAX_CHARS


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit."""
    return new_repository(tmp_path / "app")


def key(folder: Path) -> str:
    return find_project(str(folder)).key


def test_every_folder_of_a_repository_has_the_key_that_git_calls_the_common_directory(repository: Path) -> None:
    deep = repository / "src" / "a" / "b"
    deep.mkdir(parents=True)
    assert key(repository) == key(deep) == common_directory(deep) == str(repository / ".git")
    assert find_project(str(deep)).top == str(repository)
    assert find_project(str(deep)).name == "app"


def test_worktrees_share_the_key_wherever_they_are(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "--quiet", str(tmp_path / "elsewhere" / "feature"))
    git(repository, "worktree", "add", "--quiet", str(repository / "inside"))
    for worktree in (tmp_path / "elsewhere" / "feature", repository / "inside"):
        (worktree / "sub").mkdir()
        assert key(worktree / "sub") == key(repository) == common_directory(worktree)
        assert find_project(str(worktree / "sub")).top == str(worktree)
        assert find_project(str(worktree)).name == "app"


def test_worktrees_with_relative_paths_share_the_key(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "--quiet", str(tmp_path / "feature"))
    pointer = tmp_path / "feature" / ".git"
    target = pointer.read_text(encoding="utf-8").removeprefix("gitdir: ").strip()
    pointer.write_text(f"gitdir: {os.path.relpath(target, pointer.parent)}\n", encoding="utf-8")
    assert key(tmp_path / "feature") == key(repository) == common_directory(tmp_path / "feature")


def test_clones_have_keys_of_their_own(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", str(repository), "copy")
    assert key(tmp_path / "copy") == str(tmp_path / "copy" / ".git") != key(repository)


def test_a_submodule_is_a_repository_of_its_own(repository: Path, tmp_path: Path) -> None:
    new_repository(tmp_path / "library")
    git(repository, "submodule", "--quiet", "add", str(tmp_path / "library"), "vendor/library")
    submodule = repository / "vendor" / "library"
    assert key(submodule) == common_directory(submodule)
    assert key(submodule) not in (key(repository), key(tmp_path / "library"))
    assert find_project(str(submodule)).name == "library"


def test_a_submodule_is_the_same_project_in_every_worktree(repository: Path, tmp_path: Path) -> None:
    new_repository(tmp_path / "library")
    git(repository, "submodule", "--quiet", "add", str(tmp_path / "library"), "vendor/library")
    git(repository, "commit", "--quiet", "-m", "add a submodule")
    git(repository, "worktree", "add", "--quiet", str(tmp_path / "feature"))
    git(tmp_path / "feature", "submodule", "--quiet", "update", "--init")
    submodule = tmp_path / "feature" / "vendor" / "library"
    assert common_directory(submodule) != key(submodule)  # git keeps one for each worktree
    assert key(submodule) == key(repository / "vendor" / "library")


def test_a_bare_repository_and_its_worktrees_share_the_key(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", str(repository), "app.git")
    bare = tmp_path / "app.git"
    git(bare, "worktree", "add", "--quiet", str(tmp_path / "tree"))
    assert key(bare) == key(bare / "refs") == key(tmp_path / "tree") == str(bare)
    assert find_project(str(bare)).name == "app"


def test_a_hidden_bare_repository_beside_its_worktrees_is_named_after_the_folder(repository: Path) -> None:
    shop = repository.parent / "shop"
    shop.mkdir()
    git(shop, "clone", "--quiet", "--bare", str(repository), ".bare")
    (shop / ".git").write_text("gitdir: ./.bare\n", encoding="utf-8")
    git(shop / ".bare", "worktree", "add", "--quiet", str(shop / "feature"))
    assert key(shop) == key(shop / "feature") == str(shop / ".bare")
    assert find_project(str(shop / "feature")).name == "shop"


def test_a_folder_inside_the_git_directory_belongs_to_the_repository(repository: Path) -> None:
    git(repository, "worktree", "add", "--quiet", str(repository.parent / "feature"))
    assert key(repository / ".git" / "hooks") == key(repository)
    assert key(repository / ".git" / "worktrees" / "feature") == key(repository)


def test_links_to_a_repository_or_to_its_git_directory_lead_to_the_same_key(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(repository)
    (tmp_path / "checkout").mkdir()
    (tmp_path / "checkout" / ".git").symlink_to(repository / ".git")
    assert key(tmp_path / "link") == key(tmp_path / "checkout") == key(repository)


def test_the_environment_of_a_git_hook_does_not_decide(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = new_repository(repository.parent / "other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_COMMON_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    assert key(repository) == str(repository / ".git")


def test_a_folder_without_a_repository_is_a_project_of_its_own(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    (notes / "2026").mkdir(parents=True)
    assert (key(notes), key(notes / "2026")) == (str(notes), str(notes / "2026"))
    assert find_project(str(notes)).name == "notes"


def test_an_empty_git_folder_is_no_repository(repository: Path) -> None:
    inner = repository / "inner"
    (inner / ".git").mkdir(parents=True)
    assert key(inner) == key(repository)


def test_a_worktree_whose_repository_is_gone_does_not_join_the_repository_around_it(repository: Path) -> None:
    lost = repository / "lost"
    (lost / "src").mkdir(parents=True)
    (lost / ".git").write_text("gitdir: /nowhere/.git/worktrees/lost\n", encoding="utf-8")
    assert key(lost / "src") == str(lost)


def test_a_git_file_that_is_a_pipe_or_something_else_is_passed_over(repository: Path) -> None:
    piped, other = repository / "piped", repository / "other"
    piped.mkdir()
    other.mkdir()
    os.mkfifo(piped / ".git")
    (other / ".git").write_text("not a pointer\n", encoding="utf-8")
    assert key(piped) == key(other) == key(repository)


def test_pointers_of_git_with_a_nul_are_no_paths(repository: Path) -> None:
    worktree = repository / "worktree"
    worktree.mkdir()
    (worktree / ".git").write_bytes(b"gitdir: a\0b\n")
    assert key(worktree) == str(worktree)
    (repository / ".git" / "commondir").write_bytes(b"\0")
    assert key(repository) == str(repository / ".git")


def test_the_root_folder_and_a_folder_that_is_gone_are_projects_too(tmp_path: Path) -> None:
    assert find_project(str(tmp_path / "gone")).key == str(tmp_path / "gone")
    root = find_project("/")
    assert root.key == "/"
    assert root.name


@pytest.mark.parametrize("name", ["line\nbreak", "x" * 200, "\u200b", " spaces ", "...", os.fsdecode(b"\xff\xfe")])
def test_any_folder_name_gives_a_name_that_can_be_a_title(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    shown = find_project(str(tmp_path / name)).name
    assert 1 <= len(shown) <= TITLE_MAX_CHARS
    assert shown == shown.strip()
    assert "\n" not in shown
    shown.encode()


# .daypack.toml


def test_the_nearest_settings_up_to_the_top_of_the_repository_decide(repository: Path) -> None:
    (repository.parent / ".daypack.toml").write_text('memory = "outside"\n', encoding="utf-8")
    inner = repository / "packages" / "web"
    inner.mkdir(parents=True)
    assert find_project(str(inner)).memory is None
    (repository / ".daypack.toml").write_text('memory = "app"\n', encoding="utf-8")
    (repository / "packages" / ".daypack.toml").write_text('memory = " web "\n', encoding="utf-8")
    assert find_project(str(repository)).memory == "app"
    assert find_project(str(inner)).memory == "web"
    assert find_project(str(inner)).settings == str(repository / "packages" / ".daypack.toml")
    assert find_project(str(inner)).key == key(repository)


def test_a_worktree_has_settings_of_its_own(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "--quiet", str(tmp_path / "feature"))
    (tmp_path / "feature" / ".daypack.toml").write_text('memory = "trial"\n', encoding="utf-8")
    assert find_project(str(tmp_path / "feature")).memory == "trial"
    assert find_project(str(repository)).memory is None


def test_settings_of_a_folder_without_a_repository_do_not_reach_the_folders_in_it(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / ".daypack.toml").write_text('memory = "all"\n', encoding="utf-8")
    assert find_project(str(tmp_path)).memory == "all"
    assert find_project(str(tmp_path / "notes")).memory is None


def test_the_memory_can_be_switched_off_and_settings_without_it_change_nothing(repository: Path) -> None:
    settings = repository / ".daypack.toml"
    settings.write_text("memory = false\n", encoding="utf-8")
    assert find_project(str(repository)).off
    settings.write_text("# nothing yet\n", encoding="utf-8")
    assert (find_project(str(repository)).memory, find_project(str(repository)).off) == (None, False)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("memory = ", "Invalid value"),
        ("memory = true", "memory is True"),
        ("memory = 3", "memory is 3"),
        ('memry = "launch"', "memry is no setting"),
        ('memory = "  "', "memory is empty"),
        (r'memory = "a\nb"', "invisible"),
        (f'memory = "{"x" * 51}"', "51 characters, at most 50"),
        ("memory = " + "[" * 4_000, "recursion"),
        ("# a comment\n" * 400, "more than 4,096 bytes"),
    ],
)
def test_bad_settings_are_reported_with_their_place_and_what_to_write(
    repository: Path, text: str, problem: str
) -> None:
    settings = repository / ".daypack.toml"
    settings.write_text(text, encoding="utf-8")
    with pytest.raises(BadConfig, match=problem) as caught:
        find_project(str(repository))
    assert caught.value.place == str(settings)
    assert "memory = false" in caught.value.hint


def test_a_project_with_bad_settings_has_the_same_name_and_key(repository: Path) -> None:
    project = find_project(str(repository))
    (repository / "src").mkdir()
    (repository / ".daypack.toml").write_text("memory = 3", encoding="utf-8")
    assert find_project(str(repository / "src"), with_settings=False) == project


def test_settings_that_cannot_be_read_are_reported(repository: Path) -> None:
    (repository / ".daypack.toml").mkdir()
    with pytest.raises(BadConfig, match="directory") as caught:
        find_project(str(repository))
    assert "delete" in caught.value.hint


def test_finding_a_project_starts_no_program_and_imports_nothing_heavy(repository: Path) -> None:
    code = f"import sys, daypack.memory.project as p; p.find_project({str(repository)!r}); print(sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for heavy in ("subprocess", "msgspec", "sqlite3", "tomllib", "json", "pathlib", "argparse"):
        assert f"'{heavy}'" not in loaded, heavy
