"""Transcripts of Qwen Code: recorded ones, and rows that its recorder can write beside them."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daypack.derived.children import read_children
from daypack.importers.format_detection import detect_formats, read_sample
from daypack.importers.formats import find_files
from daypack.importers.import_file import Destination, take_in
from daypack.importers.import_transcript import ImportReport
from daypack.session import Session
from daypack.types.authority import users_part, writer_of
from daypack.types.history import Image, Message, Text, Thinking

Write = Callable[..., str]
Bring = Callable[..., ImportReport]
Opened = Callable[[str], Session]
RECORDED = Path(__file__).parent / "recorded"
NAME = "bb450244-e75d-4af8-9974-90186ed5e95a"
AGENTS = "9503de54-9b60-4045-b62e-e14f0806cf03"
CHILD = "general-purpose-call_7_1"
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(64))


def row(kind: str, key: str, *parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    role = "model" if kind == "assistant" else "user"
    about = {"uuid": key, "parentUuid": None, "sessionId": "talk", "timestamp": "2026-11-18T01:27:08.905Z"}
    return {**about, "type": kind, "message": {"role": role, "parts": [*parts]}, "version": "0.24.4", **fields}


def text(words: str) -> dict[str, Any]:
    return {"text": words}


def imported(write: Write, bring: Bring, opened: Opened, *rows: dict[str, Any]) -> list[Message]:
    bring("qwen", write("chats/talk.jsonl", [*rows]))
    return list(opened("talk").messages())


def test_a_recorded_session_is_read_whole(bring: Bring, opened: Opened) -> None:
    path = str(RECORDED / "qwen.jsonl")
    report = bring(None, path)
    assert (report.format, report.session, report.messages, report.tool_calls, report.problems) == (
        "qwen", NAME, 7, 2, []
    )  # fmt: skip
    session = opened(NAME)
    messages = list(session.messages())
    assert [message.role for message in messages] == [
        "user", "assistant", "tool", "tool", "assistant", "user", "assistant"
    ]  # fmt: skip
    assert messages[1].content == (Thinking("The user wants to know."), Text("I look."))
    assert [(call.id, call.name) for call in messages[1].tool_calls] == [
        ("call_4_1", "run_shell_command"), ("call_4_2", "run_shell_command")
    ]  # fmt: skip
    assert [message.tool_call_id for message in messages[2:4]] == ["call_4_1", "call_4_2"]
    assert "Retries are in retry.py." in messages[2].text
    assert "Exit Code: 1" in messages[3].text
    assert (messages[3].meta or {})["tool_call_result"]["status"] == "error"
    assert [message.text for message in messages[4:]] == ["A readme.", "What else does qwen see?", "Nothing."]
    assert {writer_of(message) for message in messages} == {None}
    assert ((session.path / "cwd").read_text(), session.meta["model"]) == ("/home/ada/saw\n", "scripted")
    assert report.rows == 15 - 7
    assert bring(None, path).new == 0


@pytest.mark.parametrize("name", ["qwen.jsonl", "qwen-agents.jsonl", "qwen-sub-agent.jsonl"])
def test_its_rows_are_not_taken_for_those_of_claude_code(name: str) -> None:
    assert list(detect_formats(read_sample(str(RECORDED / name)))) == ["qwen"]


def test_sub_agents_become_children_and_a_compaction_an_event(
    write: Write, home: str, opened: Opened, tmp_path: Path
) -> None:
    main = write(f"chats/{AGENTS}.jsonl", (RECORDED / "qwen-agents.jsonl").read_bytes())
    child = write(f"subagents/{AGENTS}/agent-{CHILD}.jsonl", (RECORDED / "qwen-sub-agent.jsonl").read_bytes())
    assert find_files(None, str(tmp_path / "from")) == [main]
    reports = take_in(child, Destination(home))
    assert [(report.session, report.parent) for report in reports] == [(AGENTS, ""), (f"{AGENTS}--{CHILD}", AGENTS)]
    session = opened(AGENTS)
    (told,) = read_children(session.history)
    assert (told.handoff, told.result) == ("Say hello as qwen child.", "Hello from the child.")
    messages = list(opened(f"{AGENTS}--{CHILD}").messages())
    assert [message.role for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert (messages[1].tool_calls[0].id, len((messages[1].meta or {})["rows"])) == ("call_8_1", 2)
    assert writer_of(messages[0]) == "agent"
    (compacted,) = [one.data for one in session.events() if one.type == "import.compacted"]
    assert (compacted["kept"], compacted["trigger"]) == ([], "manual")
    assert (compacted["before_tokens"], compacted["after_tokens"]) == (18418, 16161)
    assert [report.session for report in take_in(main, Destination(home))] == [AGENTS]


def test_the_message_of_a_sub_agent_that_grew_is_continued(write: Write, bring: Bring, opened: Opened) -> None:
    lines = (RECORDED / "qwen-sub-agent.jsonl").read_bytes().splitlines(keepends=True)
    for count in range(1, 6):
        bring("qwen", write(f"agent-{CHILD}.jsonl", b"".join(lines[:count])))
    messages = opened(f"{AGENTS}--{CHILD}").messages()
    user, tool, answer = (message for message in messages if message.text)
    assert (user.text, tool.tool_call_id, answer.text) == (
        "Say hello as qwen child.", "call_8_1", "Hello from the child."
    )  # fmt: skip


HOOK = "<qwen:user-prompt-submit-context>\nRemembered: never push.\n</qwen:user-prompt-submit-context>"


def test_what_hooks_and_files_add_is_marked(write: Write, bring: Bring, opened: Opened) -> None:
    payload = {"displayText": "Fix @a.py.", "hookContext": "Remembered: never push."}
    parts = (text("Fix @a.py."), text("--- Content from referenced files ---\nNever push."), text(HOOK))
    (message,) = imported(write, bring, opened, row("user", "u", *parts, systemPayload=payload))
    part = users_part(message)
    assert (part.text if part else None) == "Fix @a.py."
    assert [(one.meta or {}).get("writer") for one in message.content if isinstance(one, Text)] == [
        None, "harness", "hook"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "writer", "own"),
    [
        ({}, None, "Fix it."),
        ({"provenance": "real_user"}, None, "Fix it."),
        ({"provenance": "real_user", "subtype": "mid_turn_user_message"}, None, "Fix it."),
        ({"provenance": "real_user", "systemPayload": {"displayText": "Fix it."}}, None, "Fix it."),
        ({"provenance": "real_user", "systemPayload": {"displayText": "/fix it"}}, "command", "/fix it"),
        ({"provenance": "system", "subtype": "cron"}, "harness", None),
        ({"provenance": "goal_runtime", "subtype": "goal_runtime"}, "harness", None),
        ({"subtype": "notification", "systemPayload": {"backgroundTask": {"id": "b"}}}, "agent", None),
    ],
)
def test_the_provenance_of_a_row_says_who_wrote_it(
    write: Write, bring: Bring, opened: Opened, fields: dict[str, Any], writer: str | None, own: str | None
) -> None:
    (message,) = imported(write, bring, opened, row("user", "u", text("Fix it."), **fields))
    part = users_part(message)
    assert (writer_of(message), part.text if part else None) == (writer, own)


def test_images_signatures_and_results_of_any_shape_are_kept(write: Write, bring: Bring, opened: Opened) -> None:
    data = {"mimeType": "image/png", "data": base64.b64encode(PICTURE).decode()}
    thought = {"text": "Hm.", "thought": True, "thoughtSignature": "sig"}
    call = {"functionCall": {"id": "c", "name": "f", "args": {"a": 1}}, "thoughtSignature": "of the call"}
    result = {"id": "c", "name": "f", "response": {"rows": [1]}, "parts": [{"inlineData": data}]}
    rows = [
        row(
            "user",
            "u",
            text("Look."),
            {"inlineData": data},
            {"fileData": {"mimeType": "text/x", "fileUri": "file:///a"}},
        ),
        row("assistant", "a", thought, call, {"functionCall": {"name": "no id"}}),
        row("tool_result", "t", {"functionResponse": result}, text("And more.")),
    ]
    user, answer, output, more = imported(write, bring, opened, *rows)
    assert isinstance(user.content, tuple)
    assert isinstance(user.content[1], Image)
    assert (opened("talk").path / "blob" / user.content[1].source).read_bytes() == PICTURE
    assert answer.content[0] == Thinking("Hm.", "sig") if isinstance(answer.content, tuple) else False
    assert [(one.id, one.arguments, one.meta) for one in answer.tool_calls] == [
        ("c", '{"a":1}', {"thoughtSignature": "of the call"})
    ]
    assert (output.role, output.tool_call_id, output.text) == ("tool", "c", '{"rows":[1]}')
    assert (more.role, more.text) == ("user", "And more.")


def test_a_rewind_names_the_messages_that_were_taken_back(write: Write, bring: Bring, opened: Opened) -> None:
    rows = [
        row("user", "u1", text("one")),
        row("assistant", "a1", text("two"), parentUuid="u1"),
        row("user", "u2", text("three"), parentUuid="a1"),
        row("assistant", "a2", text("four"), parentUuid="u2"),
        {**row("system", "r", parentUuid="a1", subtype="rewind", systemPayload={"truncatedCount": 2}), "message": None},
        row("user", "u3", text("five"), parentUuid="r"),
    ]
    assert len(imported(write, bring, opened, *rows)) == 5
    events = [one.data["messages"] for one in opened("talk").events() if one.type == "import.rolled_back"]
    assert events == ["messages:3-4"]


def test_a_compaction_names_the_messages_that_its_history_repeats(write: Write, bring: Bring, opened: Opened) -> None:
    call: dict[str, Any] = {"functionCall": {"id": "c", "name": "f", "args": {}}}
    result: dict[str, Any] = {"functionResponse": {"id": "c", "name": "f", "response": {"output": "done"}}}
    history: list[dict[str, Any]] = [
        {"role": "user", "parts": [text("A summary.")]},
        {"role": "model", "parts": [call]},
        {"role": "user", "parts": [result]},
        {"role": "model", "parts": [text("two")]},
    ]
    rows = [
        row("user", "u1", text("one")),
        row("assistant", "a1", call),
        row("tool_result", "t1", result),
        row("assistant", "a2", text("two")),
        {
            **row("system", "s", subtype="chat_compression", systemPayload={"compressedHistory": history}),
            "message": None,
        },
    ]
    imported(write, bring, opened, *rows)
    (compacted,) = [one.data for one in opened("talk").events() if one.type == "import.compacted"]
    assert (compacted["through"], compacted["kept"]) == (4, [2, 3, 4])
