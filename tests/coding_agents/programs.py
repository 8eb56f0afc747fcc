"""The coding agents: how each is configured, installed into, asked and compacted."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest
from model_endpoint import Call

from coding_agents.app_server import AppServer
from coding_agents.machine import AGENTS, Machine
from daypack.hooks.call import AGENTS as NAMES
from daypack.hooks.call import HostName
from tools.agents import VERSIONS, missing

_PLUGIN = "mcp__plugin_daypack_daypack"
_ALLOWED = f"Bash Agent Write {_PLUGIN}"
CODEX_MODEL = "gpt-5.5"  # a model that Codex knows: with an unknown one it defers no tools
LOOK_AGAIN, LOOKED = "Take another look.", "I took it."
GEMINI_MODEL = "gemini-2.5-pro"
GEMINI_SETTINGS: Mapping[str, Any] = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "general": {"enableAutoUpdate": False},
    "privacy": {"usageStatisticsEnabled": False},
}
_CODEX_CONFIG = """model = "{model}"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.scripted]
name = "scripted"
base_url = "{url}"
wire_api = "responses"
env_key = "SCRIPTED_KEY"

[projects."{project}"]
trust_level = "trusted"
"""


class Program:
    """A coding agent of a machine."""

    name: ClassVar[HostName]
    package: ClassVar[str]
    command: ClassVar[str]

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.variables = self.connect()

    @property
    def agent(self) -> str:
        """The agent under whose name daypack stores the sessions."""
        return NAMES[self.name]

    def connect(self) -> Mapping[str, str]:
        """Configure the scripted model and return the variables that the program needs for it."""
        raise NotImplementedError

    def ask(self, prompt: str, session: str = "", *, cwd: Path | None = None) -> str:
        """Send a prompt, to a new session or to one that is resumed, and return the id of the session."""
        raise NotImplementedError

    def shell(self, command: str) -> Call:
        """Return the call with which the model runs a command."""
        raise NotImplementedError

    def write(self, path: Path, text: str) -> Call:
        """Return the call with which the model writes a new file."""
        raise NotImplementedError

    def memory_tool(self, name: str, arguments: Mapping[str, Any]) -> Call:
        """Return the call of one of daypack's tools."""
        raise NotImplementedError

    def transcript(self, session: str) -> Path:
        raise NotImplementedError

    def run(self, *arguments: str, cwd: Path | None = None, stdin: str = "") -> str:
        return self.machine.run(self.command, *arguments, cwd=cwd, stdin=stdin, more=self.variables).stdout

    def _only(self, pattern: str) -> Path:
        (path,) = self.machine.home.glob(pattern)
        return path


AProgram = TypeVar("AProgram", bound=Program)


class Claude(Program):
    name = "claude"
    package = "@anthropic-ai/claude-code"
    command = "claude"

    def connect(self) -> Mapping[str, str]:
        return {
            "ANTHROPIC_BASE_URL": self.machine.endpoint.url,
            "ANTHROPIC_API_KEY": "none",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }

    def ask(self, prompt: str, session: str = "", *, cwd: Path | None = None) -> str:
        return self._print(prompt, *(("--resume", session) if session else ()), cwd=cwd)

    def fork(self, prompt: str, session: str) -> str:
        """Send a prompt to a copy of a session, and return the id of the copy."""
        return self._print(prompt, "--resume", session, "--fork-session")

    def _print(self, prompt: str, *options: str, cwd: Path | None = None) -> str:
        out = self.run("-p", prompt, *options, "--allowedTools", _ALLOWED, "--output-format", "json", cwd=cwd)
        answer: dict[str, Any] = json.loads(out)
        assert not answer["is_error"], answer
        return answer["session_id"]

    def compact(self, session: str, then: str = "") -> None:
        """Compact, and send a prompt."""
        self.run("-p", "/compact", "--resume", session)
        if then:
            self.ask(then, session)

    def clear(self, session: str) -> None:
        self.run("-p", "/clear", "--resume", session)

    def shell(self, command: str) -> Call:
        return Call("Bash", {"command": command, "description": "Run it"})

    def write(self, path: Path, text: str) -> Call:
        return Call("Write", {"file_path": str(path), "content": text})

    def memory_tool(self, name: str, arguments: Mapping[str, Any]) -> Call:
        return Call(f"{_PLUGIN}__{name}", arguments)

    def transcript(self, session: str) -> Path:
        return self._only(f".claude/projects/*/{session}.jsonl")


