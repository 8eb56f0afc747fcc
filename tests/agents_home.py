"""A home folder in which agents leave transcripts."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

VARIABLES = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "CODEX_SQLITE_HOME", "COPILOT_HOME", "QWEN_HOME", "XDG_DATA_HOME")
RECORDED = Path(__file__).parent / "importers" / "recorded"
CODEX_THREAD, CODEX_SUB_AGENT = "01a1ed0e-a8f4-7850-9b9c-07a3b02575b4", "01a1ed0e-ac48-7aa0-be8c-180c74d38e43"
OPENCODE_SESSION = "ses_e133e95e0ffeuZEjFJSkY9RxCa"  # in /work/project, with a sub-agent


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

    def codex_history(self) -> Path:
        """Write the recorded databases of Codex: the items of a thread and its sub-agent, and what is known of both."""
        folder = self.folder / ".codex"
        folder.mkdir(exist_ok=True)
        for name, recorded in (("thread_history_1", "codex-history"), ("state_5", "codex-state")):
            with closing(sqlite3.connect(folder / f"{name}.sqlite")) as connection:
                connection.executescript((RECORDED / f"{recorded}.sql").read_text(encoding="utf-8"))
        return folder / "thread_history_1.sqlite"

    def opencode(self) -> Path:
        """Write the recorded database of opencode."""
        path = self.folder / ".local" / "share" / "opencode" / "opencode.db"
        path.parent.mkdir(parents=True)
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript((RECORDED / "opencode.sql").read_text(encoding="utf-8"))
        return path


def add_opencode_session(database: Path, name: str, text: str, *, cwd: str, parent: str = "") -> None:
    """Add a session with one message of the user to a database of opencode."""
    about = {"id": name, "parent_id": parent or None, "directory": cwd, "slug": name}
    with closing(sqlite3.connect(database)) as connection:
        connection.row_factory = sqlite3.Row
        (row,) = connection.execute("SELECT * FROM session WHERE id = ?", (OPENCODE_SESSION,))
        marks = ",".join("?" * len(row))
        connection.execute(f"INSERT INTO session VALUES({marks})", tuple((dict(row) | about).values()))
        info = json.dumps({"role": "user", "time": {"created": 1}})
        connection.execute("INSERT INTO message VALUES(?,?,1,1,?)", (f"msg_{name}", name, info))
        part = json.dumps({"type": "text", "text": text})
        connection.execute("INSERT INTO part VALUES(?,?,?,1,1,?)", (f"prt_{name}", f"msg_{name}", name, part))
        connection.commit()


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
