"""Transcripts with anything anywhere: rows are imported, or kept as events and reported, and turns can be prepared."""

import json
import random
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from campaigns import Campaign
from turn.provider_checks import check_requests

import daypack
from daypack.errors import DaypackError, NoUserMessage
from daypack.importers.import_file import Destination, import_file

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TIME = "2026-11-15T22:09:00Z"
CALLED = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CHAT: list[Any] = [
    {"role": "system", "content": "Be kind."},
    {
        "role": "user",
        "name": "ann",
        "timestamp": 1_700_000_000,
        "content": [
            {"type": "text", "text": "Look."},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0=", "filename": "a.pdf"}},
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        ],
    },
    {"role": "assistant", "content": None, "reasoning_content": "Hm.", "tool_calls": [CALLED]},
    {"role": "tool", "tool_call_id": "c", "content": "done"},
    {"role": "assistant", "content": "And", "function_call": {"name": "f", "arguments": "{}"}},
    {"role": "function", "name": "f", "content": "done"},
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "x"},
    {"type": "function_call", "call_id": "d", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "d", "output": {"content": "done", "success": True}},
    {"type": "message", "role": "assistant", "id": "m", "content": [{"type": "output_text", "text": "Bye."}]},
]


def _claude(kind: str, number: int, content: object, **fields: object) -> dict[str, Any]:
    message = {"id": f"m{number}", "role": kind, "model": "x", "content": content, "usage": {"input_tokens": 1}}
    row = {"type": kind, "uuid": f"u{number}", "parentUuid": f"u{number - 1}", "sessionId": "s", "timestamp": TIME}
    return {**row, "cwd": "/w", "message": message, **fields}


def _codex(kind: str, **payload: object) -> dict[str, Any]:
    return {"timestamp": TIME, "type": kind, "payload": payload}


def _copilot(kind: str, number: int, **data: object) -> dict[str, Any]:
    return {"type": kind, "id": f"e{number}", "parentId": f"e{number - 1}", "timestamp": TIME, "data": data}


def _qwen(kind: str, number: int, *parts: object, **fields: object) -> dict[str, Any]:
    row = {"type": kind, "uuid": f"u{number}", "parentUuid": f"u{number - 1}", "sessionId": "s", "timestamp": TIME}
    role = "model" if kind == "assistant" else "user"
    return {**row, "provenance": "real_user", "message": {"role": role, "parts": [*parts]}, **fields}


def _gemini(kind: str, number: int, content: object, **fields: object) -> dict[str, Any]:
    return {"id": f"g{number}", "timestamp": TIME, "type": kind, "content": content, **fields}


GEMINI: dict[str, Any] = {"sessionId": "s", "projectHash": "h", "startTime": TIME, "lastUpdated": TIME, "kind": "main"}
GEMINI_CALL = {
    "id": "c",
    "name": "f",
    "args": {"a": 1},
    "status": "success",
    "timestamp": TIME,
    "resultDisplay": "x" * 80,
    "result": [{"functionResponse": {"id": "c", "name": "f", "response": {"output": "x" * 80}}}],
}
GEMINI_MESSAGES = [
    _gemini("user", 1, [{"text": "<hook_context>h</hook_context>\n\nHello."}], displayContent=[{"text": "Hello."}]),
    _gemini(
        "gemini",
        2,
        "I look.",
        thoughts=[{"subject": "S", "description": "D", "timestamp": TIME}],
        tokens={"input": 10, "output": 2, "cached": 3, "thoughts": 1, "tool": 0, "total": 13},
        model="m",
        toolCalls=[GEMINI_CALL],
    ),
    _gemini("user", 3, [{"functionResponse": {"id": "d", "name": "f", "response": {"error": "no"}}}]),
    _gemini("user", 4, [{"text": "Look."}, {"inlineData": {"mimeType": "image/png", "data": PNG}}]),
    _gemini(
        "gemini", 5, [{"text": "Hm.", "thought": True}, {"functionCall": {"id": "e", "name": "f", "args": {"a": 1}}}]
    ),
    _gemini("error", 6, "It failed."),
]


