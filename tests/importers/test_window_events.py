"""Compactions of another agent: which messages left its window, and which stayed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daypack.cli.event_words import WORDS
from daypack.importers.import_transcript import ImportReport
from daypack.session import Session

Write = Callable[..., str]
Bring = Callable[..., ImportReport]
Opened = Callable[[str], Session]
NAME = "aaaaaaaa-0000-0000-0000-000000000000"


def claude(kind: str, uuid: str, words: str, **fields: Any) -> dict[str, Any]:
    content = words if kind == "user" else [{"type": "text", "text": words}]
    message = {"role": kind, "id": f"m-{uuid}", "content": content}
    return {"type": kind, "uuid": uuid, "sessionId": NAME, "message": message, **fields}


def boundary(uuid: str, *kept: str, **fields: Any) -> dict[str, Any]:
    about = {"trigger": "auto", "preTokens": 90_000, "postTokens": 2_600, "preservedMessages": {"uuids": [*kept]}}
    return {"type": "system", "subtype": "compact_boundary", "uuid": uuid, "sessionId": NAME} | {
        "compactMetadata": about, **fields
    }  # fmt: skip


def compactions(session: Session) -> list[dict[str, Any]]:
    names = ("id", "through", "kept", "trigger", "before_tokens", "after_tokens")
    events = [event.data for event in session.events() if event.type == "import.compacted"]
    return [{name: data[name] for name in names if name in data} for data in events]


CLAUDE = [
    claude("user", "u1", "one"),
    claude("assistant", "a1", "two"),
    claude("assistant", "a2", "three") | {"message": {"id": "m-a1", "content": [{"type": "text", "text": "three"}]}},
    claude("user", "u2", "four"),
    boundary("s1", "a2", "u2"),
    claude("user", "u3", "A summary.", isCompactSummary=True),
    claude("user", "u4", "five"),
    boundary("s2"),
]


@pytest.mark.parametrize("cut", range(1, len(CLAUDE) + 1))
def test_a_compaction_names_the_messages_that_stay(write: Write, bring: Bring, opened: Opened, cut: int) -> None:
    for rows in (CLAUDE[:cut], CLAUDE, CLAUDE):
        bring("claude-code", write(f"{NAME}.jsonl", rows))
    session = opened(NAME)
    first, second = compactions(session)
    texts = {message.seq: message.text for message in session.messages()}
    assert texts[first["through"]] == "four"
    assert [texts[seq] for seq in first["kept"]][-1] == "four"
    assert "three" in " ".join(texts[seq] for seq in first["kept"])
    assert "one" not in " ".join(texts[seq] for seq in first["kept"])
    assert {name: first[name] for name in ("id", "trigger", "before_tokens", "after_tokens")} == {
        "id": "s1", "trigger": "auto", "before_tokens": 90_000, "after_tokens": 2_600
    }  # fmt: skip
    assert (texts[second["through"]], second["kept"]) == ("five", [])
    kept = [event.data["row"]["uuid"] for event in session.events() if event.type == "import.row"]
    assert kept == ["s1", "s2"]  # the rows are there too


def test_a_copy_of_the_file_adds_no_compaction(write: Write, bring: Bring, opened: Opened) -> None:
    path = write(f"{NAME}.jsonl", CLAUDE)
    bring("claude-code", path)
    inserted = [claude("user", "u0", "zero"), *CLAUDE]
    for rows in (Path(path).read_bytes(), inserted):
        bring("claude-code", write(f"copy/{NAME}.jsonl", rows))
    assert [found["id"] for found in compactions(opened(NAME))] == ["s1", "s2"]


def test_a_compaction_of_a_sub_agent_is_in_its_own_session(write: Write, bring: Bring, opened: Opened) -> None:
    side = {"isSidechain": True, "agentId": "a1"}
    rows = [claude("user", "u1", "Task", **side), boundary("s1", "u1", **side)]
    bring("claude-code", write(f"{NAME}/subagents/agent-a1.jsonl", rows))
    assert [found["kept"] for found in compactions(opened(f"{NAME}--a1"))] == [[1]]
    inline = [claude("user", "v1", "Begin"), *rows]
    bring("claude-code", write(f"{NAME}.jsonl", inline))
    assert compactions(opened(NAME)) == []


def item(role: str, words: str, **fields: Any) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": words}], **fields}


@pytest.mark.parametrize("ids", [True, False])
def test_codex_keeps_messages_of_the_user(write: Write, bring: Bring, opened: Opened, ids: bool) -> None:
    def numbered(number: int, role: str, words: str) -> dict[str, Any]:
        return item(role, words, **({"id": f"msg_{number}"} if ids else {}))

    said = [numbered(1, "user", "one"), numbered(2, "assistant", "two"), numbered(3, "user", "three")]
    summary = numbered(9, "user", "Another language model produced a summary: …")
    compacted = {"message": "…", "replacement_history": [said[0], said[2], summary], "window_id": "w2"}
    rows = [
        {"type": "session_meta", "payload": {"id": NAME}},
        *({"type": "response_item", "payload": payload} for payload in said),
        {"type": "compacted", "payload": compacted},
        {"type": "response_item", "payload": numbered(4, "assistant", "four")},
    ]
    for _ in range(2):
        bring("codex", write("rollout.jsonl", rows))
    assert compactions(opened(NAME)) == [{"id": "w2", "through": 3, "kept": [1, 3]}]


def test_a_compaction_is_described_in_words(write: Write, bring: Bring, opened: Opened) -> None:
    bring("claude-code", write(f"{NAME}.jsonl", CLAUDE))
    first, second = (event for event in opened(NAME).events() if event.type == "import.compacted")
    assert WORDS[first.type](first.data) == (
        "claude-code compacted its window up to message 3 (90,000 → 2,600 tokens), 2 messages kept"
    )
    assert WORDS[second.type](second.data) == "claude-code compacted its window up to message 5 (90,000 → 2,600 tokens)"
