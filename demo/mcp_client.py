"""A client of `daypack mcp`, which runs as a subprocess; one JSON message per line."""

import json
import os
import subprocess
import sys
from typing import Any, cast

_HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "demo", "version": "1"}}


class Server:
    """A memory server that runs until the `with` ends."""

    def __init__(self, home: str) -> None:
        command = [sys.executable, "-m", "daypack", "mcp", "--home", home]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment())
        self._number = 0
        self.pid = self._process.pid
        self.calls: list[str] = []
        self.name = str(self._request("initialize", _HELLO)["serverInfo"]["name"])
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def tools(self) -> list[str]:
        """Return the names of the tools it offers."""
        return [tool["name"] for tool in self._request("tools/list", {})["tools"]]

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool; raise RuntimeError if it reports an error."""
        result = self._request("tools/call", {"name": name, "arguments": arguments})
        if result.get("isError"):
            raise RuntimeError(result["content"][0]["text"])
        self.calls.append(name)
        return cast("dict[str, Any]", result["structuredContent"])

    def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        while line := self._output.readline():
            message = json.loads(line)
            if message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(message["error"]["message"])
                return message["result"]
        raise RuntimeError("daypack mcp has ended")

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    @property
    def _output(self) -> Any:  # noqa: ANN401 — a pipe of bytes
        return self._process.stdout

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # the server exits at the end of its input


def environment() -> dict[str, str]:
    """Return the environment without daypack settings and without local models."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith("DAYPACK_")}
    return outside | {"DAYPACK_EMBEDDING_MODEL": "none", "DAYPACK_COMPACTION_MODEL": "none"}