def _tui(kind: str, **payload: object) -> dict[str, Any]:
    return {"ts": TIME, "dir": "to_tui", "kind": kind, "payload": payload}


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
USE = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}
RESULT = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "x" * 80}, IMAGE]}
# By name: the ending of the file, its format, and its rows or its document.
TRANSCRIPTS: dict[str, tuple[str, str, Any]] = {
    "claude-code": (
        "jsonl",
        "claude-code",
        [
            _claude("user", 1, "Hello."),
            _claude("assistant", 2, [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, USE]),
            _claude("user", 3, [RESULT], toolUseResult={"stdout": "x" * 80}),
            _claude("user", 4, "Help me.", isSidechain=True, agentId="a"),
            _claude("assistant", 5, "I help.", isSidechain=True),
            _claude("user", 6, "So far.", isCompactSummary=True),
            {"type": "summary", "leafUuid": "u6", "summary": "A talk."},
        ],
    ),
    "codex": (
        "jsonl",
        "codex",
        [
            _codex("session_meta", id="abc", cwd="/w"),
            _codex("turn_context", model="m", cwd="/w"),
            *(_codex("response_item", **item) for item in CHAT[6:]),
            _codex("response_item", type="local_shell_call", call_id="e", action={"command": ["ls"]}),
            _codex("response_item", type="custom_tool_call", call_id="f", name="z", input="free"),
            _codex("response_item", type="web_search_call", id="ws", action={"type": "search"}),
            _codex("response_item", type="message", role="user", content=[{"type": "input_text", "text": "Hello."}]),
            _codex("event_msg", type="thread_rolled_back", num_turns=1),
            _codex("compacted", message="So far."),
        ],
    ),
    "codex terminal": (
        "jsonl",
        "codex",
        [
            {**_tui("session_start"), "model": "m", "cwd": "/w"},
            _tui("op", type="user_input", items=[{"type": "text", "text": "Hello."}]),
            _tui("codex_event", id="1", msg={"type": "agent_reasoning_delta", "delta": "H"}),
            _tui("codex_event", id="1", msg={"type": "agent_reasoning", "text": "Hm."}),
            _tui("codex_event", id="1", msg={"type": "agent_message", "message": "Yes."}),
            _tui("codex_event", id="1", msg={"type": "exec_command_begin", "call_id": "c", "command": ["ls"]}),
            _tui("codex_event", id="1", msg={"type": "exec_command_end", "call_id": "c", "stdout": "a", "stderr": ""}),
        ],
    ),
    "copilot": (
        "jsonl",
        "copilot",
        [
            _copilot("session.start", 1, sessionId="s", context={"cwd": "/w"}, selectedModel="m"),
            _copilot("system.message", 2, role="system", content="Be kind."),
            _copilot("user.message", 3, content="Hello.", transformedContent="Hello!", source="user"),
            _copilot(
                "assistant.message",
                4,
                content="Yes.",
                reasoningText="Hm.",
                toolRequests=[{"toolCallId": "c", "name": "f", "arguments": {"a": 1}}],
            ),
            _copilot("tool.execution_complete", 5, toolCallId="c", success=True, result={"content": "done"}),
            {**_copilot("user.message", 6, content="Help me."), "agentId": "a"},
            _copilot("session.compaction_complete", 7, success=True, preCompactionTokens=9, trigger="auto"),
            _copilot("session.snapshot_rewind", 8, upToEventId="e3", eventIds=["e3", "e4"], eventsRemoved=2),
            _copilot("user.message", 9, content="Again."),
        ],
    ),
    "gemini": (
        "jsonl",
        "gemini",
        [
            GEMINI,
            {"$set": {"messages": [_gemini("user", 0, [{"text": "<session_context>c</session_context>"}])]}},
            *GEMINI_MESSAGES,
            {
                "$set": {
                    "messages": [
                        _gemini("user", 7, [{"text": "<state_snapshot>s</state_snapshot>"}]),
                        _gemini("gemini", 8, [{"text": "Got it. Thanks for the additional context!"}]),
                        _gemini("user", 9, [{"text": "Look."}]),
                    ],
                    "lastUpdated": TIME,
                }
            },
            _gemini("user", 10, "Again."),
            {"$rewindTo": "g10"},
            _gemini("user", 11, [{"text": "<session_context>c</session_context>"}]),
            _gemini("gemini", 12, [{"text": "I look."}]),
            {"$set": {"messages": [_gemini("user", 11, []), _gemini("gemini", 12, [])], "lastUpdated": TIME}},
            _gemini("user", 13, [{"text": "More."}, "and more"]),
        ],
    ),
    "gemini-document": ("json", "gemini", {**GEMINI, "messages": GEMINI_MESSAGES, "summary": "s"}),
    "qwen": (
        "jsonl",
        "qwen",
        [
            _qwen("user", 1, {"text": "Hello."}, systemPayload={"displayText": "Hello.", "hookContext": "x"}),
            _qwen(
                "assistant", 2, {"text": "Hm.", "thought": True}, {"functionCall": {"id": "c", "name": "f", "args": {}}}
            ),
            _qwen("tool_result", 3, {"functionResponse": {"id": "c", "name": "f", "response": {"output": "done"}}}),
            _qwen("user", 4, {"text": "Look."}, {"inlineData": {"mimeType": "image/png", "data": PNG}}),
            {
                **_qwen("system", 5),
                "subtype": "chat_compression",
                "systemPayload": {
                    "info": {"originalTokenCount": 9},
                    "compressedHistory": [{"role": "user", "parts": [{"text": "Look."}]}],
                },
            },
            {**_qwen("system", 6), "subtype": "rewind", "parentUuid": "u3", "systemPayload": {}},
            _qwen("user", 7, {"text": "Again."}, {"fileData": {"mimeType": "text/plain", "fileUri": "file:///a"}}),
        ],
    ),
    "chat lines": ("jsonl", "openai", CHAT),
    "chat document": ("json", "openai", {"messages": CHAT, "model": "m", "tools": []}),
    "chat documents": ("json", "openai", [CHAT, {"input": CHAT[:2], "output": CHAT[6:]}]),
    "chat per line": ("jsonl", "openai", [{"messages": CHAT}, {"input": CHAT[:2], "output": CHAT[6:]}]),
    "swe-agent": (
        "traj",
        "swe-agent",
        {
            "history": [
                *CHAT[:2],
                {"role": "assistant", "content": "c", "thought": "t", "action": "ls", "tool_calls": [CALLED]},
                {"role": "tool", "content": "done", "tool_call_ids": ["c"]},
            ],
            "trajectory": [{"action": "ls", "observation": "a", "response": "r", "query": CHAT[:1]}],
            "info": {"exit_status": "submitted"},
        },
    ),
    "swe-agent steps": ("traj", "swe-agent", {"trajectory": [{"action": "ls", "observation": "a", "response": "r"}]}),
}
# Texts of JSON that no writer in this language writes.
RAW = {
    "deep list": "[" * 100_000 + "]" * 100_000,
    "deep object": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "nested": "[" * 500 + "]" * 500,
    "long number": "9" * 5000,
    "no number": "NaN",
}
ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**63, 10**30, 1e300, -1e18, "", " ", "x", "\0", "\ud800", "a" * 300, "a\nb"),
    *([], {}, [5], ["x"], [None], [[]], [{}], {"a": 1}, {"type": {}}, {"type": "text"}, [{"type": []}]),
    *([{"type": "text", "text": 5}], [{"type": "image", "source": 5}], [{"type": "tool_use", "id": 5, "name": []}]),
    *(f"<{name}>" for name in RAW),
)


