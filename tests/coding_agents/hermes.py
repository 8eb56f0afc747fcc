"""Hermes Agent on a machine: its settings, its command line, and several turns in one process."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from coding_agents.machine import Machine
from tools import hermes

FOLDER = Path(__file__).parents[2] / ".venv" / "hermes"
WINDOW = 64_000  # the smallest that Hermes accepts
_PATIENCE_SECONDS = 300
_SETTINGS = """# settings of the test
model:
  default: gpt-4o
  provider: custom
  base_url: {url}
  api_key: none
  context_length: {window}  # tokens
"""
_CONVERSE = """
import json, sys
from agent.context_engine import ContextEngine
from hermes_cli.plugins import discover_plugins
from hermes_state import SessionDB
from run_agent import AIAgent

discover_plugins()
given = json.load(sys.stdin)
agent = AIAgent(base_url=given["url"], api_key="none", model="gpt-4o", provider="custom", quiet_mode=True,
                max_iterations=5, skip_memory=True, session_id=given["session"], session_db=SessionDB())
messages = None
for prompt in given["prompts"]:
    answer = agent.run_conversation(prompt, conversation_history=messages)
    messages = answer["messages"]
engine = agent.context_compressor
tools = sorted(agent._context_engine_tool_names)
agent.close()
print("\\n" + json.dumps({"engine": engine.name, "is_engine": isinstance(engine, ContextEngine), "tools": tools,
                         "messages": len(messages), "session": agent.session_id, "answer": answer["final_response"]}))
"""


class Hermes:
    """Hermes Agent with the scripted model; skipped where it is not installed."""

    def __init__(self, machine: Machine) -> None:
        if not hermes.is_installed(FOLDER):
            pytest.skip(f"Hermes Agent {hermes.VERSION} is not installed: python -m tools.hermes .venv/hermes")
        self.machine = machine
        self.home = machine.home / ".hermes"
        self.settings = self.home / "config.yaml"
        self.home.mkdir()
        self.settings.write_text(_SETTINGS.format(url=machine.endpoint.openai_url, window=WINDOW), encoding="utf-8")
        (machine.bin / "hermes").symlink_to(FOLDER / "bin" / "hermes")
        kept = {
            name: value for name, value in machine.environment.items() if name not in ("PYTHONPATH", "DAYPACK_HOME")
        }
        # Otherwise it installs packages for tools that no test uses, whenever it starts.
        self._environment = {**kept, "HERMES_DISABLE_LAZY_INSTALLS": "1"}

    def converse(self, *prompts: str, session: str = "") -> dict[str, Any]:
        """Send prompts to one agent, and return what it says about itself."""
        given = {"url": self.machine.endpoint.openai_url, "prompts": prompts, "session": session or None}
        out = self._run(str(hermes.python(FOLDER)), "-c", _CONVERSE, stdin=json.dumps(given))
        return json.loads(out.strip().splitlines()[-1])

    def ask(self, prompt: str, *options: str) -> str:
        """Send a prompt by the command line, and return what it prints."""
        return self._run("hermes", "chat", "-Q", "-q", prompt, *options)

    def log(self) -> str:
        """Return Hermes' own log."""
        return "".join(path.read_text(encoding="utf-8") for path in self.home.glob("logs/*.log"))

    def _run(self, *command: str, stdin: str = "") -> str:
        program = shutil.which(command[0], path=self._environment["PATH"])
        assert program, f"{command[0]} is not on PATH"
        done = subprocess.run(
            [program, *command[1:]],
            cwd=self.machine.home,
            env=self._environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout
