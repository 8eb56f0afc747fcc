"""Large tool outputs: the original is stored, the agent gets head, tail and an id that recalls it."""

import json
import re
from typing import Any, cast

import pytest
from hooks.hook_process import HookProgram, event
from hooks.transcripts import ClaudeTranscript

import daypack
from daypack.history.home import find_home
from daypack.hooks.call import HookCall
from daypack.hooks.intake import take_in

LONG = "\n".join(f"line {number} of the log" for number in range(1, 2001))
RECALL = re.compile(r"`daypack recall (\S+) (\S+) --agent (\S+)` prints all")


@pytest.fixture(autouse=True)
def _on(hook: HookProgram) -> None:
    hook.folder.mkdir(parents=True)
    (hook.folder / "config.toml").write_text("[hooks]\nswap_output_tokens = 400\n")


def send(hook: HookProgram, host: str, tool: str, **fields: object) -> Any:
    answered = hook(host, data=event("PostToolUse", tool_name=tool, tool_use_id="call-1", **fields))
    assert (answered.code, answered.log) == (0, [])
    return json.loads(answered.output) if answered.output else None


def updated(answer: Any) -> Any:
    assert answer["hookSpecificOutput"]["hookEventName"] == "PostToolUse"
    return answer["hookSpecificOutput"]["updatedToolOutput"]


def recalled(hook: HookProgram, stub: str) -> str:
    found = RECALL.search(stub)
    assert found, stub
    with daypack.open_session(found[1], agent=found[3], home=hook.home, create=False) as session:
        return session.recall(found[2]).text


def test_a_command_output_keeps_its_shape_and_can_be_recalled(hook: HookProgram) -> None:
    output = {"stdout": LONG, "stderr": "", "interrupted": False, "isImage": False}
    changed = updated(send(hook, "claude", "Bash", tool_input={"command": "cat log"}, tool_response=output))
    assert {**changed, "stdout": ""} == {**output, "stdout": ""}
    lines = changed["stdout"].split("\n")
    assert (lines[0], lines[-1]) == ("line 1 of the log", "line 2000 of the log")
    assert len(changed["stdout"]) < 2_500
    assert recalled(hook, changed["stdout"]) == LONG


@pytest.mark.parametrize(
    "output",
    [
        {"type": "text", "file": {"filePath": "/a", "content": LONG, "numLines": 2000}},
        LONG,
        [{"type": "text", "text": LONG}],
        {"bytes": 9, "code": 200, "result": LONG, "url": "https://example.org"},
        {"status": "completed", "prompt": "short", "content": [{"type": "text", "text": LONG}]},
    ],
)
def test_the_outputs_of_other_tools_keep_theirs(hook: HookProgram, output: Any) -> None:
    changed = updated(send(hook, "claude", "Tool", tool_response=output))
    whole, part = json.dumps(output), json.dumps(changed)
    stub = re.search(r"\[swapped out: [^\]]*\]", part)
    assert stub
    assert recalled(hook, stub[0]) == LONG
    assert len(part) < len(whole) / 10
    assert shape(changed) == shape(output)


def shape(value: object) -> object:
    """Return a value with its texts and numbers replaced by their types."""
    if isinstance(value, dict):
        return {key: shape(member) for key, member in cast("dict[str, object]", value).items()}
    return [shape(member) for member in cast("list[object]", value)] if isinstance(value, list) else type(value)


def test_copilot_gets_a_text(hook: HookProgram) -> None:
    result = {"result_type": "success", "text_result_for_llm": LONG}
    answer = send(hook, "copilot", "Bash", tool_result=result)
    assert answer["modifiedResult"]["resultType"] == "success"
    assert recalled(hook, answer["modifiedResult"]["textResultForLlm"]) == LONG


@pytest.mark.parametrize(
    ("host", "tool", "fields"),
    [
        ("claude", "Bash", {"tool_response": {"stdout": "short"}}),
        ("claude", "Edit", {"tool_response": {"content": LONG, "originalFile": LONG}}),
        ("claude", "Tool", {"tool_response": {"originalFile": LONG}}),
        ("claude", "Bash", {"tool_input": {"command": "daypack recall s ev-1"}, "tool_response": {"stdout": LONG}}),
        ("claude", "mcp__plugin_daypack_daypack__search_memories", {"tool_response": LONG}),
        ("claude", "Bash", {"tool_response": None}),
        ("claude", "Bash", {}),
        ("copilot", "Bash", {"tool_result": "text"}),
        ("codex", "Bash", {"tool_response": LONG}),
        ("qwen", "run_shell_command", {"tool_response": {"llmContent": LONG}}),
    ],
)
def test_others_are_left_as_they_are(hook: HookProgram, host: str, tool: str, fields: dict[str, Any]) -> None:
    assert send(hook, host, tool, **fields) is None
    assert find_home(hook.home).agents() == []


def test_a_long_line_is_cut_inside(hook: HookProgram) -> None:
    text = "0123456789 " * 2_000
    stdout = updated(send(hook, "claude", "Bash", tool_response={"stdout": text}))["stdout"]
    assert len(stdout) < 2_500
    assert recalled(hook, stdout) == text


def test_without_the_setting_nothing_is_swapped(hook: HookProgram) -> None:
    (hook.folder / "config.toml").unlink()
    assert send(hook, "claude", "Bash", tool_response={"stdout": LONG}) is None


def test_a_session_that_cannot_be_written_leaves_the_output_whole(hook: HookProgram) -> None:
    (hook.folder / "agent").write_text("not a folder")
    data = event("PostToolUse", tool_name="Bash", tool_response={"stdout": LONG})
    answered = hook("claude", data=data)
    assert (answered.code, answered.output, len(answered.log)) == (0, b"", 1)


def test_the_transcript_with_the_stub_is_taken_in_and_the_original_stays(hook: HookProgram, tmp_path: Any) -> None:
    stub = updated(send(hook, "claude", "Bash", tool_response={"stdout": LONG}))["stdout"]
    transcript = ClaudeTranscript(tmp_path / "s-1.jsonl", "s-1", str(tmp_path))
    transcript.user("Show the log of the harbour.")
    transcript.call("Bash", {"command": "cat log"}, stub)
    transcript.assistant("The log has two thousand lines about the harbour.")
    place = {"cwd": str(tmp_path), "transcript_path": str(transcript.path)}
    assert hook("claude", data=event("Stop", **place)).output == b""
    assert take_in.wait_for(find_home(hook.home), HookCall(host="claude", event="", session="s-1", cwd=""), 60)
    with daypack.open_session("s-1", agent="claude-code", home=hook.home, create=False) as session:
        assert [message.text for message in session.messages() if message.role == "tool"] == [stub]
    assert recalled(hook, stub) == LONG
    assert hook.log == []