class Codex(Program):
    name = "codex"
    package = "@openai/codex"
    command = "codex"

    def connect(self) -> Mapping[str, str]:
        folder = self.machine.home / ".codex"
        folder.mkdir(exist_ok=True)
        text = _CODEX_CONFIG.format(
            model=CODEX_MODEL, url=self.machine.endpoint.openai_url, project=self.machine.project
        )
        if not (folder / "config.toml").exists():
            (folder / "config.toml").write_text(text, encoding="utf-8")
        return {"SCRIPTED_KEY": "none"}

    def ask(self, prompt: str, session: str = "", *, cwd: Path | None = None) -> str:
        given = ("resume", session) if session else ()
        lines = self.run("exec", *given, "--json", "--skip-git-repo-check", prompt, cwd=cwd).splitlines()
        events: list[dict[str, Any]] = [json.loads(line) for line in lines if line.startswith("{")]
        return next(event["thread_id"] for event in events if event["type"] == "thread.started")

    def compact(self, session: str, then: str = "") -> None:
        """Compact as `/compact` does, and send a prompt in the same process."""
        with self.server() as server:
            server.call("thread/resume", threadId=session, excludeTurns=True)
            server.call("thread/compact/start", threadId=session)
            server.wait_for("turn/completed")
            if then:
                server.call("turn/start", threadId=session, input=[{"type": "text", "text": then}])
                server.wait_for("turn/completed")

    def trust(self) -> list[str]:
        """Trust all hooks, as a person does on the page `/hooks`, and return the events that they are for."""
        with self.server() as server:
            hooks = server.hooks(self.machine.project)
            state = {hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in hooks}
            edit = {"keyPath": "hooks.state", "value": state, "mergeStrategy": "upsert"}
            server.call("config/batchWrite", edits=[edit])
            hooks = server.hooks(self.machine.project)
        assert all(hook["trustStatus"] == "trusted" for hook in hooks), hooks
        return sorted(hook["eventName"] for hook in hooks)

    def server(self) -> AppServer:
        machine = self.machine
        return AppServer(machine.project, {**machine.environment, **self.variables})

    def shell(self, command: str) -> Call:
        return Call("exec_command", {"cmd": command})

    def write(self, path: Path, text: str) -> Call:
        added = "".join(f"+{line}\n" for line in text.splitlines())
        return Call("apply_patch", f"*** Begin Patch\n*** Add File: {path}\n{added}*** End Patch\n", is_freeform=True)

    def memory_tool(self, name: str, arguments: Mapping[str, Any]) -> Call:
        return Call(name, arguments, namespace="mcp__daypack")

    def transcript(self, session: str) -> Path:
        return self._only(f".codex/sessions/*/*/*/*{session}.jsonl")


class Copilot(Program):
    name = "copilot"
    package = "@github/copilot"
    command = "copilot"

    def connect(self) -> Mapping[str, str]:
        return {
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": self.machine.endpoint.openai_url,
            "COPILOT_PROVIDER_API_KEY": "none",
            "COPILOT_MODEL": "scripted",
        }

    def ask(self, prompt: str, session: str = "", *, cwd: Path | None = None) -> str:
        given = (f"--resume={session}",) if session else ("--trust-folder",)
        old = self._sessions()
        self.run("-p", prompt, *given, "--allow-all-tools", cwd=cwd)
        return session or (self._sessions() - old).pop()

    def _sessions(self) -> set[str]:
        return {path.parent.name for path in self.machine.home.glob(".copilot/session-state/*/events.jsonl")}

    def shell(self, command: str) -> Call:
        return Call("bash", {"command": command, "description": "Run it"})

    def write(self, path: Path, text: str) -> Call:
        return Call("create", {"path": str(path), "file_text": text})

    def memory_tool(self, name: str, arguments: Mapping[str, Any]) -> Call:
        return Call(f"daypack-{name}", arguments)

    def transcript(self, session: str) -> Path:
        return self._only(f".copilot/session-state/{session}/events.jsonl")


class Qwen(Program):
    name = "qwen"
    package = "@qwen-code/qwen-code"
    command = "qwen"

    def connect(self) -> Mapping[str, str]:
        return {
            "OPENAI_BASE_URL": self.machine.endpoint.openai_url,
            "OPENAI_API_KEY": "none",
            "OPENAI_MODEL": "scripted",
            "QWEN_CODE_SUPPRESS_YOLO_WARNING": "1",
        }

    def ask(self, prompt: str, session: str = "", *, cwd: Path | None = None) -> str:
        given = ("--resume", session) if session else ()
        old = self._sessions()
        self.run("--auth-type", "openai", "-y", *given, "-p", prompt, cwd=cwd)
        return session or (self._sessions() - old).pop()

    def _sessions(self) -> set[str]:
        return {path.stem for path in self.machine.home.glob(".qwen/projects/*/chats/*.jsonl")}

    def shell(self, command: str) -> Call:
        return Call("run_shell_command", {"command": command, "is_background": False})

    def write(self, path: Path, text: str) -> Call:
        return Call("write_file", {"file_path": str(path), "content": text})

    def memory_tool(self, name: str, arguments: Mapping[str, Any]) -> Call:
        return Call(f"mcp__daypack__{name}", arguments)

    def transcript(self, session: str) -> Path:
        return self._only(f".qwen/projects/*/chats/{session}.jsonl")