@pytest.fixture(autouse=True)
def _unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYPACK_DURABILITY", "os")


def places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value."""
    names: list[Any] = [*value] if isinstance(value, dict) else [*range(len(value))]
    for name in names:
        yield (*before, name)
        if isinstance(value[name], (dict, list)):
            yield from places(value[name], (*before, name))


def encode(value: object) -> str:
    text = json.dumps(value)
    for name, raw in RAW.items():
        text = text.replace(json.dumps(f"<{name}>"), raw)
    return text


def write(path: Path, value: Any) -> None:
    lines = value if path.suffix == ".jsonl" else [value]
    path.write_text("\n".join(map(encode, lines)) + "\n")


def check_import(home: Path, path: Path, given: str | None) -> None:
    """Import a file; fail on anything but an error of daypack, and if a session of it cannot be prepared."""
    try:
        reports = import_file(given, str(path), Destination(home=str(home)))
    except DaypackError:
        return
    for report in reports:
        with daypack.open_session(report.session, home=str(home), create=False) as session:
            try:
                check_requests(session.prepare(dry_run=True))
            except NoUserMessage:
                continue


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_any_value_at_any_place_of_a_transcript_is_imported_or_reported(
    name: str, tmp_path: Path, campaign: Campaign
) -> None:
    ending, given, whole = TRANSCRIPTS[name]
    chance = random.Random(f"{campaign.seed} {name}")
    everywhere = [(place, value) for place in places(whole) for value in ODD]
    size = campaign.size("damaged transcripts", 300)
    for number, (place, value) in enumerate(chance.sample(everywhere, min(size, len(everywhere)))):
        damaged = deepcopy(whole)
        holder = damaged
        for step in place[:-1]:
            holder = holder[step]
        holder[place[-1]] = deepcopy(value)
        path = tmp_path / f"t{number}.{ending}"
        write(path, damaged)
        check_import(tmp_path / f"home{number}", path, given if number % 2 else None)


@pytest.mark.parametrize("name", TRANSCRIPTS)
@pytest.mark.parametrize("raw", RAW)
def test_rows_that_cannot_be_read_do_not_stop_an_import(name: str, raw: str, tmp_path: Path) -> None:
    ending, given, whole = TRANSCRIPTS[name]
    path = tmp_path / f"t.{ending}"
    rows: Any = [f"<{raw}>", *whole] if isinstance(whole, list) else {**whole, "more": f"<{raw}>"}
    write(path, rows)
    check_import(tmp_path / "home", path, given)
    check_import(tmp_path / "other", path, None)


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_text_part_whose_text_is_no_text_is_kept(role: str, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    item = {"type": "message", "role": role, "content": [{"type": "output_text", "text": 5}]}
    write(path, [{"role": "user", "content": "Hello."}, item])
    (report,) = import_file("openai", str(path), Destination(home=str(tmp_path)))
    assert (report.new, report.problems) == (2, [])
    with daypack.open_session(report.session, home=str(tmp_path), create=False) as session:
        turn = session.prepare()
        check_requests(turn)
        assert "messages:2/content[0]" in {omission.item for omission in turn.omitted}


def test_a_first_line_that_is_nested_too_deeply_hides_no_others(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write(path, ["<deep list>", {"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Yes."}])
    (report,) = import_file(None, str(path), Destination(home=str(tmp_path)))
    assert report.new == 2
    assert [problem.line for problem in report.problems] == [1]
