"""The app server of Codex: JSON-RPC over its standard streams, for what its command line does not offer."""

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_PATIENCE_SECONDS = 60


class AppServer:
    """A running server; it is ended when the block ends, and killed when it says nothing for a minute."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._calls = 0

    def __enter__(self) -> "AppServer":
        program = shutil.which("codex", path=self._environment["PATH"])
        assert program
        self._process = subprocess.Popen(
            [program, "app-server"],
            cwd=self._folder,
            env=dict(self._environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._alarm = threading.Timer(_PATIENCE_SECONDS, self._process.kill)
        self._alarm.start()
        self._messages = self._read()
        self.call("initialize", clientInfo={"name": "tests", "version": "1"})
        self._send({"method": "initialized"})
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()  # pyright: ignore[reportOptionalMemberAccess]
        self._process.wait(_PATIENCE_SECONDS)
        self._process.stdout.close()  # pyright: ignore[reportOptionalMemberAccess]
        self._alarm.cancel()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method and return its result."""
        self._calls += 1
        self._send({"id": self._calls, "method": method, "params": parameters})
        answer = next(message for message in self._messages if message.get("id") == self._calls)
        assert "error" not in answer, answer
        return answer["result"]

    def wait_for(self, method: str) -> dict[str, Any]:
        """Wait for a notification and return its parameters."""
        return next(message for message in self._messages if message.get("method") == method)["params"]

    def hooks(self, folder: Path) -> list[dict[str, Any]]:
        """Return the hooks that run in a folder, with their trust."""
        return self.call("hooks/list", cwds=[str(folder)])["data"][0]["hooks"]

    def _send(self, message: Mapping[str, Any]) -> None:
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")  # pyright: ignore[reportOptionalMemberAccess]
        self._process.stdin.flush()  # pyright: ignore[reportOptionalMemberAccess]

    def _read(self) -> Iterator[dict[str, Any]]:
        for line in self._process.stdout or ():
            yield json.loads(line)
        raise AssertionError("the app server ended")
