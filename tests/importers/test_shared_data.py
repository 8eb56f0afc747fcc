"""Real transcripts, where there are any: every word of theirs is in the session, once."""

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daypack.derived.children import read_children
from daypack.importers.import_file import Destination, import_file
from daypack.importers.import_transcript import ImportReport
from daypack.session import Session
from daypack.types.history import Message, Text, Thinking

Bring = Callable[..., ImportReport]
Write = Callable[..., str]
Opened = Callable[[str], Session]

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("DAYPACK_DATA") or ROOT.parent / "shared" / "data") / "transcripts"
CLAUDE = sorted(DATA.glob("claude-code/**/*.jsonl"))
SWE = sorted(DATA.glob("swe-agent/*.traj"))
SCREEN = DATA / "codex" / "oss-story.jsonl"

needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"no transcripts in {DATA}: set DAYPACK_DATA")


def named(path: Path) -> str:
    return path.stem[:40]


def claude_words(path: Path) -> Counter[tuple[str, str]]:
    """Return every text, thought, call and result of a file, read in the plainest way."""
    found: Counter[tuple[str, str]] = Counter()
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row.get("type") not in ("user", "assistant"):
            continue
        content = row["message"]["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "text":
                found[row["type"], block["text"]] += 1
            elif block["type"] == "thinking":
                found["thinking", block["thinking"]] += 1
            elif block["type"] == "tool_use":
                found[f"call {block['id']}", json.dumps(block["input"])] += 1
            else:
                told = block["content"]
                words = told if isinstance(told, str) else "\n".join(one["text"] for one in told)
                found[f"result {block['tool_use_id']}", words] += 1
    return found


def stored_words(messages: list[Message]) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for message in messages:
        if message.role == "tool":
            found[f"result {message.tool_call_id}", message.text] += 1
            continue
        bare = (Text(message.content),) if isinstance(message.content, str) else message.content
        for part in bare if message.content else ():
            assert isinstance(part, Text | Thinking)
            found["thinking" if isinstance(part, Thinking) else message.role, part.text] += 1
        for call in message.tool_calls:
            found[f"call {call.id}", json.dumps(json.loads(call.arguments))] += 1
    return found


def check_calls(messages: list[Message]) -> None:
    """Every result follows its call."""
    called: set[str] = set()
    for message in messages:
        called |= {call.id for call in message.tool_calls}
        assert message.role != "tool" or message.tool_call_id in called, message.id


@needs_data
@pytest.mark.parametrize("path", CLAUDE, ids=named)
def test_every_word_of_a_claude_code_session_is_there_once(bring: Bring, opened: Opened, path: Path) -> None:
    report = bring("claude-code", str(path))
    messages = list(opened(report.session).messages())
    assert stored_words(messages) == claude_words(path)
    check_calls(messages)
    assert report.problems == []
    again = bring("claude-code", str(path))
    assert (again.new, again.new_rows, again.messages) == (0, 0, len(messages))


@needs_data
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("path", [one for one in CLAUDE if one.parent.name == "claude-code"], ids=named)
def test_half_a_file_and_then_the_whole_come_to_the_same(
    bring: Bring, write: Write, opened: Opened, path: Path, share: float
) -> None:
    data = path.read_bytes()
    cut = max(int(len(data) * share), data.index(b'"sessionId"') + 2000)
    first = bring("claude-code", write(f"{path.stem}.jsonl", data[:cut]))
    second = bring("claude-code", str(path))
    messages = list(opened(second.session).messages())
    assert first.new + second.new == len(messages)
    assert stored_words(messages) == claude_words(path)
    check_calls(messages)


@needs_data
def test_sub_agents_are_children_of_their_sessions(home: str, opened: Opened) -> None:
    parents = [path for path in CLAUDE if (path.parent / path.stem / "subagents").is_dir()]
    assert parents
    for path in parents:
        reports = import_file("claude-code", str(path), Destination(home))
        children = read_children(opened(path.stem).history)
        assert [child.name for child in children] == reports[0].children
        assert children
        for child in children:
            words = claude_words(path.parent / path.stem / "subagents" / f"agent-{child.name}.jsonl")
            assert words["user", child.handoff or ""] == 1
            assert words["assistant", child.result or ""] == 1


@needs_data
@pytest.mark.parametrize("path", SWE, ids=named)
def test_every_word_of_a_swe_agent_run_is_there(bring: Bring, opened: Opened, path: Path) -> None:
    report = bring("swe-agent", str(path))
    session = opened(report.session)
    run = json.loads(path.read_text(encoding="utf-8"))
    messages = list(session.messages())
    assert [(one.role, one.text) for one in messages] == [(one["role"], one["content"]) for one in run["history"]]
    check_calls(messages)
    kept = [event.data["row"] for event in session.events() if event.type == "import.row"]
    assert [one["trajectory"] for one in kept[:-1]] == [unrepeated(one, run["history"]) for one in run["trajectory"]]
    assert kept[-1] == {name: value for name, value in run.items() if name not in ("history", "trajectory")}
    assert bring("swe-agent", str(path)).new == 0


def unrepeated(step: dict[str, Any], history: list[Any]) -> dict[str, Any]:
    sent = step.get("messages")
    if sent is None:
        return step
    return step | {"messages": [history.index(one) if one in history else one for one in sent]}


@needs_data
def test_the_log_of_a_screen_gives_its_answers_and_keeps_its_rows(bring: Bring, opened: Opened) -> None:
    rows = [json.loads(line) for line in SCREEN.read_text(encoding="utf-8").splitlines()]
    report = bring("codex", str(SCREEN))
    session = opened(report.session)
    told = [row["payload"].get("msg", {}) for row in rows if row["kind"] == "codex_event"]
    answers = [one["message"] for one in told if one["type"] == "agent_message"]
    assert [message.text for message in session.messages()] == answers
    kept = [event.data["row"] for event in session.events() if event.type == "import.row"]
    assert kept == [row for row in rows if row.get("payload", {}).get("msg", {}).get("type") != "agent_message"]
    assert bring("codex", str(SCREEN)).new == 0
