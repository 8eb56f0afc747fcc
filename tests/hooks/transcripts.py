"""Transcripts as the coding agents write them, row by row."""

import json
import uuid
from pathlib import Path
from typing import Any


class ClaudeTranscript:
    """The file of a session of Claude Code, and the files of its sub-agents."""

    def __init__(self, path: Path, session: str, cwd: str, *, agent: str = "") -> None:
        self.path = path
        self.session = session
        self._cwd = cwd
        self._agent = agent
        self._parent: str | None = None
        self._minute = 0
        path.parent.mkdir(parents=True, exist_ok=True)

    def user(self, text: str, **fields: object) -> str:
        """Append a message of the user and return its uuid."""
        return self._row("user", {"role": "user", "content": text}, **fields)

    def assistant(self, text: str, call: tuple[str, dict[str, Any]] | None = None) -> str:
        """Append a message of the assistant; with a call, the row after it is its result."""
        content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        if call:
            content.append({"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex}", "name": call[0], "input": call[1]})
        return self._row("assistant", {"id": f"msg_{uuid.uuid4().hex}", "role": "assistant", "content": content})

    def call(self, name: str, arguments: dict[str, Any], output: str) -> None:
        """Append a tool call and its result."""
        number = f"toolu_{uuid.uuid4().hex}"
        call = {"type": "tool_use", "id": number, "name": name, "input": arguments}
        self._row("assistant", {"id": f"msg_{uuid.uuid4().hex}", "role": "assistant", "content": [call]})
        result = {"type": "tool_result", "tool_use_id": number, "content": output}
        self._row("user", {"role": "user", "content": [result]})

    def injected(self, text: str) -> None:
        """Append the row in which Claude Code keeps what a hook added."""
        attachment = {"type": "hook_additional_context", "content": [text], "hookEvent": "UserPromptSubmit"}
        self._row("attachment", None, attachment=attachment)

    def sub_agent(self, agent: str) -> "ClaudeTranscript":
        """Return the file of a sub-agent."""
        path = self.path.with_suffix("") / "subagents" / f"agent-{agent}.jsonl"
        return ClaudeTranscript(path, self.session, self._cwd, agent=agent)

    def _row(self, kind: str, message: dict[str, Any] | None, **fields: object) -> str:
        self._minute += 1
        hour, minute = divmod(self._minute, 60)
        name = str(uuid.uuid4())
        row = {
            "type": kind,
            "uuid": name,
            "parentUuid": self._parent,
            "sessionId": self.session,
            "cwd": self._cwd,
            "version": "2.1.325",
            "isSidechain": bool(self._agent),
            "timestamp": f"2026-11-17T{hour:02}:{minute:02}:00.000Z",
            **({"agentId": self._agent} if self._agent else {}),
            **({"message": message} if message else {}),
            **fields,
        }
        self._parent = name
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        return name


def codex_rows(session: str, cwd: str, *messages: tuple[str, str]) -> str:
    """Return the lines of a rollout file of Codex: messages as role and text."""
    rows: list[dict[str, Any]] = [
        {"type": "session_meta", "payload": {"id": session, "cwd": cwd, "originator": "codex"}}
    ]
    for role, text in messages:
        kind = "output_text" if role == "assistant" else "input_text"
        payload = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        rows.append({"type": "response_item", "payload": payload})
    times = (f"2026-11-17T10:{number:02}:00.000Z" for number in range(len(rows)))
    return "".join(json.dumps({"timestamp": time, **row}) + "\n" for time, row in zip(times, rows, strict=True))


def copilot_rows(session: str, cwd: str, said: str, injected: str, answered: str) -> str:
    """Return the lines of a session of Copilot CLI: one prompt with what a hook added, and the answer."""
    sent = f"{said}\n\n<system_reminder>\n{injected}\n</system_reminder>"
    rows: list[tuple[str, dict[str, Any]]] = [
        ("session.start", {"sessionId": session, "selectedModel": "gpt-5", "context": {"cwd": cwd}}),
        ("hook.end", {"hookType": "userPromptSubmitted", "success": True, "output": {"additionalContext": injected}}),
        ("user.message", {"content": said, "transformedContent": sent, "messageId": "m-1"}),
        ("assistant.message", {"messageId": "m-2", "model": "gpt-5", "content": answered, "toolRequests": []}),
    ]
    times = (f"2026-11-17T10:00:{number:02}.000Z" for number in range(len(rows)))
    return "".join(
        json.dumps({"type": kind, "data": data, "id": f"e-{time}", "timestamp": time, "parentId": None}) + "\n"
        for time, (kind, data) in zip(times, rows, strict=True)
    )


def gemini_rows(session: str, cwd: str, said: str, injected: str, answered: str) -> str:
    """Return the lines of a session of Gemini CLI: one prompt with what a hook added, and the answer."""
    escaped = injected.replace("<", "&lt;").replace(">", "&gt;")
    time = "2026-11-17T10:00:00.000Z"
    asked = [{"text": said}, {"text": f"<hook_context>{escaped}</hook_context>"}]
    rows: list[dict[str, Any]] = [
        {"sessionId": session, "projectHash": "0", "startTime": time, "kind": "main", "directories": [cwd]},
        {"id": "m-1", "timestamp": time, "type": "user", "content": asked},
        {"id": "m-2", "timestamp": time, "type": "gemini", "content": answered, "thoughts": [], "model": "m"},
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def qwen_rows(session: str, cwd: str, said: str, injected: str, answered: str) -> str:
    """Return the lines of a session of Qwen Code: one prompt with what a hook added, and the answer."""
    added = f"<qwen:user-prompt-submit-context>\n{injected}\n</qwen:user-prompt-submit-context>"
    payload = {"displayText": said, "hookContext": injected}
    asked = {"role": "user", "parts": [{"text": said}, {"text": added}]}
    place = {"sessionId": session, "cwd": cwd, "version": "0.24.4"}
    rows: list[dict[str, Any]] = [
        {"type": "user", "provenance": "real_user", "message": asked, "systemPayload": payload},
        {"type": "assistant", "model": "m", "message": {"role": "model", "parts": [{"text": answered}]}},
    ]
    return "".join(
        json.dumps({"uuid": f"u-{number}", "parentUuid": None, "timestamp": "2026-11-17T10:00:00.000Z", **place, **row})
        + "\n"
        for number, row in enumerate(rows)
    )
