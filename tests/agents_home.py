"""A home folder in which agents leave transcripts."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

VARIABLES = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "QWEN_HOME")


class AgentsHome:
    """Writes transcripts of Claude Code and Codex, row by row."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        folder.mkdir()
        monkeypatch.setenv("HOME", str(folder))
        for variable in VARIABLES:
            monkeypatch.delenv(variable, raising=False)

    def claude(self, session: str, *texts: str, first: int = 1, cwd: str = "/nowhere", project: str = "-work") -> Path:
        """Append messages to a session of Claude Code, of the user and the assistant in turn."""
        path = self.folder / ".claude" / "projects" / project / f"{session}.jsonl"
        rows: list[dict[str, Any]] = []
        for number, text in enumerate(texts, first):
            role = "user" if number % 2 else "assistant"
            content = text if role == "user" else [{"type": "text", "text": text}]
            common = {"sessionId": session, "cwd": cwd, "timestamp": "2026-11-01T10:00:00.000Z", "version": "2.1.325"}
            message = {"role": role, "content": content}
            rows.append({"type": role, "uuid": f"{session}-{number}", "message": message, **common})
        return append(path, rows)

    def codex(self, session: str, *texts: str, day: str = "2026/11/01") -> Path:
        """Write a rollout of Codex with messages of the user."""
        rows: list[dict[str, Any]] = [{"type": "session_meta", "payload": {"id": session, "cwd": "/nowhere"}}]
        rows += [codex_row(text) for text in texts]
        name = f"rollout-{day.replace('/', '-')}T10-00-00-{session}.jsonl"
        return append(self.folder / ".codex" / "sessions" / day / name, rows)


def codex_row(text: str) -> dict[str, Any]:
    content = [{"type": "input_text", "text": text}]
    return {"type": "response_item", "payload": {"type": "message", "role": "user", "content": content}}


def append(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(json.dumps(row) + "\n" for row in rows))
    return path


def set_minute(path: Path, minute: int) -> None:
    os.utime(path, (minute * 60, minute * 60))
