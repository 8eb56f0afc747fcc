"""`daypack memory` in a project: without a name it means the memory of the project."""

import json
from pathlib import Path

import pytest
from cli.conftest import Command
from memory.project.repositories import git, new_repository

SAID = "The parser is in src/parser.py."


@pytest.fixture(autouse=True)
def _words_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYPACK_EMBEDDING_MODEL", "none")
    monkeypatch.delenv("DAYPACK_MEMORY", raising=False)


def titles(command: Command) -> list[str]:
    return [memory["title"] for memory in json.loads(command("memory", "list", "--json").stdout)]


def test_commands_without_a_name_use_the_memory_of_the_project_and_say_so(command: Command) -> None:
    added = command("memory", "add", SAID)
    assert added.returncode == 0
    assert "memory of this project: workspace (" in added.stderr
    found = command("memory", "search", "where is the parser")
    assert SAID in found.stdout
    assert "memory of this project: workspace (" in found.stderr
    assert SAID in command("memory", "show").stdout
    assert "default context" in command("memory", "context").stdout
    assert SAID in command("memory", "export").stdout
    assert "workspace (this project)" in command("memory", "list").stdout
    command("append", "talk", "hello")
    assert "talk is bound to" in command("memory", "bind", "talk").stdout


def test_json_is_printed_without_a_note(command: Command) -> None:
    command("memory", "add", SAID)
    found = command("memory", "search", "parser", "--json")
    assert json.loads(found.stdout)["entries"][0]["raw_entry"] == SAID
    assert found.stderr == ""


def test_reading_creates_no_memory_and_says_how_to_create_it(command: Command) -> None:
    for arguments in (("show",), ("search", "parser"), ("context",), ("export",)):
        done = command("memory", *arguments)
        assert done.returncode == 1
        assert "the project workspace has no memory yet" in done.stderr
        assert "`daypack memory add TEXT` creates it" in done.stderr
    assert titles(command) == []


def test_several_words_are_a_query_unless_the_first_is_or_resembles_a_memory(command: Command) -> None:
    command("memory", "add", SAID)
    command("memory", "new", "launch")
    assert SAID in command("memory", "search", "where", "is", "the", "parser").stdout
    assert "nothing relevant" in command("memory", "search", "launch", "where", "is", "the", "parser").stderr
    misspelt = command("memory", "search", "lanch", "parser")
    assert misspelt.returncode == 1
    assert "did you mean launch?" in misspelt.stderr


def test_a_single_argument_of_add_is_the_text_unless_it_is_the_name_of_a_memory(command: Command) -> None:
    command("memory", "new", "launch")
    assert "added to launch" in command("memory", "add", "launch", stdin=b"The party is on Friday.").stderr
    assert "added to workspace" in command("memory", "add", "lunch").stderr
    assert "added to workspace" in command("memory", "add", stdin=b"The sea is blue.").stderr


