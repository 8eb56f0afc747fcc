"""Sessions of Copilot CLI: recorded ones, and what the schema of its events allows beside them."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daypack.derived.children import read_children
from daypack.importers.import_file import Destination, take_in
from daypack.importers.import_transcript import ImportReport
from daypack.session import Session
from daypack.types.authority import is_quoted, writer_of
from daypack.types.history import Message, Text, Thinking

Write = Callable[..., str]
Bring = Callable[..., ImportReport]
Opened = Callable[[str], Session]
RECORDED = Path(__file__).parent / "recorded"
NAME = "0a6673a0-aa4f-47a1-bb2d-16dd61478816"
AGENTS = "f286054e-69a3-4843-91df-2fa6bc7d6c32"
CHILD = "feaa1b02-af70-45f0-a074-5fae5af60a41"


def event(kind: str, key: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "id": key, "parentId": None, "timestamp": "2026-11-18T01:26:17.902Z", "data": data}


START = event("session.start", "s", sessionId="talk", selectedModel="gpt-5", context={"cwd": "/work/saw"})


def imported(write: Write, bring: Bring, opened: Opened, *rows: dict[str, Any]) -> list[Message]:
    bring("copilot", write("events.jsonl", [START, *rows]))
    return list(opened("talk").messages())


def test_a_recorded_session_is_read_whole(bring: Bring, opened: Opened) -> None:
    path = str(RECORDED / "copilot.jsonl")
    report = bring(None, path)
    assert (report.format, report.session, report.messages, report.tool_calls, report.problems) == (
        "copilot", NAME, 8, 2, []
    )  # fmt: skip
    session = opened(NAME)
    messages = list(session.messages())
    assert [message.role for message in messages] == [
        "user", "system", "assistant", "tool", "tool", "assistant", "user", "assistant"
    ]  # fmt: skip
    assert messages[0].text == "What does copilot see?"
    assert is_quoted(messages[1])
    assert messages[2].content == (Thinking("The user wants to know."), Text("I look."))
    calls = [(call.id, call.name, call.arguments) for call in messages[2].tool_calls]
    assert calls[0] == ("call_1_1", "bash", '{"command":"cat README.md","description":"Run it"}')
    assert {message.tool_call_id for message in messages[3:5]} == {call[0] for call in calls}
    assert "Retries are in retry.py." in messages[4].text
    assert [messages[5].text, messages[6].text, messages[7].text] == [
        "A readme.", "What else does copilot see?", "Nothing."
    ]  # fmt: skip
    assert (session.path / "cwd").read_text() == "/home/ada/saw\n"
    assert session.meta["model"] == "scripted"
    rows = [one.data["row"]["type"] for one in session.events() if one.type == "import.row"]
    assert len(rows) == report.rows == 23 - 8
    assert {"session.start", "session.usage_record", "session.resume", "session.shutdown"} <= set(rows)
    assert bring(None, path).new == 0


@pytest.mark.parametrize("cut", range(1, 23, 3))
def test_a_session_that_grows_is_read_once(write: Write, bring: Bring, opened: Opened, cut: int) -> None:
    lines = (RECORDED / "copilot.jsonl").read_bytes().splitlines(keepends=True)
    path = write(f"{NAME}/events.jsonl", b"".join(lines[:cut]))
    bring("copilot", path)
    with open(path, "ab") as file:
        file.write(lines[cut][:20])
    assert [problem.line for problem in bring("copilot", path).problems] == [cut + 1]
    with open(path, "ab") as file:
        file.write(lines[cut][20:] + b"".join(lines[cut + 1 :]))
    assert bring("copilot", path).problems == []
    assert len(opened(NAME).messages()) == 8


def test_sub_agents_become_children_and_a_compaction_an_event(home: str, opened: Opened) -> None:
    (report,) = take_in(str(RECORDED / "copilot-agents.jsonl"), Destination(home))
    assert (report.session, report.children) == (AGENTS, [CHILD])
    session, child = opened(AGENTS), opened(f"{AGENTS}--{CHILD}")
    assert [message.text for message in session.messages() if message.role == "user"] == [
        "Delegate for copilot, please.", "After that, copilot?"
    ]  # fmt: skip
    assert [(message.role, message.text) for message in child.messages() if message.role != "system"] == [
        ("user", "Say hello as copilot child."),
        ("assistant", ""),
        ("tool", "hello\n<shellId: 0 completed with exit code 0>"),
        ("assistant", "Hello from the child."),
    ]
    (told,) = read_children(session.history)
    assert (told.handoff, told.result) == ("Say hello as copilot child.", "Hello from the child.")
    assert writer_of(next(iter(child.messages()))) == "agent"
    (compacted,) = [one.data for one in session.events() if one.type == "import.compacted"]
    last = next(message.seq for message in session.messages() if message.text == "The child said hello.")
    assert (compacted["through"], compacted["kept"], compacted["trigger"]) == (last, [], "manual")
    assert (compacted["before_tokens"], compacted["after_tokens"]) == (10422, 10382)


@pytest.mark.parametrize(
    ("data", "writer"),
    [
        ({}, None),
        ({"source": "user"}, None),
        ({"source": "skill-pdf"}, "harness"),
        ({"source": "agent-a1"}, "agent"),
        ({"isAutopilotContinuation": True}, "harness"),
    ],
)
def test_the_source_of_a_message_says_who_wrote_it(
    write: Write, bring: Bring, opened: Opened, data: dict[str, Any], writer: str | None
) -> None:
    (message,) = imported(write, bring, opened, event("user.message", "u", content="Fix it.", **data))
    assert writer_of(message) == writer


def test_what_hooks_add_is_kept_beside_the_words_of_the_user(write: Write, bring: Bring, opened: Opened) -> None:
    sent = "<current_datetime>…</current_datetime>\n\nFix it.\n\n<system_reminder>\nRemembered.\n</system_reminder>"
    rows = event("user.message", "u", content="Fix it.", transformedContent=sent)
    (message,) = imported(write, bring, opened, rows)
    assert message.text == "Fix it."
    assert (message.meta or {})["data"]["transformedContent"] == sent


def test_failed_tools_opaque_thinking_and_images_are_kept(write: Write, bring: Bring, opened: Opened) -> None:
    data = base64.b64encode(bytes(range(64))).decode()
    picture = {"type": "image", "data": data, "mimeType": "image/png"}
    rows = [
        event("user.message", "u", content="Look.", attachments=[{"type": "blob", **picture}]),
        event(
            "assistant.message",
            "a",
            content="",
            reasoningOpaque="sig",
            encryptedContent="xyz",
            toolRequests=[{"toolCallId": "c", "name": "f", "arguments": "free text"}, {"name": "unfinished"}],
        ),
        event("tool.execution_complete", "t", toolCallId="c", success=False, error={"message": "denied", "code": "x"}),
        event(
            "tool.execution_complete",
            "v",
            toolCallId="d",
            success=True,
            result={"content": "ok", "contents": [picture]},
        ),
        event("tool.execution_complete", "w", success=True, result={"content": "of no call"}),
    ]
    user, answer, failed, image = imported(write, bring, opened, *rows)
    assert answer.content == (Thinking("", "sig", {"encrypted_content": "xyz"}),)
    assert [(call.id, call.arguments) for call in answer.tool_calls] == [("c", "free text")]
    assert (answer.meta or {})["data"]["toolRequests"] == [{"name": "unfinished"}]
    assert (failed.text, (failed.meta or {})["data"]["error"]["code"]) == ("denied", "x")
    assert (user.meta or {})["data"]["attachments"][0]["data"]["sha256"].startswith("sha256-")
    assert image.text == "ok"
    assert (image.meta or {})["data"]["result"]["contents"][0]["data"] == (user.meta or {})["data"]["attachments"][0][
        "data"
    ]
    kept = [one.data["row"]["id"] for one in opened("talk").events() if one.type == "import.row"]
    assert kept == ["s", "w"]


@pytest.mark.parametrize("listed", [True, False])
def test_a_rewind_names_the_messages_that_were_taken_back(
    write: Write, bring: Bring, opened: Opened, listed: bool
) -> None:
    ids = {"eventIds": ["u2", "x", "a2"]} if listed else {}
    rows = [
        event("user.message", "u1", content="one"),
        event("assistant.message", "a1", content="two"),
        event("user.message", "u2", content="three"),
        event("assistant.message", "a2", content="four"),
        event("session.snapshot_rewind", "r", upToEventId="u2", eventsRemoved=3, **ids),
        event("user.message", "u3", content="five"),
    ]
    for _ in range(2):
        assert len(imported(write, bring, opened, *rows)) == 5
    events = [one.data["messages"] for one in opened("talk").events() if one.type == "import.rolled_back"]
    assert events == ["messages:3-4"]
