"""A client of the stdio loop for tests: lines in, messages out."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from daypack.memory.tools import Memories
from daypack.serve.mcp.router import Router
from daypack.serve.stdio.loop import serve
from daypack.serve.toolset import Toolset

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
}
# The command as the package has it, whether or not the list of commands already names it.
PROGRAM = "import sys; from daypack.cli import main; main.COMMANDS.setdefault('mcp', ''); sys.exit(main.run())"

Message = dict[str, Any]


def request(number: object, method: str, params: object = None, **more: object) -> Message:
    asked: Message = {"jsonrpc": "2.0", "id": number, "method": method, **more}
    return asked if params is None else {**asked, "params": params}


def initialize(version: str = "2025-11-25", number: object = 0) -> Message:
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
    return request(number, "initialize", params)


def stateless(number: object, method: str, **params: object) -> Message:
    return request(number, method, {**params, "_meta": META})


def tool(number: object, name: str, **given: object) -> Message:
    return request(number, "tools/call", {"name": name, "arguments": given})


def make_offer(memories: "Callable[[], Memories]", home: str, **options: Any) -> Router:
    return Router(Toolset(**options), memories, str(Path(home) / "prompts"))


def exchange(offer: Router, messages: Iterable[object]) -> list[Any]:
    """Send messages (or raw lines) to a loop of their own and return what it wrote until it ended."""
    lines = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in messages]
    sink = io.BytesIO()
    assert serve(offer, io.BytesIO(b"\n".join(lines) + b"\n"), sink)
    return [json.loads(line) for line in sink.getvalue().splitlines()]


def by_id(messages: Iterable[Message]) -> dict[Any, Message]:
    return {message.get("id"): message for message in messages}


def environment(home: str) -> dict[str, str]:
    outside = {name: value for name, value in os.environ.items() if not name.startswith("DAYPACK_")}
    return {**outside, "DAYPACK_HOME": home, "DAYPACK_EMBEDDING_MODEL": "none"}


class Process:
    """`daypack mcp` as a process of its own."""

    def __init__(self, home: str, *arguments: str, before: str = "", folder: Path | None = None) -> None:
        """`before` is code that runs in it first, `folder` where it starts."""
        self.process = subprocess.Popen(
            [sys.executable, "-c", before + PROGRAM, "mcp", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(home),
            cwd=folder,
        )

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                stream.close()

    def send(self, *messages: object) -> None:
        assert self.process.stdin
        for one in messages:
            self.process.stdin.write((one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n")
        self.process.stdin.flush()

    def receive(self) -> Message:
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read().decode() if self.process.stderr else ""
        return cast("Message", json.loads(line))

    def ask(self, message: Message) -> Message:
        self.send(message)
        return self.receive()

    def finish(self, seconds: float = 30) -> tuple[int, bytes, str]:
        """Close its input, wait for its end; return exit code, what it still wrote, and its log."""
        out, log = self.process.communicate(timeout=seconds)
        return self.process.returncode, out, log.decode()
