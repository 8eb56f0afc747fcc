"""`daypack mcp` in a project: the tools need no memory_id there."""

from pathlib import Path
from typing import Any

import pytest
from memory.project.repositories import git, new_repository
from serve.wire import Process, initialize, request, tool

from daypack.history.home import find_home
from daypack.memory.project.memory import expected_memory
from daypack.memory.project.repository import find_project
from daypack.memory.tools import open_memory
from daypack.serve.toolset import NAMES

SAID = "The parser is in src/parser.py."


@pytest.fixture(autouse=True)
def _no_agent_around(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit."""
    return new_repository(tmp_path / "app")


def expected(home: str, folder: Path) -> str:
    return expected_memory(find_home(home), find_project(str(folder)))


def called(process: Process, name: str, **given: object) -> dict[str, Any]:
    answer = process.ask(tool(name, name, **given))["result"]
    assert not answer["isError"], answer
    return answer["structuredContent"]


def ids(home: str) -> list[str]:
    with open_memory(home=home) as memories:
        return [memory.memory_id for memory in memories.memories()]


def test_the_memory_of_the_project_is_the_default_and_is_named_by_its_id(home: str, repository: Path) -> None:
    memory_id = expected(home, repository)
    with Process(home, folder=repository) as process:
        told = process.ask(initialize())["result"]["instructions"]
        tools = process.ask(request(1, "tools/list"))["result"]["tools"]
    assert f"Use the memory {memory_id} unless" in told
    assert tuple(tool["name"] for tool in tools) == NAMES
    for listed in tools:
        schema = listed["inputSchema"]
        assert "memory_id" not in schema.get("required", ())
        if listed["name"] in ("add_entry", "get_context", "search_memories"):
            assert schema["properties"]["memory_id"]["description"].endswith(f"the default memory, {memory_id}.")


def test_nothing_is_created_before_the_first_call_of_the_default(home: str, repository: Path) -> None:
    with Process(home, folder=repository) as process:
        process.ask(initialize())
        process.ask(request(1, "tools/list"))
        process.ask(request(2, "resources/list"))
        process.ask(request(3, "prompts/list"))
        called(process, "get_user")
        assert ids(home) == []
        assert called(process, "add_entry", raw_entry=SAID)["memory_id"] == expected(home, repository)
        assert ids(home) == [expected(home, repository)]
        assert called(process, "search_memories", query="parser")["entries"][0]["raw_entry"] == SAID


def test_the_id_of_the_default_works_before_the_memory_exists(home: str, repository: Path) -> None:
    memory_id = expected(home, repository)
    with Process(home, folder=repository) as process:
        process.ask(initialize())
        assert called(process, "get_memory", memory_id=memory_id)["title"] == "app"


def test_servers_in_two_worktrees_share_the_memory(home: str, repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "--quiet", str(tmp_path / "feature"))
    with Process(home, folder=repository) as one, Process(home, folder=tmp_path / "feature") as other:
        for process in (one, other):
            process.ask(initialize())
        for process in (one, other):  # both at once
            process.send(tool(1, "add_entry", raw_entry=SAID))
        first, second = (process.receive()["result"]["structuredContent"]["memory_id"] for process in (one, other))
    assert first == second
    assert ids(home) == [first]


def test_the_folder_that_claude_names_goes_before_the_folder_of_the_process(
    home: str, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(repository))
    with Process(home, folder=tmp_path) as process:
        assert expected(home, repository) in process.ask(initialize())["result"]["instructions"]


def test_a_named_memory_is_served_by_its_id_once_it_is_known(home: str, repository: Path) -> None:
    (repository / ".daypack.toml").write_text('memory = "launch"\n', encoding="utf-8")
    with Process(home, folder=repository) as process:
        assert "Use the memory launch unless" in process.ask(initialize())["result"]["instructions"]
        memory_id = called(process, "get_memory")["memory_id"]
        assert called(process, "get_memory", memory_id="launch")["memory_id"] == memory_id
    with Process(home, folder=repository) as process:
        assert f"Use the memory {memory_id} unless" in process.ask(initialize())["result"]["instructions"]


def test_arguments_and_settings_go_before_the_project(
    home: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_memory(home=home) as memories:
        made = {name: memories.create_memory(name).memory_id for name in ("given", "configured")}
    config = Path(find_home(home).config)
    config.write_text('[memory]\ndefault = "configured"\n', encoding="utf-8")
    for arguments, name in (((), "configured"), (("--memory", "given"), "given")):
        with Process(home, *arguments, folder=repository) as process:
            process.ask(initialize())
            assert called(process, "get_memory")["memory_id"] == made[name]


def test_without_a_memory_of_the_project_memory_id_is_required(home: str, repository: Path) -> None:
    (repository / ".daypack.toml").write_text("memory = false\n", encoding="utf-8")
    with Process(home, folder=repository) as process:
        assert "Use the memory" not in process.ask(initialize())["result"]["instructions"]
        answer = process.ask(tool(1, "get_context"))["result"]
    assert answer["isError"]
    assert "memory_id is missing" in answer["content"][0]["text"]


def test_a_hidden_memory_is_reported_to_the_caller(home: str, repository: Path) -> None:
    memory_id = expected(home, repository)
    with Process(home, folder=repository) as process:
        process.ask(initialize())
        called(process, "get_context")
    with open_memory(home=home) as memories:
        memories.delete_memory(memory_id)
    with Process(home, folder=repository) as process:
        process.ask(initialize())
        answer = process.ask(tool(1, "get_context"))["result"]
    assert answer["isError"]
    assert "the project's memory is hidden" in answer["content"][0]["text"]
    assert "--restore" in answer["content"][0]["text"]


def test_a_bad_settings_file_is_reported_at_once(home: str, repository: Path) -> None:
    (repository / ".daypack.toml").write_text("memory = [1]\n", encoding="utf-8")
    with Process(home, folder=repository) as process:
        code, out, log = process.finish()
    assert (code, out) == (2, b"")
    assert "memory is [1]" in log
    assert ".daypack.toml" in log