def test_settings_go_before_the_project_but_for_its_own_file(
    command: Command, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command("memory", "new", "configured")
    [config] = [path.parent / "config.toml" for path in Path(home, "home").glob("*/memory")]
    config.write_text('[memory]\ndefault = "configured"\n')
    assert "added to configured" in command("memory", "add", SAID).stderr
    Path(".daypack.toml").write_text('memory = "named"\n')
    assert "added to named" in command("memory", "add", SAID).stderr
    monkeypatch.setenv("DAYPACK_MEMORY", "configured")
    assert "added to configured" in command("memory", "add", SAID).stderr
    assert "added to named" in command("memory", "add", SAID, "--memory", "named").stderr


def test_another_user_has_no_memory_of_the_project(command: Command) -> None:
    assert "no memory named" in command("memory", "show", "--user", "eve").stderr


def test_a_bad_settings_file_stops_only_what_needs_it(command: Command) -> None:
    command("memory", "new", "launch")
    Path(".daypack.toml").write_text("memory = 3\n")
    refused = command("memory", "show")
    assert refused.returncode == 2
    assert "memory is 3 [" in refused.stderr
    assert 'write memory = "NAME"' in refused.stderr
    assert command("memory", "show", "launch").returncode == 0
    listed = command("memory", "list")
    assert "launch" in listed.stdout
    assert "memory is 3" in listed.stderr


def test_worktrees_use_one_memory(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = new_repository(tmp_path / "app")
    git(repository, "worktree", "add", "--quiet", str(tmp_path / "feature"))
    monkeypatch.chdir(repository)
    command("memory", "add", SAID)
    (tmp_path / "feature" / "src").mkdir()
    monkeypatch.chdir(tmp_path / "feature" / "src")
    assert SAID in command("memory", "search", "parser").stdout
    assert titles(command) == ["app"]


# daypack memory project


def test_the_project_is_shown_before_and_after_it_has_a_memory(command: Command) -> None:
    before = command("memory", "project")
    assert "memory      none: the project workspace has no memory yet" in before.stdout
    command("memory", "add", SAID)
    after = command("memory", "project").stdout.splitlines()
    assert after[0] == "project     workspace"
    assert after[3].startswith("memory ")
    assert after[3].endswith("  workspace")
    assert after[4] == "entries     1"
    report = json.loads(command("memory", "project", "--json").stdout)
    assert (report["name"], report["entries"], report["decided_by"]) == ("workspace", 1, "")
    assert report["key"] == str(Path.cwd())


def test_a_memory_is_chosen_for_a_moved_project_and_let_go_again(command: Command) -> None:
    command("memory", "add", SAID)
    own = json.loads(command("memory", "project", "--json").stdout)["memory_id"]
    moved = Path.cwd().parent / "moved"
    moved.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(moved)
        chosen = command("memory", "project", "--set", "workspace")
        assert chosen.returncode == 0
        assert "decided by  --set" in chosen.stdout
        assert SAID in command("memory", "search", "parser").stdout
        assert json.loads(command("memory", "project", "--json").stdout)["memory_id"] == own
        command("memory", "project", "--reset")
        assert "moved has no memory yet" in command("memory", "show").stderr


def test_a_choice_that_the_settings_file_would_overrule_is_refused(command: Command) -> None:
    command("memory", "new", "launch")
    for text in ('memory = "launch"', "memory = false"):
        Path(".daypack.toml").write_text(text)
        for arguments in (("--set", "launch"), ("--reset",)):
            refused = command("memory", "project", *arguments)
            assert refused.returncode == 2
            assert f"[{Path.cwd() / '.daypack.toml'}]" in refused.stderr
    shown = command("memory", "project")
    assert "memory      none: the project's memory is switched off" in shown.stdout
    assert shown.returncode == 0


def test_a_memory_that_is_switched_off_is_named_with_the_file(command: Command) -> None:
    Path(".daypack.toml").write_text("memory = false\n", encoding="utf-8")
    for arguments in (("search", "tabs"), ("add", "hi"), ("show",), ("search", "tabs", "or", "spaces")):
        done = command("memory", *arguments)
        assert done.returncode == 1
        assert "the project's memory is switched off" in done.stderr
        assert str(Path(".daypack.toml").resolve()) in done.stderr
    assert titles(command) == []


def test_a_named_memory_that_does_not_exist_yet_is_named(command: Command) -> None:
    Path(".daypack.toml").write_text('memory = "launch"\n', encoding="utf-8")
    assert "there is no memory 'launch' yet" in command("memory", "search", "tabs").stderr
    assert command("memory", "add", "hi").returncode == 0
    assert titles(command) == ["launch"]


def test_an_unknown_setting_of_the_project_is_refused_with_what_was_meant(command: Command) -> None:
    Path(".daypack.toml").write_text('memry = "launch"\n', encoding="utf-8")
    refused = command("memory", "add", "hi")
    assert refused.returncode == 2
    assert "memry is no setting" in refused.stderr
    assert "did you mean memory?" in refused.stderr
