"""Events in words, as `daypack log --events` prints them."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

import daypack
from daypack.cli.event_words import describe_event
from daypack.types.history import Event

Command = Callable[..., subprocess.CompletedProcess[str]]

SAID: list[tuple[str, dict[str, Any], str]] = [
    ("pin.set", {"name": "system.md", "text": "Be brief."}, "pinned system.md (9 tokens)"),
    ("pin.set", {"name": "big.md", "blob": "sha256-1", "bytes": 6756}, "pinned big.md (6,756 bytes)"),
    (
        "tool.called",
        {"message": "msg-3", "calls": [{"id": "c1", "name": "run"}, {"id": "c2", "name": "read"}], "more": 3},
        "msg-3 called run (c1), read (c2) and 3 other calls",
    ),
    (
        "tool.returned",
        {"message": "msg-4", "call": "c1", "name": "run", "outcome": "error", "exit": 2, "duration_ms": 1234},
        "msg-4 is the result of run (c1): error, exit code 2, 1.2 s",
    ),
    (
        "tool.returned",
        {"message": "msg-4", "outcome": "error", "error": "KeyError"},
        "msg-4 is the result of a call: error, KeyError",
    ),
    ("provider.error", {"message": "msg-5", "error": "APIError"}, "reply msg-5 broke off: APIError"),
    (
        "provider.error",
        {"error": "RateLimitError", "status": 429},
        "a call of the provider failed: RateLimitError (status 429)",
    ),
    (
        "provider.overflow",
        {"turn": "ev-4", "compaction": "ev-9"},
        "the provider refused turn ev-4 as too long; compacted as ev-9",
    ),
    (
        "provider.overflow",
        {"problem": "nothing can leave"},
        "the provider refused a turn as too long; not compacted: nothing can leave",
    ),
    (
        "child.updated",
        {"name": "rev", "status": "done", "changes": ["started", "ended"], "result": {}},
        "child rev started and ended, now done: result",
    ),
    ("pin.removed", {"name": "system.md"}, "unpinned system.md"),
    ("session.state", {"from": "active", "to": "done"}, "state changed from active to done"),
    (
        "log.torn",
        {"log": "messages.jsonl", "offset": 948, "bytes": 11, "file": "messages.jsonl.torn-1"},
        "moved 11 half-written bytes of messages.jsonl to messages.jsonl.torn-1",
    ),
    (
        "log.torn",
        {"log": "events.jsonl", "offset": 948, "bytes": 11, "file": None},
        "completed the last line of events.jsonl: its line break was missing",
    ),
    (
        "context.turn",
        {"target": "model", "used": [40, 1, 1], "limits": {"tokens": 8000}, "epoch": "ev-2"},
        "turn: 40 of 8,000 tokens, continues ev-2",
    ),
    (
        "context.turn",
        {"target": "ui", "used": [40, 1, 1], "limits": {"items": 8}, "opening": {"reason": "overflow"}},
        "turn for ui: 40 tokens, new epoch: the window was full",
    ),
    (
        "context.usage",
        {"message": "msg-3", "input_tokens": 812, "cached_tokens": 700, "output_tokens": 9},
        "reply msg-3 used 812 input tokens, 700 cached, 9 output tokens",
    ),
    ("context.usage", {"message": "msg-3", "input_tokens": 812}, "reply msg-3 used 812 input tokens"),
    (
        "context.snapshot",
        {"message": "msg-2", "snapshot": {"memory": {"core": [{}], "working": [], "ephemeral": [{}, {}]}}},
        "reply msg-2 had a snapshot with blocks: 1 core, 2 ephemeral",
    ),
    (
        "context.snapshot",
        {"message": "msg-2", "violation_counts": {"S0-R1": 2, "S0-R2": 1}},
        "reply msg-2 had no usable snapshot; 3 violations",
    ),
    (
        "context.compaction.completed",
        {"source": "messages:1-210", "before_tokens": 9000, "after_tokens": 1200, "trigger": "manual"},
        "compacted messages 1-210: 9,000 → 1,200 tokens, requested",
    ),
    ("context.compaction.undone", {"compaction": "ev-40"}, "undid the compaction ev-40"),
    (
        "context.compaction.failed",
        {"model": "llama:x", "problem": "it timed out"},
        "compaction with llama:x failed: it timed out",
    ),
    ("context.budget", {"text": "8000\n"}, "budget set to 8,000 tokens"),
    ("context.budget", {"text": '{"tokens": 8000,\n "items": 4}'}, 'budget set to {"tokens": 8000, "items": 4}'),
    ("context.switch", {"name": "protocol", "on": True}, "switched protocol on"),
    ("context.switch", {"name": "protocol", "on": False}, "switched protocol off"),
    ("rules.found", {"first": 3, "through": 3}, "no standing rule in messages 3"),
    (
        "rules.found",
        {"first": 1, "through": 9, "rules": [{"id": "rule-3", "text": "Be\nbrief."}, {"id": "rule-4", "text": "No."}]},
        "2 standing rules in messages 1-9: Be brief.; No.",
    ),
    ("rule.added", {"rule": {"id": "rule-a1", "text": "Be kind."}}, "added rule-a1: Be kind."),
    ("rule.dropped", {"id": "rule-3"}, "dropped rule-3"),
    ("rule.pinned", {"id": "rule-3", "on": True}, "pinned rule-3"),
    ("rule.pinned", {"id": "rule-3", "on": False}, "unpinned rule-3"),
    ("context.missing.requested", {"missing_id": "q-1", "question": "Which port?"}, "asked q-1: Which port?"),
    (
        "context.missing.requested",
        {"missing_id": "q-1", "question": "Which port?", "requested_from": "user"},
        "asked user q-1: Which port?",
    ),
    ("context.missing.resolved", {"missing_id": "q-1"}, "resolved the question q-1"),
    (
        "context.exported",
        {"context_id": "ctx-1", "scope": "turn", "target": "reviewer"},
        "exported the turn for reviewer as ctx-1",
    ),
    ("context.imported", {"context_id": "ctx-1", "items": 12}, "imported the envelope ctx-1 (12 items)"),
    (
        "child.updated",
        {"name": "archivist", "status": "done", "handoff": {}, "result": {}, "artifacts": [{}, {}]},
        "child archivist is done: handoff, result, 2 artifacts",
    ),
    ("gc.policy", {"text": "pack_ttl=0s\nswap_ttl=2w\n"}, "policy of garbage collection: pack_ttl=0s; swap_ttl=2w"),
    (
        "gc.applied",
        {"removed": {"pack": 2, "swap": 1}, "bytes": 32982},
        "removed 3 derived files (2 pack, 1 swap), 32,982 bytes",
    ),
    ("import.begun", {"path": "a.jsonl", "format": "codex"}, "import of a.jsonl (codex) began"),
    (
        "import.row",
        {"line": 1200, "row": {"type": "event_msg", "payload": {"type": "token_count"}}},
        "kept line 1,200 of the transcript, which is not a message: event_msg, token_count",
    ),
    ("import.row", {"line": 2, "problem": "not JSON", "text": "{"}, "line 2 of the transcript: not JSON"),
    (
        "import.row",
        {"line": 2, "text": "{"},
        "kept line 2 of the transcript, which is not a message: a row without a type",
    ),
    ("import.file", {"file": "toolu_1.txt"}, "captured the file toolu_1.txt of the transcript"),
    (
        "import.rolled_back",
        {"messages": "messages:5-9", "format": "codex"},
        "messages 5-9 were rolled back by codex",
    ),
    (
        "import.progress",
        {"path": "a.jsonl", "lines": 1863, "totals": {"messages": 1}},
        "imported a.jsonl up to line 1,863: 1 message",
    ),
    ("memory.bound", {"memory": {"memory_id": "m-1"}}, "bound to the memory m-1"),
    ("memory.bound", {"memory": None}, "no longer bound to a memory"),
    ("fact.confirmed", {"id": "f3"}, "confirmed f3"),
    ("tool.failed", {"code": 1}, 'tool.failed  {"code":1}'),
    ("mine", {}, "mine"),
    ("context.turn", {"of": "another program"}, 'context.turn  {"of":"another program"}'),
    ("pin.set", {"name": "x"}, 'pin.set  {"name":"x"}'),
]


@pytest.mark.parametrize(("kind", "data", "words"), SAID)
def test_an_event_is_said_in_words(kind: str, data: dict[str, Any], words: str) -> None:
    assert describe_event(Event(type=kind, data=data), len) == words


def test_the_log_has_one_line_per_event_and_json_as_stored(
    command: Command, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "90")
    with daypack.open_session("talk", home=home, durability="os", model="gpt-4o") as session:
        session.pin("system", "Answer in one sentence.")
        session.append("user", "Hello")
        turn = session.prepare(budget=8000)
        session.append_event("mine", {"text": "long " * 100})
    first, second, third = command("log", "talk", "--events").stdout.splitlines()
    assert first.startswith("ev-1  20")
    assert first.endswith("  pinned system.md (5 tokens)")
    assert second.endswith(f"  turn: {turn.tokens} of 8,000 tokens, new epoch: first turn")
    assert third.endswith("…")
    assert len(third) == 90
    stored = [json.loads(line) for line in command("log", "talk", "--events", "--json").stdout.splitlines()]
    assert [event["type"] for event in stored] == ["pin.set", "context.turn", "mine"]
    assert stored[0]["data"]["text"] == "Answer in one sentence."
