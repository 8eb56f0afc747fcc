"""`daypack mcp` as a command: what is served, to whom, and what it says when that is not there."""

from pathlib import Path

import pytest
from serve.wire import Process, initialize, request, tool

from daypack.memory.tools import open_memory
from daypack.session import open_session


def instructions(home: str, *arguments: str) -> str:
    with Process(home, *arguments) as process:
        return process.ask(initialize())["result"]["instructions"]


def test_the_memory_that_is_named_is_the_one_the_agent_is_told_of(home: str) -> None:
    assert "Use the memory m-17 unless" in instructions(home, "--memory", "m-17")
    assert "resources" in instructions(home, "--user", "eve")


def test_a_session_that_is_bound_to_a_memory_names_it(home: str) -> None:
    with open_memory(home=home) as memories:
        one = memories.create_memory("x").memory_id
    with open_session("work", home=home) as session:
        session.append("user", "hello")
        session.bind_memory(one)
    assert f"Use the memory {one} unless" in instructions(home, "--session", "work")
    assert "Use the memory" not in instructions(home, "--session", "work", "--user", "eve")
    assert "Use the memory m-17 unless" in instructions(home, "--session", "work", "--memory", "m-17")


def test_a_user_sees_only_the_users_own_memories(home: str) -> None:
    with open_memory(home=home) as memories:
        one = memories.create_memory("x").memory_id
    for user, there in (("local", True), ("eve", False)):
        with Process(home, "--user", user) as process:
            process.ask(initialize())
            told = process.ask(tool(1, "get_memory", memory_id=one))["result"]
            assert told["isError"] != there


@pytest.mark.requirement("X36")
def test_settings_can_leave_create_memory_out(home: str) -> None:
    config = Path(home) / "home" / "7" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[memory]\ncreate_memory = false\n")
    with Process(home, "--uid", "7") as process:
        process.ask(initialize())
        names = [one["name"] for one in process.ask(request(1, "tools/list"))["result"]["tools"]]
        assert len(names) == 8
        assert "create_memory" not in names
        assert "Unknown tool" in process.ask(tool(2, "create_memory", title="x"))["error"]["message"]


def test_a_session_that_is_not_there_is_told_at_once(home: str) -> None:
    with Process(home, "--session", "nowhere") as process:
        code, out, log = process.finish()
    assert code == 1
    assert out == b""
    assert "no such session" in log


def test_settings_that_cannot_be_read_are_told_at_once(home: str) -> None:
    config = Path(home) / "home" / "7" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[memory]\ncreate_memory = 5\n")
    with Process(home, "--uid", "7") as process:
        code, out, log = process.finish()
    assert (code, out) == (2, b"")
    assert "create_memory" in log
