"""A session of a coding agent, as an import leaves it: for tests of hooks."""

import json
from pathlib import Path
from typing import Any

import daypack
from daypack.history.draft import draft_from
from daypack.history.home import find_home
from daypack.history.layout import Home
from daypack.hooks.call import AGENTS, HookCall, HostName
from daypack.memory.project import Project, find_project
from daypack.session import Session

NAME = "5ac28188-0d3f-4a52-9f0e-6f2a7c1b9d11"
FAILED = {"format": "claude-code", "result": {"is_error": True}}
CLAUDE = {"format": "claude-code"}


class CodingSession:
    """Appends what a coding agent did in a project."""

    def __init__(self, root: Path, name: str = NAME, host: HostName = "claude", project: str = "shop") -> None:
        self.root = root
        self.home: Home = find_home(root / "home")
        self.host: HostName = host
        self.name = name
        self.folder = root / project
        self.folder.mkdir(exist_ok=True)
        self.session: Session = daypack.open_session(
            name, agent=AGENTS[host], home=root / "home", durability="os", workspace=""
        )
        self._number = 0

    @property
    def project(self) -> Project:
        return find_project(str(self.folder))

    def say(self, role: str, content: str, **fields: Any) -> int:
        self._number += 1
        ts = f"2026-11-17T{9 + self._number // 3600:02}:{self._number // 60 % 60:02}:{self._number % 60:02}.000Z"
        return self.session.history.append([draft_from({"role": role, "content": content, "ts": ts, **fields})])[0].seq

    def user(self, text: str, **fields: Any) -> int:
        return self.say("user", text, **fields)

    def agent(self, text: str) -> int:
        return self.say("assistant", text)

    def call(self, tool: str, arguments: dict[str, Any], result: str, *, failed: bool = False) -> int:
        call = {"id": f"c{self._number}", "name": tool, "arguments": json.dumps(arguments)}
        self.say("assistant", "", tool_calls=[call])
        return self.say("tool", result, tool_call_id=call["id"], meta=FAILED if failed else CLAUDE)

    def bash(self, command: str, result: str = "", code: int = 0) -> int:
        words = f"Exit code {code}\n{result}" if code else result
        return self.call("Bash", {"command": command}, words, failed=bool(code))

    def edit(self, path: str, old: str = "x = 1", new: str = "x = 2") -> int:
        arguments = {"file_path": f"{self.project.top}/{path}", "old_string": old, "new_string": new}
        return self.call("Edit", arguments, f"The file {path} has been updated.")

    def read(self, path: str, text: str = "x = 1") -> int:
        return self.call("Read", {"file_path": f"{self.project.top}/{path}"}, f"     1→{text}")

    def summary(self, text: str = "This session is being continued from a previous conversation.") -> int:
        """The host compacts: the next message is its summary."""
        return self.user(text, meta={"format": "claude-code", "foreign_summary": True})

    def hook(self, event: str, **fields: Any) -> HookCall:
        known = {name: fields.pop(name) for name in ("source", "prompt", "transcript") if name in fields}
        return HookCall(host=self.host, event=event, session=self.name, cwd=str(self.folder), fields=fields, **known)

    def index(self) -> None:
        """Bring the search index up to date, as a take-in does."""
        self.session.turns.inputs.history_search.index.build()
