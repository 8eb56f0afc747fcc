"""The folder of the agent that started a server."""

from pathlib import Path

import pytest

from daypack.hooks.agent_folder import agent_folder


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a plug-in, in which Copilot starts a server."""
    folder = tmp_path / "plugin"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def copilot(tmp_path: Path, plugin: Path, line: str = "") -> dict[str, str]:
    state = tmp_path / "copilot" / "session-state" / "s1"
    state.mkdir(parents=True, exist_ok=True)
    (state / "workspace.yaml").write_text(f"id: s1\n{line}\nbranch: main\n", encoding="utf-8")
    return {
        "COPILOT_PLUGIN_ROOT": str(plugin),
        "COPILOT_AGENT_SESSION_ID": "s1",
        "COPILOT_HOME": str(tmp_path / "copilot"),
    }


def test_a_server_is_in_the_folder_of_the_agent_unless_claude_names_one(plugin: Path) -> None:
    assert agent_folder({}) == str(plugin)
    assert agent_folder({"CLAUDE_PROJECT_DIR": "/src/app"}) == "/src/app"


@pytest.mark.parametrize("written", ["/src/my app", "'/src/my app'", '"/src/my app"'])
def test_a_server_of_copilot_finds_the_folder_of_the_session(tmp_path: Path, plugin: Path, written: str) -> None:
    assert agent_folder(copilot(tmp_path, plugin, f"cwd: {written}")) == "/src/my app"


def test_quotes_in_a_path_are_read_as_they_were_meant(tmp_path: Path, plugin: Path) -> None:
    assert agent_folder(copilot(tmp_path, plugin, "cwd: '/src/it''s: here'")) == "/src/it's: here"
    assert agent_folder(copilot(tmp_path, plugin, r'cwd: "/src/\u00e9\\"')) == "/src/é\\"


def test_a_session_of_copilot_without_a_file_or_a_folder_in_it_leaves_the_current_folder(
    tmp_path: Path, plugin: Path
) -> None:
    environ = copilot(tmp_path, plugin)
    assert agent_folder(environ) == str(plugin)
    assert agent_folder(environ | {"COPILOT_AGENT_SESSION_ID": "../../other"}) == str(plugin)


def test_variables_of_copilot_that_another_program_inherited_do_not_count(
    tmp_path: Path, plugin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = copilot(tmp_path, plugin, "cwd: /src/app")
    (tmp_path / "own").mkdir()
    monkeypatch.chdir(tmp_path / "own")
    assert agent_folder(environ) == str(tmp_path / "own")


def test_a_folder_that_was_deleted_is_none(plugin: Path) -> None:
    plugin.rmdir()
    assert agent_folder({}) is None
