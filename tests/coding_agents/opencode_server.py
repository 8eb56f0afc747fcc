"""The server of opencode: its HTTP API, for several prompts to one process and what its command line does not offer."""

import json
import re
import subprocess
import threading
from collections.abc import Mapping
from http.client import HTTPConnection
from pathlib import Path
from types import TracebackType
from typing import Any

from coding_agents.machine import PATIENCE_SECONDS
from coding_agents.programs import OpenCode

_LISTENING = re.compile(r"listening on http://127\.0\.0\.1:(\d+)")


class OpenCodeServer:
    """A running server; it is ended when the block ends, and killed when it says nothing for a minute."""

    def __init__(self, program: OpenCode, more: Mapping[str, str] = {}) -> None:
        self.program = program
        self._more = more

    def __enter__(self) -> "OpenCodeServer":
        machine = self.program.machine
        self.process = subprocess.Popen(
            ["opencode", "serve", "--hostname", "127.0.0.1", "--port", "0"],
            cwd=machine.project,
            env={**machine.environment, **self.program.variables, **self._more},
            executable=machine.find("opencode"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        alarm = threading.Timer(PATIENCE_SECONDS, self.process.kill)
        alarm.start()
        said = ""
        while not (listening := _LISTENING.search(said)):
            line = self.process.stdout.readline()  # pyright: ignore[reportOptionalMemberAccess]
            assert line, f"the server ended: {said}"
            said += line
        alarm.cancel()
        self._port = int(listening[1])
        threading.Thread(target=self.process.stdout.read, daemon=True).start()  # pyright: ignore[reportOptionalMemberAccess]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.terminate()
        self.process.wait(PATIENCE_SECONDS)
        self.process.stdout.close()  # pyright: ignore[reportOptionalMemberAccess]

    def ask(self, prompt: str, session: str = "") -> str:
        """Send a prompt, to a new session or to one that exists, wait for the answer, and return the session."""
        session = session or self.call("POST", "/session", {})["id"]
        self.call("POST", f"/session/{session}/message", {"parts": [{"type": "text", "text": prompt}]})
        return session

    def messages(self, session: str) -> list[dict[str, Any]]:
        """Return what opencode has of a session."""
        return self.call("GET", f"/session/{session}/message")

    def call(self, method: str, path: str, body: object = None) -> Any:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE_SECONDS)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"content-type": "application/json"})
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        assert response.status < 300, f"{method} {path}: {response.status} {text}"
        return json.loads(text) if text else None

    def children(self) -> list[Path]:
        """Return the processes of daypack that it has started and that answer its plug-in."""
        listed = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        pids = {pid for path in listed for pid in path.read_text().split()}
        commands = [Path("/proc", pid) for pid in pids]
        return [path for path in commands if b"--serve" in (path / "cmdline").read_bytes()]
