"""A coding agent with two tools: it reads files and, when you agree, runs commands.

    pip install anthropic
    export ANTHROPIC_API_KEY=...
    cd your-project && python path/to/examples/coding_agent.py "Why does the build fail?"

The session is named after the folder, so the next run remembers this one. AGENTS.md of the folder is in every prompt.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from anthropic import Anthropic, BadRequestError

import daypack

MODEL = os.environ.get("MODEL", "claude-sonnet-5-5")
PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
COMMAND = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
TOOLS: list[Any] = [{"name": "read_file", "input_schema": PATH}, {"name": "run", "input_schema": COMMAND}]


def call_tool(session: daypack.Session, name: str, arguments: str) -> str:
    """Return what a tool gives; a failure is a result too, so that the model can react to it."""
    try:
        if name == "read_file":
            return Path(json.loads(arguments)["path"]).read_text(encoding="utf-8")
        if name == "run":
            command = json.loads(arguments)["command"]
            if input(f"run {command!r}? [y/N] ") != "y":
                return "The user refused to run this command."
            done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=600, check=False)
            return f"{done.stdout}{done.stderr}exit code {done.returncode}"
        return session.call(name, arguments)  # recall and search_history: what is no longer in the window
    except (OSError, KeyError, ValueError, subprocess.TimeoutExpired, daypack.errors.DaypackError) as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    question = " ".join(sys.argv[1:]).strip() or sys.exit(__doc__)
    client, session = Anthropic(), daypack.open_session(Path.cwd().name, agent="coder")
    tools = TOOLS + session.tools()
    message = session.append("user", question)
    while message.role == "user" or message.tool_calls:
        turn = session.prepare(budget=100_000, model=MODEL, tools=tools)
        try:
            reply = client.messages.create(model=MODEL, max_tokens=8_000, **turn.request("anthropic"))
        except BadRequestError as error:
            if "too long" in str(error) and session.compact_on_overflow().changed:
                continue
            raise
        message = session.accept(reply)
        print(message.text)
        for call in message.tool_calls:
            session.append("tool", call_tool(session, call.name, call.arguments), tool_call_id=call.id)