class Gemini(Program):
    name = "gemini"
    package = "@google/gemini-cli"
    command = "gemini"

    def connect(self) -> Mapping[str, str]:
        settings = self.machine.home / ".gemini" / "settings.json"
        if not settings.exists():
            settings.parent.mkdir(exist_ok=True)
            settings.write_text(json.dumps(GEMINI_SETTINGS, indent=2), encoding="utf-8")
        return {"GOOGLE_GEMINI_BASE_URL": self.machine.endpoint.url, "GEMINI_API_KEY": "none"}

    def ask(self, prompt: str, session: str = "", *, cwd: Path | None = None) -> str:
        return self._print(prompt, *(("--resume", session) if session else ()), cwd=cwd)

    def _print(self, prompt: str, *options: str, cwd: Path | None = None) -> str:
        given = ("-m", GEMINI_MODEL, "--skip-trust", "--yolo", "--output-format", "json")
        out = self.run(*given, *options, "-p", prompt, cwd=cwd)
        return json.loads(out[out.index("{") :])["session_id"]

    def compact(self, session: str, then: str = "") -> None:
        """Let it compact within a turn in which the model must look again, as it does near the limit; send a prompt."""
        settings = self.machine.home / ".gemini" / "settings.json"
        before = settings.read_text(encoding="utf-8")
        settings.write_text(json.dumps({**json.loads(before), "model": {"compressionThreshold": 0.001}}))
        self.ask(LOOK_AGAIN, session)
        settings.write_text(before)
        self.machine.wait_for(self.agent, session, LOOKED)
        if then:
            self.ask(then, session)

    def shell(self, command: str) -> Call:
        return Call("run_shell_command", {"command": command})

    def write(self, path: Path, text: str) -> Call:
        return Call("write_file", {"file_path": str(path), "content": text})

    def memory_tool(self, name: str, arguments: Mapping[str, Any]) -> Call:
        return Call(f"mcp_daypack_{name}", arguments)

    def transcript(self, session: str) -> Path:
        # Its name has the minute: a session that is resumed in a later one may get a second file, which holds all.
        paths = self.machine.home.glob(f".gemini/tmp/*/chats/session-*-{session[:8]}.jsonl")
        return max(paths, key=lambda path: path.stat().st_mtime_ns)


class OpenCode(Program):
    name = "opencode"
    package = "opencode-ai"
    command = "opencode"

    def __init__(self, machine: Machine, context_tokens: int = 200_000) -> None:
        self._context_tokens = context_tokens
        super().__init__(machine)

    def connect(self) -> Mapping[str, str]:
        folder = self.machine.home / ".config" / "opencode"
        folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "$schema": "https://opencode.ai/config.json",
            "model": "scripted/model",
            "small_model": "scripted/model",
            "provider": {
                "scripted": {
                    "npm": "@ai-sdk/openai-compatible",
                    "options": {"baseURL": self.machine.endpoint.openai_url, "apiKey": "none"},
                    "models": {"model": {"limit": {"context": self._context_tokens, "output": 1_000}}},
                }
            },
        }
        (folder / "opencode.json").write_text(json.dumps(settings, indent=2), encoding="utf-8")
        # It fetches the types of its plug-ins, unless it takes them for installed.
        plugin = {"dependencies": {"@opencode-ai/plugin": VERSIONS[self.package]}}
        (folder / "node_modules").mkdir(exist_ok=True)
        (folder / "package.json").write_text(json.dumps(plugin), encoding="utf-8")
        (folder / "package-lock.json").write_text(json.dumps({"packages": {"": plugin}}), encoding="utf-8")
        return {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            "DAYPACK_PATIENCE_MS": "30000",  # on a machine with much else to do
        }

    def ask(self, prompt: str, session: str = "", *, cwd: Path | None = None) -> str:
        given = ("--session", session) if session else ()
        out = self.run("run", "--format", "json", *given, cwd=cwd, stdin=prompt)
        return json.loads(out.splitlines()[0])["sessionID"]

    def shell(self, command: str) -> Call:
        return Call("bash", {"command": command, "description": "Run it"})

    def write(self, path: Path, text: str) -> Call:
        return Call("write", {"filePath": str(path), "content": text})

    def memory_tool(self, name: str, arguments: Mapping[str, Any]) -> Call:
        return Call(f"daypack_{name}", arguments)

    def transcript(self, session: str) -> Path:
        return self.machine.home / ".local" / "share" / "opencode" / "opencode.db"  # all sessions are in it


def installed(kind: type[AProgram], machine: Machine) -> AProgram:
    """Return an agent of a machine; the test is skipped when npm could not fetch it."""
    if kind.package in missing(AGENTS):
        pytest.skip(f"{kind.package} is not installed: make .venv/agents/ready says why")
    return kind(machine)


PROGRAMS: tuple[type[Program], ...] = (Claude, Codex, Copilot, Qwen, Gemini, OpenCode)
