"""Transcripts of Claude Code: what becomes a message, what an event, what a child."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daypack.derived.children import read_children
from daypack.errors import BadInput
from daypack.importers.import_file import Destination, import_file
from daypack.importers.import_transcript import ImportReport
from daypack.session import Session
from daypack.types.history import Image, Message, Other, Text, Thinking

Write = Callable[..., str]
Bring = Callable[..., ImportReport]
Opened = Callable[[str], Session]
SESSION = "11111111-2222-3333-4444-555555555555"
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4


def row(kind: str, uuid: str, message: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    told = {"type": kind, "uuid": uuid, "parentUuid": None, "isSidechain": False, "sessionId": SESSION}
    told |= {"timestamp": f"2026-02-11T20:36:{len(uuid):02d}.000Z", "cwd": "/work", "gitBranch": "main"}
    return told | ({"message": message} if message else {}) | fields


def user(uuid: str, content: Any, **fields: Any) -> dict[str, Any]:
    return row("user", uuid, {"role": "user", "content": content}, **fields)


def said(uuid: str, name: str, *blocks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    usage = {"output_tokens": len(uuid)}
    message = {"id": name, "type": "message", "role": "assistant", "model": "claude-x", "content": [*blocks]}
    return row("assistant", uuid, {**message, "usage": usage}, **fields)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(key: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": key, "name": "Bash", "input": arguments}


def result(key: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": key, "content": content, **fields}


def messages(opened: Opened, name: str = SESSION) -> list[Message]:
    return list(opened(name).messages())


def rows_kept(opened: Opened, name: str = SESSION) -> list[Any]:
    return [one.data.get("row", one.data.get("text")) for one in opened(name).events() if one.type == "import.row"]


def test_rows_of_one_message_are_merged_and_results_between_them_follow(
    write: Write, bring: Bring, opened: Opened
) -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    path = write(
        f"{SESSION}.jsonl",
        [
            user("u1", "List the files"),
            said("a1", "m1", thought),
            said("a2", "m1", text("I look.")),
            said("a3", "m1", call("c1", command="ls")),
            user("r1", [result("c1", "a.py")]),
            row("progress", "p1", data={"type": "hook"}),
            said("a4-later", "m1", call("c2", command="pwd")),
            user("r2", [result("c2", "/work", is_error=True)]),
            said("b1", "m2", text("Done.")),
        ],
    )
    report = bring("claude-code", path)
    first, asked, one, two, last = messages(opened)
    assert (first.role, first.content, first.ts) == ("user", "List the files", "2026-02-11T20:36:02.000Z")
    assert asked.content == (Thinking("hm", "s"), Text("I look."))
    assert [(each.id, each.name, each.arguments) for each in asked.tool_calls] == [
        ("c1", "Bash", '{"command":"ls"}'),
        ("c2", "Bash", '{"command":"pwd"}'),
    ]
    assert [(each.role, each.tool_call_id, each.content) for each in (one, two)] == [
        ("tool", "c1", "a.py"),
        ("tool", "c2", "/work"),
    ]
    assert two.meta is not None
    assert two.meta["result"] == {"is_error": True}
    assert last.content == "Done."
    assert asked.meta is not None
    assert asked.meta["rows"] == ["a1", "a2", "a3", "a4-later"]
    assert asked.meta["usage"] == {"output_tokens": 8}
    assert (asked.meta["model"], asked.meta["message_id"], asked.meta["uuid"]) == ("claude-x", "m1", "a1")
    assert asked.meta["row"]["gitBranch"] == "main"
    assert [one["type"] for one in rows_kept(opened)] == ["progress"]
    assert (report.messages, report.new, report.known, report.tool_calls, report.rows) == (5, 5, 0, 2, 1)


def test_a_row_with_results_and_words_becomes_both(write: Write, bring: Bring, opened: Opened) -> None:
    rows = [
        said("a1", "m1", call("c1"), call("c2")),
        user("u1", [result("c1", "one"), result("c2", "two"), text("Go on")]),
    ]
    bring("claude-code", write(f"{SESSION}.jsonl", rows))
    _, one, two, words = messages(opened)
    assert [(each.role, each.text) for each in (one, two, words)] == [
        ("tool", "one"),
        ("tool", "two"),
        ("user", "Go on"),
    ]
    assert [each.client_key for each in (one, two, words)] == [f"claude-code:u1{end}" for end in ("", "#2", "#3")]


def test_everything_before_a_compaction_stays_and_its_summary_is_marked(
    write: Write, bring: Bring, opened: Opened
) -> None:
    boundary = row("system", "s1", subtype="compact_boundary", logicalParentUuid="u1")
    summary = user("u2", "This session is continued …", isCompactSummary=True)
    bring("claude-code", write(f"{SESSION}.jsonl", [user("u1", "Begin"), boundary, summary, user("u3", "Go on")]))
    stored = messages(opened)
    assert [one.text for one in stored] == ["Begin", "This session is continued …", "Go on"]
    assert [bool((one.meta or {}).get("foreign_summary")) for one in stored] == [False, True, False]
    assert rows_kept(opened) == [boundary]


def test_rows_that_are_no_messages_are_kept_word_for_word(write: Write, bring: Bring, opened: Opened) -> None:
    odd: list[Any] = [
        {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}, "isSnapshotUpdate": False},
        {"type": "summary", "summary": "A talk", "leafUuid": "u1"},
        row("novelty", "n1", data=[1, 2.5, None, {"deep": True}]),
        row("user", "n2"),
        [1, "two"],
    ]
    report = bring("claude-code", write(f"{SESSION}.jsonl", [user("u1", "Hi"), *odd]))
    assert rows_kept(opened) == odd
    assert (report.messages, report.rows) == (1, 5)
    times = [one.ts for one in opened(SESSION).events() if one.data.get("line") == 4]
    assert times == ["2026-02-11T20:36:02.000Z"]


def test_pictures_are_kept_beside_the_log_and_never_in_it(write: Write, bring: Bring, opened: Opened) -> None:
    data = base64.b64encode(PICTURE).decode()
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    document = {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": data},
        "title": "T",
    }
    there = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    shown = {"type": "image", "file": {"base64": data, "type": "image/png"}}
    rows = [
        user("u1", [text("See"), block, document, there]),
        said("a1", "m1", call("c1")),
        user("u2", [result("c1", [block])], toolUseResult=shown),
    ]
    bring("claude-code", write(f"{SESSION}.jsonl", rows))
    session = opened(SESSION)
    asked, _, answered = messages(opened)
    assert isinstance(asked.content, tuple)
    name = asked.content[1].source if isinstance(asked.content[1], Image) else ""
    assert (session.path / "blob" / name).read_bytes() == PICTURE
    assert [type(part).__name__ for part in asked.content] == ["Text", "Image", "File", "Image"]
    assert answered.content == (Image(name, "image/png"),)
    assert (answered.meta or {})["tool_use_result"] == {
        "type": "image",
        "file": {"base64": {"sha256": name}, "type": "image/png"},
    }
    assert data[:60] not in (session.path / "messages.jsonl").read_text()


def test_what_a_tool_told_the_program_is_not_repeated_and_not_lost(write: Write, bring: Bring, opened: Opened) -> None:
    out, whole = "line\n" * 50, "the file before " * 200
    small = {"stdout": out, "stderr": "", "interrupted": False}
    rows = [
        said("a1", "m1", call("c1"), call("c2")),
        user("u1", [result("c1", f"<out>{out}")], toolUseResult=small),
        user("u2", [result("c2", "edited")], toolUseResult={"originalFile": whole}),
    ]
    bring("claude-code", write(f"{SESSION}.jsonl", rows))
    _, one, two = messages(opened)
    told = (one.meta or {})["tool_use_result"]
    start, length = told["stdout"]["content_chars"]
    assert one.text[start : start + length] == out
    assert told == {"stdout": {"content_chars": [5, 250]}, "stderr": "", "interrupted": False}
    assert "tool_use_result" not in (two.meta or {})
    assert rows_kept(opened) == [{"uuid": "u2", "toolUseResult": {"originalFile": whole}}]


def test_blocks_of_unknown_types_stay_in_their_message(write: Write, bring: Bring, opened: Opened) -> None:
    hosted = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}}
    hidden = {"type": "redacted_thinking", "data": "opaque"}
    bring("claude-code", write(f"{SESSION}.jsonl", [said("a1", "m1", hidden, hosted, text("data: x,y"))]))
    (stored,) = messages(opened)
    assert stored.content == (Other(hidden), Other(hosted), Text("data: x,y"))


def children_of(opened: Opened, name: str = SESSION) -> list[tuple[str, str | None, str | None]]:
    return [(one.name, one.handoff, one.result) for one in read_children(opened(name).history)]


def agent_rows(agent: str) -> list[dict[str, Any]]:
    told = {"isSidechain": True, "agentId": agent}
    return [
        user(f"{agent}-u", f"Task of {agent}", **told),
        said(f"{agent}-a", f"{agent}-m", call("c9"), **told),
        user(f"{agent}-r", [result("c9", "found")], **told),
        said(f"{agent}-b", f"{agent}-n", text(f"Result of {agent}"), **told),
    ]


def test_files_of_sub_agents_become_children_with_sessions_of_their_own(
    write: Write, home: str, opened: Opened
) -> None:
    path = write(f"{SESSION}.jsonl", [user("u1", "Begin")])
    write(f"{SESSION}/subagents/agent-abc.jsonl", agent_rows("abc"))
    write(f"{SESSION}/subagents/agent-acompact-1.jsonl", agent_rows("acompact-1"))
    write(f"{SESSION}/subagents/agent-empty.jsonl", [])
    for new in ([1, 4, 4], [0, 0, 0]):
        reports = import_file("claude-code", path, Destination(home))
        assert [report.new for report in reports] == new
        assert reports[0].children == ["abc"]
    assert [message.text for message in messages(opened, f"{SESSION}--abc")] == [
        "Task of abc",
        "",
        "found",
        "Result of abc",
    ]
    assert len(messages(opened, f"{SESSION}--acompact-1")) == 4
    assert children_of(opened) == [("abc", "Task of abc", "Result of abc")]
    assert sum(one.type == "child.updated" for one in opened(SESSION).events()) == 1


def test_a_sub_agent_that_goes_on_updates_its_parent(write: Write, home: str, opened: Opened) -> None:
    path = write(f"{SESSION}.jsonl", [user("u1", "Begin")])
    for count in (2, 4):
        write(f"{SESSION}/subagents/agent-abc.jsonl", agent_rows("abc")[:count])
        import_file("claude-code", path, Destination(home, session="mine"))
    assert children_of(opened, "mine") == [("abc", "Task of abc", "Result of abc")]
    assert len(messages(opened, "mine--abc")) == 4


def test_a_file_of_a_sub_agent_alone_becomes_its_session_only(write: Write, bring: Bring, home: str) -> None:
    report = bring("claude-code", write(f"{SESSION}/subagents/agent-abc.jsonl", agent_rows("abc")))
    assert report.session == f"{SESSION}--abc"
    sessions = Path(home).glob("home/*/agent/default/session/*")
    assert [one.name for one in sessions] == [f"{SESSION}--abc"]


def test_side_rows_among_those_of_the_session_become_children(write: Write, bring: Bring, opened: Opened) -> None:
    data = base64.b64encode(PICTURE).decode()
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    old = [  # before there were agent ids: a thread begins without a parent
        user("old-root-1", [text("Old task"), block], isSidechain=True),
        said("old-2", "om", text("Old result"), isSidechain=True, parentUuid="old-root-1"),
    ]
    new = agent_rows("abc")
    rows = [user("u1", "Begin"), new[0], old[0], new[1], said("a1", "m1", text("Main")), new[2], old[1], new[3]]
    path = write(f"{SESSION}.jsonl", rows)
    report = bring("claude-code", path)
    assert (report.children, report.messages) == (["abc", "old-root"], 8)
    assert [message.text for message in messages(opened)] == ["Begin", "Main"]
    assert children_of(opened) == [("abc", "Task of abc", "Result of abc"), ("old-root", "Old task", "Old result")]
    (name,) = (opened(f"{SESSION}--old-root").path / "blob").iterdir()
    assert name.read_bytes() == PICTURE
    rows.append(said("old-3", "on", text("Newer result"), isSidechain=True, parentUuid="old-2"))
    write(f"{SESSION}.jsonl", rows)
    assert bring("claude-code", path).new == 1
    assert children_of(opened)[1] == ("old-root", "Old task", "Newer result")


def test_side_files_with_large_results_are_kept(write: Write, bring: Bring, opened: Opened) -> None:
    path = write(f"{SESSION}.jsonl", [user("u1", "Begin")])
    write(f"{SESSION}/tool-results/small.txt", "a result")
    write(f"{SESSION}/tool-results/large.txt", b"\xff" + b"x" * 100_000)
    bring("claude-code", path)
    bring("claude-code", path)
    session = opened(SESSION)
    kept = {event.data["file"]: event.data for event in session.events() if event.type == "import.file"}
    assert sum(event.type == "import.file" for event in session.events()) == 2
    assert kept["small.txt"]["text"] == "a result"
    assert (session.path / "blob" / kept["large.txt"]["blob"]).read_bytes() == b"\xff" + b"x" * 100_000


def test_the_session_is_named_by_its_id_and_has_the_folder_and_model_of_its_agent(
    write: Write, bring: Bring, opened: Opened
) -> None:
    report = bring("claude-code", write("renamed.jsonl", [user("u1", "Hi"), said("a1", "m", text("Hello"))]))
    assert report.session == SESSION
    session = opened(SESSION)
    assert (session.path / "cwd").read_text() == "/work\n"
    assert session.meta["model"] == "claude-x"


def test_an_answer_that_is_bare_text_is_read(write: Write, bring: Bring, opened: Opened) -> None:
    bring("claude-code", write("x.jsonl", [row("assistant", "a", {"role": "assistant", "content": "plain"})]))
    assert [(message.role, message.content) for message in messages(opened)] == [("assistant", "plain")]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("codex.jsonl", '{"timestamp":"t","type":"session_meta","payload":{"id":"x"}}\n', "is a transcript of codex"),
        ("chat.json", '[{"role":"user","content":"hi"}]', "is a transcript of openai"),
        ("run.traj", json.dumps({"history": [], "trajectory": []}, indent=1), "is a transcript of swe-agent"),
        ("notes.jsonl", "Dear diary\n", "is not a transcript of claude-code"),
        ("empty.jsonl", "\n \n", "is empty"),
    ],
)
def test_a_file_of_another_kind_is_told_apart(
    write: Write, bring: Bring, name: str, content: str, problem: str
) -> None:
    with pytest.raises(BadInput, match=problem) as refused:
        bring("claude-code", write(name, content))
    assert refused.value.place.endswith(name)
    assert refused.value.hint
